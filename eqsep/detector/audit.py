"""Audit: rows learnt twice, rows that were learnt badly, and rows to review next."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from eqsep.checks import Finding, check_row_labels
from eqsep.detector.evidence import Evidence, KindRows
from eqsep.detector.holdout import NO_GROUPS
from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for
from eqsep.detector.terms.kernel import are_among
from eqsep.errors import EqsepWarning
from eqsep.labels import UNLABELLED, RowLabels, label_codes
from eqsep.tables.reading import Table

_SHARE_BY_CHANCE = 0.02  # the share of new rows that may equal learnt ones in any table
_REPEATED_ROWS, _REPEATED_SHARE = 3, 0.9  # so many rows that are kept already are not chance
_CHANCE = 0.01  # a probability below this is not chance
_FAR_ROWS = 5  # normal rows above the threshold: fewer may be the promised false alarms
_TIMES_RATE = 5  # times the promised rate: more alarms among normal rows are not chance
_FAR_RESIDUAL = 0.9  # of rows that no landmark is near, whatever the threshold


class Fitted(Protocol):
    """A fitted detector."""

    @property
    def model_(self) -> Model:
        """What it has learnt."""
        ...


class RepeatedRowsWarning(EqsepWarning):
    """Some rows were learnt twice, so they count twice."""


@dataclass(frozen=True)
class Repeats:
    """How many of the rows that a model would keep it has already."""

    checked: int  #: normal rows that it would hold out
    found: int  #: those that are held out already
    by_chance: float  #: upper bound of the share found only because values repeat
    #: The same for each kind of anomaly, of rows that it would keep to name alarms.
    kinds: "Mapping[str, Repeats]" = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of normal rows that were learnt before, beyond what repeats by chance."""
        if not self.checked or self.by_chance >= 1:
            return 0.0
        return max(self.found / self.checked - self.by_chance, 0.0) / (1 - self.by_chance)

    @property
    def are_learnt(self) -> bool:
        """Whether normal rows were learnt before, or nearly all anomalies.

        Fewer anomalies may only equal learnt ones, as attacks by one program do.
        """
        kinds = self.kinds.values()
        n_found, n = sum(one.found for one in kinds), sum(one.checked for one in kinds)
        return self.exceeds_chance or n_found >= max(_REPEATED_ROWS, _REPEATED_SHARE * n)

    @property
    def repeated_kinds(self) -> "dict[str, Repeats]":
        """The kinds of which more rows equal learnt ones than chance explains."""
        enough = {name: one for name, one in self.kinds.items() if one.found >= _REPEATED_ROWS}
        return {name: one for name, one in enough.items() if one.exceeds_chance}

    @property
    def exceeds_chance(self) -> bool:
        """Whether more of the checked rows were found than chance explains."""
        from scipy.stats import binom  # half a second: scoring does not wait for it

        chance = self.by_chance + _SHARE_BY_CHANCE
        return chance < 1 and float(binom.sf(self.found - 1, self.checked, chance)) < _CHANCE


def learnt_before(detector: Fitted, X: Any, y: Any = None) -> Repeats:
    """How many of these rows a fitted detector has already learnt.

    Parameters
    ----------
    detector : Detector
    X : table
    y : array-like of shape (n_rows,), default=None
        Their labels. Rows without one are checked only if they count as normal.

    Examples
    --------
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> detector = Detector(n_landmarks=50, bandwidth=1.0, random_state=0).fit(X[:600])
    >>> [learnt_before(detector, rows).share for rows in (X[:300], X[600:])]
    [1.0, 0.0]
    """
    model = detector.model_
    table = model.plan.align(X)
    labels = model.plan.labels.read(y, n_rows=table.n_rows, known=model.evidence.labels)
    normal = _repeats(model, model.plan.encode(table.take(_held_normal(model, table, labels))))
    places = np.flatnonzero(labels.code > 0)
    kinds = KindRows(
        rows=model.plan.encoder.pack(model.plan.encode(table.take(places))),
        kind=np.array(("", *labels.kinds))[labels.code[places]],
        groups=NO_GROUPS,
        key=model.plan.holdout.key,
    )
    return replace(normal, kinds=_kind_repeats(model, kinds.below(model.plan.holdout.kind_bounds)))


