"""Σ k kᵀ of kernel values, block by block: in place, and of a symmetric matrix one triangle.

Sums are in double precision. Single precision is twice as fast, and it rounds each product to about
what the kernel values, in single precision themselves, are rounded to. Where kernels are wide, sums
are large and nearly singular, and that would tell; where they are narrow, it does not.
"""

from functools import cached_property

import numpy as np

from eqsep.engine.compiled import add_triangle

BLOCK = 256  # rows at once: few enough for single precision, and their values stay in the cache
LIGHT = 4.0  # Σ k² of a block's rows at any landmark up to which its sum may be rounded
WORTH_ROUNDING = 2**34  # products of all rows: fewer take a second in double precision


class Gram:
    """The sum of k kᵀ over rows with kernel values k at m landmarks.

    Blocks of at most `BLOCK` rows in single precision are summed in it where no landmark is near
    many of them, and added up in double precision: coefficients then change by some 1e-5 of their
    size, and scores by some 1e-6. All others are summed in double precision.

    Parameters
    ----------
    m : int
    n_rows : int
        How many there will be in all: of few, every block is summed in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> gram = Gram(2, n_rows=2)
    >>> gram.add(np.array([[1.0, 2.0]]))
    >>> gram.add(np.array([[0.0, 1.0]]))
    >>> gram.matrix()
    array([[1., 2.],
           [2., 5.]])
    """

    def __init__(self, m: int, *, n_rows: int) -> None:
        self._lower = np.zeros((m, m))
        self._rounds = n_rows * m**2 >= WORTH_ROUNDING

    def add(self, k: np.ndarray) -> None:
        """Some rows more.  (n, m)"""
        light = self._rounds and _is_light(k)
        values = k if light else k.astype(np.float64, copy=False)
        # Not SciPy's syrk, which would let no other thread run.
        product = self._single if light else self._double
        add_triangle(np.matmul(values.T, values, out=product), self._lower)

    @cached_property
    def _single(self) -> np.ndarray:
        return np.empty_like(self._lower, dtype=np.float32)

    @cached_property
    def _double(self) -> np.ndarray:
        return np.empty_like(self._lower)

    def __iadd__(self, other: "Gram") -> "Gram":
        self._lower += other._lower
        return self

    def matrix(self) -> np.ndarray:
        """All of it.  (m, m)"""
        lower = np.tril(self._lower)
        return lower + np.tril(lower, -1).T


def _is_light(k: np.ndarray) -> bool:
    if k.dtype != np.float32 or len(k) > BLOCK:
        return False
    return bool(np.einsum("ij,ij->j", k, k).max(initial=0.0) <= LIGHT)
