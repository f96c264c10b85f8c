"""Schemas: what the parts of a kept object may be, checked before the object is built.

A class that is kept in a model file has `state()`, its parts by name, and `from_state()`, which
checks them by schemas and builds the object; `Kept` does both for a dataclass. A schema sees a part
and the sizes known so far, by name: the first array with an axis "m" fixes m, and all others must
agree.
"""

import math
import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
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
    """Whether the shape has these axes: a size, a name for one of at least 1, or None for any.

    Examples
    --------
    >>> sizes = {"d": 3}
    >>> fits((5, 3), ("m", "d"), sizes), fits((4,), ("m",), sizes), sizes
    (True, False, {'d': 3, 'm': 5})
    """
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

    told = " of finite numbers" if kinds == "f" and finite else ""
    return Schema(f"an array of shape ({shape}){told}", accepts)


def bounded(*axes: str | int | None, dtype: str) -> Schema:
    """An array with these axes, of this dtype, of finite numbers that can be added up."""
    shaped = array_of(*axes)

    def accepts(value: Any, sizes: Sizes) -> bool:
        if not shaped.accepts(value, sizes) or value.dtype != dtype:
            return False
        with np.errstate(invalid="ignore"):  # a NaN that signals
            return bool(np.abs(value).max(initial=0) <= LARGE)

    return Schema(f"{shaped.description} as {dtype}", accepts)


def _is_number(value: Any, sizes: Sizes) -> bool:  # noqa: ARG001  the shape of all of them
    is_number = type(value) in (int, float) or isinstance(value, np.integer | np.floating)
    return is_number and bool(-math.inf < value < math.inf)


def _is_positive(value: Any, sizes: Sizes) -> bool:
    return _is_number(value, sizes) and bool(0 < value < math.inf)


def _is_whole(value: Any, sizes: Sizes) -> bool:  # noqa: ARG001
    return (type(value) is int or isinstance(value, np.integer)) and bool(value >= 1)


def _is_flag(value: Any, sizes: Sizes) -> bool:  # noqa: ARG001
    return type(value) is bool or isinstance(value, np.bool_)


def _is_label(value: Any, sizes: Sizes) -> bool:
    return isinstance(value, str | np.str_) or _is_flag(value, sizes) or _is_number(value, sizes)


def _are_texts(value: Any, sizes: Sizes) -> bool:  # noqa: ARG001
    return (
        type(value) is list
        and all(type(text) is str for text in value)
        and len(set(value)) == len(value)
    )


NUMBER = Schema("a finite number", _is_number)
POSITIVE = Schema("a finite number above 0", _is_positive)
WHOLE = Schema("a whole number of at least 1", _is_whole)
FLAG = Schema("True or False", _is_flag)
LABEL = Schema("a label", _is_label)
TEXTS = Schema("a list of distinct strings", _are_texts)
RATE = Schema(
    "a number between 0 and 1",
    lambda value, sizes: _is_positive(value, sizes) and bool(value < 1),
)
BOUND = Schema(
    "an unsigned number of 64 bits",
    lambda value, sizes: isinstance(value, np.uint64),  # noqa: ARG005
)
CLASSES = array_of(2, kinds="biufU")


def either(*options: Schema) -> Schema:
    """One of several schemas."""
    description = " or ".join(option.description for option in options)
    return Schema(description, lambda value, sizes: any(o.accepts(value, sizes) for o in options))


def word(*words: Any) -> Schema:
    """One of these values, of the same type."""
    return Schema(
        f"one of {words}",
        lambda value, sizes: any(type(value) is type(k) and value == k for k in words),  # noqa: ARG005
    )


def counted(axis: str) -> Schema:
    """The number that the axis is long."""
    return Schema(
        f"the number of {axis}",
        lambda value, sizes: _is_whole(value, sizes) and _agrees(int(value), axis, sizes),
    )


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
    return Schema(
        " or ".join(cls.__name__ for cls in classes),
        lambda value, sizes: type(value) in allowed,  # noqa: ARG005
    )


def items(item: Schema, *, least: int = 0) -> Schema:
    """A list, each item of which fits the schema."""
    return Schema(
        f"a list of {item.description}",
        lambda value, sizes: (
            type(value) is list
            and len(value) >= least
            and all(item.accepts(each, sizes) for each in value)
        ),
    )


def entries(entry: Schema, *, among: Collection[str] | None = None) -> Schema:
    """A dict with some of these keys, or any, each value of which fits the schema."""
    return Schema(
        f"a dict of {entry.description}",
        lambda value, sizes: (
            type(value) is dict
            and (among is None or set(value) <= set(among))
            and all(entry.accepts(each, sizes) for each in value.values())
        ),
    )


NOT_NEGATIVE = Schema(
    "a finite number of at least 0",
    lambda value, sizes: NUMBER.accepts(value, sizes) and bool(value >= 0),
)
TEXT = Schema("a string", lambda value, sizes: type(value) is str)  # noqa: ARG005
KEY = Schema(
    "a whole number of 32 bits",
    lambda value, sizes: type(value) is int and 0 <= value < 2**32,  # noqa: ARG005
)
NONE = Schema("None", lambda value, sizes: value is None)  # noqa: ARG005
DICT = Schema("a dict", lambda value, sizes: type(value) is dict)  # noqa: ARG005


def check(
    parts: Mapping[str, Any], schemas: Mapping[str, Schema], name: str, *, sizes: Sizes
) -> None:
    """Refuse parts that do not fit their schemas."""
    for part, schema in schemas.items():
        if not schema.accepts(parts[part], sizes):
            raise ModelFileError(
                f"The model file is damaged: {name.split('.')[-1]}.{part} should be "
                f"{schema.description}, but is {summary(parts[part])}."
            )


def check_names(parts: Mapping[str, Any], name: str, *, required: Any, optional: Any = ()) -> None:
    """Refuse parts that are missing or unknown."""
    missing, unknown = set(required) - set(parts), set(parts) - set(required) - set(optional)
    if missing or unknown:
        raise ModelFileError(
            f"The model file does not fit this eqsep: of {name.split('.')[-1]} it lacks "
            f"{_listed(missing)} and has the unknown {_listed(unknown)}."
            + " A newer eqsep may have written it."
            * bool(unknown)
        )


def _listed(names: set[str]) -> str:
    return ", ".join(summary(name) for name in sorted(names)[:5]) or "nothing"


def check_parts(
    parts: Mapping[str, Any], schemas: Mapping[str, Schema], of: type | str, *, optional: Any = ()
) -> None:
    """Refuse parts of which a required one is missing, one is unknown or does not fit.

    Of a dataclass, which is built from the parts, fields with a default are optional: an older file
    lacks those that came later.
    """
    name = of if isinstance(of, str) else of.__name__
    if not isinstance(of, str):
        no_default = (MISSING, MISSING)
        optional = [f.name for f in fields(of) if (f.default, f.default_factory) != no_default]
    required = [part for part in schemas if part not in optional]
    check_names(parts, name, required=required, optional=optional)
    check(parts, {k: v for k, v in schemas.items() if k in parts}, name, sizes={})


class Kept:
    """A dataclass that a model file holds: the fields that have a schema, as they are."""

    SCHEMAS: ClassVar[Mapping[str, Schema]]

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return {name: getattr(self, name) for name in self.SCHEMAS}

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        """The object of these parts, and of `others` that are not in the file."""
        check_parts(state, cls.SCHEMAS, cls)
        return cls(**state, **others)
