"""What can be known of many rows in bounded memory: a uniform sample, and the frequent names."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from eqsep.arrays import device, namespace


class Taken(Protocol):
    """Rows of which some can be taken."""

    def take(self, rows: np.ndarray) -> Self:
        """Some of the rows, by position."""
        ...


SAMPLE = 100_000  # rows
CELLS = 40_000_000  # numbers as which the rows of a sample are encoded
ANOMALIES = 6000  # of so many there may be more in the sample than their share
T = TypeVar("T", bound=Taken)


@dataclass(frozen=True)
class LabelledRows(Generic[T]):
    """Some of many rows: their labels (None where missing), and their positions among all.

    Attributes
    ----------
    rows : T
        A table, or anything else of which rows can be taken; or an array of any library.
    y : ndarray of shape (n_rows,)
    positions : ndarray of int of shape (n_rows,)
    """

    rows: T
    y: np.ndarray
    positions: np.ndarray

    def take(self, rows: np.ndarray) -> "LabelledRows[T]":
        """Some of them."""
        return LabelledRows(_taken(self.rows, rows), self.y[rows], self.positions[rows])

    def after(self, n: int) -> "LabelledRows[T]":
        """The same where `n` more rows come before them."""
        return replace(self, positions=self.positions + n)

    @classmethod
    def join(cls, parts: "list[LabelledRows[T]]", rows: Callable[[list[T]], T]) -> Self:
        """Several below each other, their rows joined by `rows`."""
        return cls(
            rows([part.rows for part in parts]),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.positions for part in parts]),
        )


def _taken(rows: Any, chosen: np.ndarray) -> Any:
    if not hasattr(rows, "ndim"):
        return rows.take(chosen)
    xp = namespace(rows)
    return xp.take(rows, xp.asarray(chosen, device=device(rows)), axis=0)


def sample_size(width: int, *, most: int | None = None) -> int:
    """How many rows of so many numbers each a sample has: `CELLS` numbers, at most `SAMPLE` rows.

    Or at most so many as is said.

    Examples
    --------
    >>> sample_size(50), sample_size(2000)
    (100000, 20000)
    """
    return min(SAMPLE if most is None else most, max(CELLS // max(width, 1), 1000))


class Reservoir(Generic[T]):
    """A uniform sample, without replacement, of at most `size` of the rows seen.

    Each row gets a random priority, and the least ones stay: so two reservoirs make the reservoir
    of all their rows, of the lesser size.

    Parameters
    ----------
    size : int
    join : callable
        From a list of pieces of rows to one piece.

    Notes
    -----
    By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant, the shares of
    rows below every value at once are those of the sample up to √(ln(2 / δ) / 2 size) with a
    chance of 1 - δ: up to 0.0052 for 100,000 rows and δ = 0.01.

    Examples
    --------
    >>> import numpy as np
    >>> reservoir = Reservoir(3, np.concatenate)
    >>> reservoir.add(np.arange(5), np.array([0.9, 0.1, 0.5, 0.2, 0.4]))
    >>> reservoir.rows()
    array([1, 3, 4])
    """

    def __init__(self, size: int, join: Callable[[list[T]], T]) -> None:
        self.size = size
        self._join = join
        self._bound = np.inf
        self._n = 0
        self._priorities: list[np.ndarray] = []
        self._parts: list[T] = []

    def add(self, rows: T, priorities: np.ndarray) -> None:
        """See more rows, each with a number drawn uniformly from [0, 1)."""
        kept = np.flatnonzero(priorities < self._bound)
        if not len(kept):
            return
        self._parts.append(rows.take(kept))
        self._priorities.append(priorities[kept])
        self._n += len(kept)
        if self._n > 2 * self.size:
            self._settle()

    def merge(self, other: "Reservoir[T]", *, moved: Callable[[T], T]) -> None:
        """See all rows that another reservoir has seen, each as `moved` gives it."""
        self.size = min(self.size, other.size)
        for rows, priorities in zip(other._parts, other._priorities, strict=True):
            self.add(moved(rows), priorities)

    def rows(self, most: int | None = None) -> T | None:
        """The sample, at most so many rows of it, in the order in which they were seen."""
        self._settle()
        if not self._parts:
            return None
        if most is None or most >= self._n:
            return self._parts[0]
        return self._parts[0].take(np.sort(np.argsort(self._priorities[0])[:most]))

    def __len__(self) -> int:
        return min(self._n, self.size)

    def _settle(self) -> None:
        """One piece, of no more rows than there may be."""
        if not self._parts:
            return
        priorities = np.concatenate(self._priorities)
        kept = np.arange(len(priorities))
        if len(kept) > self.size:
            kept = np.sort(np.argpartition(priorities, self.size)[: self.size])
            self._bound = priorities[kept].max()
        rows = self._parts[0] if len(self._parts) == 1 else self._join(self._parts)
        self._parts = [rows if len(kept) == len(priorities) else rows.take(kept)]
        self._priorities, self._n = [priorities[kept]], len(kept)


class Strata(Generic[T]):
    """Two samples of rows, one of those that may be normal, so that there are enough of others.

    Parameters
    ----------
    size : int
        The most rows of the sample of both.
    join : callable
        From a list of pieces of rows to one piece.
    """

    def __init__(self, size: int, join: Callable[[list[T]], T]) -> None:
        self.size, self.n_normal, self.n_others = size, 0, 0
        self._join = join
        self._normal: Reservoir[T] = Reservoir(size, join)
        self._others: Reservoir[T] = Reservoir(size, join)

    def add(self, rows: T, *, is_normal: np.ndarray, rng: np.random.Generator) -> None:
        """See more rows."""
        priorities = rng.random(len(is_normal))
        self._normal.add(rows, np.where(is_normal, priorities, np.inf))
        self._others.add(rows, np.where(is_normal, np.inf, priorities))
        self.n_normal += int(is_normal.sum())
        self.n_others += int((~is_normal).sum())

    def merge(self, other: "Strata[T]", *, moved: Callable[[T], T]) -> None:
        """See all rows that another one has seen, each as `moved` gives it; of the lesser size."""
        self.size = min(self.size, other.size)
        self._normal.merge(other._normal, moved=moved)
        self._others.merge(other._others, moved=moved)
        self.n_normal += other.n_normal
        self.n_others += other.n_others

    @property
    def is_whole(self) -> bool:
        """Whether the sample holds all rows."""
        return self.n_normal + self.n_others <= self.size

    def sample(self) -> T:
        """All rows where they are few; else some of each sort, those that may be normal last.

        Up to a third are others: as many as is their share among all rows, or `ANOMALIES`.
        """
        n = len(self._others)
        if not self.is_whole:
            share = self.n_others / (self.n_normal + self.n_others)
            n = min(n, self.size // 3, max(ANOMALIES, round(self.size * share)))
        parts = (self._others.rows(n), self._normal.rows(self.size - n))
        return self._join([part for part in parts if part is not None])


def frequent(counts: Counter[str], *, most: int) -> Counter[str]:
    """At most so many of the names counted, by Misra and Gries: sums of such counts can go on.

    A name is counted too low by at most 1 / `most` of all that was counted, so that every name
    with a larger share stays.

    Examples
    --------
    >>> frequent(Counter("abracadabra"), most=2)
    Counter({'a': 3})
    """
    if len(counts) <= most:
        return counts
    least = sorted(counts.values())[-most - 1]
    return Counter({name: n - least for name, n in counts.items() if n > least})
