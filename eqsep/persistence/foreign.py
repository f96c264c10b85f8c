"""Objects of other libraries: torch networks, layer by layer, and scikit-learn's SVC."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.arrays import to_numpy
from eqsep.persistence.codecs import Codec, learnt
from eqsep.schemas import (
    CLASSES,
    NUMBER,
    ModelFileError,
    Schema,
    Sizes,
    array_of,
    check,
    check_names,
    damaged,
    either,
    fits,
    instance,
    items,
    word,
)

_NO_BIAS = word(None)
_LAYERS = instance(
    *("layers.Linear", "layers.RadialBasis", "layers.BatchNorm"),
    *("layers.Bump", "layers.LeakyReLU", "layers.Activate"),
)
_OUTPUTS = instance("layers.Linear", "layers.RadialBasis", "layers.Distance")


@dataclass(frozen=True)
class LayerCodec(Codec):
    """One layer with a member axis.

    Attributes
    ----------
    tensors, settings : mappings
        What is learnt or measured, and what was told.
    blank : callable
        (class, parts) -> a layer of the same make, whatever its size.
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
        check_names(parts, name, required=schemas)
        check(parts, schemas, name, sizes={})
        layer = self.blank(self.cls(name), parts)
        return _filled(layer, {k: parts[k] for k in self.tensors}, fixed=parts["fixed"])


def _filled(layer: Any, arrays: dict[str, Any], *, fixed: list[str]) -> Any:
    import torch

    learnable = dict(layer.named_parameters(recurse=False))
    for name, values in arrays.items():
        tensor = None if values is None else torch.as_tensor(values, dtype=torch.float64)
        if name in learnable:
            tensor = torch.nn.Parameter(tensor, requires_grad=name not in fixed)
        setattr(layer, name, tensor)
    return layer


@dataclass(frozen=True)
class NetworkCodec(Codec):
    """Hidden blocks of layers, and the output layer; all sizes must follow from one another."""

    def encode(self, value: Any) -> dict[str, Any]:
        return {"hidden": [list(block) for block in value.hidden], "output": value.output}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        schemas = {"hidden": items(items(_LAYERS, least=1)), "output": _OUTPUTS}
        check_names(parts, name, required=schemas)
        check(parts, schemas, name, sizes={})
        from torch import nn

        blocks = nn.Sequential(*(nn.Sequential(*block) for block in parts["hidden"]))
        network = self.cls(name)(blocks, parts["output"])
        _check_sizes([*(layer for block in blocks for layer in block), network.output])
        return network.eval()


def n_inputs(network: Any) -> int:
    """How many columns the network takes."""
    first = [*(layer for block in network.hidden for layer in block), network.output][0]
    return int(next(iter(first.parameters())).shape[1])


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
    last = 1 if type(layers[-1]).__name__ == "Distance" else sizes["d"]
    if last != 1:
        damaged("its network gives more than one number a row")


