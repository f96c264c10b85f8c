"""Audit: rows learnt twice, rows that were not learnt well, and rows to judge next."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eqsep.checks import check_row_labels, warn_of
from eqsep.detector.evidence import Evidence
from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for
from eqsep.detector.score import are_among
from eqsep.errors import EqsepWarning, warn
from eqsep.labels import UNLABELLED, RowLabels, label_codes
from eqsep.tables.reading import Table

_ALIKE = 0.02  # the share of new rows that may be equal to learnt ones, whatever the table
_FEWEST, _MOST_OF = 3, 0.9  # anomalies that are landmarks: from here on not by chance
_SURE = 0.01  # the probability below which it is not by chance
_FEWEST_FAR = 5  # normal rows: one that raises an alarm is a false one, as promised
_TIMES = 5  # the promised rate: more alarms than that among normal rows are not chance
_FAR = 0.9  # a score that says that a row is near no landmark, whatever the threshold


class Fitted(Protocol):
    """A fitted detector."""

    @property
    def model_(self) -> Model:
        """What it has learnt."""
        ...


class RepeatedRowsWarning(EqsepWarning):
    """Rows are learnt that were learnt before: they count twice."""


@dataclass(frozen=True)
class Repeats:
    """How many rows that are to be held out are held out already."""

    checked: int  #: rows that are to be held out
    found: int  #: those among them that already are
    by_chance: float  #: the share found among new rows because values repeat: an upper bound

    @property
    def share(self) -> float:
        """The share of the rows that was learnt before, beyond what repeats by chance."""
        if not self.checked or self.by_chance >= 1:
            return 0.0
        return max(self.found / self.checked - self.by_chance, 0.0) / (1 - self.by_chance)

    @property
    def are_learnt(self) -> bool:
        """Whether some were learnt before, beyond reasonable doubt."""
        from scipy.stats import binom  # half a second: scoring does not wait for it

        chance = self.by_chance + _ALIKE
        return chance < 1 and float(binom.sf(self.found - 1, self.checked, chance)) < _SURE


def learnt_before(detector: Fitted, X: Any, y: Any = None) -> Repeats:
    """Whether a fitted detector has learnt these rows, or some of them.

    Parameters
    ----------
    detector : Detector
    X : table
    y : array-like of shape (n_rows,), default=None
        The labels of the rows. Only rows that count as normal are checked.

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
    return _repeats(model, model.plan.encode(table.take(_held_normal(model, table, labels))))


