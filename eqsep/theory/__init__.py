"""Theory of equality separation: closing numbers, volumes, shattering and the VC dimension."""

from eqsep.theory.boolean import count_boolean_functions
from eqsep.theory.boxes import Parallelepiped, bounding_parallelepiped
from eqsep.theory.certificate import Shattering
from eqsep.theory.closing import Closure, closing_number, closing_probability, is_closed
from eqsep.theory.enclosing import Chance, enclosing_probability
from eqsep.theory.network import Layer, LayerClosedness, NetworkClosedness, network_closedness
from eqsep.theory.planes import Hyperplane
from eqsep.theory.search import find_shattered
from eqsep.theory.separating import separating_hyperplane
from eqsep.theory.shattering import shatters
from eqsep.theory.vc import VCBounds, vc_dimension
from eqsep.theory.volume import region_volume
from eqsep.theory.witnesses import WITNESSES

__all__ = [
    "WITNESSES",
    "Chance",
    "Closure",
    "Hyperplane",
    "Layer",
    "LayerClosedness",
    "NetworkClosedness",
    "Parallelepiped",
    "Shattering",
    "VCBounds",
    "bounding_parallelepiped",
    "closing_number",
    "closing_probability",
    "count_boolean_functions",
    "enclosing_probability",
    "find_shattered",
    "is_closed",
    "network_closedness",
    "region_volume",
    "separating_hyperplane",
    "shatters",
    "vc_dimension",
]
