"""Rows that belong together, and are held out together: whole groups, or blocks of time.

Beside each block that is held out there is a gap, in which rows are neither learnt nor calibrate.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from eqsep.detector.scoring import MOST_HELD
from eqsep.engine.nystroem import row_keys
from eqsep.errors import UserError
from eqsep.labels import RowLabels
from eqsep.tables.reading import RowGroups

GAP = 0.1  # of a block of time, beside one that is held out
WIDE_GAP = 0.25  # the same where rows have windows
SPARE = 5  # times as many groups as a rate takes are held out where there are enough
MOST_IN_GROUPS = 10_000  # rows that calibrate, of groups that a first fit holds out
_ALL = 2**64 - 1


@dataclass(frozen=True)
class Grouping:
    """How rows that belong together are held out: by group, by block of time, or by both.

    Attributes
    ----------
    columns : tuple of str or None
        The names of the columns of groups and of times, as in `RowGroups`.
    edges : tuple of float
        The times between which the blocks of the first fit lie, in rising order. Blocks beyond are
        as long as these on average. Nothing where there are no times, or whole groups are held out.
    row_bound : int
        Of a held-out group the rows calibrate whose own hash is below: all, or some of many.
    gap : float
        Of a block beside one that is held out, the share of rows that are left out.
    """

    columns: tuple[str | None, str | None]
    edges: tuple[float, ...] = ()
    row_bound: int = _ALL
    gap: float = GAP

    @property
    def unit(self) -> str:
        """What is held out, in a word."""
        return "time block" if self.edges else "group"

    @property
    def promised(self) -> str:
        """What the promise is for."""
        known = " of known groups" if self.edges and self.columns[0] is not None else ""
        return f"new {self.unit}s{known}"

    @classmethod
    def of(cls, groups: RowGroups, *, whole: bool = False, window: int | None = None) -> "Grouping":
        """For the rows of a first fit: of n rows of a group there are about 2 sqrt(n) blocks.

        With `whole` groups, or without times, there is none. Where rows have a `window`, blocks are
        so long that it does not reach across the gap.
        """
        if groups.columns[1] is None or whole:
            return cls(groups.columns)
        n_rows = len(groups.time) / len(np.unique(groups.group))
        n_blocks = 2 * math.sqrt(n_rows)
        if window is not None:
            n_blocks = min(n_blocks, n_rows * WIDE_GAP / window)
        shares = np.linspace(0, 1, 1 + max(int(n_blocks), 2))
        edges = np.unique(np.quantile(groups.time, shares, method="lower"))
        if len(edges) < 3:
            raise UserError(
                "All rows, or all but a few, have the same time: expected times by which rows can "
                "be put in order. Leave it out, or pass others."
            )
        gap = GAP if window is None else WIDE_GAP
        return cls(groups.columns, tuple(edges.tolist()), gap=gap)

    def units(self, groups: RowGroups, *, key: int, step: int = 0) -> np.ndarray:
        """The hash of what each row is held out with; with a `step`, of the block so much later."""
        halves = [groups.group >> np.uint64(32), groups.group & np.uint64(2**32 - 1)]
        block = self._places(groups.time)[0] + step if self.edges else np.zeros(len(groups.time))
        values = np.column_stack([*(half.astype(float) for half in halves), block.astype(float)])
        return row_keys(values, rng=np.random.RandomState(key % 2**32))

    def near(self, groups: RowGroups, *, key: int, bound: int) -> np.ndarray:
        """Which rows lie in the gap beside a block that is held out."""
        found = np.zeros(len(groups.time), dtype=bool)
        if not self.edges:
            return found
        share = self._places(groups.time)[1]
        for step, is_near in ((-1, share < self.gap), (1, share > 1 - self.gap)):
            found |= is_near & (self.units(groups, key=key, step=step) < np.uint64(bound))
        return found

    def _places(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The block of each time, and which share of it has passed then."""
        edges = np.array(self.edges)
        length = (edges[-1] - edges[0]) / (len(edges) - 1)
        inside = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(edges) - 2)
        share = (time - edges[inside]) / np.diff(edges)[inside]
        after, before = (time - edges[-1]) / length, (time - edges[0]) / length
        beyond = np.where(after > 0, after, np.minimum(before, 0))
        first = np.where(after > 0, len(edges) - 1, 0)
        outside = (after > 0) | (before < 0)
        block = np.where(outside, first + np.floor(beyond), inside)
        return block, np.where(outside, beyond - np.floor(beyond), share)

    @property
    def is_thinned(self) -> bool:
        """Whether some rows of a held-out group do not calibrate."""
        return self.row_bound < _ALL

    def scaled(self, more: float) -> "Grouping":
        """The same for so many times the rows."""
        return replace(self, row_bound=min(_ALL, int(self.row_bound / max(more, 1.0))))


def held_out_groups(n: int, *, rate: float) -> int:
    """How many of `n` groups to hold out: a fifth, or several times what the rate takes; or half.

    With J groups the rate that is kept is (rate (J + 1) - 1) / J on average: with as many as it
    takes, 1 / rate - 1, no held-out row at all would lie above the threshold.

    Examples
    --------
    >>> [held_out_groups(n, rate=0.1) for n in (2, 10, 300, 1000)]
    [1, 5, 60, 200]
    """
    wanted = max(n // 5, math.ceil(SPARE / rate - 1e-9) - 1)
    return min(wanted, n // 2, MOST_HELD)


def groups_needed(rate: float) -> int:
    """How many groups a fit takes to promise this rate of rows of new ones: half are held out.

    Examples
    --------
    >>> [groups_needed(rate) for rate in (0.01, 0.1)]
    [198, 18]
    """
    return 2 * (math.ceil(1 / rate - 1e-9) - 1)


def choose_groups(
    groups: RowGroups, labels: RowLabels, *, key: int, rate: float, window: int | None = None
) -> tuple[Grouping, int]:
    """How the rows of a first fit are grouped, and the bound below which groups are held out.

    Where rows have groups and times, whole groups are held out if there are enough to promise the
    rate of rows of new ones, and blocks of time within groups if not.
    """
    n_groups = len(np.unique(groups.group[labels.code == 0]))
    whole = groups.columns[0] is not None and n_groups >= groups_needed(rate)
    grouping = Grouping.of(groups, whole=whole, window=window)
    units = grouping.units(groups, key=key)
    hashes, n_rows = np.unique(units[labels.code == 0], return_counts=True)
    if len(hashes) < 2:
        raise UserError(
            f"Whole groups are held out to set the threshold: normal rows of at least 2 groups are "
            f"needed, got {len(hashes)}. Pass more, or leave the groups out."
        )
    n_held = held_out_groups(len(hashes), rate=rate)
    return grouping.scaled(n_rows[:n_held].sum() / MOST_IN_GROUPS), int(hashes[n_held])


def divided_by_group(
    grouping: Grouping, groups: RowGroups, labels: RowLabels, *, key: int, bound: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are learnt, which belong to a held-out group and are normal, and all hashes.

    Labelled anomalies are learnt wherever they are: they are few, and no normal row of a held-out
    group is learnt by it. Rows without a label are learnt as normal ones are.
    """
    units = grouping.units(groups, key=key)
    held = units < np.uint64(bound)
    near = ~held & grouping.near(groups, key=key, bound=bound)
    learnt = ~(held | near) | (labels.code > 0)
    return learnt, held & (labels.code == 0), units
