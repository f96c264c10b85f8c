"""The detector: mixed tables in, alarms at a promised rate of false ones out.

Four frozen values and a thin shell. `docs/architecture.md` says how they fit together.

| module | what it knows |
|---|---|
| `config` | every number that a fit depends on |
| `plan` | what the first rows decide: encoding, terms of the score, hold-out, labels |
| `evidence` | all that rows teach, as what adds and subtracts |
| `model` | what follows from plan and evidence; it scores, and needs NumPy alone |
| `detector` | the shell of scikit-learn: it reads, gathers and solves |
| `score` | the formula, and its terms |
| `holdout` | which rows calibrate, by a hash, one by one or in groups |
| `calibration` | p-values, thresholds and promises by held-out rows |
| `namer` | which seen kinds an alarm may be of |
| `explainer` | which columns drive a score, and towards which normal value |
| `first_fit` | a first fit to rows in memory, to a stream or on a cluster |
| `runs` | rows in time: windows over the last rows, alarms that must persist |
| `drift` | whether rows change in time, by fits that look forwards |
| `audit` | rows learnt twice or not well, and rows to judge next |
| `closedness` | what the score does as one column goes far out |
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqsep.detector.audit import (
        NewKindWarning,
        RepeatedRowsWarning,
        Repeats,
        learnt_before,
        suspects,
    )
    from eqsep.detector.calibration import CalibrationWarning
    from eqsep.detector.closedness import ColumnClosedness, End, closedness_by_column
    from eqsep.detector.config import Config
    from eqsep.detector.detector import Detector
    from eqsep.detector.model import Model
    from eqsep.detector.plan import Plan
    from eqsep.detector.runs import PersistentAlarms, Runs, Windows

_HOMES = {
    "CalibrationWarning": "calibration",
    "ColumnClosedness": "closedness",
    "Config": "config",
    "Detector": "detector",
    "End": "closedness",
    "Model": "model",
    "NewKindWarning": "audit",
    "PersistentAlarms": "runs",
    "Plan": "plan",
    "RepeatedRowsWarning": "audit",
    "Repeats": "audit",
    "Runs": "runs",
    "Windows": "runs",
    "closedness_by_column": "closedness",
    "learnt_before": "audit",
    "suspects": "audit",
}

__all__ = [
    "CalibrationWarning",
    "ColumnClosedness",
    "Config",
    "Detector",
    "End",
    "Model",
    "NewKindWarning",
    "PersistentAlarms",
    "Plan",
    "RepeatedRowsWarning",
    "Repeats",
    "Runs",
    "Windows",
    "closedness_by_column",
    "learnt_before",
    "suspects",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: scoring does not wait for scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
