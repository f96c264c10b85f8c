"""Studies of the theory that only this reproduction needs; `eqsep.theory` has the rest.

`paper.theory.networks` (needs torch) has what a fitted network encloses. `paper.theory.levels`
proves the bounds of `vc_dimension` that come from counting slabs level by level.
"""

from paper.theory.boolean import count_boolean_functions
from paper.theory.chances import Chance, enclosing_probability
from paper.theory.hyperrectangle import (
    HyperrectangleSeparator,
    Parallelepiped,
    bounding_parallelepiped,
)
from paper.theory.search import find_shattered
from paper.theory.witnesses import WITNESSES

__all__ = ["WITNESSES", "Chance", "HyperrectangleSeparator", "Parallelepiped"]
__all__ += ["bounding_parallelepiped", "count_boolean_functions", "enclosing_probability"]
__all__ += ["find_shattered"]
