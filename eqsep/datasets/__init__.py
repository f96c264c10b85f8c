"""Data to learn on: generators of the paper's synthetic problems, one record for all of them."""

from eqsep.datasets.logic import make_logic
from eqsep.datasets.split import Split
from eqsep.datasets.synthetic import make_circles, make_gaussians, make_hyperplane

__all__ = ["Split", "make_circles", "make_gaussians", "make_hyperplane", "make_logic"]
