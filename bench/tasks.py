"""Tables with kinds of anomaly, and their division where one kind is seen and the others are not.

A task is a table and its seen kind, or all of them. Half of the normal rows and half of the seen
kind are trained on; the other halves, and all rows of the other kinds, are the test. Kinds of fewer
than 20 rows are left out. The files are those of `eqsep.datasets`; what is made up is not among the
tables that are measured unless it is named.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from ai4i2020 import load_ai4i2020
from cells import RESULTS
from magnetic_tile import load_magnetic_tile
from statlog import load_satimage, load_shuttle

from eqsep.datasets import (
    EfficientNetEmbedding,
    load_nsl_kdd,
    load_thyroid,
    make_process,
)

DATA_HOME = Path(os.environ.get("EQSEP_DATA", Path(__file__).parents[2] / "shared" / "data"))
MOST_NORMAL, MOST_SEEN = 20_000, 6_000
FEWEST = 20
NSL_KDD_ROWS = 40_000


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table, twice: as a user has them, and as a matrix of numbers.

    Rows of one `group` show the same thing, so that they are all trained on or all tested on.
    """

    frame: Any
    matrix: np.ndarray
    kind: np.ndarray
    group: np.ndarray

    def at(self, index: np.ndarray) -> "Rows":
        return Rows(self.frame.iloc[index], self.matrix[index], self.kind[index], self.group[index])


@dataclass(frozen=True, eq=False)
class Division:
    """The places of the rows to train on and to test on."""

    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class Table:
    """How a table is read, and the kinds of anomaly of which each is the seen one in turn."""

    read: Callable[[], Rows]
    kinds: tuple[str, ...]

    def rows(self) -> Rows:
        """The normal rows and those of the kinds."""
        rows = self.read()
        return rows.at(np.flatnonzero(np.isin(rows.kind, ("normal", *self.kinds))))


def divide(
    kind: np.ndarray, group: np.ndarray, *, seen: str | Collection[str], random_state: int = 0
) -> Division:
    """Which rows are trained on and tested on where `seen` are the only kinds that are seen.

    The normal rows are divided alike for every seen kind. Training has at most 20,000 normal rows
    and 6,000 of each seen kind; what is too much is not tested on either.
    """
    kinds = (seen,) if isinstance(seen, str) else tuple(seen)
    for name in kinds:
        if np.sum(kind == name) < FEWEST:
            raise ValueError(
                f"A seen kind needs at least {FEWEST} rows, {name!r} has {np.sum(kind == name)} of "
                f"{len(kind)}. Name another kind."
            )
    rng = np.random.default_rng(random_state)
    first_half = _first_halves(kind, group, rng=rng)
    order = rng.permutation(len(kind))
    train = np.concatenate(
        [
            order[(first_half & (kind == name))[order]][:most]
            for name, most in (("normal", MOST_NORMAL), *((name, MOST_SEEN) for name in kinds))
        ]
    )
    unseen = ~np.isin(kind, ("normal", *kinds))
    return Division(train=np.sort(train), test=np.flatnonzero(unseen | ~first_half))


