"""Leave one kind out: each kind in turn is the seen one; the others appear only in the test."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_validate
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from eqsep.errors import ParameterError, UserError
from eqsep.evaluation.kinds import (
    OVERALL,
    anomalous_kinds,
    average_precision_by_kind,
    check_kinds,
    check_share,
)
from eqsep.progress import steps
from eqsep.separators.scores import anomaly_score

_BLOCKS = 2.0  # times sqrt(n): the blocks of time that n rows are divided into
_GAP = 0.1  # of a block next to one of the test: its rows are not trained on


@dataclass(frozen=True)
class Tested:
    """The test rows behind a result: which they are, of what kind, and how they were scored."""

    rows: np.ndarray  #: Their places in the table.
    kind: np.ndarray
    score: np.ndarray  #: Larger is more anomalous.
    normal: str  #: The name of the normal kind.


@dataclass(frozen=True)
class SeenKind:
    """How an estimator that saw one kind of anomaly does on the test rows."""

    kind: str  #: The kind that was seen in training.
    seen: float  #: Average precision of the seen kind against the test normals.
    unseen: float  #: Of all unseen kinds together; NaN if there are none.
    overall: float  #: Of all anomalies.
    #: The share of anomalies in each of the three: what a random score gets.
    seen_prevalence: float
    unseen_prevalence: float
    overall_prevalence: float
    by_kind: dict[str, float]  #: Average precision of each kind, and "overall".
    tested: Tested | None = field(default=None, repr=False, compare=False)  #: None in a mean.


@dataclass(frozen=True)
class LeaveOneKindOut:
    """The result of `leave_one_kind_out` or `cross_validate_kind`; `str()` gives a table."""

    results: tuple[SeenKind, ...]  #: One for each seen kind, in alphabetical order.

    @property
    def mean(self) -> SeenKind:
        """The mean over the seen kinds; `by_kind` is the mean of each kind over its appearances."""
        every, kinds = self.results, self.results[0].by_kind
        by_kind = {kind: float(np.mean([one.by_kind[kind] for one in every])) for kind in kinds}
        numbers: dict[str, Any] = {
            name: float(np.mean([getattr(one, name) for one in every])) for name in _NUMBERS
        }
        return SeenKind(kind="mean", by_kind=by_kind, **numbers)

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each seen kind and one for the mean, ready for a data frame."""
        return [
            {name: getattr(result, name) for name in ("kind", *_NUMBERS, "by_kind")}
            for result in (*self.results, self.mean)
        ]

    def __str__(self) -> str:
        cells = [("seen kind", "seen", "(chance)", "unseen", "(chance)", "overall", "(chance)")]
        for row in self.rows():
            numbers = []
            for name in ("seen", "unseen", "overall"):
                numbers += [f"{row[name]:.3f}", f"({row[f'{name}_prevalence']:.3f})"]
            cells.append((row["kind"], *numbers))
        return aligned(cells)


_NUMBERS = [one.name for one in fields(SeenKind) if one.name not in ("kind", "by_kind", "tested")]


