"""Theory of equality separation: closing numbers, volumes, shattering and the VC dimension."""

from eqsep.theory.certificate import Hyperplane, Shattering
from eqsep.theory.families import separating_hyperplane
from eqsep.theory.regions import (
    Closure,
    closing_number,
    closing_probability,
    is_closed,
    region_volume,
)
from eqsep.theory.shattering import shatters
from eqsep.theory.vc import VCBounds, vc_dimension

__all__ = ["Closure", "Hyperplane", "Shattering", "VCBounds", "closing_number"]
__all__ += ["closing_probability", "is_closed", "region_volume", "separating_hyperplane"]
__all__ += ["shatters", "vc_dimension"]
