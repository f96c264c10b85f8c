"""Tiles of rows and landmarks, their products, and walks through trees, compiled for a GPU.

Rows and landmarks come by column, (d, n) and (d, m), with n and m multiples of a tile's sides.
"""

import triton
import triton.language as tl

COLUMNS = tl.constexpr(32)  # multiplied at once


@triton.jit
def _squares(xt, ct, rows, landmarks, n, m, d, ROWS: tl.constexpr, LANDMARKS: tl.constexpr):
    """||x - c||² as ||x||² + ||c||² - 2 x.c, with products as exact as single precision."""
    xc = tl.zeros([ROWS, LANDMARKS], tl.float32)
    xx, cc = tl.zeros([ROWS], tl.float32), tl.zeros([LANDMARKS], tl.float32)
    for first in range(0, d, COLUMNS):
        k = first + tl.arange(0, COLUMNS)[:, None]
        x = tl.load(xt + k * n + rows[None, :], mask=k < d, other=0.0)
        c = tl.load(ct + k * m + landmarks[None, :], mask=k < d, other=0.0)
        xc += tl.dot(tl.trans(x), c, input_precision="tf32x3")
        xx += tl.sum(x * x, axis=0)
        cc += tl.sum(c * c, axis=0)
    return tl.maximum(xx[:, None] + cc[None, :] - 2 * xc, 0.0)


@triton.jit
def _kernel(
    xt, ct, rows, landmarks, n, m, d, rate, share, ROWS: tl.constexpr,
    LANDMARKS: tl.constexpr, DEGREE: tl.constexpr, POWERS: tl.constexpr, DOUBLED: tl.constexpr,
):  # fmt: skip
    """2^(-rate Σ_k |x_k - c_k|^DEGREE), the mean over powers of two that add up to POWERS."""
    if DEGREE == 1:
        s = tl.zeros([ROWS, LANDMARKS], tl.float32)
        for k in tl.range(0, d, loop_unroll_factor=4):
            x = tl.load(xt + k * n + rows)
            c = tl.load(ct + k * m + landmarks)
            s += tl.abs(x[:, None] - c[None, :])
    else:
        s = _squares(xt, ct, rows, landmarks, n, m, d, ROWS, LANDMARKS)
    k = tl.exp2(-rate * s)
    total = k * (POWERS & 1)
    for i in tl.static_range(1, DOUBLED):
        k = k * k
        total += k * ((POWERS >> i) & 1)
    return total * share


@triton.jit
def values(
    xt, ct, out, n, m, d, rate, share, ROWS: tl.constexpr,
    LANDMARKS: tl.constexpr, DEGREE: tl.constexpr, POWERS: tl.constexpr, DOUBLED: tl.constexpr,
):  # fmt: skip
    """The kernel's values (n, m), a tile for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    landmarks = tl.program_id(1) * LANDMARKS + tl.arange(0, LANDMARKS)
    k = _kernel(
        xt, ct, rows, landmarks, n, m, d, rate, share, ROWS, LANDMARKS, DEGREE, POWERS, DOUBLED
    )
    tl.store(out + rows[:, None].to(tl.int64) * m + landmarks[None, :], k)


@triton.jit
def digits(
    xt, ct, scale, high, low, n, m, d, rate, share, ROWS: tl.constexpr,
    LANDMARKS: tl.constexpr, DEGREE: tl.constexpr, POWERS: tl.constexpr, DOUBLED: tl.constexpr,
):  # fmt: skip
    """The values times each row's scale as whole numbers 256 h + l; h and l are (m, n)."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    landmarks = tl.program_id(1) * LANDMARKS + tl.arange(0, LANDMARKS)
    k = _kernel(
        xt, ct, rows, landmarks, n, m, d, rate, share, ROWS, LANDMARKS, DEGREE, POWERS, DOUBLED
    )
    whole = (k * tl.load(scale + rows)[:, None] + 0.5).to(tl.int32)
    first = (whole + 128) >> 8
    place = landmarks[None, :].to(tl.int64) * n + rows[:, None]
    tl.store(high + place, first.to(tl.int8))
    tl.store(low + place, (whole - first * 256).to(tl.int8))


@triton.jit
def sums(
    xt, ct, coef, out, n, m, d, rate, share, ROWS: tl.constexpr,
    LANDMARKS: tl.constexpr, DEGREE: tl.constexpr, POWERS: tl.constexpr, DOUBLED: tl.constexpr,
):  # fmt: skip
    """The values times the coefficients, summed over all landmarks, some rows for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float32)
    for first in range(0, m, LANDMARKS):
        landmarks = first + tl.arange(0, LANDMARKS)
        k = _kernel(
            xt, ct, rows, landmarks, n, m, d, rate, share, ROWS, LANDMARKS, DEGREE, POWERS, DOUBLED
        )
        total += tl.sum(k * tl.load(coef + landmarks)[None, :], axis=1)
    tl.store(out + rows, total)


@triton.jit
def least(
    xt, ct, scale, handicap, out, lowest, n, m, d, ROWS: tl.constexpr, LANDMARKS: tl.constexpr
):  # fmt: skip
    """The least distance to all landmarks, scaled, with a handicap; some rows for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    nearest = tl.full([ROWS], float("inf"), tl.float32)
    for first in range(0, m, LANDMARKS):
        landmarks = first + tl.arange(0, LANDMARKS)
        s = tl.zeros([ROWS, LANDMARKS], tl.float32)
        for k in tl.range(0, d, loop_unroll_factor=4):
            x = tl.load(xt + k * n + rows)
            c = tl.load(ct + k * m + landmarks)
            s += tl.abs(x[:, None] - c[None, :])
        scaled = tl.maximum(s * tl.load(scale + landmarks)[None, :], lowest)
        scaled += tl.load(handicap + landmarks)[None, :]
        nearest = tl.minimum(nearest, tl.min(scaled, axis=1))
    tl.store(out + rows, nearest)


@triton.jit
def squares(a, left, right, out, m, n, SIDE: tl.constexpr, ROWS: tl.constexpr):
    """Σ_n a_in a_jn of eight bits in 32, (m, n) -> (m, m), a tile of the named pair a program."""
    i = tl.load(left + tl.program_id(0)) * SIDE + tl.arange(0, SIDE)
    j = tl.load(right + tl.program_id(0)) * SIDE + tl.arange(0, SIDE)
    rows = tl.arange(0, ROWS)
    at_i = a + i[:, None].to(tl.int64) * n + rows[None, :]
    at_j = a + j[None, :].to(tl.int64) * n + rows[:, None]
    total = tl.zeros([SIDE, SIDE], tl.int32)
    for _ in range(0, n, ROWS):
        total = tl.dot(tl.load(at_i), tl.load(at_j), total, out_dtype=tl.int32)
        at_i += ROWS
        at_j += ROWS
    tl.store(out + i[:, None] * m + j[None, :], total)


@triton.jit
def votes(xt, root, depth, column, limit, left, right, vote, out, n, n_trees, ROWS: tl.constexpr):
    """The sum over trees of the vote of a row's leaf, some rows for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float64)
    for t in range(0, n_trees):
        node = tl.zeros([ROWS], tl.int32) + tl.load(root + t)
        steps = tl.load(depth + t)
        for _ in range(0, steps):
            x = tl.load(xt + tl.load(column + node).to(tl.int64) * n + rows)
            goes_left = x <= tl.load(limit + node)
            node = tl.where(goes_left, tl.load(left + node), tl.load(right + node))
        total += tl.load(vote + node)
    tl.store(out + rows, total)
