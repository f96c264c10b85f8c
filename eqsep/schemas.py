"""Schemas: what the parts of a kept object may be, checked before the object is built.

A class that is kept in a model file has `state()`, its parts by name, and `from_state()`, which
checks them and builds the object; `Kept` does both for a dataclass. A schema gets a part and the
sizes known so far, by name: the first array with an axis "m" fixes m, and all others must agree.
"""

import math
import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from eqsep.errors import UserError


class ModelFileError(UserError):
    """A model file that is damaged, foreign or newer; or a model that cannot be saved."""


def damaged(reason: str) -> NoReturn:
    """Refuse the contents of a model file."""
    raise ModelFileError(f"The model file is damaged: {reason}.")


Sizes = dict[str, int]
_LEAST_BYTES = 4  # of a float: nothing learns in half precision
LARGE = 1e30  # sums of so large numbers are finite in single precision


@dataclass(frozen=True)
class Schema:
    """What a value should be, in words, and whether it is that."""

    description: str
    accepts: Callable[[Any, Sizes], bool]


def summary(value: Any) -> str:
    """A value in a few words, however large it is."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return reprlib.repr(value)
    return f"a {type(value).__name__}"


def fits(shape: tuple[int, ...], axes: tuple[str | int | None, ...], sizes: Sizes) -> bool:
    """Whether the shape has these axes: a size, a name for one of at least 1, or None for any."""
    return len(shape) == len(axes) and all(map(lambda n, a: _agrees(n, a, sizes), shape, axes))


def _agrees(size: int, axis: str | int | None, sizes: Sizes) -> bool:
    if axis is None:
        return True
    if isinstance(axis, int):
        return size == axis
    return size >= 1 and sizes.setdefault(axis, size) == size


def array_of(*axes: str | int | None, kinds: str = "f", finite: bool = True) -> Schema:
    """An array with these axes, of one of these kinds of dtype; floats in full, and finite."""
    shape = ", ".join("any" if axis is None else str(axis) for axis in axes)

    def accepts(value: Any, sizes: Sizes) -> bool:
        right = type(value) is np.ndarray and value.dtype.kind in kinds
        if not right or not fits(value.shape, axes, sizes):
            return False
        if kinds == "f" and value.dtype.itemsize < _LEAST_BYTES:
            return False
        return value.dtype.kind != "f" or not finite or bool(np.isfinite(value).all())

    numbers = " of finite numbers" if kinds == "f" and finite else ""
    return Schema(f"an array of shape ({shape}){numbers}", accepts)


def bounded(*axes: str | int | None, dtype: str) -> Schema:
    """An array with these axes, of this dtype, of finite numbers that can be added up."""
    shaped = array_of(*axes)

    def accepts(value: Any, sizes: Sizes) -> bool:
        if not shaped.accepts(value, sizes) or value.dtype != dtype:
            return False
        with np.errstate(invalid="ignore"):  # a NaN that signals
            return bool(np.abs(value).max(initial=0) <= LARGE)

    return Schema(f"{shaped.description} as {dtype}", accepts)


def plain(description: str, is_valid: Callable[[Any], bool]) -> Schema:
    """A value that can be judged on its own."""
    return Schema(description, lambda value, sizes: is_valid(value))  # noqa: ARG005


def _is_number(value: Any) -> bool:
    is_number = type(value) in (int, float) or isinstance(value, np.integer | np.floating)
    return is_number and bool(-math.inf < value < math.inf)


def _is_whole(value: Any) -> bool:
    return (type(value) is int or isinstance(value, np.integer)) and bool(value >= 1)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _are_texts(value: Any) -> bool:
    are_texts = type(value) is list and all(type(text) is str for text in value)
    return are_texts and len(set(value)) == len(value)


NUMBER = plain("a finite number", _is_number)
NOT_NEGATIVE = plain("a finite number of at least 0", lambda v: _is_number(v) and bool(v >= 0))
POSITIVE = plain("a finite number above 0", lambda v: _is_number(v) and bool(v > 0))
RATE = plain("a number between 0 and 1", lambda v: _is_number(v) and bool(0 < v < 1))
WHOLE = plain("a whole number of at least 1", _is_whole)
KEY = plain("a whole number of 32 bits", lambda v: type(v) is int and 0 <= v < 2**32)
BOUND = plain("an unsigned number of 64 bits", lambda v: isinstance(v, np.uint64))
FLAG = plain("True or False", _is_flag)
TEXT = plain("a string", lambda v: type(v) is str)
TEXTS = plain("a list of distinct strings", _are_texts)
LABEL = plain("a label", lambda v: isinstance(v, str | np.str_) or _is_flag(v) or _is_number(v))
NONE = plain("None", lambda v: v is None)
DICT = plain("a dict", lambda v: type(v) is dict)
CLASSES = array_of(2, kinds="biufU")
SUM = Schema(
    "an array of finite numbers as float64",
    lambda v, s: type(v) is np.ndarray and bounded(*v.shape, dtype="float64").accepts(v, s),
)


def either(*options: Schema) -> Schema:
    """One of several schemas."""
    description = " or ".join(option.description for option in options)
    return Schema(description, lambda value, sizes: any(o.accepts(value, sizes) for o in options))


def word(*words: Any) -> Schema:
    """One of these values, of the same type."""
    return plain(f"one of {words}", lambda v: any(type(v) is type(w) and v == w for w in words))


def counted(axis: str) -> Schema:
    """The number that the axis is long."""
    return Schema(f"the number of {axis}", lambda v, s: _is_whole(v) and _agrees(int(v), axis, s))


def instance(
    *names: str, length: Callable[[Any], int] | None = None, axis: str | None = None
) -> Schema:
    """An object of a class "Class" or "module.Class"; with `length`, as long as the axis."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        name = type(value).__qualname__
        if not {name, f"{type(value).__module__.split('.')[-1]}.{name}"} & set(names):
            return False
        return length is None or _agrees(int(length(value)), axis, sizes)

    return Schema(" or ".join(names), accepts)


