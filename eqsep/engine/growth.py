"""Trees that are grown without labels: all at once, a level at a time."""

from dataclasses import dataclass

import numpy as np

from eqsep.engine.trees import Trees

_CANDIDATES = 6  # splits of a node that are compared
_MIN_ROWS_OF_SIDE = 5  # rows on either side of a split


@dataclass(frozen=True)
class _Sample:
    """Rows of which each tree sees some."""

    rows: np.ndarray  # float32, (n, d)
    drawn: np.ndarray  # (n_trees, n_drawn): their places

    def values(self, column: np.ndarray, node: np.ndarray) -> np.ndarray:
        """For each tree and row it sees, its value in the column of its node."""
        trees = np.arange(len(self.drawn))[:, None]
        values: np.ndarray = self.rows[self.drawn, column[trees, node]]
        return values


def isolation_trees(
    rows: np.ndarray, rng: np.random.RandomState, *, n: int, size: int
) -> tuple[Trees, np.ndarray]:
    """`n` trees of random splits, each of `size` rows; and how far down each leaf is.

    A leaf of k rows counts as far down as a random tree of k rows goes on average, as in an
    isolation forest (Liu, Ting and Zhou, 2008).
    """
    sample = _Sample(rows, _drawn(len(rows), rng, n=n, size=size))
    n_drawn = sample.drawn.shape[1]
    n_levels = max(int(np.ceil(np.log2(max(n_drawn, 2)))), 1)
    levels, node = [], np.zeros(sample.drawn.shape, dtype=np.int64)
    for level in range(n_levels):
        column = rng.randint(rows.shape[1], size=(n, 2**level))
        values = sample.values(column, node)
        low, high = _ranges(values, node, n_nodes=2**level)
        limit = (low + (high - low) * rng.random_sample(low.shape)).astype(np.float32)
        splits = low < high
        levels.append(_Level(column, limit, splits))
        node = 2 * node + (splits[np.arange(n)[:, None], node] & (values > _at(limit, node)))
    sizes = _counts(node, n_nodes=2**n_levels)
    return _joined(levels, sizes)


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
    a few, drawn at random. -> as many trees as targets
    """
    n = len(target)
    sample = _Sample(rows, _drawn(len(rows), rng, n=n, size=size))
    wanted, n_bins = bins[sample.drawn, target[:, None]], int(bins.max(initial=0)) + 1
    others = [np.flatnonzero(own != j) for j in range(bins.shape[1])]
    n_others = np.array([len(others[j]) for j in target])
    table = np.zeros((n, n_others.max(initial=1)), dtype=np.int64)
    for i, j in enumerate(target):
        table[i, : n_others[i]] = others[j]
    levels, node = [], np.zeros(sample.drawn.shape, dtype=np.int64)
    trees = np.arange(n)[:, None]
    for level in range(depth):
        n_nodes = 2**level
        best = np.full((n, n_nodes), -1.0)
        column, limit = np.zeros((n, n_nodes), dtype=np.int64), np.zeros((n, n_nodes), np.float32)
        right = np.zeros(node.shape, dtype=bool)
        some = _any_row(node, rng, n_nodes=n_nodes)
        for _ in range(_CANDIDATES):
            drawn = (rng.random_sample((n, n_nodes)) * n_others[:, None]).astype(np.int64)
            tried = table[trees, drawn]
            at = np.roll(some, int(rng.randint(1, max(some.shape[2], 2))), axis=2)[:, :, 0]
            cut = rows[sample.drawn[trees, at], tried]
            values = sample.values(tried, node)
            above = values > _at(cut, node)
            gain = _gini(node, above, wanted, n_nodes=n_nodes, n_bins=n_bins)
            better = gain > best
            best, column, limit = (
                np.where(better, new, old)
                for new, old in ((gain, best), (tried, column), (cut, limit))
            )
            right = np.where(_at(better, node), above, right)
        splits = best >= 0
        levels.append(_Level(column, limit, splits))
        node = 2 * node + (_at(splits, node) & right)
    return _joined(levels, None)[0], sample.drawn


@dataclass(frozen=True)
class _Level:
    """The splits of the nodes of one level of each tree.  (n_trees, n_nodes)"""

    column: np.ndarray
    limit: np.ndarray
    splits: np.ndarray  # whether a node is split; of one that is not, all rows go to the left


def _drawn(n_rows: int, rng: np.random.RandomState, *, n: int, size: int) -> np.ndarray:
    """The places of rows that each of `n` trees sees.  -> (n, size or fewer)"""
    size = min(size, n_rows)
    return np.stack([rng.permutation(n_rows)[:size] for _ in range(n)])


def _at(of_node: np.ndarray, node: np.ndarray) -> np.ndarray:
    """What each row finds at its node.  (n_trees, n_nodes), (n_trees, n) -> (n_trees, n)"""
    found: np.ndarray = np.take_along_axis(of_node, node, axis=1)
    return found


def _places(node: np.ndarray, n_nodes: int) -> np.ndarray:
    """The node of each row, numbered over all trees."""
    return (node + n_nodes * np.arange(len(node))[:, None]).ravel()


def _counts(node: np.ndarray, *, n_nodes: int) -> np.ndarray:
    """How many rows each node has.  -> (n_trees, n_nodes)"""
    counted = np.bincount(_places(node, n_nodes), minlength=len(node) * n_nodes)
    return counted.reshape(len(node), n_nodes)


def _ranges(values: np.ndarray, node: np.ndarray, *, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of the rows of each node; equal where it has none."""
    low = np.full(len(node) * n_nodes, np.inf)
    high, places = -low, _places(node, n_nodes)
    np.minimum.at(low, places, values.ravel())
    np.maximum.at(high, places, values.ravel())
    empty = low > high
    low[empty] = high[empty] = 0.0
    return low.reshape(len(node), n_nodes), high.reshape(len(node), n_nodes)


