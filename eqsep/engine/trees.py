"""Trees that are grown once, with leaves that hold sums: how anomalous the rows of a leaf were.

The leaves of a row depend on the row alone, so what leaves hold adds up like every other sum.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from eqsep.engine.loops import compiled, in_threads, pieces
from eqsep.schemas import Kept, array_of, bounded, damaged

_ROWS_PER_PIECE = 512  # rows held as leaves
_NO_COLUMN = -1  # of a leaf
SIDE_BY_SIDE = 8  # trees that a row goes down at once


@dataclass(frozen=True, eq=False)
class Trees(Kept):
    """Binary trees over the columns of rows, all nodes in one list; int32, the limits float32."""

    root: np.ndarray  # the node at which each tree begins
    column: np.ndarray  # the column that a node compares, -1 for a leaf
    limit: np.ndarray  # rows with at most this value there go to the left
    left: np.ndarray  # the node below, later in the list; of a leaf, its number
    right: np.ndarray

    SCHEMAS: ClassVar = {
        "root": array_of("trees", kinds="i"),
        "column": array_of("nodes", kinds="i"),
        "limit": bounded("nodes", dtype="float32"),
        "left": array_of("nodes", kinds="i"),
        "right": array_of("nodes", kinds="i"),
    }

    @classmethod
    def grown(
        cls,
        rows: np.ndarray,
        is_anomaly: np.ndarray,
        rng: np.random.RandomState,
        *,
        n: int,
        most: tuple[int, int] = (4000, 2000),
        least: int = 1,
        columns: float = 0.7,
        narrow: int | None = None,
    ) -> Self | None:
        """`n` trees that separate anomalous rows (1) from normal ones (0), if there are both.

        Each is grown on a bootstrap sample of each class. A split is the best of one random limit a
        column. Every second tree, starting with the first, sees only the first `narrow` columns.
        """
        classes = [np.flatnonzero(is_anomaly == c) for c in (0, 1)]
        if not all(len(places) for places in classes):
            return None
        sizes = zip(classes, most, strict=True)
        draws = [[(places, min(len(places), size)) for places, size in sizes]] * n
        settings = {"splitter": "random", "max_features": columns, "min_samples_leaf": least}
        return cls._joined(_grown(rows, is_anomaly, draws, rng, narrow=narrow, **settings))

    @classmethod
    def of_kinds(
        cls, rows: np.ndarray, code: np.ndarray, parts: list[np.ndarray], rng: Any, *, n: int
    ) -> tuple[Self, np.ndarray]:
        """`n` trees on samples of each part that separate kinds, and kinds' shares in leaves."""
        draws = [[(places, len(places))] for places in parts for _ in range(n)]
        grown = _grown(rows, code, draws, rng, max_features="sqrt")
        trees = cls._joined(grown)
        shares = np.zeros((trees.n_leaves, 1 + int(code.max())))
        first = 0
        for tree in grown:
            of_leaves = tree.tree_.value[tree.tree_.children_left < 0, 0]
            shares[first : first + len(of_leaves), tree.classes_] = of_leaves
            first += len(of_leaves)
        return trees, shares

    @classmethod
    def _joined(cls, grown: list[Any]) -> Self:
        """The trees of scikit-learn in one list of nodes."""
        trees = [tree.tree_ for tree in grown]
        first = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        column = np.concatenate([tree.feature for tree in trees])
        starts = np.repeat(first, [tree.node_count for tree in trees])
        left = starts + np.concatenate([tree.children_left for tree in trees])
        right = starts + np.concatenate([tree.children_right for tree in trees])
        is_leaf = np.concatenate([tree.children_left < 0 for tree in trees])
        left[is_leaf], right[is_leaf] = np.arange(is_leaf.sum()), 0
        exact = np.concatenate([tree.threshold for tree in trees])
        limit = exact.astype(np.float32)
        above = limit > exact  # no value of single precision lies in between
        limit[above] = np.nextafter(limit[above], np.float32(-np.inf))
        limit[is_leaf] = 0
        column[is_leaf] = _NO_COLUMN
        root, column, left, right = (part.astype(np.int32) for part in (first, column, left, right))
        return cls(root, column, limit, left, right)

    @property
    def n_leaves(self) -> int:
        """Of all trees together."""
        return int(self.is_leaf.sum())

    @property
    def n_columns(self) -> int:
        """How many columns a row has at least."""
        return 1 + int(self.column.max(initial=0))

    @property
    def is_leaf(self) -> np.ndarray:
        """Which nodes are leaves."""
        return np.asarray(self.column == _NO_COLUMN)

    @cached_property
    def walks(self) -> tuple[np.ndarray, ...]:
        """The parts of the trees with leaves that lead to themselves, and how deep each tree is."""
        own = np.arange(len(self.column), dtype=np.int32)
        column, left, right = (
            np.where(self.is_leaf, at_leaf, part).astype(np.int32)
            for at_leaf, part in ((0, self.column), (own, self.left), (own, self.right))
        )
        depth = np.zeros(len(self.root), dtype=np.int32)
        tree, node = np.arange(len(self.root)), self.root
        while not self.is_leaf[node].all():
            tree, node = tree[~self.is_leaf[node]], node[~self.is_leaf[node]]
            depth[tree] += 1
            tree, node = np.tile(tree, 2), np.concatenate([self.left[node], self.right[node]])
        return self.root, column, self.limit, left, right, depth

    @cached_property
    def _steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Roots, in whole groups; nodes as they are in memory, also as limits; and leaf numbers."""
        root, column, limit, left, right, _ = self.walks
        nodes = np.column_stack([column, limit.view(np.int32), left, right]).view(np.uint32)
        root = np.append(root, [root[-1]] * (-len(root) % SIDE_BY_SIDE)).astype(np.uint32)
        return root, nodes, nodes.view(np.float32), self.left.astype(np.uint32)

    def leaves(self, rows: np.ndarray) -> np.ndarray:
        """The leaf of each tree in which each row ends.  (n, n_columns) -> (n, n_trees)"""
        return self._walked(rows)[:, : len(self.root)]

    def _walked(self, rows: np.ndarray) -> np.ndarray:
        """The same with the last tree repeated, up to whole groups of `SIDE_BY_SIDE`."""
        out = np.empty((len(rows), len(self._steps[0])), dtype=np.uint32)
        _walk(np.ascontiguousarray(rows, dtype=np.float32), *self._steps, out)
        return out

    def sums(self, rows: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The sums of the targets of the rows in each leaf.  (n, t) -> (n_leaves, t)"""
        total = np.zeros((self.n_leaves, target.shape[1]))
        for some in pieces(slice(0, len(rows)), _ROWS_PER_PIECE):
            exact = np.ascontiguousarray(target[some], dtype=np.float64)
            _add(self._walked(rows[some]), len(self.root), exact, total)
        return total

    def mean(self, rows: np.ndarray, of_leaf: np.ndarray) -> np.ndarray:
        """The mean over the trees of a number of each leaf.  (n, n_columns) -> (n,)"""
        out = np.empty(len(rows))

        def fill(some: slice) -> None:
            np.add.reduce(of_leaf.take(self.leaves(rows[some])), axis=1, out=out[some])

        in_threads(fill, len(rows), steps=10 * len(rows) * len(self.root), most=_ROWS_PER_PIECE)
        out /= len(self.root)
        return out

    def means(self, rows: np.ndarray, of_leaf: np.ndarray, *, n_parts: int) -> np.ndarray:
        """The same of several numbers, over equal parts of the trees.  -> (n, n_parts, t)"""
        out = np.empty((len(rows), n_parts, of_leaf.shape[1]))

        def fill(some: slice) -> None:
            _average(self._walked(rows[some]), len(self.root) // n_parts, of_leaf, out[some])

        steps = 10 * len(rows) * len(self.root) * of_leaf.shape[1]
        in_threads(fill, len(rows), steps=steps, most=_ROWS_PER_PIECE)
        return out

    @classmethod
    def from_state(cls, state: dict[str, Any], **others: Any) -> Self:
        made = super().from_state(state, **others)
        numbers = ("root", "column", "left", "right")
        made = replace(made, **{name: state[name].astype(np.int32) for name in numbers})
        n, inner = len(made.column), np.flatnonzero(made.column >= 0)
        above, below = np.tile(inner, 2), np.concatenate([made.left[inner], made.right[inner]])
        tree, leaves = np.searchsorted(made.root, np.arange(n), "right"), made.left[made.is_leaf]
        if (
            not (below > above).all()
            or not np.array_equal(np.sort(np.append(made.root, below)), np.arange(n))
            or (np.diff(made.root) <= 0).any()
            or (tree[below] != tree[above]).any()
            or (made.column < _NO_COLUMN).any()
        ):
            damaged("a node of its trees leads nowhere, or is in two places or trees")
        if not np.array_equal(np.sort(leaves), np.arange(len(leaves))):
            damaged("the leaves of its trees are not numbered")
        return made


def _grown(
    rows: np.ndarray,
    code: np.ndarray,
    draws: list[list[tuple[np.ndarray, int]]],
    rng: np.random.RandomState,
    *,
    narrow: int | None = None,
    **settings: Any,
) -> list[Any]:
    """scikit-learn's trees with these settings, each grown on rows drawn from places."""
    from sklearn import config_context  # slow to import, and only a fit grows trees
    from sklearn.tree import DecisionTreeClassifier

    n = len(draws)
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    seeds = rng.randint(2**31 - 1, size=n)
    trees: list[Any] = [None] * n

    def grow(part: slice) -> None:
        one = np.random.RandomState(0)  # to make one takes a hundred times as long as a new seed
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for i in range(n)[part]:
                one.seed(seeds[i])
                drawn = np.concatenate([one.choice(places, size) for places, size in draws[i]])
                tree = DecisionTreeClassifier(random_state=one, **settings)
                seen = rows[drawn] if i % 2 else np.ascontiguousarray(rows[drawn, :narrow])
                trees[i] = tree.fit(seen, code[drawn], check_input=False)

    in_threads(grow, n, steps=len(rows) * rows.shape[1] * n)
    return trees


def anomalous_shares(sums: np.ndarray, *, balanced: bool = False) -> np.ndarray:
    """The share of the anomalous rows of each leaf; 0 where no row was seen.  (n_leaves, t) -> …"""
    normal, anomalous = sums[:, 0], sums[:, 1:].sum(axis=1)
    if balanced and anomalous.any():
        anomalous = anomalous * (normal.sum() / anomalous.sum())
    total = normal + anomalous
    return np.where(anomalous > 0, anomalous / np.where(total > 0, total, 1.0), 0.0)


@compiled
def _walk(X: Any, root: Any, nodes: Any, limits: Any, number: Any, out: Any) -> None:
    # Eight trees side by side, so that none waits for another's memory; a leaf leads to itself.
    left, right = np.uint32(2), np.uint32(3)
    for i in range(X.shape[0]):
        for first in range(0, root.shape[0], SIDE_BY_SIDE):
            for t in range(first, first + SIDE_BY_SIDE):
                out[i, t] = root[t]
            is_on_the_way = True
            while is_on_the_way:
                is_on_the_way = False
                for t in range(first, first + SIDE_BY_SIDE):
                    node = out[i, t]
                    side = left if X[i, nodes[node, 0]] <= limits[node, 1] else right
                    out[i, t] = nodes[node, side]
                    is_on_the_way |= out[i, t] != node
            for t in range(first, first + SIDE_BY_SIDE):
                out[i, t] = number[out[i, t]]


@compiled
def _average(leaves: Any, n: Any, of_leaf: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        for part in range(out.shape[1]):
            for k in range(out.shape[2]):
                total = 0.0
                for t in range(part * n, (part + 1) * n):
                    total += of_leaf[leaves[i, t], k]
                out[i, part, k] = total / n


@compiled
def _add(leaves: Any, n: Any, target: Any, total: Any) -> None:
    for i in range(leaves.shape[0]):
        for t in range(n):
            for k in range(target.shape[1]):
                total[leaves[i, t], k] += target[i, k]