def suspects(
    detector: Fitted, X: Any, y: Any = None, *, groups: Any = None, time: Any = None, n: int = 20
) -> np.ndarray:
    """The calibrating rows that are most likely to be unnoticed anomalies, for you to review.

    These are the highest scores among rows without a label or, if all rows are labelled and
    doubted, among rows labelled normal. An anomaly among them makes the threshold too high:
    `forget` it with its old label and `partial_fit` it with its kind. Leave normal rows alone.

    Parameters
    ----------
    detector : Detector
    X : table
        Learnt rows; others are ignored.
    y : array-like of shape (n_rows,), default=None
        Their labels in the fit.
    groups, time : array-like of shape (n_rows,) or str, default=None
        As in the fit.
    n : int, default=20
        The maximum number of rows to list.

    Returns
    -------
    places : ndarray of int
        Their row numbers in the table, the highest score first.

    Examples
    --------
    >>> from eqsep import Detector
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> X[::25] *= 9  # nobody knows
    >>> detector = Detector(bandwidth=0.5, n_landmarks=50, random_state=0).fit(X)
    >>> suspects(detector, X, n=4) % 25
    array([0, 0, 0, 0])
    """
    model = detector.model_
    table, labels = rows_to_learn(model, X, y, groups=groups, time=time)
    _, given = label_codes(y, table.n_rows)
    doubted = given == UNLABELLED
    if not doubted.any():
        doubted[:] = model.plan.labels.doubts_calibration
    places = _held_normal(model, table, labels)
    places = places[doubted[places]]
    Z = model.plan.encode(table.take(places))
    known = are_among(Z, model.evidence.held_out.normal)
    places, scores = places[known], model.score(Z[known])
    highest: np.ndarray = places[np.argsort(-scores, kind="stable")[:n]]
    return highest


def rows_to_learn(
    model: Model, X: Any, y: Any, *, groups: Any = None, time: Any = None
) -> tuple[Table, RowLabels]:
    """More rows in the form that the plan of a model expects, and their labels."""
    table = model.plan.align(model.plan.grouped(X, groups, time))
    return table, model.plan.labels.read(y, n_rows=table.n_rows, known=model.evidence.labels)


def check_repeats(model: Model, more: Evidence) -> list[Finding]:
    """Findings on rows that were learnt before."""
    rows = _repeats(model, more.held_out.normal)
    found = replace(rows, kinds=_kind_repeats(model, more.kinds))
    messages = [
        f"About {known.share:.0%} of the rows of kind {kind!r} were learnt before: "
        f"{known.found:,} of {known.checked:,} rows to keep for naming are kept already."
        for kind, known in found.repeated_kinds.items()
    ]
    if found.exceeds_chance:
        messages.append(
            f"About {found.share:.0%} of the normal rows were learnt before: {found.found:,} of "
            f"{found.checked:,} rows to hold out are held out already."
        )
    return [_counted_twice(message) for message in messages]


def check_common_rows(model: Model, other: Model) -> list[Finding]:
    """A finding if the held-out rows of two models show that both have learnt the same rows."""
    more, less = sorted((model, other), key=lambda one: -len(one.evidence.held_out.normal))
    found = _repeats(more, less.evidence.held_out.normal)
    if not found.are_learnt:
        return []
    message = (
        f"The two detectors have learnt the same rows: {found.found:,} of {found.checked:,} "
        f"held-out rows of one are held out by the other too."
    )
    return [_counted_twice(message, hint="Merge detectors that have learnt different rows.")]


def _counted_twice(
    message: str, *, hint: str = "Learn each row once; forget(X, y) undoes this."
) -> Finding:
    suffers = "Such rows count twice, and the promised false-alarm rate may no longer hold."
    return Finding(RepeatedRowsWarning, f"{message} {suffers}", hint)


def _held_normal(model: Model, table: Table, labels: RowLabels) -> np.ndarray:
    """The places of normal rows that are held out; without their groups, of any normal row."""
    normal, holdout = labels.code == 0, model.plan.holdout
    if holdout.grouping is not None and table.groups is None:
        return np.flatnonzero(normal)
    split = holdout.split(table, labels, encoder=model.plan.encoder)
    return np.flatnonzero(split.held_out & normal)


def _repeats(model: Model, rows: np.ndarray) -> Repeats:
    """How many of these encoded rows, to be held out, the model holds out already."""
    share = model.plan.holdout.bound / 2**64  # of rows that are held out
    return _compared(_as_bytes(rows), known=_as_bytes(model.evidence.held_out.normal), share=share)


