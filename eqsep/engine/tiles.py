"""Tiles of rows and landmarks, compiled by Triton for a GPU. `fused` says when.

Rows and landmarks come by column, (d, n) and (d, m), with n and m multiples of a tile's sides, so
that neighbours are read together and nothing is masked.
"""

import triton
import triton.language as tl


@triton.jit
def _kernel(xt, ct, rows, landmarks, n, m, d, rate, ROWS: tl.constexpr, LANDMARKS: tl.constexpr):
    """2^(-rate Σ_k |x_k - c_k|) for the rows and landmarks of a tile."""
    s = tl.zeros([ROWS, LANDMARKS], tl.float32)
    for k in tl.range(0, d, loop_unroll_factor=4):
        x = tl.load(xt + k * n + rows)
        c = tl.load(ct + k * m + landmarks)
        s += tl.abs(x[:, None] - c[None, :])
    return tl.exp2(-rate * s)


@triton.jit
def values(xt, ct, out, n, m, d, rate, ROWS: tl.constexpr, LANDMARKS: tl.constexpr):
    """The kernel's values (n, m), a tile for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    landmarks = tl.program_id(1) * LANDMARKS + tl.arange(0, LANDMARKS)
    k = _kernel(xt, ct, rows, landmarks, n, m, d, rate, ROWS, LANDMARKS)
    tl.store(out + rows[:, None].to(tl.int64) * m + landmarks[None, :], k)


@triton.jit
def digits(xt, ct, scale, high, low, n, m, d, rate, ROWS: tl.constexpr, LANDMARKS: tl.constexpr):
    """The values times each row's scale as whole numbers 256 h + l; h and l are (m, n)."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    landmarks = tl.program_id(1) * LANDMARKS + tl.arange(0, LANDMARKS)
    k = _kernel(xt, ct, rows, landmarks, n, m, d, rate, ROWS, LANDMARKS)
    whole = (k * tl.load(scale + rows)[:, None] + 0.5).to(tl.int32)
    first = (whole + 128) >> 8
    place = landmarks[None, :].to(tl.int64) * n + rows[:, None]
    tl.store(high + place, first.to(tl.int8))
    tl.store(low + place, (whole - first * 256).to(tl.int8))


@triton.jit
def sums(xt, ct, coef, out, n, m, d, rate, ROWS: tl.constexpr, LANDMARKS: tl.constexpr):
    """The values times the coefficients, summed over all landmarks, some rows for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float32)
    for first in range(0, m, LANDMARKS):
        landmarks = first + tl.arange(0, LANDMARKS)
        k = _kernel(xt, ct, rows, landmarks, n, m, d, rate, ROWS, LANDMARKS)
        total += tl.sum(k * tl.load(coef + landmarks)[None, :], axis=1)
    tl.store(out + rows, total)
