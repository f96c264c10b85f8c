import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV

from eqsep import NetworkSeparator, load_model
from eqsep.activations import GaussianBump, LeakyReLU, Ridge, Sigmoid, TanhBump
from eqsep.datasets import make_circles, make_hyperplane
from eqsep.networks import Training
from eqsep.plots import HistoryDisplay
from eqsep.separators.network import NarrowLayerWarning
from paper.theory.networks import plain_layers

QUICK = Training(epochs=25, batch_size=20, learning_rate=1e-2)
THOROUGH = Training(epochs=60, batch_size=16, learning_rate=1e-2)


@pytest.fixture(scope="module")
def split():
    return make_hyperplane(n_features=3, n_samples=200, noise=0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(split):
    separator = NetworkSeparator(
        hidden=(8,), n_members=4, learn_sigma=True, training=QUICK, random_state=0
    )
    return separator.fit(split.X_train, split.y_train)


def test_the_score_is_the_mean_of_the_members(fitted, split):
    members = fitted.member_scores(split.X_test)
    assert members.shape == (200, 4)
    assert_allclose(fitted.decision_function(split.X_test), members.mean(axis=1))
    assert_allclose(fitted.spread(split.X_test), members.std(axis=1))
    assert fitted.spread(split.X_test).max() > 0
    p = fitted.predict_proba(split.X_test)
    assert_allclose(p[:, 0], 0.5 - members.mean(axis=1))
    assert_allclose(p.sum(axis=1), 1)


def test_it_learns_and_shuffled_labels_ruin_it(split):
    separator = NetworkSeparator(hidden=(16,), n_members=5, training=THOROUGH, random_state=0)

    def quality(y):
        score = separator.fit(split.X_train, y).decision_function(split.X_test)
        return average_precision_score(split.y_test, score)

    assert quality(split.y_train) > 0.6
    assert quality(np.random.default_rng(0).permutation(split.y_train)) < 0.4


def test_distances_are_scored_by_their_mean_square(fitted, split):
    by_distance = clone(fitted).set_params(score_by="distance")
    by_distance.fit(split.X_train, split.y_train)
    z = by_distance.distances(split.X_test)
    half = GaussianBump(0.5).half_width
    assert_allclose(by_distance.decision_function(split.X_test), (z**2 - half**2).mean(axis=1))
    assert not hasattr(by_distance, "predict_proba"), "its 0 is not where the mean is 1/2"


def test_a_halfspace_is_scored_by_the_side(split):
    separator = NetworkSeparator(
        head="halfspace",
        activation="leaky_relu",
        hidden=(8,),
        n_members=2,
        training=QUICK,
        score_by="distance",
        random_state=0,
    ).fit(split.X_train, split.y_train)
    inside = NetworkSeparator.predict_proba.__get__(separator.set_params(score_by="membership"))(
        split.X_test
    )[:, 0]
    assert ((separator.member_scores(split.X_test).mean(axis=1) < 0) == (inside > 0.5)).all()


@pytest.mark.extra
def test_the_published_averaging_on_circles():
    """Members vary with their start; the mean of twenty ranks the unseen circle perfectly."""
    circles = make_circles(protocol="paper", random_state=0)
    training = Training(epochs=300, batch_size=32, learning_rate=1e-3, patience=10, stratify=False)
    separator = NetworkSeparator(
        hidden=(5, 5),
        batch_norm=False,
        closed=False,
        n_members=20,
        training=training,
        standardize=False,
        random_state=0,
    ).fit(circles.X_train, circles.y_train)
    each = [
        average_precision_score(circles.y_test, member)
        for member in separator.member_scores(circles.X_test).T
    ]
    together = average_precision_score(circles.y_test, separator.decision_function(circles.X_test))
    assert np.std(each) > 0.05
    assert together >= 0.99 > np.mean(each)


def test_a_seed_gives_the_same_scores_and_another_seed_others(fitted, split):
    again = clone(fitted).fit(split.X_train, split.y_train)
    assert_array_equal(
        fitted.decision_function(split.X_test), again.decision_function(split.X_test)
    )
    other = clone(fitted).set_params(random_state=1).fit(split.X_train, split.y_train)
    assert (fitted.decision_function(split.X_test) != other.decision_function(split.X_test)).any()


def test_company_changes_no_member(fitted, split):
    alone = clone(fitted).set_params(n_members=1).fit(split.X_train, split.y_train)
    assert_allclose(
        alone.member_scores(split.X_test)[:, 0],
        fitted.member_scores(split.X_test)[:, 0],
        atol=1e-4,
    )


def test_no_hidden_layer_is_a_linear_separator(split):
    separator = NetworkSeparator(hidden=(), n_members=3, training=QUICK, random_state=0)
    separator.fit(split.X_train, split.y_train)
    z = separator.distances(split.X_test)
    mid = separator.distances((split.X_test[:1] + split.X_test[1:2]) / 2)
    assert z.shape == (200, 3)
    assert (mid <= (z[0] + z[1]) / 2 + 1e-9).all(), "|w·x + b| is convex in x"


@pytest.mark.parametrize("activation", ["bump", "rbf"])
def test_far_rows_are_anomalous_where_the_region_is_closed(split, activation):
    directions = np.random.default_rng(0).standard_normal((100, 3))
    far = 1e5 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    separator = NetworkSeparator(
        activation=activation,
        batch_norm=False,
        hidden=(12,),
        n_members=3,
        training=QUICK,
        random_state=0,
    ).fit(split.X_train, split.y_train)
    at_the_limit = np.isclose(separator.distances(far), 2 * GaussianBump(0.5).half_width)
    assert at_the_limit.mean() > 0.98, "along almost every direction"
    assert separator.predict(far).mean() > 0.98
    separator.set_params(closed=False).fit(split.X_train, split.y_train)
    limits = np.median(separator.distances(far), axis=0)
    assert limits.std() > 0.01, "each member's own"


def test_a_new_value_in_a_column_that_never_varied_is_seen(split):
    X = np.column_stack([split.X_train, np.zeros(200)])
    separator = NetworkSeparator(hidden=(8,), n_members=5, training=QUICK, random_state=0)
    separator.fit(X, split.y_train)
    changed = X + np.array([0, 0, 0, 1.0])
    assert separator.decision_function(changed).mean() > separator.decision_function(X).mean()


def test_far_rows_and_constant_columns_give_finite_scores(split):
    X = np.column_stack([split.X_train, np.full(200, 3.0)])
    separator = NetworkSeparator(hidden=(8,), n_members=2, training=QUICK, random_state=0)
    separator.fit(X, split.y_train)
    scores = separator.decision_function(np.full((1, 4), 1e300))
    assert np.isfinite(scores).all()


def test_narrow_layers_are_warned_of_and_wide_ones_are_not(split):
    quick = {"n_members": 1, "training": Training(epochs=1), "random_state": 0}
    with pytest.warns(NarrowLayerWarning, match=r"layer 1 has 2 units on 3 inputs.*number 3 "):
        NetworkSeparator(hidden=(2,), **quick).fit(split.X_train, split.y_train)
    with pytest.warns(NarrowLayerWarning, match=r"layer 2 has 3 units on 4 inputs"):
        NetworkSeparator(hidden=(4, 3), **quick).fit(split.X_train, split.y_train)
    with pytest.warns(NarrowLayerWarning, match=r"closing number 4 "):
        NetworkSeparator(hidden=(3,), activation="leaky_relu", **quick).fit(
            split.X_train, split.y_train
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NetworkSeparator(hidden=(1,), activation="rbf", **quick).fit(split.X_train, split.y_train)


def test_parameters_of_the_pieces_can_be_searched(split):
    separator = NetworkSeparator(
        head=GaussianBump(0.5),
        activation=LeakyReLU(),
        hidden=(4,),
        n_members=1,
        training=Training(epochs=3),
        random_state=0,
    )
    search = GridSearchCV(
        separator,
        {"head__sigma": [0.3, 1.0], "training__epochs": [2, 3]},
        cv=2,
        scoring="average_precision",
    )
    search.fit(split.X_train, split.y_train)
    assert set(search.best_params_) == {"head__sigma", "training__epochs"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"head": "ball"}, r"head must be one of \['equality', 'halfspace', 'rbf'\].*got 'ball'"),
        ({"activation": "relu"}, r"activation must be one of .*got 'relu'"),
        ({"head": Ridge()}, "needs log p"),
        ({"score_by": "rank"}, r"score_by must be one of \['distance', 'membership'\]"),
        ({"n_members": 0}, r"n_members must be whole numbers of at least 1, got \[0\]"),
        ({"hidden": (5, 0)}, r"hidden must be whole numbers of at least 1"),
        ({"device": "tpu"}, "device must be one of"),
        ({"head": LeakyReLU()}, r"head must be one of .* eqsep.activations.Head, got LeakyReLU"),
        ({"activation": None}, r"one of .* eqsep.activations.Activation, got None"),
        ({"hidden": 60}, r"hidden must be a sequence .* got 60\. .* write hidden=\(60,\)"),
        ({"hidden": "60"}, r"hidden must be a sequence .* got '60'"),
        ({"sigma": 0.0}, r"sigma must be a positive number, got 0\.0"),
        ({"sigma": "wide"}, r"sigma must be a positive number, got 'wide'"),
        ({"head": GaussianBump(-1)}, r"sigma of head must be a positive number, got -1"),
        ({"training": 20}, r"training must be an eqsep.networks.Training or None, got 20"),
        ({"training": Training(epochs=0)}, r"epochs of the training must be .* got 0"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(split, parameters, message):
    with pytest.raises(ValueError, match=message):
        NetworkSeparator(**parameters).fit(split.X_train, split.y_train)


def test_one_class_is_refused(split):
    with pytest.raises(ValueError, match="at least 2 classes"):
        NetworkSeparator().fit(split.X_train, np.zeros(200))


SMALL = {"head": Sigmoid(), "hidden": (4,), "n_members": 1, "random_state": 0}


def test_progress_is_told_after_each_epoch_and_never_shown(split, capsys, tmp_path):
    steps = []
    separator = NetworkSeparator(
        **SMALL, training=Training(epochs=3), progress=lambda *step: steps.append(step)
    ).fit(split.X_train, split.y_train)
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert capsys.readouterr().out == ""
    separator.save(tmp_path / "model.eqsep")
    again = load_model(tmp_path / "model.eqsep")
    assert again.progress is None, "a file holds no functions"
    assert_allclose(
        again.decision_function(split.X_test), separator.decision_function(split.X_test)
    )


def test_progress_ends_at_the_total_where_all_members_stop_early(split):
    steps = []
    training = Training(epochs=50, patience=1, learning_rate=0.3)
    NetworkSeparator(**SMALL, training=training, progress=lambda *step: steps.append(step)).fit(
        split.X_train, split.y_train
    )
    assert len(steps) < 50
    assert steps[-1] == (50, 50)


@pytest.mark.parametrize("wrong", [True, "yes"])
def test_progress_is_a_function(split, wrong):
    separator = NetworkSeparator(**SMALL, training=Training(epochs=1), progress=wrong)
    with pytest.raises(TypeError, match=rf"takes \(done, total\), got {wrong!r}"):
        separator.fit(split.X_train, split.y_train)


def test_the_history_is_drawn(fitted):
    display = HistoryDisplay.from_estimator(fitted, ax=Figure().subplots())
    drawn = display.ax_.get_lines()
    assert len(drawn) == 4 + 1, "each member, and their mean"
    assert_allclose(drawn[0].get_ydata(), fitted.history_.sigma[:, 0, 0])
    assert fitted.history_.sigma[2].std() > 0, "each member learns a width of its own"
    losses = HistoryDisplay.from_estimator(fitted, quantity="loss", ax=Figure().subplots())
    names = [text.get_text() for text in losses.ax_.get_legend().get_texts()]
    assert names == ["training", "held out"]
    with pytest.raises(ValueError, match=r"quantity must be one of \['loss', 'sigma'\]"):
        HistoryDisplay.from_estimator(fitted, quantity="speed")


def test_a_network_without_bumps_has_no_widths_to_draw(split):
    separator = NetworkSeparator(
        activation="leaky_relu",
        hidden=(4,),
        n_members=1,
        training=Training(epochs=2),
        random_state=0,
    ).fit(split.X_train, split.y_train)
    with pytest.raises(ValueError, match="no bumps in its hidden layers"):
        HistoryDisplay.from_estimator(separator)


@pytest.mark.extra
def test_without_torch_eqsep_imports_and_says_what_a_network_needs():
    asked = [
        "eqsep.NetworkSeparator",
        "eqsep.DeepSAD",
        "import eqsep.networks",
        "from eqsep.networks import Bump",
        "import eqsep.separators.network",
    ]
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import eqsep; eqsep.EqualitySeparator()\n"
        f"for ask in {asked}:\n"
        "    try:\n        exec(ask)\n    except ImportError as error:\n        print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = "eqsep's networks need PyTorch. Install it with: pip install 'eqsep[nn]'"
    assert done.stdout.splitlines() == [told] * len(asked)


@pytest.mark.parametrize("hidden", [(4, 10**15), (4, 3 * 10**18)], ids=["memory", "overflow"])
def test_a_network_that_does_not_fit_into_memory_is_said_plainly(split, hidden):
    with pytest.raises(MemoryError, match=r"Use fewer members .* narrower layers"):
        NetworkSeparator(hidden=hidden, n_members=1).fit(split.X_train, split.y_train)


@pytest.mark.parametrize("activation", [Sigmoid(), Ridge(), TanhBump(0.5)], ids=repr)
def test_any_activation_will_do(split, activation):
    separator = NetworkSeparator(
        activation=activation,
        hidden=(12,),
        n_members=3,
        learn_sigma=True,
        training=Training(epochs=30, batch_size=16),
        random_state=0,
    ).fit(split.X_train, split.y_train)
    assert len(separator.history_.sigma[0]) == activation.has_sigma
    loss = np.nanmean(separator.history_.loss, axis=1)
    assert loss[-1] < loss[0]
    z = separator.network_.features(separator.columns_.tensor(split.X_test, dtype=torch.float64))
    layers = plain_layers(separator.network_, separator.head_)
    x = np.repeat(separator.columns_.frame.columns(split.X_test)[:, None, :], 3, axis=1)
    assert_allclose(layers[0](x), z.detach().numpy(), atol=1e-6)


def test_bumps_that_do_not_vanish_leave_the_last_bias_free(split):
    quick = {"hidden": (8,), "n_members": 1, "training": Training(epochs=1), "random_state": 0}
    for activation, held in [(Ridge(), False), (Sigmoid(), False), (TanhBump(), True)]:
        separator = NetworkSeparator(activation=activation, **quick)
        separator.fit(split.X_train, split.y_train)
        assert separator.network_.output.bias.requires_grad != held


def test_without_rows_held_out_there_is_no_curve_of_them(split):
    training = Training(epochs=3, validation_fraction=0)
    separator = NetworkSeparator(hidden=(8,), n_members=2, training=training, random_state=0)
    separator.fit(split.X_train, split.y_train)
    assert np.isnan(separator.history_.validation_loss).all()
    assert separator.history_.validation_loss.shape == separator.history_.loss.shape
    assert np.isfinite(separator.history_.loss).all()
    display = HistoryDisplay.from_estimator(separator, quantity="loss", ax=Figure().subplots())
    assert list(display.curves) == ["training"]


def test_rows_beyond_all_floats_are_as_far_as_any(split):
    separator = NetworkSeparator(hidden=(8,), n_members=2, training=QUICK, random_state=0)
    separator.fit(1e-3 * split.X_train, split.y_train)
    scores = separator.decision_function(np.array([[1.7e308] * 3, [1e300] * 3]))
    assert np.isfinite(scores).all()
    assert scores[0] == scores[1]


def test_the_warning_about_the_rows_held_out_points_at_the_call_of_fit(split):
    training = Training(epochs=1, stratify=False)
    separator = NetworkSeparator(hidden=(8,), n_members=1, training=training, random_state=0)
    order = np.argsort(-split.y_train)
    with pytest.warns(UserWarning, match="rows held out is anomalous") as caught:
        separator.fit(split.X_train[order], split.y_train[order])
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("closed", [True, False])
def test_a_closed_network_is_closed_wherever_its_bump_peaks(split, closed):
    """At 0 in every network: the last bias says where the surface lies, learnt or held."""
    sigma = 0.5
    far_from_zero = 2 * GaussianBump(sigma).half_width  # where a held bias puts far rows
    fits = [
        NetworkSeparator(
            head=GaussianBump(sigma, mu=mu), hidden=(8,), closed=closed, n_members=2,
            training=QUICK, random_state=0,
        ).fit(split.X_train, split.y_train)
        for mu in (0.0, far_from_zero)
    ]  # fmt: skip
    at_zero, shifted = (fit.decision_function(1e5 * split.X_test) for fit in fits)
    assert_array_equal(at_zero, shifted)
    if closed:
        assert (shifted > 0).all()


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("closed", [True, False])
def test_a_bias_takes_up_the_peak_of_every_bump(split, closed, batch_norm):
    """So a learnable mu adds no function: what it would add to a closed network is its bias."""
    separator = NetworkSeparator(
        hidden=(8,), closed=closed, batch_norm=batch_norm, n_members=2, training=QUICK,
        random_state=0,
    ).fit(split.X_train, split.y_train)  # fmt: skip
    network, X = separator.network_.eval(), torch.as_tensor(split.X_test, dtype=torch.float64)
    plain = network(X)
    linear, *norm, bump = network.hidden[0]
    with torch.no_grad():
        hidden_bias = (norm[0] if norm else linear).bias
        hidden_bias += 0.7
        bump.head = GaussianBump(bump.head.sigma, mu=0.7)
        assert_allclose(network(X), plain, atol=1e-12)
        network.output.bias += 0.3
        shifted = GaussianBump(separator.head_.sigma, mu=0.3)(network(X))
        assert_allclose(shifted, separator.head_(plain), atol=1e-12)
    assert network.output.bias.requires_grad != closed
