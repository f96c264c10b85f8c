"""Which classes a model file may hold, and how each becomes its parts and is built from them.

Nothing that is not in `CODECS` is ever built, and `Codec.cls` is the only place where eqsep looks a
class up by name. The names are those of the files: a class that moves keeps its name there, and its
codec has its new module.
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

from eqsep.arrays import to_numpy
from eqsep.detector.calibration import Promise
from eqsep.detector.model import Model
from eqsep.engine.kernels import PAIRWISE
from eqsep.schemas import (
    CLASSES,
    FLAG,
    LABEL,
    NONE,
    NUMBER,
    POSITIVE,
    RATE,
    WHOLE,
    ModelFileError,
    Schema,
    Sizes,
    array_of,
    check,
    check_names,
    check_parts,
    counted,
    damaged,
    either,
    entries,
    fits,
    instance,
    items,
    kept,
    plain,
    word,
)

_ALWAYS_LEARNT = {"n_features_in_": counted("d"), "classes_": CLASSES}
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
        home = sys.modules.get(self.home)
        return getattr(home, name.split(".")[-1], None) is type(value)

    @abstractmethod
    def encode(self, value: Any) -> dict[str, Any]:
        """What `value` is made of, by name."""

    @abstractmethod
    def decode(self, parts: dict[str, Any], name: str) -> Any:
        """An object of the class called `name`, from its parts."""


@dataclass(frozen=True)
class StateCodec(Codec):
    """A class that has `state()` and `from_state()`."""

    def encode(self, value: Any) -> dict[str, Any]:
        return dict(value.state())

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        return self.cls(name).from_state(parts)


@dataclass(frozen=True)
class RecordCodec(Codec):
    """A dataclass: its fields. One that the file lacks has its default."""

    fields: Mapping[str, Schema]

    def encode(self, value: Any) -> dict[str, Any]:
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls = self.cls(name)
        check_parts(parts, self.fields, cls)
        return cls(**parts)


@dataclass(frozen=True)
class EstimatorCodec(Codec):
    """Parameters, and what was learnt: nothing at all, the `fitted` attributes or the `others`.

    Parameters may be among the attributes, where scoring depends on them.
    """

    fitted: Mapping[str, Schema]
    others: Mapping[str, Schema] = dataclasses.field(default_factory=dict)

    def encode(self, value: Any) -> dict[str, Any]:
        params = value.get_params(deep=False)
        return {k: params[k] for k in params if k not in _FUNCTIONS} | _learnt(vars(value))

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        cls, state = self.cls(name), _learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = {k: p.default for k, p in inspect.signature(cls).parameters.items()}
        required = [k for k, default in known.items() if default is inspect.Parameter.empty]
        check_names(params, name, required=required, optional=set(known) - _FUNCTIONS)
        value = cls(**params)
        if state:
            self._check(state, {part: getattr(value, part) for part in known}, name)
        for part in state:
            setattr(value, part, state[part])
        return value

    def _check(self, state: dict[str, Any], params: dict[str, Any], name: str) -> None:
        likely = max(self.fitted, self.others, key=lambda option: len(set(option) & set(state)))
        likely = {**_ALWAYS_LEARNT, **likely}
        check_names(state, name, required=_learnt(likely), optional=_SOMETIMES_LEARNT)
        there = {k: v for k, v in _SOMETIMES_LEARNT.items() if k in state}
        check(state | params, likely | there, name, sizes={})


def _learnt(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those that end in an underscore, and do not begin with one."""
    return {k: v for k, v in attributes.items() if k.endswith("_") and not k.startswith("_")}


@dataclass(frozen=True)
class LayerCodec(Codec):
    """A layer of a network: tensors, learnt or measured, and settings.

    `blank` makes a layer with these settings, whatever its size, from the class and the parts.
    """

    tensors: Mapping[str, Schema]
    settings: Mapping[str, Schema]
    blank: Callable[[Any, dict[str, Any]], Any]

    def encode(self, value: Any) -> dict[str, Any]:
        tensors = {name: getattr(value, name) for name in self.tensors}
        fixed = [name for name, p in value.named_parameters(recurse=False) if not p.requires_grad]
        arrays = {k: None if t is None else to_numpy(t.detach()) for k, t in tensors.items()}
        return arrays | {k: getattr(value, k) for k in self.settings} | {"fixed": fixed}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        schemas = {**self.tensors, **self.settings, "fixed": items(word(*self.tensors))}
        check_parts(parts, schemas, name)
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


@dataclass(frozen=True)
class NetworkCodec(Codec):
    """Hidden blocks of layers, and the output layer; all sizes must follow from one another."""

    def encode(self, value: Any) -> dict[str, Any]:
        return {"hidden": [list(block) for block in value.hidden], "output": value.output}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        check_parts(parts, {"hidden": items(items(_HIDDEN, least=1)), "output": _OUTPUTS}, name)
        from torch import nn

        blocks = nn.Sequential(*(nn.Sequential(*block) for block in parts["hidden"]))
        network = self.cls(name)(blocks, parts["output"])
        _check_sizes(_layers(network))
        return network.eval()


