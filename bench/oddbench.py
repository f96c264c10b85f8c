"""A benchmark nobody tuned on: eqsep's Detector and its peers on 40 tables of OddBench.

    python bench/oddbench.py --processes 16            what is missing, then the tables
    python bench/oddbench.py --kept --markdown         the tables of what is there, for a page
    python bench/oddbench.py --processes 16 --limit-seconds 540
    python bench/oddbench.py --only eqsep CatBoost "CatBoost, tuned" --divisions 0 --shares 5 25
    python bench/oddbench.py --again eqsep --by-table  measure a method again

Nothing in eqsep was chosen on these tables, and nothing may be. They come from OddBench (Ding and
others, 2026, arXiv 2602.09329): anyone gets them from benchmarks/oddbench of
https://github.com/psorus/Outformer, which states no licence. Put them into $EQSEP_DATA/oddbench,
../shared/data/oddbench or the folder of --data, as NAME.npz with X (float32) and y (0 or 1). Ours
have at most 5,000 rows, fewer than ADBench's limit of 10,000, and no constant columns.

The protocol is that of adbench.py: the same divisions of the rows, three of them, and 0, 1, 5, 25
or 100 % of the training anomalies labelled. At 0 % nobody has looked at a row, so only methods that
need no labels are measured, and the mean is over the other shares. Each peer is measured with its
defaults and, but for NEED_NO_TUNING, tuned: a
random search over GRIDS by cross-validation with three folds (two, where two anomalies are
labelled), by the mean average precision of the labels that it is given. The search has the seconds
that the Detector's fit took on the same task. The default is the first candidate; one whose folds
are not all done when the time is up does not count. The best is then fitted to all training rows,
beyond that time. The default stays where a single anomaly is labelled, and where one fit of it
takes longer than the search may. Methods "tuned 10x" search ten times as long, where --only names
them.

Every process has one thread. Each task and method leaves one JSON, which a second run reads.
--limit-seconds ends the processes and prints what is complete. A method whose package cannot be
imported is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import numpy as np
from adbench import METHODS as METHODS_OF_ADBENCH
from adbench import SHARES, Cell, cells_of, divide, parsed, parser_of, rows_of, tested
from cells import add_processes, measured, measured_in_processes
from peers import METHODS as METHODS_OF_KINDS
from peers import NEIGHBOURS, THREADS, Method, described, prepared, warm_up
from sklearn.metrics import average_precision_score
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from standings import standings_by_share
from threadpoolctl import threadpool_limits

OURS = "eqsep"
TUNED = {", tuned": 1, ", tuned 10x": 10}  # times the seconds of the Detector's fit
FOLDS = 3
SLOW = ("DeepSAD", "TabM")
# The quick ones first, so that most of the table is soon there.
DEFAULTS = {
    "isolation forest": METHODS_OF_ADBENCH["isolation forest"],
    "LOF": replace(
        METHODS_OF_KINDS["LOF"], settings="standardised columns, the rows without a label only"
    ),
    "HistGradientBoosting": Method(
        partial(prepared, "HistGradientBoosting"), "sklearn", "no others"
    ),
    **{name: METHODS_OF_ADBENCH[name] for name in ("XGBoost", "random forest", "CatBoost")},
    **{name: METHODS_OF_ADBENCH[name] for name in SLOW},
}
# What a search draws from, beside the default.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "isolation forest": {
        "n_estimators": [100, 300],
        "max_samples": [64, 256, 1.0],
        "max_features": [0.5, 1.0],
    },
    "LOF": {"n_neighbors": [3, 5, 10, 20, 50, 100, 200]},
    "HistGradientBoosting": {
        "learning_rate": [0.03, 0.1, 0.3],
        "max_iter": [50, 100, 300],
        "max_leaf_nodes": [7, 15, 31],
        "min_samples_leaf": [5, 20, 50],
        "l2_regularization": [0.0, 1.0, 10.0],
        "class_weight": [None, "balanced"],
    },
    "XGBoost": {
        "n_estimators": [50, 200, 500],
        "learning_rate": [0.03, 0.1, 0.3],
        "max_depth": [3, 6, 9],
        "min_child_weight": [1, 5],
        "subsample": [0.7, 1.0],
        "colsample_bytree": [0.7, 1.0],
        "scale_pos_weight": [1, 10],
    },
    "random forest": {
        "n_estimators": [100, 200],
        "max_features": ["sqrt", 0.5, 1.0],
        "min_samples_leaf": [1, 2, 5, 10],
        "class_weight": [None, "balanced_subsample"],
    },
    "CatBoost": {
        "iterations": [100, 300],
        "learning_rate": [0.03, 0.1, 0.3],
        "depth": [4, 6, 8],
        "l2_leaf_reg": [1, 3, 10],
        "auto_class_weights": [None, "Balanced"],
    },
    "DeepSAD": {
        "lr": [1e-4, 1e-3, 1e-2],
        "rep_dim": [32, 128],
        "hidden_dims": ["100,50", "64"],
        "epochs": [20, 100],
    },
    "TabM": {
        "learning_rate": [5e-4, 2e-3, 5e-3],
        "weight_decay": [0.0, 3e-4, 1e-2],
        "epochs_without_stopping": [10, 30],
    },
}
NEED_NO_TUNING = {
    **{
        name: replace(method, settings=f"{method.settings}, the rows without a label only")
        for name, method in NEIGHBOURS.items()
    },
    "TabPFN": METHODS_OF_ADBENCH["TabPFN"],
}
NEED_NO_LABELS = (OURS, "isolation forest", "LOF", *NEIGHBOURS)
METHODS = {
    OURS: METHODS_OF_ADBENCH[OURS],
    **NEED_NO_TUNING,
    **{
        name + suffix: replace(peer, settings=peer.settings + words)
        for name, peer in DEFAULTS.items()
        for suffix, words in {"": "", **dict.fromkeys(TUNED, ", then a search over GRIDS")}.items()
    },
}


@dataclass(frozen=True)
class Search:
    """The settings that a search found best, of how many, in how many seconds."""

    chosen: Mapping[str, Any]
    n_candidates: int
    seconds: float


def search(peer: str, X: np.ndarray, y: np.ndarray, *, seconds: float) -> Search:
    """The best settings of a peer that can be found in this time; {} is its default."""
    begin, n_folds = perf_counter(), min(FOLDS, int(np.sum(y)))
    if n_folds < 2:
        return Search({}, 1, 0.0)
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
    areas: list[float] = []
    candidates = [{}, *np.random.default_rng(0).permutation(list(ParameterGrid(GRIDS[peer])))]
    with threadpool_limits(THREADS):
        for settings in candidates:
            of_folds = []
            for train, held in folds:
                if perf_counter() - begin >= seconds:
                    break
                model = built(peer, settings).fit(X[train], y[train])
                of_folds.append(average_precision_score(y[held], model.score(X[held])))
            if len(of_folds) < n_folds:
                break
            areas.append(float(np.mean(of_folds)))
    best = candidates[int(np.argmax(areas))] if areas else {}
    return Search(best, max(len(areas), 1), perf_counter() - begin)


def built(peer: str, settings: Mapping[str, Any]) -> Any:
    """A peer with some settings in the place of those that it has as a default."""
    build = DEFAULTS[peer].build
    usual = build.keywords.get("settings", {}) if isinstance(build, partial) else {}
    return build(settings={**usual, **settings})


def measure(cell: Cell, *, folder: Path, out: Path, commit: str) -> dict[str, Any]:
    """Average precision, seconds and commit; of a tuned peer the search too."""
    about = described(METHODS[cell.method]) | {"commit": commit}
    peer, comma, how = cell.method.partition(",")
    if not comma:
        if cell.method == OURS:
            warm_up()
        return tested(METHODS[cell.method].build(), cell, folder=folder) | about
    ours, default = (
        measured(
            replace(cell, method=method),
            partial(measure, folder=folder, out=out, commit=commit),
            out=out,
        )
        for method in (OURS, peer)
    )
    found, seconds = Search({}, 1, 0.0), TUNED[comma + how] * ours["fit_seconds"]
    if default["fit_seconds"] < seconds:
        X, y = rows_of(folder / f"{cell.data}.npz")
        division = divide(y, share=cell.share, seed=cell.seed)
        labels = division.is_labelled.astype(int)
        found = search(peer, X[division.train], labels, seconds=seconds)
    result = default
    if found.chosen:  # else it would be the same model
        result = tested(built(peer, found.chosen), cell, folder=folder)
    return {
        **{name: value for name, value in result.items() if name not in vars(cell)},
        **about,
        "fit_seconds": found.seconds + result["fit_seconds"],
        "search_seconds": found.seconds,
        "n_candidates": found.n_candidates,
        "chosen": dict(found.chosen),
    }


def main() -> None:
    begin = monotonic()
    parser = parser_of(__doc__.splitlines()[0], methods=METHODS, benchmark="oddbench")
    parser.set_defaults(
        only=[name for name in METHODS if not name.endswith("10x")], shares=(0, *SHARES)
    )
    add_processes(parser)
    args = parsed(parser)
    possible = [cell for cell in cells_of(args) if cell.share or cell.method in NEED_NO_LABELS]
    # The slow ones after all divisions of the others.
    cells = sorted(possible, key=lambda cell: cell.method.startswith((*SLOW, "TabPFN")))
    if not args.kept:
        warm_up()  # where nothing is compiled yet, once and not in all processes
    how = partial(measure, folder=args.data, out=args.out, commit=args.commit)
    results = measured_in_processes(cells, how, methods=METHODS, args=args, begin=begin)
    if not results:
        print(f"Nothing to show: no tables NAME.npz in {args.data}, or nothing measured yet.")
        return
    shown = {"markdown": args.markdown, "by_table": args.by_table}
    print(standings_by_share(results, **shown, reference=OURS))


if __name__ == "__main__":
    main()
