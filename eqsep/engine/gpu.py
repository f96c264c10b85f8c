"""Local kernels and their sums on a GPU, in single precision; by Triton (`tiles`) if installed.

Tensor cores sum whole numbers exactly, and others not well enough to solve for coefficients. So
kernel values, from 0 to 1, are rounded to 1 / 32,512 and written in two digits of eight bits.
"""

import math
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np

from eqsep.arrays import is_foreign
from eqsep.engine.loops import mean_of_powers
from eqsep.engine.trees import Trees

SUMMED_AT_ONCE = 2**16  # rows: their sums of products of digits stay below 2^31
SCORED_AT_ONCE = 2**20  # rows
WALKED_AT_ONCE = 2**16  # rows
DISTANCES_AT_ONCE = 2**24  # between rows and others
SCALE = 127 * 256.0  # what a kernel value of 1 is as a whole number
_ROWS, _LANDMARKS, _WARPS = 128, 64, 4  # a tile stays in registers
_SIDE, _DEPTH, _STAGES = 128, 64, 5  # of a product of digits: those of so many rows at a time
_LOG2_E = math.log2(math.e)


def is_fast(x: Any) -> bool:
    """Whether `x` is a tensor in single precision on a GPU."""
    return _is_on_gpu(x) and x.element_size() == 4


def is_tiled(x: Any) -> bool:
    """Whether it is, and Triton is installed."""
    return is_fast(x) and _has_triton()


def _is_on_gpu(x: Any) -> bool:
    return is_foreign(x) and hasattr(x, "is_cuda") and bool(x.is_cuda)


class Form(NamedTuple):
    """The mean over powers p of exp(-rate p Σ_k |x_k - c_k|^degree), the degree 1 or 2."""

    rate: float
    degree: int = 1
    powers: tuple[int, ...] = (1,)


class SummedKernel(Protocol):
    """A kernel whose values at landmarks are summed on a GPU."""

    def digits_at(self, C: Any) -> Callable[[Any, Any], Any]:
        """The function (X, scale) -> k(X, C) times each row's scale, as digits."""

    def sums_at(self, C: Any, coef: Any) -> Callable[[Any], Any]:
        """The function X -> Σ_j a_j k(X, c_j)."""


def values(X: Any, C: Any, form: Form) -> Any:  # pragma: no cover  needs a GPU
    """The kernel of the form, by Triton where it is installed.  (n, d), (m, d) -> (n, m)"""
    import torch

    if not is_tiled(X):
        apart = torch.cdist(X, C, p=form.degree, compute_mode="donot_use_mm_for_euclid_dist")
        return mean_of_powers(apart.pow_(form.degree).mul_(-form.rate).exp_(), form.powers)
    xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
    out = torch.empty((xt.shape[1], ct.shape[1]), device=X.device)
    _over_tiles(_tiles().values, xt, ct, (out,), form)
    return out[: X.shape[0], : C.shape[0]]


def sums(X: Any, C: Any, coef: Any, form: Form) -> Any:  # pragma: no cover  needs a GPU
    """Σ_j a_j k(x, c_j) of each row, k of the form, by Triton.  (n, d), (m, d), (m,) -> (n,)"""
    import torch

    coef = coef.to(X.dtype)
    xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
    out = torch.empty(xt.shape[1], device=X.device)
    coef = torch.nn.functional.pad(coef, (0, ct.shape[1] - C.shape[0]))
    _over_tiles(_tiles().sums, xt, ct, (coef, out), form, across=False)
    return out[: X.shape[0]]


