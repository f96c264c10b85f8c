"""What a detector catches and what not, and what to do next, the most gain first."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eqsep.checks import CAUTIONS, DoubtedThresholdWarning, Finding, LeakingColumnWarning
from eqsep.detector import Detector
from eqsep.detector.namer import kind_text
from eqsep.errors import Message
from eqsep.report.learnt import LearntSummary
from eqsep.report.measured import FoundKind, Measured
from eqsep.report.reasons import ColumnVerdict

_MAX_STEPS = 5  # steps: a longer list is not acted on
# Shares of a kind that raise an alarm: most of it, hardly any.
_CAUGHT_SHARE, _MISSED_SHARE = 0.8, 0.2
# Of the measured anomalies: if these raise an alarm, the threshold is not too high.
_CAUGHT_OF_ALL = 0.5
_MIN_LEARNT = 30  # rows of a kind: fewer teach little
_MIN_MEASURED_ROWS = 10  # held-out rows of a kind: of fewer nothing is said
_GAIN = 0.1  # in the share that is caught: less does not justify more false alarms
_GAINED = 5  # rows that are caught in addition: fewer are chance
# Of the way from chance to 1, and times chance: still near it.
_NEAR_CHANCE_SHARE, _NEAR_CHANCE_RATIO = 0.1, 1.5
NEAR_CHANCE = "Add columns that show the anomalies"
_MAX_RATE = 0.05  # rate of false alarms that is advised
Words = Callable[[Message], str]  # turns a warning into text: `str` is for Python


@dataclass(frozen=True)
class Step:
    """A thing to do next."""

    what: str
    why: str
    finding: str = ""  # the message of the check behind it, which need not be shown again


@dataclass(frozen=True)
class Advice:
    """The measured kinds by the share that raises an alarm, and what to do next."""

    caught: tuple[FoundKind, ...]  # at least 80 %
    in_part: tuple[FoundKind, ...]
    missed: tuple[FoundKind, ...]  # less than 20 %
    few: tuple[FoundKind, ...]  # of fewer than 10 rows: too few to tell
    steps: tuple[Step, ...]  # the most gain first


def answer(  # noqa: PLR0913  what is known of a detector, and how to say it
    detector: Detector,
    *,
    learnt: LearntSummary,
    measured: Measured,
    columns: Sequence[ColumnVerdict],
    findings: Sequence[Finding] = (),
    words: Words = str,
    called: Callable[[str], str] = kind_text,
) -> Advice:
    """The summary of a fitted detector; `findings` are those of checks of the learnt rows."""
    every = sorted((*measured.seen, *measured.unseen), key=lambda one: -one.caught)
    enough = [one for one in every if one.rows >= _MIN_MEASURED_ROWS]
    parts = {
        "caught": tuple(one for one in enough if one.caught >= _CAUGHT_SHARE),
        "in_part": tuple(one for one in enough if _MISSED_SHARE <= one.caught < _CAUGHT_SHARE),
        "missed": tuple(one for one in enough if one.caught < _MISSED_SHARE),
        "few": tuple(one for one in every if one.rows < _MIN_MEASURED_ROWS),
    }

    def named(found: Iterable[FoundKind]) -> tuple[FoundKind, ...]:
        return tuple(replace(one, kind=called(one.kind)) for one in found)

    measured = replace(measured, seen=named(measured.seen), unseen=named(measured.unseen))
    counts = {called(kind): n for kind, n in learnt.counts.items()}
    learnt = replace(learnt, seen=tuple(map(called, learnt.seen)), counts=counts)
    kinds, missed = named(every), named(parts["missed"])
    advised = next((one.fields["rate"] for one in findings if "rate" in one.fields), None)
    steps = [
        *(first := list(_from_data(kinds, columns, findings, words))),
        *_warned(findings, [step.finding for step in first], words),
        *_near_chance(measured),
        *_promise(detector, learnt, words),
        *_few_rows(learnt, measured),
        *_labels(learnt, measured),
        *(list(_luck(learnt, measured, kinds)) or _more_alarms(learnt, measured, kinds, advised)),
    ]
    steps = [*(steps or _misses(learnt, missed)), *_unmeasured(learnt, measured)]
    return Advice(**parts, steps=tuple(steps[:_MAX_STEPS]))


def _from_data(
    kinds: Sequence[FoundKind],
    columns: Sequence[ColumnVerdict],
    findings: Sequence[Finding],
    words: Words,
) -> Iterator[Step]:
    """Leaks of the label, columns by which later rows raise alarms, unlabelled anomalies."""
    for one in findings:
        if one.category is LeakingColumnWarning:  # then no measured figure holds
            why = f"{words(one.warning())} Every figure on this page depends on it."
            yield Step("Check for a leak of the label", why, one.message)
    for column in (one for one in columns if one.outgrown is not None):
        side = "From {} on" if column.outgrown == "above" else "Down from {}"
        why = (
            f"{side.format(column.since)}, at least half of the normal rows raise an alarm for "
            f"that alone. Fit without the column, or again before then."
        )
        start = f"Column {column.name!r} "
        message = next((one.message for one in findings if one.message.startswith(start)), "")
        yield Step(f"Leave out the column {column.name}", why, message)
    rows = sum(one.rows for one in kinds)
    if rows and sum(one.rows * one.caught for one in kinds) >= _CAUGHT_OF_ALL * rows:
        return  # most labelled ones are caught, so others do not make the threshold too high
    for one in findings:
        if one.category is DoubtedThresholdWarning:
            yield Step("Look for unlabelled anomalies", words(one.warning()), one.message)


def _warned(findings: Sequence[Finding], given: Sequence[str], words: Words) -> Iterator[Step]:
    """The other warnings of the fit that say what to do, the first of each category."""
    judged = (DoubtedThresholdWarning, *CAUTIONS)  # other steps weigh these
    others = [one for one in findings if one.hint and one.category not in judged]
    first = {one.category: one for one in reversed(others) if one.message not in given}
    for one in reversed(first.values()):
        yield Step("Act on this warning of the fit", words(one.warning()), one.message)


def _near_chance(measured: Measured) -> Iterator[Step]:
    """Seen kinds that the columns hardly show: all together, or some of them."""
    if measured.doubted:  # anomalies among the other rows count as false
        return
    seen = {one.kind: one for one in measured.seen}
    if len(seen) > 1 and _is_near_chance(measured.together["seen"]):
        seen = {"all seen kinds together": measured.together["seen"]}
    if near := _those_near_chance(seen):
        why = (
            f"These columns hardly show {near}. Add columns in which such rows differ "
            f"from normal ones, or check their labels."
        )
        yield Step(NEAR_CHANCE, why)


def _labels(learnt: LearntSummary, measured: Measured) -> Iterator[Step]:
    """Labels of kinds that are hardly ranked above normal rows, or of any anomalies at all."""
    near = _those_near_chance({one.kind: one for one in measured.unseen})
    if near and not measured.doubted:
        why = (
            f"The model has learnt no row of some kinds, and hardly tells them from normal rows: "
            f"{near}. Fit again with labelled rows of them."
        )
        yield Step("Label some anomalies", why)
    elif not learnt.seen:
        why = "All rows were taken as normal. Fit with labelled anomalies to have them named."
        if not measured.unseen:
            why += " This page cannot say what is caught; eqsep test can, on labelled rows."
        yield Step("Label some anomalies", why)


def _those_near_chance(kinds: Mapping[str, FoundKind]) -> str:
    near = {name: one.precision for name, one in kinds.items() if _is_near_chance(one)}
    return "; ".join(f"{name}, with an average precision of {one}" for name, one in near.items())


def _is_near_chance(one: FoundKind) -> bool:
    """Whether the interval begins near chance, and ends within a tenth of the way to 1."""
    precision, chance = one.precision, one.precision.prevalence
    ends = precision.high <= chance + _NEAR_CHANCE_SHARE * (1 - chance)
    return one.rows >= _MIN_MEASURED_ROWS and ends and precision.low <= _NEAR_CHANCE_RATIO * chance


def _promise(detector: Detector, learnt: LearntSummary, words: Words) -> Iterator[Step]:
    """What breaks the promise: rows in runs, rows that change over time, too few rows."""
    caution = detector.caution_
    if caution is not None:
        may_hold = caution.fields.get("goes_on") == 0  # rows that come round, as in seasons
        what = "Measure the promise on later rows" if may_hold else "Do not rely on the promise yet"
        yield Step(what, words(caution.warning()), caution.message)
    if not learnt.promised:
        why = f"Too few normal rows were held out to promise a false-alarm rate of {learnt.rate:g}."
        if learnt.advised_rate is not None:
            why += f" They are enough for {learnt.advised_rate:g}: add rows, or set that rate."
        yield Step("Add normal rows", why)


def _few_rows(learnt: LearntSummary, measured: Measured) -> Iterator[Step]:
    """Seen kinds with so few rows that none is left to measure."""
    found = {one.kind for one in measured.seen}
    few = {kind: learnt.counts[kind] for kind in learnt.seen if learnt.counts.get(kind)}
    for kind, n in sorted(few.items(), key=lambda item: item[1]):
        if n < _MIN_LEARNT and kind not in found:
            rows = f"{n} row{'s' * (n != 1)} of it {'was' if n == 1 else 'were'} learnt"
            yield Step(f"Label more rows of {kind}", f"{rows}, and none was left to measure.")


def _is_much(share: float, one: FoundKind) -> bool:
    return share >= _GAIN and share * one.rows >= _GAINED


def _luck(learnt: LearntSummary, measured: Measured, kinds: Sequence[FoundKind]) -> Iterator[Step]:
    """A copy with a threshold so unlike the model's that its shares say little of the model."""
    copy = next((one.threshold for one in measured.promises if one.rate == learnt.rate), None)
    enough = [one for one in kinds if one.rows >= _MIN_MEASURED_ROWS]
    far = [one for one in enough if abs(one.caught_by_copy - one.caught) >= _GAIN]
    if copy is None or not far:
        return
    caught = (f"{one.caught_by_copy:.0%} of {one.kind}, not {one.caught:.0%}" for one in far)
    why = (
        f"The copy's threshold is {copy:.3f} and the model's {learnt.threshold:.3f}: both depend "
        f"on the luck of few held-out rows. This page counts alarms at the model's; at its own, "
        f"the copy catches {'; '.join(caught)}. Run eqsep test on labelled rows that the model "
        f"has not learnt."
    )
    yield Step("Test the model itself", why)


