"""The score without each of its terms in turn: what a term earns, and what it costs.

    python bench/ablation.py                           what is missing, then the tables
    python bench/ablation.py --kept                    the tables of what is there
    python bench/ablation.py --only "partial labels" --tables shuttle --processes 2

The tasks are those of leave_one_kind_out.py, no_labels.py ("eqsep": nobody has said which case it
is), partial_labels.py and adbench.py. Each is fitted once with the defaults; the values of the
terms on its test rows are combined again with the weight of one of them at 0. The rest of the plan
stays as it is. Average precision: means over the tasks of each table, then over tables. Where a
plan lacks a term, nothing changes.

Seconds are of a single thread, on whatever else the machine did: of fitting, what choosing the
term, its sums and its solution take; of scoring 1,000 rows, what a score of the residual and this
term takes beyond the residual alone.

Each task leaves one JSON, which a second run reads. The data is looked for in $EQSEP_DATA, then in
../shared/data.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any
from unittest.mock import patch

import adbench
import no_labels
import numpy as np
import partial_labels
from cells import RESULTS, add_processes, measured_at_once
from peers import THREADS, named, nobody, warm_up
from sklearn.metrics import average_precision_score
from standings import piped
from tasks import ALL_TABLES, DATA_HOME, TABLES, divide, rows_of
from threadpoolctl import threadpool_limits

from eqsep import Detector
from eqsep.detector.model import Model
from eqsep.detector.score import Score, combine
from eqsep.detector.terms import TERMS
from eqsep.detector.terms.kernel import KernelTerm
from eqsep.detector.terms.normality import NormalityTerm
from eqsep.engine.backends import NUMPY
from eqsep.evaluation import OVERALL, average_precision_by_kind

KINDS, NO_LABELS, PARTIAL, SHARES = BENCHMARKS = (
    "leave one kind out",
    "no labels",
    "partial labels",
    "adbench",
)
NAMES = [term.name for term in TERMS]
ROWS_TO_TIME, REPEATS = 1000, 7


@dataclass(frozen=True)
class Cell:
    """A task of one of the benchmarks: its data, and what it is asked there."""

    table: str
    benchmark: str
    asked: str  # the seen kind, the case, or the share of the anomalies with a label
    collection: str
    data: str
    seed: int


@dataclass(frozen=True, eq=False)
class Task:
    """Rows to fit to and to test on, and how average precision is measured there."""

    X: Any
    y: Any
    X_test: Any
    precisions: Callable[[np.ndarray], dict[str, float]]  # of scores, by what they are of


def task_of(cell: Cell, *, folder: Path) -> Task:
    """The rows of a cell, as its benchmark has them."""
    return {
        KINDS: _one_kind_left_out,
        NO_LABELS: _without_labels,
        PARTIAL: _one_kind_labelled,
        SHARES: _share_labelled,
    }[cell.benchmark](cell, folder)


def _one_kind_left_out(cell: Cell, folder: Path) -> Task:
    del folder
    rows = rows_of(cell.data)
    division = divide(rows.kind, rows.group, seen=cell.asked)
    train, test = rows.at(division.train), rows.at(division.test)
    y = (train.kind != "normal").astype(int)
    names = "seen kind", "unseen kinds", "all"
    return Task(train.frame, y, test.frame, partial(_by_kind, test.kind, cell.asked, names))


def _one_kind_labelled(cell: Cell, folder: Path) -> Task:
    del folder
    rows, kinds = rows_of(cell.data), ALL_TABLES[cell.data].kinds
    division = partial_labels.divide_partly(
        rows.kind, rows.group, kinds=kinds, seen=cell.asked, seed=cell.seed
    )
    train, test = rows.at(division.train), rows.at(division.test)
    y = named(division.is_labelled.astype(int))
    names = "labelled kind", "other kinds", "all"
    return Task(train.frame, y, test.frame, partial(_by_kind, test.kind, cell.asked, names))


def _without_labels(cell: Cell, folder: Path) -> Task:
    like = no_labels.Cell("", cell.asked, cell.collection, cell.data, cell.seed, no_labels.OURS)
    task = no_labels.task_of(like, folder=folder)
    what = f"{cell.collection}, {cell.asked}"
    return Task(task.X, nobody(task.X), task.X_test, partial(_of_all, task.y_test, what))


def _share_labelled(cell: Cell, folder: Path) -> Task:
    X, y = adbench.rows_of(folder / cell.collection / f"{cell.data}.npz")
    division = adbench.divide(y, share=int(cell.asked), seed=cell.seed)
    labels, y_test = named(division.is_labelled.astype(int)), y[division.test]
    what = partial(_of_all, y_test, f"{cell.asked} % labelled")
    return Task(X[division.train], labels, X[division.test], what)


def _of_all(y: np.ndarray, name: str, score: np.ndarray) -> dict[str, float]:
    return {name: float(average_precision_score(y, score))}


def _by_kind(
    kind: np.ndarray, seen: str, names: Sequence[str], score: np.ndarray
) -> dict[str, float]:
    """Of the seen kind, the mean over the others, and of all together."""
    area = average_precision_by_kind(score, kind)
    others = [value for name, value in area.items() if name not in (seen, OVERALL)]
    values = area[seen], float(np.mean(others)), area[OVERALL]
    return dict(zip(names, values, strict=True))


def score_without(values: Mapping[str, Any], weights: Mapping[str, float], out: str) -> np.ndarray:
    """The scores with one term at weight 0; "" for none.

    The part of the residual goes to normality, if there is that, else it is 0.
    """
    weights = {**weights, out: 0.0}
    if out == KernelTerm.name:
        weights[NormalityTerm.name] = 1.0
        values = {**values, out: np.zeros_like(values[out])}
    return np.asarray(combine(values, weights=weights, backend=NUMPY))


@contextmanager
def fit_timed() -> Iterator[Counter[str]]:
    """The seconds that each term takes of the fits within."""
    seconds: Counter[str] = Counter()

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*args: Any, **named_ones: Any) -> Any:
            begin = perf_counter()
            try:
                return call(*args, **named_ones)
            finally:
                seconds[name] += perf_counter() - begin

        return counted

    with ExitStack() as patches:
        for term in TERMS:
            choose = classmethod(timed(term.name, term.choose.__func__))
            patches.enter_context(patch.object(term, "choose", choose))
            for step in ("accumulate", "solve"):
                own = timed(term.name, getattr(term, step))
                patches.enter_context(patch.object(term, step, own))
        yield seconds


def scoring_seconds(model: Model, rows: np.ndarray) -> dict[str, float]:
    """What each term adds to the seconds of scoring 1,000 of these encoded rows."""
    rows = np.resize(rows, (ROWS_TO_TIME, rows.shape[1]))
    residual = _seconds_with(model.score, rows)
    others = [name for name in model.score.functions if name != KernelTerm.name]
    beyond = {name: _seconds_with(model.score, rows, name) - residual for name in others}
    return {KernelTerm.name: residual} | beyond


def _seconds_with(score: Score, rows: np.ndarray, *terms: str) -> float:
    """The seconds of a score of the residual and these terms, the least of some."""
    functions = {name: score.functions[name] for name in (KernelTerm.name, *terms)}
    some, seconds = replace(score, functions=functions), []
    for _ in range(1 + REPEATS):
        begin = perf_counter()
        some(rows)
        seconds.append(perf_counter() - begin)
    return min(seconds[1:])


def measure(cell: Cell, *, folder: Path, commit: str) -> dict[str, Any]:
    """Average precision with all terms and without each one of the plan, and seconds of terms."""
    warm_up()
    task = task_of(cell, folder=folder)
    with threadpool_limits(THREADS), fit_timed() as fitting:
        model = Detector(random_state=0).fit_quietly(task.X, task.y).model
        rows = model.plan.encode(task.X_test)
        values = model.score.values(rows)
        scoring = scoring_seconds(model, rows)
    weights = {term.name: term.weight for term in model.plan.terms}
    return {
        "average_precision": task.precisions(score_without(values, weights, "")),
        "without": {out: task.precisions(score_without(values, weights, out)) for out in values},
        "fit_seconds": {name: fitting[name] for name in values},
        "score_seconds": scoring,
        "n_train": len(task.X),
        "commit": commit,
    }


def effects(results: Sequence[dict]) -> list[list[str]]:
    """A line for each measure: its mean, and the change of it without each term."""
    lines = [["average precision", "tables", "all terms", *(f"no {name}" for name in NAMES)]]
    measures = dict.fromkeys((r["benchmark"], name) for r in results for name in r[_AREA])
    for benchmark, name in measures:
        own = [r for r in results if r["benchmark"] == benchmark and name in r[_AREA]]
        whole = _over_tables(own, lambda r, name=name: r[_AREA][name])
        changes = [
            _over_tables(
                own, lambda r, n=name, t=term: r["without"].get(t, r[_AREA])[n] - r[_AREA][n]
            )
            for term in NAMES
        ]
        n_tables = len({r["data"] for r in own})
        title = f"{benchmark}: {name}"
        lines.append([title, str(n_tables), f"{whole:.3f}", *(f"{c + 0.0:+.3f}" for c in changes)])
    return lines


def costs(results: Sequence[dict]) -> list[list[str]]:
    """A line for each term: in how many tasks it is, and its seconds there, on average."""
    lines = [["term", "tasks", "seconds of fitting", "seconds of scoring 1,000 rows"]]
    for name in NAMES:
        own = [r for r in results if name in r["without"]]
        if own:
            seconds = [np.mean([r[f"{what}_seconds"][name] for r in own]) for what in _TIMED]
            lines.append([name, str(len(own)), *(f"{s:.4f}" for s in seconds)])
    fitting, scoring = (
        np.mean([sum(r[f"{what}_seconds"].values()) for r in results]) for what in _TIMED
    )
    return [*lines, ["all terms", str(len(results)), f"{fitting:.4f}", f"{scoring:.4f}"]]


_AREA, _TIMED = "average_precision", ("fit", "score")


def _over_tables(results: Sequence[dict], figure: Callable[[dict], float]) -> float:
    """The mean over the tasks of each table, then over tables."""
    of_table: dict[str, list[float]] = {}
    for result in results:
        of_table.setdefault(result["data"], []).append(figure(result))
    return float(np.mean([np.mean(values) for values in of_table.values()]))


def cells_of(args: argparse.Namespace) -> list[Cell]:
    """Every cell that is asked for, the first seed of all benchmarks first."""

    def of_kinds(benchmark: str, seed: int) -> Iterator[Cell]:
        for data in TABLES:
            for kind in TABLES[data].kinds:
                yield Cell("ablation", benchmark, kind, "", data, seed)

    def of_folder(benchmark: str, collection: str, asked: object, seed: int) -> Iterator[Cell]:
        for path in sorted((args.data / collection).glob("*.npz")):
            yield Cell("ablation", benchmark, str(asked), collection, path.stem, seed)

    def cells(seed: int) -> Iterator[Cell]:
        is_first = seed == args.seeds[0]
        if is_first:  # these are divided alike for every seed
            yield from of_kinds(KINDS, seed)
        yield from of_kinds(PARTIAL, seed)
        for case in no_labels.CASES:
            for collection in no_labels.COLLECTIONS:
                if is_first or (case, collection) != (no_labels.CLEAN, no_labels.SPLITS):
                    yield from of_folder(NO_LABELS, collection, case, seed)
        for share in adbench.SHARES:
            yield from of_folder(SHARES, "adbench", share, seed)

    return [
        cell
        for seed in args.seeds
        for cell in cells(seed)
        if cell.benchmark in args.only and (args.tables is None or cell.data in args.tables)
    ]


def options() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="by default all")
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,), metavar="SEED")
    parser.add_argument("--kept", action="store_true", help="measure nothing")
    parser.add_argument("--again", action="store_true", help="measure all anew")
    parser.add_argument("--data", type=Path, default=DATA_HOME, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"for results ({RESULTS})")
    add_processes(parser)
    return parser.parse_args()


def main() -> None:
    begin, args = monotonic(), options()
    if not args.kept:
        warm_up()  # where nothing is compiled yet, once and not in all processes
    how = partial(measure, folder=args.data, commit=args.commit)
    results = measured_at_once(cells_of(args), how, args=args, again=args.again, begin=begin)
    if not results:
        print(f"Nothing to show: no tables in {args.data}, or nothing measured yet.")
        return
    print(piped(effects(results)), piped(costs(results)), sep="\n\n")


if __name__ == "__main__":
    main()
