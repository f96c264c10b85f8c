"""The layers, the loop and its bookkeeping, without an estimator around them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from eqsep import activations
from eqsep.losses import LogisticLoss, SquaredLoss
from eqsep.networks import (
    BatchNorm,
    Bump,
    Data,
    Hidden,
    LeakyReLULayer,
    Linear,
    RadialBasisLayer,
    Training,
    build_separator,
    member_streams,
    train,
)
from eqsep.networks.steps import Steps
from eqsep.networks.trainer import class_weights, fit_members, hold_out

HEADS = [activations.GaussianBump(0.5), activations.Sigmoid(), activations.RadialBasis()]
ACTIVATIONS = [
    activations.GaussianBump(0.5),
    activations.TanhBump(0.7),
    activations.LeakyReLU(),
    activations.RadialBasis(),
]
UNUSUAL = [activations.Sigmoid(), activations.Ridge()]
K, N, D = 3, 40, 4


def streams(k=K, seed=0):
    return member_streams(k, np.random.RandomState(seed))


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def problem(seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn((N, D), generator=generator)
    inside = (X[:, 0].abs() < 0.7).float()[:, None]
    return X, inside


def criterion_of(inside, head, loss=None):
    loss = LogisticLoss() if loss is None else loss
    return lambda output, index: loss(output[..., 0], inside[index], head=head)


def fitted(k, *, hidden=None, head=HEADS[0], members=None, **plan):
    """A network trained on the small problem, and its history."""
    X, inside = problem()
    hidden = Hidden((5,), ACTIVATIONS[0]) if hidden is None else hidden
    network = build_separator(D, hidden, head, members=streams(k) if members is None else members)
    data = Data(X, torch.arange(30), torch.arange(30, N))
    history = train(
        network,
        data,
        criterion_of(inside, head),
        training=Training(
            **{"epochs": 30, "batch_size": 8, "patience": 3, "learning_rate": 1e-3} | plan
        ),
        generator=torch.Generator().manual_seed(1),
    )
    return network, history


@pytest.mark.parametrize("make", [Linear, RadialBasisLayer], ids=lambda m: m.__name__)
def test_each_member_is_the_layer_without_a_member_axis(make):
    together = make(D, 2, members=streams())
    x = drawn(N, K, D)
    out = together(x)
    assert out.shape == (N, K, 2)
    for i in range(K):
        alone = make(D, 2)
        alone.load_state_dict({name: t[i] for name, t in together.state_dict().items()})
        assert_allclose(out[:, i].detach(), alone(x[:, i]).detach(), atol=1e-5)


@pytest.mark.parametrize("make", [Linear, RadialBasisLayer], ids=lambda m: m.__name__)
def test_a_shared_input_is_the_same_input_for_every_member(make):
    layer, x = make(D, 2, members=streams()), drawn(N, 1, D)
    assert_allclose(layer(x).detach(), layer(x.repeat(1, K, 1)).detach(), atol=1e-5)


@pytest.mark.parametrize("make", [Linear, RadialBasisLayer], ids=lambda m: m.__name__)
def test_members_are_counted_or_brought_with_their_streams(make):
    counted, x = make(D, 2, n_members=K), drawn(N, 1, D)
    assert counted(x).shape == (N, K, 2)
    assert counted(x)[0].std(dim=0).min() > 0, "each member starts elsewhere"
    assert make(D, 2, n_members=1)(x).shape == (N, 1, 2)
    both = make(D, 2, n_members=K, members=streams())
    assert_allclose(both(x).detach(), make(D, 2, members=streams())(x).detach())
    with pytest.raises(ValueError, match=r"expected 2 \(n_members\), got 3"):
        make(D, 2, n_members=2, members=streams())


def test_all_layers_take_n_members_and_go_on_one_another():
    layers = nn.Sequential(
        RadialBasisLayer(D, 5, n_members=K),
        BatchNorm(5, n_members=K),
        Linear(5, 2, n_members=K),
        Bump(learn_sigma=True, n_members=K),
    )
    assert layers(drawn(N, 1, D)).shape == (N, K, 2)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=repr)
def test_batch_normalisation_follows_radial_units_and_goes_before_other_activations(activation):
    block = Hidden((5,), activation).block(D, 5, streams())
    x = drawn(N, 1, D)
    at = 1 if activation.family == "rbf" else 2
    normal = block[:at](x) if at == 2 else block(x)
    assert_allclose(normal.mean(dim=0).detach(), 0, atol=1e-5)
    assert_allclose(normal.var(dim=0, correction=0).detach(), 1, atol=0.3)
    if activation.family == "rbf":
        units = block[0](x)
        assert units.min() >= 0, "the activation comes first"
        assert not torch.allclose(normal, units)


def test_the_radial_basis_layer_is_the_formula():
    layer, x = RadialBasisLayer(D, 2), drawn(N, D)
    square = ((x[:, :, None] - layer.centre) ** 2).sum(dim=1)
    assert_allclose(layer(x).detach(), torch.exp(-square).detach(), atol=1e-6)
    distance = RadialBasisLayer(D, 2, distance=True)
    distance.load_state_dict(layer.state_dict())
    assert_allclose(distance(x).detach(), square.sqrt().detach(), rtol=1e-4)


def test_a_bump_goes_into_anybodys_model_and_learns_its_width():
    model = nn.Sequential(nn.Linear(D, 3), Bump(sigma=0.5, learn_sigma=True), nn.Linear(3, 1))
    model(drawn(N, D)).sum().backward()
    assert model[1].sigma.grad is not None
    assert model[1].sigma.grad != 0
    fixed = Bump(activations.TanhBump(sigma=2.0))
    assert not fixed.sigma.requires_grad
    z = torch.linspace(-3, 3, 7)
    assert_allclose(fixed(z).detach(), torch.tanh((2 / z.where(z != 0, 1e-9)) ** 2), atol=1e-6)


def test_leaky_relu_keeps_its_leak():
    assert_allclose(
        LeakyReLULayer(activations.LeakyReLU(0.1))(torch.tensor([-1.0, 2.0])), [-0.1, 2.0]
    )


def test_batch_norm_is_torchs_for_every_member():
    x = drawn(N, K, D) * 3 + 1
    ours = BatchNorm(D, n_members=K, momentum=0.9)
    for _ in range(3):
        out = ours(x)
    variance = 1 * 0.9**3 + x.var(dim=0, correction=0) * (1 - 0.9**3)  # over n rows, not n - 1
    assert_allclose(ours.variance, variance, rtol=1e-5)
    for i in range(K):
        theirs = nn.BatchNorm1d(D, eps=1e-3, momentum=0.1)
        for _ in range(3):
            expected = theirs(x[:, i])
        assert_allclose(out[:, i].detach(), expected.detach(), atol=1e-5)
        assert_allclose(ours.mean[i], theirs.running_mean, rtol=1e-5)
    ours.eval()
    assert_allclose(ours(x[:1]).detach(), ours(x)[:1].detach(), atol=1e-6)


def test_batch_norm_takes_a_batch_of_one_row_for_its_own_mean():
    ours = BatchNorm(D, n_members=K)
    assert_allclose(ours(drawn(1, K, D)).detach(), np.zeros((1, K, D)), atol=1e-4)
    assert_allclose(ours.variance, np.full((K, D), 0.99), atol=1e-6)


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("activation", [*ACTIVATIONS, *UNUSUAL], ids=repr)
@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss()], ids=repr)
def test_gradients_agree_with_finite_differences(head, activation, loss):
    X, inside = problem()
    network = build_separator(
        D, Hidden((3, 2), activation, learn_sigma=True), head, members=streams(2)
    ).double()
    criterion, rows = criterion_of(inside.double(), head, loss), torch.arange(12)

    def value():
        return criterion(network(X[rows].double()), rows).sum()

    value().backward()
    for parameter in network.parameters():
        flat = parameter.data.view(-1)
        for at in {0, len(flat) // 2, len(flat) - 1}:
            before, step = flat[at].item(), 1e-6
            sides = []
            for moved in (before + step, before - step):
                flat[at] = moved
                sides.append(value().item())
            flat[at] = before
            slope = (sides[0] - sides[1]) / (2 * step)
            assert parameter.grad.view(-1)[at].item() == pytest.approx(slope, rel=2e-4, abs=2e-6)


@pytest.mark.parametrize(
    "activation",
    [
        ACTIVATIONS[0],
        *(pytest.param(one, marks=pytest.mark.extra) for one in ACTIVATIONS[1:-1]),
        ACTIVATIONS[-1],  # without batch normalisation
    ],
    ids=repr,
)
def test_members_never_mix(activation):
    """Trained as one or each on its own from the same start, the weights are the same."""
    normalised = activation.family != "rbf"
    hidden = Hidden((5, 5), activation, learn_sigma=True, batch_norm=normalised)
    together, history = fitted(K, hidden=hidden, patience=6)
    assert len(set(history.best_epoch.tolist())) > 1, "the members stop at different times"
    for i in range(K):
        alone, own = fitted(1, hidden=hidden, patience=6, members=[streams()[i]])
        assert own.best_epoch[0] == history.best_epoch[i]
        for name, tensor in alone.state_dict().items():
            assert_allclose(together.state_dict()[name][i], tensor[0], atol=1e-4)


def test_the_first_members_do_not_depend_on_how_many_there_are():
    few, many = streams(2), streams(5)
    for a, b in zip(few, many, strict=False):
        assert_allclose(torch.rand(3, generator=a), torch.rand(3, generator=b))


def test_every_member_ends_with_the_weights_of_its_best_epoch():
    network, history = fitted(K, epochs=60)
    X, inside = problem()
    held_out = torch.arange(30, N)
    with torch.no_grad():
        loss = criterion_of(inside, HEADS[0])(network(X[held_out]), held_out).mean(dim=0)
    assert_allclose(loss, np.nanmin(history.validation_loss, axis=0), rtol=1e-5)
    best = np.nanargmin(history.validation_loss, axis=0)
    assert history.best_epoch.tolist() == best.tolist()


def test_a_member_stops_after_its_patience_and_the_history_says_so():
    _, history = fitted(K, epochs=200, patience=3)
    ran = (~np.isnan(history.loss)).sum(axis=0)
    assert (ran == np.minimum(history.best_epoch + 1 + 3, 200)).all()
    assert len(history.loss) == ran.max() < 200
    assert history.sigma.shape == (len(history.loss), 1, K)


def test_members_that_have_stopped_cost_nothing_more():
    seen = []
    X, inside = problem()
    network = build_separator(D, Hidden((5,), ACTIVATIONS[0]), HEADS[0], members=streams(6))

    def criterion(output, index):
        seen.append(output.shape[1])
        return criterion_of(inside, HEADS[0])(output, index)

    train(
        network,
        Data(X, torch.arange(30), torch.arange(30, N)),
        criterion,
        training=Training(epochs=300, batch_size=8, patience=2),
        generator=torch.Generator().manual_seed(1),
    )
    assert seen[0] == 6
    assert seen[-1] < 6
    assert sorted(seen, reverse=True) == seen


def test_without_rows_held_out_all_epochs_are_used_and_the_last_weights_kept():
    X, inside = problem()
    network = build_separator(D, Hidden((5,), ACTIVATIONS[0]), HEADS[0], members=streams())
    history = train(
        network,
        Data(X, torch.arange(N), torch.arange(0)),
        criterion_of(inside, HEADS[0]),
        training=Training(epochs=7, batch_size=8),
        generator=torch.Generator().manual_seed(1),
    )
    assert history.best_epoch.tolist() == [6] * K
    assert np.isnan(history.validation_loss).all()
    assert history.validation_loss.shape == history.loss.shape == (7, K)


def test_a_penalty_shrinks_the_weights_and_decay_slows_them():
    def size(**plan):
        network, _ = fitted(K, patience=30, **plan)
        return float(network.output.weight.detach().square().sum())

    assert size(l2=1.0) < size()
    start = build_separator(D, Hidden((5,), ACTIVATIONS[0]), HEADS[0], members=streams())
    frozen, _ = fitted(K, decay=0.0, decay_steps=1, patience=30)
    moved = (frozen.output.weight - start.output.weight).abs().max()
    assert moved <= 1.1e-3, "one step of Adam at 1e-3, then a rate of zero"


@pytest.mark.parametrize("activation", [ACTIVATIONS[0], ACTIVATIONS[3]], ids=repr)
def test_the_penalty_is_l2_times_the_square_of_the_weight_matrices_alone(activation):
    """Five steps are those of Adam on the loss with the penalty written out."""
    X, inside = problem()
    l2, hidden = 0.3, Hidden((5, 4), activation, learn_sigma=True)
    ours, theirs = (
        build_separator(D, hidden, HEADS[0], members=streams()).double() for _ in range(2)
    )
    data = Data(X.double(), torch.arange(N), torch.arange(0))
    criterion, order = criterion_of(inside.double(), HEADS[0]), torch.arange(N)
    plan = Training(batch_size=8, l2=l2, learning_rate=1e-2)
    Steps(ours.train(), data, criterion, plan).epoch(order)
    adam = torch.optim.Adam(theirs.train().parameters(), lr=1e-2)
    matrices = [p for name, p in theirs.named_parameters() if p.ndim == 3 and "centre" not in name]
    assert matrices
    for index in order.split(8):
        loss = criterion(theirs(data.X[index]), index).sum() / 8
        adam.zero_grad()
        (loss + l2 * sum((w**2).sum() for w in matrices)).backward()
        adam.step()
    for name, tensor in theirs.state_dict().items():
        assert_allclose(ours.state_dict()[name], tensor, atol=1e-9, err_msg=name)


def test_a_seed_gives_the_same_weights():
    first, second = (fitted(K)[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def nan_for(members, until=10**9):
    """A criterion with a NaN for some of the members."""
    X, inside = problem()
    calls = iter(range(10**9))

    def criterion(output, index):
        losses = criterion_of(inside, HEADS[0])(output, index)
        if output.shape[1] == K and next(calls) < until:
            losses = losses.clone()
            losses[:, members] *= torch.nan
        return losses

    return X, criterion


def run_with_nan(members):
    X, criterion = nan_for(members)
    network = build_separator(D, Hidden((5,), ACTIVATIONS[0]), HEADS[0], members=streams())
    history = fit_members(
        network,
        Data(X, torch.arange(30), torch.arange(30, N)),
        criterion,
        training=Training(epochs=5, batch_size=8),
        rng=np.random.RandomState(0),
    )
    return network, history


def test_members_whose_loss_is_never_finite_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"1 of 3 members never had a finite loss.*0.003"):
        network, history = run_with_nan([1])
    assert history.best_epoch[1] == -1
    assert len(network.output.bias) == 2
    assert torch.isfinite(network.output.weight).all()


def test_if_no_member_has_a_finite_loss_it_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"all 3 members was NaN.*lower the learning rate"):
        run_with_nan([0, 1, 2])


def test_what_does_not_fit_into_memory_is_said_plainly():
    X, _ = problem()
    network = build_separator(D, Hidden((5,), ACTIVATIONS[0]), HEADS[0], members=streams())

    def greedy(output, _):
        return output[..., 0] + torch.empty(10**15).sum()

    with pytest.raises(MemoryError, match=r"Use fewer members \(n_members\)"):
        fit_members(
            network,
            Data(X, torch.arange(30), torch.arange(0)),
            greedy,
            training=Training(epochs=1),
            rng=np.random.RandomState(0),
        )


def test_other_errors_the_number_of_threads_and_tiny_numbers_are_left_as_they_are():
    X, _ = problem()
    network = build_separator(D, Hidden((5,), ACTIVATIONS[0]), HEADS[0], members=streams())
    threads, tiny = torch.get_num_threads(), torch.tensor(1e-40)

    def broken(*_):
        assert tiny * 1 == 0  # in a training they are zero: a core is slow with them
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        fit_members(
            network,
            Data(X, torch.arange(30), torch.arange(0)),
            broken,
            training=Training(epochs=1),
            rng=np.random.RandomState(0),
        )
    assert torch.get_num_threads() == threads
    assert tiny * 1 > 0


def test_rows_are_held_out_in_proportion_or_from_the_end():
    is_anomaly = np.repeat([0.0, 1.0], [80, 20])
    rng = np.random.RandomState(0)
    rows, held_out = hold_out(is_anomaly, Training(validation_fraction=0.25), rng)
    assert is_anomaly[held_out].sum() == 5
    assert sorted([*rows, *held_out]) == list(range(100))
    rows, held_out = hold_out(is_anomaly, Training(validation_fraction=0.1, stratify=False), rng)
    assert held_out.tolist() == list(range(90, 100))
    assert rows.tolist() == list(range(90))
    assert len(hold_out(is_anomaly, Training(validation_fraction=0), rng)[1]) == 0


def test_no_anomaly_among_the_rows_held_out_is_worth_a_warning():
    is_anomaly = np.repeat([1.0, 0.0], [5, 95])
    with pytest.warns(UserWarning, match="None of the 10 rows held out is anomalous"):
        hold_out(is_anomaly, Training(stratify=False), np.random.RandomState(0))


@pytest.mark.parametrize(
    ("name", "expected", "refused", "taken"),
    [
        ("epochs", "a whole number of at least 1", [0, -1, 2.5, "3"], [1, np.int64(2)]),
        ("batch_size", "a whole number of at least 1", [0, 1.5], [None, 1]),
        ("learning_rate", "a positive number", [0, -1e-3, np.nan, np.inf, None], [1e-9, 1]),
        ("decay", "a number of at least 0", [-0.1, np.nan], [0, 1.0]),
        ("decay_steps", "a whole number of at least 1", [0], [1]),
        ("l2", "a number of at least 0", [-1e-9, np.nan, "0.1"], [0, 0.1]),
        ("patience", "a whole number of at least 1", [0, None], [1]),
        ("validation_fraction", r"a number in \[0, 1\)", [-0.1, 1.0, 10], [0, 0.99]),
    ],
)
def test_numbers_that_make_no_training_are_refused(name, expected, refused, taken):
    for value in refused:
        with pytest.raises(ValueError, match=f"{name} of the training must be {expected}, got "):
            Training(**{name: value}).check()
    for value in taken:
        plan = Training(**{name: value})
        assert plan.check() is plan


def test_balanced_classes_count_the_same():
    is_anomaly = np.repeat([0.0, 1.0], [90, 10])
    weight = class_weights(is_anomaly, Training(balanced=True))
    assert weight[is_anomaly == 1].sum() == pytest.approx(weight[is_anomaly == 0].sum())
    assert weight.mean() == pytest.approx(1)
    assert (class_weights(is_anomaly, Training()) == 1).all()
    for alone in (np.zeros(9), np.ones(9)):  # one class alone has nothing to balance
        assert (class_weights(alone, Training(balanced=True)) == 1).all()


def test_a_batch_grows_with_the_rows():
    assert [Training().batch_rows(n) for n in (100, 100_000, 10**7)] == [32, 100, 512]
    assert Training(batch_size=8).batch_rows(10**7) == 8


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_replayed_graph_takes_the_steps_of_the_cpu():
    X, inside = problem()
    ends = []
    for device in ("cpu", "cuda"):
        hidden = Hidden((5,), ACTIVATIONS[0], learn_sigma=True)
        network = build_separator(D, hidden, HEADS[0], members=streams())
        history = train(
            network.to(device),
            Data(X.to(device), torch.arange(30).to(device), torch.arange(30, N).to(device)),
            criterion_of(inside.to(device), HEADS[0]),
            training=Training(
                epochs=20, batch_size=8, patience=4, l2=1e-2, decay=0.9, decay_steps=6
            ),
            generator=torch.Generator().manual_seed(1),
        )
        ends.append((network.cpu().state_dict(), history))
    assert ends[0][1].best_epoch.tolist() == ends[1][1].best_epoch.tolist()
    for name, tensor in ends[0][0].items():
        assert_allclose(ends[1][0][name], tensor, atol=2e-3)
