"""Which classes a model file may hold: nothing that is not in this table is ever built."""

import sys
from typing import Any

from sklearn.metrics.pairwise import kernel_metrics

from eqsep.persistence.detectors import DETECTOR_PIECES, DETECTORS
from eqsep.persistence.encoders import EncoderKind
from eqsep.persistence.expected import (
    CLASSES,
    FLAG,
    LABEL,
    NUMBER,
    WHOLE,
    Expected,
    array,
    counted,
    either,
    entries,
    instance,
    word,
)
from eqsep.persistence.known import Estimator, Known, Record
from eqsep.persistence.layers import LAYERS, n_inputs
from eqsep.persistence.machine import Machine

_GAMMA = either(word("median"), NUMBER)
_HEADS = tuple(
    f"activations.{head}"
    for head in ("GaussianBump", "TanhBump", "Ridge", "Sigmoid", "RadialBasis")
)
_KERNELS = tuple(f"kernels.{k}" for k in ("RBF", "Exponential", "Laplacian", "PairwiseKernel"))
_FRAME = instance("planes.Frame", length=lambda frame: len(frame.centre), axis="d")
_COLUMNS = instance("columns.Columns", length=lambda c: len(c.frame.centre), axis="d")
_NETWORK = instance("network.Network", length=n_inputs, axis="d")
_HISTORY = instance("plan.History")


def _columns_learnt(estimator: Any) -> int:
    return getattr(estimator, "n_features_in_", 0)


def _fitted(axis: str, *names: str) -> Expected:
    """A fitted estimator of as many columns as the axis is long."""
    return instance(*names, length=_columns_learnt, axis=axis)


_PIECES: dict[str, Known] = {
    "activations.GaussianBump": Record("eqsep.activations", {"sigma": NUMBER, "mu": NUMBER}),
    "activations.TanhBump": Record("eqsep.activations", {"sigma": NUMBER}),
    "activations.Ridge": Record("eqsep.activations", {}),
    "activations.Sigmoid": Record("eqsep.activations", {}),
    "activations.RadialBasis": Record("eqsep.activations", {"gamma": NUMBER}),
    "activations.LeakyReLU": Record("eqsep.activations", {"leak": NUMBER}),
    "losses.SquaredLoss": Record("eqsep.losses", {}),
    "losses.LogisticLoss": Record("eqsep.losses", {}),
    "kernels.RBF": Record("eqsep.engine.kernels", {"gamma": _GAMMA}),
    "kernels.Exponential": Record("eqsep.engine.kernels", {"gamma": _GAMMA}),
    "kernels.Laplacian": Record("eqsep.engine.kernels", {"gamma": _GAMMA}),
    "kernels.PairwiseKernel": Record(
        "eqsep.engine.kernels",
        {
            "metric": word(*sorted(kernel_metrics())),
            "params": entries(NUMBER, among=("gamma", "degree", "coef0")),
        },
    ),
    "solvers.BFGS": Record("eqsep.solvers", {"max_iter": WHOLE, "tol": NUMBER}),
    "solvers.LBFGS": Record("eqsep.solvers", {"max_iter": WHOLE, "tol": NUMBER, "memory": WHOLE}),
    "labels.Labels": Record(
        "eqsep.labels",
        {"classes": CLASSES, "kinds": array(None, kinds="biufU"), "by_name": FLAG},
    ),
    "separators.Frame": Record(
        "eqsep.separators.planes", {"centre": array("d"), "scale": array("d")}
    ),
    "separators.Columns": Record(
        "eqsep.separators.columns", {"frame": instance("planes.Frame")}, needs_torch=True
    ),
    "networks.Training": Record(
        "eqsep.networks.plan",
        {
            "epochs": WHOLE,
            "batch_size": either(word(None), WHOLE),
            **dict.fromkeys(("learning_rate", "decay", "l2", "validation_fraction"), NUMBER),
            "decay_steps": WHOLE,
            "patience": WHOLE,
            "stratify": FLAG,
            "balanced": FLAG,
        },
        needs_torch=True,
    ),
    "networks.History": Record(
        "eqsep.networks.plan",
        {
            "loss": array("epochs", "k"),
            "validation_loss": array("epochs", "k"),
            "sigma": array("epochs", None, "k"),
            "best_epoch": array("k", kinds="i"),
        },
        needs_torch=True,
    ),
    "sklearn.SVC": Machine("sklearn.svm"),
    "tables.TableEncoder": EncoderKind("eqsep.tables.encoder"),
    **DETECTOR_PIECES,
}

