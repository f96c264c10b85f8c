"""MVTec AD as embeddings: images of six objects, each image a vector of a vision transformer."""

from typing import Any
from zipfile import BadZipFile

import numpy as np

from eqsep.datasets.source import Source
from eqsep.datasets.table import Table
from eqsep.errors import UserError

_SOURCE = Source(
    title="the MVTec AD embeddings",
    folder="mvtec-embeddings",
    url="https://github.com/Minqi824/ADBench (CV_by_ViT)",
)
MVTEC_OBJECTS = ("capsule", "hazelnut", "leather", "pill", "wood", "zipper")
_KIND_OF = {0: "normal", 1: "defect"}


def load_mvtec_embeddings(object: str, *, data_home: Any = None) -> Table:
    """Images of one object of MVTec AD as vectors: good ones and defects.

    Parameters
    ----------
    object : {"capsule", "hazelnut", "leather", "pill", "wood", "zipper"}
        What the images show.
    data_home : path-like or None, default=None
        The folder in which `mvtec-embeddings/MVTec-AD_<object>.npz` lies, with the arrays X and
        y; the variable EQSEP_DATA names it where this is None. The files can be had from
        https://github.com/Minqi824/ADBench, there in CV_by_ViT.

    Returns
    -------
    Table
        With the kinds "normal" and "defect", and 1,000 features x1, x2, ... The files do not say
        which defect an image shows, so there are no kinds to leave out.

    Examples
    --------
    >>> from eqsep.datasets import load_mvtec_embeddings
    >>> load_mvtec_embeddings("screwdriver")
    Traceback (most recent call last):
        ...
    eqsep.errors.UserError: Unknown object 'screwdriver': expected one of capsule, ...
    """
    if object not in MVTEC_OBJECTS:
        raise UserError(f"Unknown object {object!r}: expected one of {', '.join(MVTEC_OBJECTS)}.")
    path = _SOURCE.file(f"MVTec-AD_{object}.npz", data_home=data_home)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"]
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        _SOURCE.refuse(path, f"expected an archive of the numeric arrays X and y; {error}", error)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        _SOURCE.refuse(
            path,
            f"expected X of shape (n, d) and y of shape (n,), got {X.shape} and {y.shape}",
        )
    return Table(
        X=X,
        kind=_SOURCE.kinds(y, _KIND_OF, path=path),
        feature_names=tuple(f"x{i + 1}" for i in range(X.shape[1])),
    )
