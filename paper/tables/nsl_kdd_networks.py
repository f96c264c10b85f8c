"""The networks of the NSL-KDD tables: plain, with negative sampling, and deep SAD."""

from typing import Any, NamedTuple

import numpy as np

from eqsep.datasets import TrainTestSplit
from eqsep.separators.negative_sampling import NegativeSampling
from paper.cells import Cell, Measured
from paper.measures import areas_by_kind, by_seed
from paper.networks import (
    ACTIVATIONS,
    HEADS,
    deep_sad,
    member_distances,
    member_scores,
    narrow_layers_allowed,
    network,
    training,
)

SIGMA = 0.5
EPOCHS, QUICK_EPOCHS = 500, 10
RATIO, QUICK_RATIO = 10.0, 2.0  # drawn anomalies for each normal row
L2 = {"paper": 0.0, "corrected": 0.1}


class Kind(NamedTuple):
    """Which separator, which loss, how it is trained, and from how many starts."""

    separator: str
    loss: str
    scheme: str
    seeds: int


NETWORKS = {
    **{name: Kind(name, "logistic", "plain", 5) for name in HEADS},
    **{f"{name}, MSE": Kind(name, "squared", "plain", 5) for name in HEADS},
    **{
        f"{name}-NS": Kind(name, "squared" if name == "ES" else "logistic", "sampled", 3)
        for name in HEADS
    },
    **{f"{name}-SAD": Kind(name, "", "sad", 3) for name in HEADS},
}


def measure_networks(cell: Cell, split: TrainTestSplit) -> Measured:
    """Both areas by kind of every member, and what the training did."""
    kind = NETWORKS[cell.method]
    with narrow_layers_allowed():
        model, scores = _SCHEMES[kind.scheme](cell, kind, split)
    values = by_seed(areas_by_kind(score, split.kind_test) for score in scores.T)
    together = areas_by_kind(model.decision_function(split.X_test), split.kind_test)
    epochs = (model.history_.best_epoch + 1).tolist()
    more: dict[str, Any] = {"together": together, "best epochs": epochs}
    if kind.separator == "RS":
        more["silent"] = _silent_share(model, split.X_test)
    return values, more


def _plan(cell: Cell, **settings: Any) -> Any:
    return training(epochs=QUICK_EPOCHS if cell.quick else EPOCHS, learning_rate=3e-4, **settings)


def separator(cell: Cell, kind: Kind, **plan: Any) -> Any:
    """One hidden layer of 60 with batch normalisation."""
    return network(
        head=HEADS[kind.separator],
        activation=ACTIVATIONS[kind.separator],
        loss=kind.loss,
        hidden=(60,),
        sigma=SIGMA,
        batch_norm=True,
        n_members=cell.seeds,
        training=_plan(cell, **plan),
        random_state=0,
    )


def _plain(cell: Cell, kind: Kind, split: TrainTestSplit) -> tuple[Any, np.ndarray]:
    model = separator(cell, kind).fit(split.X_train, split.y_train)
    return model, member_scores(model, split.X_test, protocol=cell.protocol)


def _sampled(cell: Cell, kind: Kind, split: TrainTestSplit) -> tuple[Any, np.ndarray]:
    """Against anomalies drawn around the rows. They come last: rows are held out at random."""
    ratio = QUICK_RATIO if cell.quick else RATIO
    network = separator(cell, kind, stratify=True)
    sampling = NegativeSampling(network, ratio=ratio, random_state=0)
    model = sampling.fit(split.X_train, split.y_train).estimator_
    return model, member_scores(model, split.X_test, protocol=cell.protocol)


def _sad(cell: Cell, kind: Kind, split: TrainTestSplit) -> tuple[Any, np.ndarray]:
    model = deep_sad(
        activation=ACTIVATIONS[kind.separator],
        n_members=cell.seeds,
        pretraining=_plan(cell),
        training=_plan(cell, l2=L2[cell.protocol]),
        random_state=0,
    ).fit(split.X_train, split.y_train)
    return model, member_distances(model, split.X_test, protocol=cell.protocol)


_SCHEMES = {"plain": _plain, "sampled": _sampled, "sad": _sad}


def _silent_share(model: Any, X: np.ndarray) -> float:
    """The share of rows that leave all units of the first layer of RBFs at 1e-6 or below."""
    import torch

    with torch.no_grad():
        layer = model.network_.hidden[0][0]
        chunks = torch.as_tensor(X, dtype=torch.float64).split(4096)
        loudest = torch.cat([layer(rows[:, None, :]).amax(dim=-1) for rows in chunks])
    return float((loudest <= 1e-6).double().mean())
