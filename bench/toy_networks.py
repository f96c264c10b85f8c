"""The paper's networks on three circles, beside the published figures: 28 cells, 20 starts each.

    python bench/toy_networks.py             all cells, some minutes; a second run only prints
    python bench/toy_networks.py --seed 1    on another data set, from other starts

Normal rows lie on the unit circle, training anomalies outside it, test anomalies inside it. All as
published: the data, no scaling, two or three hidden layers of five, sigma 0.5, Adam with a rate of
0.001, batches of 32, at most 1,000 epochs, patience 10 on the last tenth of the rows, and as the
figure the trapezoidal area under the precision-recall curve with the *normal* class as positive:
a score that knows nothing gets 0.75. The 20 starts train as one network with 20 members;
"together" is the area of their mean membership, and seconds are those of the processor.
"""

import argparse
import warnings
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np
from cells import add_options, measured, published
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from eqsep import NetworkSeparator
from eqsep.datasets import make_circles
from eqsep.evaluation import trapezoid_area
from eqsep.networks import Training
from eqsep.separators.network import NarrowLayerWarning

TRAINING = Training(
    epochs=1000,
    batch_size=32,
    learning_rate=1e-3,
    patience=10,
    validation_fraction=0.1,
    stratify=False,
)
SEPARATORS = {
    "HS": {"head": "halfspace", "loss": "logistic"},
    "RS": {"head": "rbf", "loss": "logistic"},
    "ES (LL)": {"head": "equality", "loss": "logistic"},
    "ES (MSE)": {"head": "equality", "loss": "squared"},
    "ES-s (LL)": {"head": "equality", "loss": "logistic", "learn_sigma": True},
    "ES-s (MSE)": {"head": "equality", "loss": "squared", "learn_sigma": True},
}
ACTIVATIONS = {"Leaky ReLU": "leaky_relu", "Bump": "bump", "RBF": "rbf"}


@dataclass(frozen=True)
class Cell:
    """A separator over an activation; `seed` draws the data and the starts."""

    table: str
    separator: str
    activation: str
    layers: int
    members: int = 20
    seed: int = 0


def cells(seed: int) -> list[Cell]:
    """Every cell that has a published figure."""
    return [
        Cell(f"toy_networks_{layers}layers", separator, activation, layers, seed=seed)
        for layers in (2, 3)
        for separator in SEPARATORS
        for activation in published(f"toy_networks_{layers}layers", separator)
    ]


def measure(cell: Cell) -> dict:
    """The area of every member and of their mean membership, and seconds."""
    split = make_circles(protocol="paper", random_state=cell.seed)
    network = NetworkSeparator(
        **SEPARATORS[cell.separator],
        activation=ACTIVATIONS[cell.activation],
        hidden=(5,) * cell.layers,
        sigma=0.5,
        batch_norm=False,
        closed=False,
        standardize=False,
        n_members=cell.members,
        training=TRAINING,
        device="cpu",
        random_state=cell.seed,
    )

    def area(score: np.ndarray) -> float:
        return trapezoid_area(-score, is_anomaly=split.y_test == 0)  # the normal class as positive

    begin, begin_of_processor = perf_counter(), process_time()
    with warnings.catch_warnings():
        # Layers of five on five inputs are the published ones, whatever they can close.
        warnings.simplefilter("ignore", NarrowLayerWarning)
        network.fit(split.X_train, split.y_train)
    return {
        "members_area": [area(score) for score in network.member_scores(split.X_test).T],
        "together_area": area(network.decision_function(split.X_test)),
        "epochs": (network.history_.best_epoch + 1).tolist(),
        "seconds": perf_counter() - begin,
        "processor_seconds": process_time() - begin_of_processor,
    }


def table_of(results: list[dict]) -> Table:
    """Published and measured, side by side."""
    table = Table(
        title="Three circles: area under the precision-recall curve, normal as positive",
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    for name in ("layers", "separator", "activation"):
        table.add_column(name, no_wrap=True)
    for name in ("published", "20 members", "apart", "together", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for result in results:
        mean, std = published(result["table"], result["separator"])[result["activation"]]
        areas = np.array(result["members_area"])
        table.add_row(
            str(result["layers"]),
            result["separator"],
            result["activation"],
            f"{mean:.2f}±{std:.2f}",
            f"{areas.mean():.3f}±{areas.std():.3f}",
            f"{areas.mean() - mean:+.3f}",
            f"{result['together_area']:.3f}",
            f"{result['processor_seconds']:.1f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the data and the starts (0)")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time (2)")
    add_options(parser)
    options = parser.parse_args()
    begin = perf_counter()
    results = Parallel(n_jobs=options.jobs)(
        delayed(measured)(cell, measure, out=options.out, again=options.again)
        for cell in cells(options.seed)
    )
    console = Console()
    console.print(table_of(results))
    of_processor = sum(result["processor_seconds"] for result in results)
    console.print(
        f"{len(results)} cells: {of_processor:.0f} seconds of the processor when they were "
        f"measured; this run took {perf_counter() - begin:.0f} seconds. Results: {options.out}"
    )


if __name__ == "__main__":
    main()
