"""Which classes a model file may hold, and how each becomes its parts and is built from them.

Nothing that is not in `CODECS` is ever built, and `Codec.cls` is the only place where eqsep looks a
class up by name. A class that moves keeps its name in files, and its codec has its new module.
"""

import dataclasses
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from eqsep import schemas
from eqsep.arrays import to_numpy
from eqsep.detector.calibration import Promise
from eqsep.detector.model import Model
from eqsep.engine.kernels import PAIRWISE
from eqsep.schemas import NONE, NUMBER, WHOLE, Schema, array_of, damaged, either, instance, word

_ALWAYS_LEARNT = {"n_features_in_": schemas.counted("d"), "classes_": schemas.CLASSES}
_SOMETIMES_LEARNT = {"feature_names_in_": array_of("d", kinds="O")}
_FUNCTIONS = {"progress"}  # parameters to call while fitting, which a file does not keep


@dataclass(frozen=True)
class Codec(ABC):
    """A class that a model file may name, and the module that it is found in."""

    home: str

    def cls(self, name: str) -> Any:
        """The class itself, which files call `name`: "module.Class"."""
        return getattr(import_module(self.home), name.split(".")[-1])

    def is_of(self, value: Any, name: str) -> bool:
        """Whether `value` is of this class, which has then been imported."""
        return getattr(sys.modules.get(self.home), name.split(".")[-1], None) is type(value)

    @abstractmethod
    def encode(self, value: Any) -> dict[str, Any]:
        """What `value` is made of, by name."""

    @abstractmethod
    def decode(self, parts: dict[str, Any], name: str) -> Any:
        """An object of the class called `name`, from its parts."""


class StateCodec(Codec):
    """A class that has `state()` and `from_state()`."""

    def encode(self, value: Any) -> dict[str, Any]:
        return dict(value.state())

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        return self.cls(name).from_state(parts)


@dataclass(frozen=True)
class RecordCodec(Codec):
    """A dataclass: its fields."""

    fields: Mapping[str, Schema]

    def encode(self, value: Any) -> dict[str, Any]:
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls = self.cls(name)
        schemas.check_parts(parts, self.fields, cls)
        return cls(**parts)


