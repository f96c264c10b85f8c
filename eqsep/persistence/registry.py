"""Which classes a model file may hold, and what each is made of.

Nothing that is not in `CODECS` is ever built. The names in it are those of the files: a class that
moves keeps its own there, and its codec says where it is found now. A part
that an older file lacks has the default of its field; any other change to what a class is made of
raises the version of the format, and `migrations` has how older parts are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eqsep.detector.calibration import Promise
from eqsep.detector.model import Model
from eqsep.engine.kernels import PAIRWISE
from eqsep.persistence.codecs import Codec, EstimatorCodec, RecordCodec, StateCodec
from eqsep.persistence.foreign import LAYERS, SVCCodec, n_inputs
from eqsep.schemas import (
    CLASSES,
    FLAG,
    LABEL,
    NONE,
    NUMBER,
    POSITIVE,
    RATE,
    WHOLE,
    Schema,
    array_of,
    check_parts,
    counted,
    damaged,
    either,
    entries,
    instance,
    kept,
    word,
)

_GAMMA = either(word("median"), NUMBER)
_HEADS = tuple(
    f"activations.{head}"
    for head in ("GaussianBump", "TanhBump", "Ridge", "Sigmoid", "RadialBasis")
)
_KERNELS = tuple(f"kernels.{k}" for k in ("RBF", "Exponential", "Laplacian", "PairwiseKernel"))
_LENGTHS = array_of("d", finite=False)
_SCALES = Schema(
    f"{_LENGTHS.description} of numbers above 0",  # infinite for a column that never varied
    lambda value, sizes: _LENGTHS.accepts(value, sizes) and bool((value > 0).all()),
)
_DEVICE = word("auto", "cpu", "cuda")
_FRAME = instance("planes.Frame", length=lambda frame: len(frame.centre), axis="d")
_COLUMNS = instance("network.Columns", length=lambda c: len(c.frame.centre), axis="d")
_NETWORK = instance("layers.Network", length=n_inputs, axis="d")
_HISTORY = instance("training.History")


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
    "kernels.Laplacian": StateCodec("eqsep.engine.kernels"),
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
        {"classes": CLASSES, "kinds": array_of(None, kinds="biufU"), "by_name": FLAG},
    ),
    "separators.Frame": RecordCodec(
        "eqsep.separators.planes", {"centre": array_of("d"), "scale": _SCALES}
    ),
    "separators.Columns": RecordCodec(
        "eqsep.separators.network", {"frame": instance("planes.Frame")}, needs_torch=True
    ),
    "networks.Training": RecordCodec(
        "eqsep.networks.training",
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
        "eqsep.networks.training",
        {
            "loss": array_of("epochs", "k", finite=False),
            "validation_loss": array_of("epochs", "k", finite=False),
            "sigma": array_of("epochs", None, "k", finite=False),
            "best_epoch": array_of("k", kinds="i"),
        },
        needs_torch=True,
    ),
    "sklearn.SVC": SVCCodec("sklearn.svm"),
    "checks.Finding": StateCodec("eqsep.checks"),
    "detector.Calibration": StateCodec("eqsep.detector.calibration"),
    "detector.Config": StateCodec("eqsep.detector.config"),
    "detector.Grouping": StateCodec("eqsep.detector.holdout"),
    "detector.HeldOutRows": StateCodec("eqsep.detector.evidence"),
    "detector.LabelReading": StateCodec("eqsep.detector.plan"),
    "detector.Model": StateCodec("eqsep.detector.model"),
    "detector.Plan": StateCodec("eqsep.detector.plan"),
    "detector.Promise": StateCodec("eqsep.detector.calibration"),
    "detector.Windows": StateCodec("eqsep.detector.runs"),
    "engine.Ellipsoid": StateCodec("eqsep.engine.ellipsoid"),
    "engine.Statistics": StateCodec("eqsep.engine.nystroem"),
    "engine.Trees": StateCodec("eqsep.engine.trees"),
    "labels.RowLabels": StateCodec("eqsep.labels"),
    "tables.Encoder": StateCodec("eqsep.tables.encoder"),
}


@dataclass(frozen=True)
class DetectorCodec(Codec):
    """A detector: its parameters and its model.

    `plan` is True in the file where it is the plan of the same detector; how that reads labels is
    settled by every fit.
    """

    def encode(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        parts = {name: params[name] for name in _PARAMETERS}
        if params["feature_map"] is not None:  # the old name of `plan`
            parts["plan"] = params["feature_map"]
        if not value.__sklearn_is_fitted__():
            return parts
        if parts["plan"] is not None and parts["plan"].is_same(value.plan_):
            parts["plan"] = True
        return parts | {"model_": value.model_.on("cpu")}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        model, params = self.checked(parts, name)
        if model is None:
            return self.cls(name)(**params)
        if params.get("plan") is True:
            params["plan"] = model.plan
        return self.cls(name)(**params).with_model(model)

    def checked(self, parts: dict[str, Any], name: str) -> tuple[Model | None, dict[str, Any]]:
        """The model, if it is fitted, and the parameters, if they fit together."""
        schemas = {**_PARAMETERS, "model_": kept(Model)}
        check_parts(parts, schemas, name, optional=schemas)
        model, params = parts.get("model_"), {p: parts[p] for p in parts if p != "model_"}
        asked = Promise(**{name: params[name] for name in _PROMISE if name in params})
        if model is not None and asked != model.promise:
            damaged("the promise of its detector is not that of its model")
        if model is None and params.get("plan") is True:
            damaged("a detector is to use a plan that is not there")
        return model, params


@dataclass(frozen=True)
class ModelCodec(DetectorCodec):
    """The model of a detector alone, which needs no scikit-learn."""

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        return self.checked(parts, name)[0]


_PROMISE = ("false_alarm_rate", "confidence", "unseen_rate")
_PARAMETERS: Mapping[str, Schema] = {
    "normal": either(NONE, LABEL),
    "false_alarm_rate": RATE,
    "confidence": either(NONE, RATE),
    "unseen_rate": RATE,
    "n_landmarks": either(NONE, WHOLE),
    "bandwidth": either(NONE, POSITIVE),
    "alpha": either(NONE, POSITIVE),
    "unlabelled": word("auto", "trusted", "doubted"),
    "unlabelled_weight": either(NONE, POSITIVE),
    "plan": either(word(None, True), instance("plan.Plan")),
    "window": either(NONE, WHOLE),
    "random_state": either(NONE, NUMBER),
    "config": either(NONE, instance("config.Config")),
}
_DOOR = {"n_features_in_": counted("d"), "classes_": CLASSES}
_NAMES = {"feature_names_in_": array_of("d", kinds="O")}
_KERNEL = {
    **_DOOR,
    "chunk_size": WHOLE,
    "kernel_": instance(*_KERNELS),
    "landmarks_": array_of("m", "d"),
    "labels_": instance("labels.Labels"),
}
_SUMS = {
    "closed": word(True),
    "coef_": array_of("m"),
    "gram_": array_of("m", "m"),
    "moment_": array_of("m"),
    "weight_sum_": array_of(2),
}

DETECTOR = "detector.Detector"
ESTIMATORS: dict[str, Codec] = {
    "separators.EqualitySeparator": EstimatorCodec(
        "eqsep.separators.linear",
        (
            {
                **_DOOR,
                "coef_": array_of("d"),
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
        ({**_DOOR, "t": NUMBER, "coef_": array_of(2, "d"), "intercept_": array_of(2)},),
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
                "centre_": array_of("k", "code"),
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
                "low_": array_of("d"),
                "high_": array_of("d"),
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
    DETECTOR: DetectorCodec("eqsep.detector.detector"),
}

CODECS: dict[str, Codec] = {**_PIECES, **LAYERS, **ESTIMATORS}
SCORING = CODECS | {DETECTOR: ModelCodec("eqsep.detector.model")}  # to score alone


def name_of(value: Any) -> str | None:
    """What a file calls the class of `value`; None for a class that is not known.

    Examples
    --------
    >>> from eqsep.activations import GaussianBump
    >>> name_of(GaussianBump()), name_of(object())
    ('activations.GaussianBump', None)
    """
    return next((name for name, codec in CODECS.items() if codec.is_of(value, name)), None)
