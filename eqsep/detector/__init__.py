"""The detector: mixed tables in, alarms at a promised rate of false ones out.

Four frozen values (`Config`, `Plan`, `Evidence`, `Model`) and a thin shell, `Detector`;
`docs/architecture.md` describes how they fit together.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqsep.detector.audit import NewKindWarning as NewKindWarning
    from eqsep.detector.audit import RepeatedRowsWarning as RepeatedRowsWarning
    from eqsep.detector.audit import Repeats as Repeats
    from eqsep.detector.audit import learnt_before as learnt_before
    from eqsep.detector.audit import suspects as suspects
    from eqsep.detector.calibration import CalibrationWarning as CalibrationWarning
    from eqsep.detector.closedness import ColumnClosedness as ColumnClosedness
    from eqsep.detector.closedness import End as End
    from eqsep.detector.closedness import closedness_by_column as closedness_by_column
    from eqsep.detector.config import Config as Config
    from eqsep.detector.detector import Detector as Detector
    from eqsep.detector.model import Model as Model
    from eqsep.detector.namer import KindSets as KindSets
    from eqsep.detector.plan import Plan as Plan
    from eqsep.detector.runs import PersistentAlarms as PersistentAlarms
    from eqsep.detector.runs import Runs as Runs
    from eqsep.detector.runs import Windows as Windows

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

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: scoring does not wait for scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
