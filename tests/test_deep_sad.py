"""Deep SAD: the loss and its slope, the two stages, members side by side, the threshold."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score

from eqsep import DeepSAD
from eqsep.activations import GaussianBump, LeakyReLU, RadialBasis, Sigmoid
from eqsep.datasets import make_hyperplane
from eqsep.networks import Distance, Hidden, Linear, Training, member_streams
from eqsep.networks.trainer import class_weights
from eqsep.networks.training import Reconstruction
from eqsep.separators.deep_sad import attraction, build_autoencoder

QUICK = Training(epochs=40, batch_size=40, learning_rate=1.5e-2)
SMALL = {
    "hidden": (16,),
    "code": 8,
    "pretraining": QUICK,
    "training": QUICK,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def split():
    return make_hyperplane(n_features=3, n_samples=200, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(split):
    return DeepSAD(n_members=3, **SMALL).fit(split.X_train, split.y_train)


def losses(codes, is_anomaly, *, centre):
    """The losses of codes (n, k, d) around `centre` (k, d)."""
    criterion = attraction(is_anomaly, weight=np.ones(len(is_anomaly)))
    return criterion(Distance(centre)(codes), torch.arange(len(is_anomaly)))


def test_the_loss_is_the_distance_of_a_normal_row_and_its_inverse_for_an_anomaly():
    codes = torch.tensor([[[3.0, 4.0]], [[3.0, 4.0]]], dtype=torch.float64)
    found = losses(codes, np.array([0, 1]), centre=torch.zeros(1, 2, dtype=torch.float64))
    assert_allclose(found[:, 0], [5, 1 / 5], rtol=1e-7)


def test_a_balanced_training_weighs_the_rows(split):
    output = torch.full((200, 1, 1), 2.0)
    weight = class_weights(split.y_train, Training(balanced=True))
    found = attraction(split.y_train, weight=weight)(output, torch.arange(200))[:, 0].numpy()
    total = [found[split.y_train == kind].sum() for kind in (0, 1)]
    assert_allclose(total, [100 * 2, 100 / 2], rtol=1e-5)


def test_the_slope_of_the_loss_is_its_derivative():
    generator = torch.Generator().manual_seed(0)
    codes, centre = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in [(6, 2, 3), (2, 3)]
    )
    kinds = np.array([0, 1, 0, 1, 0, 1])
    codes[1, 0] = centre[0] + 2e-3  # where the inverse is steepest
    codes.requires_grad_()
    losses(codes, kinds, centre=centre).sum().backward()
    numeric, step = np.zeros(codes.shape), 1e-7
    for place in np.ndindex(*codes.shape):
        ends = []
        for sign in (1, -1):
            moved = codes.detach().clone()
            moved[place] += sign * step
            ends.append(float(losses(moved, kinds, centre=centre).sum()))
        numeric[place] = (ends[0] - ends[1]) / (2 * step)
    assert_allclose(codes.grad.numpy(), numeric, rtol=1e-5, atol=1e-6)


def test_on_the_centre_itself_loss_and_slope_are_finite():
    centre = torch.ones(1, 4)
    codes = centre.repeat(2, 1, 1).requires_grad_()
    found = losses(codes, np.array([0, 1]), centre=centre)
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert_array_equal(codes.grad.numpy(), 0)


@pytest.mark.parametrize("activation", [GaussianBump(), LeakyReLU(), RadialBasis()], ids=repr)
def test_the_autoencoder_narrows_to_the_code_and_widens_back(activation):
    members = member_streams(2, np.random.RandomState(0))
    network = build_autoencoder(7, Hidden((6, 5), activation), code=3, members=members)
    x = torch.zeros(4, 7)
    assert network.features(x).shape == (4, 2, 3)
    assert network(x).shape == (4, 2, 7)
    widths = [p.shape[1:] for p in network.parameters() if p.ndim == 3]
    assert widths == [(7, 6), (6, 5), (5, 3), (3, 5), (5, 6), (6, 7)]


def test_a_linear_code_is_neither_activated_nor_normalised():
    members = member_streams(2, np.random.RandomState(0))
    hidden = Hidden((6,), GaussianBump(), batch_norm=True)
    network = build_autoencoder(7, hidden, code=3, linear_code=True, members=members).eval()
    x = torch.zeros(4, 7)
    code = network.hidden[1]
    assert [type(layer) for layer in code] == [Linear]
    before = network.hidden[0](x[:, None, :])
    expected = torch.einsum("nkh,khc->nkc", before, code[0].weight) + code[0].bias
    assert_allclose(network.features(x).detach(), expected.detach(), atol=1e-6)


def test_reconstruction_is_the_mean_squared_error_of_each_member():
    X = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 2.0]])
    output = torch.zeros(2, 2, 2)
    output[:, 1] = 1.0
    found = Reconstruction(X)(output, torch.tensor([0, 2]))
    assert_allclose(found, [[(1 + 9) / 2, (0 + 4) / 2], [4.0, 1.0]])


def test_the_autoencoder_learns_to_give_the_rows_back(fitted):
    history = fitted.pretraining_history_
    kept = history.validation_loss[history.best_epoch, np.arange(3)]
    assert (kept < 0.1).all(), "standardised rows have a mean square of 1"
    assert (kept < 0.2 * history.validation_loss[0]).all()


def test_the_centre_is_the_mean_code_of_all_rows_before_the_second_stage(split):
    still = DeepSAD(**SMALL | {"training": Training(epochs=1, learning_rate=1e-12)})
    still.fit(split.X_train, split.y_train)
    assert_allclose(still.codes(split.X_train).mean(axis=0), still.centre_, atol=1e-5)


def test_the_score_is_the_mean_distance_less_the_threshold(fitted, split):
    codes = fitted.codes(split.X_test)
    assert codes.shape == (200, 3, 8)
    distances = np.linalg.norm(codes - fitted.centre_, axis=-1)
    assert_allclose(fitted.distances(split.X_test), distances, atol=1e-3)
    score = fitted.decision_function(split.X_test)
    assert_allclose(score, fitted.distances(split.X_test).mean(axis=1) - fitted.threshold_)
    assert_array_equal(fitted.predict(split.X_test), (score > 0).astype(int))


def test_no_other_threshold_has_fewer_training_errors(fitted, split):
    score = fitted.decision_function(split.X_train)
    errors = [
        ((score > cut) != (split.y_train == 1)).sum() for cut in np.append(np.unique(score), -9)
    ]
    assert ((score > 0) != (split.y_train == 1)).sum() == min(errors)


@pytest.mark.parametrize(
    "activation",
    ["bump", *(pytest.param(name, marks=pytest.mark.extra) for name in ("leaky_relu", "rbf"))],
)
def test_it_learns_and_shuffled_labels_ruin_it(activation, split):
    model = DeepSAD(activation=activation, **SMALL)

    def quality(y):
        score = model.fit(split.X_train, y).decision_function(split.X_test)
        return average_precision_score(split.y_test, score)

    shuffled = np.random.default_rng(0).permutation(split.y_train)
    assert quality(split.y_train) > quality(shuffled) + 0.25


def test_members_never_mix(fitted, split):
    """The first member is the same alone and in company, though the others stop when they like."""
    alone = DeepSAD(n_members=1, **SMALL).fit(split.X_train, split.y_train)
    assert len({*fitted.history_.best_epoch}) > 1
    assert_allclose(
        alone.distances(split.X_test)[:, 0], fitted.distances(split.X_test)[:, 0], rtol=1e-3
    )


def test_a_penalty_makes_the_encoder_smaller(split):
    def size(l2):
        plan = Training(epochs=20, batch_size=32, learning_rate=1e-2, l2=l2, validation_fraction=0)
        model = DeepSAD(**SMALL | {"training": plan}).fit(split.X_train, split.y_train)
        return sum(float((p.detach() ** 2).sum()) for p in model.network_.parameters())

    assert size(0.1) < 0.5 * size(0.0)


def test_batch_normalisation_is_off_unless_switched_on(split):
    plan = Training(epochs=1)
    parameters = SMALL | {"pretraining": plan, "training": plan}
    for switched, normalised in [({}, 0), ({"batch_norm": True}, 2)]:
        model = DeepSAD(**parameters | switched).fit(split.X_train, split.y_train)
        names = model.network_.state_dict()
        assert sum(name.endswith("variance") for name in names) == normalised


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"activation": "relu"}, r"activation must be one of \['bump', .* got 'relu'"),
        ({"code": 0}, r"code must be whole numbers of at least 1, got \[0\]"),
        ({"hidden": (8, 0)}, r"hidden must be whole numbers"),
        ({"n_members": 1.5}, r"n_members must be whole numbers"),
        ({"device": "tpu"}, r"device must be one of"),
        ({"hidden": 8}, r"hidden must be a sequence of whole numbers, got 8"),
        ({"sigma": 0}, r"sigma must be a positive number, got 0"),
        ({"pretraining": Training(epochs=0)}, r"epochs of the training must be .* got 0"),
        ({"training": Training(l2=-1)}, r"l2 of the training must be .* got -1"),
    ],
)
def test_what_cannot_be_is_refused(split, parameters, message):
    with pytest.raises(ValueError, match=message):
        DeepSAD(**parameters).fit(split.X_train, split.y_train)


def test_one_class_alone_is_refused(split):
    with pytest.raises(ValueError, match="normal and anomalous rows are needed"):
        DeepSAD().fit(split.X_train, np.zeros(200, dtype=int))


@pytest.mark.parametrize("ask", ["codes", "distances", "decision_function", "predict"])
def test_unfitted_it_says_so(split, ask):
    with pytest.raises(NotFittedError):
        getattr(DeepSAD(), ask)(split.X_test)


def test_a_network_that_does_not_fit_into_memory_is_said_plainly(split):
    with pytest.raises(MemoryError, match=r"Use fewer members .* narrower layers"):
        DeepSAD(hidden=(4,), code=10**15).fit(split.X_train, split.y_train)


def test_rows_beyond_all_floats_are_as_far_as_any(split):
    small = DeepSAD(**SMALL).fit(1e-3 * split.X_train, split.y_train)
    scores = small.decision_function(np.array([[1.7e308] * 3, [1e300] * 3]))
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1]


def test_any_activation_makes_codes(split):
    plan = Training(epochs=2)
    model = DeepSAD(**SMALL | {"activation": Sigmoid(), "pretraining": plan, "training": plan})
    codes = model.fit(split.X_train, split.y_train).codes(split.X_test)
    assert ((codes > 0) & (codes < 1)).all()
