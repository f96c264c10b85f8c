"""Labels that are few and incomplete: eqsep's Detector against its peers on tables of ADBench.

    python bench/adbench.py                            what is missing, then the tables
    python bench/adbench.py --kept                     the tables of what is there
    python bench/adbench.py --only XGBoost --seeds 0   some methods and divisions
    python bench/adbench.py --tables thyroid yeast --shares 5 25
    python bench/adbench.py --again eqsep              measure a method anew
    python bench/adbench.py --by-table --markdown      every table, for a page

Each table is divided at random, 70 % of the rows to train and 30 % to test, with as large a share
of anomalies in both. Of the training anomalies 1, 5, 25 or 100 % are labelled, at least one; all
others sit among the normal rows and nobody knows. Average precision on the test rows, three
divisions. No row is copied, where the code of ADBench (NeurIPS 2022) repeats those of small tables
before it divides them. The Detector is given "anomaly" or no label at all, its peers 1 or 0.

Each task and method leaves one JSON, which a second run reads. Seconds are of a single thread, on
whatever else the machine did. The tables are NAME.npz with X and y in $EQSEP_DATA/adbench, else in
../shared/data/adbench.
"""

import argparse
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from cells import gathered, parser_of_methods, path_of
from peers import (
    CATBOOST,
    OF_DEEPOD,
    TABPFN,
    Method,
    OurDetector,
    described,
    fitted_and_scored,
    named,
    prepared,
)
from peers import METHODS as PEERS_OF_KINDS
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from standings import standings_by_share
from tasks import DATA_HOME

SHARES = (1, 5, 25, 100)
SEEDS = (0, 1, 2)


# The quick ones first, so that most of the table is soon there.
METHODS = {
    "eqsep": Method(
        partial(OurDetector, labels_of=named),
        "eqsep",
        "Detector, its defaults, no label where nothing is known",
    ),
    "isolation forest": replace(
        PEERS_OF_KINDS["isolation forest"], settings="the rows without a label only"
    ),
    "XGBoost": PEERS_OF_KINDS["XGBoost"],
    "random forest": PEERS_OF_KINDS["random forest"],
    "CatBoost": CATBOOST,
    "DeepSAD": PEERS_OF_KINDS["DeepSAD"],
    "RoSAS": Method(
        partial(prepared, "RoSAS", scaler=StandardScaler()),
        "deepod",
        f"{OF_DEEPOD}, in which at most half of the unlabelled rows are",
    ),
    "PReNet": PEERS_OF_KINDS["PReNet"],
    "XGBOD": PEERS_OF_KINDS["XGBOD"],
    "WSAD-DT": Method(
        partial(prepared, "WSAD-DT", scaler=MinMaxScaler()),
        "wsad_dt",
        "columns from 0 to 1, 100 epochs (its default) of at most 10 batches for each member",
    ),
    "TabM": Method(
        partial(prepared, "TabM", scaler=QuantileTransformer(output_distribution="normal")),
        "tabm",
        "columns as normal quantiles, training by its example, on a GPU where there is one",
    ),
    "TabPFN": TABPFN,
}


@dataclass(frozen=True)
class Cell:
    """A method on a table, of whose anomalies a share (in per cent) is labelled."""

    table: str
    data: str
    share: int
    seed: int
    method: str


@dataclass(frozen=True, eq=False)
class Division:
    """The places of the rows to train on and to test on, and of the former which are labelled."""

    train: np.ndarray
    test: np.ndarray
    is_labelled: np.ndarray


def divide(y: np.ndarray, *, share: int, seed: int) -> Division:
    """Which rows are trained on, which are tested on, and which anomalies are labelled.

    The rows are divided alike for every share, and what is labelled at one share is labelled at
    the larger ones too.
    """
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=seed)
    anomalies = np.random.default_rng(seed).permutation(np.flatnonzero(y[train]))
    is_labelled = np.zeros(len(train), dtype=bool)
    is_labelled[anomalies[: -(-len(anomalies) * share // 100)]] = True
    return Division(train, test, is_labelled)


@cache
def rows_of(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a table, read once."""
    with np.load(path) as table:
        return table["X"], table["y"]


def measure(cell: Cell, *, folder: Path) -> dict[str, Any]:
    """What is measured of a method with its settings."""
    method = METHODS[cell.method]
    return tested(method.build(), cell, folder=folder) | described(method)


def tested(model: Any, cell: Cell, *, folder: Path) -> dict[str, Any]:
    """Average precision and prevalence on the test rows, and seconds."""
    X, y = rows_of(folder / f"{cell.data}.npz")
    division = divide(y, share=cell.share, seed=cell.seed)
    y_test = y[division.test]
    score, effort = fitted_and_scored(
        model, X[division.train], division.is_labelled.astype(int), X[division.test]
    )
    return {
        "average_precision": float(average_precision_score(y_test, score)),
        "prevalence": float(y_test.mean()),
        "n_labelled": int(division.is_labelled.sum()),
        **effort,
    }


def cells_of(args: argparse.Namespace) -> list[Cell]:
    """Every cell that is asked for, the first division of all methods first."""
    cells = [
        Cell(args.benchmark, data, share, seed, method)
        for seed in args.seeds
        for method in args.only
        for data in args.tables
        for share in args.shares
    ]
    return [cell for cell in cells if path_of(cell, args.out).exists() or not args.kept]


def parser_of(
    description: str, *, methods: Collection[str], benchmark: str
) -> argparse.ArgumentParser:
    """The options of a benchmark with this protocol, whose tables are in a folder of its name."""
    parser = parser_of_methods(description, methods=methods, seeds=SEEDS)
    parser.set_defaults(benchmark=benchmark)
    parser.add_argument("--shares", nargs="+", type=int, default=SHARES, metavar="PER_CENT")
    parser.add_argument("--data", type=Path, default=DATA_HOME / benchmark, metavar="FOLDER")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of the command, with all tables of the folder unless some are named."""
    args = parser.parse_args()
    args.tables = args.tables or sorted(path.stem for path in args.data.glob("*.npz"))
    return args


def main() -> None:
    args = parsed(parser_of(__doc__.splitlines()[0], methods=METHODS, benchmark="adbench"))
    results = gathered(
        cells_of(args),
        partial(measure, folder=args.data),
        methods=METHODS,
        again=args.again,
        out=args.out,
    )
    if not results:
        print(f"Nothing to show: no tables NAME.npz in {args.data}, or nothing measured yet.")
        return
    print(standings_by_share(results, markdown=args.markdown, by_table=args.by_table))


if __name__ == "__main__":
    main()
