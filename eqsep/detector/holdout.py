"""HoldOut: which rows calibrate, by a hash of their values or of their group.

So parts of the data hold out the same rows as the whole. Groups and blocks of time stay together.
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from eqsep import schemas
from eqsep.detector.config import Config
from eqsep.engine.nystroem import row_keys
from eqsep.errors import UserError
from eqsep.labels import UNLABELLED, RowLabels
from eqsep.tables.encoder import Encoder, id_columns
from eqsep.tables.reading import RowGroups, Table

STEP = 100  # with 99, 199, … rows a rate in whole percents is met exactly, not only bounded
NO_GROUPS = np.empty(0, dtype=np.uint64)
_MAX_HASH = 2**64 - 1
_ROWS_A_HELD_OUT = 25  # normal rows: one of so many may always be held out
_GAP, _WINDOW_GAP = 0.1, 0.25  # of a block next to a held-out one, without and with windows
_SPARE_GROUPS = 5  # times as many groups as a rate needs are held out, if there are enough
_MIN_ANOMALIES = 10  # labelled ones: fewer are not worth holding out
_ROWS_OF_COMMON_KIND = 20  # rows of a kind: with fewer, none are held out
_DEVIATIONS = 3.0  # standard deviations of what a share of many rows holds out
_MIN_KIND_ROWS, _KIND_CELLS = 200, 200_000  # of a kind that are kept if rows are wide


def usable(n: int) -> int:
    """How many of `n` held-out rows count: 99, 199, … or, if there are fewer, all of them."""
    return (n + 1) // STEP * STEP - 1 if n + 1 >= STEP else n


def n_held_out(n: int, *, config: Config, doubted: bool = False) -> int:
    """How many of `n` normal rows to hold out: a fifth; more of few, one in 25 of many."""
    many = min(max(3999, n / _ROWS_A_HELD_OUT), config.max_held_out)
    most = int(min(max(n / 5, min(124 if doubted else 120, n / 2)), many))
    return most if doubted else usable(most)


def rows_to_hold_out(n: int, *, config: Config, doubted: bool = False) -> int:
    """The fewest normal rows from which `n` are held out; 0 if so many never are."""
    sizes = (2 * n, 5 * n, _ROWS_A_HELD_OUT * n)
    return next((k for k in sizes if n_held_out(k, config=config, doubted=doubted) >= n), 0)


def n_held_out_anomalies(n: int, *, config: Config) -> int:
    """How many of `n` labelled anomalies to hold out: a tenth, at most 200, or none if n < 100."""
    return min(n // 10, config.max_held_out_anomalies) if n // 10 >= _MIN_ANOMALIES else 0


def row_hashes(values: np.ndarray, *, key: int) -> np.ndarray:
    """A 64-bit hash of each row's values and of how many equal rows come before it."""
    keys = row_keys(values, rng=np.random.RandomState(key % 2**32))
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(keys)), 0))
    repeat = np.empty(len(keys))
    repeat[order] = np.arange(len(keys)) - first
    again = repeat > 0
    if again.any():
        halves = [keys[again] >> np.uint64(32), keys[again] & np.uint64(2**32 - 1), repeat[again]]
        keys[again] = row_keys(
            np.column_stack([half.astype(float) for half in halves]),
            rng=np.random.RandomState(key % 2**32),
        )
    return keys


class Split(NamedTuple):
    """Which rows are learnt, which are held out, and the hashes that decided it."""

    learnt: np.ndarray
    held_out: np.ndarray
    hashes: np.ndarray