def leave_one_kind_out(  # noqa: PLR0913  the rows, their division, and which fits are wanted
    estimator: Any,
    X: Any,
    kind: Any,
    *,
    normal: str = "normal",
    seen: Sequence[str] | None = None,
    groups: Any = None,
    time: Any = None,
    test_size: float = 0.5,
    random_state: Any = None,
) -> LeaveOneKindOut:
    """Train on one kind of anomaly at a time, with the others only in the test.

    Each kind in turn is the seen one: a clone of the estimator is fitted on the training parts of
    the normal rows and of that kind, and tested on their test parts and *all* rows of the others.

    Parameters
    ----------
    estimator : scikit-learn estimator
        Fitted with y = 1 for the seen kind and 0 for normal rows; scored by `anomaly_score`.
    X : array or frame of shape (n_rows, n_features)
    kind : array-like of str of shape (n_rows,)
        The normal kind, and at least two kinds of anomaly.
    normal : str, default="normal"
        The name of the normal kind.
    seen : sequence of str, default=None
        The kinds that are the seen one in turn (default: all); the division stays the same.
    groups, time : array-like of shape (n_rows,), default=None
        The recording, machine or card of each row, and its time (a number or a date). Whole groups,
        or else blocks of time, are then either in training or in the test; a kind in only one group
        is never the seen one. Both are passed to the estimator if its `fit` takes them.
    test_size : float, default=0.5
        The share of the normal rows and of the seen kind that is kept for the test.
    random_state : int, RandomState instance or None, default=None
        Determines the division.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1, size=(n, 1)) for c, n in [(0, 80), (5, 20), (-5, 20)]])
    >>> kind = np.repeat(["normal", "high", "low"], [80, 20, 20])
    >>> print(leave_one_kind_out(SVC(kernel="linear"), X, kind, random_state=0))
    seen kind  seen (chance) unseen (chance) overall (chance)
    high      1.000  (0.200)  0.197  (0.333)   0.555  (0.429)
    low       1.000  (0.200)  0.197  (0.333)   0.555  (0.429)
    mean      1.000  (0.200)  0.197  (0.333)   0.555  (0.429)
    """
    kind = np.asarray(column_or_1d(kind))
    check_kinds(kind, normal=normal)
    units = units_of(groups, time, n_rows=len(kind))
    seen_kinds = _check_divisible(kind, normal=normal, test_size=test_size)
    rng = check_random_state(random_state)
    if units is None:
        in_test = _divide(kind, test_size=test_size, rng=rng)
        may_train = ~in_test
    else:
        in_test = _divide_units(kind, units, normal=normal, test_size=test_size, rng=rng)
        may_train = units.apart(in_test)
        seen_kinds = _on_both_sides(seen_kinds, kind, in_test, may_train)
    if seen is not None:
        if not len(seen) or any(name not in seen_kinds for name in seen):
            raise ParameterError("seen", expected=f"some of the kinds {seen_kinds}", got=list(seen))
        seen_kinds = [name for name in seen_kinds if name in seen]
    trains = [may_train & np.isin(kind, (normal, one)) for one in seen_kinds]
    models = _fit_each(estimator, X, kind != normal, trains=trains, groups=groups, time=time)
    results = []
    for model, train, one in zip(models, trains, seen_kinds, strict=True):
        test = ~train if units is None else in_test
        tested = Tested(np.flatnonzero(test), kind[test], anomaly_score(model, X)[test], normal)
        results.append(_measure(tested, seen=one))
    return LeaveOneKindOut(tuple(results))


def cross_validate_kind(  # noqa: PLR0913  the rows and their division
    estimator: Any,
    X: Any,
    kind: Any,
    *,
    normal: str = "normal",
    groups: Any = None,
    time: Any = None,
    n_folds: int = 5,
    random_state: Any = None,
) -> LeaveOneKindOut:
    """How well the only kind of anomaly is found once it is seen, by cross-validation.

    Each of `n_folds` parts, fewer if there are fewer anomalies, is scored by a clone fitted on the
    others. Average precision compares ranks within parts, since the scales of scores may differ.
    `unseen` is NaN.

    Parameters
    ----------
    estimator, X, normal, groups, time, random_state
        As in `leave_one_kind_out`; no group or block of time is in two parts.
    kind : array-like of str of shape (n_rows,)
        The normal kind, and one kind of anomaly.
    n_folds : int, default=5

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1, size=(n, 1)) for c, n in [(0, 80), (5, 20)]])
    >>> kind = np.repeat(["normal", "high"], [80, 20])
    >>> round(cross_validate_kind(SVC(kernel="linear"), X, kind, random_state=0).mean.seen, 2)
    1.0
    """
    kind = np.asarray(column_or_1d(kind))
    check_kinds(kind, normal=normal)
    seen, *others = anomalous_kinds(kind, normal)
    if others:
        raise UserError(
            f"cross_validate_kind takes one kind of anomaly, got {[seen, *others]}. Use "
            f"leave_one_kind_out, which measures unseen kinds too."
        )
    units = units_of(groups, time, n_rows=len(kind))
    unit = np.arange(len(kind)) if units is None else units.unit
    each = [len(np.unique(unit[kind == name])) for name in (seen, normal)]
    if min(*each, n_folds) < 2:
        what = "rows" if units is None else "groups or blocks of time"
        raise UserError(
            f"Cross-validation needs at least 2 parts, and as many {what} of each kind: got "
            f"n_folds={n_folds}, {each[0]} {what} of {seen!r} and {each[1]} of {normal!r}. Label "
            f"more rows."
        )
    by = StratifiedKFold if units is None else StratifiedGroupKFold
    folds = by(min(*each, n_folds), shuffle=True, random_state=random_state)
    tests = [test for _, test in folds.split(kind, kind, None if units is None else unit)]
    in_tests = [np.isin(np.arange(len(kind)), test) for test in tests]
    trains = [~test if units is None else units.apart(test) for test in in_tests]
    models = _fit_each(estimator, X, kind != normal, trains=trains, groups=groups, time=time)
    score = np.empty(len(kind))
    for model, test in zip(models, tests, strict=True):
        score[test] = rankdata(anomaly_score(model, X)[test]) / len(test)
    tested = Tested(np.arange(len(kind)), kind, score, normal)
    return LeaveOneKindOut((_measure(tested, seen=seen),))


