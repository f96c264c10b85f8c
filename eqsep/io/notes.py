"""Notes on how a file was read: one by one, or those on a table in one warning."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from eqsep.errors import Note, warn

_held = ContextVar[list[str] | None]("notes", default=None)


def note(message: str, **fields: Any) -> None:
    made = Note(message, **fields)
    if (held := _held.get()) is None:
        return warn(made)
    return held.append(str(made))


@contextmanager
def without_notes() -> Iterator[None]:
    """Drop the notes of a trial."""
    token = _held.set([])
    try:
        yield
    finally:
        _held.reset(token)


@contextmanager
def in_one_warning(name: str) -> Iterator[None]:
    token = _held.set(held := list[str]())
    try:
        yield
    finally:
        _held.reset(token)
        if held:
            warn(Note("\n- ".join([f"How {name} was read:", *dict.fromkeys(held)])))
