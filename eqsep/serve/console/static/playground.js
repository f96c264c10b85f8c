/* The playground: drag points in the plane and see the separator follow. */

import { counts, kernelSeparator, linearSeparator, SCENES } from "./separators.js";

const WIDE = 2;
const HIGH = 1.5; // half of the plane's width and height
const GRID = [120, 90];
const KINDS = ["normal", "seen", "unlearnt"];
const NAMES = { normal: "normal", seen: "seen anomaly", unlearnt: "unseen anomaly" };
const SHADES = { normal: "#2f6fd0", seen: "#e07b1a", unlearnt: "#b0266e" };

const canvas = document.getElementById("plane");
const form = document.getElementById("controls");
const status = document.getElementById("say");
const state = { points: SCENES.groups(), at: 0, dragged: false };

const setting = (name) => form.elements[name].value;
const toPixel = (x, y) => [((x + WIDE) / (2 * WIDE)) * canvas.width, ((HIGH - y) / (2 * HIGH)) * canvas.height];
const within = (value, most) => Math.max(-most, Math.min(most, value));

function fitted() {
  const equality = setting("rule") === "equality";
  const alpha = 10 ** Number(setting("ridge"));
  if (setting("space") === "line") return linearSeparator(state.points, { equality, alpha, margin: setting("margin") });
  const width = 2 ** Number(setting("bandwidth"));
  const kernel = setting("kernel");
  const gamma = kernel === "rbf" ? 1 / (2 * width * width) : 1 / width;
  return kernelSeparator(state.points, { kernel, gamma, alpha, equality });
}

