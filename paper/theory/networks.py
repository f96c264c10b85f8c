"""What a fitted network can enclose: closing numbers layer by layer, and what it says far away."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from eqsep.networks import BatchNorm, Bump, RadialBasisLayer
from eqsep.theory import Closure, closing_number, is_closed

Array = NDArray[np.float64]
_DIRECTIONS = 256  # in which the growth of leaky units is watched
_TOLERANCE = 1e-9  # slopes that sum up to less than this share of their sizes cancel


@dataclass(frozen=True)
class Layer:
    """Units of k members side by side, as arrays.  (n, k, n_inputs) -> (n, k, n_units)

    A unit is scale · activation(w·x + b) + shift, with the distance ||x - w|| in place of w·x + b
    where the family is "rbf".
    """

    family: str  #: "equality", "halfspace" or "rbf".
    normals: Array  #: The normals w, or the centres of radial units: (k, n_units, n_inputs).
    offsets: Array  #: b, (k, n_units).
    activation: Callable[[Array], Array]  #: From signed distances (n, k, n_units) to values.
    scale: Any = 1.0  #: (k, n_units)
    shift: Any = 0.0

    def __call__(self, x: Array) -> Array:
        if self.family == "rbf":
            z = np.linalg.norm(x[:, :, None, :] - self.normals, axis=-1)
        else:
            z = np.einsum("nki,kui->nku", x, self.normals) + self.offsets
        return self.scale * self.activation(z) + self.shift

    def far_away(self) -> Array:
        """The outputs (1, k, n_units) where w·x + b is infinite for units that have a direction."""
        constant = ~self.normals.any(axis=-1) & (self.family != "rbf")
        z = np.where(constant, self.offsets, np.inf)[None]
        return self.scale * self.activation(z) + self.shift

    def keeps_growing(self) -> bool:
        """Whether the outputs grow with the inputs along almost every direction."""
        one, two = (self.activation(np.full((1, *self.offsets.shape), z)) for z in (-1.0, -2.0))
        return self.family == "halfspace" and bool((np.abs(two) > np.abs(one)).all())

    def growth(self, along: Array) -> Array:
        """The slopes of the outputs far along the slopes of the inputs, where outputs grow."""
        return self.scale * self.activation(self._slopes(along))

    def stands_still(self, along: Array) -> NDArray[np.bool_]:
        """Which members have a unit with a direction that some slopes do not move.  -> (k,)"""
        if self.family == "rbf":
            return (along == 0).all(axis=-1).any(axis=0)
        return ((self._slopes(along) == 0) & self.normals.any(axis=-1)).any(axis=(0, 2))

    def _slopes(self, along: Array) -> Array:
        """The slopes of w·x + b; 0 where those of the inputs cancel but for rounding."""
        slopes = np.einsum("nki,kui->nku", along, self.normals)
        sizes = np.einsum("nki,kui->nku", np.abs(along), np.abs(self.normals))
        return np.where(np.abs(slopes) <= _TOLERANCE * sizes, 0.0, slopes)

    def closure(self, member: int) -> Closure:
        """Whether the units of a member enclose a region of the inputs, with the proof."""
        normals = self.normals[member]
        turned = normals if self.family == "rbf" else normals[normals.any(axis=1)]
        if not len(turned):
            return Closure(False, self.family, escape=np.eye(normals.shape[1])[0])
        return is_closed(turned, family=self.family)


@dataclass(frozen=True)
class LayerClosedness:
    """Whether the units of a layer can enclose a region of its inputs, for each member."""

    name: str  #: "hidden 1", "hidden 2", …, "head".
    family: str
    n_inputs: int
    n_units: int
    closing_number: int  #: The fewest units that can enclose a region of so many inputs.
    closures: tuple[Closure, ...]  #: One a member; units whose weights are all zero are left out.

    @property
    def closed(self) -> NDArray[np.bool_]:
        """Which members enclose a region.  -> (k,)"""
        return np.array([closure.closed for closure in self.closures])


@dataclass(frozen=True)
class NetworkClosedness:
    """What the members of a network enclose, layer by layer, and what they say far away."""

    layers: tuple[LayerClosedness, ...]  #: From the first hidden layer to the head.
    #: (k,), the limit of each member's membership far away along almost every direction; NaN where
    #: it may depend on the direction, or where leaky units were found to cancel or to be constant.
    far_membership: Array

    @property
    def rejects_far_rows(self) -> NDArray[np.bool_]:
        """Which members call rows anomalous far away along almost every direction.  -> (k,)"""
        return self.far_membership < 0.5

    def __str__(self) -> str:
        heading = ("layer", "family", "inputs", "units", "closing number", "encloses a region")
        k = len(self.far_membership)
        facts = attrgetter("name", "family", "n_inputs", "n_units", "closing_number")
        rows = [(*facts(each), f"{each.closed.sum()} of {k} members") for each in self.layers]
        table = [tuple(map(str, row)) for row in (heading, *rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        known = self.far_membership[~np.isnan(self.far_membership)]
        far = (
            f"Far away, along almost every direction: mean membership {known.mean():.3f}, "
            f"{self.rejects_far_rows.sum()} of {k} members say anomaly."
            if len(known)
            else "Far away, the membership may depend on the direction."
        )
        return "\n".join([*lines, far])


def network_closedness(separator: Any) -> NetworkClosedness:
    """Which layers of a fitted network enclose a region, and what it says far away.

    Parameters
    ----------
    separator : NetworkSeparator
        Fitted.

    Notes
    -----
    A layer whose units do not enclose a region has directions in its inputs along which anomalies
    look like normal rows to all that follows. Whether the learnt normals enclose one is decided by
    their rank (bumps) or by a linear programme (halfspaces, each on the side where it is active).

    Far away bumps and radial functions vanish, and the layers behind turn the constant that remains
    into one membership; behind leaky units, where these keep growing along 256 directions, else NaN
    is given. Units that cancel within a cone that no direction hits are not found.

    Examples
    --------
    >>> from eqsep import NetworkSeparator
    >>> from eqsep.datasets import make_circles
    >>> split = make_circles(random_state=0)
    >>> network = NetworkSeparator(hidden=(5,), n_members=4, random_state=0)
    >>> print(network_closedness(network.fit(split.X_train, split.y_train)))
    layer     family    inputs  units  closing number  encloses a region
    hidden 1  equality  2       5      2               4 of 4 members
    head      equality  5       1      5               0 of 4 members
    Far away, along almost every direction: mean membership 0..., ... of 4 members say anomaly.
    """
    return closedness(plain_layers(separator.network_, separator.head_))


def closedness(layers: Sequence[Layer]) -> NetworkClosedness:
    """What layers enclose, the head last."""
    names = [*(f"hidden {i}" for i in range(1, len(layers))), "head"]
    reports = [
        LayerClosedness(
            name=name,
            family=layer.family,
            n_inputs=layer.normals.shape[2],
            n_units=layer.normals.shape[1],
            closing_number=closing_number(layer.family, layer.normals.shape[2]),
            closures=tuple(layer.closure(member) for member in range(len(layer.normals))),
        )
        for name, layer in zip(names, layers, strict=True)
    ]
    return NetworkClosedness(tuple(reports), _far_membership(layers))


def _far_membership(layers: Sequence[Layer]) -> Array:
    """What is left once the first layer that vanishes has done so.  -> (k,)"""
    k, _, n_inputs = layers[0].normals.shape
    along = np.random.default_rng(0).standard_normal((_DIRECTIONS, 1, n_inputs)).repeat(k, axis=1)
    for depth, layer in enumerate(layers):
        if layer.family != "halfspace":
            with np.errstate(invalid="ignore"):  # units that grow against one another leave NaN
                value = layer.far_away()
                for deeper in layers[depth + 1 :]:
                    value = deeper(value)
            return np.where(layer.stands_still(along), np.nan, value[0, :, 0])
        if not layer.keeps_growing():
            break
        along = layer.growth(along)
    return np.full(k, np.nan)


def plain_layers(network: Any, head: Any) -> list[Layer]:
    """The hidden layers and the head as arrays, batch normalisation worked into them."""
    hidden = [_plain_block(list(block)) for block in network.hidden]
    return [*hidden, _plain_layer(network.output, head.membership, family=head.family)]


def _plain_block(steps: list[Any]) -> Layer:
    """One hidden block: its units first, its activation there (RBF) or last."""
    active = steps[0] if isinstance(steps[0], RadialBasisLayer) else steps[-1]
    bump = isinstance(active, Bump)
    head = replace(active.head, sigma=_array(active.sigma)) if bump else active.head
    norm = next((map(_array, s.affine()) for s in steps if isinstance(s, BatchNorm)), (1.0, 0.0))
    scale, shift = norm
    return _plain_layer(steps[0], head, family=head.family, scale=scale, shift=shift)


def _plain_layer(units: Any, active: Any, *, family: str, scale: Any = 1, shift: Any = 0) -> Layer:
    """Normalisation goes into the normals, but stays behind the activation of radial units."""
    if isinstance(units, RadialBasisLayer):
        centres = _array(units.centre).swapaxes(1, 2)
        offsets = np.zeros(centres.shape[:2])
        return Layer(family, centres, offsets, active, scale=scale, shift=shift)
    normals = _array(units.weight).swapaxes(1, 2)
    bias = 0.0 if units.bias is None else _array(units.bias)
    offsets = np.broadcast_to(bias * scale + shift, normals.shape[:2])
    return Layer(family, normals * np.asarray(scale)[..., None], offsets, active)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
