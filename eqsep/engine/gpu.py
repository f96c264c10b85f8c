"""Local kernels and their sums on a GPU, in single precision, without a pass over memory too many.

Tensor cores sum up in single precision or worse, and over millions of rows that is not enough to
solve for coefficients. Whole numbers they sum up exactly. So kernel values, which lie between 0 and
1, are rounded to 1 / 32,512 and written in two digits of eight bits; products of digits are sums of
whole numbers without any error. What is left is the rounding of each value.

The Laplacian kernel is compiled by Triton (`tiles`). Where this is not installed, and on
processors, the same is done by plain tensor operations.
"""

import math
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from eqsep.arrays import is_foreign
from eqsep.engine.compiled import mean_of_powers

SUMMED_AT_ONCE = 2**16  # rows: their sums of products of digits stay below 2^31
SCORED_AT_ONCE = 2**20  # rows
WALKED_AT_ONCE = 2**16  # rows
SCALE = 127 * 256.0  # what a kernel value of 1 is as a whole number
_ROWS, _LANDMARKS, _WARPS = 128, 64, 4  # a tile stays in registers
_LOG2_E = math.log2(math.e)


class Digits(NamedTuple):
    """Whole numbers 256 `high` + `low`, each of shape (m, n) in eight bits."""

    high: Any
    low: Any


def is_fast(x: Any) -> bool:
    """Whether `x` is a tensor in single precision on a GPU."""
    return is_foreign(x) and hasattr(x, "is_cuda") and x.is_cuda and x.element_size() == 4


def laplacian(  # pragma: no cover  needs a GPU
    X: Any, C: Any, rate: float, powers: tuple[int, ...] = (1,)
) -> Any:
    """The mean of exp(-rate p ||x - c||_1) over powers p.  (n, d), (m, d) -> (n, m)"""
    import torch

    if not _is_tiled(X):
        return mean_of_powers(torch.cdist(X, C, p=1).mul_(-rate).exp_(), powers)
    xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
    out = torch.empty((xt.shape[1], ct.shape[1]), device=X.device)
    _over_tiles(_tiles().values, xt, ct, (out,), (rate, powers))
    return out[: X.shape[0], : C.shape[0]]


def laplacian_sums(  # pragma: no cover  needs a GPU
    X: Any, C: Any, coef: Any, rate: float, powers: tuple[int, ...] = (1,)
) -> Any:
    """Σ_j a_j k(x, c_j) of each row, with k as above.  (n, d), (m, d), (m,) -> (n,)"""
    import torch

    coef = coef.to(X.dtype)
    if not _is_tiled(X):
        return laplacian(X, C, rate, powers) @ coef
    xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
    out = torch.empty(xt.shape[1], device=X.device)
    coef = torch.nn.functional.pad(coef, (0, ct.shape[1] - C.shape[0]))
    _over_tiles(_tiles().sums, xt, ct, (coef, out), (rate, powers), across=False)
    return out[: X.shape[0]]


def laplacian_digits(  # pragma: no cover  needs a GPU
    X: Any, C: Any, scale: Any, rate: float, powers: tuple[int, ...] = (1,)
) -> Digits:
    """k(x, c) as above, times each row's scale, as digits; those beyond n and m are 0."""
    import torch

    if not _is_tiled(X):
        return digits_of(laplacian(X, C, rate, powers), scale)
    xt, ct = _by_column(X, _ROWS), _by_column(C, _LANDMARKS)
    scale = torch.nn.functional.pad(scale.float(), (0, xt.shape[1] - X.shape[0]))
    high, low = torch.empty(
        (2, ct.shape[1], xt.shape[1]), dtype=torch.int8, device=X.device
    ).unbind()
    _over_tiles(_tiles().digits, xt, ct, (scale, high, low), (rate, powers))
    return Digits(high, low)


def digits_of(k: Any, scale: Any, *, n: int = 0) -> Digits:
    """Values between -1 and 1, times each row's scale of at most `SCALE`, as digits.

    Zeros are added below, up to `n` rows at least, and beside.

    Examples
    --------
    >>> import torch
    >>> digits = digits_of(torch.tensor([[1.0, 0.5]]), torch.tensor([SCALE]))
    >>> whole = 256 * digits.high.int() + digits.low.int()
    >>> (whole[:2, 0] / SCALE).tolist()
    [1.0, 0.5]
    """
    import torch

    whole = torch.floor(k * scale[:, None] + 0.5).to(torch.int32).T
    m, rows = whole.shape
    more = max(n, rows + -rows % 8) - rows
    whole = torch.nn.functional.pad(whole, (0, more, 0, -m % 8 + 24))  # as such products ask
    high = (whole + 128) >> 8
    return Digits(high.to(torch.int8), (whole - high * 256).to(torch.int8))


