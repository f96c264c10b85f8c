"""Model files: an estimator as a tree that JSON can hold, and the arrays in it.

None, booleans, integers, finite floats, strings and lists stand for themselves. All else is an
object with one key that says what it is:

| key | value |
|---|---|
| "float" | the 16 hexadecimal digits of an infinity or NaN |
| "tuple", "dict" | a list; an object with the entries |
| "array", "scalar", "names" | the number of an array: as it is, its one item, its strings |
| "class" | [name, object with the parts]: one of `registry.CODECS` |

The arrays are numbered in the order in which the tree names them, and each is named once.
"""

import errno
import hashlib
import json
import math
import os
import re
import stat
import struct
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eqsep import __version__
from eqsep.arrays import is_foreign, to_numpy
from eqsep.detector.model import Model
from eqsep.files import written_whole
from eqsep.persistence import container
from eqsep.persistence.container import MOST_AXES, PREFIX
from eqsep.persistence.registry import CODECS, DETECTOR, ESTIMATORS, SCORING, Codec, name_of
from eqsep.schemas import ModelFileError, damaged, summary

MOST_LEVELS = 40
_LARGE_FILE = 2**28  # bytes from which on the header is read before the arrays
_BITS = 64
_FLOAT = re.compile("[0-9a-f]{16}")
Codecs = Mapping[str, Codec]


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted separator or detector to one file, completely or not at all, like its `save`.

    Parameters
    ----------
    estimator : separator or Detector
        Fitted. One fitted to torch tensors scores NumPy rows once loaded.
    path : str or path-like

    Raises
    ------
    ModelFileError
        The model contains something a file cannot hold: a function as a kernel, a class of
        your own or of scikit-learn (as in `OneVsSet`), a random generator as `random_state`.
    """
    data = model_bytes(estimator)
    with written_whole(path) as file:
        file.write(data)


def model_bytes(estimator: Any) -> bytes:
    """What `save_model` writes to a file."""
    if name_of(estimator) not in ESTIMATORS:
        got = type(estimator).__name__
        raise ModelFileError(
            f"Only eqsep's detectors and separators can be saved, without OneVsSet; got {got}. "
            f"skops saves estimators made of scikit-learn's."
        )
    from sklearn.utils.validation import check_is_fitted  # slow: who reads does not wait for it

    check_is_fitted(estimator)
    writer = Writer()
    tree = writer.tree(estimator, type(estimator).__name__)
    data = container.pack(tree, writer.arrays, made_by=__version__)
    model_of(data)  # what cannot be read again is not written
    return data


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted separator or detector from a file written by its `save`.

    The file cannot run code: it holds only numbers, strings and the names of known classes.
    Its size bounds the memory and time that it takes to read.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    ModelFileError
        A ValueError: the file is not a model file, is damaged, or has a newer format.
    OSError
        The file is missing, is a folder, or is not readable.
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
    return model_of(_read(Path(path)))


def read_model(path: str | os.PathLike[str]) -> Any:
    """Read what scores rows: a detector's `Model`, without scikit-learn, or a separator.

    The model gives the same scores as the detector, bit for bit, and cannot learn.
    """
    return model_of(_read(Path(path)), scoring=True)


def model_of(data: bytes, *, scoring: bool = False) -> Any:
    """The separator or detector in the bytes of a model file; if `scoring`, as `read_model`."""
    tree, arrays = container.unpack(data)
    codecs = SCORING if scoring and _is_of(tree, [DETECTOR]) else CODECS
    model = Reader(arrays, codecs=codecs).model(tree)
    if not _is_of(tree, ESTIMATORS) or not (isinstance(model, Model) or hasattr(model, "classes_")):
        damaged("it does not hold a fitted separator")
    return model


def content_hash(model: Model) -> str:
    """A hash of what a model knows: the same after rows were learnt and forgotten again."""
    return state_hash(model.known())


def state_hash(state: dict[str, Any]) -> str:
    """A hash of the parts of a model file."""
    writer = Writer()
    tree = writer.tree(state, "Model")
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for array in writer.arrays:
        if array.dtype.kind == "U":  # no wider than its names
            array = np.array(array.tolist(), dtype=str)
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{little.dtype.str} {little.shape}".encode())
        digest.update(little.tobytes())
    return digest.hexdigest()


def _is_of(tree: Any, names: Collection[str]) -> bool:
    """Whether a tree is that of an object of one of these classes."""
    content = tree.get("class") if type(tree) is dict else None
    return type(content) is list and bool(content) and content[0] in names


def _read(path: Path) -> bytes:
    """The bytes of a model file; of any other file, only the first few are read."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "A model file was expected, not a folder", str(path))
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"{path} is a pipe, a socket or a device, not a model file.")
    with path.open("rb") as file:
        prefix = file.read(PREFIX.size)
        head = prefix + file.read(container.check_prefix(prefix))
        size = path.stat().st_size
        if size > _LARGE_FILE:  # a file may have a size and hardly any content
            container.check_length(head, size)
        return head + file.read(max(size - len(head), 0))


