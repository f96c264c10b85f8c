"""Prediction sets of kinds: which names p-values and votes give to each row, in compiled loops."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from eqsep.engine.loops import compiled
from eqsep.labels import OR, UNSEEN

LIKE = 0.5  # the likeness from which on an alarm is called by the name of a kind without a promise
RIVAL = 0.1  # the share of votes from which on a kind is named beside others


def rows_for(rate: float) -> int:
    """How many rows of a kind it takes to promise a rate: 1 / rate - 1.

    Examples
    --------
    >>> [rows_for(rate) for rate in (0.01, 0.05, 0.1)]
    [99, 19, 9]
    """
    return math.ceil(1 / rate - 1 - 1e-9)


@dataclass(frozen=True, eq=False)
class Limits:
    """What decides on the names of a row, for each kind.

    Attributes
    ----------
    least : ndarray of shape (n_kinds,)
        The p-value above which a kind is a name: the rate; of a kind with n rows, too few for
        that, 1 / (n + 1).
    is_short : ndarray of bool of shape (n_kinds,)
        Which have too few rows.
    order : ndarray of int of shape (n_kinds,)
        The alphabetical one.
    kinds : ndarray of object of shape (n_kinds + 1,)
        Their names, and what a row of none of them is called.
    """

    least: np.ndarray
    is_short: np.ndarray
    order: np.ndarray
    kinds: np.ndarray

    @classmethod
    def of(cls, kinds: tuple[str, ...], n_units: list[int], rate: float) -> Self:
        """Of kinds with so many rows, or groups of rows."""
        is_short = np.array([n < rows_for(rate) for n in n_units], dtype=bool)
        least = [1 / (n + 1) if short else rate for n, short in zip(n_units, is_short, strict=True)]
        names = np.array([*kinds, UNSEEN], dtype=object)
        return cls(np.array(least), is_short, np.argsort(names[:-1]), names)

    @cached_property
    def any_short(self) -> bool:
        """Whether any has too few rows."""
        return bool(self.is_short.any())

    def sets(self, p: np.ndarray, votes: np.ndarray, likeness: np.ndarray | None) -> np.ndarray:
        """Which kinds are names of each row, by p-values, votes and likeness.  -> (n, n_kinds)

        The likeness tells where a kind has too few rows.
        """
        sets = np.empty(p.shape, dtype=bool)
        likeness = np.zeros(p.shape) if likeness is None else likeness
        _choose(p, votes, likeness, self.least, self.is_short, sets)
        return sets

    def names(self, sets: np.ndarray, votes: np.ndarray) -> np.ndarray:
        """The names of each row, those with most votes first: "a", "a or b", or "unseen"."""
        told, code = np.empty(sets.shape, dtype=int), np.empty(len(sets), dtype=int)
        _order(sets, votes, self.order, told, code)
        names: np.ndarray = self.kinds[code]
        for i in (code < 0).nonzero()[0].tolist():
            own = tuple(told[i].tolist())
            if own not in self._joined:
                self._joined[own] = OR.join(self.kinds[k] for k in own if k >= 0)
            names[i] = self._joined[own]
        return names

    @cached_property
    def _joined(self) -> dict[tuple[int, ...], str]:
        return {}


@compiled
def _choose(p: Any, votes: Any, likeness: Any, least: Any, is_short: Any, sets: Any) -> None:
    for i in range(sets.shape[0]):
        like = voted = 0
        is_named = False
        for k in range(sets.shape[1]):
            like = k if likeness[i, k] > likeness[i, like] else like
            voted = k if votes[i, k] > votes[i, voted] else voted
        for k in range(sets.shape[1]):
            is_like = k == like and is_short[k] and likeness[i, k] > LIKE
            sets[i, k] = p[i, k] > least[k] + 1e-9 or is_like
            is_named |= sets[i, k]
        for k in range(sets.shape[1]):
            sets[i, k] |= is_named and votes[i, k] >= min(votes[i, voted], RIVAL)


@compiled
def _order(sets: Any, votes: Any, order: Any, told: Any, code: Any) -> None:
    """The kinds of each row, those with most votes first, then in their order; -1 after them.

    The code of a row is its only kind, the number of kinds where it has none, or else -1.
    """
    for i in range(sets.shape[0]):
        n = 0
        for j in range(order.shape[0]):
            told[i, j] = -1
        for j in range(order.shape[0]):
            k = order[j]
            if sets[i, k]:
                at = n
                while at and votes[i, k] > votes[i, told[i, at - 1]]:
                    told[i, at] = told[i, at - 1]
                    at -= 1
                told[i, at] = k
                n += 1
        code[i] = -1 if n > 1 else (told[i, 0] if n else order.shape[0])
