"""The steps in NumPy are torch's steps, to the rounding of single precision."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from eqsep import activations
from eqsep.losses import LogisticLoss, SquaredLoss
from eqsep.networks import (
    Data,
    Distance,
    Hidden,
    Linear,
    Network,
    Training,
    build_separator,
    member_streams,
    train,
)
from eqsep.networks.backpropagation import ArraySteps, Unknown
from eqsep.networks.steps import Steps, steps_for
from eqsep.networks.training import Attraction, MembershipLoss, Reconstruction
from eqsep.separators.deep_sad import build_autoencoder

N, D, K = 90, 7, 3
PLAN = Training(batch_size=16, l2=0.01, learning_rate=1e-3, decay=0.9, decay_steps=3)
HEADS = [
    activations.GaussianBump(0.5, mu=0.2),
    activations.Sigmoid(),
    activations.RadialBasis(0.1),
]
ACTIVATIONS = [
    activations.GaussianBump(0.5, mu=0.1),
    activations.LeakyReLU(),
    activations.Sigmoid(),
    activations.RadialBasis(0.3),
]
LOSSES = [LogisticLoss(), SquaredLoss()]


def streams(k=K):
    return member_streams(k, np.random.RandomState(1))


def problem(*, head=HEADS[0], loss=LOSSES[0]):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn((N, D), generator=generator)
    weight = 0.5 + torch.rand((N, 1), generator=generator)
    data = Data(X, torch.arange(N), torch.arange(0))
    return data, MembershipLoss((X[:, :1].abs() < 0.7).float(), weight, loss, head)


def separators(hidden, head=HEADS[0], count=2, **settings):
    """As many of the same start."""
    made = (build_separator(D, hidden, head, members=streams(), **settings) for _ in range(count))
    return [network.train() for network in made]


def assert_same_steps(networks, data, criterion, *, epochs=2):
    """Both ways have the same losses, weights and statistics; the last batch is a small one."""
    makers = zip((Steps, ArraySteps), networks, strict=True)
    by_torch, ours = (make(network, data, criterion, PLAN) for make, network in makers)
    for _ in range(epochs):
        expected, found = (steps.epoch(data.rows) for steps in (by_torch, ours))
        assert_allclose(found, expected.detach(), rtol=1e-5)
    before, after = (network.state_dict() for network in networks)
    for name, tensor in before.items():
        assert_allclose(after[name], tensor, atol=5e-6, err_msg=name)


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("batch_norm", [False, True], ids=["plain", "normalised"])
def test_separators_take_torchs_steps(head, activation, loss, batch_norm):
    hidden = Hidden((6, 5), activation, learn_sigma=True, batch_norm=batch_norm)
    assert_same_steps(separators(hidden, head), *problem(head=head, loss=loss))


@pytest.mark.parametrize("head", [*HEADS, activations.TanhBump(0.7)], ids=repr)
@pytest.mark.parametrize("activation", [*ACTIVATIONS, activations.TanhBump(0.8)], ids=repr)
def test_slopes_are_those_of_torch(head, activation):
    """Of tanh bumps too, whose logarithms are so steep that Adam's first steps are rounding."""
    data, criterion = problem(head=head, loss=SquaredLoss())
    hidden = Hidden((6, 5), activation, learn_sigma=True, batch_norm=False)
    by_torch, ours = separators(hidden, head)
    criterion(by_torch(data.X), data.rows).sum().backward()
    steps = ArraySteps(ours, data, criterion, Training(batch_size=N, learning_rate=0.0))
    steps.epoch(data.rows)
    slopes = {
        id(tensor): slope
        for part in steps._parts
        for tensor, slope in zip(part.tensors, part.slopes, strict=True)
    }
    for (name, expected), own in zip(by_torch.named_parameters(), ours.parameters(), strict=True):
        size = float(expected.grad.abs().max())
        assert_allclose(N * slopes[id(own)], expected.grad, atol=1e-4 * size + 1e-5, err_msg=name)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
