"""Feed-forward networks put together from the layers, each member from its own stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Generator, Tensor, nn

from eqsep import activations
from eqsep.networks.layers import Activate, BatchNorm, Bump, LeakyReLU, Linear, RadialBasis

_OWN_KERNEL: dict[type, Any] = {activations.LeakyReLU: LeakyReLU}  # the others call the formula


@dataclass(frozen=True)
class Hidden:
    """What the hidden layers of a network are made of."""

    widths: Sequence[int]
    activation: Any
    learn_sigma: bool = False
    batch_norm: bool = True

    @property
    def vanishes(self) -> bool:
        """Whether far away, along almost every direction, the last of them is the zero vector.

        So it is for one layer of bumps, or of RBFs unless normalised; a second one shifts it.
        """
        shifted = self.batch_norm and self.activation.family == "rbf"
        return len(self.widths) == 1 and self.activation.vanishes and not shifted

    def block(self, d_in: int, d_out: int, members: Sequence[Generator]) -> nn.Sequential:
        """One hidden layer: normalised before the activation, after it where that is an RBF."""
        norm = [BatchNorm(d_out, n_members=len(members))] if self.batch_norm else []
        if self.activation.family == "rbf":
            return nn.Sequential(
                RadialBasis(d_in, d_out, members=members, head=self.activation), *norm
            )
        return nn.Sequential(
            Linear(d_in, d_out, members=members, bias=not norm), *norm, self._activate(len(members))
        )

    def blocks(self, d_in: int, members: Sequence[Generator]) -> nn.Sequential:
        """All hidden layers, from `d_in` columns on."""
        steps = zip([d_in, *self.widths], self.widths, strict=False)
        return nn.Sequential(*(self.block(a, b, members) for a, b in steps))

    def _activate(self, n_members: int) -> nn.Module:
        if self.activation.has_sigma:
            return Bump(self.activation, learn_sigma=self.learn_sigma, n_members=n_members)
        return _OWN_KERNEL.get(type(self.activation), Activate)(self.activation)


class Network(nn.Module):
    """k networks side by side, from shared rows to what each makes of them.

    (n, d_in) -> (n, k, d_out)
    """

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
    """A torch stream for each member, which company does not change.

    One number of `rng` is used, whatever `n_members`: what is drawn after it stays the same too.
    """
    seeds = np.random.RandomState(rng.randint(2**31 - 1)).randint(2**31 - 1, size=n_members)
    return [Generator().manual_seed(int(seed)) for seed in seeds]


def build_separator(
    d_in: int,
    hidden: Hidden,
    head: activations.Head,
    *,
    members: Sequence[Generator],
    closed: bool = False,
) -> Network:
    """Networks that end in one signed distance (or, for an RBF head, one distance) a member.

    With `closed`, the last bias of an equality head is not learnt where the hidden layers vanish
    far away: it holds the zero vector they leave, and so every far row, off the hyperplane, at
    twice the distance where the membership is 1/2.
    """
    blocks = hidden.blocks(d_in, members)
    last = [d_in, *hidden.widths][-1]
    if head.family == "rbf":
        return Network(blocks, RadialBasis(last, 1, members=members, distance=True))
    output = Linear(last, 1, members=members)
    if closed and head.family == "equality" and hidden.vanishes:
        held = torch.full((len(members), 1), 2 * head.half_width)
        output.bias = nn.Parameter(held, requires_grad=False)
    return Network(blocks, output)
