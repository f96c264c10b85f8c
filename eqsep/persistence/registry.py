"""Which classes a model file may hold, and what they were made of in older formats.

Nothing that is not in `CODECS` is ever built. The names in it are those of the files: a class that
moves or gets another name keeps its own there, and its codec says where it is found now.

A change to what a class is made of raises the version of the format by one, so that an older eqsep
says of a new file that it is newer, and adds to `CHANGES` how parts of the older format are read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqsep.engine.kernels import PAIRWISE
from eqsep.persistence.codecs import (
    CLASSES,
    FLAG,
    LABEL,
    NUMBER,
    WHOLE,
    Codec,
    EstimatorCodec,
    RecordCodec,
    Schema,
    array,
    counted,
    either,
    entries,
    instance,
    word,
)
from eqsep.persistence.container import VERSION, damaged
from eqsep.persistence.detectors import (
    ANSWERING_PIECES,
    DETECTOR_PIECES,
    DETECTORS,
    POWERS,
    LaplacianCodec,
)
from eqsep.persistence.foreign import LAYERS, SVCCodec, n_inputs
from eqsep.renames import RENAMES, Renamed

_GAMMA = either(word("median"), NUMBER)
_HEADS = tuple(
    f"activations.{head}"
    for head in ("GaussianBump", "TanhBump", "Ridge", "Sigmoid", "RadialBasis")
)
_KERNELS = tuple(f"kernels.{k}" for k in ("RBF", "Exponential", "Laplacian", "PairwiseKernel"))
_LENGTHS = array("d", finite=False)
_SCALES = Schema(
    f"{_LENGTHS.description} of numbers above 0",  # infinite for a column that never varied
    lambda value, sizes: _LENGTHS.accepts(value, sizes) and bool((value > 0).all()),
)
_DEVICE = word("auto", "cpu", "cuda")
_FRAME = instance("planes.Frame", length=lambda frame: len(frame.centre), axis="d")
_COLUMNS = instance("columns.Columns", length=lambda c: len(c.frame.centre), axis="d")
_NETWORK = instance("network.Network", length=n_inputs, axis="d")
_HISTORY = instance("plan.History")


def _columns_learnt(estimator: Any) -> int:
    return getattr(estimator, "n_features_in_", 0)


def _fitted(axis: str, *names: str) -> Schema:
    """A fitted estimator of as many columns as the axis is long."""
    return instance(*names, length=_columns_learnt, axis=axis)


_PIECES: dict[str, Codec] = {
    "activations.GaussianBump": RecordCodec("eqsep.activations", {"sigma": NUMBER, "mu": NUMBER}),
    "activations.TanhBump": RecordCodec("eqsep.activations", {"sigma": NUMBER}),
    "activations.Ridge": RecordCodec("eqsep.activations", {}),
    "activations.Sigmoid": RecordCodec("eqsep.activations", {}),
    "activations.RadialBasis": RecordCodec("eqsep.activations", {"gamma": NUMBER}),
    "activations.LeakyReLU": RecordCodec("eqsep.activations", {"leak": NUMBER}),
    "losses.SquaredLoss": RecordCodec("eqsep.losses", {}),
    "losses.LogisticLoss": RecordCodec("eqsep.losses", {}),
    "kernels.RBF": RecordCodec("eqsep.engine.kernels", {"gamma": _GAMMA}),
    "kernels.Exponential": RecordCodec("eqsep.engine.kernels", {"gamma": _GAMMA}),
    "kernels.Laplacian": LaplacianCodec(
        "eqsep.engine.kernels", {"gamma": _GAMMA, "powers": POWERS}
    ),
    "kernels.PairwiseKernel": RecordCodec(
        "eqsep.engine.kernels",
        {
            "metric": word(*PAIRWISE),
            "params": entries(NUMBER, among=("gamma", "degree", "coef0")),
        },
    ),
    "solvers.BFGS": RecordCodec("eqsep.solvers", {"max_iter": WHOLE, "tol": NUMBER}),
    "solvers.LBFGS": RecordCodec(
        "eqsep.solvers", {"max_iter": WHOLE, "tol": NUMBER, "memory": WHOLE}
    ),
    "labels.Labels": RecordCodec(
        "eqsep.labels",
        {"classes": CLASSES, "kinds": array(None, kinds="biufU"), "by_name": FLAG},
    ),
    "separators.Frame": RecordCodec(
        "eqsep.separators.planes", {"centre": array("d"), "scale": _SCALES}
    ),
    "separators.Columns": RecordCodec(
        "eqsep.separators.columns", {"frame": instance("planes.Frame")}, needs_torch=True
    ),
    "networks.Training": RecordCodec(
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
    "networks.History": RecordCodec(
        "eqsep.networks.plan",
        {
            "loss": array("epochs", "k", finite=False),
            "validation_loss": array("epochs", "k", finite=False),
            "sigma": array("epochs", None, "k", finite=False),
            "best_epoch": array("k", kinds="i"),
        },
        needs_torch=True,
    ),
    "sklearn.SVC": SVCCodec("sklearn.svm"),
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

ESTIMATORS: dict[str, Codec] = {
    "separators.EqualitySeparator": EstimatorCodec(
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
    "separators.KernelEqualitySeparator": EstimatorCodec(
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
    "separators.TwinSeparator": EstimatorCodec(
        "eqsep.separators.twin",
        ({**_DOOR, "t": NUMBER, "coef_": array(2, "d"), "intercept_": array(2)},),
        _NAMES,
    ),
    "separators.OneVsSet": EstimatorCodec(
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
    "separators.NetworkSeparator": EstimatorCodec(
        "eqsep.separators.network",
        (
            {
                **_DOOR,
                "score_by": word("membership", "distance"),
                "device": _DEVICE,
                "columns_": _COLUMNS,
                "network_": _NETWORK,
                "history_": _HISTORY,
                "head_": instance(*_HEADS),
            },
        ),
        _NAMES,
        unkept=("progress",),
        needs_torch=True,
    ),
    "separators.DeepSAD": EstimatorCodec(
        "eqsep.separators.deep_sad",
        (
            {
                **_DOOR,
                "device": _DEVICE,
                "columns_": _COLUMNS,
                "network_": _NETWORK,
                "centre_": array("k", "code"),
                "threshold_": NUMBER,
                "history_": _HISTORY,
                "pretraining_history_": _HISTORY,
            },
        ),
        _NAMES,
        unkept=("progress",),
        needs_torch=True,
    ),
    "separators.NegativeSampling": EstimatorCodec(
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

CODECS: dict[str, Codec] = {**_PIECES, **LAYERS, **ESTIMATORS}
ANSWERING = CODECS | ANSWERING_PIECES  # for who asks a detector and teaches it nothing


def name_of(value: Any) -> str | None:
    """What a file calls the class of `value`; None for a class that is not known.

    Examples
    --------
    >>> from eqsep.activations import GaussianBump
    >>> name_of(GaussianBump()), name_of(object())
    ('activations.GaussianBump', None)
    """
    return next((name for name, codec in CODECS.items() if codec.is_of(value, name)), None)


@dataclass(frozen=True)
class Change:
    """How the parts of a class in one format become those of the next.

    Attributes
    ----------
    renames : mapping
        By the old name, what a part is called in the next format.
    defaults : mapping
        Parts that the older format lacks, where they are not the defaults of the class.
    dropped : collection of str
        Parts that the next format no longer has.
    inside : str or None
        The part, a dict, in which all this is found.
    """

    renames: Mapping[str, Renamed] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    dropped: Collection[str] = ()
    inside: str | None = None

    def __call__(self, parts: dict[str, Any]) -> dict[str, Any]:
        if self.inside is None:
            return self._changed(parts)
        if type(parts.get(self.inside)) is not dict:
            damaged(f"its {self.inside} are no dict")
        return parts | {self.inside: self._changed(parts[self.inside])}

    def _changed(self, parts: dict[str, Any]) -> dict[str, Any]:
        gone = {*self.renames, *self.dropped}
        kept = {name: part for name, part in parts.items() if name not in gone}
        named = {self.renames[name].to: name for name in parts if name in self.renames}
        if set(named) & set(kept):
            damaged("a part of it has its old name and its new one")
        try:
            changed = {new: self.renames[old].convert(parts[old]) for new, old in named.items()}
        except (ArithmeticError, TypeError, ValueError):
            damaged("a part of an older format has a value that it cannot have")
        return {**self.defaults, **kept, **changed}


def _renamed(**names: str) -> dict[str, Renamed]:
    return {old: Renamed(new, removed_in="0.2") for old, new in names.items()}


CHANGES: dict[int, dict[str, Change]] = {
    1: {
        "detector.Detector": Change(RENAMES["Detector"] | _renamed(answers_="labels_")),
        "detector.FeatureMap": Change(
            _renamed(hashed="holdout_columns", key="holdout_key", cut="holdout_bound")
        ),
        "separators.DeepSAD": Change(dropped=["progress"]),
        "separators.NetworkSeparator": Change(dropped=["progress"]),
        "separators.OneVsSet": Change(RENAMES["OneVsSet"]),
        "tables.TableEncoder": Change(RENAMES["TableEncoder"], inside="parameters"),
    },
    2: {
        "detector.FeatureMap": Change(
            defaults={
                "anomaly_bound": np.uint64(0),
                "held_kinds": [],
                "doubted": False,
                "likeness_weight": 0.0,
                "ellipsoid": None,
                "trees": None,
                "vote_weight": 0.0,
                "grouping": None,
            },
        ),
        "separators.Statistics": Change(defaults={"anomalous": None, "leaves": None}),
    },
}


def upgraded(parts: dict[str, Any], name: str, *, version: int) -> dict[str, Any]:
    """The parts, in the present format, of an object of the class `name` in an older one.

    Examples
    --------
    >>> upgraded({"score": "binary"}, "separators.OneVsSet", version=1)
    {'ranking': 'binary'}
    """
    for older in range(version, VERSION):
        if name in CHANGES[older]:
            parts = CHANGES[older][name](parts)
    return parts
