"""How far long work is, reported to a listener if there is one: the command shows a bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Protocol

Report = Callable[[float], None]  # called with how much more is done


class Listener(Protocol):
    """Receives reports of how far work is."""

    def phase(self, name: str, total: float | None = None, unit: str = "") -> None:
        """Begin a phase, of so many units if that is known."""

    def expect(self, total: float, unit: str) -> None:
        """Begin to count the present phase, of so many units."""

    def advance(self, n: float, unit: str) -> None:
        """Count what is done, if the phase is counted in this unit; from any thread."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def reported_to(listener: Listener | None) -> Iterator[None]:
    """Report to this listener, or to nobody."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def phase(name: str, total: float | None = None, unit: str = "") -> None:
    """Report that a phase begins."""
    if (listener := _listener.get()) is not None:
        listener.phase(name, total, unit)


def expect(total: float, unit: str) -> None:
    """Report how much there is to do in the present phase."""
    if (listener := _listener.get()) is not None:
        listener.expect(total, unit)


def reporter(unit: str) -> Report:
    """A function that reports work in this unit to the present listener, from any thread."""
    listener = _listener.get()
    return (lambda n: None) if listener is None else partial(listener.advance, unit=unit)  # noqa: ARG005


@contextmanager
def steps(total: int, unit: str) -> Iterator[Report]:
    """Report steps of the present phase; phases within a step are not reported."""
    expect(total, unit)
    report = reporter(unit)
    with reported_to(None):
        yield report
