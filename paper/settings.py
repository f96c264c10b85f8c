"""Settings that the paper names or does not, and how far each is from the published row.

    python -m paper.settings                          all, on 20,000 rows of NSL-KDD
    python -m paper.settings LOF-A LOF-N --rows 0     these two, on all rows
    python -m paper.settings --cross-validate         the logistic loss of the SVMs by C; of all
                                                      rows with --rows 0 --processes 8 (hours)

Trapezoidal areas by the paper's protocol. "Apart" is the largest difference of a column from the
published one. The settings of `python -m paper` are marked with a star. Thyroid has few rows and is
taken whole; the circles are drawn again for each of 20 repetitions, the Gaussians for each of 60.
Results are kept as those of `python -m paper` are. EQSEP_DATA is the folder of real data.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from eqsep.datasets import TrainTestSplit, make_gaussians
from eqsep.evaluation import anomaly_score
from eqsep.evaluation.peers import PEERS
from eqsep.separators.negative_sampling import NegativeSampling
from paper.cells import OUT, Cell, Measured, Result, Skipped, Study, measured_before
from paper.data import first_rows
from paper.dependencies import is_stale
from paper.measures import areas_of_normal, by_seed, key, trapezoid_by_kind
from paper.methods import (
    ATTACKS,
    CROSS_VALIDATED,
    NU,
    Unlabelled,
    equality,
    local_outliers,
    machine,
    one_class_svm,
    one_vs_set,
)
from paper.networks import (
    deep_sad,
    member_distances,
    member_scores,
    narrow_layers_allowed,
    training,
)
from paper.published import Ours, published_tables
from paper.runner import keep_result, measured
from paper.tables import gaussians, nsl_kdd, thyroid
from paper.tables.circles import DRAWS, circles
from paper.tables.nsl_kdd_networks import NETWORKS, RATIO, separator
from paper.tables.thyroid import Layout

Scores = Callable[..., np.ndarray]  # of a split, the Gaussians of a seed too -> (repetitions, n)
SEEDS = 3
FOLDS = 10
CLOUDS = 60  # draws of the Gaussians
PRECISIONS = {"single precision": "paper", "double precision": "corrected"}


class Tried(NamedTuple):
    """One setting of a row of a published table; of NSL-KDD, on so many training rows (0: all)."""

    table: str
    row: str
    setting: str
    n_rows: int

    @property
    def cell(self) -> Cell:
        """Where its result is kept."""
        dataset = f"{self.table}, {self.n_rows or 'all'} rows"
        return Cell("settings", dataset, f"{self.row}, {self.setting}", seeds=SEEDS)


def by(make: Callable[[], Any]) -> Scores:
    """The scores of an estimator without chance."""
    return lambda split: anomaly_score(make().fit(split.X_train, split.y_train), split.X_test)[None]


def converged(**settings: Any) -> Any:
    return PEERS["logistic regression"].build(max_iter=10_000, **settings)


def circle_svm(*, nu: float) -> Any:
    """The one-class SVM of the circles."""
    return Unlabelled(PEERS["one-class SVM"].build(nu=nu))


def nsl_kdd_rbf(split: TrainTestSplit, *, precision: str) -> np.ndarray:
    """RBF networks on NSL-KDD."""
    cell = Cell("nsl_kdd", "NSL-KDD", "RS", seeds=SEEDS)
    with narrow_layers_allowed():
        model = separator(cell, NETWORKS["RS"]).fit(split.X_train, split.y_train)
    return member_scores(model, split.X_test, protocol=PRECISIONS[precision]).T


def nsl_kdd_sampled(split: TrainTestSplit, *, stratify: bool) -> np.ndarray:
    """ES-NS on NSL-KDD, stopped on held-out rows of both classes by their shares, or as drawn."""
    network = separator(
        Cell("nsl_kdd", "NSL-KDD", "ES-NS", seeds=SEEDS), NETWORKS["ES-NS"], stratify=stratify
    )
    with narrow_layers_allowed():
        sampling = NegativeSampling(network, ratio=RATIO, random_state=0)
        model = sampling.fit(split.X_train, split.y_train).estimator_
    return member_scores(model, split.X_test, protocol="paper").T


def nsl_kdd_sad(split: TrainTestSplit, **settings: Any) -> np.ndarray:
    """Deep SAD on NSL-KDD, with these settings."""
    plan = training(epochs=500, learning_rate=3e-4)
    model = deep_sad(n_members=SEEDS, pretraining=plan, training=plan, random_state=0, **settings)
    model.fit(split.X_train, split.y_train)
    return member_distances(model, split.X_test, protocol="paper").T


def thyroid_network(
    split: TrainTestSplit, *, layout: Layout, precision: str = "single precision"
) -> np.ndarray:
    """Networks of a layout on thyroid."""
    model = thyroid.fitted(Cell("thyroid", "thyroid", "", seeds=SEEDS), layout, split)
    return member_scores(model, split.X_test, protocol=PRECISIONS[precision]).T


def from_starts(split: TrainTestSplit, *, seed: int, sigma: str, **search: Any) -> np.ndarray:
    """The equality separator of the Gaussians by the logistic loss, from other starts."""
    model = equality("LL", sigma=float(sigma), protocol="paper")(seed).set_params(**search)
    return anomaly_score(model.fit(split.X_train, split.y_train), split.X_test)[None]


_NUS = {
    0.5: ", the library's",
    ATTACKS: ", the share of attacks",
    0.15: "",
    NU: ", as printed for the circles",
}
_by_equality = partial(one_vs_set, "rbf", ranking="equality")
# By table and row: the settings, each with what makes the scores. Those with a star are taken.
TRIED: dict[tuple[str, str], dict[str, Scores]] = {
    ("nsl_kdd_full", "SVM-RBF"): {
        f"C = {C:g}{'*' * (CROSS_VALIDATED['rbf'] == C)}": by(partial(machine, "rbf", C))
        for C in (1, 10, 100)
    },
    ("nsl_kdd_full", "SVM-Lin"): {
        f"C = {C:g}{'*' * (CROSS_VALIDATED['linear'] == C)}": by(partial(machine, "linear", C))
        for C in (0.1, 1, 10)
    },
    ("nsl_kdd_full", "OVS-RBF-ES (ours)"): {
        "classes balanced": by(partial(_by_equality, balanced=True)),
        "every row counts the same*": by(_by_equality),
    },
    **{
        ("nsl_kdd_full", f"LOF-{letter}"): {
            f"{k} neighbours{'*' * (k == 5)}": by(partial(local_outliers, rows, n_neighbors=k))
            for k in (5, 10, 20, 50)
        }
        for letter, rows in {"A": "all", "N": "normal"}.items()
    },
    **{
        ("nsl_kdd_full", f"OCSVM-{letter}"): {
            f"nu = {nu:g}{words}{'*' * (nu == taken)}": by(partial(one_class_svm, rows, nu=nu))
            for nu, words in _NUS.items()
        }
        for letter, rows, taken in (("A", "all", ATTACKS), ("N", "normal", NU))
    },
    ("toy_shallow", "OCSVM"): {
        "nu = 0.0001, as printed*": by(partial(circle_svm, nu=NU)),
        "nu = 0.25, the share of anomalies": by(partial(circle_svm, nu=0.25)),
    },
    ("nsl_kdd_full", "RS"): {
        f"{words}{'*' * (name == 'paper')}": partial(nsl_kdd_rbf, precision=words)
        for words, name in PRECISIONS.items()
    },
    ("nsl_kdd_full", "ES-NS (ours)"): {
        "stopped on both classes by their shares*": partial(nsl_kdd_sampled, stratify=True),
        "stopped on the last tenth of the rows": partial(nsl_kdd_sampled, stratify=False),
    },
    **{
        ("nsl_kdd_full", row): {
            "a linear code*": partial(nsl_kdd_sad, activation=activation),
            "the code activated": partial(nsl_kdd_sad, activation=activation, linear_code=False),
        }
        for row, activation in {"HS-SAD": "leaky_relu", "ES-SAD (ours)": "bump"}.items()
    },
    ("nsl_kdd_full", "RS-SAD"): {
        "a linear code*": partial(nsl_kdd_sad, activation="rbf"),
        "the code activated": partial(nsl_kdd_sad, activation="rbf", linear_code=False),
        "no batch normalisation": partial(nsl_kdd_sad, activation="rbf", batch_norm=False),
    },
    **{
        ("gaussians_sigma_ll", f"ES (sigma={sigma})"): {
            "one start*": partial(from_starts, sigma=sigma),
            **{
                f"the best of {n} by training loss": partial(from_starts, sigma=sigma, n_init=n)
                for n in (2, 3, 5)
            },
        }
        for sigma in gaussians.SIGMAS
    },
    ("thyroid_full", "Logistic Regression"): {
        "converged, C = 1": by(converged),
        "converged, C = 1,000": by(partial(converged, C=1e3)),
        "converged, classes balanced": by(partial(converged, class_weight="balanced")),
        "one neuron, rate 0.01": partial(thyroid_network, layout=Layout("HS", (), 0.01)),
        "one neuron, rate 0.001*": partial(thyroid_network, layout=Layout("HS", (), 0.001)),
    },
    ("thyroid_full", "RS"): {
        f"{words}{'*' * (name == 'paper')}": partial(
            thyroid_network, layout=Layout("RS"), precision=words
        )
        for words, name in PRECISIONS.items()
    },
}
MULTIPLIERS = ("1.0", "2.0", "4.0", "7.0", "12.0", "20.0")  # that are shown; all count
KINDS = {
    "nsl_kdd_full": {k: k.lower() for k in ("DoS", "Probe", "Privilege", "Access", "Overall")},
    "thyroid_full": {
        "Hyperfunction (Seen)": "hyperfunction",
        "Subnormal (Unseen)": "subnormal",
        "Overall": "overall",
    },
    "toy_shallow": {"AUPR": "normal"},
    "gaussians_sigma_ll": {k: k for k in (*MULTIPLIERS, "mean of 39")},
}
KERNELS = {"SVM-RBF": "rbf", "SVM-Lin": "linear"}
PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0)  # C, unless others are given


def published(table: str, row: str) -> dict[str, float]:
    """The published means by kind; thyroid's table has the methods in its columns."""
    rows = published_tables()[table].rows
    figures = rows[row] if row in rows else {kind: columns[row] for kind, columns in rows.items()}
    means = {n: figure.mean for n, figure in figures.items() if figure and figure.mean is not None}
    if table == "gaussians_sigma_ll":
        means["mean of 39"] = fmean(means.values())
    return {kind: means[name] for name, kind in KINDS[table].items() if name in means}


