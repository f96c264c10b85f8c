/* The separators of the playground: pure functions from points in the plane to a score.
 *
 * A point is {x, y, kind}; kind is "normal", "seen" (a labelled anomaly) or "unlearnt" (shown, never
 * learnt). A separator is {score(x, y), threshold, ...}: above its threshold a point is anomalous.
 */

const targets = (points) => points.map((point) => (point.kind === "normal" ? 1 : 0));

/** The points that are learnt. */
export const learnt = (points) => points.filter((point) => point.kind !== "unlearnt");

/** Solve A x = b for a positive definite A (rows of numbers) by Cholesky; null where it is not. */
export function solve(A, b) {
  const n = b.length;
  const L = A.map((row) => row.slice());
  for (let j = 0; j < n; j++) {
    for (let k = 0; k < j; k++) for (let i = j; i < n; i++) L[i][j] -= L[i][k] * L[j][k];
    if (!(L[j][j] > 0)) return null;
    const pivot = Math.sqrt(L[j][j]);
    for (let i = j; i < n; i++) L[i][j] /= pivot;
  }
  const x = b.slice();
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= L[i][k] * x[k];
    x[i] /= L[i][i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= L[k][i] * x[k];
    x[i] /= L[i][i];
  }
  return x;
}

export const KERNELS = {
  rbf: (gamma) => (dx, dy) => Math.exp(-gamma * (dx * dx + dy * dy)),
  exponential: (gamma) => (dx, dy) => Math.exp(-gamma * Math.hypot(dx, dy)),
};

/** f(x) = Σ a_j k(x, c_j) over the learnt points, (K² + alpha I) a = K t: normal where f = 1.
 *
 * The equality score is |1 - f|, closed by construction; the halfspace's is 1 - f.
 */
export function kernelSeparator(points, { kernel = "rbf", gamma = 4, alpha = 0.1, equality = true } = {}) {
  const rows = learnt(points);
  const k = KERNELS[kernel](gamma);
  const K = rows.map((p) => rows.map((q) => k(p.x - q.x, p.y - q.y)));
  const t = targets(rows);
  const gram = K.map((row, i) => K.map((other, j) => row.reduce((sum, value, m) => sum + value * other[m], 0) + (i === j ? alpha : 0)));
  const moment = K.map((row) => row.reduce((sum, value, m) => sum + value * t[m], 0));
  const coef = solve(gram, moment) ?? moment.map(() => 0);
  const value = (x, y) => rows.reduce((sum, p, j) => sum + coef[j] * k(x - p.x, y - p.y), 0);
  const score = equality ? (x, y) => Math.abs(1 - value(x, y)) : (x, y) => 1 - value(x, y);
  return { score, value, coef, threshold: 0.5 };
}

const HEADS = {
  bump: { value: (z) => Math.exp(-0.5 * z * z), slope: (z) => -z * Math.exp(-0.5 * z * z) },
  sigmoid: {
    value: (z) => 1 / (1 + Math.exp(-z)),
    slope: (z) => { const s = 1 / (1 + Math.exp(-z)); return s * (1 - s); },
  },
};

/** Levenberg and Marquardt: w of head(w·(x, y, 1)) ≈ target, with a penalty on its slopes. */
function fitHead(rows, goal, head, alpha, start) {
  const loss = (w) =>
    rows.reduce((sum, p, i) => sum + (head.value(w[0] * p.x + w[1] * p.y + w[2]) - goal[i]) ** 2, 0) +
    alpha * (w[0] ** 2 + w[1] ** 2);
  let w = start;
  let best = loss(w);
  let damping = 0.01;
  for (let step = 0; step < 60; step++) {
    const A = [[alpha, 0, 0], [0, alpha, 0], [0, 0, 0]];
    const g = [alpha * w[0], alpha * w[1], 0];
    rows.forEach((p, i) => {
      const features = [p.x, p.y, 1];
      const z = w[0] * p.x + w[1] * p.y + w[2];
      const slope = head.slope(z);
      const residual = head.value(z) - goal[i];
      for (let a = 0; a < 3; a++) {
        g[a] += residual * slope * features[a];
        for (let b = 0; b < 3; b++) A[a][b] += slope * slope * features[a] * features[b];
      }
    });
    const damped = A.map((row, a) => row.map((value, b) => (a === b ? value * (1 + damping) + damping * 1e-3 : value)));
    const move = solve(damped, g);
    const next = move && w.map((value, a) => value - move[a]);
    const after = next ? loss(next) : Infinity;
    if (after < best) {
      const gain = best - after;
      [w, best, damping] = [next, after, damping / 4];
      if (gain < 1e-10) break;
    } else if (damping > 1e8) break;
    else damping *= 6;
  }
  return { w, loss: best };
}

