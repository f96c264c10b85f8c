"""Public embeddings of MVTec AD, which stand in for the images where these are not there."""

from typing import Any
from zipfile import BadZipFile

import numpy as np

from eqsep.datasets import LabelledTable
from eqsep.datasets.home import DatasetSource
from eqsep.datasets.records import numbered
from eqsep.errors import UserError

_VECTORS_URL = "https://github.com/Minqi824/ADBench (CV_by_ViT)"
_VECTORS = DatasetSource(
    title="the MVTec AD embeddings", folder="mvtec-embeddings", url=_VECTORS_URL
)
MVTEC_OBJECTS = ("capsule", "hazelnut", "leather", "pill", "wood", "zipper")


def load_mvtec_embeddings(object: str, *, data_home: Any = None) -> LabelledTable:
    """Images of one object of MVTec AD as vectors: good ones and defects.

    Parameters
    ----------
    object : {"capsule", "hazelnut", "leather", "pill", "wood", "zipper"}
        What the images show.
    data_home : path-like or None, default=None
        The folder that holds `mvtec-embeddings/MVTec-AD_<object>.npz`, with the arrays X and y,
        from CV_by_ViT of https://github.com/Minqi824/ADBench. Default: the variable EQSEP_DATA.

    Returns
    -------
    LabelledTable
        With the kinds "normal" and "defect", since the files do not say which defect an image
        shows, and 1,000 features x1, x2, ...
    """
    if object not in MVTEC_OBJECTS:
        raise UserError(f"Unknown object {object!r}: expected one of {', '.join(MVTEC_OBJECTS)}.")
    path = _VECTORS.file(f"MVTec-AD_{object}.npz", data_home=data_home)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"]
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        _VECTORS.refuse(path, f"expected an archive of the numeric arrays X and y; {error}", error)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        shapes = f"X of shape (n, d) and y of shape (n,), got {X.shape} and {y.shape}"
        _VECTORS.refuse(path, f"expected {shapes}")
    kind = _VECTORS.kinds(y, {0: "normal", 1: "defect"}, path=path)
    return LabelledTable(X=X, kind=kind, feature_names=numbered("x", X))
