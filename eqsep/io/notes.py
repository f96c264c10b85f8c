"""Notes on how a file was read: one by one, or those on a table in one warning."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from eqsep.errors import Note, warn

_held: ContextVar[list[str] | None] = ContextVar("notes", default=None)


def note(message: str, **fields: Any) -> None:
    if (held := _held.get()) is None:
        warn(Note(message, **fields))
    else:
        held.append(message)


@contextmanager
def in_one_warning(name: str) -> Iterator[None]:
    """Give all notes on the table `name` as one warning, with a line for each."""
    token = _held.set(held := [])
    try:
        yield
    finally:
        _held.reset(token)
        if held:
            warn(Note("\n- ".join([f"How {name} was read:", *dict.fromkeys(held)])))
