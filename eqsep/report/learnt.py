"""What a detector has learnt, and what it promises."""

from collections.abc import Mapping
from dataclasses import dataclass

from eqsep.detector import Detector


@dataclass(frozen=True)
class Learnt:
    """A fitted detector in a few words and numbers.

    Attributes
    ----------
    normal : str
        The label of normal rows.
    counts : dict of str to int
        The rows of each kind that were learnt, in the order in which they are shown.
    seen : tuple of str
        The kinds of anomaly that it knows.
    columns : dict of str to str
        The columns that are used, and what each is read as.
    dropped : dict of str to str
        The columns that are not, and why.
    landmarks : int
    rate, least_rate : float
        The rate of false alarms that was asked for, and the least that can be promised.
    calibrating : int
        The normal rows that were held out to set the threshold.
    threshold : float
    """

    normal: str
    counts: dict[str, int]
    seen: tuple[str, ...]
    columns: dict[str, str]
    dropped: dict[str, str]
    landmarks: int
    rate: float
    least_rate: float
    calibrating: int
    threshold: float

    @property
    def rows(self) -> int:
        """All rows that were learnt."""
        return sum(self.counts.values())

    @property
    def promised(self) -> bool:
        """Whether there are rows enough to promise the rate."""
        return self.least_rate <= self.rate + 1e-12


def learnt_by(detector: Detector, *, normal: str, counts: Mapping[str, int]) -> Learnt:
    """What a fitted detector has learnt from so many rows of each kind, and of the normal one."""
    encoder = detector.feature_map_.encoder
    names = getattr(encoder, "feature_names_in_", [f"x{i}" for i in range(encoder.n_features_in_)])
    return Learnt(
        normal=normal,
        counts=dict(counts),
        seen=tuple(sorted(detector.kinds_)),
        columns={
            str(name): _WORDS[learnt.reads]
            for name, learnt in zip(names, encoder.columns_, strict=True)
            if learnt is not None
        },
        dropped=dict(encoder.dropped_),
        landmarks=len(detector.feature_map_.landmarks),
        rate=float(detector.false_alarm_rate),
        least_rate=detector.calibration_.least_rate,
        calibrating=len(detector.calibration_.scores) - detector.calibration_.n_left_out,
        threshold=detector.threshold_,
    )


_WORDS = {
    "number": "numbers",
    "date": "dates",
    "duration": "durations",
    "text": "names",
    "boolean": "yes or no",
}
