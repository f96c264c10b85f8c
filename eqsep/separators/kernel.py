"""The equality separator in a kernel's span."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from eqsep.activations import GaussianBump
from eqsep.arrays import check_weight, device, is_foreign, namespace, validate_rows
from eqsep.engine import nystroem
from eqsep.engine.kernels import Kernel, as_kernel
from eqsep.engine.nystroem import Statistics
from eqsep.errors import UserError, UserTypeError
from eqsep.labels import LabelReader, column, may_be_normal, read_labels
from eqsep.separators.base import Separator, check_both_classes
from eqsep.separators.linear import EqualitySeparator
from eqsep.tables.batches import (
    Batches,
    LabelledRows,
    Strata,
    batches_from,
    prefetched,
    sample_size,
)
from eqsep.tables.reading import is_stream

Rows = LabelledRows[Any]  # an array of rows, of any library
_NO_ROWS = "There are no rows: expected at least one batch with some."


def _only(closed: bool) -> Any:
    """Make a method available for this value of `closed`, with a reason for the other one."""

    def check(self: Any) -> bool:
        if bool(self.closed) is not closed:
            raise AttributeError(
                f"{type(self).__name__} has this with closed={closed} only: "
                + ("its sums add up." if closed else "it is the distance from a hyperplane.")
            )
        return True

    return available_if(check)


@dataclass(kw_only=True, eq=False, repr=False)
class KernelEqualitySeparator(Separator):
    """f(x) = Σ_j a_j k(x, c_j) over landmarks c_j: normal where f(x) = 1.

    With `closed=True` there is no bias and the kernel is local, so far from the landmarks f is 0
    and the score |1 - f(x)| is 1: the normal region is closed. The coefficients minimise

        Σ w (f(x) - t)² + alpha ||a||²,   t = 1 for a normal row and `target` for an anomalous one,

    one linear system in the sums G = Σ w k kᵀ and r = Σ w t k. Sums add up, so `partial_fit`,
    `merge` and `forget` are exact up to rounding.

    With `closed=False` a linear `EqualitySeparator` is fitted to the kernel values
    (k(x, c_1), …, k(x, c_m)) as columns.

    Parameters
    ----------
    kernel : {"rbf", "exponential", "laplacian"}, other name, Kernel or callable, default="rbf"
        Another name is one of `sklearn.metrics.pairwise`, for `closed=False`. A callable maps rows
        (n, d) and landmarks (m, d) to a matrix (n, m).
    gamma : float or "median", default="median"
        How fast the kernel falls off; "median" is 1 / the median dissimilarity of two landmarks.
    n_landmarks : int, default=None
        How many distinct rows become landmarks, up to a third of them anomalous; None takes all.
        Time and memory grow with its square: beyond a few thousand rows give a number, such as
        1500.
    landmarks : array-like of shape (n_landmarks, n_features), default=None
        The landmarks themselves.
    closed : bool, default=True
    alpha : float, default=1.0
        The ridge penalty, in units of the loss of a row of weight 1.
    target : float, default=0.0
        What f should be at an anomalous row, at most 0. For `closed=True`.
    separator : EqualitySeparator, default=None
        The separator of the kernel values for `closed=False`; by default one with the penalty
        2 alpha / (total weight) on its mean loss.
    chunk_size : int, default=2048
        The most rows held as kernel values at once.
    normal, random_state
        As in `EqualitySeparator`; the latter draws the landmarks.

    Attributes
    ----------
    landmarks_ : array of shape (n_landmarks, n_features)
    kernel_ : Kernel
        The kernel, with its gamma as a number.
    coef_ : array of shape (n_landmarks,)
        The a_j. For `closed=True`.
    gram_, moment_ : arrays of shape (n_landmarks, n_landmarks) and (n_landmarks,)
        The sums G and r. For `closed=True`.
    weight_sum_ : ndarray of shape (2,)
        The weight of all normal rows learnt, then of the anomalous ones. For `closed=True`.
    separator_ : EqualitySeparator
        For `closed=False`.
    classes_ : ndarray of shape (2,)
        The normal label, then the anomalous one; `labels_` also knows the kinds learnt.

    Notes
    -----
    The decision threshold on |1 - f| is 1/2, half of what a far row scores.

    The sums are taken in double precision. Pieces in any order give the coefficients of one fit to
    a relative 2e-16 λ / alpha or better, where λ is the largest eigenvalue of G. Rows of single
    precision are scored in it.

    Landmarks, sums and scores of a torch tensor stay on its device, and rows to score must come in
    the library of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from eqsep import KernelEqualitySeparator
    >>> angle = np.linspace(0, 6, 20)[:, None]
    >>> circle = np.hstack([np.cos(angle), np.sin(angle)])
    >>> X, y = np.vstack([circle, 3 * circle]), np.repeat([0, 1], 20)
    >>> model = KernelEqualitySeparator(gamma=1.0, alpha=0.1).fit(X[::2], y[::2])
    >>> model.partial_fit(X[1::2], y[1::2]).predict([[0.0, 1.0], [0.0, 3.0], [900.0, 0.0]])
    array([0, 1, 1])
    """

    kernel: Any = "rbf"
    gamma: float | str = "median"
    n_landmarks: int | None = None
    landmarks: Any = None
    closed: bool = True
    alpha: float = 1.0
    target: float = 0.0
    separator: EqualitySeparator | None = None
    chunk_size: int = 2048
    normal: Any = None
    random_state: Any = None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_") or hasattr(self, "separator_")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the landmarks and learn the coefficients.

        Parameters
        ----------
        X : array-like or torch tensor of shape (n_samples, n_features), or batches of them
            Batches are a `pyarrow.dataset.Dataset`, a function that returns an iterator, or an
            iterable, of rows or pairs (X, y). Landmarks are chosen among a sample of all rows, or
            among the first rows of an iterator.
        y : array-like of shape (n_samples,)
            0 / 1, two labels, or "normal" and kinds of anomaly. For batches that are not pairs, the
            name of the column of labels.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        if is_stream(X):
            if sample_weight is not None:
                raise UserError("sample_weight goes with rows in memory: batches have none.")
            return self._fit_stream(batches_from(X, y, name=type(self).__name__))
        self._clear()
        X = self._check(X, reset=True)
        labels = read_labels(y, normal=self.normal)
        X, is_anomaly, weight = self._piece(X, y, sample_weight, labels)
        check_both_classes(is_anomaly)
        self._set_landmarks(X, is_anomaly, _checked_kernel(self))
        if self.closed:
            return self._record(self._sums(X, is_anomaly, weight), labels)
        self.labels_, self.classes_ = labels, labels.classes
        return self._fit_separator(X, is_anomaly, weight)

    @_only(closed=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn one more piece of the data; all pieces together give what one fit gives.

        The landmarks are those given, or rows of the first piece. A piece may hold one class only;
        if the first one does, and its label is neither 0, 1, a name nor `normal`, `classes` has to
        list all labels that will occur.
        """
        first = not hasattr(self, "gram_")
        if first:
            self._clear()
        X = self._check(X, reset=first)
        if first:
            known = y if classes is None else classes
            labels = read_labels(known, normal=self.normal, one_class=classes is None)
        else:
            labels = self.labels_
        labels = labels.including(y)
        X, is_anomaly, weight = self._piece(X, y, sample_weight, labels)
        kernel = _checked_kernel(self)
        if first:
            self._set_landmarks(X, is_anomaly, kernel)
        sums = self._sums(X, is_anomaly, weight)
        return self._record(sums if first else self._statistics + sums, labels)

    @_only(closed=True)
    def merge(self, other: "KernelEqualitySeparator") -> Self:
        """Take in what `other` has learnt from other rows, as if this had learnt them itself.

        Both must share kernel, landmarks, alpha, target and the normal label: fit one, and give the
        others its `landmarks_` and `kernel_`.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        _check_mergeable(self, other)
        labels = self.labels_.including(other.labels_.kinds)
        return self._record(self._statistics + other._statistics, labels)

    @_only(closed=True)
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows that were learnt, exactly up to rounding; landmarks taken from them stay."""
        sums = self._sums(*self._piece(self._rows(X), y, sample_weight, self.labels_))
        if (sums.weight > self.weight_sum_ * (1 + 1e-9)).any():
            raise UserError(
                f"Cannot forget more than was learnt: (normal, anomalous) rows of weight "
                f"{sums.weight.tolist()} were given, {self.weight_sum_.tolist()} were learnt. Pass "
                f"rows and weights as they were learnt."
            )
        return self._record(self._statistics - sums, self.labels_)

    def decision_function(self, X: Any) -> Any:
        """|1 - f(x)| - 1/2, or the decision function of the separator of kernel values."""
        X = self._rows(X)
        if self.closed:
            return abs(1 - self._map.evaluate(X, self.coef_)) - 0.5
        return self.separator_.decision_function(self._map.features(X))

    def predict_proba(self, X: Any) -> Any:
        """A Gaussian bump's membership of 1 - f(x), 1/2 at the threshold; one column a class."""
        X = self._rows(X)
        if not self.closed:
            return self.separator_.predict_proba(self._map.features(X))
        xp, bump = namespace(X), GaussianBump()
        normal = bump.membership((1 - self._map.evaluate(X, self.coef_)) / 0.5 * bump.half_width)
        return xp.stack([normal, 1 - normal], axis=1)

    @_only(closed=False)
    def distance(self, X: Any) -> np.ndarray:
        """How far each row's kernel values lie from the hyperplane among them."""
        return self.separator_.distance(self._map.features(self._rows(X)))

    @property
    def gamma_(self) -> float:
        """The kernel's gamma as a number ("median" where that is too large or small for one)."""
        return self.kernel_.gamma  # type: ignore[attr-defined]  # it is local

    def _clear(self) -> None:
        """Forget an earlier fit, also one with other parameters."""
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)

    def _check(self, X: Any, *, reset: bool) -> Any:
        return validate_rows(self, X, reset=reset, dtype=[np.float64, np.float32])

    def _rows(self, X: Any) -> Any:
        """Rows to score, checked against those of the fit, also for their library and device."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        self._same_library(X)
        return X

    def _same_library(self, X: Any) -> None:
        mine, other = (
            (namespace(a).__name__.split(".")[-1], str(device(a))) for a in (self.landmarks_, X)
        )
        if mine != other:
            raise UserTypeError(
                f"{type(self).__name__} was fitted to rows of {' on '.join(mine)}, but got rows of "
                f"{' on '.join(other)}. Convert them: X.numpy(), torch.as_tensor(X) or X.to(...)."
            )

    def _piece(
        self, X: Any, y: Any, sample_weight: Any, labels: LabelReader
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Rows, 1.0 where anomalous, and their weights, without rows of weight 0."""
        is_anomaly = labels.encode(y)
        check_consistent_length(X, is_anomaly)
        weight = check_weight(sample_weight, n=len(is_anomaly))
        counted = np.flatnonzero(weight > 0)
        if len(counted) < len(weight):
            xp = namespace(X)
            X = xp.take(X, xp.asarray(counted, device=device(X)), axis=0)
        return X, is_anomaly[counted], weight[counted]

    def _fit_stream(self, source: Batches) -> Self:
        """Sum up all batches, then solve once."""
        kernel = _checked_kernel(self)
        if not self.closed:
            raise UserError("closed=False holds all rows at once: pass an array, not batches.")
        self._clear()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

        def check(X: Any) -> Any:
            return self._check(X, reset=not hasattr(self, "n_features_in_"))

        stream = begin_stream(source, check, normal=self.normal, rng=rng)
        if not stream.is_whole and self.landmarks is None and self.n_landmarks is None:
            raise UserError(
                "Of so many rows not all can become landmarks: set n_landmarks=1500, for example."
            )
        labels = read_labels(stream.labels, normal=self.normal, one_class=not source.again)
        self._set_landmarks(stream.rows.rows, labels.encode(stream.rows.y), kernel)
        sums: Statistics | None = None
        for rows in stream.batches:
            labels = labels.including(rows.y)
            more = self._sums(*self._piece(rows.rows, rows.y, None, labels))
            sums = more if sums is None else sums + more
        assert sums is not None  # there is a batch, or there would be no stream
        check_both_classes(np.flatnonzero(sums.weight))
        return self._record(sums, labels)

    def _set_landmarks(self, X: Any, is_anomaly: np.ndarray, kernel: Kernel) -> None:
        """Take the landmarks given, or choose them among `X`; read the bandwidth off them."""
        if self.landmarks is None:
            rng = check_random_state(self.random_state)
            landmarks = nystroem.choose_landmarks(X, is_anomaly, n=self.n_landmarks, rng=rng)
        else:
            landmarks = nystroem.given_landmarks(self.landmarks, X)
        self.landmarks_, self.kernel_ = landmarks, kernel.resolved(landmarks)

    @property
    def _map(self) -> nystroem.KernelMap | nystroem.TensorMap:
        kind = nystroem.TensorMap if is_foreign(self.landmarks_) else nystroem.KernelMap
        return kind(self.kernel_, self.landmarks_, self.chunk_size)

    @property
    def _statistics(self) -> Statistics:
        return Statistics(self.gram_, self.moment_, self.weight_sum_)

    def _sums(self, X: Any, is_anomaly: np.ndarray, weight: np.ndarray) -> Statistics:
        self._same_library(X)
        target = np.where(is_anomaly == 1, self.target, 1.0)
        total = np.array([weight[is_anomaly == 0].sum(), weight[is_anomaly == 1].sum()])
        return self._map.statistics(X, target, weight, total=total)

    def _record(self, sums: Statistics, labels: LabelReader) -> Self:
        self.coef_, self.labels_, self.classes_ = sums.solve(self.alpha), labels, labels.classes
        self.gram_, self.moment_, self.weight_sum_ = sums.gram, sums.moment, sums.weight
        return self

    def _fit_separator(self, X: Any, is_anomaly: np.ndarray, weight: np.ndarray) -> Self:
        """The linear separator of the kernel values, in NumPy."""
        if is_foreign(X):
            raise UserTypeError(
                f"closed=False is fitted in NumPy, got {type(X).__name__}. Pass X.numpy(), or set "
                f"closed=True, which takes tensors."
            )
        normal, alpha = self.classes_[0], 2 * self.alpha / weight.sum()
        usual = EqualitySeparator(margin_class=normal, alpha=alpha, random_state=self.random_state)
        y = self.classes_[is_anomaly.astype(int)]
        separator = clone(usual if self.separator is None else self.separator)
        separator.set_params(normal=normal)
        self.separator_ = separator.fit(self._map.features(X), y, sample_weight=weight)
        return self