class Writer:
    """Turns values into trees and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []

    def tree(self, value: Any, where: str, level: int = 0) -> Any:
        """The tree of `value`, which messages call `where`."""
        if level > MOST_LEVELS:
            raise ModelFileError(f"{where} cannot be saved: it goes too deep.")
        if type(value) is int and value.bit_length() >= _BITS:
            raise ModelFileError(f"{where} cannot be saved: {value} has more than 64 bits.")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if type(value) in (list, tuple):
            items = [self.tree(v, f"{where}[{i}]", level + 1) for i, v in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if type(value) is dict:
            return {"dict": self._entries(value, where, level)}
        if isinstance(value, np.generic):
            return {"scalar": self._number(np.asarray(value), where)}
        if is_foreign(value) or type(value) is np.ndarray:
            return self._array(to_numpy(value), where)
        name = name_of(value)
        if name is None:
            raise ModelFileError(f"{where} cannot be saved: {_reason(value)}")
        return {"class": [name, self._entries(CODECS[name].encode(value), where, level)]}

    def _entries(self, values: dict[str, Any], where: str, level: int) -> dict[str, Any]:
        if not all(type(key) is str for key in values):
            raise ModelFileError(f"{where} cannot be saved: the keys of a dict must be strings.")
        return {k: self.tree(v, f"{where}.{k}", level + 1) for k, v in values.items()}

    def _array(self, array: np.ndarray, where: str) -> dict[str, int]:
        if array.dtype.kind != "O":
            return {"array": self._number(array, where)}
        if array.ndim != 1 or not all(type(name) is str for name in array):
            raise ModelFileError(
                f"{where} cannot be saved: it is an array of Python objects. Make it one of "
                f"numbers, booleans or strings."
            )
        return {"names": self._number(array.astype(str), where)}

    def _number(self, array: np.ndarray, where: str) -> int:
        if array.dtype.kind not in "biufU" or array.ndim > MOST_AXES:
            raise ModelFileError(
                f"{where} cannot be saved: expected an array of numbers, booleans or strings, got "
                f"{summary(array)}."
            )
        self.arrays.append(array)
        return len(self.arrays) - 1


def _reason(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "it is a random generator. Set it to an int or None first: model.set_params(...)."
    if callable(value) and not hasattr(value, "get_params"):
        return "it is a function, and a file that holds code could run it. Use a kernel by name."
    return (
        f"{type(value).__module__}.{type(value).__qualname__} is not among the classes that a "
        f"model file may hold: eqsep's own separators (without OneVsSet), detectors, heads, "
        f"losses, kernels and solvers."
    )


class Reader:
    """Turns trees back into values; takes each array once, in order."""

    def __init__(self, arrays: list[np.ndarray], *, codecs: Codecs = CODECS) -> None:
        self._arrays, self._codecs, self._taken = arrays, codecs, 0

    def model(self, tree: Any) -> Any:
        """The value of the whole tree, which must refer to all arrays."""
        value = self.value(tree)
        if self._taken != len(self._arrays):
            damaged("it holds arrays that nothing refers to")
        return value

    def value(self, tree: Any, level: int = 0) -> Any:
        """The value that `tree` stands for."""
        if level > MOST_LEVELS:
            damaged("its parts are nested too deep")
        if type(tree) is list:
            return [self.value(item, level + 1) for item in tree]
        if type(tree) is not dict:
            return tree
        if len(tree) != 1:
            damaged("a part of it says more than one thing of itself")
        [(kind, content)] = tree.items()
        if kind not in _KINDS:
            damaged(f"a part of it is {summary(kind)}, which is unknown")
        return _KINDS[kind](self, content, level)

    def _float(self, content: Any, level: int) -> float:  # noqa: ARG002  as all of `_KINDS`
        if type(content) is not str or not _FLOAT.fullmatch(content):
            damaged(f"{summary(content)} is not a float")
        return float(struct.unpack(">d", bytes.fromhex(content))[0])

    def _tuple(self, content: Any, level: int) -> tuple[Any, ...]:
        if type(content) is not list:
            damaged("a tuple is not a list of items")
        return tuple(self.value(item, level + 1) for item in content)

    def _dict(self, content: Any, level: int) -> dict[str, Any]:
        if type(content) is not dict:
            damaged("a dict has no entries")
        return {key: self.value(item, level + 1) for key, item in content.items()}

    def _array(self, content: Any, level: int = 0) -> np.ndarray:  # noqa: ARG002
        if type(content) is not int or content != self._taken or content >= len(self._arrays):
            damaged("an array is missing, or named out of turn")
        self._taken += 1
        return self._arrays[content]

    def _scalar(self, content: Any, level: int) -> Any:
        array = self._array(content, level)
        if array.shape != ():
            damaged("a scalar has a shape")
        return array[()]

    def _names(self, content: Any, level: int) -> np.ndarray:
        array = self._array(content, level)
        if array.ndim != 1 or array.dtype.kind != "U":
            damaged("names are not strings")
        return array.astype(object)

    def _object(self, content: Any, level: int) -> Any:
        if type(content) is not list or len(content) != 2 or type(content[0]) is not str:
            damaged("an object has no class")
        name, parts = content
        parts = self._dict(parts, level)
        if name not in self._codecs:
            raise ModelFileError(
                f"The model file holds an object of class {summary(name)}, which this eqsep does "
                f"not know. It was saved by a newer eqsep, or it is damaged."
            )
        return self._codecs[name].decode(parts, name)


_KINDS: dict[str, Callable[[Reader, Any, int], Any]] = {
    "float": Reader._float,
    "tuple": Reader._tuple,
    "dict": Reader._dict,
    "array": Reader._array,
    "scalar": Reader._scalar,
    "names": Reader._names,
    "class": Reader._object,
}
