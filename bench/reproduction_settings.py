"""Settings that the paper does not name, and how far each is from the published row.

    python bench/reproduction_settings.py                          all, on 20,000 rows of NSL-KDD
    python bench/reproduction_settings.py LOF-A LOF-N --rows 0     these two, on all rows

Trapezoidal areas by the paper's protocol. "Apart" is the largest difference of a column from the
published one. The settings of `eqsep reproduce` are marked with a star. Thyroid has few rows and is
taken whole. The data is looked for in $EQSEP_DATA, then in ../shared/data.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from cells import measured
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import SVC, OneClassSVM
from tasks import DATA_HOME

from eqsep import OneVsSet
from eqsep.datasets import Split
from eqsep.evaluation import anomaly_score, trapezoid_by_kind
from eqsep.experiments.cell import Cell as Experiment
from eqsep.experiments.methods import CACHE, Unlabelled
from eqsep.experiments.networks import (
    deep_sad,
    member_distances,
    member_scores,
    narrow_layers_allowed,
    training,
)
from eqsep.experiments.published import published_tables
from eqsep.experiments.scaled import first_rows
from eqsep.experiments.tables import nsl_kdd, thyroid
from eqsep.experiments.tables.nsl_kdd_networks import NETWORKS, RATIO, separator
from eqsep.experiments.tables.thyroid import Layout
from eqsep.separators.negative_sampling import NegativeSampling

Scores = Callable[[Split], np.ndarray]  # -> (repetitions, n)
SEEDS = 3
PRECISIONS = {"single precision": "paper", "double precision": "corrected"}


@dataclass(frozen=True)
class Cell:
    """One setting of a row of a published table; of NSL-KDD, on so many training rows (0: all)."""

    table: str
    row: str
    setting: str
    n_rows: int


def by(make: Callable[[], Any]) -> Scores:
    """The scores of an estimator without chance."""
    return lambda split: anomaly_score(make().fit(split.X_train, split.y_train), split.X_test)[None]


def machine(kernel: str, C: float) -> SVC:
    return SVC(kernel=kernel, C=C, cache_size=CACHE)


def one_vs_set(*, balanced: bool) -> OneVsSet:
    return OneVsSet(kernel="rbf", C=100.0, balanced=balanced, tol=1e-3, ranking="equality")


def lof(rows: str, n_neighbors: int) -> Unlabelled:
    return Unlabelled(LocalOutlierFactor(n_neighbors, novelty=True), rows=rows)


def one_class(rows: str, nu: float) -> Unlabelled:
    return Unlabelled(OneClassSVM(nu=nu, cache_size=CACHE), rows=rows)


def nsl_kdd_rbf(split: Split, *, precision: str) -> np.ndarray:
    """RBF networks on NSL-KDD."""
    cell = Experiment("nsl_kdd", "NSL-KDD", "RS", seeds=SEEDS)
    with narrow_layers_allowed():
        model = separator(cell, NETWORKS["RS"]).fit(split.X_train, split.y_train)
    return member_scores(model, split.X_test, protocol=PRECISIONS[precision]).T


def nsl_kdd_sampled(split: Split, *, stratify: bool) -> np.ndarray:
    """ES-NS on NSL-KDD, stopped on held-out rows of both classes by their shares, or as drawn."""
    network = separator(
        Experiment("nsl_kdd", "NSL-KDD", "ES-NS", seeds=SEEDS), NETWORKS["ES-NS"], stratify=stratify
    )
    with narrow_layers_allowed():
        sampling = NegativeSampling(network, ratio=RATIO, random_state=0)
        model = sampling.fit(split.X_train, split.y_train).estimator_
    return member_scores(model, split.X_test, protocol="paper").T


def nsl_kdd_sad(split: Split, **told: Any) -> np.ndarray:
    """Deep SAD on NSL-KDD, as it was told."""
    plan = training(epochs=500, learning_rate=3e-4)
    model = deep_sad(n_members=SEEDS, pretraining=plan, training=plan, random_state=0, **told)
    model.fit(split.X_train, split.y_train)
    return member_distances(model, split.X_test, protocol="paper").T


def thyroid_network(
    split: Split, *, layout: Layout, precision: str = "single precision"
) -> np.ndarray:
    """Networks of a layout on thyroid."""
    model = thyroid.fitted(Experiment("thyroid", "thyroid", "", seeds=SEEDS), layout, split)
    return member_scores(model, split.X_test, protocol=PRECISIONS[precision]).T


# By table and row: the settings, each with what makes the scores. Those with a star are taken.
TRIED: dict[tuple[str, str], dict[str, Scores]] = {
    ("nsl_kdd_full", "SVM-RBF"): {
        f"C = {C:g}{'*' * (C == 100)}": by(partial(machine, "rbf", C)) for C in (1, 10, 100)
    },
    ("nsl_kdd_full", "SVM-Lin"): {
        f"C = {C:g}{'*' * (C == 10)}": by(partial(machine, "linear", C)) for C in (0.1, 1, 10)
    },
    ("nsl_kdd_full", "OVS-RBF-ES (ours)"): {
        "classes balanced": by(partial(one_vs_set, balanced=True)),
        "every row counts the same*": by(partial(one_vs_set, balanced=False)),
    },
    **{
        ("nsl_kdd_full", f"LOF-{letter}"): {
            f"{k} neighbours{'*' * (k == 5)}": by(partial(lof, rows, k)) for k in (5, 10, 20, 50)
        }
        for letter, rows in {"A": "all", "N": "normal"}.items()
    },
    **{
        ("nsl_kdd_full", f"OCSVM-{letter}"): {
            "nu = 0.5*": by(partial(one_class, rows, 0.5)),
            "nu = 0.4055, the share of attacks": by(partial(one_class, rows, 0.4055)),
            "nu = 0.15": by(partial(one_class, rows, 0.15)),
        }
        for letter, rows in {"A": "all", "N": "normal"}.items()
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
    ("thyroid_full", "Logistic Regression"): {
        "converged, C = 1": by(partial(LogisticRegression, max_iter=10_000)),
        "converged, C = 1,000": by(partial(LogisticRegression, C=1e3, max_iter=10_000)),
        "converged, classes balanced": by(
            partial(LogisticRegression, class_weight="balanced", max_iter=10_000)
        ),
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
KINDS = {
    "nsl_kdd_full": {k: k.lower() for k in ("DoS", "Probe", "Privilege", "Access", "Overall")},
    "thyroid_full": {
        "Hyperfunction (Seen)": "hyperfunction",
        "Subnormal (Unseen)": "subnormal",
        "Overall": "overall",
    },
}


def published(table: str, row: str) -> dict[str, float]:
    """The published means by kind; thyroid's table has the methods in its columns."""
    rows = published_tables()[table].rows
    figures = rows[row] if row in rows else {kind: columns[row] for kind, columns in rows.items()}
    return {KINDS[table][name]: figure.mean for name, figure in figures.items()}


