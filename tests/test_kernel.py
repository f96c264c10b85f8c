"""The kernel separator: closed by construction, exact in its sums, and the paper's way."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from spheres import problem, relative

from eqsep import EqualitySeparator, KernelEqualitySeparator
from eqsep.datasets import make_circles
from eqsep.engine.nystroem import Statistics
from eqsep.kernels import LOCAL_KERNELS, RBF, FunctionKernel
from eqsep.solvers import BFGS

NAMES = sorted(LOCAL_KERNELS)
quick = settings(max_examples=20, deadline=None)


# --- the closed fit ---------------------------------------------------------------------------


def test_the_coefficients_are_those_of_ridge_regression():
    X, y = problem()
    weight = np.random.default_rng(1).uniform(0.1, 3, size=len(X))
    model = KernelEqualitySeparator(alpha=0.7, target=-0.5).fit(X, y, sample_weight=weight)
    features = model.kernel_(X, model.landmarks_)
    ridge = Ridge(alpha=0.7, fit_intercept=False, solver="cholesky")
    ridge.fit(features, np.where(y == 1, -0.5, 1.0), sample_weight=weight)
    assert_allclose(model.coef_, ridge.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(model.decision_function(X), abs(1 - features @ ridge.coef_) - 0.5, atol=1e-9)


@pytest.mark.parametrize("kernel", NAMES)
def test_it_learns_and_shuffled_labels_teach_nothing(kernel):
    X, y = problem(400)
    shuffled = np.random.default_rng(0).permutation(y)
    model = KernelEqualitySeparator(kernel=kernel)
    right, wrong = clone(model).fit(X, y), clone(model).fit(X, shuffled)
    X, y = problem(400, seed=1)
    assert average_precision_score(y, right.decision_function(X)) > 0.99
    assert average_precision_score(y, wrong.decision_function(X)) < 0.7
    assert right.score(X, y) > 0.97


@pytest.mark.parametrize("kernel", NAMES)
@quick
@given(data=st.data())
def test_far_rows_are_anomalous_whatever_was_learnt(kernel, data):
    n, d = data.draw(st.integers(2, 30)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    X = rng.normal(size=(n, d)) * data.draw(st.sampled_from([1e-3, 1.0, 1e4]))
    y = np.array([0, 1, *data.draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    model = KernelEqualitySeparator(
        kernel=kernel,
        alpha=data.draw(st.sampled_from([0.0, 1e-9, 1.0, 100.0])),
        target=data.draw(st.sampled_from([0.0, -1.0, -50.0])),
    ).fit(X, y)
    away = rng.normal(size=(20, d))
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    for distance in (1e4, 1e9, 1e300):
        assert_array_equal(model.decision_function(away * distance * (1 + np.ptp(X))), 0.5)
        assert_array_equal(model.predict(away * distance * (1 + np.ptp(X))), 1)


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("kernel", NAMES)
def test_rows_of_any_size_have_a_finite_score(kernel, library):
    X, y = problem()
    for dtype in (np.float64, np.float32):
        model = KernelEqualitySeparator(kernel=kernel).fit(library(X.astype(dtype)), y)
        huge = library(np.array([[1e300, -1e300, 0.0], [1e160, 0.0, 0.0]]))
        assert_array_equal(model.decision_function(huge), 0.5)


def test_training_rows_too_large_to_be_squared_do_no_harm():
    X, y = problem()
    X[0] = 1e300
    model = KernelEqualitySeparator(random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000])
@pytest.mark.parametrize("kernel", NAMES)
def test_the_fit_is_the_same_at_any_scale(kernel, scale, library):
    X, y = problem()
    plain = KernelEqualitySeparator(kernel=kernel, n_landmarks=40, random_state=0)
    scaled = clone(plain).set_params(landmarks=plain.fit(X, y).landmarks_ * scale, n_landmarks=None)
    scaled.fit(library(X * scale), y)
    assert scaled.score(library(X * scale), y) == plain.score(X, y) > 0.9
    assert_allclose(
        scaled.decision_function(library(X * scale)), plain.decision_function(X), rtol=1e-9
    )


@pytest.mark.parametrize("closed", [True, False])
def test_probabilities_agree_with_the_prediction(closed):
    X, y = problem()
    model = KernelEqualitySeparator(closed=closed, n_landmarks=20, random_state=0).fit(X, y)
    p, score = model.predict_proba(X), model.decision_function(X)
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(p[:, 1] > 0.5, score > 0)
    assert_array_equal(np.argsort(p[:, 0]), np.argsort(-score, kind="stable"))


def test_without_a_penalty_a_singular_system_has_the_shortest_solution():
    moment = np.array([2.0, 2.0])
    for gram in (np.full((2, 2), 2.0), np.full((2, 2), 2.0) - 1e-15 * np.eye(2)):
        for library in (np.asarray, torch.as_tensor):
            sums = Statistics(library(gram), library(moment), np.zeros(2))
            assert_allclose(sums.solve(0.0), [0.5, 0.5])


# --- memory -----------------------------------------------------------------------------------


def test_no_more_than_a_chunk_is_ever_held():
    X, y = problem(1000)
    shapes = []

    def spy(X, C):
        shapes.append((len(X), len(C)))
        return RBF(1.0)(X, C)

    model = KernelEqualitySeparator(
        kernel=FunctionKernel(spy, is_local=True), n_landmarks=30, chunk_size=64
    )
    model.fit(X, y).decision_function(X)
    model.predict_proba(X)
    assert max(shapes) == (64, 30)
    assert sum(n for n, _ in shapes) == 3000


def test_memory_does_not_grow_with_the_rows():
    n, most = 20_000, 50
    X, y = problem(n, 4)
    tracemalloc.start()
    KernelEqualitySeparator(n_landmarks=most, chunk_size=500).fit(X, y).decision_function(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * most * 8 / 2, "half of the n by L kernel values, 1/800 of n by n"


# --- torch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", NAMES)
def test_numpy_and_torch_agree(kernel):
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, size=len(X)) / 2
    model = KernelEqualitySeparator(kernel=kernel, n_landmarks=30, random_state=0, chunk_size=50)
    here = clone(model).fit(X, y, sample_weight=weight)
    there = clone(model).fit(torch.tensor(X), torch.tensor(y), sample_weight=torch.tensor(weight))
    for name in ("landmarks_", "coef_", "gram_", "moment_"):
        assert isinstance(getattr(there, name), torch.Tensor)
        assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-10, atol=1e-10)
    for method in ("decision_function", "predict_proba"):
        score = getattr(there, method)(torch.tensor(X))
        assert isinstance(score, torch.Tensor)
        assert_allclose(score, getattr(here, method)(X), rtol=1e-10, atol=1e-10)
    assert_array_equal(there.predict(torch.tensor(X)), here.predict(X))
    there.partial_fit(torch.tensor(X), y).forget(torch.tensor(X), y)
    assert relative(there.coef_, here.coef_) < 1e-9


def test_landmarks_follow_the_rows_into_their_library():
    X, y = problem()
    model = KernelEqualitySeparator(landmarks=X[:9]).fit(torch.tensor(X), y)
    assert isinstance(model.landmarks_, torch.Tensor)


def test_rows_of_another_library_are_refused():
    X, y = problem()
    model = KernelEqualitySeparator().fit(X, y)
    for method in (model.predict, lambda X: model.partial_fit(X, y), lambda X: model.forget(X, y)):
        with pytest.raises(
            TypeError, match="fitted to rows of numpy on cpu, but got rows of torch"
        ):
            method(torch.tensor(X))
    with pytest.raises(TypeError, match="fitted to rows of torch"):
        KernelEqualitySeparator().fit(torch.tensor(X), y).predict(X)
    with pytest.raises(TypeError, match="closed=False is fitted in NumPy, got Tensor"):
        KernelEqualitySeparator(closed=False).fit(torch.tensor(X), y)


# --- the paper's way --------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_the_papers_circles(loss, seed):
    """Kernel features at all 100 training rows, sigma 10: an AUPR of 1.00 in the paper."""
    circles = make_circles(protocol="paper", random_state=seed)
    linear = EqualitySeparator(
        sigma=10,
        loss=loss,
        init="normal",
        n_init=1,
        margin_class="normal",
        solver=BFGS(),
        random_state=seed,
    )
    model = KernelEqualitySeparator(closed=False, gamma=0.5, separator=linear, random_state=0)
    model.fit(circles.X_train, circles.kind_train)
    assert model.landmarks_.shape == (100, 2)
    assert_array_equal(model.predict(circles.X_train) == "normal", circles.kind_train == "normal")
    score = -model.decision_function(circles.X_test)
    assert average_precision_score(circles.kind_test == "normal", score) > 0.995


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("protocol", ["paper", "corrected"])
def test_the_circles_by_default(closed, protocol):
    circles = make_circles(protocol=protocol, random_state=1)
    model = KernelEqualitySeparator(closed=closed, gamma=0.5, random_state=0)
    score = model.fit(circles.X_train, circles.y_train).decision_function(circles.X_test)
    assert average_precision_score(circles.y_test, score) > 0.995


def test_the_open_separator_is_the_linear_one_on_kernel_values():
    X, y = problem()
    linear = EqualitySeparator(random_state=0, margin_class=0)
    model = KernelEqualitySeparator(
        kernel="polynomial", closed=False, landmarks=X[:6], separator=linear
    ).fit(X, y)
    features = model.kernel_(X, X[:6])
    direct = clone(linear).fit(features, y)
    for method in ("decision_function", "predict_proba", "distance"):
        assert_allclose(getattr(model, method)(X), getattr(direct, method)(features))
    assert model.set_params(separator=None).fit(X, y).separator_.margin_class == 0
    with pytest.raises(NotFittedError):
        linear.predict(X)
    with pytest.raises(AttributeError, match="no attribute 'distance'"):
        KernelEqualitySeparator().distance  # noqa: B018  the access is what fails


# --- in company, and errors at the door ---------------------------------------------------------


def test_it_works_inside_scikit_learn():
    X, y = problem(200)
    model = KernelEqualitySeparator(kernel=RBF(), n_landmarks=40, random_state=0)
    grid = {"kernelequalityseparator__kernel__gamma": [0.01, 1.0, 100.0]}
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model), grid, scoring="average_precision", cv=3
    ).fit(X, y)
    assert search.best_score_ > 0.95
    assert search.best_estimator_[-1].gamma_ == 1.0
    for ensemble in (
        BaggingClassifier(model, n_estimators=3, random_state=0),
        AdaBoostClassifier(clone(model).set_params(alpha=1e-3), n_estimators=3, random_state=0),
    ):
        assert ensemble.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rfb"}, "Unknown kernel 'rfb'"),
        ({"kernel": "linear"}, "closed=True needs a local kernel"),
        ({"kernel": lambda X, C: X @ C.T}, "closed=True needs a local kernel"),
        ({"gamma": 0}, "gamma must be a number above 0"),
        ({"gamma": 1.0, "kernel": RBF()}, "were both given"),
        ({"alpha": -1.0}, "alpha must be at least 0"),
        ({"target": 0.5}, "target at most 0"),
        ({"target": np.nan}, "target at most 0"),
        ({"n_landmarks": 0}, "n_landmarks must be at least 1"),
        ({"chunk_size": 0}, "chunk_size must be at least 1"),
        ({"landmarks": np.ones((4, 2))}, r"landmarks must have shape \(n_landmarks, 3\)"),
        ({"landmarks": np.ones(3)}, r"landmarks must have shape \(n_landmarks, 3\)"),
        ({"landmarks": [[0.0, 0.0, np.nan]]}, "landmarks contain NaN"),
        ({"landmarks": np.ones((4, 3)), "n_landmarks": 4}, "were both given"),
        ({"separator": EqualitySeparator()}, "separator goes with closed=False"),
    ],
)
def test_parameters_that_cannot_be_are_refused(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        KernelEqualitySeparator(**parameters).fit(X, y)


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_must_be_finite(library, value):
    X, y = problem()
    model = KernelEqualitySeparator().fit(library(X), y)
    X[3, 1] = value
    for method in (model.predict, lambda X: clone(model).fit(X, y)):
        with pytest.raises(ValueError, match=r"(?i)contains (NaN|infinity)"):
            method(library(X))


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
def test_rows_must_have_the_columns_of_the_fit(library):
    X, y = problem()
    model = KernelEqualitySeparator().fit(library(X), y)
    for method in (model.predict, lambda X: model.partial_fit(X, y), lambda X: model.forget(X, y)):
        with pytest.raises(
            ValueError, match="X has 2 features, but KernelEqualitySeparator is expecting 3"
        ):
            method(library(X[:, :2]))


def test_a_fit_needs_both_classes():
    X, y = problem()
    with pytest.raises(ValueError, match="expected at least 2 classes"):
        KernelEqualitySeparator().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="2 classes of positive weight"):
        KernelEqualitySeparator().fit(X, y, sample_weight=y)


def test_what_was_not_fitted_says_so():
    model = KernelEqualitySeparator()
    for method in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(NotFittedError):
            method([[0.0]])
    with pytest.raises(NotFittedError):
        model.forget([[0.0]], [0])
    with pytest.raises(NotFittedError):
        model.merge(model)
