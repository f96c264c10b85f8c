"""The detector: mixed tables in, alarms at a promised rate of false ones out.

Four frozen values (`Config`, `Plan`, `Evidence`, `Model`) and a thin shell, `Detector`;
`docs/architecture.md` describes how they fit together.
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
    from eqsep.detector.namer import KindSets
    from eqsep.detector.plan import Plan
    from eqsep.detector.runs import PersistentAlarms, Runs, Windows

_MODULES = {
    "audit": ("NewKindWarning", "RepeatedRowsWarning", "Repeats", "learnt_before", "suspects"),
    "calibration": ("CalibrationWarning",),
    "closedness": ("ColumnClosedness", "End", "closedness_by_column"),
    "config": ("Config",),
    "detector": ("Detector",),
    "model": ("Model",),
    "namer": ("KindSets",),
    "plan": ("Plan",),
    "runs": ("PersistentAlarms", "Runs", "Windows"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "CalibrationWarning",
    "ColumnClosedness",
    "Config",
    "Detector",
    "End",
    "KindSets",
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