def least(X: Any, C: Any, scale: Any, handicap: Any, *, lowest: float) -> Any:
    """The least of max(||x - c||_1 scale_c, lowest) + handicap_c.  (n, d), (m, d) -> (n,)"""
    import torch

    if is_tiled(X) and X.shape[0]:  # pragma: no cover  needs a GPU
        xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
        (d, n), m, more = xt.shape, ct.shape[1], ct.shape[1] - C.shape[0]
        out = torch.empty(n, device=X.device)
        scale = torch.nn.functional.pad(scale, (0, more))
        handicap = torch.nn.functional.pad(handicap, (0, more), value=math.inf)
        sizes = (lowest, n, m, d, _ROWS, _LANDMARKS)
        _tiles().least[(n // _ROWS,)](xt, ct, scale, handicap, out, *sizes, num_warps=_WARPS)
        return out[: X.shape[0]]
    found = []
    for some in X.split(max(DISTANCES_AT_ONCE // C.shape[0], 1)):
        scaled = torch.cdist(some, C, p=1).mul_(scale).clip_(lowest).add_(handicap)
        found.append(scaled.amin(dim=1))
    return torch.cat(found)


# Digits are whole numbers 256 h + l, with h and l of shape (m, n) in eight bits: (2, m, n).


def digits(X: Any, C: Any, scale: Any, form: Form) -> Any:  # pragma: no cover  needs a GPU
    """k(x, c) of the form, times each row's scale, as digits, by Triton; 0 beyond n and m."""
    import torch

    xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
    scale = torch.nn.functional.pad(scale.float(), (0, xt.shape[1] - X.shape[0]))
    both = torch.empty((2, ct.shape[1], xt.shape[1]), dtype=torch.int8, device=X.device)
    _over_tiles(_tiles().digits, xt, ct, (scale, *both), form)
    return both


def digits_of(k: Any, scale: Any, *, n: int = 0) -> Any:
    """Values from -1 to 1, times each row's scale, as digits, padded to at least `n` rows."""
    import torch

    whole = torch.floor(k * scale[:, None] + 0.5).to(torch.int32).T
    m, rows = whole.shape
    more = max(n, rows + -rows % 8) - rows
    whole = torch.nn.functional.pad(whole, (0, more, 0, -m % 8 + 24))  # as such products ask
    high = (whole + 128) >> 8
    return torch.stack([high, whole - high * 256]).to(torch.int8)


def products(left: Any, right: Any) -> Any:
    """Σ_n of the products of two whole numbers, exactly, in double precision.  -> (m, m')"""
    (high, low), m, both = left, right.shape[1], right.flatten(0, 1)
    total = _product(high, both).double().mul_(256).add_(_product(low, both))
    return total[:, :m] * 256 + total[:, m:]


def add_squares(total: Any, k: Any) -> None:
    """Add `products(k, k)` to the upper triangle of `total`; anything may be left below it."""
    (_, m, n), size = k.shape, total.shape[0]
    is_whole = 2 * m % _SIDE == n % _DEPTH == 0
    if is_whole and _is_on_gpu(k) and _has_triton():  # pragma: no cover  needs a GPU
        both = _square(k.flatten(0, 1))
        high, cross, low = both[:m, :m], both[:m, m:], both[m:, m:]
    else:
        high, cross, low = (_product(k[a], k[b]) for a, b in ((0, 0), (0, 1), (1, 1)))
    high, cross, low = (part[:size, :size] for part in (high, cross, low))
    total.add_(high, alpha=2.0**16).add_(cross + cross.T, alpha=256.0).add_(low)


def _square(a: Any) -> Any:  # pragma: no cover  needs a GPU
    """Σ_n a_in a_jn in 32 bits, of tiles that reach above the diagonal; others hold nothing."""
    import torch

    m, n = a.shape
    left, right = torch.triu_indices(m // _SIDE, m // _SIDE, device=a.device, dtype=torch.int32)
    out = torch.empty((m, m), dtype=torch.int32, device=a.device)
    program = _tiles().squares[(len(left),)]
    program(a, left, right, out, m, n, _SIDE, _DEPTH, num_warps=_WARPS, num_stages=_STAGES)
    return out


def _product(a: Any, b: Any) -> Any:
    """Σ_n a_in b_jn in 32 bits."""
    import torch

    return torch._int_mm(a, b.T)


def summed(
    kernel: SummedKernel, landmarks: Any, X: Any, target: np.ndarray, weight: np.ndarray
) -> tuple[Any, Any]:
    """Σ w k kᵀ and Σ w t k in double precision, of values, weights and targets as digits."""
    import torch

    m, tall = landmarks.shape[0], np.reshape(target, (len(weight), -1))
    double = {"dtype": torch.float64, "device": X.device}
    heaviest, furthest = float(weight.max(initial=0)) or 1.0, float(np.abs(tall).max()) or 1.0
    root = _sent(weight, X.device).div(heaviest).sqrt_()
    pull = _sent(tall, X.device).div(furthest)
    gram, moment = torch.zeros((m, m), **double), torch.zeros((m, tall.shape[1]), **double)
    digits_of_rows = kernel.digits_at(landmarks)
    for start in range(0, X.shape[0], SUMMED_AT_ONCE):
        rows = slice(start, start + SUMMED_AT_ONCE)
        scale = root[rows] * SCALE
        k = digits_of_rows(X[rows], scale)
        t = digits_of(pull[rows], scale, n=k.shape[2])
        add_squares(gram, k)
        moment += products(k, t)[:m, : tall.shape[1]]
    unit = heaviest / SCALE**2
    gram = (gram.triu() + gram.triu(1).T) * unit
    return gram, (moment * (unit * furthest)).reshape(m, *target.shape[1:])


def _sent(array: np.ndarray, device: Any) -> Any:
    """A tensor in double precision on the device, sent while a GPU works."""
    import torch

    here = torch.as_tensor(array, dtype=torch.float64)
    here = here.pin_memory() if device.type == "cuda" else here
    return here.to(device, non_blocking=True)


def combined(kernel: SummedKernel, landmarks: Any, X: Any, coef: Any) -> Any:
    """Σ_j a_j k(x, c_j) of each row.  (n, d) -> (n,)"""
    import torch

    sums_of_rows = kernel.sums_at(landmarks, coef.to(X.dtype))
    parts = [sums_of_rows(X[i : i + SCORED_AT_ONCE]) for i in range(0, X.shape[0], SCORED_AT_ONCE)]
    return torch.cat(parts) if parts else X[:, 0]


@cache
def _has_triton() -> bool:  # pragma: no cover  needs a GPU
    return find_spec("triton") is not None


def _tiles() -> Any:  # pragma: no cover  needs a GPU
    from eqsep.engine import tiles  # Triton need not be installed

    return tiles


def _by_column(X: Any, side: int) -> Any:  # pragma: no cover  needs a GPU
    """(n, d) -> (d, n'), with zeros up to a multiple of a tile's side."""
    import torch

    return torch.nn.functional.pad(X.T, (0, -X.shape[0] % side)).contiguous()


def _over_tiles(  # pragma: no cover  needs a GPU
    program: Any, xt: Any, ct: Any, places: tuple[Any, ...], form: Form, *, across: bool = True
) -> None:
    (d, n), m = xt.shape, ct.shape[1]
    grid = (n // _ROWS, m // _LANDMARKS) if across else (n // _ROWS,)
    rate, degree, powers = form
    numbers = (n, m, d, rate * _LOG2_E, 1 / len(powers))
    known = (_ROWS, _LANDMARKS, degree, sum(powers), max(powers).bit_length())
    program[grid](xt, ct, *places, *numbers, *known, num_warps=_WARPS)


def votes(trees: Trees, X: Any, of_leaf: Any) -> Any:
    """The mean over trees of the number of the leaf in which a row ends.  (n, d) -> (n,)"""
    import torch

    there = {"device": X.device}
    *nodes, depth = (torch.as_tensor(part, **there) for part in trees.walks)
    vote = torch.as_tensor(np.where(trees.is_leaf, of_leaf[trees.left * trees.is_leaf], 0), **there)
    if is_tiled(X) and X.shape[0]:  # pragma: no cover  needs a GPU
        xt = _by_column(X, _ROWS)
        out = torch.empty(xt.shape[1], dtype=torch.float64, **there)
        root, *rest = nodes
        sizes = (xt.shape[1], len(root), _ROWS)
        _tiles().votes[(xt.shape[1] // _ROWS,)](xt, root, depth, *rest, vote, out, *sizes)
        return out[: X.shape[0]] / len(root)
    walked = [
        _walked(nodes, X[i : i + WALKED_AT_ONCE], int(depth.max()))
        for i in range(0, max(X.shape[0], 1), WALKED_AT_ONCE)
    ]
    return vote[torch.cat(walked)].mean(dim=1)


def leaves(trees: Trees, X: Any) -> Any:
    """The leaf of each tree in which each row ends.  (n, d) -> (n, n_trees)"""
    import torch

    *nodes, depth = (torch.as_tensor(part, device=X.device) for part in trees.walks)
    walked = [
        _walked(nodes, X[i : i + WALKED_AT_ONCE], int(depth.max()))
        for i in range(0, max(X.shape[0], 1), WALKED_AT_ONCE)
    ]
    number = torch.as_tensor(trees.left, device=X.device)
    return number[torch.cat(walked)].long()


def _walked(nodes: list[Any], X: Any, depth: int) -> Any:
    """The leaf of each tree in which each row ends.  (n, d) -> (n, n_trees)"""
    import torch

    root, column, limit, left, right = nodes
    node = root.expand(X.shape[0], -1)
    for _ in range(depth):
        goes_left = X.gather(1, column[node].long()) <= limit[node]
        node = torch.where(goes_left, left[node], right[node])
    return node
