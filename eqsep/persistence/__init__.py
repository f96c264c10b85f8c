"""Model files: a fitted estimator as one file, without pickle.

`files` turns a model into a tree of plain values and back, `container` a tree and its arrays into
bytes; `registry` has the classes that a file may hold.
"""

from eqsep.persistence.files import load_model, read_model, save_model
from eqsep.schemas import ModelFileError

__all__ = ["ModelFileError", "load_model", "read_model", "save_model"]