def measure(tried: Tried) -> Measured:
    """The areas by kind, one for each repetition."""
    if tried.table in _DRAWN:
        return _DRAWN[tried.table](TRIED[tried.table, tried.row][tried.setting])
    split = {"nsl_kdd_full": nsl_kdd, "thyroid_full": thyroid}[tried.table].data("paper")
    split = first_rows(split, tried.n_rows) if tried.n_rows else split
    scores = TRIED[tried.table, tried.row][tried.setting](split)
    areas = by_seed(trapezoid_by_kind(score, split.kind_test) for score in scores)
    return areas, {"training rows": len(split.X_train)}


def _over_draws(scores: Scores) -> Measured:
    """The area of the normal class on each of several draws of the circles."""
    splits = [circles("paper", draw=1 + i) for i in range(DRAWS)]
    areas = [areas_of_normal(scores(split)[0], split.y_test) for split in splits]
    return {"normal": [area[key("paper", "normal")] for area in areas]}, {"training rows": 100}


def _over_clouds(scores: Scores) -> Measured:
    """The same on each of several draws of the Gaussians, by noise multiplier."""
    areas = {
        k: [
            areas_of_normal(scores(split, seed=i)[0], split.y_test)[key("paper", "normal")]
            for i, split in enumerate(
                make_gaussians(noise_multiplier=float(k), protocol="paper", random_state=1000 + i)
                for i in range(CLOUDS)
            )
        ]
        for k in gaussians.MULTIPLIERS
    }
    by_draw = [fmean(draw) for draw in zip(*areas.values(), strict=True)]
    return areas | {"mean of 39": by_draw}, {"training rows": 100}