def _kind_repeats(model: Model, more: KindRows) -> dict[str, Repeats]:
    """The same for rows of each kind that the model would keep."""
    bounds, kept, found = model.plan.holdout.kind_bounds, model.evidence.kinds, {}
    for kind in np.unique(more.kind).tolist():
        given, own = (_as_bytes(one.rows[one.kind == kind]) for one in (more, kept))
        found[kind] = _compared(given, known=own, share=bounds.get(kind, 2**64) / 2**64)
    return found


def _compared(rows: Iterable[bytes], *, known: Iterable[bytes], share: float) -> Repeats:
    """How many rows are among the known ones, a share of those that were learnt."""
    had, given = Counter(known), Counter(rows)
    twice, more = sum(n == 2 for n in had.values()), sum(n for n in had.values() if n > 2)
    chance = (2 * twice / max(share, 1e-9) + more) / max(had.total(), 1)
    return Repeats(given.total(), (had & given).total(), min(chance, 1.0))


def _as_bytes(rows: np.ndarray) -> Iterable[bytes]:
    return map(bytes, np.ascontiguousarray(rows))


class NewKindWarning(EqsepWarning):
    """The model does not recognise rows learnt after the first fit as their labels say."""


def check_rows(
    model: Model, rows: np.ndarray, labels: RowLabels, *, known: RowLabels, judged: bool = False
) -> list[Finding]:
    """Findings on labels unlike earlier ones, and on rows that a model judges unlike theirs."""
    found = check_row_labels(labels, known=known)
    found += _check_far_rows(model, rows[labels.code == 0], judged=judged)
    for code, kind in enumerate(labels.kinds[len(known.kinds) :], start=1 + len(known.kinds)):
        found += _check_new_kind(model, rows[labels.code == code], kind)
    return found


def check_new_threshold(model: Model, *, before: Model) -> list[Finding]:
    """The finding that a threshold is too high, unless it was too high before."""
    found = model.check_threshold()
    return found if found and not before.check_threshold() else []


def _check_far_rows(model: Model, normal: np.ndarray, *, judged: bool) -> list[Finding]:
    def are_many(rows: np.ndarray) -> bool:
        limit = _TIMES_RATE * model.promise.false_alarm_rate
        return bool(rows.sum() >= _FAR_ROWS and rows.mean() > limit)

    far = model.score.residual(normal) > _FAR_RESIDUAL
    why = f"have |1 - f| above {_FAR_RESIDUAL:.2f} (no landmark of the first fit is near them)"
    if not judged and not are_many(far):
        far = model.score(normal) > model.threshold
        why = f"score above the threshold, {model.threshold:.2f}"
    if not are_many(far):
        return []
    hint, topic = "Fit again with all rows, these included.", ""
    if not judged:
        topic = "picked_rows"
        hint += " If they were picked because they raised an alarm, pass judged=True."
    message = f"After learning, {far.mean():.0%} of {len(normal):,} normal rows still {why}."
    return [Finding(NewKindWarning, message, hint, {"topic": topic})]


def _check_new_kind(model: Model, rows: np.ndarray, kind: str) -> list[Finding]:
    alarm, rate = float(np.mean(model.score(rows) > model.threshold)), model.promise.unseen_rate
    likeness = model.score.kind_likeness(rows) if model.namer.needs_kind_likeness(rate) else None
    shares = model.namer.taken_for(kind, model.plan.encoder.pack(rows), likeness, rate=rate)
    named = shares.pop(kind, 0.0)
    other = max(shares, key=lambda name: shares[name], default=None)
    if alarm < 0.5:
        advice = (
            f"they look normal, or like no row that the model kept from its first fit. If {kind!r} "
            f"means normal, go back to the earlier model and learn them with corrected labels; "
            f"otherwise fit again with these rows included."
        )
    elif named >= 0.5:
        return []
    elif other is not None and shares[other] > named:
        advice = (
            f"most look like {other!r}. If both are the same kind, give them the same name; "
            f"otherwise its alarms may be called {kind!r} or {other!r}."
        )
    else:
        advice = (
            f"they are like no row that the model kept from its first fit, so it needs "
            f"{rows_for(rate):,} rows of the kind to name it. Give it more rows, or fit again with "
            f"these rows included."
        )
    message = (
        f"The kind {kind!r} is new. After learning its rows ({len(rows):,}), {alarm:.0%} raise an "
        f"alarm and {named:.0%} are recognised as {kind!r}: {advice}"
    )
    return [Finding(NewKindWarning, message, "")]
