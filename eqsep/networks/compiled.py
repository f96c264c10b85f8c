"""Adam's steps of an epoch as one compiled loop: the layers, their slopes, the criterion.

Each member is on its own: its parameters are a row of `State.parameters`. A layer takes x to y and,
backwards, the slopes in y to those in its parameters and in x. What is compiled here is what
`eqsep.networks.layers`, the heads and the losses say, in single precision; `eqsep.networks.steps`
reads it off a network.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from eqsep.engine.loops import compiled

LINEAR, RADIAL, NORM, BUMP, LEAKY, DISTANCE = range(6)  # layers
LOGISTIC, SQUARED, RECONSTRUCTION, ATTRACTION = range(4)  # criteria
EXPONENTIAL, SIGMOID = range(2)  # heads
_ANY_ORDER = frozenset({"reassoc", "contract", "nsz"})  # of sums: several numbers at a time
BETAS, EPS = (0.9, 0.999), 1e-8  # Adam's own
_TINY = np.float32(1e-30)  # below it, moments are zero: a core is slow with smaller numbers
_LOUD = np.float32(60)  # exp of less than minus this is zero, likewise
_FLOOR = float(np.finfo(np.float32).smallest_normal) ** 0.75  # of 1 - p, whose inverse is finite


class Layers(NamedTuple):
    """What the layers are, as numbers.

    `ops` (n, 6) has for each: which, d_in, d_out, where its parameters begin, where its second ones
    do (-1 without), and where its statistics do. `constants` are (n, 2). `moves` and `decay` are
    (p,): 1 if a parameter is learnt, else 0, and twice its L2 penalty.
    """

    ops: Any
    constants: Any
    moves: Any
    decay: Any


class State(NamedTuple):
    """What an epoch changes: parameters, Adam's two moments and statistics, a row a member."""

    parameters: Any
    first: Any
    second: Any
    statistics: Any


class Task(NamedTuple):
    """The rows (n, d), their targets and weights (n,), the criterion, its head, its two numbers."""

    X: Any
    target: Any
    weight: Any
    criterion: int
    head: int
    numbers: Any


class Course(NamedTuple):
    """The rows in order, how many are a batch, the rate of each step, and the steps before."""

    order: Any
    batch: int
    rates: Any
    done: int


class Work(NamedTuple):
    """Room for a batch: values and slopes by layer, where each begins, slopes in parameters."""

    values: Any
    slopes: Any
    starts: Any
    own: Any


@register_jitable
def _linear(x: Any, W: Any, bias: Any, y: Any) -> None:
    np.dot(x, W, y)
    if len(bias):
        for i in range(len(y)):
            for j in range(len(bias)):
                y[i, j] += bias[j]


@register_jitable
def _linear_back(x: Any, W: Any, sy: Any, sW: Any, sbias: Any, sx: Any) -> None:
    np.dot(x.T, sy, sW)
    sbias[:] = 0
    for i in range(len(sy) if len(sbias) else 0):
        for j in range(len(sbias)):
            sbias[j] += sy[i, j]
    if len(sx):
        np.dot(sy, W.T, sx)


@register_jitable
def _radial(x: Any, C: Any, gamma: Any, y: Any) -> None:
    """exp(-gamma r²); r itself where gamma is 0."""
    np.dot(x, C, y)
    own = np.zeros(C.shape[1], dtype=C.dtype)
    for i in range(len(C)):
        for j in range(len(own)):
            own[j] += C[i, j] ** 2
    for i in range(len(x)):
        size = np.float32(0)
        for j in range(x.shape[1]):
            size += x[i, j] ** 2
        for j in range(len(own)):
            square = size - 2 * y[i, j] + own[j]
            square = np.float32(1e-12) + (np.float32(0) if square < 0 else square)
            y[i, j] = _exponential(gamma * square) if gamma > 0 else math.sqrt(square)