@pytest.mark.parametrize("linear_code", [False, True], ids=["code", "linear code"])
def test_autoencoders_and_their_encoders_take_torchs_steps(activation, linear_code):
    data, _ = problem()
    # Normalisation takes a bias before it away: its slope is rounding, which Adam makes large.
    hidden = Hidden((6,), activation, batch_norm=not linear_code)
    built = [
        build_autoencoder(D, hidden, code=4, linear_code=linear_code, members=streams()).train()
        for _ in range(2)
    ]
    assert_same_steps(built, data, Reconstruction(data.X))
    far, weight = data.X[:, :1] > 0.5, torch.full((N, 1), 0.7)
    encoders = [Network(network.hidden, Distance(torch.full((K, 4), 0.1))) for network in built]
    assert_same_steps([network.train() for network in encoders], data, Attraction(far, weight))


def test_what_is_held_stays_as_it_is():
    hidden = Hidden((6,), ACTIVATIONS[0], batch_norm=False)
    networks = separators(hidden, closed=True)
    held = networks[0].output.bias.detach().clone()
    assert_same_steps(networks, *problem())
    assert torch.equal(networks[1].output.bias, held)
    assert torch.equal(networks[1].hidden[0][1].sigma, torch.full((K, 1), 0.5))


def test_members_that_go_on_keep_their_moments():
    data, criterion = problem()
    (together,), (rest,) = (separators(Hidden((6,), ACTIVATIONS[0]), count=1) for _ in range(2))
    all_steps, fewer = (ArraySteps(net, data, criterion, PLAN) for net in (together, rest))
    going = torch.tensor([True, False, True])
    for steps in (all_steps, fewer):
        steps.epoch(data.rows)
    rest.keep(going)
    fewer.renew(going)
    for steps in (all_steps, fewer):
        steps.epoch(data.rows)
    for name, tensor in rest.state_dict().items():
        assert torch.equal(tensor, together.state_dict()[name][going]), name


def test_threads_and_company_change_nothing(monkeypatch):
    """Whether alone or with others, in one thread or in two: the same bits."""

    def trained(k, threads):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        data, criterion = problem()
        hidden = Hidden((200,), ACTIVATIONS[0])
        network = build_separator(D, hidden, HEADS[0], members=streams(k))
        train(
            network,
            Data(data.X, torch.arange(80), torch.arange(80, N)),
            criterion,
            training=Training(epochs=8, batch_size=16, patience=8),
            generator=torch.Generator().manual_seed(0),
        )
        return network.state_dict()

    one, two, fewer = trained(4, 1), trained(4, 2), trained(2, 1)
    for name, tensor in one.items():
        assert torch.equal(tensor, two[name]), name
        assert torch.equal(tensor[:2], fewer[name]), name


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_a_loss_that_is_not_finite_is_not_hidden(activation):
    data, criterion = problem()
    data.X[3, 2] = torch.nan
    (network,) = separators(Hidden((6,), activation), count=1)
    steps = ArraySteps(network, data, criterion, PLAN)
    assert not torch.isfinite(steps.epoch(data.rows)).any()
    assert any(torch.isnan(p).any() for p in network.parameters())


class Doubled(Linear):
    """Somebody else's, which may do anything."""


def test_a_layer_without_slopes_goes_by_torch():
    data, criterion = problem()
    network = Network(torch.nn.Sequential(), Doubled(D, 1, members=streams())).train()
    with pytest.raises(Unknown, match="no slopes are known of Doubled"):
        ArraySteps(network, data, criterion, PLAN)
    assert type(steps_for(network, data, criterion, PLAN)) is Steps


def test_a_rule_without_a_logarithm_takes_torchs_steps():
    head = activations.Ridge()
    hidden = Hidden((6,), ACTIVATIONS[0])
    assert_same_steps(separators(hidden, head), *problem(head=head, loss=SquaredLoss()))


def test_double_precision_and_criteria_of_others_go_by_torch():
    data, criterion = problem()
    (network,) = separators(Hidden((6,), ACTIVATIONS[0]), count=1)
    assert type(steps_for(network, data, criterion, PLAN)) is ArraySteps
    assert type(steps_for(network, data, lambda *batch: criterion(*batch), PLAN)) is Steps
    in_double = Data(data.X.double(), *data[1:])
    assert type(steps_for(network.double(), in_double, criterion, PLAN)) is Steps
