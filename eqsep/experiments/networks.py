"""The paper's networks on its data, each with the paper's settings."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eqsep.experiments.cell import Skipped

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


def training(**told: Any) -> Any:
    """The paper's plan: batches of 32, patience 10 on the last tenth of the rows as they come."""
    plan = {"batch_size": 32, "patience": 10, "validation_fraction": 0.1, "stratify": False}
    return pieces()["Training"](**plan | told)


def network(**told: Any) -> Any:
    """A `NetworkSeparator` as in the paper: the last bias is learnt, columns come scaled."""
    return pieces()["NetworkSeparator"](**{"closed": False, "standardize": False} | told)


def deep_sad(**told: Any) -> Any:
    """A `DeepSAD` as in the paper: d-90-60-90-d with batch normalisation."""
    plan = {"hidden": (90,), "code": 60, "sigma": 0.5, "batch_norm": True, "standardize": False}
    return pieces()["DeepSAD"](**plan | told)


@contextmanager
def narrow_layers_allowed() -> Iterator[None]:
    """No word of layers too narrow to close a region: they are the published ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pieces()["NarrowLayerWarning"])
        yield


def pieces() -> dict[str, Any]:
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
