"""The bytes of a model file: a prefix, a header in JSON, raw arrays and a checksum.

| bytes | what |
|---|---|
| 8 | the magic `89 65 71 73 65 70 0d 0a` ("\\x89eqsep\\r\\n") |
| 4 | the version of the format, little-endian, as all that follows |
| 8 | the length of the header |
| … | the header: ASCII JSON with the keys "eqsep", "model" and "arrays" |
| … | the arrays, one after the other, as "arrays" says: dtype, shape, order |
| 32 | SHA-256 of all bytes before |

Nothing is allocated before its size is known to fit the bytes that are there.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from eqsep.schemas import ModelFileError, damaged

MAGIC = b"\x89eqsep\r\n"
VERSION = 5  # the first that is released
PREFIX = struct.Struct("<8sIQ")
MOST_HEADER = 2**24  # bytes
MOST_NESTED = 200_000  # lists and objects: each costs far more memory than its two bytes
MOST_VALUES = 2**20  # numbers and names: 16 MB of them take seconds to parse
MOST_AXES = 8
_DIGEST = 32
_INTEGER_DIGITS = 20
_DTYPE = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,6}")
Order = Literal["C", "F"]
Tree: TypeAlias = "bool | int | float | str | list[Tree] | dict[str, Tree] | None"  # of JSON


def pack(model: Tree, arrays: Sequence[np.ndarray], *, made_by: str) -> bytes:
    """The bytes of a file that holds the tree `model` and the arrays it refers to."""
    entries, pieces = [], []
    for array in arrays:
        dtype = array.dtype.newbyteorder("<")
        if not _DTYPE.fullmatch(dtype.str):
            expected = "expected numbers, booleans or strings"
            raise ModelFileError(f"an array of dtype {array.dtype} cannot be saved: {expected}.")
        little = np.array(array, dtype=dtype, order="K", subok=False)
        if not (little.flags.c_contiguous or little.flags.f_contiguous):
            little = np.ascontiguousarray(little)
        order: Order = "C" if little.flags.c_contiguous else "F"
        entries.append({"dtype": little.dtype.str, "shape": list(little.shape), "order": order})
        pieces.append(little.tobytes(order=order))
    document = {"eqsep": made_by, "model": model, "arrays": entries}
    header = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    n_values = header.count(b",")
    if len(header) > MOST_HEADER or n_values > MOST_VALUES:
        raise ModelFileError(
            f"The model cannot be saved: its names and settings are {n_values:,} values of "
            f"{len(header):,} bytes, at most {MOST_VALUES:,} of {MOST_HEADER:,} fit. Leave out "
            f"columns of very many names."
        )
    body = b"".join([PREFIX.pack(MAGIC, VERSION, len(header)), header, *pieces])
    return body + hashlib.sha256(body).digest()


def check_prefix(prefix: bytes) -> int:
    """The length of the header; refuses other files and newer formats."""
    if len(prefix) < PREFIX.size or not prefix.startswith(MAGIC):
        raise ModelFileError("This is not an eqsep model file: its first bytes are others.")
    _, version, length = PREFIX.unpack_from(prefix)
    if version > VERSION:
        raise ModelFileError(
            f"This model file has format version {version}, newer than version {VERSION}, the "
            f"latest that this eqsep reads. Install a newer eqsep."
        )
    if version < VERSION or length > MOST_HEADER:
        damaged(f"format version {version} with a header of {length} bytes does not exist")
    return int(length)


def unpack(data: bytes) -> tuple[Any, list[np.ndarray]]:
    """The tree and the arrays in the bytes of a file, each array as new memory."""
    start = PREFIX.size + check_prefix(data[: PREFIX.size])
    end = len(data) - _DIGEST
    view = memoryview(data)
    if start > end or hashlib.sha256(view[:end]).digest() != data[end:]:
        damaged("its checksum does not fit its bytes")
    document, plan = _plan(data[PREFIX.size : start], room=end - start)
    arrays = []
    for dtype, shape, order in plan:
        stop = start + _size(dtype, shape)
        arrays.append(_array(view[start:stop], dtype, shape, order))
        start = stop
    return document["model"], arrays


def check_length(head: bytes, size: int) -> None:
    """Refuse a file of another size than its header gives, before it is read."""
    _plan(head[PREFIX.size :], room=size - len(head) - _DIGEST)


def _plan(header: bytes, *, room: int) -> tuple[Any, list[tuple[np.dtype, tuple[int, ...], Order]]]:
    """The header as a document, and its arrays, which take all of the room."""
    document = _header(header)
    if type(document) is not dict or set(document) != {"eqsep", "model", "arrays"}:
        damaged("its header lacks a key, or has one too many")
    if type(document["arrays"]) is not list:
        damaged("its arrays are not a list")
    plan = [_entry(entry, room=PREFIX.size + len(header) + room) for entry in document["arrays"]]
    if sum(_size(dtype, shape) for dtype, shape, _ in plan) != room:
        damaged("its arrays do not add up to its length")
    return document, plan


def origin(data: bytes) -> tuple[str, int]:
    """The eqsep that wrote a file, and the version of its format."""
    start = PREFIX.size + check_prefix(data[: PREFIX.size])
    return _header(data[PREFIX.size : start])["eqsep"], int(PREFIX.unpack_from(data)[1])


def _header(header: bytes) -> Any:
    """The JSON in `header`, read more strictly than JSON asks for."""
    if header.count(b"[") + header.count(b"{") > MOST_NESTED or header.count(b",") > MOST_VALUES:
        damaged("its header has too many parts")
    try:
        return json.loads(
            header.decode("ascii"),
            object_pairs_hook=_distinct,
            parse_constant=lambda word: damaged(f"its header holds {word}"),
            parse_float=_finite,
            parse_int=_small,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"The model file is damaged: no header ({error}).") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        damaged("a key of its header occurs twice")
    return found


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        damaged("a number of its header is too large")
    return value


def _small(digits: str) -> int:
    if len(digits) > _INTEGER_DIGITS:
        damaged("a number of its header is too long")
    return int(digits)


def _entry(entry: Any, *, room: int) -> tuple[np.dtype, tuple[int, ...], Order]:
    """The dtype, shape and order of an array that fits into `room` bytes."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "order"}:
        damaged("an array is not described by dtype, shape and order")
    name, shape = entry["dtype"], entry["shape"]
    if type(name) is not str or not _DTYPE.fullmatch(name):
        damaged("an array has an unknown dtype")
    order: Order = "F" if entry["order"] == "F" else "C"
    if order != entry["order"]:
        damaged("an array has an unknown order")
    is_shape = type(shape) is list and len(shape) <= MOST_AXES
    if not is_shape or any(type(size) is not int or size < 0 for size in shape):
        damaged("an array has no proper shape")
    dtype = np.dtype(name)
    if _size(dtype, shape) > room or math.prod(max(size, 1) for size in shape) > room:
        damaged("an array is larger than the file")
    return dtype, tuple(shape), order


def _size(dtype: np.dtype, shape: Sequence[int]) -> int:
    return math.prod(shape) * dtype.itemsize


def _array(piece: memoryview, dtype: np.dtype, shape: tuple[int, ...], order: Order) -> np.ndarray:
    if not piece:
        return np.empty(shape, dtype.newbyteorder("="), order=order)
    flat = np.frombuffer(piece, dtype)
    if dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        damaged("a boolean is neither true nor false")
    if dtype.kind == "U" and flat.view("<u4").max() > 0x10FFFF:
        damaged("a string holds an invalid character")
    return flat.astype(dtype.newbyteorder("="), copy=True).reshape(shape, order=order)
