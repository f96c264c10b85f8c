"""Data to learn on: the paper's synthetic problems and real tables, as two kinds of record.

A `TrainTestSplit` is divided into training and test as it was published; a `LabelledTable` is for
the caller to divide.
"""

from eqsep.datasets.embeddings import DINOv2Embedding, EfficientNetEmbedding
from eqsep.datasets.fetching import fetch_data
from eqsep.datasets.images import load_image_folder, load_mvtec
from eqsep.datasets.mixed_demo import make_mixed_demo
from eqsep.datasets.nsl_kdd import load_nsl_kdd
from eqsep.datasets.process import make_process
from eqsep.datasets.records import LabelledTable, TrainTestSplit
from eqsep.datasets.synthetic import make_circles, make_gaussians, make_hyperplane, make_logic
from eqsep.datasets.thyroid import load_thyroid

__all__ = ["DINOv2Embedding", "EfficientNetEmbedding", "LabelledTable", "TrainTestSplit"]
__all__ += ["fetch_data", "load_image_folder", "load_mvtec", "load_nsl_kdd", "load_thyroid"]
__all__ += ["make_circles", "make_gaussians", "make_hyperplane", "make_logic", "make_mixed_demo"]
__all__ += ["make_process"]