_DOOR = {"n_features_in_": counted("d"), "classes_": CLASSES}
_NAMES = {"feature_names_in_": array("d", kinds="O")}
_KERNEL = {
    **_DOOR,
    "chunk_size": WHOLE,
    "kernel_": instance(*_KERNELS),
    "landmarks_": array("m", "d"),
    "labels_": instance("labels.Labels"),
}
_SUMS = {
    "closed": word(True),
    "coef_": array("m"),
    "gram_": array("m", "m"),
    "moment_": array("m"),
    "weight_sum_": array(2),
}

_ESTIMATORS: dict[str, Known] = {
    "separators.EqualitySeparator": Estimator(
        "eqsep.separators.linear",
        (
            {
                **_DOOR,
                "coef_": array("d"),
                **dict.fromkeys(("intercept_", "epsilon_", "loss_"), NUMBER),
                "margin_class_": LABEL,
                "head_": instance(*_HEADS),
                "n_iter_": WHOLE,
            },
        ),
        _NAMES,
    ),
    "separators.KernelEqualitySeparator": Estimator(
        "eqsep.separators.kernel",
        (
            {**_KERNEL, **_SUMS},
            {
                **_KERNEL,
                "closed": word(False),
                "separator_": _fitted("m", "linear.EqualitySeparator"),
            },
        ),
        _NAMES,
    ),
    "separators.TwinSeparator": Estimator(
        "eqsep.separators.twin",
        ({**_DOOR, "t": NUMBER, "coef_": array(2, "d"), "intercept_": array(2)},),
        _NAMES,
    ),
    "separators.OneVsSet": Estimator(
        "eqsep.separators.one_vs_set",
        (
            {
                **_DOOR,
                "ranking": word("equality", "binary"),
                "frame_": _FRAME,
                "svm_": _fitted("d", "SVC"),
                **dict.fromkeys(("near_", "far_", "midplane_"), NUMBER),
            },
        ),
        _NAMES,
    ),
    "separators.NetworkSeparator": Estimator(
        "eqsep.separators.network",
        (
            {
                **_DOOR,
                "score_by": word("membership", "distance"),
                "columns_": _COLUMNS,
                "network_": _NETWORK,
                "history_": _HISTORY,
                "head_": instance(*_HEADS),
            },
        ),
        _NAMES,
        needs_torch=True,
    ),
    "separators.DeepSAD": Estimator(
        "eqsep.separators.deep_sad",
        (
            {
                **_DOOR,
                "columns_": _COLUMNS,
                "network_": _NETWORK,
                "centre_": array("k", "code"),
                "threshold_": NUMBER,
                "history_": _HISTORY,
                "pretraining_history_": _HISTORY,
            },
        ),
        _NAMES,
        needs_torch=True,
    ),
    "separators.NegativeSampling": Estimator(
        "eqsep.separators.negative_sampling",
        (
            {
                **_DOOR,
                "low_": array("d"),
                "high_": array("d"),
                "estimator_": _fitted(
                    "d",
                    *("linear.EqualitySeparator", "kernel.KernelEqualitySeparator"),
                    *("twin.TwinSeparator", "one_vs_set.OneVsSet", "network.NetworkSeparator"),
                    *(
                        "deep_sad.DeepSAD",
                        "negative_sampling.NegativeSampling",
                        "detector.Detector",
                    ),
                    "SVC",
                ),
            },
        ),
        _NAMES,
    ),
    **DETECTORS,
}

KNOWN: dict[str, Known] = {**_PIECES, **LAYERS, **_ESTIMATORS}


def name_of(value: Any) -> str | None:
    """What a file calls the class of `value`; None for a class that is not known.

    Examples
    --------
    >>> from eqsep.activations import GaussianBump
    >>> name_of(GaussianBump()), name_of(object())
    ('activations.GaussianBump', None)
    """
    cls = type(value)
    for name, known in KNOWN.items():
        module = sys.modules.get(known.home)
        if getattr(module, name.split(".")[-1], None) is cls:
            return name
    return None


def is_separator(value: Any) -> bool:
    """Whether `value` is a separator or detector, which a model file may hold."""
    return name_of(value) in _ESTIMATORS