def _checked_kernel(separator: KernelEqualitySeparator) -> Kernel:
    """The kernel, before it has seen landmarks; refuses parameters that do not fit together."""
    kernel = as_kernel(separator.kernel, gamma=separator.gamma)
    if separator.closed and not kernel.is_local:
        raise UserError(
            f"closed=True needs a local kernel ('rbf', 'exponential', 'laplacian', or a "
            f"FunctionKernel with is_local=True), got {kernel!r}: where a kernel does not "
            f"vanish far away, nothing closes the normal region. Or set closed=False."
        )
    if separator.closed and separator.separator is not None:
        raise UserError("separator goes with closed=False: a closed fit has none.")
    if not separator.alpha >= 0 or not separator.target <= 0:
        got = f"got alpha={separator.alpha!r} and target={separator.target!r}"
        raise UserError(f"alpha must be at least 0 and target at most 0, {got}.")
    for name in ("chunk_size", "n_landmarks"):
        value = getattr(separator, name)
        if value is not None and not value >= 1:
            raise UserError(f"{name} must be at least 1, got {value!r}.")
    if separator.landmarks is not None and separator.n_landmarks is not None:
        raise UserError("landmarks and n_landmarks were both given: one of them says it all.")
    own: Kernel = clone(kernel)
    return own


