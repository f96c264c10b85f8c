import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

from eqsep import EqualitySeparator
from eqsep.activations import GaussianBump, Ridge, Sigmoid, TanhBump
from eqsep.datasets import make_gaussians, make_hyperplane, make_logic
from eqsep.losses import LogisticLoss, SquaredLoss
from eqsep.separators import planes
from eqsep.solvers import BFGS, LBFGS

XOR = make_logic("xor")


@pytest.mark.parametrize("number", range(16))
@pytest.mark.parametrize(
    "seeds", [range(5), pytest.param(range(5, 20), marks=pytest.mark.extra)], ids=str
)
def test_one_neuron_fits_every_boolean_function_of_two_inputs(number, seeds):
    X, y = make_logic(number)
    for seed in seeds:
        assert EqualitySeparator(random_state=seed).fit(X, y).predict(X).tolist() == y.tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "logistic"},
        {"rule": "strict"},
        {"head": TanhBump()},
        {"head": Ridge()},
        {"sigma": 10, "init": "normal"},
        {"loss": LogisticLoss(), "sigma": 10, "init": "normal"},
        {"solver": LBFGS()},
        {"head": GaussianBump(sigma=0.5, mu=2.0)},
    ],
    ids=str,
)
def test_xor_is_solved_whatever_the_head_loss_start_and_rule(parameters):
    X, y = XOR
    separator = EqualitySeparator(random_state=0, **parameters).fit(X, y)
    assert separator.predict(X).tolist() == y.tolist()
    assert separator.distance(X[y == 1]).max() < separator.distance(X[y == 0]).min() or (
        separator.margin_class_ == 0
    )


def test_the_strict_rule_finds_the_plane_itself():
    X, y = XOR
    separator = EqualitySeparator(rule="strict", margin_class=1, random_state=0).fit(X, y)
    assert separator.epsilon_ < 1e-9
    assert_allclose(separator.distance(X), [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-12)
    assert separator.predict([[0.5, 0.5], [0.5, 0.5 + 1e-6]]).tolist() == [1, 0]


def test_the_strict_rule_holds_every_row_of_a_plane_and_no_other():
    for seed in range(5):
        split = make_hyperplane(n_features=4, random_state=seed)
        separator = EqualitySeparator(rule="strict", margin_class=0, random_state=0)
        separator.fit(split.X_train, split.y_train)
        assert separator.score(split.X_train, split.y_train) == 1.0
        assert separator.score(split.X_test, split.y_test) == 1.0


def test_the_strict_rule_on_rows_that_share_no_plane_calls_them_outside():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    y = np.repeat([0, 1], 20)
    separator = EqualitySeparator(rule="strict", margin_class=0, random_state=0).fit(X, y)
    assert separator.predict(X).all()


def test_the_or_function_needs_the_label_flipped():
    X, y = make_logic("or")
    auto = EqualitySeparator(rule="strict", random_state=0).fit(X, y)
    assert auto.margin_class_ == 0
    named = EqualitySeparator(rule="strict", margin_class=1, random_state=0).fit(X, y)
    assert (named.predict(X) != y).any(), "three corners of a square lie on no line"
    assert auto.loss_ < named.loss_


def test_distance_is_that_of_the_formula_and_score_and_probability_agree_with_it():
    split = make_hyperplane(n_features=4, noise=0.2, random_state=1)
    separator = EqualitySeparator(random_state=0).fit(split.X_train, split.y_train)
    X = split.X_test
    z = X @ separator.coef_ + separator.intercept_
    assert_allclose(separator.distance(X), np.abs(z) / np.linalg.norm(separator.coef_))
    assert separator.margin_class_ == 0
    assert_allclose(separator.decision_function(X), np.abs(z) - separator.epsilon_)
    p = separator.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1)
    assert_allclose(p[:, 1] > 0.5, separator.decision_function(X) > 0)
    on_the_rim = separator.coef_ / (separator.coef_ @ separator.coef_)
    rim = on_the_rim * (separator.epsilon_ - separator.intercept_)
    assert_allclose(separator.predict_proba([rim]), [[0.5, 0.5]], atol=1e-9)


def test_loss_is_no_higher_than_that_of_scipy_with_numerical_gradients():
    split = make_hyperplane(n_features=10, noise=0.5, protocol="paper", random_state=0)
    X, t = split.X_train, 1.0 - split.y_train

    def mean_squared(w):
        return np.mean((GaussianBump(10)(X @ w[:-1] + w[-1]) - t) ** 2)

    start = np.random.default_rng(0).standard_normal(11)
    published = minimize(mean_squared, start, method="BFGS")
    separator = EqualitySeparator(sigma=10, margin_class=0, random_state=0).fit(X, split.y_train)
    assert separator.loss_ <= published.fun + 1e-6
    w = np.append(separator.coef_, separator.intercept_)
    assert_allclose(mean_squared(w), separator.loss_, atol=1e-9)