_AXES: dict[tuple[str, str], tuple[str | int, ...]] = {
    ("Linear", "weight"): ("k", "d", "out"),
    ("Linear", "bias"): ("k", "out"),
    ("RadialBasis", "centre"): ("k", "d", "out"),
    ("Bump", "sigma"): ("k", 1),
    **{("BatchNorm", name): ("k", "d") for name in ("weight", "bias", "mean", "variance")},
    ("Distance", "centre"): ("k", "d"),
}
_MAPS = array_of(None, None, None)
_ROWS = array_of(None, None)
_SHARE = Schema(
    "a number from 0 to 1",
    lambda value, sizes: type(value) is float and 0 <= value <= 1,  # noqa: ARG005
)
_BUMPS = instance("activations.GaussianBump", "activations.TanhBump")
_FORMULAS = instance(
    *("activations.Ridge", "activations.Sigmoid", "activations.RadialBasis"),
    *("activations.GaussianBump", "activations.TanhBump", "activations.LeakyReLU"),
)
_LAYERS_HOME = "eqsep.networks.layers"
LAYERS: dict[str, Codec] = {
    "networks.Linear": LayerCodec(
        _LAYERS_HOME,
        {"weight": _MAPS, "bias": either(_ROWS, _NO_BIAS)},
        {},
        lambda cls, parts: cls(1, 1, bias=parts["bias"] is not None),
        needs_torch=True,
    ),
    "networks.RadialBasis": LayerCodec(
        _LAYERS_HOME,
        {"centre": _MAPS},
        {"head": instance("activations.RadialBasis"), "distance": word(False, True)},
        lambda cls, parts: cls(1, 1, head=parts["head"], distance=parts["distance"]),
        needs_torch=True,
    ),
    "networks.Bump": LayerCodec(
        _LAYERS_HOME,
        {"sigma": _ROWS},
        {"head": _BUMPS},
        lambda cls, parts: cls(parts["head"], sigma=1.0),
        needs_torch=True,
    ),
    "networks.LeakyReLU": LayerCodec(
        _LAYERS_HOME,
        {},
        {"head": instance("activations.LeakyReLU")},
        lambda cls, parts: cls(parts["head"]),
        needs_torch=True,
    ),
    "networks.Activate": LayerCodec(
        _LAYERS_HOME,
        {},
        {"head": _FORMULAS},
        lambda cls, parts: cls(parts["head"]),
        needs_torch=True,
    ),
    "networks.BatchNorm": LayerCodec(
        _LAYERS_HOME,
        dict.fromkeys(("weight", "bias", "mean", "variance"), _ROWS),
        {"momentum": _SHARE, "eps": _SHARE},
        lambda cls, parts: cls(1, momentum=parts["momentum"], eps=parts["eps"]),
        needs_torch=True,
    ),
    "separators.Distance": LayerCodec(
        _LAYERS_HOME,
        {"centre": _ROWS},
        {},
        lambda cls, parts: cls(_tensor(parts["centre"])),
        needs_torch=True,
    ),
    "networks.Network": NetworkCodec("eqsep.networks.layers", needs_torch=True),
}


def _tensor(values: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(values)


_SVC_KERNELS = ("linear", "rbf", "poly", "sigmoid")
_DEGREE = Schema(
    "a whole number from 0 to 1000",
    lambda value, sizes: type(value) is int and 0 <= value <= 1000,  # noqa: ARG005
)
_SVC_PARAMETERS = {
    "kernel": word(*_SVC_KERNELS),
    "degree": _DEGREE,
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


PRIVATE = ("_dual_coef_", "_gamma", "_intercept_", "_n_support")  # of scikit-learn's SVC


@dataclass(frozen=True)
class SVCCodec(Codec):
    """A machine of two classes, fitted to dense rows, without probabilities.

    A new machine is fitted to two rows, which prepares all that the installed scikit-learn keeps
    in one; then it is given what the saved one had learnt. A fitted machine cannot be built by
    scikit-learn's public names alone: `PRIVATE` are those used here besides.
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

        state = learnt(parts)
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
        if min(counts) < 0 or sum(counts) != sizes["n"] or not math.isfinite(state["gamma_"]):
            damaged("the support vectors of a machine are not as many as it says")
        rows = np.repeat([[0.0], [1.0]], sizes["d"], axis=1)
        return _with_state(SVC().fit(rows, [0, 1]).set_params(**params), state)


def _with_state(svm: Any, state: dict[str, Any]) -> Any:
    """The machine with what was learnt, in the types and signs that its own code relies on."""
    dual_coef, intercept = (
        np.ascontiguousarray(state[k], dtype=np.float64) for k in ("dual_coef_", "intercept_")
    )
    attributes = {
        "support_vectors_": np.ascontiguousarray(state["support_vectors_"], dtype=np.float64),
        "support_": np.ascontiguousarray(state["support_"], dtype=np.int32),
        "_n_support": np.ascontiguousarray(state["n_support_"], dtype=np.int32),
        "dual_coef_": dual_coef,
        "intercept_": intercept,
        "_dual_coef_": -dual_coef,
        "_intercept_": -intercept,
        "_gamma": float(state["gamma_"]),
        "classes_": state["classes_"],
    }
    missing = sorted(set(attributes) - set(vars(svm)))
    if missing:
        raise ModelFileError(
            f"The model file holds a support vector machine, which the scikit-learn installed "
            f"cannot build again: its SVC has no {', '.join(missing)}. Install an older "
            f"scikit-learn, or fit the model anew."
        )
    vars(svm).update(attributes)
    return svm