@dataclass(frozen=True)
class Grouping:
    """How rows that belong together are held out: by group, by block of time, or by both."""

    columns: tuple[str | None, str | None]  # the names of the columns of groups and of times
    # Times between which the blocks of the first fit lie, or none; later blocks have their mean
    # length.
    edges: tuple[float, ...] = ()
    row_bound: int = _MAX_HASH  # of a held-out group, rows with a hash below this calibrate
    gap: float = _GAP  # the share of a block next to a held-out one that is left out

    SCHEMAS: ClassVar = {
        "columns": schemas.items(schemas.either(schemas.NONE, schemas.TEXT)),
        "edges": schemas.bounded(None, dtype="float64"),
        "row_bound": schemas.BOUND,
        "gap": schemas.RATE,
    }

    @property
    def unit(self) -> str:
        """What is held out, as a noun."""
        return "time block" if self.edges else "group"

    @property
    def promised(self) -> str:
        """What the promise is for, as a noun."""
        known = " of known groups" if self.edges and self.columns[0] is not None else ""
        return f"new {self.unit}s{known}"

    @classmethod
    def of(cls, groups: RowGroups, *, whole: bool = False, window: int | None = None) -> Self:
        """For the rows of a first fit: about 2 sqrt(n) blocks for n rows of a group, or none."""
        if groups.columns[1] is None or whole:
            return cls(groups.columns)
        n_rows = len(groups.time) / len(np.unique(groups.group))
        n_blocks = 2 * math.sqrt(n_rows)
        if window is not None:
            n_blocks = min(n_blocks, n_rows * _WINDOW_GAP / window)
        shares = np.linspace(0, 1, 1 + max(int(n_blocks), 2))
        edges = np.unique(np.quantile(groups.time, shares, method="lower"))
        if len(edges) < 3:
            raise UserError(
                "Nearly all rows have the same time: pass times that differ, or leave the time out."
            )
        return cls(
            groups.columns,
            tuple(edges.tolist()),
            gap=_GAP if window is None else _WINDOW_GAP,
        )

    def units(self, groups: RowGroups, *, key: int, step: int = 0) -> np.ndarray:
        """A hash of the unit each row is held out with, or of the block `step` blocks later."""
        halves = [groups.group >> np.uint64(32), groups.group & np.uint64(2**32 - 1)]
        block = self._places(groups.time)[0] + step if self.edges else np.zeros(len(groups.time))
        values = np.column_stack([*(half.astype(float) for half in halves), block.astype(float)])
        return row_keys(values, rng=np.random.RandomState(key % 2**32))

    def near(self, groups: RowGroups, *, key: int, bound: int) -> np.ndarray:
        """Which rows lie in the gap next to a held-out block."""
        found = np.zeros(len(groups.time), dtype=bool)
        if not self.edges:
            return found
        share = self._places(groups.time)[1]
        for step, is_near in ((-1, share < self.gap), (1, share > 1 - self.gap)):
            found |= is_near & (self.units(groups, key=key, step=step) < np.uint64(bound))
        return found

    def _places(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The block of each time, and the share of the block that has passed by then."""
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

    def scaled(self, more: float) -> "Grouping":
        """The same for `more` times as many rows."""
        return replace(self, row_bound=min(_MAX_HASH, int(self.row_bound / max(more, 1.0))))

    def split(self, groups: RowGroups, labels: RowLabels, *, key: int, bound: int) -> Split:
        """Which rows are learnt (all labelled anomalies), and which normal ones are held out."""
        units = self.units(groups, key=key)
        held = units < np.uint64(bound)
        near = ~held & self.near(groups, key=key, bound=bound)
        return Split(~(held | near) | (labels.code > 0), held & (labels.code == 0), units)

    def state(self) -> dict[str, Any]:
        """The parts of a model file."""
        return vars(self) | {
            "columns": list(self.columns),
            "edges": np.array(self.edges, dtype=float),
            "row_bound": np.uint64(self.row_bound),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The grouping of these parts."""
        schemas.check_parts(state, cls.SCHEMAS, "Grouping")
        if len(state["columns"]) != 2:
            schemas.damaged("it does not name one column for groups and one for times")
        edges, (group, time) = state["edges"], state["columns"]
        lacks = time if len(edges) else group
        if lacks is None or len(edges) in (1, 2) or (np.diff(edges) <= 0).any():
            schemas.damaged("it has neither groups nor consecutive blocks of time")
        return cls((group, time), tuple(edges.tolist()), int(state["row_bound"]), state["gap"])


def n_held_out_groups(n: int, *, rate: float, config: Config) -> int:
    """How many of `n` groups to hold out: a fifth, or 5 times what the rate needs; at most half."""
    return min(max(n // 5, math.ceil(_SPARE_GROUPS / rate - 1e-9) - 1), n // 2, config.max_held_out)


def groups_needed(rate: float) -> int:
    """How many groups a fit needs to promise this rate for new groups: half are held out."""
    return 2 * (math.ceil(1 / rate - 1e-9) - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class HoldOut:
    """Which rows are held out, or kept to name alarms: those with a hash below a bound."""

    columns: np.ndarray  # the table's columns that are hashed: all but ids
    key: int  # of the hash
    bound: int  # of normal rows, which calibrate
    # Of labelled anomalies, which show how high anomalies score if rows are doubted.
    anomaly_bound: int = 0
    anomaly_kinds: tuple[str, ...] = ()  # the kinds that `anomaly_bound` is for
    grouping: Grouping | None = None
    # Of rows that name alarms, for kinds with many rows.
    kind_bounds: Mapping[str, int] = field(default_factory=dict)

    SCHEMAS: ClassVar = {
        "columns": schemas.array_of(None, kinds="i"),
        "key": schemas.KEY,
        "bound": schemas.BOUND,
        "anomaly_bound": schemas.BOUND,
        "anomaly_kinds": schemas.TEXTS,
        "grouping": schemas.kept(Grouping, optional=True),
        "kind_bounds": schemas.entries(schemas.BOUND),
    }

    @property
    def unit(self) -> str:
        """What is held out, as a noun."""
        return "row" if self.grouping is None else self.grouping.unit

    @classmethod
    def choose(
        cls,
        table: Table,
        labels: RowLabels,
        *,
        config: Config,
        doubted: bool,
        rate: float,
        window: int | None,
        rng: np.random.RandomState,
        population: "Population | None" = None,
    ) -> tuple[Self, Split]:
        """The rule for the rows of a first fit, to promise a `rate`, and how it splits them.

        They are all rows, or a sample of a larger population.
        """
        ids = id_columns(table)
        columns = np.array([j for j, c in enumerate(table.columns) if c.name not in ids], dtype=int)
        kinds = ["text" if c.is_empty else c.kind for c in (table.columns[j] for j in columns)]
        values = table.contents(columns.tolist(), kinds)
        key = int(rng.randint(2**31 - 1)) ^ zlib.crc32(values.tobytes())
        if table.groups is None:
            hashes = row_hashes(values, key=key)
            bounds = _bounds(hashes, labels, population, config=config, doubted=doubted)
            rule = cls(columns=columns, key=key, **bounds)
            return rule, rule._of_hashes(hashes, labels)
        # Whole groups are held out if there are enough to promise the rate for new ones; otherwise,
        # where rows have times, blocks of time within groups.
        groups, normal = table.groups, labels.code == 0
        n_groups = len(np.unique(groups.group[normal]))
        whole = groups.columns[0] is not None and n_groups >= groups_needed(rate)
        grouping = Grouping.of(groups, whole=whole, window=window)
        units, n_rows = np.unique(grouping.units(groups, key=key)[normal], return_counts=True)
        if len(units) < 2:
            raise UserError(
                f"Whole groups are held out to set the threshold, so normal rows of at least 2 "
                f"groups are needed, got {len(units)}. Pass more groups, or leave them out."
            )
        n_held = n_held_out_groups(len(units), rate=rate, config=config)
        more = 1.0 if population is None else population.times_sample
        grouping = grouping.scaled(more * n_rows[:n_held].sum() / config.max_held_out_in_groups)
        rule = cls(columns=columns, key=key, bound=int(units[n_held]), grouping=grouping)
        return rule, grouping.split(groups, labels, key=key, bound=rule.bound)

    def with_kinds(
        self,
        packed: Mapping[str, np.ndarray],
        *,
        config: Config,
        population: "Population | None",
    ) -> Self:
        """The same rule, with bounds for kinds that have more rows to learn than are kept."""
        bounds = {}
        for kind, rows in packed.items():
            n = n_kind_rows(rows.shape[1], config=config)
            if population is None and len(rows) > n:
                bounds[kind] = int(np.sort(row_hashes(rows, key=self.key))[n])
            elif population is not None and population.n_of_kind[kind] > n:
                bounds[kind] = int(n / population.n_of_kind[kind] * _MAX_HASH)
        return replace(self, kind_bounds=bounds)

    def split(self, table: Table, labels: RowLabels, *, encoder: Encoder) -> Split:
        """How an aligned table is split, by hashes of its rows or of their groups."""
        grouping, groups = self.grouping, table.groups
        self.check_grouped(groups)
        if grouping is None or groups is None:
            return self._of_hashes(self.hashes(table, encoder=encoder), labels)
        found = grouping.split(groups, labels, key=self.key, bound=self.bound)
        if grouping.row_bound < _MAX_HASH:  # some rows of a held-out group do not calibrate
            own = self.hashes(table, encoder=encoder)
            held_out = found.held_out & (own < np.uint64(grouping.row_bound))
            return Split(found.learnt, held_out, found.hashes)
        return found

    def hashes(self, table: Table, *, encoder: Encoder) -> np.ndarray:
        """A hash of 64 bits for each row of an aligned table."""
        learnt = [encoder.columns[j] for j in self.columns]
        kinds = ["text" if column is None else column.reads for column in learnt]
        return row_hashes(table.contents(self.columns.tolist(), kinds), key=self.key)

    def _of_hashes(self, hashes: np.ndarray, labels: RowLabels) -> Split:
        held_kinds = [self.anomaly_bound if k in self.anomaly_kinds else 0 for k in labels.kinds]
        by_code = np.array([self.bound, *held_kinds, 0], dtype=np.uint64)  # the last: no label
        held = hashes < by_code[labels.code]
        return Split(~held, held, hashes)

    def check_grouped(self, groups: RowGroups | None) -> None:
        """Refuse rows without groups or times if the first fit had them, and the reverse."""
        had = (None, None) if self.grouping is None else self.grouping.columns
        given = (None, None) if groups is None else groups.columns
        for word, was, now in zip(("groups", "time"), had, given, strict=True):
            if was is not None and now is None:
                column = f" from the column {was!r}" if was else ""
                raise UserError(
                    f"The first fit had {word}{column}, so these rows need theirs too.",
                    hint=f"Pass {word}={repr(was) if was else '...'}.",
                    topic="lost_groups",
                )
            if was is None and now is not None:
                raise UserError(f"The first fit had no {word}: leave {word} out, or fit again.")

    def is_same(self, other: "HoldOut") -> bool:
        """Whether both rules treat every row the same way."""
        names = ("key", "bound", "anomaly_bound", "anomaly_kinds", "grouping")
        return all(getattr(self, name) == getattr(other, name) for name in names) and (
            dict(self.kind_bounds) == dict(other.kind_bounds)
        )

    def state(self) -> dict[str, Any]:
        """The parts of a model file; bounds may have all 64 bits set, and are NumPy's numbers."""
        return vars(self) | {
            "bound": np.uint64(self.bound),
            "anomaly_bound": np.uint64(self.anomaly_bound),
            "anomaly_kinds": list(self.anomaly_kinds),
            "kind_bounds": {kind: np.uint64(bound) for kind, bound in self.kind_bounds.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], *, encoder: Encoder) -> Self:
        """The rule of these parts, for tables of an encoder."""
        schemas.check_parts(state, cls.SCHEMAS, "HoldOut")
        columns = state["columns"].astype(int)
        inside = np.isin(columns, np.arange(len(encoder.columns))).all()
        if not inside or (np.diff(columns) <= 0).any():
            schemas.damaged("the columns that decide which rows calibrate are not in its table")
        own_types = {
            "columns": columns,
            "bound": int(state["bound"]),
            "anomaly_bound": int(state["anomaly_bound"]),
            "anomaly_kinds": tuple(state["anomaly_kinds"]),
            "kind_bounds": {kind: int(bound) for kind, bound in state["kind_bounds"].items()},
        }
        return cls(**state | own_types)


@dataclass(frozen=True, kw_only=True)
class Population:
    """All rows of which a sample decides the plan."""

    n_normal: int
    n_of_kind: Mapping[str, int]
    times_sample: float  # as many rows that are not known to be anomalous as the sample has


def n_kind_rows(n_columns: int, *, config: Config) -> int:
    """The most rows of a kind to keep: fewer if they are wide."""
    for_width = max(_MIN_KIND_ROWS, _KIND_CELLS // max(n_columns, 1))
    return min(config.max_kind_rows, for_width)


def _bounds(
    hashes: np.ndarray,
    labels: RowLabels,
    population: Population | None,
    *,
    config: Config,
    doubted: bool,
) -> dict[str, Any]:
    """The bounds of normal rows and, if these are doubted, of anomalies of common kinds."""
    doubted = doubted and not (labels.code == UNLABELLED).any()
    times = np.bincount(labels.code[labels.code > 0], minlength=1 + len(labels.kinds))
    common = [code for code in np.flatnonzero(times >= _ROWS_OF_COMMON_KIND).tolist() if doubted]
    kinds = tuple(labels.kinds[code - 1] for code in common)
    anomalous, normal = hashes[np.isin(labels.code, common)], hashes[labels.code == 0]
    n_normal, n_anomalous = len(normal), len(anomalous)
    if population is not None:
        n_normal = population.n_normal
        n_anomalous = sum(population.n_of_kind[kind] for kind in kinds)
    held_anomalous = n_held_out_anomalies(n_anomalous, config=config) if common else 0
    held_normal = n_held_out(n_normal, config=config, doubted=held_anomalous > 0)
    if population is None:
        bound = int(np.sort(normal)[held_normal]) if len(normal) > 1 else 0
        anomaly_bound = int(np.sort(anomalous)[held_anomalous]) if held_anomalous else 0
    else:
        bound = _share_bound(held_normal, n_normal)
        anomaly_bound = _share_bound(held_anomalous, n_anomalous)
    if not held_anomalous:
        return {"bound": bound}
    return {"bound": bound, "anomaly_bound": anomaly_bound, "anomaly_kinds": kinds}


def _share_bound(n_held: int, n: int) -> int:
    """The bound below which at least `n_held` of `n` hashes lie, but for bad luck."""
    return int(min((n_held + _DEVIATIONS * math.sqrt(n_held)) / max(n, 1), 1.0) * _MAX_HASH)