def products(left: Digits, right: Digits) -> Any:
    """Σ_n of the products of two whole numbers, exactly, in double precision.  -> (m, m')"""
    import torch

    m, both = right.high.shape[0], torch.cat(right)
    total = _product(left.high, both).double().mul_(256).add_(_product(left.low, both))
    return total[:, :m] * 256 + total[:, m:]


def squares(k: Digits) -> Any:
    """`products(k, k)`, of which one of four parts is the transpose of another."""
    cross = _product(k.high, k.low)
    total = _product(k.high, k.high).double().mul_(2.0**16)
    return total.add_(cross + cross.T, alpha=256.0).add_(_product(k.low, k.low))


def _product(a: Any, b: Any) -> Any:
    """Σ_n a_in b_jn in 32 bits."""
    import torch

    return torch._int_mm(a, b.T)


def summed(
    kernel: Any, landmarks: Any, X: Any, target: np.ndarray, weight: np.ndarray
) -> tuple[Any, Any]:
    """Σ w k kᵀ and Σ w t k in double precision, of kernel values rounded to 1 / 32,512.

    Weights and targets are rounded likewise, in units of the largest one.
    """
    import torch

    m, tall = landmarks.shape[0], np.reshape(target, (len(weight), -1))
    double = {"dtype": torch.float64, "device": X.device}
    heaviest, furthest = float(weight.max(initial=0)) or 1.0, float(np.abs(tall).max()) or 1.0
    root = torch.as_tensor(np.sqrt(weight / heaviest), **double)
    pull = torch.as_tensor(tall / furthest, **double)
    gram, moment = torch.zeros((m, m), **double), torch.zeros((m, tall.shape[1]), **double)
    digits = kernel.digits_at(landmarks)
    for start in range(0, X.shape[0], SUMMED_AT_ONCE):
        rows = slice(start, start + SUMMED_AT_ONCE)
        scale = root[rows] * SCALE
        k = digits(X[rows], scale)
        t = digits_of(pull[rows], scale, n=k.high.shape[1])
        gram += squares(k)[:m, :m]
        moment += products(k, t)[:m, : tall.shape[1]]
    unit = heaviest / SCALE**2
    return gram * unit, (moment * (unit * furthest)).reshape(m, *target.shape[1:])


def combined(kernel: Any, landmarks: Any, X: Any, coef: Any) -> Any:
    """Σ_j a_j k(x, c_j) of each row.  (n, d) -> (n,)"""
    import torch

    sums = kernel.sums_at(landmarks, coef.to(X.dtype))
    parts = [sums(X[i : i + SCORED_AT_ONCE]) for i in range(0, X.shape[0], SCORED_AT_ONCE)]
    return torch.cat(parts) if parts else X[:, 0]


@cache
def has_triton() -> bool:  # pragma: no cover  needs a GPU
    """Whether Triton is there to compile for a GPU."""
    return find_spec("triton") is not None


def _is_tiled(X: Any) -> bool:  # pragma: no cover  needs a GPU
    return is_fast(X) and has_triton()


def _tiles() -> Any:  # pragma: no cover  needs a GPU
    from eqsep.engine import tiles  # Triton need not be installed

    return tiles


def _by_column(X: Any, side: int) -> Any:  # pragma: no cover  needs a GPU
    """(n, d) -> (d, n'), with zeros up to a multiple of a tile's side."""
    import torch

    return torch.nn.functional.pad(X.T, (0, -X.shape[0] % side)).contiguous()


def _over_tiles(  # pragma: no cover  needs a GPU
    program: Any,
    xt: Any,
    ct: Any,
    places: tuple[Any, ...],
    kernel: tuple[float, tuple[int, ...]],
    *,
    across: bool = True,
) -> None:
    (d, n), m = xt.shape, ct.shape[1]
    grid = (n // _ROWS, m // _LANDMARKS) if across else (n // _ROWS,)
    rate, powers = kernel
    numbers = (n, m, d, rate * _LOG2_E, 1 / len(powers))
    known = (_ROWS, _LANDMARKS, sum(powers), max(powers).bit_length())
    program[grid](xt, ct, *places, *numbers, *known, num_warps=_WARPS)


def votes(trees: Any, X: Any, of_leaf: Any) -> Any:
    """The mean over trees of the number of the leaf in which a row ends.  (n, d) -> (n,)"""
    import torch

    there = {"device": X.device}
    *nodes, depth = (torch.as_tensor(part, **there) for part in trees.walks)
    vote = torch.as_tensor(np.where(trees.is_leaf, of_leaf[trees.left * trees.is_leaf], 0), **there)
    if _is_tiled(X) and X.shape[0]:  # pragma: no cover  needs a GPU
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


def _walked(nodes: list[Any], X: Any, depth: int) -> Any:
    """The leaf of each tree in which each row ends.  (n, d) -> (n, n_trees)"""
    import torch

    root, column, limit, left, right = nodes
    node = root.expand(X.shape[0], -1)
    for _ in range(depth):
        goes_left = X.gather(1, column[node].long()) <= limit[node]
        node = torch.where(goes_left, left[node], right[node])
    return node