_DRAWN = {"toy_shallow": _over_draws, "gaussians_sigma_ll": _over_clouds}


class Fold(NamedTuple):
    """An SVM with one of the folds held out: what one process measures."""

    name: str
    C: float
    fold: int
    n_rows: int

    @property
    def cell(self) -> Cell:
        """Where its result is kept."""
        dataset = f"cross-validation, {self.n_rows or 'all'} rows"
        return Cell("settings", dataset, f"{self.name}, C={self.C:g}, fold {self.fold + 1}")

    def measure(self) -> Measured:
        """The logistic loss of the SVM's distances on the held-out rows, by a sigmoid of them.

        The sigmoid is fitted to one half of the held-out rows for the other: one machine a fold,
        where `probability=True` would fit five more.
        """
        split = nsl_kdd.data("paper")
        split = first_rows(split, self.n_rows) if self.n_rows else split
        X, y = split.X_train, split.y_train
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        rest, held = list(folds.split(X, y))[self.fold]
        model = machine(KERNELS[self.name], self.C).fit(X[rest], y[rest])
        distances = model.decision_function(X[held])[:, None]
        sigmoid = PEERS["logistic regression"].build(C=np.inf)
        halves = StratifiedKFold(2, shuffle=True, random_state=0)
        loss = -cross_val_score(sigmoid, distances, y[held], cv=halves, scoring="neg_log_loss")
        return {"logistic loss": [float(loss.mean())]}, {"training rows": len(X)}


