/* The console's keys, selection and words for screen readers; everything else is the server's.
 *
 * Pages work without this file: links open, forms post. It only makes them quick.
 */

const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const one = (selector, from = document) => from.querySelector(selector);
const rows = () => all(".alarms tr[data-id]");
const say = (text) => { one("#say").textContent = text; };
let at = -1; // the row that the keys are on

/* Rows: j and k move, x selects. */

function go(to) {
  const found = rows();
  if (!found.length) return;
  at = Math.max(0, Math.min(found.length - 1, to));
  found.forEach((row, i) => row.classList.toggle("here", i === at));
  one(".open", found[at]).focus();
  found[at].scrollIntoView({ block: "nearest" });
}

const boxes = () => all('input[name="id"][type="checkbox"]');

function count() {
  const n = boxes().filter((box) => box.checked).length;
  for (const place of all("[data-selected]")) place.textContent = n ? `${n} selected` : "None selected";
  const every = one("input[data-all='']");
  if (every) {
    every.checked = n > 0 && n === boxes().length;
    every.indeterminate = n > 0 && n < boxes().length;
  }
}

function select(row, wanted) {
  const box = row && one('input[name="id"]', row);
  if (!box) return;
  box.checked = wanted ?? !box.checked;
  say(`Alarm ${box.value} ${box.checked ? "selected" : "no longer selected"}`);
  count();
}

document.addEventListener("change", (event) => {
  const { target } = event;
  if (target.matches("[data-go]")) target.form.submit();
  if (target.matches("[data-all]")) {
    const within = target.dataset.all ? one(`#${target.dataset.all}`) : target.closest("table");
    for (const box of all('input[name="id"]', within)) box.checked = target.checked;
  }
  if (target.matches('[data-all], input[name="id"]')) count();
});

/* On the page of one alarm, j and k go through the alarms of the list it was opened from. */

function keepOrder() {
  const found = rows().map((row) => row.dataset.id);
  if (one("#list") && found.length) sessionStorage.setItem("alarms", JSON.stringify(found));
}

function neighbour(step) {
  const here = location.pathname.match(/^(.*\/alarms\/)(\d+)$/);
  if (!here) return false;
  const order = JSON.parse(sessionStorage.getItem("alarms") ?? "[]");
  const next = order[order.indexOf(here[2]) + step];
  if (order.includes(here[2]) && next) location.assign(here[1] + next);
  else say("No further alarm in the list");
  return true;
}

/* Verdicts: a number asks for the preview of the rows selected, or of the row that keys are on. */

function judge(key) {
  const button = one(`#verdict [data-key="${key}"]`);
  if (!button) return;
  if (one("#list") && !boxes().some((box) => box.checked)) {
    if (at < 0) return say("Choose an alarm first: j, or x to select");
    select(rows()[at], true);
  }
  button.click();
}

function close() {
  const apply = one("#panel [data-cancel]");
  if (apply) {
    one("#panel").replaceChildren();
    say("Preview closed: nothing was learnt");
    if (rows().length) go(at);
  }
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cancel]")) close();
  if (event.target.closest("[data-help]")) one("#help").showModal();
});

const KEYS = {
  j: () => (one("#list") ? go(at + 1) : neighbour(1)),
  k: () => (one("#list") ? go(at - 1) : neighbour(-1)),
  x: () => select(rows()[at]),
  n: () => one("[data-new-kind]")?.focus(),
  u: () => one("[data-undo]")?.click(),
  i: () => one('.side a[href$="/inbox"]')?.click(),
  "?": () => one("#help").showModal(),
  Escape: close,
};

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
  const writes = target.matches('input:not([type="checkbox"]), select, textarea, canvas');
  if (writes && key !== "Escape") {
    if (key === "Enter" && target.matches("[data-new-kind]")) {
      event.preventDefault();
      one('#verdict button[value="new"]').click();
    }
    return;
  }
  const act = KEYS[key] ?? (/^[1-9]$/.test(key) ? () => judge(key) : null);
  if (!act) return;
  if (key !== "Escape") event.preventDefault();
  act();
});

/* After a part of the page has been replaced, and its forms are htmx's. */

document.addEventListener("htmx:afterSettle", (event) => {
  count();
  keepOrder();
  const { target } = event.detail;
  if (target.id === "list" && at >= 0) go(at);
  if (target.id !== "panel") return;
  say(one("h2, b", target)?.textContent ?? "");
  one("[data-focus]", target)?.focus();
});

document.addEventListener("htmx:sendError", () => say("The service does not answer"));
document.addEventListener("DOMContentLoaded", () => {
  count();
  keepOrder();
  const nav = one(".side nav");
  nav.scrollLeft = (one("[aria-current]", nav)?.offsetLeft ?? 0) - 100; // on narrow screens it scrolls
});
