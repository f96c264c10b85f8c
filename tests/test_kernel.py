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

from eqsep import EqualitySeparator, KernelEqualitySeparator
from eqsep.datasets import make_circles
from eqsep.kernels import LOCAL_KERNELS, RBF, Exponential, FunctionKernel
from eqsep.separators.landmarks import choose_landmarks, row_keys
from eqsep.separators.statistics import Statistics
from eqsep.solvers import BFGS

NAMES = sorted(LOCAL_KERNELS)
quick = settings(max_examples=20, deadline=None)


def problem(n=120, d=3, *, seed=0):
    """Normal rows near the unit sphere, anomalies farther out."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), (np.arange(n) % 4 == 0).astype(int)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X * (1 + 1.5 * y[:, None]) + 0.05 * rng.normal(size=(n, d)), y


def relative(a, b):
    return np.linalg.norm(np.asarray(a) - np.asarray(b)) / np.linalg.norm(np.asarray(b))


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


# --- sums add up ------------------------------------------------------------------------------


@quick
@given(data=st.data())
def test_pieces_in_any_number_and_order_give_one_fit(data):
    X, y = problem(80, seed=data.draw(st.integers(0, 100)))
    weight = np.random.default_rng(0).uniform(0, 2, size=80) if data.draw(st.booleans()) else None
    settings = {
        "kernel": data.draw(st.sampled_from(NAMES)),
        "alpha": data.draw(st.sampled_from([1e-3, 1.0])),
        "target": data.draw(st.sampled_from([0.0, -1.0])),
        "landmarks": X[:25],
        "chunk_size": data.draw(st.integers(1, 100)),
    }
    whole = KernelEqualitySeparator(**settings).fit(X, y, sample_weight=weight)
    order = np.array(data.draw(st.permutations(range(80))))
    cuts = data.draw(st.lists(st.integers(1, 79), max_size=12, unique=True))
    model = KernelEqualitySeparator(**settings)
    for piece in np.split(order, sorted(cuts)):
        model.partial_fit(
            X[piece], y[piece], sample_weight=None if weight is None else weight[piece]
        )
    assert relative(model.coef_, whole.coef_) < 1e-6
    assert_allclose(model.weight_sum_, whole.weight_sum_)
    assert_array_equal(model.classes_, whole.classes_)


@quick
@given(data=st.data())
def test_merging_gives_one_fit(data):
    X, y = problem(80, seed=data.draw(st.integers(0, 100)))
    kernel = Exponential(data.draw(st.sampled_from([0.3, 3.0])))
    model = KernelEqualitySeparator(kernel=kernel, landmarks=X[:25])
    cuts = sorted(data.draw(st.lists(st.integers(2, 78), min_size=1, max_size=5, unique=True)))
    parts = [clone(model).partial_fit(X[p], y[p]) for p in np.split(np.arange(80), cuts)]
    first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
    for part in data.draw(st.permutations(parts)):
        kept = part.gram_.copy()
        assert first.merge(part) is first
        assert_array_equal(part.gram_, kept)
    assert relative(first.coef_, model.fit(X, y).coef_) < 1e-6


@quick
@given(data=st.data())
def test_forgetting_undoes_learning(data):
    X, y = problem(80, seed=data.draw(st.integers(0, 100)))
    kept = data.draw(st.integers(10, 79))
    model = KernelEqualitySeparator(kernel=data.draw(st.sampled_from(NAMES)), landmarks=X[:25])
    before = clone(model).fit(X[:kept], y[:kept])
    model.fit(X, y).forget(X[kept:], y[kept:])
    assert relative(model.coef_, before.coef_) < 1e-6
    assert_allclose(model.weight_sum_, before.weight_sum_)


def test_a_fit_starts_afresh_and_learning_goes_on_from_it():
    X, y = problem()
    model = KernelEqualitySeparator(landmarks=X[:20])
    model.partial_fit(X, y).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert relative(model.coef_, clone(model).fit(X, y).coef_) < 1e-10
    model.set_params(closed=False).fit(X, y)
    model.set_params(closed=True).partial_fit(X, y)
    assert_array_equal(model.weight_sum_, [90, 30])
    assert "separator_" not in vars(model)


def test_only_so_much_can_be_forgotten():
    X, y = problem()
    model = KernelEqualitySeparator().fit(X, y)
    with pytest.raises(ValueError, match="Cannot forget more than was learnt"):
        model.forget(np.vstack([X, X[:1]]), np.append(y, y[0]))
    with pytest.raises(ValueError, match="Unknown labels 7"):
        model.forget(X[:1], [7])
    assert_allclose(model.forget(X, y).coef_, 0, atol=1e-9)


def test_pieces_of_one_class_are_learnt_by_the_names_of_their_labels():
    X, y = problem()
    kinds = np.where(y == 0, "normal", np.where(X[:, 0] > 0, "smurf", "neptune"))
    whole = KernelEqualitySeparator(landmarks=X[:20]).fit(X, kinds)
    for order in (["normal", "smurf", "neptune"], ["smurf", "neptune", "normal"]):
        model = KernelEqualitySeparator(landmarks=X[:20])
        for kind in order:
            model.partial_fit(X[kinds == kind], kinds[kinds == kind])
        assert relative(model.coef_, whole.coef_) < 1e-10
        assert_array_equal(model.classes_, whole.classes_)
    parts = [clone(model).partial_fit(X[kinds == kind], kinds[kinds == kind]) for kind in order]
    assert_array_equal(parts[0].classes_, ["normal", "smurf"])
    assert_array_equal(parts[0].merge(parts[1]).merge(parts[2]).classes_, ["normal", "anomaly"])


def test_a_label_without_a_meaning_needs_its_classes():
    X, y = problem()
    model = KernelEqualitySeparator(normal=7)
    with pytest.raises(ValueError, match=r"Pass classes=\[normal, anomalous\]"):
        model.partial_fit(X, np.full(len(X), 7))
    model.partial_fit(X[y == 0], np.full(90, 7), classes=[7, 3]).partial_fit(X[y == 1], [3] * 30)
    assert_array_equal(model.classes_, [7, 3])
    with pytest.raises(ValueError, match="Unknown labels 4"):
        model.partial_fit(X, y + 3)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"alpha": 2.0}, "alpha"),
        ({"target": -1.0}, "target"),
        ({"gamma": 9.0}, "kernel_"),
        ({"kernel": "laplacian"}, "kernel_"),
        ({"landmarks": np.ones((5, 3))}, "landmarks_"),
        ({"landmarks": np.ones((6, 3))}, "landmarks_"),
        ({"closed": False}, "closed"),
    ],
)
def test_what_differs_does_not_merge(change, name):
    X, y = problem()
    model = KernelEqualitySeparator(gamma=1.0, landmarks=X[:5]).fit(X, y)
    other = clone(model).set_params(**change).fit(X, y)
    with pytest.raises(ValueError, match=f"same {name} can be merged"):
        model.merge(other)


def test_two_meanings_of_normal_do_not_merge():
    X, y = problem()
    model = KernelEqualitySeparator(landmarks=X[:5])
    with pytest.raises(ValueError, match="same normal label"):
        clone(model).fit(X, y).merge(model.set_params(normal=1).fit(X, y))


@pytest.mark.parametrize("method", ["partial_fit", "merge", "forget"])
def test_an_open_separator_has_no_sums(method):
    with pytest.raises(AttributeError, match=f"no attribute '{method}'"):
        getattr(KernelEqualitySeparator(closed=False), method)
    assert callable(getattr(KernelEqualitySeparator(), method))


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


def test_the_default_number_of_landmarks_has_a_limit():
    X, y = problem(3000)
    model = KernelEqualitySeparator(random_state=0).fit(X, y)
    assert model.landmarks_.shape == (1500, 3)


# --- landmarks --------------------------------------------------------------------------------


@quick
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 40),
    library=st.sampled_from([np.asarray, torch.as_tensor]),
)
def test_landmarks_depend_on_the_distinct_rows_only(seed, n, library):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, size=(60, 2)) / 3, rng.integers(0, 2, size=60).astype(float)
    again = rng.permutation(np.concatenate([np.arange(60), rng.integers(0, 60, size=50)]))
    signed = np.where(X == 0, -0.0, X)
    chosen = choose_landmarks(library(X), y, n=n, rng=np.random.RandomState(seed))
    other = choose_landmarks(library(signed)[again], y[again], n=n, rng=np.random.RandomState(seed))
    assert_array_equal(chosen, other)
    assert len(np.unique(chosen, axis=0)) == len(chosen) == min(n, len(np.unique(X, axis=0)))


@pytest.mark.parametrize(
    ("n_normal", "n_anomalous", "got"), [(99, 99, 10), (99, 4, 4), (12, 99, 18)]
)
def test_up_to_a_third_of_the_landmarks_is_anomalous(n_normal, n_anomalous, got):
    X = np.arange(n_normal + n_anomalous)[:, None] * 1.0
    y = (X[:, 0] >= n_normal).astype(float)
    chosen = choose_landmarks(X, y, n=30, rng=np.random.RandomState(0))
    assert len(chosen) == 30
    assert (chosen >= n_normal).sum() == got


def test_keys_of_rows_of_small_integers_do_not_collide():
    X = np.stack(np.meshgrid(*[np.arange(8.0)] * 5), axis=-1).reshape(-1, 5)
    keys = row_keys(X, rng=np.random.RandomState(0))
    assert len(np.unique(keys)) == len(X) == 8**5
    assert abs((keys >> np.uint64(63)).mean() - 0.5) < 0.02


def test_another_seed_draws_other_landmarks():
    X, y = problem()
    first, same, other = (
        KernelEqualitySeparator(n_landmarks=10, random_state=seed).fit(X, y).landmarks_
        for seed in (0, 0, 1)
    )
    assert_array_equal(first, same)
    assert (first != other).any()


def test_weight_zero_is_absence_and_weight_two_is_repetition():
    X, y = problem()
    weight = np.random.default_rng(0).integers(0, 3, size=len(X))
    model = KernelEqualitySeparator(n_landmarks=20, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert_array_equal(weighted.landmarks_, repeated.landmarks_)
    assert relative(weighted.coef_, repeated.coef_) < 1e-10


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


def test_sums_of_single_precision_are_kept_in_double():
    X, y = problem()
    for library in (np.asarray, torch.as_tensor):
        model = KernelEqualitySeparator(landmarks=X[:20]).fit(library(X.astype(np.float32)), y)
        assert str(model.gram_.dtype).endswith("float64")
        assert str(model.decision_function(library(X)).dtype).endswith("float32")
        assert (
            relative(model.coef_, KernelEqualitySeparator(landmarks=X[:20]).fit(X, y).coef_) < 1e-3
        )


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
    model = KernelEqualitySeparator(closed=False, gamma=0.5, separator=linear)
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
