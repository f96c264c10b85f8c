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

import numpy as np

from eqsep import schemas
from eqsep.arrays import to_numpy
from eqsep.detector.calibration import Promise
from eqsep.detector.model import Model
from eqsep.engine.kernels import PAIRWISE
from eqsep.schemas import NONE, NUMBER, WHOLE, Schema, array_of, damaged, either, instance, word

_ALWAYS_LEARNT = {"n_features_in_": schemas.counted("d"), "classes_": schemas.CLASSES}
_SOMETIMES_LEARNT = {"feature_names_in_": array_of("d", kinds="O")}
_FUNCTIONS = {"progress"}  # parameters to call while fitting, which a file does not keep


# Classes that have another name in the code than in files.
_CLASS_NAMES = {
    "networks.History": "TrainingHistory",
    "networks.LeakyReLU": "LeakyReLULayer",
    "networks.RadialBasis": "RadialBasisLayer",
}


def _class_name(name: str) -> str:
    return _CLASS_NAMES.get(name, name.split(".")[-1])


@dataclass(frozen=True)
class Codec(ABC):
    """A class that a model file may name, and the module that it is found in."""

    home: str

    def cls(self, name: str) -> Any:
        """The class itself, which files call `name`: "module.Class"."""
        return getattr(import_module(self.home), _class_name(name))

    def is_of(self, value: Any, name: str) -> bool:
        """Whether `value` is of this class, which has then been imported."""
        return getattr(sys.modules.get(self.home), _class_name(name), None) is type(value)

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


class SVCCodec(Codec):
    """A machine of two classes, fitted to dense rows, without probabilities.

    A new one is fitted to two rows, which prepares all that the installed scikit-learn keeps in it,
    and then given what the saved one had learnt, some of it under the names in `PRIVATE`.
    """

    def encode(self, value: Any) -> dict[str, Any]:
        params: dict[str, Any] = value.get_params(deep=False)
        if params.pop("probability", False) is True:
            raise schemas.ModelFileError("SVC cannot be saved with probability=True.")
        if not hasattr(value, "support_vectors_"):
            return params
        if isinstance(value.support_vectors_, np.ndarray) and len(value.classes_) == 2:
            state = {k: getattr(value, k) for k in _SVC_LEARNT if k != "gamma_"}
            return params | state | {"gamma_": float(value._gamma)}
        raise schemas.ModelFileError("SVC can be saved with two classes and dense rows only.")

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        from sklearn.svm import SVC  # slow to import, and few models have one

        state = _learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = SVC().get_params(deep=False)
        known.pop("probability", None)
        schemas.check_names(params, name, required=_SVC_PARAMETERS, optional=known)
        if not state:
            return SVC(**params)
        schemas.check(params, _SVC_PARAMETERS, name, sizes={})
        schemas.check_names(state, name, required=_SVC_LEARNT)
        sizes: schemas.Sizes = {}
        schemas.check(state, _SVC_LEARNT, name, sizes=sizes)
        counts = state["n_support_"].tolist()
        if min(counts) < 0 or sum(counts) != sizes["n"]:
            damaged("the support vectors of a machine are not as many as it says")
        rows = np.repeat([[0.0], [1.0]], sizes["d"], axis=1)
        return _with_state(SVC().fit(rows, [0, 1]).set_params(**params), state)


def _with_state(svm: Any, state: dict[str, Any]) -> Any:
    """The machine with what was learnt, in the types and signs that its own code relies on."""
    doubles = ("support_vectors_", "dual_coef_", "intercept_")
    attributes = {k: np.ascontiguousarray(state[k], dtype=np.float64) for k in doubles} | {
        "support_": np.ascontiguousarray(state["support_"], dtype=np.int32),
        "_n_support": np.ascontiguousarray(state["n_support_"], dtype=np.int32),
        "_gamma": float(state["gamma_"]),
        "classes_": state["classes_"],
    }
    attributes |= {f"_{k}": -attributes[k] for k in ("dual_coef_", "intercept_")}
    missing = sorted(set(attributes) - set(vars(svm)))
    if missing:
        raise schemas.ModelFileError(
            f"The model file holds a support vector machine, which the scikit-learn installed "
            f"cannot build again: its SVC has no {', '.join(missing)}. Install an older "
            f"scikit-learn, or fit the model again."
        )
    vars(svm).update(attributes)
    return svm


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