def _any_row(node: np.ndarray, rng: np.random.RandomState, *, n_nodes: int) -> np.ndarray:
    """Some rows of each node, as places among those that its tree sees.  -> (n, n_nodes, k)"""
    n, k = len(node), 2 * _CANDIDATES
    found = np.zeros((n, n_nodes, k), dtype=np.int64)
    for i in range(k):
        order = rng.permutation(node.shape[1])
        found[np.arange(n)[:, None], node[:, order], i] = order
    return found


def _gini(
    node: np.ndarray, above: np.ndarray, bins: np.ndarray, *, n_nodes: int, n_bins: int
) -> np.ndarray:
    """How pure both sides of a split are, by Gini; -1 where one has too few rows."""
    side = 2 * _places(node, n_nodes) + above.ravel()
    counts = np.bincount(side * n_bins + bins.ravel(), minlength=2 * len(node) * n_nodes * n_bins)
    counts = counts.reshape(len(node), n_nodes, 2, n_bins).astype(float)
    total = counts.sum(axis=3)
    purity = ((counts**2).sum(axis=3) / np.maximum(total, 1)).sum(axis=2)
    return np.where(total.min(axis=2) >= _MIN_ROWS_OF_SIDE, purity, -1.0)


def _joined(levels: list[_Level], sizes: np.ndarray | None) -> tuple[Trees, np.ndarray]:
    """The levels of all trees in one list of nodes; and how far down leaves of these sizes are."""
    nodes, root, down, n_leaves = _Nodes([], [], [], []), [], [], 0
    for tree in range(len(levels[0].column)):
        root.append(len(nodes.column))
        todo = [(nodes.added(), 0, 0)]
        while todo:
            number, level, place = todo.pop()
            at, where = level, place
            while at < len(levels) and not levels[at].splits[tree, where]:
                at, where = at + 1, 2 * where  # rows that are not split stay together
            if at == len(levels):
                nodes.left[number] = n_leaves
                n_leaves += 1
                if sizes is not None:
                    down.append(level + _mean_depth(sizes[tree, where]))
                continue
            nodes.column[number] = int(levels[at].column[tree, where])
            nodes.limit[number] = float(levels[at].limit[tree, where])
            nodes.left[number], nodes.right[number] = nodes.added(), nodes.added()
            todo.append((nodes.left[number], at + 1, 2 * where))
            todo.append((nodes.right[number], at + 1, 2 * where + 1))
    column, left, right = (
        np.array(part, dtype=np.int32) for part in (nodes.column, nodes.left, nodes.right)
    )
    limit = np.array(nodes.limit, dtype=np.float32)
    trees = Trees(np.array(root, dtype=np.int32), column, limit, left, right)
    return trees, np.array(down)


@dataclass(frozen=True)
class _Nodes:
    """The nodes of all trees, as `Trees` has them; a new one is a leaf."""

    column: list[int]
    limit: list[float]
    left: list[int]
    right: list[int]

    def added(self) -> int:
        """The number of a new node."""
        for part, at_leaf in ((self.column, -1), (self.left, 0), (self.right, 0)):
            part.append(at_leaf)
        self.limit.append(0.0)
        return len(self.column) - 1


def _mean_depth(n: int) -> float:
    """How far down a row of `n` is in a random tree, on average."""
    if n < 2:
        return 0.0
    return 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n if n > 2 else 1.0
