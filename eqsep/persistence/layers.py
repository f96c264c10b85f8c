"""Networks, layer by layer: the tensors as arrays, and what else each layer was told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqsep.arrays import to_numpy
from eqsep.persistence.codecs import Codec, check, check_names
from eqsep.persistence.container import damaged
from eqsep.persistence.schema import Schema, Sizes, array, either, fits, instance, items, word

_NO_BIAS = word(None)
_LAYERS = instance(
    *("layers.Linear", "layers.RadialBasis", "layers.BatchNorm"),
    *("layers.Bump", "layers.LeakyReLU", "layers.Activate"),
)
_OUTPUTS = instance("layers.Linear", "layers.RadialBasis", "deep_sad.Distance")


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
    return next(iter(first.parameters())).shape[1]


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
_MAPS = array(None, None, None)
_ROWS = array(None, None)
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
        "eqsep.separators.deep_sad",
        {"centre": _ROWS},
        {},
        lambda cls, parts: cls(_tensor(parts["centre"])),
        needs_torch=True,
    ),
    "networks.Network": NetworkCodec("eqsep.networks.network", needs_torch=True),
}


def _tensor(values: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(values)