def test_hyperplane_in_noise_is_found_in_35_dimensions():
    split = make_hyperplane(n_features=35, n_samples=300, noise=0.5, random_state=0)
    separator = EqualitySeparator(margin_class=0, random_state=0).fit(split.X_train, split.y_train)
    membership = -separator.decision_function(split.X_test)
    assert average_precision_score(1 - split.y_test, membership) > 0.98, "published: 1.00"


def test_gaussians_are_told_apart_as_well_as_by_a_halfspace():
    split = make_gaussians(noise_multiplier=1.0, random_state=0)
    separator = EqualitySeparator(random_state=0).fit(split.X_train, split.y_train)
    assert separator.score(split.X_test, split.y_test) > 0.97


def test_shuffled_labels_ruin_the_score():
    split = make_hyperplane(n_features=5, n_samples=300, random_state=3)
    separator = EqualitySeparator(margin_class=0, random_state=0)

    def quality(y):
        score = separator.fit(split.X_train, y).decision_function(split.X_test)
        return average_precision_score(split.y_test, score)

    shuffled = np.random.default_rng(0).permutation(split.y_train)
    assert quality(split.y_train) > 0.95
    assert quality(shuffled) < 0.6


def test_repeating_a_row_is_weighting_it():
    split = make_gaussians(noise_multiplier=7.0, random_state=2)
    X, y = split.X_train, split.y_train
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = EqualitySeparator(alpha=0.1, random_state=0).fit(X, y, sample_weight=times)
    repeated = EqualitySeparator(alpha=0.1, random_state=0)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4)
    assert_allclose(weighted.epsilon_, repeated.epsilon_, rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(-8, 8), shift=st.floats(-1e3, 1e3), seed=st.integers(0, 5))
def test_units_of_a_column_do_not_matter(scale, shift, seed):
    split = make_hyperplane(n_features=3, noise=0.1, random_state=seed)
    X, Z = split.X_train, split.X_train.copy()
    Z[:, 0] = Z[:, 0] * 10**scale + shift * 10**scale
    plain = EqualitySeparator(random_state=0).fit(X, split.y_train)
    other = EqualitySeparator(random_state=0).fit(Z, split.y_train)
    assert_allclose(other.loss_, plain.loss_, rtol=1e-2, atol=1e-4)


def test_the_penalty_shrinks_the_weights():
    split = make_gaussians(noise_multiplier=7.0, random_state=0)
    size = [
        np.linalg.norm(
            EqualitySeparator(alpha=alpha, margin_class=0, random_state=0)
            .fit(split.X_train, split.y_train)
            .coef_
        )
        for alpha in (0.0, 0.1, 10.0)
    ]
    assert size[0] > size[1] > size[2]


def test_screening_keeps_the_best_start(monkeypatch):
    """One start is so far off that every row is outside and the slope is zero: it stays high."""
    monkeypatch.setattr(planes, "SCREENED_ROWS", 50)
    split = make_hyperplane(n_features=3, random_state=0)
    rows = np.column_stack([split.X_train, np.ones(100)])
    starts = np.array([[0.0, 0.0, 0.0, 1e6], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, -1e6]])
    search = planes.Search(GaussianBump(5.0), SquaredLoss(), 0.0, BFGS())
    found, _ = search.run(
        rows,
        1.0 - split.y_train[:, None],
        np.full(100, 0.01),
        [starts],
        rng=np.random.RandomState(0),
    )
    assert found.value.tolist() == [pytest.approx(0, abs=0.05)], "all outside would cost 0.9"


def test_the_penalty_leaves_the_bias_alone():
    rows, target = np.ones((4, 1)), np.zeros((4, 1))
    search = planes.Search(GaussianBump(), SquaredLoss(), 10.0, BFGS())
    found, _ = search.run(
        rows, target, np.full(4, 0.25), [np.array([[0.5]])], rng=np.random.RandomState(0)
    )
    assert abs(found.weights[0, 0]) > 2, "away from the plane, at no cost"


def test_distance_keeps_its_meaning_at_any_scale():
    split = make_gaussians(noise_multiplier=1.0, random_state=0)
    X, y = split.X_train, split.y_train
    plain = EqualitySeparator(random_state=0).fit(X, y).distance(X)
    for scale in (1e-200, 1e160, 1e200, 1e300):
        scaled = EqualitySeparator(random_state=0).fit(X * scale, y).distance(X * scale)
        assert_allclose(scaled / scale, plain, rtol=1e-3)


def test_many_rows_are_screened_on_a_sample_and_fitted_on_all(monkeypatch):
    split = make_hyperplane(n_features=6, n_samples=3000, noise=0.3, random_state=0)
    full = EqualitySeparator(random_state=0).fit(split.X_train, split.y_train)
    monkeypatch.setattr(planes, "SCREENED_ROWS", 500)
    screened = EqualitySeparator(random_state=0).fit(split.X_train, split.y_train)
    assert_allclose(screened.loss_, full.loss_, rtol=1e-3)


