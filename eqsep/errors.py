"""Errors that the caller can mend, and warnings; any other exception is a fault of the software."""

import os
import re
import warnings
from collections.abc import Iterable
from inspect import currentframe
from pathlib import Path
from typing import Self

_PACKAGE = f"{Path(__file__).parent}{os.sep}"
_OBEYED = (  # compiled when first used, as it takes a while
    r"[^\t\n -~\u00a0-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Message(Exception):
    """What is said to those who write Python; where the command has words of its own, these too.

    Parameters
    ----------
    message : str
        What was expected, what came, what to do.
    command : str, default=None
        The same in the words of the command, with options in place of parameters.

    Examples
    --------
    >>> error = UserError("alpha must be above 0, got -1.", command="--alpha must be above 0.")
    >>> str(error), error.in_command()
    ('alpha must be above 0, got -1.', '--alpha must be above 0.')
    """

    def __init__(self, message: str = "", *, command: str | None = None) -> None:
        super().__init__(message)
        self.command = command

    def in_command(self) -> str:
        """What the command says."""
        return str(self) if self.command is None else self.command

    def at(self, place: str) -> Self:
        """The same of a place: a file, say, or a row of it.

        Examples
        --------
        >>> str(UserError("There are no rows.").at("a.csv"))
        'a.csv: There are no rows.'
        """
        return type(self)(f"{place}: {self}", command=f"{place}: {self.in_command()}")


class UserError(Message, ValueError):
    """Something that the caller passed cannot be."""


class UserTypeError(UserError, TypeError):
    """A value of a type that cannot be worked with here."""


class MissingExtraError(UserError, ImportError):
    """A package is not installed that only some of the work needs: says how to install it."""


class EqsepWarning(Message, UserWarning):
    """Something that the caller should know of, and can go on with."""


class Note(EqsepWarning):
    """What was understood where it is not obvious: nothing to mend, unless it is wrong."""


def warn(warning: Warning) -> None:
    """Warn at the line outside of eqsep that asked for what is warned of."""
    level, frame = 1, currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def visible(text: str) -> str:
    """Text without what a terminal would obey: escapes, controls, and turns of direction.

    Ends of lines and tabs stay; halves of characters, which cannot be written, go.

    Examples
    --------
    >>> print(visible("\x1b[31mred\x07"))
    \\x1b[31mred\\x07
    """
    return re.sub(_OBEYED, lambda found: repr(found[0])[1:-1], text)


def quoted(names: Iterable[str], *, most: int = 12) -> str:
    """Names in quotes, the first ones where there are many.

    Examples
    --------
    >>> quoted("abc", most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    text = ", ".join(map(repr, names[:most]))
    return text if len(names) <= most else f"{text} and {len(names) - most:,} more"