def _check_divisible(kind: np.ndarray, *, normal: str, test_size: float) -> list[str]:
    """The kinds of anomaly, if each can be divided while another stays unseen."""
    names = anomalous_kinds(kind, normal)
    if len(names) < 2:
        raise UserError(
            f"leave_one_kind_out needs at least two kinds of anomaly, one seen and one unseen, "
            f"got only {names}. Use cross_validate_kind to measure a single kind."
        )
    counts = {name: int(np.sum(kind == name)) for name in (normal, *names)}
    scarce = {name: n for name, n in counts.items() if n < 2}
    if scarce:
        raise UserError(
            f"Every kind needs at least 2 rows, one to train and one to test on, got {scarce}. "
            f"Drop these kinds or merge them with others."
        )
    check_share("test_size", test_size, hint="Pass 0.5 for half.")
    return names


@dataclass(frozen=True)
class RowUnits:
    """What each row belongs to: its group, or its block of time."""

    unit: np.ndarray  # numbers from 0 on; blocks in the order of time
    share: np.ndarray  # of the block before the row; 1/2 in groups, which have no neighbours

    def apart(self, in_test: np.ndarray) -> np.ndarray:
        """Which rows are neither in the test nor near a unit of it.  (n_rows,) -> (n_rows,)"""
        tested = np.unique(self.unit[in_test])
        before = (self.share < _GAP) & np.isin(self.unit - 1, tested)
        after = (self.share > 1 - _GAP) & np.isin(self.unit + 1, tested)
        return ~(in_test | before | after)


def units_of(groups: Any, time: Any, *, n_rows: int) -> RowUnits | None:
    """What rows belong to: their group, else a block of time; None if neither is known."""
    if groups is not None:
        group = np.unique(_one_each(groups, "groups", n_rows), return_inverse=True)[1]
        return RowUnits(group, np.full(n_rows, 0.5))
    if time is None:
        return None
    when = _one_each(time, "time", n_rows)
    if when.dtype.kind not in "iufmM" or np.isnan(when).any():
        raise UserError(
            f"time expects a number or a date for each row, got values such as {when[0]!r}."
        )
    when = when.astype("int64" if when.dtype.kind in "mM" else float).astype(float)
    shares = np.linspace(0, 1, 1 + max(int(_BLOCKS * np.sqrt(n_rows)), 2))
    edges = np.unique(np.quantile(when, shares, method="lower"))
    if len(edges) < 3:
        raise UserError("Nearly all rows have the same time: leave the time out.")
    block = np.clip(np.searchsorted(edges, when, side="right") - 1, 0, len(edges) - 2)
    return RowUnits(block, (when - edges[block]) / np.diff(edges)[block])


def _one_each(values: Any, name: str, n_rows: int) -> np.ndarray:
    found = np.asarray(column_or_1d(values))
    if len(found) != n_rows:
        raise UserError(f"Expected {n_rows:,} values of {name}, one a row, got {len(found):,}.")
    return found