def _layers(network: Any) -> list[Any]:
    return [*(layer for block in network.hidden for layer in block), network.output]


def _n_inputs(network: Any) -> int:
    """How many columns the network takes."""
    return int(next(iter(_layers(network)[0].parameters())).shape[1])


def _check_sizes(layers: list[Any]) -> None:
    """Refuse layers that do not follow on one another: each takes what the one before gives."""
    if type(layers[0]).__name__ not in ("Linear", "RadialBasis"):
        damaged("the first layer of its network takes no columns")
    sizes: Sizes = {}
    for layer in layers:
        for name, tensor in [*layer.named_parameters(recurse=False), *layer.named_buffers()]:
            axes = _AXES[type(layer).__name__, name]
            if not fits(tuple(tensor.shape), axes, sizes):
                damaged("the layers of its network do not follow on one another")
        if "out" in sizes:
            sizes["d"] = sizes.pop("out")
    if type(layers[-1]).__name__ != "Distance" and sizes["d"] != 1:
        damaged("its network gives more than one number a row")


@dataclass(frozen=True)
class SVCCodec(Codec):
    """A machine of two classes, fitted to dense rows, without probabilities.

    A new machine is fitted to two rows, which prepares all that the installed scikit-learn keeps in
    one, and then given what the saved one had learnt, some of it under the names in `PRIVATE`.
    """

    def encode(self, value: Any) -> dict[str, Any]:
        params: dict[str, Any] = value.get_params(deep=False)
        if params.pop("probability", False) is True:
            raise ModelFileError("SVC cannot be saved with probability=True.")
        if not hasattr(value, "support_vectors_"):
            return params
        if isinstance(value.support_vectors_, np.ndarray) and len(value.classes_) == 2:
            state = {k: getattr(value, k) for k in _SVC_LEARNT if k != "gamma_"}
            return params | state | {"gamma_": float(value._gamma)}
        raise ModelFileError("SVC can be saved with two classes and dense rows only.")

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        from sklearn.svm import SVC  # slow to import, and few models have one

        state = _learnt(parts)
        params = {part: parts[part] for part in parts if part not in state}
        known = SVC().get_params(deep=False)
        known.pop("probability", None)
        check_names(params, name, required=_SVC_PARAMETERS, optional=known)
        if not state:
            return SVC(**params)
        check(params, _SVC_PARAMETERS, name, sizes={})
        check_names(state, name, required=_SVC_LEARNT)
        sizes: Sizes = {}
        check(state, _SVC_LEARNT, name, sizes=sizes)
        counts = state["n_support_"].tolist()
        if min(counts) < 0 or sum(counts) != sizes["n"]:
            damaged("the support vectors of a machine are not as many as it says")
        rows = np.repeat([[0.0], [1.0]], sizes["d"], axis=1)
        return _with_state(SVC().fit(rows, [0, 1]).set_params(**params), state)


def _with_state(svm: Any, state: dict[str, Any]) -> Any:
    """The machine with what was learnt, in the types and signs that its own code relies on."""
    doubles = {
        name: np.ascontiguousarray(state[name], dtype=np.float64)
        for name in ("support_vectors_", "dual_coef_", "intercept_")
    }
    attributes = doubles | {
        "support_": np.ascontiguousarray(state["support_"], dtype=np.int32),
        "_n_support": np.ascontiguousarray(state["n_support_"], dtype=np.int32),
        "_dual_coef_": -doubles["dual_coef_"],
        "_intercept_": -doubles["intercept_"],
        "_gamma": float(state["gamma_"]),
        "classes_": state["classes_"],
    }
    missing = sorted(set(attributes) - set(vars(svm)))
    if missing:
        raise ModelFileError(
            f"The model file holds a support vector machine, which the scikit-learn installed "
            f"cannot build again: its SVC has no {', '.join(missing)}. Install an older "
            f"scikit-learn, or fit the model again."
        )
    vars(svm).update(attributes)
    return svm


