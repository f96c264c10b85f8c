"""Errors that the caller can fix, and warnings; any other exception is a bug."""

import contextlib
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from difflib import get_close_matches
from functools import partial
from inspect import currentframe
from pathlib import Path
from typing import Any, Self

_INNER = (f"{Path(__file__).parent}{os.sep}", contextlib.__file__)  # frames to skip
_OBEYED = (  # compiled when first used, as it takes a while
    r"[^\t\n -~\u00a0-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Message(Exception):
    """What was expected and what came, and a hint at what to do, in words for Python.

    To word the hint differently, as the command does: `topic`, by default the class, and `fields`.

    >>> error = UserError("There is no column 'y'.", hint="Pass columns=...", column="y")
    >>> str(error)
    "There is no column 'y'. Pass columns=..."
    >>> error.message, error.topic, error.fields
    ("There is no column 'y'.", 'UserError', {'column': 'y'})
    """

    def __init__(self, message: str = "", *, hint: str = "", topic: str = "", **fields: Any):
        super().__init__(joined(message, hint))
        self.message, self.hint, self.fields = message, hint, fields
        self.topic = topic or type(self).__name__
        self.place = ""

    def __str__(self) -> str:
        return joined(self.place and f"{self.place}:", self.message, self.hint)

    def at(self, place: str) -> Self:
        """The same message about a place: a file, say, or a row of it."""
        placed = copy(self)
        placed.place = f"{place}: {self.place}" if self.place else place
        return placed


def joined(*parts: str) -> str:
    """Sentences as one text, without the empty ones."""
    return " ".join(filter(None, parts))


class UserError(Message, ValueError):
    """Something that the caller passed is not valid."""


class ParameterError(UserError):
    """A parameter has a value that is not valid.

    >>> print(ParameterError("alpha", expected="a number above 0", got=-1))
    alpha must be a number above 0, got -1.
    """

    def __init__(self, name: str, *, expected: str, got: object, hint: str = "") -> None:
        message = f"{name} must be {expected}, got {got!r}."
        super().__init__(message, hint=hint, parameter=name, expected=expected, got=got)

    def __reduce__(self) -> Any:  # copies and pickles call with what `__init__` takes
        name, expected, got = (self.fields[field] for field in ("parameter", "expected", "got"))
        made = partial(type(self), name, expected=expected, got=got, hint=self.hint)
        return made, (), self.__dict__


class UserTypeError(UserError, TypeError):
    """A value is of a type that cannot be used here."""


class MissingExtraError(UserError, ImportError):
    """An optional package is not installed: the message says how to install it."""


class EqsepWarning(Message, UserWarning):
    """Something that the caller should know; the work goes on."""


class Note(EqsepWarning):
    """How something ambiguous was understood: nothing to do, unless it is wrong."""


def warn(warning: Warning) -> None:
    """Warn at the line outside of eqsep that led to the warning."""
    level, frame = 1, currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_INNER):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def visible(text: str) -> str:
    """Text without what a terminal would obey: escapes, controls, and turns of direction."""
    return re.sub(_OBEYED, lambda found: repr(found[0])[1:-1], text)


def quoted(names: Iterable[str], *, most: int = 12) -> str:
    """Names in quotes, the first ones if there are many."""
    names = list(names)
    text = ", ".join(map(repr, names[:most]))
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"


def did_you_mean(absent: Sequence[str], there: Sequence[str]) -> str:
    """A question, if names that are absent resemble existing ones; else nothing."""
    folded = [name.strip().casefold() for name in there]
    near: set[str] = set()
    for name in absent:
        wanted = name.strip().casefold()
        near |= {wanted} if wanted in folded else set(get_close_matches(wanted, folded, cutoff=0.7))
    alike = [name for name, text in zip(there, folded, strict=True) if text in near]
    return f" Did you mean {quoted(alike)}?" if alike else ""


def counted(n: int, what: str) -> str:
    """A number of things, such as "1,200 rows"."""
    return f"{n:,} {what}" + "s" * (n != 1)