def _fold_loss(fold: Fold, *, out: Path) -> tuple[float, int]:
    """The loss of a fold, measured now or before, and the number of all rows."""
    result = result_of(fold.cell, fold.measure, out)
    return result["values"]["logistic loss"][0], result["more"]["training rows"]


def result_of(cell: Cell, measure: Callable[[], Measured], out: Path) -> Result:
    """What was measured of a setting, now or before by the same code."""
    kept = measured_before(cell, out)
    if kept is not None and not is_stale(kept.get("made", {})):
        return kept
    study = Study("settings", lambda cell: measure())  # noqa: ARG005
    result = measured(study, cell, kept=out / "kept")
    keep_result(cell, out, result)
    if "skipped" in result:
        raise Skipped(result["skipped"])
    if "failed" in result:
        raise RuntimeError(result["failed"])
    return result


def line(*words: Any) -> str:
    return "| " + " | ".join(map(str, words)) + " |"


def lines_of(table: str, row: str, *, n_rows: int, out: Path) -> Iterator[str]:
    """The published figures, then those of each setting as soon as it is measured."""
    means, name = published(table, row), row.removesuffix(" (ours)")
    yield line(name, "published", "", *(f"{mean:.3f}" for mean in means.values()), "")
    for setting in TRIED[table, row]:
        tried = Tried(table, row, setting, n_rows)
        result = result_of(tried.cell, partial(measure, tried), out)
        ours = {kind: Ours.of(result["values"][kind]) for kind in means}
        apart = max(abs(ours[kind].mean - mean) for kind, mean in means.items())
        rows = f"{result['more']['training rows']:,}"
        figures = (str(one) if one.std else f"{one.mean:.3f}" for one in ours.values())
        yield line(name, setting, rows, *figures, f"{apart:.3f}")


def loss_lines(
    names: Sequence[str],
    penalties: Sequence[float],
    *,
    n_rows: int,
    n_folds: int,
    out: Path,
    processes: int = 1,
) -> Iterator[str]:
    """The logistic loss of each machine by C, over the folds; the least is marked."""
    folds = [Fold(n, C, k, n_rows) for k in range(n_folds) for n in names for C in penalties]
    loss_of = partial(_fold_loss, out=out)
    if processes == 1:
        found = dict(zip(folds, map(loss_of, folds), strict=True))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            found = dict(zip(folds, pool.map(loss_of, folds), strict=True))
    for name in names:
        by_penalty = {C: [found[f] for f in folds if f[:2] == (name, C)] for C in penalties}
        losses = {C: fmean(loss for loss, _ in by_penalty[C]) for C in penalties}
        best = min(losses, key=lambda C: losses[C])
        for C, loss in losses.items():
            rows, mark = by_penalty[C][0][1], "least" if best == C else ""
            yield line(name, f"C = {C:g}", f"{rows:,}", n_folds, f"{loss:.4f}", mark)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper.settings",
        description="Settings that the paper does not name: how far each is from its figures.",
    )
    parser.add_argument("names", nargs="*", help="published rows; else all")
    parser.add_argument("--rows", type=int, default=20_000, help="of NSL-KDD; 0: all")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of results")
    parser.add_argument("--cross-validate", action="store_true", help="the SVMs by C, instead")
    parser.add_argument("--penalties", type=float, nargs="+", help="C, likewise; else 0.1 to 1000")
    parser.add_argument("--folds", type=int, default=FOLDS, help=f"of the {FOLDS}, likewise")
    parser.add_argument("--processes", type=int, default=1, help="for --cross-validate")
    options = parser.parse_args(words)
    known = set(KERNELS) if options.cross_validate else {row for _, row in TRIED}
    if set(options.names) - known:
        parser.error(f"expected some of {', '.join(sorted(known))}, got {', '.join(options.names)}")
    if options.cross_validate:
        print(line("row", "setting", "rows", "folds", "logistic loss", ""))
        print(line(*["---"] * 6))
        lines = loss_lines(
            options.names or list(KERNELS),
            options.penalties or PENALTIES,
            n_rows=options.rows,
            n_folds=options.folds,
            out=options.out,
            processes=options.processes,
        )
        for text in lines:
            print(text, flush=True)
        return
    for table, kinds in KINDS.items():
        wanted = [row for t, row in TRIED if t == table and row in (options.names or known)]
        if wanted:
            print(line("row", "setting", "rows", *kinds, "apart"))
            print(line(*["---"] * (len(kinds) + 4)))
        for row in wanted:
            n_rows = options.rows * (table == "nsl_kdd_full")
            try:
                for text in lines_of(table, row, n_rows=n_rows, out=options.out):
                    print(text, flush=True)
            except Skipped as reason:
                parser.exit(2, f"{reason}\n")
        if wanted:
            print()


if __name__ == "__main__":
    main()
