"""No labels at all: eqsep's Detector beside methods that need none.

    python bench/no_labels.py                          what is missing, then the tables
    python bench/no_labels.py --kept --markdown        the tables of what is there, for a page
    python bench/no_labels.py --only eqsep LOF --seeds 0 --tables yeast ALLPatientData
    python bench/no_labels.py --again eqsep --by-table --processes 2 --limit-seconds 540

Two cases on two collections of tables; average precision on the test rows.

- Only normal rows: the training rows are known to be normal. ADBench: the divisions of adbench.py
  without their training anomalies. OddBench: its own splits.
- Nobody has looked: anomalies are among the training rows, at most 10 % of these. ADBench: all
  training rows of the divisions, surplus anomalies left out at random. OddBench: half of the test
  anomalies, as far as 10 % go, are trained on at random, and the other test rows are tested on.

"eqsep" is `Detector().fit(X)` in both cases, as nobody has told it which one it is. "eqsep, told"
knows: it is fitted with every row labelled normal in the first, with unlabelled="doubted" in the
second. OddBench's own splits are the same for every seed, so one counts.

Each task and method leaves one JSON, which a second run reads. Seconds are of a single thread, on
whatever else the machine did. The tables are in adbench/ (NAME.npz with X and y) and
oddbench-splits/ (train, test, y) of $EQSEP_DATA, else of ../shared/data.
"""

import argparse
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from adbench import SEEDS
from adbench import divide as divide_adbench
from adbench import rows_of as rows_of_adbench
from cells import add_processes, measured_in_processes, parser_of_methods
from peers import METHODS as METHODS_OF_KINDS
from peers import (
    NEIGHBOURS,
    Method,
    OurDetector,
    described,
    fitted_and_scored,
    nobody,
    prepared,
    warm_up,
)
from sklearn.metrics import average_precision_score
from standings import standings_without_labels
from tasks import DATA_HOME

CASES = CLEAN, CONTAMINATED = ("only normal rows", "nobody has looked")
COLLECTIONS = ADBENCH, SPLITS = ("adbench", "oddbench-splits")
NORMAL_FOR_AN_ANOMALY = 9  # so that at most 10 % of the training rows are anomalies
OURS, TOLD = "eqsep", "eqsep, told"
_OF_KINDS = {
    name: replace(METHODS_OF_KINDS[name], settings=words)
    for name, words in {
        "isolation forest": "no others",
        "ECOD": "of PyOD",
        "LOF": "standardised columns",
        "one-class SVM": "standardised columns, at most 10,000 rows",
    }.items()
}
METHODS = {
    OURS: Method(partial(OurDetector, labels_of=nobody), "eqsep", "Detector, its defaults, y=None"),
    TOLD: Method(
        OurDetector,
        "eqsep",
        'all labels normal where they are, else y=None with unlabelled="doubted"',
    ),
    "isolation forest": _OF_KINDS["isolation forest"],
    **NEIGHBOURS,
    "LOF": _OF_KINDS["LOF"],
    "one-class SVM": _OF_KINDS["one-class SVM"],
    "ECOD": _OF_KINDS["ECOD"],
    "PCA": Method(
        partial(prepared, "PCA"),
        "pyod",
        "of PyOD, components with 99.9 % of the variance of standardised columns",
    ),
}


@dataclass(frozen=True)
class Cell:
    """A method on a table of a collection, in one of the cases."""

    table: str
    case: str
    collection: str
    data: str
    seed: int
    method: str


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to train on, of which nothing is known or that they are normal, and rows to test on."""

    X: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def task_of(cell: Cell, *, folder: Path) -> Task:
    """The rows of a cell, by its case."""
    path = folder / cell.collection / f"{cell.data}.npz"
    task_in = {ADBENCH: _task_of_adbench, SPLITS: _task_of_splits}[cell.collection]
    return task_in(path, case=cell.case, seed=cell.seed)


def _task_of_adbench(path: Path, *, case: str, seed: int) -> Task:
    X, y = rows_of_adbench(path)
    division = divide_adbench(y, share=100, seed=seed)
    y_train = y[division.train]
    normal, anomalies = (division.train[y_train == value] for value in (0, 1))
    if case == CLEAN:
        train = normal
    else:
        most = len(normal) // NORMAL_FOR_AN_ANOMALY
        kept = np.random.default_rng(seed).permutation(anomalies)[:most]
        train = np.sort(np.concatenate([normal, kept]))
    return Task(X[train], X[division.test], y[division.test])


def _task_of_splits(path: Path, *, case: str, seed: int) -> Task:
    train, test, y = rows_of_split(path)
    if case == CLEAN:
        return Task(train, test, y)
    anomalies = np.random.default_rng(seed).permutation(np.flatnonzero(y))
    moved = anomalies[: min(len(anomalies) // 2, len(train) // NORMAL_FOR_AN_ANOMALY)]
    X = np.concatenate([train, test[moved]])
    X = X[np.random.default_rng(seed).permutation(len(X))]  # else the last rows were the anomalies
    return Task(X, np.delete(test, moved, axis=0), np.delete(y, moved))


@cache
def rows_of_split(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The training rows, the test rows and the labels of the latter, read once."""
    with np.load(path) as split:
        return split["train"], split["test"], split["y"]


def model_of(cell: Cell) -> Any:
    """The method of a cell; the Detector that is told the case depends on that."""
    if cell.method == TOLD and cell.case == CONTAMINATED:
        return OurDetector(labels_of=nobody, settings={"unlabelled": "doubted"})
    return METHODS[cell.method].build()


def measure(cell: Cell, *, folder: Path, commit: str) -> dict[str, Any]:
    """Average precision and prevalence on the test rows, and seconds."""
    if cell.method in (OURS, TOLD):
        warm_up()
    task = task_of(cell, folder=folder)
    known = np.zeros(len(task.X), dtype=int)
    score, effort = fitted_and_scored(model_of(cell), task.X, known, task.X_test)
    return {
        "average_precision": float(average_precision_score(task.y_test, score)),
        "prevalence": float(np.mean(task.y_test)),
        **effort,
        **described(METHODS[cell.method]),
        "commit": commit,
    }


def cells_of(args: argparse.Namespace) -> list[Cell]:
    """Every cell that is asked for, the first division of all methods first."""
    return [
        Cell("no_labels", case, collection, path.stem, seed, method)
        for seed in args.seeds
        for method in args.only
        for case in args.cases
        for collection in args.collections
        for path in sorted((args.data / collection).glob("*.npz"))
        if args.tables is None or path.stem in args.tables
        if (case, collection) != (CLEAN, SPLITS) or seed == args.seeds[0]
    ]


def options() -> argparse.Namespace:
    """The options of the command."""
    parser = parser_of_methods(__doc__.splitlines()[0], methods=METHODS, seeds=SEEDS)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=COLLECTIONS)
    parser.add_argument("--data", type=Path, default=DATA_HOME, metavar="FOLDER")
    add_processes(parser)
    return parser.parse_args()


def main() -> None:
    begin, args = monotonic(), options()
    if not args.kept:
        warm_up()  # where nothing is compiled yet, once and not in all processes
    how = partial(measure, folder=args.data, commit=args.commit)
    results = measured_in_processes(cells_of(args), how, methods=METHODS, args=args, begin=begin)
    if not results:
        print(f"Nothing to show: no tables in {args.data}, or nothing measured yet.")
        return
    shown = {"markdown": args.markdown, "by_table": args.by_table}
    print(standings_without_labels(results, **shown, reference=OURS))


if __name__ == "__main__":
    main()