def _first_halves(kind: np.ndarray, group: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
    """Whether each row is in the first half of its kind, where no group is torn apart.

    A group of several kinds goes by the rarest of them.
    """
    names, counts = np.unique(kind, return_counts=True)
    groups, group_of = np.unique(group, return_inverse=True)
    is_first, is_set = np.zeros(len(groups), dtype=bool), np.zeros(len(groups), dtype=bool)
    for name in names[np.argsort(counts, kind="stable")]:
        held = np.unique(group_of[kind == name])
        free = rng.permutation(held[~is_set[held]])
        is_first[free[: len(free) // 2]] = True
        is_set[free] = True
    return is_first[group_of]


def _apart(frame: Any, matrix: np.ndarray, kind: np.ndarray) -> Rows:
    """Rows that have nothing to do with each other."""
    return Rows(frame, matrix, kind, np.arange(len(kind)))


def _both_parts(load: Callable[..., Any], **options: Any) -> Any:
    """The training and the test rows of a split as one frame, and their kinds."""
    import pandas as pd

    split = load(data_home=DATA_HOME, as_frame=True, **options)
    frame = pd.concat([split.X_train, split.X_test], ignore_index=True)
    return frame, np.concatenate([split.kind_train, split.kind_test])


def _nsl_kdd() -> Rows:
    """40,000 rows out of both files, all kinds.

    The loader keeps the unseen kinds of the test file only, so the rows of both stand there.
    """
    with TemporaryDirectory() as home:
        folder = Path(home) / "nsl-kdd"
        folder.mkdir()
        train, test = (DATA_HOME / "nsl-kdd" / f"KDD{part}+.txt" for part in ("Train", "Test"))
        (folder / train.name).symlink_to(train.resolve())
        lines = [line for path in (train, test) for line in path.read_text().splitlines()]
        (folder / test.name).write_text("\n".join(lines) + "\n")
        frame, matrix = (load_nsl_kdd(data_home=home, as_frame=as_frame) for as_frame in (1, 0))
    rows = _apart(frame.X_test, matrix.X_test, frame.kind_test)
    some = np.random.default_rng(0).choice(len(rows.kind), NSL_KDD_ROWS, replace=False)
    return rows.at(np.sort(some))


def _thyroid() -> Rows:
    """Both files: by the paper's protocol no row of them is left out."""
    frame, kind = _both_parts(load_thyroid, protocol="paper")
    return _apart(frame, frame.to_numpy(float), kind)


def _shuttle() -> Rows:
    table = load_shuttle(data_home=DATA_HOME, as_frame=True)
    return _apart(table.X, table.X.to_numpy(float), table.kind)


def _satimage(normal: str) -> Rows:
    table = load_satimage(data_home=DATA_HOME, normal=[normal], as_frame=True)
    return _apart(table.X, table.X.to_numpy(float), table.kind)


def _ai4i2020() -> Rows:
    frame, matrix = (load_ai4i2020(data_home=DATA_HOME, as_frame=as_frame) for as_frame in (1, 0))
    return _apart(frame.X, matrix.X, frame.kind)


def _magnetic_tile() -> Rows:
    """The embedded images. A tile was photographed under six lights in a row: one group."""
    import pandas as pd

    from paper.tables.magnetic_tile import tiles_of

    table = load_magnetic_tile(
        data_home=DATA_HOME, embed=EfficientNetEmbedding(), cache=RESULTS / "images"
    )
    names = sorted((DATA_HOME / "magnetic-tile").glob("MT_*/*.jpg"))  # the order of the rows
    number = np.array([int(path.stem.split("_")[-1]) for path in names])
    frame = pd.DataFrame(table.X, columns=list(table.feature_names))
    return Rows(frame, table.X, table.kind, tiles_of(number))


def _process(seed: int) -> Rows:
    """A made-up process, one group a run.

    Without the rows of a faulty run before its fault, so that no run is torn apart: where its kind
    is not seen, these would be trained on.
    """
    table = make_process(
        n_normal_runs=40, n_fault_runs=4, n_rows=300, as_frame=True, random_state=seed
    )
    rows = Rows(table.X, table.X.to_numpy(), table.kind, table.groups)
    faulty_runs = np.unique(table.groups[table.kind != "normal"])
    before = (table.kind == "normal") & np.isin(table.groups, faulty_runs)
    return rows.at(np.flatnonzero(~before))


_SOILS = {1: "red soil", 7: "very damp grey soil"}
_GROUNDS = ("cotton crop", "damp grey soil", "grey soil", "vegetation stubble", *_SOILS.values())
TABLES = {
    "nsl-kdd": Table(_nsl_kdd, ("dos", "probe", "privilege", "access")),
    "ann-thyroid": Table(_thyroid, ("hyperfunction", "subnormal")),
    "shuttle": Table(_shuttle, ("fpv close", "fpv open", "high", "bypass")),
    **{
        f"satimage/{code}": Table(
            lambda soil=soil: _satimage(soil), tuple(g for g in _GROUNDS if g != soil)
        )
        for code, soil in _SOILS.items()
    },
    # Without rows of several kinds at once: where one of these is seen, so is the other.
    "ai4i2020": Table(_ai4i2020, ("TWF", "HDF", "PWF", "OSF")),
    "magnetic-tile": Table(_magnetic_tile, ("blowhole", "break", "crack", "fray", "uneven")),
}
_FAULTS = ("feed step", "cold medium", "fouling", "pump wear", "blocked pipe")
_FAULTS += ("leak", "stuck valve", "sensor bias", "frozen sensor", "oscillation")
MADE_UP = {f"process/{seed}": Table(lambda seed=seed: _process(seed), _FAULTS) for seed in range(3)}
ALL_TABLES = TABLES | MADE_UP


@cache
def rows_of(table: str) -> Rows:
    """The rows of a table, read once."""
    return ALL_TABLES[table].rows()
