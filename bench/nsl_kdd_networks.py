"""The paper's networks on NSL-KDD, beside the published figures: five starts each.

    python bench/nsl_kdd_networks.py                    all rows: five seconds an epoch or more
    python bench/nsl_kdd_networks.py --only HS --epochs 3
    python bench/nsl_kdd_networks.py --batch-size 512   no longer the published protocol, but quick

Training sees normal rows and denial of service. All as published: standardised columns, one hidden
layer of 60 with batch normalisation, sigma 0.5, Adam with a rate of 0.0003, batches of 32, at most
500 epochs, patience 10 on the last tenth of the rows after one shuffle. SAD: an encoder to 90 and
then 60 columns, trained as one half of an autoencoder first. The five starts train as one network
with five members, so they share the shuffle; "together" is the mean of their scores.

The data is looked for in --data, then $EQSEP_DATA, then ../shared/data. It needs no more than
eqsep's own dependencies and torch, and prints plainly, to be run where little else is installed.
"""

import argparse
import os
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from cells import add_options, measured, published
from sklearn.preprocessing import StandardScaler

import eqsep
from eqsep.datasets import Split, load_nsl_kdd
from eqsep.evaluation import average_precision_by_kind, trapezoid_by_kind
from eqsep.networks import Training
from eqsep.networks.fitting import resolve_device
from eqsep.separators.network import NarrowLayerWarning


@dataclass(frozen=True)
class Network:
    """One hidden layer of 60, as published."""

    head: str
    activation: str
    loss: str

    def fit(self, X: np.ndarray, y: np.ndarray, *, training: Training, **shared: Any) -> Any:
        return eqsep.NetworkSeparator(
            hidden=(60,), closed=False, training=training, **asdict(self), **shared
        ).fit(X, y)

    def scores(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        return fitted.member_scores(X)


@dataclass(frozen=True)
class SAD:
    """An autoencoder d-90-60-90-d, whose encoder is trained on: both by the same plan."""

    activation: str

    def fit(self, X: np.ndarray, y: np.ndarray, *, training: Training, **shared: Any) -> Any:
        return eqsep.DeepSAD(
            hidden=(90,),
            code=60,
            pretraining=training,
            training=training,
            **asdict(self),
            **shared,
        ).fit(X, y)

    def scores(self, fitted: Any, X: np.ndarray) -> np.ndarray:
        return fitted.distances(X)


METHODS: dict[str, Network | SAD] = {
    "HS": Network("halfspace", "leaky_relu", "logistic"),
    "ES (MSE)": Network("equality", "bump", "squared"),
    "ES (LL)": Network("equality", "bump", "logistic"),
    "HS-SAD": SAD("leaky_relu"),
    "ES-SAD": SAD("bump"),
}
METRICS = {"trapezoid": trapezoid_by_kind, "average precision": average_precision_by_kind}
KINDS = ("dos", "probe", "privilege", "access", "overall")


@dataclass(frozen=True)
class Cell:
    """A separator by a protocol; `seed` draws the shuffle and the starts."""

    table: str
    separator: str
    protocol: str
    epochs: int
    batch_size: int
    members: int
    seed: int


@dataclass(frozen=True)
class Place:
    """Where the data is and where networks train: it has no bearing on what is measured."""

    data_home: Path
    device: str

    def measure(self, cell: Cell) -> dict[str, Any]:
        """Every metric of each member and of all together, by kind; epochs and seconds."""
        split, method = data(self.data_home, cell.protocol, cell.seed), METHODS[cell.separator]
        begin = perf_counter()
        with warnings.catch_warnings():
            # 60 units on 122 inputs cannot close a region; they are the published ones.
            warnings.simplefilter("ignore", NarrowLayerWarning)
            model = method.fit(
                split.X_train,
                split.y_train,
                training=training(cell),
                sigma=0.5,
                batch_norm=True,
                standardize=False,
                n_members=cell.members,
                device=self.device,
                random_state=cell.seed,
            )
        seconds = perf_counter() - begin
        scores, together = method.scores(model, split.X_test), model.decision_function(split.X_test)
        areas = {
            name: {
                "members": [by_kind(score, split.kind_test) for score in scores.T],
                "together": by_kind(together, split.kind_test),
            }
            for name, by_kind in METRICS.items()
        }
        epochs = (model.history_.best_epoch + 1).tolist()
        device = resolve_device(self.device).type
        return areas | {"best_epochs": epochs, "device": device, "seconds": seconds}


@cache
def data(data_home: Path, protocol: str, seed: int) -> Split:
    """NSL-KDD with its training rows shuffled once and all columns standardised by them.

    The scaling is scikit-learn's, which leaves a column that is constant in training as it is; the
    networks' own takes it out, so a service that was never trained on would go unnoticed.
    """
    split = load_nsl_kdd(data_home=data_home, protocol=protocol)
    order = np.random.default_rng(seed).permutation(len(split.X_train))
    scaling = StandardScaler().fit(split.X_train)
    return Split(
        X_train=scaling.transform(split.X_train[order]),
        kind_train=split.kind_train[order],
        X_test=scaling.transform(split.X_test),
        kind_test=split.kind_test,
        feature_names=split.feature_names,
    )


def training(cell: Cell) -> Training:
    """How a cell is trained."""
    return Training(
        epochs=cell.epochs,
        batch_size=cell.batch_size,
        learning_rate=3e-4,
        patience=10,
        validation_fraction=0.1,
        stratify=False,
    )


def lines(result: dict[str, Any]) -> list[str]:
    """The published row and, for each metric, the members and all together."""

    def line(label: str, pairs: list[tuple[float, float | None]]) -> str:
        cells = (f"{m:.3f}" + ("" if s is None else f"±{s:.3f}") for m, s in pairs)
        return f"{label:30}" + "".join(f"{cell:>13}" for cell in cells)

    row = published(result["table"], result["separator"])
    block = [line(f"{result['separator']}, published", [row[kind] for kind in KINDS])]
    for name in METRICS:
        areas = result[name]
        by_kind = {kind: [member[kind] for member in areas["members"]] for kind in KINDS}
        spread = [(float(np.mean(by_kind[kind])), float(np.std(by_kind[kind]))) for kind in KINDS]
        block.append(line(f"  {name}, members", spread))
        block.append(
            line(f"  {name}, together", [(areas["together"][kind], None) for kind in KINDS])
        )
    trained = f"best epochs {result['best_epochs']}, {result['seconds']:.0f} s ({result['device']})"
    return [*block, f"  {trained}"]


def options() -> argparse.Namespace:
    """What the command is told."""
    near = Path(__file__).parents[2] / "shared" / "data"
    home = Path(os.environ.get("EQSEP_DATA", near))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--protocol", choices=["paper", "corrected"], default="paper")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--data", type=Path, default=home, help="the folder of nsl-kdd")
    add_options(parser)
    return parser.parse_args()


def main() -> None:
    told = options()
    place = Place(told.data, told.device)
    print(
        f"NSL-KDD by the {told.protocol} protocol, {told.members} members, batches of "
        f"{told.batch_size}, at most {told.epochs} epochs.\nArea under the precision-recall curve "
        f"of each kind of attack against all normal test rows; published: the trapezoid."
    )
    print(f"{'':30}" + "".join(f"{kind:>13}" for kind in KINDS))
    for name in told.only:
        cell = Cell(
            "nsl_kdd", name, told.protocol, told.epochs, told.batch_size, told.members, told.seed
        )
        result = measured(cell, place.measure, out=told.out, again=told.again)
        print("\n".join(lines(result)), flush=True)


if __name__ == "__main__":
    main()