def measure(cell: Cell) -> dict[str, Any]:
    """The mean areas by kind over the repetitions, and their standard deviations."""
    split = {"nsl_kdd_full": nsl_kdd, "thyroid_full": thyroid}[cell.table].data("paper")
    split = first_rows(split, cell.n_rows) if cell.n_rows else split
    scores = TRIED[cell.table, cell.row][cell.setting](split)
    areas = [trapezoid_by_kind(score, split.kind_test) for score in scores]
    means = {k: float(np.mean([a[k] for a in areas])) for k in KINDS[cell.table].values()}
    spread = {k: float(np.std([a[k] for a in areas])) for k in means}
    return {"areas": means, "spread": spread, "training rows": len(split.X_train)}


def _spread(std: float) -> str:
    return f"±{std:.3f}" if std else ""


def line(*words: Any) -> str:
    return "| " + " | ".join(map(str, words)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="published rows; else all")
    parser.add_argument("--rows", type=int, default=20_000, help="of NSL-KDD; 0: all")
    told = parser.parse_args()
    known = {row for _, row in TRIED}
    if set(told.names) - known:
        parser.error(f"expected some of {', '.join(sorted(known))}, got {', '.join(told.names)}")
    os.environ.setdefault("EQSEP_DATA", str(DATA_HOME))
    for table, kinds in KINDS.items():
        wanted = [at for at in TRIED if at[0] == table and at[1] in (told.names or known)]
        if not wanted:
            continue
        print(line("row", "setting", "rows", *kinds, "apart"))
        print(line(*["---"] * (len(kinds) + 4)))
        for at in wanted:
            means = published(*at)
            row = at[1].removesuffix(" (ours)")
            print(line(row, "published", "", *(f"{v:.3f}" for v in means.values()), ""))
            for setting in TRIED[at]:
                result = measured(
                    Cell(*at, setting, told.rows * (table == "nsl_kdd_full")), measure
                )
                areas = result["areas"]
                apart = max(abs(areas[kind] - mean) for kind, mean in means.items())
                n_rows = f"{result['training rows']:,}"
                values = (f"{areas[kind]:.3f}{_spread(result['spread'][kind])}" for kind in means)
                print(line(row, setting, n_rows, *values, f"{apart:.3f}"), flush=True)
        print()


if __name__ == "__main__":
    main()