def _check_mergeable(separator: KernelEqualitySeparator, other: KernelEqualitySeparator) -> None:
    """Refuse separators with sums that do not add up to those of one separator."""
    for name in ("closed", "alpha", "target", "kernel_", "landmarks_"):
        mine, others = getattr(separator, name), getattr(other, name)
        if not _same(mine, others):
            raise UserError(
                f"Only separators with the same {name} can be merged: this has {mine!r}, the "
                f"other {others!r}. Give both the landmarks_ and the kernel_ of one of them."
            )
    mine, others = separator.classes_[0], other.classes_[0]
    if mine != others:
        same = "Only separators with the same normal label can be merged"
        raise UserError(f"{same}: this has {mine!r}, the other {others!r}.")


def _same(a: Any, b: Any) -> bool:
    if not hasattr(a, "shape"):
        return bool(a == b)
    return type(a) is type(b) and a.shape == b.shape and bool((a == b).all())


class Stream(NamedTuple):
    """What a fit to batches begins with."""

    rows: Rows  # to choose landmarks from: a sample of all rows, or the first ones
    is_whole: bool  # whether these are all rows
    labels: np.ndarray  # that occur, in all rows or in the first ones
    batches: Iterator[Rows]  # all rows


def begin_stream(
    source: Batches, check: Callable[[Any], Any], *, normal: Any, rng: np.random.Generator
) -> Stream:
    """Sample batches, rows that may be `normal` apart; or the first ones if read only once."""

    def batches() -> Iterator[Rows]:
        return prefetched(_checked_batch(X, y, check) for X, y in source)

    if not source.again:
        return _first_rows(batches())
    strata: Strata[Rows] | None = None
    labels: set[Any] = set()
    for rows in batches():
        distinct, code = np.unique(rows.y, return_inverse=True)
        labels |= set(distinct.tolist())
        if strata is None:
            strata = Strata(sample_size(rows.rows.shape[1]), _joined)
        is_normal = np.array([may_be_normal(k, normal=normal) for k in distinct.tolist()])[code]
        strata.add(rows, is_normal=is_normal, rng=rng)
    if strata is None:
        raise UserError(_NO_ROWS)
    return Stream(strata.sample(), strata.is_whole, np.array(sorted(labels)), batches())


def _first_rows(batches: Iterator[Rows]) -> Stream:
    first: list[Rows] = []
    is_whole = True
    for rows in batches:
        first.append(rows)
        is_whole = sum(len(one.y) for one in first) <= sample_size(rows.rows.shape[1])
        if not is_whole:
            break
    if not first:
        raise UserError(_NO_ROWS)
    rows = _joined(first)
    return Stream(rows, is_whole, np.unique(rows.y), chain(first, batches))


def _checked_batch(X: Any, y: Any, check: Callable[[Any], Any]) -> Rows:
    X, y = check(X), column(y)
    if X.shape[0] != len(y):
        raise UserError(
            f"Found input variables with inconsistent numbers of samples: a batch has "
            f"{X.shape[0]} rows and {len(y)} labels. Pass one label a row."
        )
    return LabelledRows(X, y, np.arange(len(y)))


def _joined(parts: list[Rows]) -> Rows:
    return LabelledRows.join(parts, lambda arrays: namespace(arrays[0]).concat(arrays, axis=0))
