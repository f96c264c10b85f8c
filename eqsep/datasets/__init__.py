"""Data to learn on: the paper's synthetic problems and real tables, one record for all of them."""

from eqsep.datasets.logic import make_logic
from eqsep.datasets.nsl_kdd import load_nsl_kdd
from eqsep.datasets.split import Split
from eqsep.datasets.synthetic import make_circles, make_gaussians, make_hyperplane

__all__ = [
    "Split",
    "load_nsl_kdd",
    "make_circles",
    "make_gaussians",
    "make_hyperplane",
    "make_logic",
]