@register_jitable
def _radial_back(x: Any, C: Any, gamma: Any, y: Any, sy: Any, sC: Any) -> None:
    """`sy` becomes the slope in r²."""
    columns = np.zeros(C.shape[1], dtype=C.dtype)
    for i in range(len(y)):
        for j in range(len(columns)):
            sy[i, j] *= -gamma * y[i, j] if gamma > 0 else np.float32(0.5) / y[i, j]
            columns[j] += sy[i, j]
    np.dot(x.T, sy, sC)
    for i in range(len(C)):
        for j in range(len(columns)):
            sC[i, j] = 2 * (C[i, j] * columns[j] - sC[i, j])


@register_jitable
def _radial_inwards(x: Any, C: Any, squares: Any, sx: Any) -> None:
    """From the slopes in r² to those in x."""
    np.dot(squares, C.T, sx)
    for i in range(len(x)):
        total = np.float32(0)
        for j in range(squares.shape[1]):
            total += squares[i, j]
        for j in range(x.shape[1]):
            sx[i, j] = 2 * (x[i, j] * total - sx[i, j])


@register_jitable
def _moments(x: Any, eps: Any, mean: Any, inverse: Any) -> None:
    """Of the columns of a batch: the mean, and 1 / sqrt(variance + eps)."""
    mean[:] = 0
    inverse[:] = 0
    for i in range(len(x)):
        for j in range(len(mean)):
            mean[j] += x[i, j]
    for j in range(len(mean)):
        mean[j] /= len(x)
    for i in range(len(x)):
        for j in range(len(mean)):
            inverse[j] += (x[i, j] - mean[j]) ** 2
    for j in range(len(mean)):
        inverse[j] = 1 / math.sqrt(inverse[j] / len(x) + eps)


@register_jitable
def _norm(x: Any, scale: Any, shift: Any, constants: Any, statistics: Any, y: Any) -> None:
    """Batch normalisation; `statistics` are the running mean and variance, one after the other."""
    d, (eps, kept) = len(scale), constants
    mean, inverse = np.empty(d, dtype=x.dtype), np.empty(d, dtype=x.dtype)
    _moments(x, eps, mean, inverse)
    for j in range(d):
        variance = 1 / inverse[j] ** 2 - eps
        statistics[j] += (1 - kept) * (mean[j] - statistics[j])
        statistics[d + j] += (1 - kept) * (variance - statistics[d + j])
    for i in range(len(x)):
        for j in range(d):
            y[i, j] = (x[i, j] - mean[j]) * inverse[j] * scale[j] + shift[j]


@register_jitable
def _norm_back(x: Any, scale: Any, eps: Any, sy: Any, own: Any, sx: Any) -> None:
    """`own` are the slopes in scale and shift, one after the other."""
    d, n = len(scale), len(x)
    mean, inverse = np.empty(d, dtype=x.dtype), np.empty(d, dtype=x.dtype)
    _moments(x, eps, mean, inverse)
    own[:] = 0
    for i in range(n):
        for j in range(d):
            own[j] += sy[i, j] * (x[i, j] - mean[j]) * inverse[j]
            own[d + j] += sy[i, j]
    for i in range(n):
        for j in range(d):
            along = own[d + j] + (x[i, j] - mean[j]) * inverse[j] * own[j]
            sx[i, j] = scale[j] * inverse[j] * (sy[i, j] - along / n)


@register_jitable
def _exponential(x: Any) -> Any:
    """exp(-x)."""
    return np.float32(0) if x > _LOUD else np.float32(math.exp(-x))


@register_jitable
def _bump(x: Any, sigma: Any, mu: Any, y: Any) -> None:
    factor = np.float32(0.5) / sigma**2
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = _exponential(factor * (x[i, j] - mu) ** 2)


@register_jitable
def _bump_back(x: Any, sigma: Any, mu: Any, y: Any, sy: Any, sx: Any) -> Any:
    """The slope in sigma: a bump is a function of (x - mu) / sigma."""
    total, factor = np.float32(0), 1 / sigma**2
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            u = x[i, j] - mu
            sx[i, j] = -sy[i, j] * y[i, j] * u * factor
            total -= sx[i, j] * u
    return total / sigma