PRIVATE = ("_dual_coef_", "_gamma", "_intercept_", "_n_support")  # of scikit-learn's SVC
_SVC_PARAMETERS = {
    "kernel": word("linear", "rbf", "poly", "sigmoid"),
    "degree": schemas.plain(
        "a whole number from 0 to 1000", lambda v: type(v) is int and 0 <= v <= 1000
    ),
    "coef0": NUMBER,
    "gamma": either(word("scale", "auto"), NUMBER),
    "decision_function_shape": word("ovr", "ovo"),
    "break_ties": word(False, True),
    "cache_size": NUMBER,
}
_SVC_LEARNT = {
    "support_vectors_": array_of("n", "d"),
    "support_": array_of("n", kinds="i"),
    "n_support_": array_of(2, kinds="i"),
    "dual_coef_": array_of(1, "n"),
    "intercept_": array_of(1),
    "classes_": schemas.CLASSES,
    "gamma_": NUMBER,
}
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
    "networks.RadialBasis": _layer(
        {"centre": _MAPS},
        {"head": instance("activations.RadialBasis"), "distance": word(False, True)},
        lambda cls, parts: cls(1, 1, head=parts["head"], distance=parts["distance"]),
    ),
    "networks.Bump": _layer({"sigma": _ROWS}, {"head": instance(*_BUMPS)}, _of_head),
    "networks.LeakyReLU": _layer({}, {"head": instance("activations.LeakyReLU")}, _of_head),
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
_LENGTHS = array_of("d", finite=False)
_SCALES = Schema(
    f"{_LENGTHS.description} of numbers above 0",  # infinite for a column that never varied
    lambda value, sizes: _LENGTHS.accepts(value, sizes) and bool((value > 0).all()),
)
_FRAME = instance("planes.Frame", length=lambda frame: len(frame.centre), axis="d")
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
    "networks.History": RecordCodec(
        "eqsep.networks.training",
        {
            **dict.fromkeys(("loss", "validation_loss"), _LOSSES),
            "sigma": array_of("epochs", None, "k", finite=False),
            "best_epoch": array_of("k", kinds="i"),
        },
    ),
    "sklearn.SVC": SVCCodec("sklearn.svm"),
    "checks.Finding": StateCodec("eqsep.checks"),
    "detector.Calibration": StateCodec("eqsep.detector.calibration"),
    "detector.Config": StateCodec("eqsep.detector.config"),
    "detector.Grouping": StateCodec("eqsep.detector.holdout"),
    "detector.HeldOutRows": StateCodec("eqsep.detector.evidence"),
    "detector.KindProbability": StateCodec("eqsep.detector.namer"),
    "detector.LabelScheme": StateCodec("eqsep.detector.plan"),
    "detector.Model": StateCodec("eqsep.detector.model"),
    "detector.Plan": StateCodec("eqsep.detector.plan"),
    "detector.Promise": StateCodec("eqsep.detector.calibration"),
    "detector.Windows": StateCodec("eqsep.detector.runs"),
    "engine.Ellipsoid": StateCodec("eqsep.engine.ellipsoid"),
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
    "separators.HyperrectangleSeparator": EstimatorCodec(
        "eqsep.separators.hyperrectangle",
        {"coef_": array_of("d", "d"), "intercept_": array_of("d"), "epsilon_": array_of("d")},
    ),
    "separators.OneVsSet": EstimatorCodec(
        "eqsep.separators.one_vs_set",
        {
            "ranking": word("equality", "binary"),
            "frame_": _FRAME,
            "svm_": _fitted("d", "SVC"),
            **dict.fromkeys(("near_", "far_", "midplane_"), NUMBER),
        },
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
                *("twin.TwinSeparator", "one_vs_set.OneVsSet", "network.NetworkSeparator"),
                *("deep_sad.DeepSAD", "negative_sampling.NegativeSampling"),
                *("hyperrectangle.HyperrectangleSeparator", "detector.Detector", "SVC"),
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
