"""Names of alarms over random divisions of real rows, beside a forest and the nearest seen row.

    python bench/naming.py                              10 divisions of each table
    python bench/naming.py satimage/1 --divisions 2     fewer, of one table
    python bench/naming.py --processes 8                several divisions at once

Each time half of the rows of each kind (at most 3,000, of the normal ones 6,000) are fitted with
the Detector, all of them labelled, and the others (at most 2,000 of each kind) are named. The peers
have learnt the same anomalies: a random forest of 200 trees, calibrated by its out-of-bag votes,
and the kind of the nearest row in the detector's columns, calibrated by the distances of learnt
rows to each other.

The first table has all kinds seen, and is over all held-out anomalies, alarms or not: the accuracy
of the likeliest kind; the expected calibration error of its probability (10 bins); size and
coverage of prediction sets that promise 0.95 over all rows, and by kind; and the share that is
called "unseen", promised at most 0.05.

For the second, half of the kinds with 100 rows or more, drawn at random for each division, are left
out of the fit: the share of their alarms that is called "unseen", the power, and the share of the
held-out rows of seen kinds that is, the error.
"""

import argparse
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from cells import measured
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors
from tasks import DATA_HOME, FEWEST, Rows, rows_of

from eqsep import Detector
from eqsep.errors import EqsepWarning
from eqsep.evaluation.names import Reliability
from eqsep.labels import UNSEEN

NAMES = (
    *("nsl-kdd", "nsl-kdd/attacks", "shuttle", "satimage/1", "satimage/7"),
    *("ai4i2020", "process/0"),
)
COVERAGE, RATE = 0.95, 0.05
MOST_NORMAL, MOST_KIND, MOST_FRESH = 6000, 3000, 2000
COMMON = 100  # rows of a kind that may be left out
ATTACK = 41  # the column of the name in the files of NSL-KDD
WHO = ("eqsep", "forest", "nearest")


@dataclass(frozen=True)
class Cell:
    """One division of a table, by its seed; with half of the kinds left out, or none."""

    table: str
    data: str
    division: int
    n_landmarks: int
    bandwidth: float | None
    left_out: bool


