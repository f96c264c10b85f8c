"""What a detector has learnt, and what it promises."""

from collections.abc import Mapping
from dataclasses import dataclass

from eqsep.detector import Detector
from eqsep.detector.calibration import RateInterval
from eqsep.labels import NORMAL, WITHOUT


@dataclass(frozen=True)
class Learnt:
    """A fitted detector in a few words and numbers.

    Attributes
    ----------
    normal : str
        The label of normal rows.
    counts : dict of str to int
        The rows of each kind that the fit was given, in the order in which they are shown.
    seen : tuple of str
        The kinds of anomaly that it knows.
    trust : str
        What the rows that stand for normal ones were taken for.
    doubted : str or None
        Which rows set the threshold, where these may be anomalies: "without a label", say.
    columns : dict of str to str
        The columns that are used, and what each is read as.
    dropped : dict of str to str
        The columns that are not, and why.
    landmarks : int
    rate, least_rate : float
        The rate of false alarms that was asked for, and the least that can be promised on average.
    confidence : float or None
        With which the rate is kept, where one was asked for; else it is kept on average.
    promised : bool
        Whether there are rows enough to promise the rate.
    interval : RateInterval
        The rate on average, and where that of this one model lies.
    groups : int
        The groups that calibrate, where rows are held out by group; else 0.
    unit, promised_of : str
        What is held out then, "group" or "time block", and what the promise is for.
    held : int
        All rows that were held out of the learning: those below, and labelled anomalies that tell
        how many of the former are anomalies.
    calibrating : int
        The normal rows that were held out to set the threshold.
    left_out : int
        Held-out rows that are taken for anomalies that nobody has labelled.
    threshold : float
    """

    normal: str
    counts: dict[str, int]
    seen: tuple[str, ...]
    trust: str
    doubted: str | None
    columns: dict[str, str]
    dropped: dict[str, str]
    landmarks: int
    rate: float
    least_rate: float
    confidence: float | None
    promised: bool
    interval: RateInterval
    groups: int
    unit: str
    promised_of: str
    held: int
    calibrating: int
    left_out: int
    threshold: float

    @property
    def rows(self) -> int:
        """All rows of the fit."""
        return sum(self.counts.values())

    @property
    def shaping(self) -> int | None:
        """Those that shape the score, as all do that are not held out; None where nobody knows.

        Of rows in groups some are neither: they lie too near to those that are held out.
        """
        return None if self.groups or self.rows <= self.held else self.rows - self.held


def learnt_by(detector: Detector, *, normal: str, counts: Mapping[str, int]) -> Learnt:
    """What a fitted detector has learnt from so many rows of each kind, and of the normal one."""
    model = detector.model_
    plan, calibration, promise = model.plan, model.calibration, model.promise
    asked = float(promise.false_alarm_rate), promise.confidence
    word = normal if normal in counts else NORMAL
    doubted = plan.labels.doubts_calibration
    grouping = plan.holdout.grouping
    return Learnt(
        normal=normal,
        counts=dict(counts),
        seen=tuple(sorted(model.kinds)),
        trust=trust_in(detector, counts, normal=word),
        doubted=_doubted_rows(counts, normal=word) if doubted else None,
        columns={
            name: _WORDS[learnt.reads]
            for name, learnt in plan.encoder.by_name.items()
            if learnt is not None
        },
        dropped=dict(plan.encoder.dropped),
        landmarks=len(plan.terms.landmarks),
        rate=asked[0],
        least_rate=calibration.least_rate,
        confidence=promise.confidence,
        promised=calibration.rank(*asked) > 0,
        interval=calibration.interval(*asked),
        groups=calibration.n_units if grouping else 0,
        unit=grouping.unit if grouping else "row",
        promised_of=grouping.promised if grouping else "",
        held=len(calibration.scores) + len(calibration.anomaly_scores),
        calibrating=len(calibration.scores) - calibration.n_left_out,
        left_out=calibration.n_left_out,
        threshold=model.threshold,
    )


def _doubted_rows(counts: Mapping[str, int], *, normal: str) -> str:
    """Which rows are doubted: those without a label, those labelled normal, or both."""
    if counts.get(normal):
        return "not labelled anomalous" if counts.get(WITHOUT) else f"labelled {normal}"
    return WITHOUT


def trust_in(detector: Detector, counts: Mapping[str, int], *, normal: str) -> str:
    """What a detector took the rows for that stand for normal ones.

    Parameters
    ----------
    counts : mapping of str to int
        The rows of each label, those `WITHOUT` one too; where none stands for normal ones, numbers
        are left out.
    normal : str
        The label of normal rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> X[:40] += 9
    >>> y = [*["leak"] * 40, *[None] * 560]
    >>> detector = Detector(n_landmarks=50, bandwidth=0.5, random_state=0).fit(X, y)
    >>> trust_in(detector, {"leak": 40, WITHOUT: 560}, normal="normal")
    '560 rows without a label are doubted: some may be anomalies'
    """
    model = detector.model_
    reading = model.plan.labels
    labelled, without = counts.get(normal, 0), counts.get(WITHOUT, 0)
    if model.evidence.labels.labels is None:  # counted as normal, and not labelled so
        labelled, without = 0, labelled + without
    rows = {f"labelled {normal}": labelled, WITHOUT: without}
    doubted = "doubted: some may be anomalies"
    if reading.unlabelled_is_normal:
        taken = (
            "trusted" if labelled or detector.unlabelled == "trusted" else "taken for normal ones"
        )
        if not labelled + without:
            rows = dict.fromkeys(rows if detector.unlabelled != "auto" else [WITHOUT], 0)
        return _are(rows, doubted if reading.doubted else taken)
    trusted = _are({f"labelled {normal}": labelled}, "trusted")
    if counts and not without:
        return trusted
    if reading.doubted:
        return f"{trusted} and set the threshold; {_are({WITHOUT: without}, doubted)}"
    others = f"{without:,} {WITHOUT} count" if without else f"any {WITHOUT} counts"
    return f"{trusted}; {others} {reading.unlabelled_weight:g}" + " each" * bool(without)


def _are(rows: Mapping[str, int], taken: str) -> str:
    """Which rows, and how many, are taken for what; without numbers where there are none."""
    there = {name: n for name, n in rows.items() if n}
    if not there:
        return f"rows {' or '.join(rows)} are {taken}"
    counted = " and ".join(f"{n:,} row{'s' * (n != 1)} {name}" for name, n in there.items())
    return f"{counted} {'is' if sum(there.values()) == 1 else 'are'} {taken}"


_WORDS = {
    "number": "numbers",
    "date": "dates",
    "duration": "durations",
    "text": "names",
    "boolean": "yes or no",
}