def _divide(kind: np.ndarray, *, test_size: float, rng: Any) -> np.ndarray:
    """Which rows are kept for the test: this share of every kind, at least one row."""
    in_test = np.zeros(len(kind), dtype=bool)
    for name in np.unique(kind):
        rows = rng.permutation(np.flatnonzero(kind == name))
        in_test[rows[: np.clip(round(test_size * len(rows)), 1, len(rows) - 1)]] = True
    return in_test


def _divide_units(
    kind: np.ndarray, units: RowUnits, *, normal: str, test_size: float, rng: Any
) -> np.ndarray:
    """The same by whole units, the rarest kind first; a kind in one unit is in the test: unseen."""
    unit = units.unit
    in_test = np.full(unit.max() + 1, -1)
    names = {name: np.unique(unit[kind == name]) for name in np.unique(kind).tolist()}
    if len(names[normal]) < 2:
        raise UserError(
            f"All {normal!r} rows are in the same group or block of time: expected at least 2, one "
            f"to train and one to test on. Leave out the groups, or pass others."
        )
    for mine in sorted(names.values(), key=len):
        wanted = int(np.clip(round(test_size * len(mine)), 1, max(len(mine) - 1, 1)))
        free = rng.permutation(mine[in_test[mine] < 0])
        n = max(wanted - int((in_test[mine] == 1).sum()), 0)
        in_test[free[:n]], in_test[free[n:]] = 1, 0
    return np.equal(in_test[unit], 1)


def _on_both_sides(
    kinds: list[str], kind: np.ndarray, in_test: np.ndarray, may_train: np.ndarray
) -> list[str]:
    """The kinds with rows both to train and to test on, if groups are kept whole."""
    trained, tested = set(kind[may_train].tolist()), set(kind[in_test].tolist())
    found = [name for name in kinds if name in trained & tested]
    if not found:
        raise UserError(
            f"Each kind of anomaly, {kinds}, is in only one group or block of time, so no kind can "
            f"be both seen and tested. Pass rows of more groups, or leave the groups out."
        )
    return found


def _fit_each(
    estimator: Any, X: Any, y: np.ndarray, *, trains: list[np.ndarray], groups: Any, time: Any
) -> list[Any]:
    """A clone of the estimator fitted on each set of training rows, in any form of X."""
    params = {
        name: np.asarray(values)
        for name, values in {"groups": groups, "time": time}.items()
        if values is not None and has_fit_parameter(estimator, name)
    }
    with steps(len(trains), "fits") as report:

        def count(estimator: Any, X: Any, y: Any) -> float:  # noqa: ARG001  a scorer's signature
            report(1)  # its scores are not used: they ignore kinds
            return 0.0

        cv = [(np.flatnonzero(train), np.flatnonzero(~train)) for train in trains]
        how: Any = {"error_score": "raise", "return_estimator": True, "params": params}
        run = cross_validate(estimator, X, y.astype(int), cv=cv, scoring=count, **how)
    return run["estimator"]


def _measure(tested: Tested, *, seen: str) -> SeenKind:
    """Average precision and prevalence of the seen kind, the unseen ones and all of them."""
    score, kind, normal = tested.score, tested.kind, tested.normal
    by_kind = average_precision_by_kind(score, kind, normal=normal)
    known, others = (kind == seen) | (kind == normal), kind != seen
    unseen = {OVERALL: np.nan}
    if (kind[others] != normal).any():
        unseen = average_precision_by_kind(score[others], kind[others], normal=normal)
    return SeenKind(
        kind=str(seen),
        seen=by_kind[str(seen)],
        unseen=unseen[OVERALL],
        overall=by_kind[OVERALL],
        seen_prevalence=float(np.mean(kind[known] != normal)),
        unseen_prevalence=float(np.mean(kind[others] != normal)),
        overall_prevalence=float(np.mean(kind != normal)),
        by_kind=by_kind,
        tested=tested,
    )


def aligned(cells: Sequence[tuple[str, ...]]) -> str:
    """Rows of text in columns, the first one flush left and the others flush right."""
    first, *widths = (max(map(len, column)) for column in zip(*cells, strict=True))
    return "\n".join(
        " ".join([row[0].ljust(first), *map(str.rjust, row[1:], widths)]) for row in cells
    )
