"""Kernels k(x, c) and the distances in them: each formula once, for NumPy and torch alike.

A kernel takes rows X of shape (n, d) and landmarks C of shape (m, d) to the matrix (n, m) of its
values. A *local* kernel vanishes far from its landmark, which is what closes a region.
"""

import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.arrays import is_foreign, namespace
from eqsep.engine import gpu
from eqsep.engine.loops import compiled, exponentials, inlined, mean_of_powers
from eqsep.errors import UserError, UserTypeError
from eqsep.schemas import NUMBER, check_parts, either, plain, word

ENOUGH = 500  # landmarks
ROWS, COLUMNS = 16, 4  # that are summed in one go
COMMON = 0.5  # the share of landmarks with one number from which on a column is mostly that number
_NO_SPARSE = (np.empty(0, np.intp), np.empty((2, 0), np.float32), np.empty((3, 0, 0), np.float32))
# Kernels of `sklearn.metrics.pairwise`, which is slow to import.
PAIRWISE = (
    *("additive_chi2", "chi2", "cosine", "laplacian", "linear"),
    *("poly", "polynomial", "rbf", "sigmoid"),
)


class Kernel(ABC):
    """A function of a row and a landmark, with parameters as in scikit-learn, but no import of it.

    >>> RBF(gamma=2.0).get_params(), RBF().set_params(gamma=0.5)
    ({'gamma': 2.0}, RBF(gamma=0.5))
    """

    is_local: bool = False  # whether k(x, c) goes to 0 as x goes away from c in any direction
    is_rowwise: ClassVar[bool] = False  # whether other rows do not change a bit of a row's values

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  nothing lies deeper
        """The parameters by their names."""
        names = sorted(inspect.signature(type(self)).parameters)
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set some of the parameters."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for {self!r}: expected one of {list(known)}."
                )
            setattr(self, name, value)
        return self

    @abstractmethod
    def at(self, C: Any) -> Callable[[Any], Any]:
        """The function X -> k(X, C), with what depends on the landmarks alone done once."""

    def __call__(self, X: Any, C: Any) -> Any:
        """The values for each row and each landmark.  (n, d), (m, d) -> (n, m)"""
        return self.at(C)(X)

    def resolved(self, C: Any) -> Self:  # noqa: ARG002  only some kernels look at the landmarks
        """The same kernel with whatever depends on the landmarks `C` filled in."""
        return self