/** Where to begin: lines of eight directions at three places. */
function starts(scale) {
  const found = [];
  for (let turn = 0; turn < 8; turn++) {
    const angle = (Math.PI * turn) / 8 + 0.1;
    for (const shift of [-0.7, 0, 0.7]) found.push([scale * Math.cos(angle), scale * Math.sin(angle), scale * shift]);
  }
  return found;
}

/** One neuron: is the point on the line (bump), or on which side of it (sigmoid)?
 *
 * margin is the class in the margin: "normal", "seen", or "auto" for whichever fits better.
 */
export function linearSeparator(points, { equality = true, alpha = 0.01, margin = "auto" } = {}) {
  const rows = learnt(points);
  const head = equality ? HEADS.bump : HEADS.sigmoid;
  const classes = !equality ? ["normal"] : margin === "auto" ? ["normal", "seen"] : [margin];
  const fits = classes.flatMap((inside) => {
    const goal = targets(rows).map((t) => (inside === "normal" ? t : 1 - t));
    return starts(equality ? 2 : 1).map((start) => ({ inside, ...fitHead(rows, goal, head, alpha, start) }));
  });
  const best = fits.reduce((a, b) => (b.loss < a.loss ? b : a));
  const [w1, w2, b] = best.w;
  const membership = (x, y) => head.value(w1 * x + w2 * y + b);
  const score = best.inside === "normal" ? (x, y) => 1 - membership(x, y) : membership;
  return { score, w: best.w, loss: best.loss, inside: best.inside, threshold: 0.5, equality };
}

/** How many points of each kind are called anomalous, and how many there are. */
export function counts(points, separator) {
  const found = { normal: [0, 0], seen: [0, 0], unlearnt: [0, 0] };
  for (const point of points) {
    found[point.kind][1] += 1;
    if (separator.score(point.x, point.y) > separator.threshold) found[point.kind][0] += 1;
  }
  return found;
}

const ring = (n, radius, kind, { cx = 0, cy = 0, from = 0, to = 2 * Math.PI } = {}) =>
  Array.from({ length: n }, (_, i) => {
    const angle = from + ((to - from) * i) / n;
    const wobble = 1 + 0.06 * Math.sin(7 * angle + n);
    return { x: cx + radius * wobble * Math.cos(angle), y: cy + radius * wobble * Math.sin(angle), kind };
  });

const cluster = (n, cx, cy, spread, kind) =>
  Array.from({ length: n }, (_, i) => {
    const angle = 2.4 * i; // the golden angle spreads points evenly
    const radius = spread * Math.sqrt((i + 0.5) / n);
    return { x: cx + radius * Math.cos(angle), y: cy + radius * Math.sin(angle), kind };
  });

const corners = (normal) =>
  [[-0.8, -0.8], [-0.8, 0.8], [0.8, -0.8], [0.8, 0.8]].map(([x, y], i) => ({ x, y, kind: normal.includes(i) ? "normal" : "seen" }));

/** Points to begin with, by name. */
export const SCENES = {
  groups: () => [
    ...cluster(22, 0, 0, 0.55, "normal"),
    ...cluster(9, 1.3, 0.5, 0.25, "seen"),
    ...cluster(6, -1.3, -0.3, 0.22, "unlearnt"),
    ...cluster(6, 0.2, -1.1, 0.2, "unlearnt"),
  ],
  circles: () => [...ring(18, 0.7, "normal"), ...ring(20, 1.3, "seen"), ...ring(8, 0.25, "unlearnt")],
  xor: () => corners([0, 3]),
  and: () => corners([0, 1, 2]),
};
