"""The choice of landmarks among rows: by value, so that order and repetition do not matter."""

import warnings
from typing import Any

import numpy as np

from eqsep.arrays import device, namespace, to_numpy
from eqsep.engine.compiled import in_threads
from eqsep.errors import UserError

ANOMALOUS_SHARE = 1 / 3
KEYED_AT_ONCE = 1024  # rows
MANY = 5000  # landmarks, whose sums take 200 MB


def given_landmarks(landmarks: Any, X: Any) -> Any:
    """Landmarks as an array like the rows `X`: of their library, device, precision and width."""
    xp = namespace(X)
    landmarks = xp.asarray(landmarks, dtype=X.dtype, device=device(X))
    if landmarks.ndim != 2 or landmarks.shape[1] != X.shape[1] or not landmarks.shape[0]:
        raise UserError(
            f"landmarks must have shape (n_landmarks, {X.shape[1]}), as wide as X, got "
            f"{tuple(landmarks.shape)}."
        )
    if not bool(xp.all(xp.isfinite(landmarks))):
        raise UserError("landmarks contain NaN or infinity: expected finite numbers.")
    return landmarks


def choose_landmarks(
    X: Any, is_anomaly: np.ndarray, *, n: int | None, rng: np.random.RandomState
) -> Any:
    """`n` distinct rows of `X`, up to a third anomalous; all if they are fewer or `n` is None.

    Which rows are drawn, and their order, depends on `rng` and the set of distinct rows only:
    repeating a row, or shuffling them, changes nothing. A row found in both classes is normal.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, 0.0, 1.0])
    >>> np.sort(choose_landmarks(X, y, n=9, rng=np.random.RandomState(0)), axis=0).ravel()
    array([1., 2., 3.])
    """
    key = row_keys(X, rng=rng)
    order = np.lexsort((is_anomaly, key))
    first = np.concatenate([[True], key[order][1:] != key[order][:-1]])
    distinct = order[first]
    if n is None and len(distinct) > MANY:
        warnings.warn(
            f"All {len(distinct):,} distinct rows become landmarks, and their sums take "
            f"{len(distinct) ** 2 * 8 / 1e9:.1f} GB. Set n_landmarks=1500, for example.",
            stacklevel=4,
        )
    n = len(distinct) if n is None else n
    chosen = distinct[_stratified(is_anomaly[distinct] == 1, n)]
    xp = namespace(X)
    return xp.take(X, xp.asarray(chosen, device=device(X)), axis=0)


def _stratified(is_anomaly: np.ndarray, n: int) -> np.ndarray:
    """The first rows of each class, `n` in all: a third anomalous as far as both classes last."""
    anomalies, normals = np.flatnonzero(is_anomaly), np.flatnonzero(~is_anomaly)
    share = max(n - len(normals), int(n * ANOMALOUS_SHARE))
    anomalies = anomalies[:share]
    return np.sort(np.concatenate([anomalies, normals[: n - len(anomalies)]]))


def row_keys(X: Any, *, rng: np.random.RandomState) -> np.ndarray:
    """A random 64-bit key for each row, the same for equal rows.

    Each column's bits are mixed (the finaliser of SplitMix64), multiplied by an odd number of its
    own and added up: distinct rows share a key with a chance of about 2^-64.
    """
    X = to_numpy(X)
    factors = rng.randint(0, 2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    key = np.empty(len(X), dtype=np.uint64)

    def fill(part: slice) -> None:
        for start in range(part.start, part.stop, KEYED_AT_ONCE):
            some = slice(start, min(start + KEYED_AT_ONCE, part.stop))
            rows = X[some].astype(np.float64) + 0.0  # -0 is 0
            mixed = _mixed(np.ascontiguousarray(rows).view(np.uint64) + factors)
            key[some] = (mixed * factors).sum(axis=1)

    in_threads(fill, len(X), steps=X.size)
    return _mixed(key)


def _mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = bits ^ (bits >> np.uint64(31))
    return mixed
