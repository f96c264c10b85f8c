"""One kind of anomaly is seen, the others are not: eqsep's Detector against its peers.

    python bench/leave_one_kind_out.py                       what is missing, then the tables
    python bench/leave_one_kind_out.py --only XGBoost SVC    some methods
    python bench/leave_one_kind_out.py --tables shuttle      some tables
    python bench/leave_one_kind_out.py --tables process/{0,1,2}   made up: only where it is named
    python bench/leave_one_kind_out.py --again eqsep         measure a method anew
    python bench/leave_one_kind_out.py --markdown            for a page

Every kind of at least 20 rows is in turn the only one that is seen (see tasks.py for the rows,
peers.py for the methods). Average precision of each kind against the normal test rows: of the seen
kind, the mean over the unseen kinds, and of all anomalies together. Each task and method leaves
one JSON, which a second run reads. Seconds are of a single thread, on whatever else the machine
did. The data is looked for in $EQSEP_DATA, then in ../shared/data.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cells import RESULTS, gathered
from peers import METHODS, described, fitted_and_scored
from standings import standings
from tasks import ALL_TABLES, TABLES, divide, rows_of

from eqsep.evaluation import OVERALL, average_precision_by_kind, prevalence_by_kind


@dataclass(frozen=True)
class Cell:
    """A method on a task."""

    table: str
    data: str
    seen: str
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


def _three(by_kind: dict[str, float], *, seen: str) -> dict[str, float]:
    """Of the seen kind, the mean over the unseen kinds, and of all together."""
    unseen = [area for kind, area in by_kind.items() if kind not in (seen, OVERALL)]
    return {
        "seen": by_kind[seen],
        "unseen": float(np.mean(unseen)),
        "overall": by_kind[OVERALL],
    }


def cells_of(args: argparse.Namespace) -> list[Cell]:
    """Every cell that is asked for."""
    return [
        Cell("leave_one_kind_out", data, seen, method)
        for method in args.only
        for data in args.tables
        for seen in ALL_TABLES[data].kinds
    ]


def options() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tables", nargs="+", choices=ALL_TABLES, default=list(TABLES))
    parser.add_argument("--again", nargs="+", choices=METHODS, default=[])
    parser.add_argument("--markdown", action="store_true", help="tables for a page")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"for results ({RESULTS})")
    return parser.parse_args()


def main() -> None:
    args = options()
    results = gathered(cells_of(args), measure, methods=METHODS, again=args.again, out=args.out)
    print(standings(results, markdown=args.markdown))


if __name__ == "__main__":
    main()
