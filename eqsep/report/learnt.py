"""What a detector has learnt, and what it promises."""

from collections.abc import Mapping
from dataclasses import dataclass

from eqsep.detector import Detector
from eqsep.detector.calibration import RateInterval
from eqsep.detector.isolation import LEFT_OUT, WEIGHED
from eqsep.detector.model import Model
from eqsep.labels import NORMAL, WITHOUT

_WORDS = {"number": "numbers", "date": "dates", "duration": "durations"}
_WORDS |= {"text": "names", "boolean": "yes or no"}
ALL_UNSEEN, SOME_DOUBTED = "all unseen", "some doubted"  # what a fit may have assumed


@dataclass(frozen=True)
class LearntSummary:
    """A fitted detector in a few words and numbers."""

    normal: str  # the label of normal rows
    counts: dict[str, int]  # the rows of each kind that the fit was given, in the order shown
    seen: tuple[str, ...]
    trust: str  # how the rows that count as normal were treated
    assumed: str  # what was assumed of rows that nobody has looked at; "" if nothing
    doubted: str | None  # which rows set the threshold, if these may be anomalies
    columns: dict[str, str]  # the columns that are used, and what each is read as
    dropped: dict[str, str]  # the columns that are not, and why
    landmarks: int
    rate: float  # of false alarms, as asked for
    advised_rate: float | None  # can be promised; None: no usual one can
    confidence: float | None  # with which the rate is kept; None: on average
    at_most: bool  # whether the rate is a bound, and may be well below on average
    promised: bool  # whether there are enough rows to promise the rate
    interval: RateInterval  # the rate on average, and where that of this one model lies
    groups: int  # that calibrate, if rows are held out by group; else 0
    unit: str  # what is held out: "row", "group" or "time block"
    promised_of: str  # what the promise is for, if rows are held out by group
    held: int  # all held-out rows, with labelled anomalies, which help to estimate unlabelled ones
    calibrating: int  # normal rows that were held out to set the threshold
    left_out: int  # held-out rows that look like unlabelled anomalies
    shaping: int  # rows that shape the score; 0 if that is not known
    between: int  # rows that are neither: too near in time to held-out ones
    labelled: bool  # whether rows had labels
    threshold: float

    @property
    def rows(self) -> int:
        """All rows of the fit."""
        return sum(self.counts.values())


def learnt_by(detector: Detector, *, normal: str, counts: Mapping[str, int]) -> LearntSummary:
    """What a fitted detector has learnt from so many rows of each kind."""
    model = detector.model_
    plan, calibration, promise = model.plan, model.calibration, model.promise
    asked = float(promise.false_alarm_rate), promise.confidence
    word, grouping = normal if normal in counts else NORMAL, plan.holdout.grouping
    rows = {normal if kind == word else kind: n for kind, n in counts.items()}
    doubted = WITHOUT
    if model.evidence.labels.reader is None and plan.labels.doubts_calibration:
        counts = rows = {WITHOUT: sum(rows.values())} if rows else {}
    elif rows.get(normal):
        doubted = "not labelled anomalous" if rows.get(WITHOUT) else f"labelled {normal}"
    return LearntSummary(
        normal=normal,
        counts=dict(counts),
        seen=tuple(sorted(model.kinds)),
        trust=trust_in(detector, rows, normal=normal),
        assumed=assumed(detector),
        doubted=doubted if plan.labels.doubts_calibration else None,
        columns={name: _WORDS[one.reads] for name, one in plan.encoder.by_name.items() if one},
        dropped=dict(plan.encoder.dropped),
        landmarks=len(plan.kernel.landmarks),
        rate=asked[0],
        advised_rate=model.advised_rate,
        confidence=promise.confidence,
        at_most=model.promises_at_most,
        promised=model.rank > 0,
        interval=calibration.interval(*asked),
        groups=calibration.n_units if grouping else 0,
        unit=plan.holdout.unit,
        promised_of=grouping.promised if grouping else "",
        calibrating=len(calibration.scores) - calibration.n_left_out,
        left_out=calibration.n_left_out,
        **dict(zip(("shaping", "held", "between"), divided_rows(model, counts), strict=True)),
        labelled=model.evidence.labels.reader is not None,
        threshold=model.threshold,
    )


def divided_rows(model: Model, counts: Mapping[str, int]) -> tuple[int, int, int]:
    """How many rows of a fit shape the score (0: not known), are held out, and are neither."""
    reading, held_out = model.plan.labels, model.calibration
    held = len(held_out.scores) + len(held_out.anomaly_scores)
    shaping = rest = sum(counts.values()) - held
    if model.plan.holdout.grouping is not None:  # some of the rest are too near to held-out rows
        in_part = not reading.unlabelled_is_normal and reading.unlabelled_weight != 1
        shaping = 0 if in_part and counts.get(WITHOUT) else round(model.n_learnt.sum())
    return (shaping, held, rest - shaping) if 0 < shaping <= rest else (0, held, 0)


def trust_in(detector: Detector, counts: Mapping[str, int], *, normal: str) -> str:
    """How a detector treated the rows that count as normal, by the rows of each label."""
    model = detector.model_
    reading = model.plan.labels
    labelled, without = counts.get(normal, 0), counts.get(WITHOUT, 0)
    if model.evidence.labels.reader is None:  # counted as normal, and not labelled so
        labelled, without = 0, labelled + without
    rows = {f"labelled {normal}": labelled, WITHOUT: without}
    isolated = (
        "" if model.plan.isolation is None else f"the {reading.isolated_share:.0%} most isolated"
    )
    doubted = "doubted: some may be anomalies"
    doubted += f", and {isolated} do not describe normal rows" if isolated else ""
    is_doubted = reading.doubted or reading.isolation == LEFT_OUT
    if reading.unlabelled_is_normal:
        is_trusted = labelled or detector.unlabelled == "trusted"
        taken = "trusted" if is_trusted else "taken as normal, though nobody has looked"
        taken += f": {isolated} count less" if isolated else ""
        if not labelled + without:
            rows = dict.fromkeys(rows if detector.unlabelled != "auto" else [WITHOUT], 0)
        return _are(rows, doubted if is_doubted else taken)
    trusted = _are({f"labelled {normal}": labelled}, "trusted")
    if counts and not without:
        return trusted
    if is_doubted:
        return f"{trusted} and set the threshold; {_are({WITHOUT: without}, doubted)}"
    others = f"{without:,} {WITHOUT} count" if without else f"any {WITHOUT} counts"
    return f"{trusted}; {others} {reading.unlabelled_weight:g}" + " each" * bool(without)


def assumed(detector: Detector) -> str:
    """What a first fit has assumed of rows that nobody has looked at; "" if nothing, or told so."""
    if detector.plan is not None or detector.unlabelled != "auto":
        return ""
    reading = detector.model_.plan.labels
    if reading.doubted:
        return SOME_DOUBTED
    return ALL_UNSEEN if reading.isolation == WEIGHED else ""


def _are(rows: Mapping[str, int], taken: str) -> str:
    """How rows are treated, with their numbers if there are any."""
    there = {name: n for name, n in rows.items() if n}
    if not there:
        return f"rows {' or '.join(rows)} are {taken}"
    counted = " and ".join(f"{n:,} row{'s' * (n != 1)} {name}" for name, n in there.items())
    return f"{counted} {'is' if sum(there.values()) == 1 else 'are'} {taken}"
