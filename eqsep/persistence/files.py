"""The file itself: written whole or not at all, read only as far as it is a model."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from eqsep import __version__
from eqsep.files import written_whole
from eqsep.persistence.container import (
    PREFIX,
    ModelFileError,
    check_prefix,
    pack,
    unpack,
    version_of,
)
from eqsep.persistence.registry import is_separator
from eqsep.persistence.values import Reader, Writer


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted separator or detector to one file, which `eqsep.load_model` reads.

    The file is first written beside `path` under another name and then renamed: whoever is
    interrupted leaves the old file as it was.

    Parameters
    ----------
    estimator : separator or Detector
        Any of eqsep's, fitted. What was fitted to torch tensors is kept as NumPy
        arrays and scores NumPy rows once loaded.
    path : str or path-like

    Raises
    ------
    ModelFileError
        For what cannot be kept without running code: a function as a kernel, a class of one's
        own, a random generator as `random_state`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from eqsep import EqualitySeparator, load_model
    >>> from eqsep.persistence import save_model
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> model = EqualitySeparator(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "xor.eqsep")
    ...     load_model(Path(folder) / "xor.eqsep").predict(X)
    array([0, 1, 1, 0])
    """
    if not is_separator(estimator):
        raise ModelFileError(
            f"Only eqsep's separators and detectors can be saved, got {type(estimator).__name__}."
        )
    check_is_fitted(estimator)
    writer = Writer()
    tree = writer.tree(estimator, type(estimator).__name__)
    data = pack(tree, writer.arrays, made_by=__version__)
    _model(data)  # what cannot be read again is not written
    with written_whole(path) as file:
        file.write(data)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted separator or detector from a file that its `save` has written.

    No code of the file is run: it holds numbers, strings and the names of known classes only.
    Memory and time are bounded by the size of the file, whatever it holds.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    separator or Detector
        With the parameters and all that was learnt, to score or to learn on.

    Raises
    ------
    ModelFileError
        A ValueError: the file is no model file, damaged, or of a newer format.
    OSError
        The file is missing, a folder, or may not be read.
    ImportError
        The model is a network and PyTorch is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from eqsep import KernelEqualitySeparator, load_model
    >>> model = KernelEqualitySeparator(gamma=1.0).fit([[0.0], [0.2], [5.0]], [0, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.eqsep")
    ...     model = load_model(Path(folder) / "model.eqsep")
    >>> model.partial_fit([[5.1]], [1]).predict([[0.1], [5.0]])
    array([0, 1])
    """
    return _model(_read(Path(path)))


def _model(data: bytes) -> Any:
    tree, arrays = unpack(data)
    model = Reader(arrays, version=version_of(data)).model(tree)
    if not is_separator(model) or not hasattr(model, "classes_"):
        raise ModelFileError("The model file is damaged: what it holds is no fitted separator.")
    return model


def _read(path: Path) -> bytes:
    """The bytes of a regular file; of one that begins as no model does, the first few only."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "A model file was expected, not a folder", str(path))
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"{path} is a pipe, a socket or a device, not a model file.")
    with path.open("rb") as file:
        prefix = file.read(PREFIX.size)
        check_prefix(prefix)
        return prefix + file.read()