@dataclass(frozen=True)
class EstimatorCodec(Codec):
    """Parameters, and what was learnt: nothing at all, the `fitted` attributes or the `others`."""

    fitted: Mapping[str, Schema]  # with parameters that scoring depends on
    others: Mapping[str, Schema] = dataclasses.field(default_factory=dict)

    def encode(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        return {k: params[k] for k in params if k not in _FUNCTIONS} | _learnt(vars(value))

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls, state = self.cls(name), _learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = inspect.signature(cls).parameters
        schemas.check_names(params, name, required=set(known) - _FUNCTIONS)
        value = cls(**params)
        if not state:
            return value
        likely = max(self.fitted, self.others, key=lambda option: len(set(option) & set(state)))
        likely = {**_ALWAYS_LEARNT, **likely}
        schemas.check_names(state, name, required=_learnt(likely), optional=_SOMETIMES_LEARNT)
        there = {k: v for k, v in _SOMETIMES_LEARNT.items() if k in state}
        all_parts = state | {part: getattr(value, part) for part in known}
        schemas.check(all_parts, likely | there, name, sizes={})
        vars(value).update(state)
        return value


def _learnt(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those that end in an underscore, and do not begin with one."""
    return {k: v for k, v in attributes.items() if k.endswith("_") and not k.startswith("_")}


@dataclass(frozen=True)
class LayerCodec(Codec):
    """A layer of a network: tensors, learnt or measured, and settings."""

    tensors: Mapping[str, Schema]
    settings: Mapping[str, Schema]
    blank: Callable[[Any, dict[str, Any]], Any]  # a layer of any size, of a class and its parts

    def encode(self, value: Any) -> dict[str, Any]:
        tensors = {name: getattr(value, name) for name in self.tensors}
        fixed = [name for name, p in value.named_parameters(recurse=False) if not p.requires_grad]
        arrays = {k: None if t is None else to_numpy(t.detach()) for k, t in tensors.items()}
        return arrays | {k: getattr(value, k) for k in self.settings} | {"fixed": fixed}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        fixed = schemas.items(word(*self.tensors))
        schemas.check_parts(parts, {**self.tensors, **self.settings, "fixed": fixed}, name)
        layer = self.blank(self.cls(name), parts)
        import torch

        learnable = dict(layer.named_parameters(recurse=False))
        for part in self.tensors:
            values = parts[part]
            tensor = None if values is None else torch.as_tensor(values, dtype=torch.float64)
            if part in learnable:
                tensor = torch.nn.Parameter(tensor, requires_grad=part not in parts["fixed"])
            setattr(layer, part, tensor)
        return layer


class NetworkCodec(Codec):
    """Hidden blocks of layers, and the output layer; all sizes must follow from one another."""

    def encode(self, value: Any) -> dict[str, Any]:
        return {"hidden": [list(block) for block in value.hidden], "output": value.output}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        blocks = schemas.items(schemas.items(_HIDDEN, least=1))
        schemas.check_parts(parts, {"hidden": blocks, "output": _OUTPUTS}, name)
        from torch import nn

        hidden = nn.Sequential(*(nn.Sequential(*block) for block in parts["hidden"]))
        network = self.cls(name)(hidden, parts["output"])
        _check_sizes(_layers(network))
        return network.eval()


def _layers(network: Any) -> list[Any]:
    return [*(layer for block in network.hidden for layer in block), network.output]


def _check_sizes(layers: list[Any]) -> None:
    """Refuse layers that do not follow on one another: each takes what the one before gives."""
    if type(layers[0]).__name__ not in ("Linear", "RadialBasisLayer"):
        damaged("the first layer of its network takes no columns")
    sizes: schemas.Sizes = {}
    for layer in layers:
        for name, tensor in [*layer.named_parameters(recurse=False), *layer.named_buffers()]:
            if not schemas.fits(tuple(tensor.shape), _AXES[type(layer).__name__, name], sizes):
                damaged("the layers of its network do not follow on one another")
        if "out" in sizes:
            sizes["d"] = sizes.pop("out")
    if type(layers[-1]).__name__ != "Distance" and sizes["d"] != 1:
        damaged("its network gives more than one number a row")


class DetectorCodec(Codec):
    """A detector: its parameters and its model; `plan` is True if it is that of the model."""

    def encode(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        parts = {name: params[name] for name in _PARAMETERS}
        if not value.__sklearn_is_fitted__():
            return parts
        if parts["plan"] is not None and parts["plan"].is_same(value.plan_):
            parts["plan"] = True
        return parts | {"model_": value.model_.on("cpu")}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        model, params = self.checked(parts, name)
        if model is None:
            return self.cls(name)(**params)
        if params["plan"] is True:
            params["plan"] = model.plan
        return self.cls(name)(**params).with_model(model)

    def checked(self, parts: dict[str, Any], name: str) -> tuple[Model | None, dict[str, Any]]:
        """The model, if it is fitted, and the parameters, if they fit together."""
        known = {**_PARAMETERS, "model_": schemas.kept(Model)}
        schemas.check_parts(parts, known, name, optional=("model_",))
        model, params = parts.get("model_"), {p: parts[p] for p in parts if p != "model_"}
        asked = Promise(**{name: params[name] for name in _PROMISE})
        if model is not None and asked != model.promise:
            damaged("the promise of its detector is not that of its model")
        if model is None and params["plan"] is True:
            damaged("a detector is to use a plan that is not there")
        return model, params


class ModelCodec(DetectorCodec):
    """The model of a detector alone, which needs no scikit-learn."""

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        return self.checked(parts, name)[0]


_PROMISE = ("false_alarm_rate", "confidence", "unseen_rate")
_PARAMETERS: Mapping[str, Schema] = {
    "normal": either(NONE, schemas.LABEL),
    "false_alarm_rate": schemas.RATE,
    "confidence": either(NONE, schemas.RATE),
    "unseen_rate": schemas.RATE,
    **dict.fromkeys(("n_landmarks", "window"), either(NONE, WHOLE)),
    **dict.fromkeys(("bandwidth", "alpha", "unlabelled_weight"), either(NONE, schemas.POSITIVE)),
    "unlabelled": word("auto", "trusted", "doubted"),
    "plan": either(word(None, True), instance("plan.Plan")),
    "random_state": either(NONE, NUMBER),
    "config": either(NONE, instance("config.Config")),
}
_AXES: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("Linear", "weight"): ("k", "d", "out"),
    ("Linear", "bias"): ("k", "out"),
    ("RadialBasisLayer", "centre"): ("k", "d", "out"),
    ("Bump", "sigma"): ("k", 1),
    **{("BatchNorm", name): ("k", "d") for name in ("weight", "bias", "mean", "variance")},
    ("Distance", "centre"): ("k", "d"),
}
_MAPS, _ROWS = array_of(None, None, None), array_of(None, None)
_SHARE = schemas.plain("a number from 0 to 1", lambda v: type(v) is float and 0 <= v <= 1)
_BUMPS = ("activations.GaussianBump", "activations.TanhBump")
_HEADS = (*_BUMPS, "activations.Ridge", "activations.Sigmoid", "activations.RadialBasis")
_HEAD = instance(*_HEADS)
_HIDDEN = instance(
    *("layers.Linear", "layers.RadialBasisLayer", "layers.BatchNorm"),
    *("layers.Bump", "layers.LeakyReLULayer", "layers.Activate"),
)
_OUTPUTS = instance("layers.Linear", "layers.RadialBasisLayer", "layers.Distance")


def _of_head(cls: Any, parts: dict[str, Any]) -> Any:
    return cls(parts["head"])


_layer = partial(LayerCodec, "eqsep.networks.layers")
_LAYERS: dict[str, Codec] = {
    "networks.Linear": _layer(
        {"weight": _MAPS, "bias": either(_ROWS, NONE)},
        {},
        lambda cls, parts: cls(1, 1, bias=parts["bias"] is not None),
    ),
    "networks.RadialBasisLayer": _layer(
        {"centre": _MAPS},
        {"head": instance("activations.RadialBasis"), "distance": word(False, True)},
        lambda cls, parts: cls(1, 1, head=parts["head"], distance=parts["distance"]),
    ),
    "networks.Bump": _layer({"sigma": _ROWS}, {"head": instance(*_BUMPS)}, _of_head),
    "networks.LeakyReLULayer": _layer({}, {"head": instance("activations.LeakyReLU")}, _of_head),
    "networks.Activate": _layer({}, {"head": instance(*_HEADS, "activations.LeakyReLU")}, _of_head),
    "networks.BatchNorm": _layer(
        dict.fromkeys(("weight", "bias", "mean", "variance"), _ROWS),
        {"momentum": _SHARE, "eps": _SHARE},
        lambda cls, parts: cls(1, momentum=parts["momentum"], eps=parts["eps"]),
    ),
    "separators.Distance": _layer({"centre": _ROWS}, {}, lambda cls, _: cls(None)),
    "networks.Network": NetworkCodec("eqsep.networks.layers"),
}
_GAMMA = either(word("median"), NUMBER)
_SETTINGS = schemas.entries(NUMBER, among=("gamma", "degree", "coef0"))
_SOLVER = {"max_iter": WHOLE, "tol": NUMBER}
_KINDS = array_of(None, kinds="biufU")
_KERNELS = tuple(f"kernels.{k}" for k in ("RBF", "Exponential", "Laplacian", "PairwiseKernel"))
_LENGTHS = array_of("d")
_SCALES = Schema(
    f"{_LENGTHS.description} of numbers above 0",
    lambda value, sizes: _LENGTHS.accepts(value, sizes) and bool((value > 0).all()),
)
_HISTORY = instance("training.TrainingHistory")
_NETWORK = {
    "device": word("auto", "cpu", "cuda"),
    "columns_": instance("network.Columns", length=lambda c: len(c.frame.centre), axis="d"),
    "network_": instance(
        "layers.Network", length=lambda n: next(_layers(n)[0].parameters()).shape[1], axis="d"
    ),
    "history_": _HISTORY,
}


def _fitted(axis: str, *names: str) -> Schema:
    """A fitted estimator of as many columns as the axis is long."""
    return instance(*names, length=lambda made: getattr(made, "n_features_in_", 0), axis=axis)


_LOSSES = array_of("epochs", "k", finite=False)
_activation = partial(RecordCodec, "eqsep.activations")
_kernel = partial(RecordCodec, "eqsep.engine.kernels")
_PIECES: dict[str, Codec] = {
    "activations.GaussianBump": _activation({"sigma": NUMBER, "mu": NUMBER}),
    "activations.TanhBump": _activation({"sigma": NUMBER}),
    **dict.fromkeys(("activations.Ridge", "activations.Sigmoid"), _activation({})),
    "activations.RadialBasis": _activation({"gamma": NUMBER}),
    "activations.LeakyReLU": _activation({"leak": NUMBER}),
    **dict.fromkeys(("losses.SquaredLoss", "losses.LogisticLoss"), RecordCodec("eqsep.losses", {})),
    **dict.fromkeys(("kernels.RBF", "kernels.Exponential"), _kernel({"gamma": _GAMMA})),
    "kernels.Laplacian": StateCodec("eqsep.engine.kernels"),
    "kernels.PairwiseKernel": _kernel({"metric": word(*PAIRWISE), "params": _SETTINGS}),
    "solvers.BFGS": RecordCodec("eqsep.solvers", _SOLVER),
    "solvers.LBFGS": RecordCodec("eqsep.solvers", _SOLVER | {"memory": WHOLE}),
    "labels.LabelReader": RecordCodec(
        "eqsep.labels", {"classes": schemas.CLASSES, "kinds": _KINDS, "by_name": schemas.FLAG}
    ),
    "separators.Frame": RecordCodec(
        "eqsep.separators.planes", {"centre": array_of("d"), "scale": _SCALES}
    ),
    "separators.Columns": RecordCodec(
        "eqsep.separators.network", {"frame": instance("planes.Frame")}
    ),
    "networks.Training": RecordCodec(
        "eqsep.networks.training",
        {
            **dict.fromkeys(("epochs", "decay_steps", "patience"), WHOLE),
            "batch_size": either(word(None), WHOLE),
            **dict.fromkeys(("learning_rate", "decay", "l2", "validation_fraction"), NUMBER),
            **dict.fromkeys(("stratify", "balanced"), schemas.FLAG),
        },
    ),
    "networks.TrainingHistory": RecordCodec(
        "eqsep.networks.training",
        {
            **dict.fromkeys(("loss", "validation_loss"), _LOSSES),
            "sigma": array_of("epochs", None, "k", finite=False),
            "best_epoch": array_of("k", kinds="i"),
        },
    ),
    "checks.Finding": StateCodec("eqsep.checks"),
    "detector.Calibration": StateCodec("eqsep.detector.calibration"),
    "detector.Config": StateCodec("eqsep.detector.config"),
    "detector.Grouping": StateCodec("eqsep.detector.holdout"),
    "detector.HeldOutRows": StateCodec("eqsep.detector.evidence"),
    "detector.Isolation": StateCodec("eqsep.detector.isolation"),
    "detector.KindProbability": StateCodec("eqsep.detector.namer"),
    "detector.LabelScheme": StateCodec("eqsep.detector.plan"),
    "detector.Model": StateCodec("eqsep.detector.model"),
    "detector.Plan": StateCodec("eqsep.detector.plan"),
    "detector.Promise": StateCodec("eqsep.detector.calibration"),
    "detector.Windows": StateCodec("eqsep.detector.runs"),
    "engine.Bins": StateCodec("eqsep.engine.predictions"),
    "engine.Ellipsoid": StateCodec("eqsep.engine.ellipsoid"),
    "engine.Neighbourhood": StateCodec("eqsep.engine.nearest"),
    "engine.Predictions": StateCodec("eqsep.engine.predictions"),
    "engine.Tail": StateCodec("eqsep.engine.tails"),
    "engine.Trees": StateCodec("eqsep.engine.trees"),
    "labels.RowLabels": StateCodec("eqsep.labels"),
    "tables.Encoder": StateCodec("eqsep.tables.encoder"),
}
_KERNEL = {
    "chunk_size": WHOLE,
    "kernel_": instance(*_KERNELS),
    "landmarks_": array_of("m", "d"),
    "labels_": instance("labels.LabelReader"),
}
DETECTOR = "detector.Detector"
ESTIMATORS: dict[str, Codec] = {
    "separators.EqualitySeparator": EstimatorCodec(
        "eqsep.separators.linear",
        {
            "coef_": array_of("d"),
            **dict.fromkeys(("intercept_", "epsilon_", "loss_"), NUMBER),
            "margin_class_": schemas.LABEL,
            "head_": _HEAD,
            "n_iter_": WHOLE,
        },
    ),
    "separators.KernelEqualitySeparator": EstimatorCodec(
        "eqsep.separators.kernel",
        _KERNEL
        | {
            "closed": word(True),
            "coef_": array_of("m"),
            "gram_": array_of("m", "m"),
            "moment_": array_of("m"),
            "weight_sum_": array_of(2),
        },
        _KERNEL | {"closed": word(False), "separator_": _fitted("m", "linear.EqualitySeparator")},
    ),
    "separators.TwinSeparator": EstimatorCodec(
        "eqsep.separators.twin", {"t": NUMBER, "coef_": array_of(2, "d"), "intercept_": array_of(2)}
    ),
    "separators.NetworkSeparator": EstimatorCodec(
        "eqsep.separators.network",
        _NETWORK | {"score_by": word("membership", "distance"), "head_": _HEAD},
    ),
    "separators.DeepSAD": EstimatorCodec(
        "eqsep.separators.deep_sad",
        _NETWORK
        | {
            "centre_": array_of("k", "code"),
            "threshold_": NUMBER,
            "pretraining_history_": _HISTORY,
        },
    ),
    "separators.NegativeSampling": EstimatorCodec(
        "eqsep.separators.negative_sampling",
        {
            "low_": array_of("d"),
            "high_": array_of("d"),
            "estimator_": _fitted(
                "d",
                *("linear.EqualitySeparator", "kernel.KernelEqualitySeparator"),
                *("twin.TwinSeparator", "network.NetworkSeparator", "deep_sad.DeepSAD"),
                *("negative_sampling.NegativeSampling", "detector.Detector"),
            ),
        },
    ),
    DETECTOR: DetectorCodec("eqsep.detector.detector"),
}

CODECS: dict[str, Codec] = {**_PIECES, **_LAYERS, **ESTIMATORS}
SCORING = CODECS | {DETECTOR: ModelCodec("eqsep.detector.model")}  # to score alone


def name_of(value: Any) -> str | None:
    """What a file calls the class of `value`; None for a class that is not known."""
    return next((name for name, codec in CODECS.items() if codec.is_of(value, name)), None)
