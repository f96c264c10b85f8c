"""What networks enclose: the arrays against torch, the limit against far rows, the verdicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eqsep import NetworkSeparator
from eqsep.activations import GaussianBump, LeakyReLU, RadialBasis, Ridge, Sigmoid, TanhBump
from eqsep.datasets import make_hyperplane
from eqsep.networks import Training
from eqsep.separators.network import NarrowLayerWarning
from paper.theory.networks import Layer, closedness, network_closedness, plain_layers

QUICK = Training(epochs=12, batch_size=25, learning_rate=2e-2)
K = 3
# Head, activation, widths, batch normalisation.
NETWORKS = {
    "bumps": ("equality", "bump", (5,), True),
    "bumps without normalisation": ("equality", "bump", (5,), False),
    "two layers of bumps": ("rbf", "bump", (5, 6), True),
    "bumps that fall off slowly": ("halfspace", TanhBump(0.5), (5,), True),
    "radial": ("equality", "rbf", (4, 2), True),
    "radial without normalisation": ("halfspace", "rbf", (4,), False),
    "leaky, bump head": ("equality", "leaky_relu", (5, 7), True),
    "leaky, radial head": ("rbf", "leaky_relu", (5,), True),
    "no hidden layer": ("equality", "bump", (), True),
    "ridge": (Ridge(), "bump", (4,), True),
}


@pytest.fixture(scope="module")
def split():
    return make_hyperplane(n_features=3, n_samples=100, noise=0.1, random_state=0)


def fit(split, head, activation, hidden, batch_norm, **parameters):
    separator = NetworkSeparator(
        head=head,
        activation=activation,
        hidden=hidden,
        batch_norm=batch_norm,
        learn_sigma=True,
        loss="squared",
        n_members=K,
        training=QUICK,
        random_state=0,
        **parameters,
    )
    return separator.fit(split.X_train, split.y_train)


@pytest.fixture(scope="module", params=NETWORKS.values(), ids=NETWORKS)
def network(request, split):
    return fit(split, *request.param)


def memberships(network, X):
    return 0.5 - network.member_scores(X)


def test_the_arrays_are_the_network(network, split):
    x = np.repeat(network.columns_.frame.columns(split.X_test)[:, None, :], K, axis=1)
    for layer in plain_layers(network.network_, network.head_):
        x = layer(x)
    assert_allclose(x[..., 0], memberships(network, split.X_test), atol=1e-6)


def test_the_limit_is_what_far_rows_get(network):
    frame, rng = network.columns_.frame, np.random.default_rng(0)
    directions = rng.standard_normal((40, 3))
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    found = memberships(network, frame.centre + 1e6 * directions * frame.scale)
    assert_allclose(
        np.broadcast_to(network_closedness(network).far_membership, found.shape), found, atol=1e-4
    )


def test_halfspaces_on_leaky_units_tell_directions_apart(split):
    network = fit(split, "halfspace", "leaky_relu", (5,), False)
    report = network_closedness(network)
    assert np.isnan(report.far_membership).all()
    assert not report.rejects_far_rows.any()
    assert "may depend on the direction" in str(report)
    frame = network.columns_.frame
    directions = np.random.default_rng(0).standard_normal((100, 3))
    far = memberships(network, frame.centre + 1e5 * directions * frame.scale)
    assert far.min() < 0.01
    assert far.max() > 0.99


@pytest.mark.parametrize("head", ["equality", "halfspace", "rbf"])
def test_hidden_sigmoids_settle_on_one_side_or_the_other(split, head):
    network = fit(split, head, Sigmoid(), (5,), False)
    assert np.isnan(network_closedness(network).far_membership).all()


def layer_of(normals, family, activation, **more):
    normals = np.asarray(normals, dtype=float)
    return Layer(family, normals, np.zeros(normals.shape[:2]), activation, **more)


def report_of(*layers):
    return closedness(layers)


BOX = [[[1, 0], [0, 1]]]
SIDES = [[[1, 0], [0, 1], [-1, -1]]]
ONE_SIDED = [[[1, 0], [0, 1], [1, 1]]]


@pytest.mark.parametrize(
    ("normals", "family", "needed", "closed"),
    [
        (BOX, "equality", 2, True),
        ([[[1, 0], [2, 0], [-1, 0]]], "equality", 2, False),
        (SIDES, "halfspace", 3, True),
        (ONE_SIDED, "halfspace", 3, False),
        ([[[0, 0]]], "rbf", 1, True),
        ([[[1, 0], [0, 1], [0, 0]]], "equality", 2, True),
        ([[[0, 0], [0, 0]]], "equality", 2, False),
    ],
    ids=["box", "parallel", "triangle", "one-sided", "ball", "a dead unit", "all dead"],
)
def test_a_layer_is_judged_by_what_was_learnt_not_by_its_width_alone(
    normals, family, needed, closed
):
    activation = {"equality": GaussianBump(), "halfspace": LeakyReLU(), "rbf": RadialBasis()}
    first = layer_of(normals, family, activation[family])
    [layer, _] = report_of(
        first, layer_of([[[1.0] * len(normals[0])]], "halfspace", Sigmoid())
    ).layers
    assert layer.closing_number == needed
    assert layer.closed.tolist() == [closed]
    if not closed:
        along = np.asarray(normals[0]) @ layer.closures[0].escape
        assert (along >= -1e-9).all()
        assert family == "halfspace" or not along.any()


@pytest.mark.parametrize(("head", "inside"), [("equality", [0]), ("halfspace", [0, 1])])
def test_hidden_ridges_grow_against_one_another_or_together(head, inside):
    first = layer_of(BOX * 3, "equality", Ridge())
    output = {"equality": GaussianBump(), "halfspace": Sigmoid()}[head]
    weights = [[[1.0, 2.0]], [[-1.0, -2.0]], [[1.0, -1.0]]]
    together, apart = np.split(
        report_of(first, layer_of(weights, head, output)).far_membership, [2]
    )
    assert sorted({*together}) == inside
    assert np.isnan(apart)


def test_members_are_judged_each_on_its_own():
    first = layer_of([SIDES[0], ONE_SIDED[0]], "halfspace", LeakyReLU())
    head = layer_of(np.ones((2, 1, 3)), "equality", GaussianBump())
    report = report_of(first, head)
    assert report.layers[0].closed.tolist() == [True, False]
    assert report.far_membership.tolist() == [0, 0]


def test_units_without_a_direction_keep_their_value_far_away():
    first = layer_of([[[1, 0], [0, 0]]], "equality", GaussianBump())
    head = layer_of([[[5.0, 2.0]]], "halfspace", Sigmoid())
    assert_allclose(report_of(first, head).far_membership, Sigmoid()(np.array([2.0])))


def test_a_ball_around_the_origin_vanishes_far_away_too():
    first = layer_of([[[0, 0]]], "rbf", RadialBasis())
    head = layer_of([[[5.0]]], "halfspace", Sigmoid())
    assert report_of(first, head).far_membership.tolist() == [0.5]


def test_units_that_die_on_one_side_leave_the_limit_open():
    relu = layer_of(SIDES, "halfspace", LeakyReLU(leak=0.0))
    head = layer_of(np.ones((1, 1, 3)), "equality", GaussianBump())
    assert np.isnan(report_of(relu, head).far_membership).all()


@pytest.mark.parametrize(
    ("normals", "weights"),
    [
        ([[1, 2], [1, 2]], [1, -1]),  # cancel everywhere
        ([[1, 2], [-1, -2]], [0.01, 1]),  # on one side only: 0.01 z - 0.01 z
    ],
)
def test_leaky_units_that_cancel_leave_the_limit_open(normals, weights):
    """The head stands still where they do, and far rows are as normal as near ones."""
    first = layer_of([normals] * 2, "halfspace", LeakyReLU(leak=0.01))
    layers = [first, layer_of([[weights], [[1, 1]]], "equality", GaussianBump())]
    far = np.array([[1e9, 1e9]])[:, None, :].repeat(2, axis=1)
    assert_allclose(layers[1](layers[0](far)).ravel(), [1, 0], atol=1e-6)
    cancelled, growing = report_of(*layers).far_membership
    assert np.isnan(cancelled)
    assert growing == 0


@pytest.mark.parametrize("family", ["equality", "rbf"])
def test_a_head_that_reads_constant_units_leaves_the_limit_open(family):
    """It says of far rows what it says of all rows, and does not vanish."""
    first = layer_of([[[0, 0], [0, 0]], [[0, 0], [1, 2]]], "halfspace", LeakyReLU())
    head = layer_of([[[1.0, 0.0]], [[1.0, 1.0]]], family, GaussianBump())
    constant, growing = report_of(first, head).far_membership
    assert np.isnan(constant)
    assert growing == 0


@pytest.mark.parametrize("family", ["equality", "rbf"])
def test_what_cancels_but_for_rounding_is_constant_to_the_layers_behind(family):
    thirds = layer_of([[[0.1, 0.2], [0.3, 0.6]]], "halfspace", LeakyReLU())  # 3 (0.1 z) - 0.3 z
    cancelled = layer_of([[[3.0, -1.0]]], "halfspace", LeakyReLU())
    head = layer_of([[[1.0]]], family, GaussianBump())
    assert np.isnan(report_of(thirds, cancelled, head).far_membership)


@pytest.mark.parametrize("activation", ["bump", "rbf"])
def test_a_column_that_never_varied_is_enclosed_like_any_other(activation, split):
    X = np.column_stack([split.X_train, np.full(len(split.X_train), 3.0)])
    network = NetworkSeparator(
        activation=activation, hidden=(8,), n_members=2, training=QUICK, random_state=0
    ).fit(X, split.y_train)
    report = network_closedness(network)
    assert report.layers[0].closed.all()
    assert report.rejects_far_rows.all()
    assert network.predict(X + np.array([0, 0, 0, 1e6])).all()


def test_along_an_escape_nothing_changes(split):
    with pytest.warns(NarrowLayerWarning, match="Hidden layer 1 has 2 units on 3 inputs"):
        network = fit(split, "equality", "bump", (2,), True)
    first = network_closedness(network).layers[0]
    assert (first.n_units, first.closing_number) == (2, 3)
    for member, closure in enumerate(first.closures):
        assert not closure.closed
        away = split.X_test + 1e3 * closure.escape * network.columns_.frame.scale
        before, after = (memberships(network, X)[:, member] for X in (split.X_test, away))
        assert_allclose(after, before, atol=1e-9)


def test_the_report_reads_as_a_table(split):
    report = str(network_closedness(fit(split, "rbf", "bump", (5, 6), True)))
    *table, far = report.splitlines()
    assert [" ".join(line.split()) for line in table] == [
        "layer family inputs units closing number encloses a region",
        "hidden 1 equality 3 5 3 3 of 3 members",
        "hidden 2 equality 5 6 5 3 of 3 members",
        "head rbf 6 1 1 3 of 3 members",
    ]
    assert far.startswith("Far away, along almost every direction: mean membership 0.")
