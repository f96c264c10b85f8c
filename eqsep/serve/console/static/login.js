/* A link such as /login#TOKEN signs in: what follows the # never leaves the browser by itself. */

(() => {
  const token = decodeURIComponent(location.hash.slice(1));
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.querySelector("form");
  form.elements.token.value = token;
  form.submit();
})();
