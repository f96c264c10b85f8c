"""Learning on: what is merged and forgotten, what was not learnt well, what to judge next."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from eqsep.checks import (
    check_row_labels,
    warn_of,
)
from eqsep.detector.fitting import PartialStatistics, accumulate_encoded, context_of
from eqsep.detector.holdout import with_groups
from eqsep.detector.naming import KindRows, has_promise, prediction_sets, short_kinds
from eqsep.detector.repeats import held_normal, warn_of_common_rows, warn_of_repeats
from eqsep.detector.scoring import NO_GROUPS, Held, scorer_of
from eqsep.detector.sets import rows_for
from eqsep.detector.trust import is_calibration_doubted
from eqsep.engine.nystroem import Statistics, narrowed, widened
from eqsep.errors import EqsepWarning, UserError, warn
from eqsep.labels import UNLABELLED, RowLabels, label_codes
from eqsep.tables.reading import Table, read_table

_FEWEST = 5  # normal rows: one that raises an alarm is a false one, as promised
_TIMES = 5  # the promised rate: more alarms than that among normal rows are not chance
_FAR = 0.9  # a score that says that a row is near no landmark, whatever the threshold


Learnt = tuple[RowLabels, Statistics, Held, KindRows]
Beside = tuple[np.ndarray, ...]  # rows, and what stands beside each, if anything


class NewKindWarning(EqsepWarning):
    """Rows learnt after the first fit are not told as their labels say."""


def rows_to_learn(
    detector: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    time: Any = None,
    sample_weight: Any = None,
) -> tuple[Table, RowLabels]:
    """More rows as the feature map of a fitted detector takes them, and their labels.

    Groups and times are found by the names of their columns where these are known.
    """
    context = context_of(detector)
    table = read_table(X, name=type(detector).__name__)
    if detector.feature_map_.grouping is not None and table.groups is None:
        there = {column.name for column in table.columns}
        known = (name if name in there else None for name in detector.feature_map_.grouping.columns)
        groups, time = (
            given if given is not None else name
            for given, name in zip((groups, time), known, strict=True)
        )
    table = with_groups(table, groups, time)
    if sample_weight is not None:
        from eqsep.detector.weighting import weighted  # few rows have weights

        table, y = weighted(table, y, sample_weight)
    table = detector.feature_map_.aligned(table)
    return table, context.row_labels(y, n_rows=table.n_rows)


def accumulated(
    detector: Any, X: Any, y: Any, groups: Any, time: Any, *, judged: bool, sample_weight: Any
) -> tuple[np.ndarray, RowLabels, PartialStatistics]:
    """More rows encoded, their labels, and what they teach; none calibrates that was `judged`."""
    table, labels = rows_to_learn(detector, X, y, groups, time, sample_weight)
    Z = detector.feature_map_.rows(table)
    return Z, labels, accumulate_encoded(context_of(detector, judged=judged), table, labels, Z)


def check_mergeable(detector: Any, other: Any) -> None:
    """Refuse detectors whose sums do not add up to those of one detector."""
    if detector is other:
        raise UserError(
            "A detector cannot be merged with itself: its rows would count twice. Pass one that "
            "has learnt other rows."
        )
    if not detector.feature_map_.is_same(other.feature_map_):
        raise UserError(
            "Only detectors with the same feature map can be merged, and these have chosen "
            "each its own. Fit one, and the others with Detector(feature_map=one.feature_map_)."
        )
    for name in ("alpha", "unlabelled_weight"):
        if getattr(detector, name) != getattr(other, name):
            raise UserError(
                f"Only detectors with the same {name} can be merged: this has "
                f"{getattr(detector, name)!r}, the other {getattr(other, name)!r}."
            )


def learnt_with(detector: Any, partial: PartialStatistics, anomalies: np.ndarray) -> Learnt:
    """How labels are read, the sums and all rows that are kept, once more rows are learnt.

    Warns where these were learnt before, the encoded `anomalies` among them too.
    """
    held = partial.held_out.encoded(detector.feature_map_)
    warn_of_repeats(detector, held.rows, anomalies, partial.kind_rows)
    sums = widened(detector.statistics_, 1 + len(partial.known.kinds)) + partial.statistics
    kind_rows = detector.kind_rows_ + partial.kind_rows
    return partial.known, sums, detector.calibration_.held + held, kind_rows


def merged(detector: Any, other: Any) -> Learnt:
    """How labels are read, the sums over the rows of both, and all rows that are kept."""
    check_mergeable(detector, other)
    warn_of_common_rows(detector, other)
    kinds = tuple(dict.fromkeys((*detector.kinds_, *other.kinds_)))
    labels = detector.labels_.labels or other.labels_.labels
    columns = [0, *(1 + kinds.index(kind) for kind in other.kinds_)]
    theirs = widened(other.statistics_, 1 + len(kinds), columns=columns)
    sums = widened(detector.statistics_, 1 + len(kinds)) + theirs
    held = detector.calibration_.held + other.calibration_.held
    kind_rows = detector.kind_rows_ + other.kind_rows_
    return replace(detector.labels_, kinds=kinds, labels=labels), sums, held, kind_rows


def left_without(detector: Any, partial: PartialStatistics) -> Learnt:
    """How labels are read, the sums and kept rows, once rows are forgotten; kinds have rows."""
    check_learnt(detector, partial)
    had, gone = detector.calibration_.held, partial.held_out.encoded(detector.feature_map_)
    kept = _held_left((had.rows, had.groups), (gone.rows, gone.groups))
    groups = had.groups[kept] if len(had.groups) else NO_GROUPS
    held = Held(
        had.rows[kept], had.anomalies[_held_left((had.anomalies,), (gone.anomalies,))], groups
    )
    left = detector.statistics_ - partial.statistics
    there = [0, *(1 + i for i, weight in enumerate(left.weight[1:]) if weight > 1e-9)]
    kinds = tuple(detector.kinds_[i - 1] for i in there[1:])
    mine, theirs = ((p.rows, p.kind, p.groups) for p in (detector.kind_rows_, partial.kind_rows))
    kind_rows = detector.kind_rows_.take(_left(mine, theirs)[0])
    return replace(detector.labels_, kinds=kinds), narrowed(left, there), held, kind_rows


def check_learnt(detector: Any, partial: PartialStatistics) -> None:
    """Refuse to forget more rows than were learnt."""
    kinds, weight = partial.known.kinds, partial.statistics.weight
    learnt = widened(detector.statistics_, 1 + len(kinds)).weight
    if (weight <= learnt * (1 + 1e-9) + 1e-9).all():
        return
    given, had = (
        ", ".join(f"{w:g} {name}" for w, name in zip(weights, ("normal", *kinds), strict=True))
        for weights in (weight, learnt)
    )
    raise UserError(
        f"Cannot forget more than was learnt: {given} rows (that do not calibrate) were given, "
        f"{had} were learnt. Pass rows and labels as they were learnt."
    )


def warn_of_rows(
    detector: Any, Z: np.ndarray, labels: RowLabels, *, known: RowLabels, judged: bool = False
) -> None:
    """Warn of labels unlike those before, and of rows that are not told as their labels say.

    Landmarks come from the first fit: rows that are near none of them are hardly learnt. Looked at
    are normal rows, of which few should raise an alarm, and each kind beyond `known`, most of whose
    rows should raise one that names it. Rows that were `judged` raised one, whatever they are.
    """
    warn_of(check_row_labels(labels, known=known))
    scorer = scorer_of(detector)
    normal, limit = Z[labels.code == 0], _FAR if judged else min(detector.threshold_, _FAR)
    high = scorer.away(normal) > limit
    if high.sum() >= _FEWEST and high.mean() > _TIMES * detector.false_alarm_rate:
        hint, topic = "Fit again with these rows among the others.", ""
        if not judged:
            topic = "picked_rows"
            hint += " If they were picked because they raised an alarm, pass judged=True."
        message = (
            f"Of {len(normal):,} normal rows {high.mean():.0%} have an |1 - f| above {limit:.2f} "
            f"now that they are learnt, where the threshold is {detector.threshold_:.2f}: no "
            f"landmark of the first fit is near them."
        )
        warn(NewKindWarning(message, hint=hint, topic=topic))
    for code, kind in enumerate(labels.kinds[len(known.kinds) :], start=1 + len(known.kinds)):
        rows = Z[labels.code == code]
        alarm = float(np.mean(scorer.scores(rows) > detector.threshold_))
        named, other = _names_of(detector, rows, kind)
        if alarm < 0.5:
            advice = (
                f"they lie among normal rows, or near no landmark of the first fit. If {kind!r}"
                f" is another word for normal, correct the labels and learn them from the "
                f"model as it was before; else fit anew with these rows too."
            )
        elif named >= 0.5:
            continue
        elif other is not None:
            advice = (
                f"most look like {other!r}. If both are one kind, give them one name; else alarms "
                f"of it will be called {kind!r} or {other!r}."
            )
        else:
            advice = (
                f"no landmark of the first fit is near them, and they are too few to be named "
                f"without ({rows_for(detector.unseen_rate):,} are needed). Fit anew with these "
                f"rows too."
            )
        message = (
            f"The kind {kind!r} is new, and of its rows ({len(rows):,}) {alarm:.0%} raise an "
            f"alarm and {named:.0%} are told from other kinds now that they are learnt: {advice}"
        )
        warn(NewKindWarning(message))


def _names_of(detector: Any, rows: np.ndarray, kind: str) -> tuple[float, str | None]:
    """The share of a kind's rows that are taken for it, and another that more are taken for.

    Each row is judged without itself; where the rows are too few, all are by their likeness.
    """
    if has_promise(detector) and kind not in short_kinds(detector):
        shares = detector.kind_rows_.naming.taken_for(kind)
    else:
        sets, _ = prediction_sets(detector, rows)
        shares = dict(zip(detector.kinds_, sets.mean(axis=0).tolist(), strict=True))
    named = shares.pop(kind, 0.0)
    other = max(shares, key=lambda name: shares[name], default=None)
    return named, other if other is not None and shares[other] > named else None


def suspects(
    detector: Any, X: Any, y: Any = None, *, groups: Any = None, time: Any = None, n: int = 20
) -> np.ndarray:
    """The rows that calibrate, unlabelled or doubted, and score highest: for a person to judge.

    These are rows without a label, or those labelled normal where all are labelled and rows are
    doubted. An anomaly among them makes the threshold too high. One that is found is labelled:
    `forget` it with the label that it had and `partial_fit` it with its kind, or fit anew. A row
    that turns out to be normal stays as it was: in a new fit labelled normal rows alone would set
    the threshold, and these few are those that score highest.

    Parameters
    ----------
    detector : Detector
    X : table
        Rows that were learnt; others are left out.
    y : array-like of shape (n_rows,), default=None
        The labels that they had.
    groups, time : array-like of shape (n_rows,) or str, default=None
        As they were learnt.
    n : int, default=20
        How many to list at most.

    Returns
    -------
    places : ndarray of int
        Where they stand in the table, the highest score first.

    Examples
    --------
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> X[::25] *= 9  # nobody knows
    >>> detector = Detector(bandwidth=0.5, n_landmarks=50, random_state=0).fit(X)
    >>> suspects(detector, X, n=4) % 25
    array([0, 0, 0, 0])
    """
    feature_map = detector.feature_map_
    table, labels = rows_to_learn(detector, X, y, groups, time)
    _, given = label_codes(y, table.n_rows)
    doubted = given == UNLABELLED
    if not doubted.any():
        doubted[:] = is_calibration_doubted(detector)
    places = held_normal(detector, table, labels)
    places = places[doubted[places]]
    Z = feature_map.rows(table.take(places))
    learnt = set(map(bytes, np.ascontiguousarray(detector.calibration_.rows)))
    there = np.array([bytes(row) in learnt for row in Z], dtype=bool)
    places, scores = places[there], scorer_of(detector).scores(Z[there])
    highest: np.ndarray = places[np.argsort(-scores, kind="stable")[:n]]
    return highest


def _held_left(had: Beside, gone: Beside) -> np.ndarray:
    """The places of the held-out rows that stay."""
    kept, is_lacking = _left(had, gone)
    if is_lacking:
        raise UserError(
            "Cannot forget a row that was not learnt: one that is to be held out is not among "
            "those that are. Pass rows and labels as they were learnt."
        )
    return kept


def _left(had: Beside, gone: Beside) -> tuple[np.ndarray, bool]:
    """The places of the rows that stay, and whether one that is to go is not there.

    Rows are equal where all that stands beside them is.
    """
    places: dict[tuple[bytes, ...], list[int]] = {}
    for i, row in enumerate(_contents(had)):
        places.setdefault(row, []).append(i)
    gone_places = [places[row].pop() for row in _contents(gone) if places.get(row)]
    return np.delete(np.arange(len(had[0])), gone_places), len(gone_places) < len(gone[0])


def _contents(beside: Beside) -> Iterable[tuple[bytes, ...]]:
    """What each row and all that stands beside it is made of."""
    parts = [np.ascontiguousarray(part) for part in beside if len(part)]
    return zip(
        *(
            [one.item().encode() if part.dtype.kind == "U" else one.tobytes() for one in part]
            for part in parts
        ),
        strict=True,
    )