def test_kinds_by_name_are_accepted_and_answered():
    X, y = XOR
    kinds = np.where(y == 1, "normal", np.array(["dos", "", "", "probe"]))
    separator = EqualitySeparator(random_state=0).fit(X, kinds)
    assert separator.predict(X).tolist() == ["anomaly", "normal", "normal", "anomaly"]
    assert separator.score(X, kinds) == 1.0
    assert separator.score(X, np.where(kinds == "normal", "dos", "normal")) == 0.0


def test_huge_numbers_and_constant_columns_give_a_right_answer():
    X, y = XOR
    huge = np.column_stack([X * 1e300, np.full(4, 7e299), np.zeros(4)])
    separator = EqualitySeparator(random_state=0).fit(huge, y)
    assert separator.predict(huge).tolist() == y.tolist()
    assert separator.coef_[2:].tolist() == [0, 0]
    plain = EqualitySeparator(margin_class=1, random_state=0).fit(X, y)
    assert np.isfinite(plain.decision_function([[1e300, 1e300], [-1e300, 1e300]])).all()
    far = plain.predict_proba([[1e300, 1e300]])
    assert far.tolist() == [[1, 0]], "far off the plane through (0, 1) and (1, 0)"


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("label", [0, 1])
def test_a_constant_function_is_a_line_that_meets_no_row(label, loss):
    X, rng = XOR[0], np.random.default_rng(0)
    separator = EqualitySeparator(loss=loss, random_state=0).fit(X, np.full(4, label))
    assert separator.margin_class_ == 1 - label
    assert (separator.distance(X) > 0.5).all()
    assert (separator.predict(rng.uniform(size=(50, 2))) == label).all(), "between the corners"
    assert np.isfinite(separator.loss_)
    within = EqualitySeparator(loss=loss, margin_class=label, random_state=0)
    assert (within.fit(X, np.full(4, label)).predict(X) == label).all()
    strict = EqualitySeparator(loss=loss, rule="strict").fit(X, np.full(4, label))
    assert (strict.predict(X) == label).all()
    only = EqualitySeparator(loss=loss).fit(X[:1], [label])
    assert only.predict(X[:1]).tolist() == [label]


def test_weights_may_leave_one_class_only():
    X, y = XOR
    separator = EqualitySeparator(random_state=0).fit(X, y, sample_weight=1 - y)
    assert (separator.predict(X) == 0).all()


def test_rows_that_are_all_alike_give_one_answer_and_no_nan():
    separator = EqualitySeparator(random_state=0).fit(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert np.isfinite(separator.distance(np.ones((2, 2)))).all()
    assert separator.predict(np.ones((2, 2))).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"head": Sigmoid()}, r"head must be a bump.*got Sigmoid\(\)"),
        ({"head": Ridge(), "loss": "logistic"}, r"needs log p, which Ridge\(\) lacks"),
        ({"head": GaussianBump(), "sigma": 2.0}, "sigma and head were both given"),
        ({"sigma": -1.0}, "sigma must be positive, got -1.0"),
        ({"n_init": 0}, "n_init must be at least 1"),
        ({"alpha": -1}, "alpha at least 0"),
        ({"init": "zero"}, r"init must be one of \['informed', 'normal'\], got 'zero'"),
        ({"rule": "loose"}, r"rule must be one of"),
        ({"margin_class": 7}, r"margin_class must be 'auto' or one of \[0, 1\], got 7"),
        ({"loss": "hinge"}, "Unknown loss 'hinge'"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_in_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        EqualitySeparator(**parameters).fit(*XOR)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[np.nan, 0.0], [1.0, 1.0]], [0, 1], "contains NaN"),
        ([[np.inf, 0.0], [1.0, 1.0]], [0, 1], "contains infinity"),
        (np.empty((0, 2)), [], "0 sample"),
        ([[0.0], [1.0]], [7, 7], "Only the label 7 occurs, so its meaning is open"),
        ([[0.0], [1.0], [2.0]], [0, 1, 2], "3 labels"),
        ([[0.0], [1.0]], [0, 1, 1], "inconsistent numbers of samples"),
    ],
)
def test_bad_rows_and_labels_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        EqualitySeparator().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], r"expected \(4,\): one weight for each row"),
        ([1, 1, 1, -1], "must be finite, not negative"),
        ([0, 0, 0, 0], "not all zero"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        EqualitySeparator().fit(*XOR, sample_weight=weight)


def test_a_search_cut_short_warns_and_says_what_to_do():
    split = make_gaussians(noise_multiplier=10.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 iterations.*max_iter"):
        EqualitySeparator(solver=BFGS(max_iter=2), random_state=0).fit(split.X_train, split.y_train)