@register_jitable
def _leaky(x: Any, leak: Any, slopes: Any, y: Any) -> None:
    """`slopes` where x is positive, times the leak elsewhere; x itself forwards."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = slopes[i, j] if x[i, j] > 0 else leak * slopes[i, j]


@register_jitable
def _distance(x: Any, centre: Any, guard: Any, y: Any) -> None:
    for i in range(len(x)):
        square = guard
        for j in range(x.shape[1]):
            square += (x[i, j] - centre[j]) ** 2
        y[i, 0] = math.sqrt(square)


@register_jitable
def _distance_back(x: Any, centre: Any, y: Any, sy: Any, sx: Any) -> None:
    for i in range(len(x)):
        steep = sy[i, 0] / y[i, 0]
        for j in range(x.shape[1]):
            sx[i, j] = steep * (x[i, j] - centre[j])


@register_jitable
def _membership(z: float, t: float, task: Task) -> Any:
    """The loss of head(z) against the target t, and its slope in z."""
    if task.head == SIGMOID:
        p, log_slope = 0.5 * (1 + math.tanh(0.5 * z)), 0.5 * (1 - math.tanh(0.5 * z))
        log1m = -math.log1p(math.exp(-abs(z))) - max(z, 0.0)
        log_p, log1m_slope = log1m + z, -p
    else:
        a, u = task.numbers[0], z - task.numbers[1]
        log_p, log_slope = -a * u * u, -2 * a * u
        p, rest = math.exp(log_p), -math.expm1(log_p)
        rest = _FLOOR if rest < _FLOOR else rest
        log1m, log1m_slope = math.log(rest), -log_slope * p / rest
    if task.criterion == LOGISTIC:
        return -t * log_p - (1 - t) * log1m, -t * log_slope - (1 - t) * log1m_slope
    return (p - t) ** 2, 2 * (p - t) * log_slope * p


@register_jitable
def _judged(task: Task, rows: Any, y: Any, slopes: Any) -> float:
    """The summed loss of a batch; `slopes` become those of its mean."""
    total, n, d = 0.0, len(rows), y.shape[1]
    for i in range(n):
        row, share = rows[i], task.weight[rows[i]] / n
        if task.criterion == RECONSTRUCTION:
            for j in range(d):
                miss = y[i, j] - task.X[row, j]
                total += miss**2 / d
                slopes[i, j] = share * 2 * miss / d
            continue
        if task.criterion == ATTRACTION:
            far = task.target[row] > 0
            loss = 1 / y[i, 0] if far else y[i, 0]
            slope = -(loss**2) if far else np.float32(1)
        else:
            loss, slope = _membership(y[i, 0], task.target[row], task)
        total += task.weight[row] * loss
        slopes[i, 0] = share * slope
    return total


@register_jitable
def _adam(layers: Layers, state: State, m: int, slopes: Any, rate: float, step: int) -> None:
    """One step of member `m`; `step` counts from 1."""
    b1, b2 = np.float32(BETAS[0]), np.float32(BETAS[1])
    root = math.sqrt(1 - BETAS[1] ** step)
    size, eps = np.float32(rate * root / (1 - BETAS[0] ** step)), np.float32(EPS * root)
    p, first, second = state.parameters[m], state.first[m], state.second[m]
    for i in range(len(p)):
        s = slopes[i] + layers.decay[i] * p[i]
        f = b1 * first[i] + (1 - b1) * s
        v = b2 * second[i] + (1 - b2) * s * s
        first[i] = np.float32(0) if abs(f) < _TINY else f
        second[i] = np.float32(0) if v < _TINY else v
        p[i] -= layers.moves[i] * size * first[i] / (np.sqrt(second[i]) + eps)


@register_jitable
def _forward(layers: Layers, p: Any, statistics: Any, work: Work, n: int) -> None:
    values, starts = work.values, work.starts
    for o in range(len(layers.ops)):
        which, d_in, d_out, at, more, seat = layers.ops[o]
        constants = layers.constants[o]
        x = values[starts[o] : starts[o] + n * d_in].reshape(n, d_in)
        y = values[starts[o + 1] : starts[o + 1] + n * d_out].reshape(n, d_out)
        if which == LINEAR:
            bias = p[more : more + d_out] if more >= 0 else p[:0]
            _linear(x, p[at : at + d_in * d_out].reshape(d_in, d_out), bias, y)
        elif which == RADIAL:
            _radial(x, p[at : at + d_in * d_out].reshape(d_in, d_out), constants[0], y)
        elif which == NORM:
            scale, shift = p[at : at + d_in], p[more : more + d_in]
            _norm(x, scale, shift, constants, statistics[seat : seat + 2 * d_in], y)
        elif which == BUMP:
            _bump(x, p[at], constants[0], y)
        elif which == LEAKY:
            _leaky(x, constants[0], x, y)
        else:
            _distance(x, statistics[seat : seat + d_in], constants[0], y)


@register_jitable
def _backward(layers: Layers, p: Any, statistics: Any, work: Work, n: int) -> None:
    """From the slopes in the last values to those in all parameters."""
    values, slopes, starts, own = work
    for o in range(len(layers.ops) - 1, -1, -1):
        which, d_in, d_out, at, more, seat = layers.ops[o]
        constants = layers.constants[o]
        here, there = starts[o], starts[o + 1]
        x = values[here : here + n * d_in].reshape(n, d_in)
        y = values[there : there + n * d_out].reshape(n, d_out)
        sy = slopes[there : there + n * d_out].reshape(n, d_out)
        rows = n if o > 0 else 0  # the slopes in the rows themselves are not needed
        sx = slopes[here : here + rows * d_in].reshape(rows, d_in)
        if which == LINEAR:
            end = at + d_in * d_out
            sbias = own[more : more + d_out] if more >= 0 else own[:0]
            W, sW = p[at:end].reshape(d_in, d_out), own[at:end].reshape(d_in, d_out)
            _linear_back(x, W, sy, sW, sbias, sx)
        elif which == RADIAL:
            end = at + d_in * d_out
            C, sC = p[at:end].reshape(d_in, d_out), own[at:end].reshape(d_in, d_out)
            _radial_back(x, C, constants[0], y, sy, sC)
            if rows:
                _radial_inwards(x, C, sy, sx)
        elif which == NORM:
            scale = p[at : at + d_in]
            _norm_back(x, scale, constants[0], sy, own[at : at + 2 * d_in], sx)
        elif which == BUMP:
            own[at] = _bump_back(x, p[at], constants[0], y, sy, sx)
        elif which == LEAKY:
            _leaky(x, constants[0], sy, sx)
        else:
            _distance_back(x, statistics[seat : seat + d_in], y, sy, sx)


@compiled(fastmath=_ANY_ORDER)
def epoch(layers: Layers, state: State, task: Task, course: Course, losses: Any) -> None:
    """A step for each batch and member; adds each member's losses to `losses` (k,)."""
    n_ops, d, batch = len(layers.ops), task.X.shape[1], course.batch
    starts = np.zeros(n_ops + 2, dtype=np.int64)
    starts[1] = batch * d
    for o in range(n_ops):
        starts[o + 2] = starts[o + 1] + batch * layers.ops[o, 2]
    values, slopes = np.empty(starts[-1], np.float32), np.empty(starts[-1], np.float32)
    work = Work(values, slopes, starts, np.zeros(state.parameters.shape[1], dtype=np.float32))
    last, d_out = starts[n_ops], layers.ops[n_ops - 1, 2]
    for m in range(len(state.parameters)):
        p, statistics = state.parameters[m], state.statistics[m]
        for s in range(len(course.rates)):
            rows = course.order[s * batch : (s + 1) * batch]
            n = len(rows)
            for i in range(n):
                values[i * d : (i + 1) * d] = task.X[rows[i]]
            _forward(layers, p, statistics, work, n)
            y = values[last : last + n * d_out].reshape(n, d_out)
            sy = slopes[last : last + n * d_out].reshape(n, d_out)
            losses[m] += _judged(task, rows, y, sy)
            _backward(layers, p, statistics, work, n)
            _adam(layers, state, m, work.own, course.rates[s], course.done + s + 1)
