"""What the arguments of this package must be."""

from collections.abc import Mapping
from numbers import Integral
from typing import TypeVar

from eqsep.errors import UserError

T = TypeVar("T")


def look_up(family: str, known: Mapping[str, T]) -> T:
    """The object behind a family's name."""
    if family not in known:
        raise UserError(f"unknown family {family!r}: expected one of {sorted(known)}.")
    return known[family]


def check_dimension(value: int, *, name: str = "n_features") -> int:
    """A whole number of at least one."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UserError(f"{name} must be a whole number of at least 1, got {value!r}. Pass an int.")
    return int(value)
