"""One kind is labelled, in a few rows, and nobody has looked at the rest: eqsep and its peers.

    python bench/partial_labels.py                          what is missing, then the tables
    python bench/partial_labels.py --kept --markdown        the tables of what is there, for a page
    python bench/partial_labels.py --only eqsep "random forest" --tables shuttle ann-thyroid
    python bench/partial_labels.py --again eqsep --processes 2 --limit-seconds 540

The tables are those of leave_one_kind_out.py, divided in halves as there, every kind too. Each kind
is in turn the labelled one: 50 rows of its training half, or all if they are fewer. The normal rows
of the training half have no label, nor have anomalies that are hidden among them and make 5 % of
the unlabelled rows: of every kind, in equal parts as far as its training half goes. The Detector is
given "anomaly" or no label, peers 1 or 0; "eqsep without labels" has the same rows and no label at
all. The other halves are the test.

Average precision of the labelled kind, the mean over the other kinds, and of all anomalies
together, against the normal test rows; recall of the other kinds (their mean) at 1 % false alarms,
by the threshold that 1 % of the normal test rows exceed. Means over the tasks of each table, then
over tables. Each task and method leaves one JSON, which a second run reads. Seconds are of a single
thread, on whatever else the machine did. The data is looked for in $EQSEP_DATA, then in
../shared/data.
"""

import argparse
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
from cells import add_processes, measured_in_processes, parser_of_methods
from peers import (
    CATBOOST,
    NEIGHBOURS,
    Method,
    OurDetector,
    described,
    fitted_and_scored,
    named,
    nobody,
    warm_up,
)
from peers import METHODS as METHODS_OF_KINDS
from rates import recall_by_kind
from standings import standings_by_measure
from tasks import ALL_TABLES, TABLES, Division, divide, rows_of

from eqsep.evaluation import OVERALL, average_precision_by_kind

N_LABELLED = 50
NORMAL_FOR_A_HIDDEN = 19  # so that 5 % of the unlabelled rows are anomalies
FALSE_ALARM_RATE = 0.01
_UNLABELLED = "the rows without a label only"
METHODS = {
    "eqsep": Method(
        partial(OurDetector, labels_of=named),
        "eqsep",
        "Detector, its defaults, no label where nothing is known",
        mixed=True,
    ),
    "eqsep without labels": Method(
        partial(OurDetector, labels_of=nobody), "eqsep", "y=None", mixed=True
    ),
    "random forest": METHODS_OF_KINDS["random forest"],
    "XGBoost": METHODS_OF_KINDS["XGBoost"],
    "CatBoost": CATBOOST,
    "isolation forest": replace(METHODS_OF_KINDS["isolation forest"], settings=_UNLABELLED),
    **{
        name: replace(method, settings=f"{method.settings}, {_UNLABELLED}")
        for name, method in NEIGHBOURS.items()
    },
}
MEASURES = {
    "labelled": "labelled kind",
    "others": "other kinds",
    "overall": "all",
    "recall_of_others": "recall of the others at 1 % false alarms",
}


@dataclass(frozen=True)
class Cell:
    """A method on a table with one labelled kind."""

    table: str
    data: str
    seen: str
    seed: int
    method: str


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Division):
    """The places of the rows to train on and to test on, and which of the former are labelled."""

    is_labelled: np.ndarray


def divide_partly(
    kind: np.ndarray, group: np.ndarray, *, kinds: Collection[str], seen: str, seed: int = 0
) -> PartlyLabelled:
    """Some rows of the seen kind labelled, and a few anomalies of every kind among the others."""
    halves = divide(kind, group, seen=kinds, random_state=seed)
    train = np.random.default_rng(seed).permutation(halves.train)
    labelled = train[kind[train] == seen][:N_LABELLED]
    free = train[~np.isin(train, labelled)]
    normal = free[kind[free] == "normal"]
    of_kind = {name: free[kind[free] == name] for name in kinds}
    numbers = equal_parts(
        len(normal) // NORMAL_FOR_A_HIDDEN, [len(places) for places in of_kind.values()]
    )
    hidden = [places[:n] for places, n in zip(of_kind.values(), numbers, strict=True)]
    used = np.sort(np.concatenate([labelled, normal, *hidden]))
    return PartlyLabelled(used, halves.test, np.isin(used, labelled))


def equal_parts(total: int, sizes: list[int]) -> list[int]:
    """How many to take of each so that the parts are equal as far as sizes go."""
    parts = [0] * len(sizes)
    left = total
    for done, i in enumerate(np.argsort(sizes, kind="stable")):
        parts[i] = min(sizes[i], left // (len(sizes) - done))
        left -= parts[i]
    return parts


def measure(cell: Cell, *, commit: str) -> dict[str, Any]:
    """Average precision by kind, recall of the kinds that are not labelled, and seconds."""
    method, rows = METHODS[cell.method], rows_of(cell.data)
    if method.module == "eqsep":
        warm_up()
    kinds = ALL_TABLES[cell.data].kinds
    division = divide_partly(rows.kind, rows.group, kinds=kinds, seen=cell.seen, seed=cell.seed)
    train, test = rows.at(division.train), rows.at(division.test)
    X, X_test = (part.frame if method.mixed else part.matrix for part in (train, test))
    score, effort = fitted_and_scored(method.build(), X, division.is_labelled.astype(int), X_test)
    area = average_precision_by_kind(score, test.kind)
    recall = recall_by_kind(score, test.kind, false_alarm_rate=FALSE_ALARM_RATE)
    others = [kind for kind in recall if kind != cell.seen]
    return {
        "figures": {
            "labelled": area[cell.seen],
            "others": float(np.mean([area[kind] for kind in others])),
            "overall": area[OVERALL],
            "recall_of_others": float(np.mean([recall[kind] for kind in others])),
        },
        "average_precision_by_kind": area,
        "recall_by_kind": recall,
        "n_labelled": int(division.is_labelled.sum()),
        "n_hidden": int(np.sum(train.kind != "normal") - division.is_labelled.sum()),
        **effort,
        **described(method),
        "commit": commit,
    }


def cells_of(args: argparse.Namespace) -> list[Cell]:
    """Every cell that is asked for, the first division of all methods first."""
    return [
        Cell("partial_labels", data, seen, seed, method)
        for seed in args.seeds
        for data in args.tables or TABLES
        for method in args.only
        for seen in ALL_TABLES[data].kinds
    ]


def options() -> argparse.Namespace:
    """The options of the command."""
    parser = parser_of_methods(__doc__.splitlines()[0], methods=METHODS, seeds=(0,))
    add_processes(parser)
    args = parser.parse_args()
    if strange := [name for name in args.tables or () if name not in ALL_TABLES]:
        parser.error(f"no such table: {', '.join(strange)}; there are {', '.join(ALL_TABLES)}")
    return args


def main() -> None:
    begin, args = monotonic(), options()
    how = partial(measure, commit=args.commit)
    results = measured_in_processes(cells_of(args), how, methods=METHODS, args=args, begin=begin)
    if not results:
        print("Nothing to show: no data, or nothing measured yet.")
        return
    title = "One kind labelled: average precision, means over tasks, then tables"
    view = {"title": title, "markdown": args.markdown, "by_table": args.by_table}
    print(standings_by_measure(results, MEASURES, **view))


if __name__ == "__main__":
    main()
