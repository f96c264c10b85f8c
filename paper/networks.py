"""The paper's networks on its data, each with the paper's settings."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from paper.cells import Skipped

HEADS = {"HS": "halfspace", "ES": "equality", "RS": "rbf"}
# Global, semi-local, local: the real tables' networks use one kind throughout.
ACTIVATIONS = {"HS": "leaky_relu", "ES": "bump", "RS": "rbf"}
CIRCLE_ACTIVATIONS = {"Leaky ReLU": "leaky_relu", "Bump": "bump", "RBF": "rbf"}
CIRCLE_SEPARATORS: dict[str, dict[str, Any]] = {
    "HS": {"head": "halfspace", "loss": "logistic"},
    "RS": {"head": "rbf", "loss": "logistic"},
    "ES (LL)": {"head": "equality", "loss": "logistic"},
    "ES (MSE)": {"head": "equality", "loss": "squared"},
    "ES-s (LL)": {"head": "equality", "loss": "logistic", "learn_sigma": True},
    "ES-s (MSE)": {"head": "equality", "loss": "squared", "learn_sigma": True},
}


def training(**settings: Any) -> Any:
    """The paper's plan: batches of 32, patience 10 on the last tenth of the rows as they come."""
    plan = {"batch_size": 32, "patience": 10, "validation_fraction": 0.1, "stratify": False}
    return torch_classes()["Training"](**plan | settings)


def network(**settings: Any) -> Any:
    """A `NetworkSeparator` as in the paper: the last bias is learnt, columns come scaled."""
    return torch_classes()["NetworkSeparator"](**{"closed": False, "standardize": False} | settings)


def deep_sad(**settings: Any) -> Any:
    """A `DeepSAD` as in the paper: d-90-60-90-d with batch normalisation, the code linear."""
    layers = {"hidden": (90,), "code": 60, "linear_code": True, "sigma": 0.5, "batch_norm": True}
    return torch_classes()["DeepSAD"](**layers | {"standardize": False} | settings)


def member_scores(model: Any, X: np.ndarray, *, protocol: str) -> np.ndarray:
    """The score of each member on its own, larger for the more anomalous.  -> (n, k)

    By the paper's protocol networks are evaluated in single precision, as they were published. It
    has a bearing where outputs differ by less than that resolves: most rows lie so far from all
    centres of a layer of RBFs that they leave it silent, and are then tied.
    """
    if protocol == "corrected":
        return model.member_scores(X)
    return -model.head_.membership(_in_single_precision(model, X))


def member_distances(model: Any, X: np.ndarray, *, protocol: str) -> np.ndarray:
    """How far each member of a `DeepSAD` puts each row from its centre, likewise.  -> (n, k)"""
    return model.distances(X) if protocol == "corrected" else _in_single_precision(model, X)


def _in_single_precision(model: Any, X: np.ndarray) -> np.ndarray:
    """What the networks say of the rows, computed in single precision.  -> (n, k)"""
    from eqsep.networks.trainer import outputs

    return outputs(deepcopy(model.network_).float(), model.columns_.tensor(X))[..., 0]


@contextmanager
def narrow_layers_allowed() -> Iterator[None]:
    """No word of layers too narrow to close a region: they are the published ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch_classes()["NarrowLayerWarning"])
        yield


def torch_classes() -> dict[str, Any]:
    """What needs torch, imported when it is asked for."""
    try:
        from eqsep.networks import Training
        from eqsep.separators.deep_sad import DeepSAD
        from eqsep.separators.network import NarrowLayerWarning, NetworkSeparator
    except ImportError as error:
        raise Skipped(str(error)) from error
    return {
        "Training": Training,
        "DeepSAD": DeepSAD,
        "NetworkSeparator": NetworkSeparator,
        "NarrowLayerWarning": NarrowLayerWarning,
    }
