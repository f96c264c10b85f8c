"""eqsep: anomaly detection by equality separation.

Ask whether a point lies *on* a learnt surface, not on which side of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqsep.detector import Detector as Detector
    from eqsep.monitor import Monitor as Monitor
    from eqsep.persistence import load_model as load_model
    from eqsep.separators.deep_sad import DeepSAD as DeepSAD
    from eqsep.separators.kernel import KernelEqualitySeparator as KernelEqualitySeparator
    from eqsep.separators.linear import EqualitySeparator as EqualitySeparator
    from eqsep.separators.negative_sampling import NegativeSampling as NegativeSampling
    from eqsep.separators.network import NetworkSeparator as NetworkSeparator
    from eqsep.separators.one_vs_set import OneVsSet as OneVsSet
    from eqsep.separators.twin import TwinSeparator as TwinSeparator

__version__ = "0.2.0"

_HOMES = {
    "DeepSAD": "eqsep.separators.deep_sad",
    "Detector": "eqsep.detector",
    "EqualitySeparator": "eqsep.separators.linear",
    "KernelEqualitySeparator": "eqsep.separators.kernel",
    "Monitor": "eqsep.monitor",
    "NegativeSampling": "eqsep.separators.negative_sampling",
    "NetworkSeparator": "eqsep.separators.network",
    "OneVsSet": "eqsep.separators.one_vs_set",
    "TwinSeparator": "eqsep.separators.twin",
    "load_model": "eqsep.persistence",
}

_SUBMODULES = (
    *("activations", "checks", "client", "datasets", "detector", "distributed", "errors"),
    *("evaluation", "export", "io", "kernels", "losses", "monitor", "networks", "persistence"),
    *("plots", "report", "solvers", "tables", "theory"),
)

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import a public name or module when it is first asked for: `import eqsep` stays light."""
    if name in _SUBMODULES:
        return import_module(f"eqsep.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'eqsep' has no attribute {name!r}; it has {sorted(_HOMES)}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