def kept(*classes: type, optional: bool = False) -> Schema:
    """An object of one of these classes; if it is `optional`, or None."""
    allowed = (*classes, type(None)) if optional else classes
    return plain(" or ".join(cls.__name__ for cls in classes), lambda v: type(v) in allowed)


def items(item: Schema, *, least: int = 0) -> Schema:
    """A list of items that fit the schema."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        is_list = type(value) is list and len(value) >= least
        return is_list and all(item.accepts(each, sizes) for each in value)

    return Schema(f"a list of {item.description}", accepts)


def entries(entry: Schema, *, among: Collection[str] | None = None) -> Schema:
    """A dict with some of these keys, or any, and values that fit the schema."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        is_known = type(value) is dict and (among is None or set(value) <= set(among))
        return is_known and all(entry.accepts(each, sizes) for each in value.values())

    return Schema(f"a dict of {entry.description}", accepts)


def check(
    parts: Mapping[str, Any], schemas: Mapping[str, Schema], name: str, *, sizes: Sizes
) -> None:
    """Refuse parts that do not fit their schemas."""
    for part, schema in schemas.items():
        if not schema.accepts(parts[part], sizes):
            where = f"{name.split('.')[-1]}.{part}"
            damaged(f"{where} should be {schema.description}, but is {summary(parts[part])}")


def check_names(parts: Mapping[str, Any], name: str, *, required: Any, optional: Any = ()) -> None:
    """Refuse parts that are missing or unknown."""
    missing, unknown = set(required) - set(parts), set(parts) - set(required) - set(optional)
    if missing or unknown:
        newer = " A newer eqsep may have written it." * bool(unknown)
        raise ModelFileError(
            f"The model file does not fit this eqsep: of {name.split('.')[-1]} it lacks "
            f"{_listed(missing)} and has the unknown {_listed(unknown)}.{newer}"
        )


def _listed(names: set[str]) -> str:
    return ", ".join(summary(name) for name in sorted(names)[:5]) or "nothing"


def check_parts(
    parts: Mapping[str, Any], schemas: Mapping[str, Schema], of: type | str, *, optional: Any = ()
) -> None:
    """Refuse parts if a required one is missing, or one is unknown or does not fit."""
    name = of if isinstance(of, str) else of.__name__
    required = [part for part in schemas if part not in optional]
    check_names(parts, name, required=required, optional=optional)
    check(parts, {k: v for k, v in schemas.items() if k in parts}, name, sizes={})


class Kept:
    """A dataclass that a model file holds: its fields that have a schema, as they are."""

    SCHEMAS: ClassVar[Mapping[str, Schema]]

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return {name: getattr(self, name) for name in self.SCHEMAS}

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The object of these parts, and of `others` that are not in the file."""
        check_parts(state, cls.SCHEMAS, cls)
        return cls(**state, **others)