/** The scores at the corners of a grid over the plane. */
function field(separator) {
  const [columns, rows] = GRID;
  const values = new Float64Array(columns * rows);
  for (let j = 0; j < rows; j++) {
    const y = HIGH - (2 * HIGH * j) / (rows - 1);
    for (let i = 0; i < columns; i++) values[j * columns + i] = separator.score(-WIDE + (2 * WIDE * i) / (columns - 1), y);
  }
  return values;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Blue where a point would be normal, the stronger the surer; orange where it would not. */
function shade(context, values) {
  const [columns, rows] = GRID;
  const image = new ImageData(columns, rows);
  values.forEach((score, i) => {
    const inside = score <= 0.5;
    const sure = Math.min(1, Math.abs(score - 0.5) * 2);
    const [r, g, b] = inside ? [47, 111, 208] : [224, 123, 26];
    image.data.set([r, g, b, 30 + (inside ? 90 : 55) * sure], 4 * i);
  });
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}

/** The line on which the score is the threshold: one piece in each cell that it crosses. */
function contour(context, values, level) {
  const [columns, rows] = GRID;
  const place = (i, j) => [(i / (columns - 1)) * canvas.width, (j / (rows - 1)) * canvas.height];
  context.beginPath();
  for (let j = 0; j + 1 < rows; j++) {
    for (let i = 0; i + 1 < columns; i++) {
      const cell = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
      const cuts = [];
      cell.forEach(([a, b], side) => {
        const [c, d] = cell[(side + 1) % 4];
        const here = values[b * columns + a] - level;
        const there = values[d * columns + c] - level;
        if (here > 0 === there > 0) return;
        const share = here / (here - there);
        cuts.push(place(a + share * (c - a), b + share * (d - b)));
      });
      for (let n = 0; n + 1 < cuts.length; n += 2) {
        context.moveTo(...cuts[n]);
        context.lineTo(...cuts[n + 1]);
      }
    }
  }
  context.stroke();
}

/** The line w·x + b = 0 itself. */
function hyperplane(context, [w1, w2, b]) {
  const size = Math.hypot(w1, w2);
  if (!(size > 1e-9)) return;
  const [nx, ny, shift] = [w1 / size, w2 / size, b / size];
  context.beginPath();
  context.moveTo(...toPixel(-nx * shift - 9 * ny, -ny * shift + 9 * nx));
  context.lineTo(...toPixel(-nx * shift + 9 * ny, -ny * shift - 9 * nx));
  context.stroke();
}

function mark(context, point, chosen, ratio) {
  const [x, y] = toPixel(point.x, point.y);
  const r = 5.5 * ratio;
  context.beginPath();
  if (point.kind === "normal") context.arc(x, y, r, 0, 2 * Math.PI);
  else if (point.kind === "seen") context.rect(x - r, y - r, 2 * r, 2 * r);
  else {
    context.moveTo(x, y - 1.2 * r);
    context.lineTo(x + 1.1 * r, y + r);
    context.lineTo(x - 1.1 * r, y + r);
    context.closePath();
  }
  context.fillStyle = SHADES[point.kind];
  context.fill();
  context.strokeStyle = colour("--surface");
  context.lineWidth = 1.5 * ratio;
  context.stroke();
  if (!chosen) return;
  context.beginPath();
  context.arc(x, y, 2 * r, 0, 2 * Math.PI);
  context.strokeStyle = colour("--text");
  context.lineWidth = 2 * ratio;
  context.stroke();
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const box = canvas.getBoundingClientRect();
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const context = canvas.getContext("2d");
  const separator = fitted();
  const values = field(separator);
  context.fillStyle = colour("--surface");
  context.fillRect(0, 0, canvas.width, canvas.height);
  shade(context, values);
  context.strokeStyle = colour("--text");
  context.lineWidth = 1.6 * ratio;
  contour(context, values, separator.threshold);
  if (separator.w && separator.equality) {
    context.setLineDash([6 * ratio, 5 * ratio]);
    hyperplane(context, separator.w);
    context.setLineDash([]);
  }
  const focused = document.activeElement === canvas;
  state.points.forEach((point, i) => mark(context, point, focused && i === state.at, ratio));
  tell(separator);
}

function tell(separator) {
  const found = counts(state.points, separator);
  const part = (kind) => `${found[kind][0]} of ${found[kind][1]}`;
  document.getElementById("found-normal").textContent = part("normal");
  document.getElementById("found-seen").textContent = part("seen");
  document.getElementById("found-unlearnt").textContent = part("unlearnt");
  const line = setting("space") === "line";
  for (const item of form.querySelectorAll("[data-for]")) item.hidden = (item.dataset.for === "line") !== line;
  const open = Boolean(separator.w); // a line has no end, nor has a side of it
  document.getElementById("far").textContent = open ? "normal in some directions" : "anomalous";
  document.getElementById("bandwidth-is").textContent = (2 ** Number(setting("bandwidth"))).toFixed(2);
  document.getElementById("ridge-is").textContent = (10 ** Number(setting("ridge"))).toPrecision(2);
}

function say(text) {
  status.textContent = text;
}

function describe(i) {
  const point = state.points[i];
  return `point ${i + 1} of ${state.points.length}, ${NAMES[point.kind]}, at ${point.x.toFixed(2)}, ${point.y.toFixed(2)}`;
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [
    within(-WIDE + (2 * WIDE * (event.clientX - box.left)) / box.width, WIDE),
    within(HIGH - (2 * HIGH * (event.clientY - box.top)) / box.height, HIGH),
  ];
}

function nearest(x, y) {
  const reach = (14 / canvas.getBoundingClientRect().width) * 2 * WIDE;
  const away = state.points.map((point) => Math.hypot(point.x - x, point.y - y));
  const i = away.indexOf(Math.min(...away));
  return i >= 0 && away[i] < reach ? i : -1;
}

function add(x, y) {
  state.points.push({ x, y, kind: setting("adds") });
  state.at = state.points.length - 1;
}

function remove(i) {
  if (state.points.length < 2) return;
  state.points.splice(i, 1);
  state.at = Math.min(i, state.points.length - 1);
}

canvas.addEventListener("pointerdown", (event) => {
  const [x, y] = place(event);
  const i = nearest(x, y);
  if (i >= 0 && event.shiftKey) remove(i);
  else if (i >= 0) state.at = i;
  else add(x, y);
  state.dragged = !event.shiftKey;
  canvas.setPointerCapture(event.pointerId);
  canvas.focus();
  draw();
});

canvas.addEventListener("pointermove", (event) => {
  if (!state.dragged) return;
  [state.points[state.at].x, state.points[state.at].y] = place(event);
  requestAnimationFrame(draw);
});

canvas.addEventListener("pointerup", () => {
  state.dragged = false;
});

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

canvas.addEventListener("keydown", (event) => {
  const point = state.points[state.at];
  const n = state.points.length;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in MOVES) {
    const step = event.shiftKey ? 0.2 : 0.05;
    point.x = within(point.x + step * MOVES[event.key][0], WIDE);
    point.y = within(point.y + step * MOVES[event.key][1], HIGH);
  } else if (event.key === "n") state.at = (state.at + 1) % n;
  else if (event.key === "p") state.at = (state.at + n - 1) % n;
  else if (event.key === "a") add(0, 0);
  else if (event.key === "t") point.kind = KINDS[(KINDS.indexOf(point.kind) + 1) % KINDS.length];
  else if (event.key === "Delete" || event.key === "Backspace") remove(state.at);
  else return;
  event.preventDefault();
  say(describe(state.at));
  draw();
});

canvas.addEventListener("focus", draw);
canvas.addEventListener("blur", draw);
form.addEventListener("input", draw);
form.addEventListener("submit", (event) => event.preventDefault());
for (const button of form.querySelectorAll("[data-scene]")) {
  button.addEventListener("click", () => {
    state.points = SCENES[button.dataset.scene]();
    state.at = 0;
    form.elements.space.value = button.dataset.space;
    if (button.dataset.bandwidth) form.elements.bandwidth.value = button.dataset.bandwidth;
    say(`${button.textContent.trim()}: ${state.points.length} points`);
    draw();
  });
}
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
