/* A link such as /login#TOKEN signs in: what follows the # never leaves the browser by itself. */

(() => {
  const form = document.querySelector("form");
  const { next } = form.elements; // where to go then: kept while tokens are refused
  if (new URLSearchParams(location.search).get("error") === "token") next.value = sessionStorage.getItem("next") ?? "/";
  else sessionStorage.setItem("next", next.value);
  const token = decodeURIComponent(location.hash.slice(1));
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.token.value = token;
  form.submit();
})();