@dataclass
class LocalKernel(Kernel):
    """exp(-gamma s(x, c)) with a dissimilarity s >= 0 that grows without bound.

    Parameters
    ----------
    gamma : float or "median", default="median"
        How fast it falls off. "median" stands for 1 / the median of s over pairs of landmarks:
        `resolved` puts the number in its place, unless it is too large or too small for a float
        (rows of 1e300, say): then it is computed from the landmarks at each use.
    """

    gamma: float | str = "median"

    is_local = True
    degree: ClassVar[int] = 1  # s(t x, t c) = t^degree s(x, c)

    @abstractmethod
    def dissimilarity_to(self, C: Any, *, unit: float = 1.0) -> Callable[[Any], Any]:
        """The function X -> s(X / unit, C / unit), unit a power of two: each call a new (n, m)."""

    def at(self, C: Any) -> Callable[[Any], Any]:
        form, unit = self._form(C), unit_of(C)
        if form is not None:
            return partial(gpu.values, C=C, form=form)
        rate, dissimilarity = self._rate(C, unit), self.dissimilarity_to(C, unit=unit)

        def values(X: Any) -> Any:
            s = dissimilarity(X)
            with np.errstate(over="ignore"):
                s *= -rate
            return namespace(s).exp(s) if is_foreign(s) else np.exp(s, out=s)

        return values

    def digits_at(self, C: Any) -> Callable[[Any, Any], Any]:
        """The function (X, scale) -> k(X, C) times each row's scale, as whole numbers."""
        form, values = self._form(C), self.at(C)
        if form is not None:
            return lambda X, scale: gpu.digits(X, C, scale, form)
        return lambda X, scale: gpu.digits_of(values(X), scale)

    def sums_at(self, C: Any, coef: Any) -> Callable[[Any], Any]:
        """The function X -> Σ_j a_j k(X, c_j)."""
        form, values = self._form(C), self.at(C)
        if form is not None:
            return partial(gpu.sums, C=C, coef=coef, form=form)
        return lambda X: values(X) @ coef

    def _form(self, C: Any) -> gpu.Form | None:  # noqa: ARG002  only some kernels have one
        """How a GPU computes it in one go; None if it cannot, or landmarks are elsewhere."""
        return None

    def resolved(self, C: Any) -> Self:
        if self.gamma != "median":
            return replace(self, gamma=_number(self.gamma))
        unit = unit_of(C)
        gamma = 1 / self._median(C, unit) / unit ** (self.degree / 2) / unit ** (self.degree / 2)
        return replace(self, gamma=gamma) if sys.float_info.min <= gamma < math.inf else self

    def _rate(self, C: Any, unit: float) -> float:
        """Gamma for an s in `unit`, kept so that its product with s = 0 or infinity is right."""
        if self.gamma == "median":
            return 1 / self._median(C, unit)
        precision = namespace(C).finfo(C.dtype)
        rate: float = _number(self.gamma) * unit ** (self.degree / 2) * unit ** (self.degree / 2)
        return min(max(rate, float(precision.smallest_normal)), float(precision.max))

    def _median(self, C: Any, unit: float) -> float:
        """The median of the positive, finite s over pairs of (at most 500) landmarks, else 1."""
        xp, C = namespace(C), some(C)
        s = xp.reshape(self.dissimilarity_to(C, unit=unit)(C), (-1,))
        s = xp.sort(s[(s > 0) & xp.isfinite(s)])
        n = s.shape[0]
        return float(s[(n - 1) // 2] / 2 + s[n // 2] / 2) if n else 1.0


def some(C: Any) -> Any:
    """At most 500 of the landmarks, evenly spaced: enough to estimate a scale."""
    return C[:: math.ceil(C.shape[0] / ENOUGH), :]


def unit_of(C: Any) -> float:
    """A power of two near the landmarks' spread where distances cannot be squared; else 1."""
    xp = namespace(C)
    largest = math.frexp(float(xp.finfo(C.dtype).max))[1]
    usual, size = 3 * largest // 8, float(xp.max(xp.abs(C)))
    if 2.0**-usual <= size <= 2.0**usual:
        return 1.0
    C = some(C) / 2 if size > 1 else some(C)  # differences of the largest numbers are finite
    middle = xp.sort(C, axis=0)[(C.shape[0] - 1) // 2, :]
    away = xp.max(xp.abs(C - middle), axis=1)
    away = xp.sort(away[away > 0])
    if not away.shape[0]:
        return 1.0
    exponent = math.frexp(float(away[(away.shape[0] - 1) // 2]))[1]
    return 1.0 if abs(exponent) <= usual else 2.0 ** max(4 - largest, min(exponent, largest - 4))


def _number(gamma: Any) -> float:
    if isinstance(gamma, str) or not 0 < gamma < math.inf:
        raise UserError(
            f"gamma must be a number above 0 (or 'median' where there are landmarks to read it "
            f"from), got {gamma!r}."
        )
    return float(gamma)


class SquaredDistance:
    """X -> ||x - c||² / unit² by one matrix product, exactly 0 where x and c agree up to rounding.

    A row too large to be squared is infinitely far from landmarks that are not.  (n, d) -> (n, m)
    """

    def __init__(self, C: Any, *, unit: float = 1.0) -> None:
        xp, d = namespace(C), C.shape[1]
        precision = xp.finfo(C.dtype)
        self._unit = unit
        self._limit = math.sqrt(float(precision.max) / d) / 8 * unit
        self._noise = (d + 8) * float(precision.eps)
        self._is_far = _beyond(C, self._limit)
        self._far = None if self._is_far is None else C[self._is_far, :]
        C = _scaled(C, self._is_far, unit)
        self._centre = xp.mean(C, axis=0)
        C = C - self._centre
        cc = xp.sum(C * C, axis=1, keepdims=True)
        self._factor = xp.concat([C, xp.ones_like(cc), cc], axis=1).T

    def __call__(self, X: Any) -> Any:
        xp, is_far = namespace(X, self._factor), _beyond(X, self._limit)
        near = _scaled(X, is_far, self._unit) - self._centre
        xx = xp.sum(near * near, axis=1, keepdims=True)
        s = xp.concat([-2 * near, xx, xp.ones_like(xx)], axis=1) @ self._factor
        s *= s > self._noise * xx
        if is_far is not None:
            s[is_far, :] = math.inf
        if self._is_far is not None:
            s[:, self._is_far] = math.inf
        if is_far is not None and self._is_far is not None:
            rows, columns = xp.nonzero(is_far)[0], xp.nonzero(self._is_far)[0]
            s[rows[:, None], columns[None, :]] = self._between_far(X[is_far, :])
        return s

    def _between_far(self, X: Any) -> Any:
        """The same from far rows to far landmarks, from the differences themselves."""
        C: Any = self._far
        s: Any = 0.0
        with np.errstate(over="ignore"):
            for j in range(X.shape[1]):
                s = s + ((X[:, j : j + 1] - C[:, j : j + 1].T) / self._unit) ** 2
        return s


def _beyond(X: Any, limit: float) -> Any:
    """Which rows pass `limit`; None if none does."""
    xp = namespace(X)
    size = xp.max(xp.abs(X), axis=1)
    return None if float(xp.max(size)) <= limit else size > limit


def _scaled(X: Any, is_far: Any, unit: float) -> Any:
    """`X` / unit, with zeros for the rows that are far."""
    if is_far is not None:
        xp = namespace(X)
        X = xp.where(is_far[:, None], xp.zeros_like(X), X)
    return X if unit == 1 else X / unit


@dataclass
class RBF(LocalKernel):
    """exp(-gamma ||x - c||²), the Gaussian kernel.

    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0], [2.0], [1e300]]), np.array([[0.0]])).ravel().round(3)
    array([1.   , 0.135, 0.   ])
    """

    degree: ClassVar[int] = 2

    def dissimilarity_to(self, C: Any, *, unit: float = 1.0) -> Callable[[Any], Any]:
        return SquaredDistance(C, unit=unit)

    def _form(self, C: Any) -> gpu.Form | None:
        return gpu.Form(self._rate(C, 1.0), degree=2) if _is_tiled(C) else None


@dataclass
class Exponential(LocalKernel):
    """exp(-gamma ||x - c||): a cusp at the landmark and a heavier tail, still a matrix product.

    >>> import numpy as np
    >>> Exponential(gamma=0.5)(np.array([[3.0, 4.0]]), np.array([[0.0, 0.0]])).round(3)
    array([[0.082]])
    """

    def dissimilarity_to(self, C: Any, *, unit: float = 1.0) -> Callable[[Any], Any]:
        squared = SquaredDistance(C, unit=unit)

        def distance(X: Any) -> Any:
            s = squared(X)
            return namespace(s).sqrt(s) if is_foreign(s) else np.sqrt(s, out=s)

        return distance


@dataclass
class Laplacian(LocalKernel):
    """exp(-gamma ||x - c||_1): a cusp along each column. With several bandwidths, their mean.

    Parameters
    ----------
    gamma : float or "median", default="median"
        The gamma of the widest one, if there are several.
    powers : tuple of int, default=(1,)
        Powers of two, rising: the kernel is the mean of exp(-gamma p ||x - c||_1) over them.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=0.5, powers=(1, 2))(np.array([[1.0]]), np.array([[0.0]])).round(3)
    array([[0.487]])
    """

    powers: tuple[int, ...] = (1,)

    is_rowwise: ClassVar[bool] = True

    def dissimilarity_to(self, C: Any, *, unit: float = 1.0) -> Callable[[Any], Any]:
        return partial(manhattan, C=C, unit=unit)

    def at(self, C: Any) -> Callable[[Any], Any]:
        values = super().at(C)
        return values if _is_tiled(C) else lambda X: mean_of_powers(values(X), self.powers)

    def _form(self, C: Any) -> gpu.Form | None:
        return gpu.Form(self._rate(C, 1.0), powers=self.powers) if _is_tiled(C) else None

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return {"gamma": self.gamma, "powers": list(self.powers)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The kernel of these parts."""
        check_parts(state, _LAPLACIAN, "Laplacian")
        return cls(gamma=state["gamma"], powers=tuple(state["powers"]))


_LAPLACIAN = {
    "gamma": either(word("median"), NUMBER),
    "powers": plain(
        "a list of powers of two in rising order",
        lambda value: type(value) is list and are_powers(value),
    ),
}


def are_powers(values: Sequence[Any]) -> bool:
    """Whether these are powers of two in rising order: a few, and none of them large."""
    known = all(type(p) is int and 0 < p < 2**16 and p & (p - 1) == 0 for p in values)
    return known and 0 < len(values) < 16 and list(values) == sorted(set(values))


def _is_tiled(C: Any) -> bool:
    """Whether landmarks are on a GPU in single precision, and not so large as to need a unit."""
    return gpu.is_tiled(C) and unit_of(C) == 1


@dataclass
class SparseLaplacian(Laplacian):
    """The Laplacian of encoded tables, where most columns hold mostly one number."""

    def at(self, C: np.ndarray) -> Callable[[np.ndarray], Any]:
        precision, distance = np.finfo(C.dtype), SparseManhattan(C)
        rate = min(max(_number(self.gamma), float(precision.tiny)), float(precision.max))
        return lambda X: exponentials(distance(X), rate=rate, powers=self.powers)


@dataclass
class PairwiseKernel(Kernel):
    """A kernel of `sklearn.metrics.pairwise` by its name: for NumPy arrays only.

    Parameters
    ----------
    metric : str
        "linear", "polynomial", "sigmoid", "cosine", "chi2", …
    params : dict
        Further arguments of that function (gamma, degree, coef0).

    Examples
    --------
    >>> import numpy as np
    >>> square = PairwiseKernel("polynomial", {"degree": 2, "gamma": 1})
    >>> square(np.array([[2.0]]), np.array([[3.0]]))
    array([[49.]])
    """

    metric: str
    params: dict[str, Any] = field(default_factory=dict)

    def at(self, C: Any) -> Callable[[Any], Any]:
        if is_foreign(C):
            raise UserTypeError(
                f"kernel={self.metric!r} is scikit-learn's and takes NumPy arrays, got "
                f"{type(C).__name__}. Use one of {sorted(LOCAL_KERNELS)}, or X.numpy()."
            )
        from sklearn.metrics.pairwise import pairwise_kernels  # slow to import, and rarely used

        settings = {"metric": self.metric, "filter_params": True, **self.params}
        return partial(pairwise_kernels, Y=C, **settings)


@dataclass
class FunctionKernel(Kernel):
    """A kernel of your own: `function(X, C)` returns the whole matrix.

    Parameters
    ----------
    function : callable
        Maps rows (n, d) and landmarks (m, d) to values (n, m); it is not called for pairs of rows.
    is_local : bool, default=False
        A promise that the values vanish far from the landmark, whatever the direction.

    Examples
    --------
    >>> import numpy as np
    >>> FunctionKernel(lambda X, C: X @ C.T)(np.array([[2.0]]), np.array([[3.0], [4.0]]))
    array([[6., 8.]])
    """

    function: Callable[[Any, Any], Any]
    is_local: bool = False

    def at(self, C: Any) -> Callable[[Any], Any]:
        return partial(self._values, C=C)

    def _values(self, X: Any, C: Any) -> Any:
        values, expected = self.function(X, C), (X.shape[0], C.shape[0])
        shape = getattr(values, "shape", type(values).__name__)
        if shape != expected:
            raise UserError(
                f"A kernel function takes rows (n, d) and landmarks (m, d) to a matrix (n, m): "
                f"expected shape {expected}, got {shape}."
            )
        return values


LOCAL_KERNELS = {kernel.__name__.lower(): kernel for kernel in (RBF, Laplacian, Exponential)}


def as_kernel(kernel: Any, *, gamma: float | str = "median") -> Kernel:
    """A kernel by name, from a function k(X, C), or as itself.

    `gamma` goes with a name. For the names that scikit-learn owns ("linear", "polynomial",
    "sigmoid", "cosine", "chi2", …) "median" stands for its own default.

    >>> as_kernel("exponential", gamma=0.5)
    Exponential(gamma=0.5)
    """
    known = ", ".join(sorted({*LOCAL_KERNELS, *PAIRWISE}))
    if isinstance(kernel, str):
        if kernel in LOCAL_KERNELS:
            return LOCAL_KERNELS[kernel](gamma=gamma)
        if kernel not in PAIRWISE:
            raise UserError(f"Unknown kernel {kernel!r}: expected one of {known}.")
        return PairwiseKernel(kernel, {} if gamma == "median" else {"gamma": _number(gamma)})
    if gamma != "median":
        raise UserError(
            f"gamma={gamma!r} and kernel={kernel!r} were both given, but gamma goes with the name "
            f"of a kernel. Put it into the kernel: RBF(gamma={gamma!r}), for example."
        )
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return FunctionKernel(kernel)
    raise UserError(
        f"kernel must be a name, a Kernel or a function k(X, C), got {kernel!r}. Names: {known}."
    )


def manhattan(X: Any, C: Any, *, unit: float = 1.0) -> Any:
    """Σ_j |x_j - c_j| / unit, which in NumPy no other row changes.  (n, d), (m, d) -> (n, m)"""
    if unit > 1:  # the sum might be too large: divide first; a small unit divides what is small
        return manhattan(X / unit, C / unit)
    if not is_foreign(X):
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        dense = _Dense(C.astype(dtype, copy=False), np.arange(C.shape[1]))
        with np.errstate(over="ignore"):
            return dense(X) / dtype(unit)
    xp = namespace(X, C)
    s = xp.abs(X[:, :1] - C[:, :1].T)
    for j in range(1, X.shape[1]):
        s = s + xp.abs(X[:, j : j + 1] - C[:, j : j + 1].T)
    return s / unit


class _Dense:
    """X -> a total + Σ_j |x_j - c_j| over some columns, in the precision of C."""

    def __init__(self, C: np.ndarray, columns: np.ndarray, total: np.ndarray | None = None) -> None:
        n = len(columns)
        self._columns = columns
        self._landmarks = np.zeros((n + -n % COLUMNS, len(C)), dtype=C.dtype)  # side by side
        self._landmarks[:n] = C.T[columns]
        self._total = np.zeros(len(C), dtype=C.dtype) if total is None else total

    def __call__(self, X: np.ndarray, sparse: tuple[np.ndarray, ...] = _NO_SPARSE) -> np.ndarray:
        """The distances; in single precision, those over `sparse` columns are included."""
        dtype = self._total.dtype
        X = np.ascontiguousarray(X, dtype)
        out = np.empty((len(X), len(self._total)), dtype)
        some = np.zeros((ROWS, len(self._landmarks)), dtype)  # the last columns stay 0
        dense = (X, self._columns, self._landmarks, self._total, some, out)
        if dtype == np.float32:
            _add_in_single(*dense, *sparse)
        else:
            _add_in_double(*dense)
        return out


class SparseManhattan:
    """X -> Σ_j |x_j - c_j| in single precision, where most columns hold mostly one number.

    Sums for each column's commonest number among the landmarks are computed once; a row is compared
    where it has another, so it rounds as the largest difference does.  (n, d) -> (n, m)
    """

    def __init__(self, C: np.ndarray) -> None:
        C = np.asarray(C, np.float32)
        common, second, share = _most_common(C)
        places = np.flatnonzero(share >= COMMON)
        columns = C[:, places].T
        numbers = np.stack([common[places], second[places]])
        usual = np.abs(columns - numbers[0][:, None])
        differences = np.abs(numbers[1][:, None] - columns) - usual
        self._sparse = places, numbers, np.stack([columns, usual, differences])
        total = usual.sum(axis=0, dtype=float).astype(np.float32)
        self._dense = _Dense(C, np.flatnonzero(share < COMMON), total)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return self._dense(X, self._sparse)


def _most_common(C: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each column's most common number, the second most common, and the share of the first."""
    ordered, n = np.sort(C, axis=0), len(C)
    starts = np.ones(C.shape, dtype=bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = np.maximum.accumulate(np.where(starts, np.arange(n)[:, None], 0), axis=0)
    length = np.arange(1, n + 1)[:, None] - first  # of each run up to here
    longest, columns = length.argmax(axis=0), np.arange(C.shape[1])
    number, share = ordered[longest, columns], length[longest, columns] / n
    return number, ordered[np.where(ordered == number, 0, length).argmax(axis=0), columns], share


@inlined
def _add_dense(X: Any, columns: Any, C: Any, total: Any, some: Any, out: Any) -> None:
    # One row at a time and landmarks side by side: sums are taken in one order for all of them.
    n, m = out.shape[0], out.shape[1]
    for first in range(0, n, ROWS):
        last = first + ROWS if first + ROWS < n else n
        for i in range(first, last):
            for j in range(m):
                out[i, j] = total[j]
            for k in range(columns.shape[0]):
                some[i - first, k] = X[i, columns[k]]
        for k in range(0, C.shape[0], COLUMNS):
            for i in range(first, last):
                a, b = some[i - first, k], some[i - first, k + 1]
                c, d = some[i - first, k + 2], some[i - first, k + 3]
                for j in range(m):
                    left = abs(a - C[k, j]) + abs(b - C[k + 1, j])
                    right = abs(c - C[k + 2, j]) + abs(d - C[k + 3, j])
                    out[i, j] += left + right


@compiled
def _add_in_double(X: Any, columns: Any, C: Any, total: Any, some: Any, out: Any) -> None:
    _add_dense(X, columns, C, total, some, out)


@compiled
def _add_in_single(
    X: Any, at: Any, C: Any, total: Any, some: Any, out: Any, places: Any, common: Any, sparse: Any
) -> None:
    _add_dense(X, at, C, total, some, out)
    m = out.shape[1]
    for i in range(X.shape[0]):
        for k in range(places.shape[0]):
            x = X[i, places[k]]
            if x == common[0, k]:
                continue
            if x == common[1, k]:
                for j in range(m):
                    out[i, j] += sparse[2, k, j]
            else:
                for j in range(m):
                    out[i, j] += abs(x - sparse[0, k, j]) - sparse[1, k, j]
        for j in range(m):
            if out[i, j] < 0:  # by rounding
                out[i, j] = 0
