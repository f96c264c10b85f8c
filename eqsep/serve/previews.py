"""What a verdict would change: alarms that would go, rows that would rise, and other names."""

from collections.abc import Sequence
from dataclasses import dataclass

from eqsep.detector.model import Model
from eqsep.detector.namer import rows_for as rows_needed
from eqsep.labels import NORMAL
from eqsep.serve.alarms import said_of
from eqsep.serve.records import Alarm, Said
from eqsep.serve.teaching import rows_for

NOT_NAMED = ""  # the kind of an alarm whose name was not asked for


@dataclass(frozen=True)
class Change:
    """A row, and what would be said of it."""

    alarm: Alarm
    then: Said


@dataclass(frozen=True)
class Fit:
    """How well a row fits a kind.

    Attributes
    ----------
    before, after : float or None
        The p-value of "it is of this kind": the share of the rows learnt of it that are as unlike
        it as this row, or more. None where the kind was not known.
    n_rows : int
        How many rows, or groups of rows, of the kind there are to compare with, after.
    n_needed : int
        From how many on its name comes with a promise.
    """

    before: float | None
    after: float | None
    n_rows: int
    n_needed: int

    @property
    def is_short(self) -> bool:
        """Whether the kind has too few rows for a promise."""
        return self.n_rows < self.n_needed


@dataclass(frozen=True)
class Preview:
    """What verdicts would change.

    Attributes
    ----------
    rows : list of Change
        The rows that they are of.
    goes, rises, renamed : list of Change
        Open alarms that would be none, rows that pass and would not, and alarms that would get
        another name; among the newest rows that are kept.
    n_looked_at : int
        How many these are.
    fits : dict of str to Fit
        How well the first row fits each kind.
    threshold : (float, float)
        Before and after.
    warnings : tuple of str
        What is to be known before it is done.
    """

    rows: list[Change]
    goes: list[Change]
    rises: list[Change]
    renamed: list[Change]
    n_looked_at: int
    fits: dict[str, Fit]
    threshold: tuple[float, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Learning:
    """A model before and after a lesson, with the warnings; `named` also asks for its names."""

    before: Model
    after: Model
    warnings: tuple[str, ...] = ()
    named: bool = True


def preview_of(learning: Learning, alarms: list[Alarm], others: list[Alarm]) -> Preview:
    """What a lesson on rows would change for them and for the others.

    Where names are not asked for, scores and alarms are exact all the same.
    """
    changes = _changes(learning, others)
    rows = _changes(learning, alarms)
    return Preview(
        rows=rows,
        goes=[c for c in changes if c.alarm.now.alarm and not c.then.alarm],
        rises=[c for c in changes if c.then.alarm and not c.alarm.now.alarm],
        renamed=[
            c
            for c in changes
            if learning.named
            and c.then.alarm
            and c.alarm.now.alarm
            and c.then.kind != c.alarm.now.kind
        ],
        n_looked_at=len(others),
        fits=_fits(learning, alarms[0]) if learning.named else {},
        threshold=(learning.before.threshold, learning.after.threshold),
        warnings=learning.warnings,
    )


def fits_now(model: Model, alarm: Alarm) -> dict[str, Fit]:
    """How well a row fits each kind by a model, the best first."""
    found = _fits(Learning(model, model), alarm)
    return dict(sorted(found.items(), key=lambda one: -(one[1].after or 0.0)))


def few_rows(model: Model, kind: str) -> str | None:
    """What is to be known of a kind with too few rows for a promise on its name."""
    if not model.namer.has_promise:
        return None
    rate = model.promise.unseen_rate
    n, needed = model.evidence.kinds.n_units(kind), rows_needed(rate)
    if n >= needed:
        return None
    return (
        f"Few rows of {kind!r} so far: {n} with these. From {needed} on, at most "
        f"{rate:.0%} of its alarms are called unseen; until then more may be, and "
        f"names may change with each verdict."
    )


def _changes(learning: Learning, alarms: Sequence[Alarm]) -> list[Change]:
    if not alarms:
        return []
    rows = [alarm.row for alarm in alarms]
    answer = said_of if learning.named else _scored
    then = answer(learning.after, alarms[0].now.version, rows)
    return [Change(alarm, one) for alarm, one in zip(alarms, then, strict=True)]


def _scored(model: Model, number: int, rows: list[dict[str, object]]) -> list[Said]:
    """What a version says of rows, without names."""
    scores = model.scores(rows_for(model, rows))
    alarms, p_values = scores > model.threshold, model.calibration.p_value(scores)
    return [
        Said(
            version=number,
            score=score,
            p_value=p_value,
            alarm=alarm,
            kind=NOT_NAMED if alarm else NORMAL,
        )
        for score, p_value, alarm in zip(
            scores.tolist(), p_values.tolist(), alarms.tolist(), strict=True
        )
    ]


def _fits(learning: Learning, alarm: Alarm) -> dict[str, Fit]:
    before, after = (_p_values(one, alarm) for one in (learning.before, learning.after))
    needed = rows_needed(learning.after.promise.unseen_rate)
    kept = learning.after.evidence.kinds
    return {
        kind: Fit(before.get(kind), after.get(kind), kept.n_units(kind), needed)
        for kind in {**before, **after}
    }


def _p_values(model: Model, alarm: Alarm) -> dict[str, float]:
    """Of a row, for each kind that has rows to compare with."""
    if not model.namer.has_promise or not model.kinds:
        return {}
    row = model.plan.encode(rows_for(model, [alarm.row]))
    found = zip(model.kinds, model.kind_p_values(row)[0].tolist(), strict=True)
    return {kind: p for kind, p in found if model.evidence.kinds.n_units(kind)}