@cache
def table_of(name: str) -> Rows:
    """A table as in tasks.py; that of NSL-KDD with the names of attacks, which have 20 rows."""
    if name != "nsl-kdd/attacks":
        return rows_of(name)
    rows = rows_of("nsl-kdd")
    files = (DATA_HOME / "nsl-kdd" / f"KDD{part}+.txt" for part in ("Train", "Test"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    attack = np.array([line.split(",")[ATTACK] for line in lines])[rows.frame.index]
    names, counts = np.unique(attack, return_counts=True)
    common = np.flatnonzero(np.isin(attack, names[counts >= FEWEST]))
    return Rows(rows.frame, rows.matrix, attack, rows.group).at(common)


def divided(rows: Rows, cell: Cell) -> tuple[Rows, Rows]:
    """The rows to fit, and anomalies to name; of kinds that are left out, none to fit."""
    rng = np.random.default_rng(cell.division)
    kinds, counts = np.unique(rows.kind, return_counts=True)
    common = kinds[(counts >= COMMON) & (kinds != "normal")]
    left_out = rng.permutation(common)[: max(1, len(common) // 2)] if cell.left_out else []
    train, fresh = [], []
    for kind in kinds.tolist():
        known, others = np.array_split(rng.permutation(np.flatnonzero(rows.kind == kind)), 2)
        if kind not in left_out:
            train.append(known[: MOST_NORMAL if kind == "normal" else MOST_KIND])
        if kind != "normal":
            fresh.append(others[:MOST_FRESH])
    return rows.at(np.concatenate(train)), rows.at(np.concatenate(fresh))


@dataclass(frozen=True, eq=False)
class Said:
    """What a method says of held-out rows."""

    kind: np.ndarray  # the likeliest one
    unseen: np.ndarray
    probability: np.ndarray | None = None  # of the likeliest kind
    # By name, whether each of `kinds` is in the prediction set of a row.
    sets: dict[str, np.ndarray] | None = None
    kinds: np.ndarray | None = None


def by_detector(detector: Detector, fresh: Rows) -> Said:
    """The names, before the test of "unseen"; the detector's own are the same where it passes."""
    model = detector.model_
    encoded = model.plan.encode(fresh.frame)
    packed, namer = model.plan.encoder.pack(encoded), model.namer
    needed = namer.needs_kind_likeness(RATE)
    likeness = model.score.kind_likeness(encoded) if needed else None
    probability, kinds = namer.probabilities(packed), np.array(model.kinds)
    return Said(
        kind=kinds[probability.argmax(axis=1)],
        unseen=namer.names(packed, likeness, rate=RATE)[0] == UNSEEN,
        probability=probability.max(axis=1),
        sets={
            "marginal": namer.members(packed, coverage=COVERAGE)[0],
            "by kind": namer.members(packed, coverage=COVERAGE, by_kind=True)[0],
        },
        kinds=kinds,
    )


def by_forest(known: Rows, fresh: Rows, seed: int) -> Said:
    """A forest, with sets and "unseen" by its out-of-bag votes."""
    forest = RandomForestClassifier(200, random_state=seed, oob_score=True)
    forest.fit(known.matrix, known.kind)
    votes, kinds = forest.predict_proba(fresh.matrix), forest.classes_
    judged = forest.oob_decision_function_
    judged = np.where(np.isnan(judged), 0.0, judged)  # a row that is in every sample
    own = judged[np.arange(len(judged)), kinds.searchsorted(known.kind)]
    most = votes.argmax(axis=1)[:, None] == np.arange(len(kinds))

    def sets(own: np.ndarray) -> float:
        k = int(np.floor((1 - COVERAGE) * (len(own) + 1) + 1e-9))
        return float(np.sort(own)[k - 1]) if k else 0.0

    each = np.array([sets(own[known.kind == kind]) for kind in kinds])
    k = int(np.floor(RATE * (len(own) + 1)))
    return Said(
        kind=kinds[votes.argmax(axis=1)],
        unseen=votes.max(axis=1) < np.sort(judged.max(axis=1))[k],
        probability=votes.max(axis=1),
        sets={"marginal": most | (votes >= sets(own)), "by kind": most | (votes >= each)},
        kinds=kinds,
    )


def by_nearest(detector: Detector, known: Rows, fresh: Rows) -> Said:
    """The nearest seen row, with "unseen" by the distances between learnt rows."""
    plan = detector.plan_
    learnt, new = (plan.encoder.pack(plan.encode(rows.frame)) for rows in (known, fresh))
    search = NearestNeighbors(n_neighbors=1, metric="manhattan").fit(learnt)
    own = np.sort(search.kneighbors()[0][:, 0])
    distance, place = search.kneighbors(new)
    k = int(np.floor(RATE * (len(own) + 1)))
    return Said(kind=known.kind[place[:, 0]], unseen=distance[:, 0] > own[-k - 1])


def measure(cell: Cell) -> dict[str, Any]:
    """What is counted of each method."""
    warnings.simplefilter("ignore", EqsepWarning)
    part, fresh = divided(table_of(cell.data), cell)
    settings = {"n_landmarks": cell.n_landmarks, "bandwidth": cell.bandwidth}
    detector = Detector(**settings, unseen_rate=RATE, random_state=cell.division)
    detector.fit(part.frame, part.kind)
    known = part.at(np.flatnonzero(part.kind != "normal"))
    said = {
        "eqsep": by_detector(detector, fresh),
        "forest": by_forest(known, fresh, cell.division),
        "nearest": by_nearest(detector, known, fresh),
    }
    seen = np.isin(fresh.kind, detector.kinds_)
    others = ~seen & (detector.predict(fresh.frame) == 1)
    if not cell.left_out:
        return {who: counted(one, fresh.kind) for who, one in said.items()}
    return {
        who: {
            "power": [int(one.unseen[others].sum()), int(others.sum())],
            "error": [int(one.unseen[seen].sum()), int(seen.sum())],
        }
        for who, one in said.items()
    }


def counted(said: Said, kind: np.ndarray) -> dict[str, Any]:
    """Counts of rows of seen kinds, of so many."""
    n, right = len(kind), said.kind == kind
    found: dict[str, Any] = {
        "accuracy": [int(right.sum()), n],
        "unseen": [int(said.unseen.sum()), n],
    }
    if said.probability is not None and said.sets is not None and said.kinds is not None:
        found["reliability"] = Reliability.of(said.probability, right).bins
        own = np.arange(n), (kind[:, None] == said.kinds).argmax(axis=1)
        for name, sets in said.sets.items():
            found[f"size {name}"] = [int(sets.sum()), n]
            found[f"coverage {name}"] = [int(sets[own].sum()), n]
    return found


def pooled(results: Iterable[dict], who: str, what: str) -> float:
    """A share over all divisions."""
    hits, total = np.sum([result[who][what] for result in results], axis=0)
    return float(hits / total) if total else float("nan")


SEEN = ("accuracy", "ECE", "size", "coverage", "size by kind", "coverage", "called unseen")


def seen_row(results: list[dict], who: str) -> list[float]:
    """The figures of a method with all kinds seen."""
    if "reliability" not in results[0][who]:
        middle = [float("nan")] * 5
    else:
        bins = np.sum([result[who]["reliability"] for result in results], axis=0)
        sets = (
            f"{what} {name}" for name in ("marginal", "by kind") for what in ("size", "coverage")
        )
        middle = [Reliability.counted(bins).error, *(pooled(results, who, one) for one in sets)]
    return [pooled(results, who, "accuracy"), *middle, pooled(results, who, "unseen")]


def left_out_row(results: list[dict], who: str) -> list[float]:
    """The figures of a method with kinds left out."""
    return [pooled(results, who, what) for what in ("power", "error")]


def tell(title: str, heads: tuple[str, ...], rows: dict[str, dict[str, list[float]]]) -> None:
    """Print the figures of each table and method, and their means over tables."""
    print(f"\n{title}\n{'':<18}{'':<9}" + "".join(f"{head:>14}" for head in heads))
    means = {who: np.mean([own[who] for own in rows.values()], axis=0).tolist() for who in WHO}
    for name, own in (*rows.items(), ("mean", means)):
        for who in WHO:
            texts = "".join(f"{'' if np.isnan(v) else f'{v:.3f}':>14}" for v in own[who])
            print(f"{name if who == WHO[0] else '':<18}{who:<9}{texts}", flush=True)


def result_of(cell: Cell) -> dict:
    """The result of a cell, kept in a file."""
    return measured(cell, measure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="as named in tasks.py, and nsl-kdd/attacks")
    parser.add_argument("--divisions", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--landmarks", type=int, default=300)
    parser.add_argument("--bandwidth", type=float, default=0.25)
    options = parser.parse_args()
    tables = options.tables or NAMES
    cells = [
        Cell("names", name, division, options.landmarks, options.bandwidth, left_out)
        for name in tables
        for left_out in (False, True)
        for division in range(options.divisions)
    ]
    if options.processes > 1:
        with ProcessPoolExecutor(options.processes) as pool:
            results = dict(zip(cells, pool.map(result_of, cells), strict=True))
    else:
        results = {cell: result_of(cell) for cell in cells}

    def of(name: str, *, left_out: bool) -> list[dict]:
        return [r for c, r in results.items() if c.data == name and c.left_out == left_out]

    print(f"{options.divisions} divisions, {options.landmarks} landmarks")
    seen = {name: {w: seen_row(of(name, left_out=False), w) for w in WHO} for name in tables}
    tell("All kinds seen", SEEN, seen)
    left = {name: {w: left_out_row(of(name, left_out=True), w) for w in WHO} for name in tables}
    tell("Kinds left out", ("power", "error"), left)


if __name__ == "__main__":
    main()
