"""Networks as plain arrays, for whoever wants to reason about them without torch."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from eqsep.networks.layers import BatchNorm, Bump, RadialBasis
from eqsep.networks.network import Network
from eqsep.theory import Layer


class _Affine(NamedTuple):
    """scale · z + shift, as batch normalisation does once it has been learnt."""

    scale: Any = 1.0
    shift: Any = 0.0


_AS_IT_IS = _Affine()


def plain_layers(network: Network, head: Any) -> list[Layer]:
    """The hidden layers and the head of `network`, batch normalisation worked into them."""
    hidden = [_hidden(list(block)) for block in network.hidden]
    return [*hidden, _layer(network.output, head.membership, family=head.family)]


def _hidden(steps: list[Any]) -> Layer:
    """One hidden block: its units first, its activation there (RBF) or last."""
    units = steps[0]
    active = units if isinstance(units, RadialBasis) else steps[-1]
    bump = isinstance(active, Bump)
    head = replace(active.head, sigma=_array(active.sigma)) if bump else active.head
    norm = next((_learnt(step) for step in steps if isinstance(step, BatchNorm)), _AS_IT_IS)
    return _layer(units, head, family=head.family, norm=norm)


def _layer(units: Any, activation: Any, *, family: str, norm: _Affine = _AS_IT_IS) -> Layer:
    """Normalisation goes into the normals, but stays behind the activation of radial units."""
    if isinstance(units, RadialBasis):
        centres = _array(units.centre).swapaxes(1, 2)
        offsets = np.zeros(centres.shape[:2])
        return Layer(family, centres, offsets, activation, scale=norm.scale, shift=norm.shift)
    normals = _array(units.weight).swapaxes(1, 2)
    bias = 0.0 if units.bias is None else _array(units.bias)
    offsets = np.broadcast_to(bias * norm.scale + norm.shift, normals.shape[:2])
    return Layer(family, normals * np.asarray(norm.scale)[..., None], offsets, activation)


def _learnt(norm: BatchNorm) -> _Affine:
    scale = norm.weight * torch.rsqrt(norm.variance + norm.eps)
    return _Affine(_array(scale), _array(norm.bias - norm.mean * scale))


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
