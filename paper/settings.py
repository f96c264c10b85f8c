"""Settings that the paper does not name, and how far each is from the published row.

    python -m paper.settings                          all, on 20,000 rows of NSL-KDD
    python -m paper.settings LOF-A LOF-N --rows 0     these two, on all rows

Trapezoidal areas by the paper's protocol. "Apart" is the largest difference of a column from the
published one. The settings of `python -m paper` are marked with a star. Thyroid has few rows and is
taken whole. Results are kept as those of `python -m paper` are, and real data is looked for where
EQSEP_DATA says.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eqsep import OneVsSet
from eqsep.datasets import Split
from eqsep.evaluation import anomaly_score
from eqsep.evaluation.peers import PEERS
from eqsep.separators.negative_sampling import NegativeSampling
from paper.cells import OUT, Cell, Measured, Result, Skipped, read_result, write_result
from paper.data import first_rows
from paper.measures import by_seed, trapezoid_by_kind
from paper.methods import CACHE, Unlabelled
from paper.networks import (
    deep_sad,
    member_distances,
    member_scores,
    narrow_layers_allowed,
    training,
)
from paper.published import Ours, published_tables
from paper.tables import nsl_kdd, thyroid
from paper.tables.nsl_kdd_networks import NETWORKS, RATIO, separator
from paper.tables.thyroid import Layout

Scores = Callable[[Split], np.ndarray]  # -> (repetitions, n)
SEEDS = 3
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


def machine(kernel: str, C: float) -> Any:
    return PEERS["SVC"].build(kernel=kernel, C=C, cache_size=CACHE)


def one_vs_set(*, balanced: bool) -> OneVsSet:
    return OneVsSet(kernel="rbf", C=100.0, balanced=balanced, tol=1e-3, ranking="equality")


def converged(**settings: Any) -> Any:
    return PEERS["logistic regression"].build(max_iter=10_000, **settings)


def lof(rows: str, n_neighbors: int) -> Unlabelled:
    return Unlabelled(PEERS["LOF"].build(n_neighbors=n_neighbors), rows=rows)


def one_class(rows: str, nu: float) -> Unlabelled:
    return Unlabelled(PEERS["one-class SVM"].build(nu=nu, cache_size=CACHE), rows=rows)


def nsl_kdd_rbf(split: Split, *, precision: str) -> np.ndarray:
    """RBF networks on NSL-KDD."""
    cell = Cell("nsl_kdd", "NSL-KDD", "RS", seeds=SEEDS)
    with narrow_layers_allowed():
        model = separator(cell, NETWORKS["RS"]).fit(split.X_train, split.y_train)
    return member_scores(model, split.X_test, protocol=PRECISIONS[precision]).T


def nsl_kdd_sampled(split: Split, *, stratify: bool) -> np.ndarray:
    """ES-NS on NSL-KDD, stopped on held-out rows of both classes by their shares, or as drawn."""
    network = separator(
        Cell("nsl_kdd", "NSL-KDD", "ES-NS", seeds=SEEDS), NETWORKS["ES-NS"], stratify=stratify
    )
    with narrow_layers_allowed():
        sampling = NegativeSampling(network, ratio=RATIO, random_state=0)
        model = sampling.fit(split.X_train, split.y_train).estimator_
    return member_scores(model, split.X_test, protocol="paper").T


def nsl_kdd_sad(split: Split, **settings: Any) -> np.ndarray:
    """Deep SAD on NSL-KDD, with these settings."""
    plan = training(epochs=500, learning_rate=3e-4)
    model = deep_sad(n_members=SEEDS, pretraining=plan, training=plan, random_state=0, **settings)
    model.fit(split.X_train, split.y_train)
    return member_distances(model, split.X_test, protocol="paper").T


def thyroid_network(
    split: Split, *, layout: Layout, precision: str = "single precision"
) -> np.ndarray:
    """Networks of a layout on thyroid."""
    model = thyroid.fitted(Cell("thyroid", "thyroid", "", seeds=SEEDS), layout, split)
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
    return {
        KINDS[table][name]: figure.mean
        for name, figure in figures.items()
        if figure is not None and figure.mean is not None
    }


def measure(tried: Tried) -> Measured:
    """The areas by kind, one for each repetition."""
    split = {"nsl_kdd_full": nsl_kdd, "thyroid_full": thyroid}[tried.table].data("paper")
    split = first_rows(split, tried.n_rows) if tried.n_rows else split
    scores = TRIED[tried.table, tried.row][tried.setting](split)
    areas = by_seed(trapezoid_by_kind(score, split.kind_test) for score in scores)
    return areas, {"training rows": len(split.X_train)}


def result_of(tried: Tried, out: Path) -> Result:
    """What was measured of a setting, now or before."""
    kept = read_result(tried.cell, out)
    if kept is None:
        values, more = measure(tried)
        write_result(tried.cell, out, {"values": values, "more": more})
        return result_of(tried, out)
    return kept


def line(*words: Any) -> str:
    return "| " + " | ".join(map(str, words)) + " |"


def lines_of(table: str, row: str, *, n_rows: int, out: Path) -> Iterator[str]:
    """The published figures, then those of each setting as soon as it is measured."""
    means, name = published(table, row), row.removesuffix(" (ours)")
    yield line(name, "published", "", *(f"{mean:.3f}" for mean in means.values()), "")
    for setting in TRIED[table, row]:
        result = result_of(Tried(table, row, setting, n_rows), out)
        ours = {kind: Ours.of(result["values"][kind]) for kind in means}
        apart = max(abs(ours[kind].mean - mean) for kind, mean in means.items())
        rows = f"{result['more']['training rows']:,}"
        figures = (str(one) if one.std else f"{one.mean:.3f}" for one in ours.values())
        yield line(name, setting, rows, *figures, f"{apart:.3f}")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m paper.settings",
        description="Settings that the paper does not name: how far each is from its figures.",
    )
    parser.add_argument("names", nargs="*", help="published rows; else all")
    parser.add_argument("--rows", type=int, default=20_000, help="of NSL-KDD; 0: all")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of results")
    options = parser.parse_args(words)
    known = {row for _, row in TRIED}
    if set(options.names) - known:
        parser.error(f"expected some of {', '.join(sorted(known))}, got {', '.join(options.names)}")
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
