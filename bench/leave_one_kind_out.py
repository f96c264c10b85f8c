"""One kind of anomaly is seen, the others are not, or all are: eqsep's Detector and its peers.

    python bench/leave_one_kind_out.py                       what is missing, then the tables
    python bench/leave_one_kind_out.py --only XGBoost SVC    some methods
    python bench/leave_one_kind_out.py --tables shuttle      some tables
    python bench/leave_one_kind_out.py --tables process/{0,1,2}   made up: only where it is named
    python bench/leave_one_kind_out.py --again eqsep         measure a method anew
    python bench/leave_one_kind_out.py --all-kinds           where all kinds are seen
    python bench/leave_one_kind_out.py --markdown            for a page

Every kind of at least 20 rows is in turn the only one that is seen (see tasks.py for the rows,
peers.py for the methods). Average precision of each kind against the normal test rows: of the seen
kind, the mean over the unseen kinds, and of all anomalies together.

With --all-kinds, half of the rows of every kind are trained on, by the name of their kind or, by
peers, as anomalies. Recall of each kind at .3, 1 and 5 % false alarms, whose thresholds are
quantiles of the normal test rows, and average precision; means over the kinds, then over tables.

Each task and method leaves one JSON, which a second run reads. Seconds are of a single thread, on
whatever else the machine did. The data is looked for in $EQSEP_DATA, then in ../shared/data.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cells import RESULTS, gathered
from peers import CATBOOST, METHODS, described, fitted_and_scored
from rates import recall_by_kind
from standings import standings, standings_by_measure
from tasks import ALL_TABLES, TABLES, divide, rows_of

from eqsep.evaluation import OVERALL, average_precision_by_kind, prevalence_by_kind

RATES = (0.003, 0.01, 0.05)
MEASURES_OF_ALL_KINDS = {
    **{f"recall_{rate}": f"recall at {100 * rate:g} % false alarms" for rate in RATES},
    "average_precision": "average precision",
    "overall": "of all together",
}
METHODS_OF_ALL_KINDS = {
    **{name: METHODS[name] for name in ("eqsep", "XGBoost", "random forest")},
    "CatBoost": CATBOOST,
}


@dataclass(frozen=True)
class Cell:
    """A method on a task."""

    table: str
    data: str
    seen: str
    method: str


@dataclass(frozen=True)
class CellOfAllKinds:
    """A method on a table all of whose kinds are seen."""

    table: str
    data: str
    method: str


def measure(cell: Cell) -> dict[str, Any]:
    """Average precision and prevalence by kind, and seconds."""
    rows, method = rows_of(cell.data), METHODS[cell.method]
    division = divide(rows.kind, rows.group, seen=cell.seen)
    train, test = rows.at(division.train), rows.at(division.test)
    X, X_test = (part.frame if method.mixed else part.matrix for part in (train, test))
    y = (train.kind != "normal").astype(int)
    score, effort = fitted_and_scored(method.build(), X, y, X_test)
    return {
        "average_precision": _three(average_precision_by_kind(score, test.kind), seen=cell.seen),
        "prevalence": _three(prevalence_by_kind(test.kind), seen=cell.seen),
        "by_kind": average_precision_by_kind(score, test.kind),
        **effort,
        **described(method),
    }


def measure_all_kinds(cell: CellOfAllKinds) -> dict[str, Any]:
    """Recall at few false alarms and average precision, where all kinds are seen."""
    rows, method = rows_of(cell.data), METHODS_OF_ALL_KINDS[cell.method]
    division = divide(rows.kind, rows.group, seen=ALL_TABLES[cell.data].kinds)
    train, test = rows.at(division.train), rows.at(division.test)
    if method.mixed:
        X, X_test, y = train.frame, test.frame, train.kind
    else:
        X, X_test, y = train.matrix, test.matrix, (train.kind != "normal").astype(int)
    score, effort = fitted_and_scored(method.build(), X, y, X_test)
    area = average_precision_by_kind(score, test.kind)
    recall = {rate: recall_by_kind(score, test.kind, false_alarm_rate=rate) for rate in RATES}
    return {
        "figures": {
            **{f"recall_{rate}": float(np.mean(list(recall[rate].values()))) for rate in RATES},
            "average_precision": float(np.mean([a for k, a in area.items() if k != OVERALL])),
            "overall": area[OVERALL],
        },
        "recall_by_kind": {str(rate): by_kind for rate, by_kind in recall.items()},
        "average_precision_by_kind": area,
        **effort,
        **described(method),
    }


def _three(by_kind: dict[str, float], *, seen: str) -> dict[str, float]:
    """Of the seen kind, the mean over the unseen kinds, and of all together."""
    unseen = [area for kind, area in by_kind.items() if kind not in (seen, OVERALL)]
    return {
        "seen": by_kind[seen],
        "unseen": float(np.mean(unseen)),
        "overall": by_kind[OVERALL],
    }


def cells_of(args: argparse.Namespace) -> list[Cell] | list[CellOfAllKinds]:
    """Every cell that is asked for."""
    if args.all_kinds:
        return [
            CellOfAllKinds("all_kinds", data, method)
            for method in args.only
            for data in args.tables
        ]
    return [
        Cell("leave_one_kind_out", data, seen, method)
        for method in args.only
        for data in args.tables
        for seen in ALL_TABLES[data].kinds
    ]


def options() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    methods = METHODS | METHODS_OF_ALL_KINDS
    parser.add_argument("--all-kinds", action="store_true", help="all kinds are seen")
    parser.add_argument("--only", nargs="+", choices=methods, help="by default all")
    parser.add_argument("--tables", nargs="+", choices=ALL_TABLES, default=list(TABLES))
    parser.add_argument("--again", nargs="+", choices=methods, default=[])
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"for results ({RESULTS})")
    args = parser.parse_args()
    args.methods = METHODS_OF_ALL_KINDS if args.all_kinds else METHODS
    args.only = args.only or list(args.methods)
    if strange := [method for method in args.only if method not in args.methods]:
        parser.error(f"not measured here: {', '.join(strange)}")
    return args


def main() -> None:
    args = options()
    how = {"methods": args.methods, "again": args.again, "out": args.out}
    if args.all_kinds:
        results = gathered(cells_of(args), measure_all_kinds, **how)
        title = "All kinds seen: means over kinds, then tables"
        view = {"title": title, "markdown": args.markdown, "by_table": True}
        print(standings_by_measure(results, MEASURES_OF_ALL_KINDS, **view))
    else:
        print(standings(gathered(cells_of(args), measure, **how), markdown=args.markdown))


if __name__ == "__main__":
    main()
