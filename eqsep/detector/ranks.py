"""P-values of kinds: the ranks of rows among learnt rows of each kind, in compiled loops."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from eqsep.engine.loops import compiled, in_threads, inlined

_NO_NAN = frozenset({"nnan", "nsz"})  # so that the least of several is found several at a time


@dataclass(frozen=True, eq=False)
class Peers:
    """The rows of all kinds, kind after kind, each judged without its fold.

    Attributes
    ----------
    first : ndarray of int of shape (n_kinds + 1,)
        Where the rows of each kind begin.
    lacking, distance : ndarray of shape (n_rows,)
        How unlike their kind they are: the lack of votes and the distances, each in order. A rank
        is the number of rows of the kind that are less unlike it, in the way in which that is more.
    as_unlike : ndarray of shape (n_rows + n_kinds, n_folds)
        For each rank, from 0 to the number of rows of a kind, the weight of the rows of each fold
        that have this rank or a higher one.
    n_units : ndarray of int of shape (n_kinds,)
        How many rows, or groups of rows, there are of each kind.
    """

    first: np.ndarray
    lacking: np.ndarray
    distance: np.ndarray
    as_unlike: np.ndarray
    n_units: np.ndarray

    @classmethod
    def of(
        cls, first: np.ndarray, unlike: np.ndarray, fold: np.ndarray, groups: np.ndarray, n: int
    ) -> Self:
        """Of rows of kinds that begin at `first`, in `n` folds; `unlike` has two rows, as above.

        Groups are empty where each row is one of its own.
        """
        ordered, tables, n_units = unlike.copy(), [], []
        for start, end in pairwise(first.tolist()):
            own = slice(start, end)
            ordered[:, own].sort(axis=1)
            pairs = zip(ordered[:, own], unlike[:, own], strict=True)
            rank = np.maximum(*(there.searchsorted(values) for there, values in pairs))
            weight = np.ones(end - start)
            n_units.append(end - start)
            if len(groups):
                _, place, counts = np.unique(groups[own], return_inverse=True, return_counts=True)
                n_units[-1], weight = len(counts), 1 / counts[place]
            tables.append(_weights(rank, weight, fold[own], n))
        lacking, distance = ordered
        return cls(first, lacking, distance, np.concatenate(tables), np.array(n_units))

    def p_values(self, lacking: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Of rows that each fold's judges have judged.  (n, n_folds, n_kinds) -> (n, n_kinds)"""
        p = np.empty((len(lacking), len(self.n_units)))
        peers = (self.first, self.lacking, self.distance, self.as_unlike, self.n_units)
        in_threads(
            lambda part: _rank(lacking[part], distance[part], *peers, p[part]),
            len(p),
            steps=20 * lacking.size,
        )
        return p


def _weights(rank: np.ndarray, weight: np.ndarray, fold: np.ndarray, n: int) -> np.ndarray:
    """The weight of the rows of each fold with each rank or a higher one.  -> (n_rows + 1, n)"""
    table = np.zeros((len(rank) + 1, n))
    if len(np.unique(fold)) < 2:
        return table  # none is judged by others of its kind
    for f in range(n):
        order = np.flatnonzero(fold == f)[np.argsort(rank[fold == f], kind="stable")]
        from_the_top = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
        table[:, f] = from_the_top[rank[order].searchsorted(np.arange(len(table)))]
    return table


def nearest_without(
    distances: np.ndarray, starts: np.ndarray, cells: np.ndarray, out: np.ndarray
) -> None:
    """The least distance to the rows of each kind without each fold.  -> (n, n_folds, n_kinds)

    Distances are to rows that stand cell by cell, which `starts` says; a cell is a kind, times the
    number of folds, and a fold.
    """
    _leave_out(distances, starts, cells, out)


@compiled(fastmath=_NO_NAN)
def _leave_out(distances: Any, starts: Any, cells: Any, out: Any) -> None:
    n_folds = out.shape[1]
    for i in range(out.shape[0]):
        for f in range(n_folds):
            for k in range(out.shape[2]):
                out[i, f, k] = np.inf
        for c in range(cells.shape[0]):
            least = distances[i, starts[c]]
            for j in range(starts[c] + 1, starts[c + 1]):
                least = distances[i, j] if distances[i, j] < least else least
            k, own = cells[c] // n_folds, cells[c] % n_folds
            for f in range(n_folds):
                if f != own and least < out[i, f, k]:
                    out[i, f, k] = least


@inlined
def _less(ordered: Any, low: Any, high: Any, value: Any) -> Any:
    """The first place from `low` up to `high` with a number, of numbers in order, not less."""
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _rank(
    lacking: Any,
    distance: Any,
    first: Any,
    their_lacking: Any,
    their_distance: Any,
    as_unlike: Any,
    n_units: Any,
    p: Any,
) -> None:
    for i in range(p.shape[0]):
        for k in range(p.shape[1]):
            total = 1.0
            for f in range(lacking.shape[1]):
                by_votes = _less(their_lacking, first[k], first[k + 1], lacking[i, f, k])
                by_distance = _less(their_distance, first[k], first[k + 1], distance[i, f, k])
                total += as_unlike[max(by_votes, by_distance) + k, f]
            p[i, k] = total / (n_units[k] + 1)
