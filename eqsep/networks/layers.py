"""Layers and networks with a member axis.  (n, k, d_in) -> (n, k, d_out)"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Generator, Tensor, nn

from eqsep import activations
from eqsep.errors import UserError

Streams = Sequence[Generator]  # one a member
Members = Streams | None  # these, or torch's own


class Linear(nn.Module):
    """x W + b: k linear maps side by side.  (n, k, d_in) -> (n, k, d_out)"""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        *,
        n_members: int | None = None,
        members: Members = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(_glorot(d_in, d_out, n_members=n_members, members=members))
        self.bias = nn.Parameter(torch.zeros_like(self.weight[..., 0, :])) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        z = _product(x, self.weight)
        return z if self.bias is None else z + self.bias


class RadialBasisLayer(nn.Module):
    """exp(-gamma ||x - c||²), or ||x - c||, of learnt centres c.  (n, k, d_in) -> (n, k, d_out)"""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        *,
        n_members: int | None = None,
        members: Members = None,
        head: activations.RadialBasis | None = None,
        distance: bool = False,
    ) -> None:
        super().__init__()
        self.centre = nn.Parameter(_glorot(d_in, d_out, n_members=n_members, members=members))
        self.head = activations.RadialBasis() if head is None else head
        self.distance = distance

    def forward(self, x: Tensor) -> Tensor:
        square = (x**2).sum(-1, keepdim=True) - 2 * _product(x, self.centre)
        square = square + (self.centre**2).sum(-2)
        r = torch.sqrt(square.clamp_min(0) + 1e-12)  # so that the root has a slope at zero
        return r if self.distance else self.head(r)


class Bump(nn.Module):
    """A bump of each input, with a sigma a layer and member, fixed or learnt.  (…, d) -> (…, d)"""

    def __init__(
        self,
        head: activations.GaussianBump | activations.TanhBump | None = None,
        *,
        sigma: float | None = None,
        learn_sigma: bool = False,
        n_members: int | None = None,
    ) -> None:
        super().__init__()
        self.head = activations.GaussianBump() if head is None else head
        start = torch.as_tensor(float(self.head.sigma if sigma is None else sigma))
        start = start if n_members is None else start.repeat(n_members, 1)
        self.sigma = nn.Parameter(start, requires_grad=learn_sigma)

    def forward(self, z: Tensor) -> Tensor:
        return replace(self.head, sigma=self.sigma)(z)


class Activate(nn.Module):
    """Any activation of each input.  (…, d) -> (…, d)"""

    def __init__(self, head: activations.Activation) -> None:
        super().__init__()
        self.head = head

    def forward(self, z: Tensor) -> Tensor:
        return self.head(z)


class LeakyReLULayer(nn.Module):
    """max(z, leak z), in torch's own kernel.  (…, d) -> (…, d)"""

    def __init__(self, head: activations.LeakyReLU | None = None) -> None:
        super().__init__()
        self.head = activations.LeakyReLU() if head is None else head

    def forward(self, z: Tensor) -> Tensor:
        return nn.functional.leaky_relu(z, self.head.leak)


class BatchNorm(nn.Module):
    """Each column of each member to mean 0, variance 1 over the batch.  (n, k, d) -> (n, k, d)"""

    mean: Tensor
    variance: Tensor

    def __init__(
        self, d: int, *, n_members: int | None = None, momentum: float = 0.99, eps: float = 1e-3
    ) -> None:
        super().__init__()
        shape = (d,) if n_members is None else (n_members, d)
        self.weight, self.bias = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("variance", torch.ones(shape))
        self.momentum, self.eps = momentum, eps

    def affine(self) -> tuple[Tensor, Tensor]:
        """The scale and the shift of what it does once it has been learnt."""
        scale = self.weight * torch.rsqrt(self.variance + self.eps)
        return scale, self.bias - self.mean * scale

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            scale, shift = self.affine()
            return x * scale + shift
        shaped = x.flatten(1), self.weight.flatten(), self.bias.flatten()
        y, mean, inverse = torch.native_batch_norm(*shaped, None, None, True, 0.0, self.eps)
        with torch.no_grad():
            self.mean.lerp_(mean.view_as(self.mean), 1 - self.momentum)
            variance = inverse**-2 - self.eps  # over n rows, not n - 1
            self.variance.lerp_(variance.view_as(self.variance), 1 - self.momentum)
        return y.view_as(x)


class Distance(nn.Module):
    """||x - c|| of fixed centres c, at least a little above zero.  (n, k, d) -> (n, k, 1)"""

    centre: Tensor

    guard = 1e-3  # a row on the centre itself counts as so far away: 1 / distance stays finite

    def __init__(self, centre: Tensor) -> None:
        super().__init__()
        self.register_buffer("centre", centre)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sqrt(((x - self.centre) ** 2).sum(dim=-1, keepdim=True) + self.guard**2)


