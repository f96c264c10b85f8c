"""The last rows of an episode: columns that have moved, and alarms, beyond what chance does.

The monitor's bet is on scores, and slow to notice few more alarms or a column that matters little
to them. So it is looked at these two things by themselves too, each as if every 50 rows: at the
j-th look a chance of delta / (j (j + 1)) is spent, and over all looks at most delta. A column has
moved where its mean is farther off than this chance, shared among all encoded values, allows by the
normal distribution. Alarms are too many where the exact law of new rows beyond a threshold that was
set by exchangeable ones, the beta-binomial, makes as many less likely than this chance.
"""

from dataclasses import dataclass

from scipy.special import ndtri

_FEWEST = 100  # rows, before which means are far off by chance too often


@dataclass(frozen=True)
class ColumnShift:
    """How far the mean of a column has moved, in standard errors; of its encoded values."""

    column: str
    standard_errors: float


@dataclass(frozen=True)
class Recent:
    """What is to be looked at in the last rows, whether or not the scores have changed.

    Attributes
    ----------
    rows, alarms : int
        The last 1,000 rows or a few more, all of them where there are fewer; those above the
        threshold.
    too_many : bool
        Whether these are more alarms than the promise and chance allow.
    far : float
        From how many standard errors on a column has moved; infinite of few rows.
    moved : tuple of ColumnShift
        The columns that have, the farthest first.
    """

    rows: int
    alarms: int
    too_many: bool
    far: float
    moved: tuple[ColumnShift, ...]

    @property
    def alarm_rate(self) -> float:
        """The share of the rows that raise an alarm."""
        return self.alarms / max(self.rows, 1)

    @property
    def told(self) -> str:
        """What is to be looked at, in words; empty where nothing is."""
        moved = f"{len(self.moved):,} columns have" if len(self.moved) > 1 else "a column has"
        words = [f"{moved} moved farther than by chance"] if self.moved else []
        if self.too_many:
            words.append(
                f"more alarms in the last {self.rows:,} rows than are promised of normal ones: "
                f"there are more anomalies, or normal rows are not as they were"
            )
        return "; ".join(words)


def chance_at(look: int, *, delta: float) -> float:
    """What the j-th look may spend of delta: over all looks that is delta.

    Examples
    --------
    >>> round(sum(chance_at(look, delta=0.01) for look in range(1, 100_000)), 6)
    0.01
    """
    return delta / (look * (look + 1))


def far_off(chance: float, *, rows: int, n_values: int) -> float:
    """From how many standard errors on one of several values has moved; infinite of few rows.

    Examples
    --------
    >>> round(far_off(0.01, rows=500, n_values=20), 2)
    3.48
    """
    return float(-ndtri(chance / (2 * n_values))) if rows >= _FEWEST else float("inf")


def too_many(alarms: int, rows: int, *, rank: int, n_held: int, chance: float) -> bool:
    """Whether so many rows above the rank-highest of the held-out scores are less likely than this.

    Nothing is promised, and so never too much, where the rank is 0.

    Examples
    --------
    >>> [too_many(n, 1_000, rank=10, n_held=999, chance=0.01) for n in (20, 30)]
    [False, True]
    """
    from scipy.stats import betabinom  # takes long to import

    if not rank:
        return False
    return bool(betabinom(rows, rank, n_held + 1 - rank).sf(alarms - 1) < chance)