def suspects(
    detector: Fitted, X: Any, y: Any = None, *, groups: Any = None, time: Any = None, n: int = 20
) -> np.ndarray:
    """The calibrating rows that score highest, unlabelled or doubted: for a person to judge.

    These are rows without a label, or those labelled normal where all are labelled and doubted. An
    anomaly among them makes the threshold too high: `forget` it with the label that it had and
    `partial_fit` it with its kind. Leave a row that turns out to be normal as it is.

    Parameters
    ----------
    detector : Detector
    X : table
        Rows that were learnt; others are ignored.
    y : array-like of shape (n_rows,), default=None
        The labels that they had.
    groups, time : array-like of shape (n_rows,) or str, default=None
        As they were learnt.
    n : int, default=20
        How many to list at most.

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
    """More rows as the plan of a model takes them, and their labels."""
    table = model.plan.align(model.plan.grouped(X, groups, time))
    return table, model.plan.labels.read(y, n_rows=table.n_rows, known=model.evidence.labels)


def warn_of_repeats(model: Model, more: Evidence, anomalies: np.ndarray) -> None:
    """Warn if rows were learnt before; anomalies of a version 0.1 model if they are landmarks."""
    rows = more.held_out.normal
    found, again = _repeats(model, rows), are_among(anomalies, model.plan.terms.landmarks).sum()
    keeps_none = not model.plan.holdout.keeps_kinds
    if keeps_none and not len(rows) and again >= max(_FEWEST, _MOST_OF * len(anomalies)):
        _warn_of_repeats(
            f"{again:,} of the {len(anomalies):,} anomalies were learnt before: they are landmarks "
            f"of the first fit."
        )
    bounds, kept = model.plan.holdout.kind_bounds, model.evidence.kinds
    for kind in np.unique(more.kinds.kind).tolist():
        given, own = (_as_bytes(one.rows[one.kind == kind]) for one in (more.kinds, kept))
        known = _compared(given, known=own, share=bounds.get(kind, 2**64) / 2**64)
        if known.found >= _FEWEST and known.are_learnt:
            _warn_of_repeats(
                f"About {known.share:.0%} of the rows of kind {kind!r} were learnt before: of "
                f"{known.checked:,} that are to be kept for names, {known.found:,} are kept "
                f"already."
            )
    if found.are_learnt:
        _warn_of_repeats(
            f"About {found.share:.0%} of the normal rows were learnt before: of {found.checked:,} "
            f"that are to be held out, {found.found:,} are held out already."
        )


def warn_of_common_rows(model: Model, other: Model) -> None:
    """Warn if the held-out rows of two models show that both have learnt the same rows."""
    more, less = sorted((model, other), key=lambda one: -len(one.evidence.held_out.normal))
    found = _repeats(more, less.evidence.held_out.normal)
    if found.are_learnt:
        _warn_of_repeats(
            f"The two have learnt the same rows: of {found.checked:,} held-out rows of the one, "
            f"{found.found:,} are those of the other.",
            hint="Merge detectors that have learnt different rows.",
        )


def _warn_of_repeats(
    message: str, *, hint: str = "Learn rows once; forget(X, y) takes them out again."
) -> None:
    suffers = "Such rows count twice then, and the promised false-alarm rate suffers."
    warn(RepeatedRowsWarning(f"{message} {suffers}", hint=hint))


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


def _compared(rows: Iterable[bytes], *, known: Iterable[bytes], share: float) -> Repeats:
    """How many rows are among the known ones, a share of those that were learnt."""
    had, given = Counter(known), Counter(rows)
    twice, more = sum(n == 2 for n in had.values()), sum(n for n in had.values() if n > 2)
    chance = (2 * twice / max(share, 1e-9) + more) / max(had.total(), 1)
    return Repeats(given.total(), (had & given).total(), min(chance, 1.0))


def _as_bytes(rows: np.ndarray) -> Iterable[bytes]:
    return map(bytes, np.ascontiguousarray(rows))


class NewKindWarning(EqsepWarning):
    """Rows learnt after the first fit are not recognised as their labels say."""


def warn_of_rows(
    model: Model, rows: np.ndarray, labels: RowLabels, *, known: RowLabels, judged: bool = False
) -> None:
    """Warn of labels unlike those before, and of rows that the model does not take as labelled."""
    warn_of(check_row_labels(labels, known=known))
    _warn_of_far_rows(model, rows[labels.code == 0], judged=judged)
    for code, kind in enumerate(labels.kinds[len(known.kinds) :], start=1 + len(known.kinds)):
        _warn_of_new_kind(model, rows[labels.code == code], kind)


def _warn_of_far_rows(model: Model, normal: np.ndarray, *, judged: bool) -> None:
    limit = _FAR if judged else min(model.threshold, _FAR)
    far = model.score.residual(normal) > limit
    if far.sum() < _FEWEST_FAR or far.mean() <= _TIMES * model.promise.false_alarm_rate:
        return
    hint, topic = "Fit again with these rows among the others.", ""
    if not judged:
        topic = "picked_rows"
        hint += " If they were picked because they raised an alarm, pass judged=True."
    message = (
        f"Of {len(normal):,} normal rows {far.mean():.0%} have an |1 - f| above {limit:.2f} now "
        f"that they are learnt, where the threshold is {model.threshold:.2f}: no landmark of the "
        f"first fit is near them."
    )
    warn(NewKindWarning(message, hint=hint, topic=topic))


def _warn_of_new_kind(model: Model, rows: np.ndarray, kind: str) -> None:
    alarm, rate = float(np.mean(model.score(rows) > model.threshold)), model.promise.unseen_rate
    likeness = model.score.kind_likeness(rows) if model.namer.needs_kind_likeness(rate) else None
    shares = model.namer.taken_for(kind, model.plan.encoder.pack(rows), likeness, rate=rate)
    named = shares.pop(kind, 0.0)
    other = max(shares, key=lambda name: shares[name], default=None)
    if alarm < 0.5:
        advice = (
            f"they lie among normal rows, or near no landmark of the first fit. If {kind!r} is "
            f"another word for normal, correct the labels and learn them from the model as it was "
            f"before; else fit again with these rows too."
        )
    elif named >= 0.5:
        return
    elif other is not None and shares[other] > named:
        advice = (
            f"most look like {other!r}. If both are one kind, give them one name; else alarms of "
            f"it will be called {kind!r} or {other!r}."
        )
    else:
        advice = (
            f"no landmark of the first fit is near them, and they are too few to be named without "
            f"({rows_for(rate):,} are needed). Fit again with these rows too."
        )
    message = (
        f"The kind {kind!r} is new, and of its rows ({len(rows):,}) {alarm:.0%} raise an alarm and "
        f"{named:.0%} are distinguished from other kinds now that they are learnt: {advice}"
    )
    warn(NewKindWarning(message))
