"""What became of the rows of `eqsep score`: answers, counted as they go by, and what is said."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console

from eqsep.checks import Beyond
from eqsep.commands.console import counted, tell
from eqsep.commands.writing import STANDARD_OUTPUT


@dataclass(frozen=True)
class Outcome:
    """How many rows were scored, and how many raise an alarm.

    Attributes
    ----------
    rate : float or None
        Rows a second after the first piece, which waits for compiled code; None without others.
    highest : int or None
        How many rows were written, where only the highest were wanted.
    needed : int or None
        How few alarms there could have been, where a share of them may be false: or none.
    """

    rows: int
    alarms: int
    seconds: float
    rate: float | None
    highest: int | None
    needed: int | None = None


@dataclass(frozen=True)
class ScoredRows:
    """What is written of some thousand rows of a file; how many rows, alarms and odd dates."""

    file: str
    table: pa.Table
    rows: int
    alarms: int
    beyond: Beyond


class Tally:
    """What is counted while answers go by."""

    def __init__(self) -> None:
        self.rows = self.alarms = self.written = self.first_rows = 0
        self.beyond: Beyond = Counter()
        self.started = self.warm = time.perf_counter()

    def counted(
        self, pieces: Iterator[ScoredRows], say: Callable[[str], None]
    ) -> Iterator[pa.Table]:
        """The tables of answers, once these are counted."""
        for answers in pieces:
            self.alarms += answers.alarms
            self.beyond.update(answers.beyond)
            if not self.rows:
                self.first_rows, self.warm = answers.rows, time.perf_counter()
            self.rows += answers.rows
            say(counted(self.rows, "row"))
            yield answers.table

    def outcome(self, *, ranked: bool) -> Outcome:
        """All of it, at the end."""
        now, later = time.perf_counter(), self.rows - self.first_rows
        rate = later / max(now - self.warm, 1e-9) if later else None
        highest = self.written if ranked else None
        return Outcome(
            rows=self.rows,
            alarms=self.alarms,
            seconds=now - self.started,
            rate=rate,
            highest=highest,
        )


def tell_outcome(console: Console, outcome: Outcome, out: str) -> None:
    """Say what was scored, where it does not stand in the way of the scores."""
    share = outcome.alarms / max(outcome.rows, 1)
    rows, alarms = counted(outcome.rows, "row"), counted(outcome.alarms, "alarm")
    text = f"{rows}, {alarms} ({share:.1%}), {outcome.seconds:.1f} s"
    if outcome.rate is not None:
        text += f", {outcome.rate:,.0f} rows/s after the first piece"
    if outcome.needed is not None and outcome.needed > 1:
        text += f"; --fdr tells {outcome.needed:,} alarms or more, or none (fewer could be chance)"
    if outcome.highest is not None:
        text += f"; the {outcome.highest:,} highest"
    if out == STANDARD_OUTPUT:
        tell(text)
    else:
        console.print(f"{text}: {out}", soft_wrap=True)
