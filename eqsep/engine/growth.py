"""Trees that are grown without labels: of random splits, or to predict a column from others.

scikit-learn grows trees one by one, with some ten checks each; hundreds of small ones take longer
so than all else in a fit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.engine.loops import compiled
from eqsep.engine.trees import Trees

_CANDIDATES = 6  # splits of a node that are compared
_LEAST = 5  # rows on either side of a split


def isolation_trees(
    rows: np.ndarray, rng: np.random.RandomState, *, n: int, size: int
) -> tuple[Trees, np.ndarray]:
    """`n` trees of random splits, each of `size` rows; and how far down each leaf is.

    A leaf of k rows counts as far down as a random tree of k rows goes on average, as in an
    isolation forest (Liu, Ting and Zhou, 2008).
    """
    drawn = _drawn(len(rows), rng, n=n, size=size)
    depth = max(int(np.ceil(np.log2(max(drawn.shape[1], 2)))), 1)
    nothing = np.zeros((1, 1), dtype=np.int64)
    every = np.tile(np.arange(rows.shape[1]), (n, 1))
    grown = _Grown.of(rows, drawn, nothing, every, rng, depth=depth, candidates=1)
    return grown.trees, grown.level + _mean_depth(grown.size)


def prediction_trees(
    rows: np.ndarray,
    bins: np.ndarray,
    own: np.ndarray,
    rng: np.random.RandomState,
    *,
    target: np.ndarray,
    size: int,
    depth: int,
) -> tuple[Trees, np.ndarray]:
    """A tree for each `target`, a column of `bins`, that predicts its bin from other columns.

    `own` says of which target each column of the rows is. A split is the best by Gini's measure of
    a few, drawn at random. -> the trees, and the places of the rows that each has seen
    """
    drawn = _drawn(len(rows), rng, n=len(target), size=size)
    others = np.full((len(target), len(own)), -1)
    for i, j in enumerate(target.tolist()):
        places = np.flatnonzero(own != j)
        others[i, : len(places)] = places
    wanted = bins[drawn, target[:, None]]
    grown = _Grown.of(rows, drawn, wanted, others, rng, depth=depth, candidates=_CANDIDATES)
    return grown.trees, drawn


@dataclass(frozen=True)
class _Grown:
    """Trees, with the level of each leaf and how many rows it had."""

    trees: Trees
    level: np.ndarray
    size: np.ndarray

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        drawn: np.ndarray,
        wanted: np.ndarray,
        columns: np.ndarray,
        rng: np.random.RandomState,
        *,
        depth: int,
        candidates: int,
    ) -> "_Grown":
        """A tree for each row of `drawn`, on columns of its own; -1 stands for none."""
        n, most = len(drawn), 2 ** (depth + 1) - 1
        chance = rng.random_sample((n, most, 2 * candidates))
        column, left, right, level, size = (np.full((n, most), -1, np.int32) for _ in range(5))
        limit, count = np.zeros((n, most), np.float32), np.zeros(n, np.int64)
        n_columns = (columns >= 0).sum(axis=1)
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        n_bins = int(wanted.max(initial=0)) + 1
        of_nodes = (column, limit, left, right, level, size)
        for i in range(n):
            target = wanted[min(i, len(wanted) - 1)].copy()
            parts = (nodes[i] for nodes in of_nodes)
            count[i] = _grow(
                rows,
                drawn[i].copy(),
                target,
                columns[i, : n_columns[i]].astype(np.int64),
                chance[i],
                n_bins if candidates > 1 else 0,
                depth,
                *parts,
            )
        kept = np.arange(most) < count[:, None]
        root = np.cumsum(count) - count
        is_leaf = column[kept] < 0
        below = [(part + root[:, None])[kept] for part in (left, right)]
        number = np.cumsum(is_leaf) - 1
        trees = Trees(
            root=root.astype(np.int32),
            column=column[kept],
            limit=limit[kept],
            left=np.where(is_leaf, number, below[0]).astype(np.int32),
            right=np.where(is_leaf, 0, below[1]).astype(np.int32),
        )
        return cls(trees, level[kept][is_leaf].astype(float), size[kept][is_leaf])


def _drawn(n_rows: int, rng: np.random.RandomState, *, n: int, size: int) -> np.ndarray:
    """The places of rows that each of `n` trees sees.  -> (n, size or fewer)"""
    size = min(size, n_rows)
    return np.stack([rng.permutation(n_rows)[:size] for _ in range(n)])


def _mean_depth(n: np.ndarray) -> np.ndarray:
    """How far down a row of `n` is in a random tree, on average."""
    many = np.maximum(n, 2)
    depth = 2 * (np.log(np.maximum(many - 1, 1)) + np.euler_gamma) - 2 * (many - 1) / many
    return np.asarray(np.where(n > 2, depth, np.where(n == 2, 1.0, 0.0)))


@compiled
def _grow(
    X: Any,
    places: Any,
    target: Any,
    columns: Any,
    chance: Any,
    n_bins: Any,
    depth: Any,
    column: Any,
    limit: Any,
    left: Any,
    right: Any,
    level: Any,
    size: Any,
) -> Any:
    # A node has the rows from first to last; those of a leaf's parent are sorted by side in place.
    first, last = np.zeros(len(column), np.int64), np.zeros(len(column), np.int64)
    counts = np.zeros((2, max(n_bins, 1)), np.float64)
    last[0], level[0], count, node = len(places), 0, 1, 0
    while node < count:
        start, end = first[node], last[node]
        size[node] = end - start
        best, best_column, best_limit = -1.0, -1, np.float32(0)
        if level[node] < depth and end - start > 1 and len(columns) > 0:
            for k in range(chance.shape[1] // 2):
                c = columns[int(chance[node, 2 * k] * len(columns))]
                u = chance[node, 2 * k + 1]
                if n_bins == 0:
                    low, high = X[places[start], c], X[places[start], c]
                    for i in range(start, end):
                        low, high = min(low, X[places[i], c]), max(high, X[places[i], c])
                    cut = np.float32(low + u * (high - low))
                    if low < high:
                        best, best_column, best_limit = 1.0, c, min(cut, np.nextafter(high, low))
                    continue
                cut = X[places[start + int(u * (end - start))], c]
                counts[:] = 0.0
                for i in range(start, end):
                    counts[int(X[places[i], c] > cut), target[i]] += 1.0
                gain, fewest = 0.0, float(end - start)
                for side in range(2):
                    total, square = 0.0, 0.0
                    for b in range(n_bins):
                        total += counts[side, b]
                        square += counts[side, b] ** 2
                    fewest = min(fewest, total)
                    gain += square / max(total, 1.0)
                if fewest >= _LEAST and gain > best:
                    best, best_column, best_limit = gain, c, cut
        if best_column >= 0:
            i, j = start, end - 1
            while i <= j:
                if X[places[i], best_column] <= best_limit:
                    i += 1
                else:
                    places[i], places[j] = places[j], places[i]
                    if n_bins > 0:
                        target[i], target[j] = target[j], target[i]
                    j -= 1
            column[node], limit[node] = best_column, best_limit
            left[node], right[node] = count, count + 1
            first[count], last[count], level[count] = start, i, level[node] + 1
            first[count + 1], last[count + 1], level[count + 1] = i, end, level[node] + 1
            count += 2
        node += 1
    return count