@dataclass(frozen=True)
class Hidden:
    """What the hidden layers of a network are made of."""

    widths: Sequence[int]
    activation: Any
    learn_sigma: bool = False
    batch_norm: bool = True

    @property
    def vanishes(self) -> bool:
        """Whether far away, along almost every direction, the last of them is the zero vector."""
        shifted = self.batch_norm and self.activation.family == "rbf"
        return len(self.widths) == 1 and self.activation.vanishes and not shifted

    def block(self, d_in: int, d_out: int, members: Streams) -> nn.Sequential:
        """One hidden layer: normalised before the activation, after it where that is an RBF."""
        norm = [BatchNorm(d_out, n_members=len(members))] if self.batch_norm else []
        if self.activation.family == "rbf":
            units = RadialBasisLayer(d_in, d_out, members=members, head=self.activation)
            return nn.Sequential(units, *norm)
        linear = Linear(d_in, d_out, members=members, bias=not norm)
        active: nn.Module = Activate(self.activation)
        if self.activation.has_sigma:
            active = Bump(self.activation, learn_sigma=self.learn_sigma, n_members=len(members))
        elif type(self.activation) is activations.LeakyReLU:
            active = LeakyReLULayer(self.activation)
        return nn.Sequential(linear, *norm, active)

    def blocks(self, d_in: int, members: Streams) -> nn.Sequential:
        """All hidden layers, from `d_in` columns on."""
        steps = zip([d_in, *self.widths], self.widths, strict=False)
        return nn.Sequential(*(self.block(a, b, members) for a, b in steps))


class Network(nn.Module):
    """k networks side by side, from shared rows to their outputs.  (n, d_in) -> (n, k, d_out)"""

    def __init__(self, hidden: nn.Module, output: nn.Module) -> None:
        super().__init__()
        self.hidden, self.output = hidden, output

    def features(self, x: Tensor) -> Tensor:
        """The last hidden layer, where the separating surface lies.  (n, d_in) -> (n, k, h)"""
        return self.hidden(x[:, None, :])

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.features(x))

    def keep(self, rows: Tensor) -> Self:
        """Keep only the members `rows`: every tensor has them on its first axis."""
        return self.restore({name: t[rows].clone() for name, t in self.state_dict().items()})

    def restore(self, state: dict[str, Tensor]) -> Self:
        """Take over the members of `state`, however many they are."""
        for name, tensor in state.items():
            *path, last = name.split(".")
            module = self.get_submodule(".".join(path))
            learnt = dict(module.named_parameters(recurse=False)).get(last)
            kept = tensor if learnt is None else nn.Parameter(tensor, learnt.requires_grad)
            setattr(module, last, kept)
        return self

    def penalised(self) -> list[nn.Parameter]:
        """The weight matrices of the linear maps: what an L2 penalty shrinks, and nothing else."""
        return [m.weight for m in self.modules() if isinstance(m, Linear)]

    def sigmas(self) -> Tensor:
        """The widths of the hidden bumps.  -> (layers, k)"""
        widths = [m.sigma.detach()[:, 0] for m in self.hidden.modules() if isinstance(m, Bump)]
        return torch.stack(widths) if widths else torch.empty(0, 0)


def member_streams(n_members: int, rng: np.random.RandomState) -> list[Generator]:
    """A torch stream for each member, the same however many there are; uses one number of `rng`."""
    seeds = np.random.RandomState(rng.randint(2**31 - 1)).randint(2**31 - 1, size=n_members)
    return [Generator().manual_seed(int(seed)) for seed in seeds]


def build_separator(
    d_in: int, hidden: Hidden, head: activations.Head, *, members: Streams, closed: bool = False
) -> Network:
    """Networks that end in one signed distance (or, for an RBF head, one distance) a member.

    With `closed`, where the hidden layers vanish far away, the last bias of an equality head is not
    learnt: it holds far rows off the hyperplane, at twice the distance of membership 1/2.
    """
    blocks = hidden.blocks(d_in, members)
    last = [d_in, *hidden.widths][-1]
    if head.family == "rbf":
        return Network(blocks, RadialBasisLayer(last, 1, members=members, distance=True))
    output = Linear(last, 1, members=members)
    if closed and head.family == "equality" and hidden.vanishes:
        held = torch.full((len(members), 1), 2 * head.half_width)
        output.bias = nn.Parameter(held, requires_grad=False)
    return Network(blocks, output)


def _glorot(d_in: int, d_out: int, *, n_members: int | None, members: Members) -> Tensor:
    """Glorot's uniform start, drawn for each member from its own stream.  -> (k, d_in, d_out)"""
    if members is not None and n_members not in (None, len(members)):
        raise UserError(
            f"members must hold a stream for each member: expected {n_members} (n_members), "
            f"got {len(members)}. Leave out n_members to go by the streams."
        )
    limit = math.sqrt(6 / (d_in + d_out))
    streams = [None] * (n_members or 1) if members is None else members
    drawn = [torch.rand((d_in, d_out), generator=stream) for stream in streams]
    start = (2 * torch.stack(drawn) - 1) * limit
    return start[0] if n_members is None and members is None else start


def _product(x: Tensor, weight: Tensor) -> Tensor:
    """x W for each member; a shared x is one matrix product for all of them."""
    if weight.ndim == 2:
        return x @ weight
    if x.shape[1] == 1:
        k, d_in, d_out = weight.shape
        return (x[:, 0] @ weight.permute(1, 0, 2).reshape(d_in, k * d_out)).view(len(x), k, d_out)
    return torch.bmm(x.transpose(0, 1), weight).transpose(0, 1)
