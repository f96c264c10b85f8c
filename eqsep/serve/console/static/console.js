/* The console's keys, selection and words for screen readers; everything else is the server's.
 *
 * Pages work without this file: links open, forms post. It only makes them quick.
 */

const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const one = (selector, from = document) => from.querySelector(selector);
const rows = () => all(".alarms tr[data-id]");
const say = (text, look = "unheard") => Object.assign(one("#say"), { textContent: text, className: look });
let at = -1; // the row that the keys are on
let order = []; // the rows' numbers when they were last gone through
let anchor = null; // the row at which a selection by Shift began
let kept = []; // what was selected in a list that is being replaced
let lent = null; // the box that a key ticked, until the preview is closed or applied
let timer = 0; // until a hint goes

/* What a person has to act on is heard and seen. */

function hint(text) {
  say(text, "notice warn toast");
  clearTimeout(timer);
  timer = setTimeout(() => say(""), 8000);
}

/* Rows: j and k move, x selects. */

function go(to) {
  const found = rows();
  if (!found.length) return;
  at = Math.max(0, Math.min(found.length - 1, to));
  order = found.map((row) => row.dataset.id);
  found.forEach((row, i) => row.classList.toggle("here", i === at));
  one(".open", found[at]).focus();
  found[at].scrollIntoView({ block: "nearest" });
}

/* The row the keys were on, or where it went the next that is left, or the last. */

function stay() {
  const left = rows().map((row) => row.dataset.id);
  const next = order.slice(at).find((id) => left.includes(id));
  go(next === undefined ? left.length - 1 : left.indexOf(next));
}

const boxes = () => all('input[name="id"][type="checkbox"]');

function count() {
  const ticked = boxes().filter((box) => box.checked);
  const n = ticked.length;
  const alarms = ticked.reduce((sum, box) => sum + Number(box.dataset.alarms ?? 1), 0);
  const text = alarms === n ? `${n} selected` : `${n} selected: ${alarms} alarms`;
  for (const place of all("[data-selected]")) place.textContent = n ? text : "None selected";
  const every = one("input[data-all='']");
  if (every) {
    every.checked = n > 0 && n === boxes().length;
    every.indeterminate = n > 0 && n < boxes().length;
  }
}

/* The box of a row, or of the group that it is one of. */

const boxOf = (row) => one('input[name="id"]', row.closest("[data-group]") ?? row);

function select(row, wanted) {
  const box = row && boxOf(row);
  if (!box) return;
  if (box === lent) lent = null;
  box.checked = wanted ?? !box.checked;
  const what = box.ariaLabel.replace(/^Select (.)/, (_, first) => first.toUpperCase());
  say(`${what} ${box.checked ? "selected" : "deselected"}`);
  count();
}

/* Shift and j or k: what lies between the row where it began and the one that keys are on. */

function extend(step) {
  const found = rows();
  const from = at;
  if (anchor === null) {
    go(Math.max(at, 0));
    anchor = at;
    select(found[at], true);
    if (from < 0) return;
  }
  const before = at;
  go(at + step);
  if (at === before) return;
  const back = Math.abs(at - anchor) < Math.abs(before - anchor);
  select(found[back ? before : at], !back);
}

function step(by) {
  anchor = null;
  return one("#list") ? go(at + by) : neighbour(by);
}

document.addEventListener("change", (event) => {
  const { target } = event;
  if (target.matches("[data-go]")) target.form.submit();
  if (target === lent) lent = null;
  if (target.matches("[data-all]")) {
    const within = target.dataset.all ? one(`#${target.dataset.all}`) : target.closest("table");
    for (const box of all('input[name="id"]', within)) box.checked = target.checked;
  }
  if (target.matches('[data-all], input[name="id"]')) count();
});

/* On the page of one alarm, j and k go through the alarms of the list it was opened from. */

function keepOrder() {
  const found = rows().map((row) => one(".open", row).pathname);
  if (one("#list") && found.length) sessionStorage.setItem("alarms", JSON.stringify(found));
  if (location.pathname.endsWith("/inbox")) sessionStorage.setItem("inbox", location.pathname + location.search);
}

/* The inbox as it was left, with its filters; on the inbox itself, without them. */

function inbox() {
  const link = one('.side a[href$="/inbox"]');
  const kept = sessionStorage.getItem("inbox");
  if (!link) return;
  const same = kept?.split("?")[0] === link.pathname && location.pathname !== link.pathname;
  location.assign(same ? kept : link.href);
}

function neighbour(step) {
  const here = location.pathname;
  if (!/\/alarms\/\d+$/.test(here)) return false;
  const order = JSON.parse(sessionStorage.getItem("alarms") ?? "[]");
  const next = order[order.indexOf(here) + step];
  if (order.includes(here) && next) location.assign(next);
  else hint(order.includes(here) ? "No more alarms in the list" : "Open an alarm from the inbox to step through them with j and k");
  return true;
}

/* Verdicts: a number asks for the preview of the rows selected, or of the row that keys are on. */

function release() {
  if (lent) lent.checked = false;
  lent = null;
  count();
}

function take() {
  release();
  if (!one("#list") || boxes().some((box) => box.checked)) return true;
  const row = rows()[at];
  if (!row) {
    hint("Choose an alarm first: press j to move, x to select");
    return false;
  }
  select(row, true);
  lent = boxOf(row);
  return true;
}

function judge(key) {
  const button = one(`#verdict [data-key="${key}"]`);
  if (!button && one("#verdict")) hint(`No kind has key ${key}`);
  if (button && take()) button.click();
}

