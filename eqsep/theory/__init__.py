"""Theory of equality separation: closing numbers, volumes, shattering and the VC dimension."""

from eqsep.theory.boolean import count_boolean_functions
from eqsep.theory.certificate import Hyperplane, Shattering
from eqsep.theory.closed_networks import (
    Layer,
    LayerClosedness,
    NetworkClosedness,
    network_closedness,
)
from eqsep.theory.families import separating_hyperplane
from eqsep.theory.regions import (
    Chance,
    Closure,
    Parallelepiped,
    bounding_parallelepiped,
    closing_number,
    closing_probability,
    enclosing_probability,
    is_closed,
    region_volume,
)
from eqsep.theory.shattering import find_shattered, shatters
from eqsep.theory.vc import WITNESSES, VCBounds, vc_dimension

__all__ = ["WITNESSES", "Chance", "Closure", "Hyperplane", "Layer", "LayerClosedness"]
__all__ += ["NetworkClosedness", "Parallelepiped", "Shattering", "VCBounds"]
__all__ += ["bounding_parallelepiped", "closing_number", "closing_probability"]
__all__ += ["count_boolean_functions", "enclosing_probability", "find_shattered", "is_closed"]
__all__ += ["network_closedness", "region_volume", "separating_hyperplane", "shatters"]
__all__ += ["vc_dimension"]