@dataclass(frozen=True)
class DetectorCodec(Codec):
    """A detector: its parameters and its model.

    In the file, `plan` is True if it is that of the model; every fit settles how it reads labels.
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


PRIVATE = ("_dual_coef_", "_gamma", "_intercept_", "_n_support")  # of scikit-learn's SVC
_SVC_PARAMETERS = {
    "kernel": word("linear", "rbf", "poly", "sigmoid"),
    "degree": plain(
        "a whole number from 0 to 1000", lambda value: type(value) is int and 0 <= value <= 1000
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
    "classes_": CLASSES,
    "gamma_": NUMBER,
}
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
_AXES: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("Linear", "weight"): ("k", "d", "out"),
    ("Linear", "bias"): ("k", "out"),
    ("RadialBasis", "centre"): ("k", "d", "out"),
    ("Bump", "sigma"): ("k", 1),
    **{("BatchNorm", name): ("k", "d") for name in ("weight", "bias", "mean", "variance")},
    ("Distance", "centre"): ("k", "d"),
}
_MAPS, _ROWS = array_of(None, None, None), array_of(None, None)
_SHARE = plain("a number from 0 to 1", lambda value: type(value) is float and 0 <= value <= 1)
_BUMPS = ("activations.GaussianBump", "activations.TanhBump")
_HEADS = (*_BUMPS, "activations.Ridge", "activations.Sigmoid", "activations.RadialBasis")
_HEAD = instance(*_HEADS)
_HIDDEN = instance(
    *("layers.Linear", "layers.RadialBasis", "layers.BatchNorm"),
    *("layers.Bump", "layers.LeakyReLU", "layers.Activate"),
)
_OUTPUTS = instance("layers.Linear", "layers.RadialBasis", "layers.Distance")


def _tensor(values: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(values)


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
    "networks.Bump": _layer(
        {"sigma": _ROWS},
        {"head": instance(*_BUMPS)},
        lambda cls, parts: cls(parts["head"], sigma=1.0),
    ),
    "networks.LeakyReLU": _layer(
        {}, {"head": instance("activations.LeakyReLU")}, lambda cls, parts: cls(parts["head"])
    ),
    "networks.Activate": _layer(
        {},
        {"head": instance(*_HEADS, "activations.LeakyReLU")},
        lambda cls, parts: cls(parts["head"]),
    ),
    "networks.BatchNorm": _layer(
        dict.fromkeys(("weight", "bias", "mean", "variance"), _ROWS),
        {"momentum": _SHARE, "eps": _SHARE},
        lambda cls, parts: cls(1, momentum=parts["momentum"], eps=parts["eps"]),
    ),
    "separators.Distance": _layer(
        {"centre": _ROWS}, {}, lambda cls, parts: cls(_tensor(parts["centre"]))
    ),
    "networks.Network": NetworkCodec("eqsep.networks.layers"),
}
_GAMMA = either(word("median"), NUMBER)
_KERNELS = tuple(f"kernels.{k}" for k in ("RBF", "Exponential", "Laplacian", "PairwiseKernel"))
_LENGTHS = array_of("d", finite=False)
_SCALES = Schema(
    f"{_LENGTHS.description} of numbers above 0",  # infinite for a column that never varied
    lambda value, sizes: _LENGTHS.accepts(value, sizes) and bool((value > 0).all()),
)
_DEVICE = word("auto", "cpu", "cuda")
_FRAME = instance("planes.Frame", length=lambda frame: len(frame.centre), axis="d")
_COLUMNS = instance("network.Columns", length=lambda c: len(c.frame.centre), axis="d")
_NETWORK = instance("layers.Network", length=_n_inputs, axis="d")
_HISTORY = instance("training.History")


def _fitted(axis: str, *names: str) -> Schema:
    """A fitted estimator of as many columns as the axis is long."""
    return instance(*names, length=lambda made: getattr(made, "n_features_in_", 0), axis=axis)


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
        "eqsep.separators.network", {"frame": instance("planes.Frame")}
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
    ),
    "networks.History": RecordCodec(
        "eqsep.networks.training",
        {
            "loss": array_of("epochs", "k", finite=False),
            "validation_loss": array_of("epochs", "k", finite=False),
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
_KERNEL = {
    "chunk_size": WHOLE,
    "kernel_": instance(*_KERNELS),
    "landmarks_": array_of("m", "d"),
    "labels_": instance("labels.Labels"),
}
DETECTOR = "detector.Detector"
ESTIMATORS: dict[str, Codec] = {
    "separators.EqualitySeparator": EstimatorCodec(
        "eqsep.separators.linear",
        {
            "coef_": array_of("d"),
            **dict.fromkeys(("intercept_", "epsilon_", "loss_"), NUMBER),
            "margin_class_": LABEL,
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
        "eqsep.separators.twin",
        {"t": NUMBER, "coef_": array_of(2, "d"), "intercept_": array_of(2)},
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
        {
            "score_by": word("membership", "distance"),
            "device": _DEVICE,
            "columns_": _COLUMNS,
            "network_": _NETWORK,
            "history_": _HISTORY,
            "head_": _HEAD,
        },
    ),
    "separators.DeepSAD": EstimatorCodec(
        "eqsep.separators.deep_sad",
        {
            "device": _DEVICE,
            "columns_": _COLUMNS,
            "network_": _NETWORK,
            "centre_": array_of("k", "code"),
            "threshold_": NUMBER,
            "history_": _HISTORY,
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
                "hyperrectangle.HyperrectangleSeparator",
                *("detector.Detector", "SVC"),
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