def _more_alarms(
    learnt: LearntSummary, measured: Measured, kinds: Sequence[FoundKind], advised: float | None
) -> Iterator[Step]:
    """A higher rate of false alarms, the one that a warning names, if it catches much more."""
    usual = {rate for one in kinds for rate in one.caught_at if learnt.rate < rate <= _MAX_RATE}
    for rate in sorted(usual) if advised is None else [advised]:
        gains = [o for o in kinds if _is_much(o.caught_at.get(rate, 0.0) - o.caught_by_copy, o)]
        if not gains:
            continue
        caught = (
            f"{one.caught_at[rate]:.0%} of {one.kind}, not {one.caught_by_copy:.0%}"
            for one in gains
        )
        false = [one for one in measured.promises if one.rate == rate and not measured.doubted]
        cost = "".join(f", with false alarms on {one.measured:.2%} of normal rows" for one in false)
        why = (
            f"At {rate:.2%} instead of {learnt.rate:.2%} the detector measured on this page, with "
            f"thresholds of its own, catches {'; '.join(caught)}{cost}. "
            f"This needs no new fit: set the false-alarm rate to {rate:g} when you score."
        )
        yield Step("Allow more false alarms, if a miss costs more", why)
        return


def _misses(learnt: LearntSummary, missed: Sequence[FoundKind]) -> Iterator[Step]:
    """What is known of kinds that are mostly missed, where no other step helps."""

    def figures(one: FoundKind) -> str:
        highest = max(one.caught_at, default=0.0)
        more = f" ({one.caught_at[highest]:.0%} at {highest:.2%})" * (highest > learnt.rate)
        return f"{one.caught:.0%} of {one.kind}{more}, with an average precision of {one.precision}"

    if missed:
        few = any(learnt.counts.get(one.kind, 0) < _MIN_LEARNT for one in missed)
        why = (
            f"At {learnt.rate:.2%} false alarms the detector measured on this page catches "
            f"{'; '.join(map(figures, missed))}. Look for columns in which such rows differ more "
            f"from normal ones{', or label more of them' * few}. eqsep evaluate shows whether "
            f"other methods find more in these columns."
        )
        yield Step("Expect misses, or look for other columns", why)


def _unmeasured(learnt: LearntSummary, measured: Measured) -> Iterator[Step]:
    """Unseen kinds that were not measured."""
    if not measured.unseen and len(learnt.seen) > 1:
        yield Step(
            "Measure what is found of kinds never seen",
            "No kind was left out of training: eqsep evaluate trains on one kind at a time and "
            "measures the others.",
        )