function name() {
  const field = one("[data-new-kind]");
  if (!field) return;
  take();
  field.focus();
}

/* Enter in a field of the verdicts: press the button next to it, or preview the kind that is typed; else nothing. */

function enter(field) {
  const own = one("[data-assign]", field.closest(".row") ?? field);
  if (own) own.click();
  else if (one("[data-new-kind]").value.trim()) one('#verdict button[value="new"]').click();
  else hint("Nothing chosen: name a kind, or choose a verdict");
}

/* One's own verdict that is the latest; those of others have their buttons. */

function undo() {
  const button = one("[data-undo]");
  if (button) button.click();
  else hint("You have no verdict left to undo among the latest ones");
}

function close() {
  const taken = lent;
  release();
  if (one("#panel [data-cancel]")) {
    one("#panel").replaceChildren();
    say("Preview closed: nothing was learnt");
  } else if (!taken) return;
  if (rows().length) go(at);
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cancel]")) close();
  if (event.target.closest("[data-help]")) one("#help").showModal();
  if (event.target.closest("[data-inbox]")) {
    event.preventDefault();
    inbox();
  }
});

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  J: () => extend(1),
  K: () => extend(-1),
  x: () => select(rows()[at]),
  n: name,
  u: undo,
  i: inbox,
  "?": () => one("#help").showModal(),
  Escape: close,
};

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
  const writes = target.matches('input:not([type="checkbox"]), select, textarea, canvas');
  if (writes && key !== "Escape") {
    if (key === "Enter" && target.matches("#verdict input")) {
      event.preventDefault();
      enter(target);
    }
    return;
  }
  const act = KEYS[key] ?? (/^[1-9]$/.test(key) ? () => judge(key) : null);
  if (!act) return;
  if (key !== "Escape") event.preventDefault();
  act();
});

/* Text that is too long is counted and refused: a browser would cut it without a word. */

document.addEventListener("focusin", ({ target }) => {
  if (!target.matches("[maxlength]")) return;
  target.dataset.most = target.maxLength;
  target.removeAttribute("maxlength");
});

document.addEventListener("input", ({ target }) => {
  const most = Number(target.dataset.most);
  if (!most) return;
  const n = [...target.value].length;
  const text = n > most ? `Too long: ${n} of at most ${most} characters` : `${n} of at most ${most} characters`;
  target.setCustomValidity(n > most ? text : "");
  let counter = one("[data-count]", target.parentElement);
  if (n < 0.9 * most && !counter) return;
  if (!counter) {
    counter = Object.assign(document.createElement("span"), { role: "status" });
    counter.dataset.count = "";
    target.after(counter);
  }
  counter.hidden = n < 0.9 * most;
  counter.className = n > most ? "small over" : "small";
  counter.textContent = text;
});

/* A note that is not saved yet outlives its page, until it is saved or the tab is closed. */

const NOTE = "#verdict textarea[name=note]";
const draft = `note ${location.pathname}`;

document.addEventListener("input", ({ target }) => {
  if (target.matches(NOTE)) sessionStorage.setItem(draft, target.value);
});

document.addEventListener("htmx:afterRequest", ({ detail }) => {
  const { path, parameters } = detail.requestConfig;
  const isSaved = detail.successful && /\/(note|verdicts)$/.test(path);
  if (isSaved && parameters.note?.trim() === sessionStorage.getItem(draft)?.trim()) sessionStorage.removeItem(draft);
});

function restoreNote() {
  const field = one(NOTE);
  const text = sessionStorage.getItem(draft);
  if (!field || text === null || text === field.value) return;
  field.value = text;
  hint("Your note is not saved yet");
}

/* The panel next to the alarms ends where the window does, so that its content never scrolls the page. */

function fit() {
  const aside = one(".columns > .aside");
  aside?.style.setProperty("--top", `${Math.max(0, aside.getBoundingClientRect().top)}px`);
}

addEventListener("scroll", fit, { passive: true });
addEventListener("resize", fit);

/* After a part of the page has been replaced, and its forms are htmx's. */

document.addEventListener("alarms-changed", () => {
  lent = null;
  for (const field of all("#verdict input[data-new-kind], #verdict input[name=note], #verdict input[name=name]")) field.value = "";
  for (const box of all('[data-all], input[name="id"][type="checkbox"]')) box.checked = false;
  count();
});

/* What was selected while the list was fetched again stays so. */

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "list") kept = boxes().filter((box) => box.checked).map((box) => box.value);
});

function selectKept() {
  for (const box of boxes()) if (kept.includes(box.value)) box.checked = true;
  if (lent) lent = boxes().find((box) => box.value === lent.value) ?? null;
  kept = [];
}

document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target.id === "list") selectKept();
  count();
  keepOrder();
  fit();
  const { target } = event.detail;
  if (target.id === "list" && at >= 0) stay();
  if (target.id !== "panel") return;
  say(one("h2, b", target)?.textContent ?? "");
  target.closest(".aside")?.scrollTo(0, 0);
  one("[data-focus]", target)?.focus();
});

document.addEventListener("htmx:sendError", () => hint("The service is not responding: try again in a moment"));
document.addEventListener("DOMContentLoaded", () => {
  count();
  keepOrder();
  restoreNote();
  fit();
  if (matchMedia("(max-width: 760px)").matches) for (const fold of all("[data-folds]:not([data-set])")) fold.open = false;
  const nav = one(".side nav");
  nav.scrollLeft = (one("[aria-current]", nav)?.offsetLeft ?? 0) - 100; // on narrow screens it scrolls
});
