"""The detector: mixed tables in, alarms with a promised rate of false ones out.

| module | what it knows |
|---|---|
| `detector` | the estimator: what it learns |
| `answers` | what it says of rows once it is fitted, which takes nothing of scikit-learn |
| `probability` | the chance that a row is an anomaly |
| `parameters` | those that no detector can be fitted with |
| `fitting` | a fit: what is agreed on first, and what rows teach under it, as sums that add up |
| `streams` | a first fit to batches of rows |
| `trust` | what the labels of a first fit say of rows that nobody has called anomalous |
| `feature_map` | what is fixed at the first fit: encoding, landmarks, bandwidth, who is held out |
| `holdout` | which rows are held out of a fit, by a hash |
| `weighting` | what rows count, where somebody says so |
| `grouping` | rows that belong together, and are held out together |
| `drift` | whether rows in time change, by fits that look forwards |
| `windows` | mean, deviation, slope and change over the last rows of a run, as columns |
| `persisting` | alarms that must persist for some rows of a run |
| `bandwidth` | the choice of the kernel's bandwidth, without an unseen kind to look at |
| `scoring` | score, p-value, alarm and kind of encoded rows; the calibration behind them |
| `naming` | which seen kinds an alarm may be of, by learnt rows of each |
| `promise` | what held-out rows can promise of one model, with a confidence |
| `selection` | of a batch of rows those to call anomalies, few of them falsely |
| `contamination` | anomalies among the rows that calibrate, which nobody has labelled |
| `learning` | what is merged and forgotten, what was not learnt well, what to judge next |
| `repeats` | whether rows were learnt before, by those that are held out |
| `explanation` | which columns drive a score, and towards which normal value |
| `closedness` | what the score does as one column goes far out |
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqsep.detector.closedness import ColumnClosedness, End, closedness_by_column
    from eqsep.detector.detector import Detector
    from eqsep.detector.feature_map import FeatureMap
    from eqsep.detector.learning import NewKindWarning, suspects
    from eqsep.detector.persisting import PersistentAlarms
    from eqsep.detector.repeats import RepeatedRowsWarning, Repeats, learnt_before
    from eqsep.detector.scoring import CalibrationWarning
    from eqsep.detector.windows import Runs, Windows

_HOMES = {
    "CalibrationWarning": "scoring",
    "ColumnClosedness": "closedness",
    "Detector": "detector",
    "End": "closedness",
    "FeatureMap": "feature_map",
    "NewKindWarning": "learning",
    "PersistentAlarms": "persisting",
    "RepeatedRowsWarning": "repeats",
    "Repeats": "repeats",
    "Runs": "windows",
    "Windows": "windows",
    "closedness_by_column": "closedness",
    "learnt_before": "repeats",
    "suspects": "learning",
}

__all__ = [
    "CalibrationWarning",
    "ColumnClosedness",
    "Detector",
    "End",
    "FeatureMap",
    "NewKindWarning",
    "PersistentAlarms",
    "RepeatedRowsWarning",
    "Repeats",
    "Runs",
    "Windows",
    "closedness_by_column",
    "learnt_before",
    "suspects",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: who scores rows does not wait for what learns."""
    if name == "PromiseWarning":
        warnings.warn(
            "eqsep.detector.PromiseWarning is now called CalibrationWarning, and will be gone in "
            "0.3.",
            FutureWarning,
            stacklevel=2,
        )
        name = "CalibrationWarning"
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
