import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, rosen, rosen_der

from eqsep.solvers import BFGS, LBFGS

SOLVERS = [BFGS(), LBFGS()]


def banana(W, _):
    return np.array([rosen(w) for w in W]), np.array([rosen_der(w) for w in W])


def bowls(W, problems):
    """Problem i has its minimum at i in every coordinate."""
    gap = W - problems[:, None]
    return (gap**2).sum(axis=1), 2 * gap


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_finds_the_minimum_that_scipy_finds(solver):
    start = np.array([-1.2, 1.0, 0.5, 2.0])
    ours = solver.minimise(banana, start[None, :])
    theirs = minimize(rosen, start, jac=rosen_der, method="BFGS", options={"gtol": 1e-8})
    assert ours.converged.all()
    assert_allclose(ours.weights[0], theirs.x, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_batch_gives_what_its_starts_give_alone(solver):
    starts = np.random.default_rng(0).standard_normal((6, 3))
    together = solver.minimise(banana, starts)
    for i, start in enumerate(starts):
        alone = solver.minimise(banana, start[None, :])
        assert_allclose(together.weights[i], alone.weights[0], atol=1e-6)
        assert together.n_iter[i] == alone.n_iter[0]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_each_start_keeps_its_own_problem_when_others_drop_out(solver):
    starts = np.zeros((4, 2))
    found = solver.minimise(bowls, starts)
    assert_allclose(found.weights, np.arange(4)[:, None] + np.zeros(2), atol=1e-6)
    assert found.n_iter[0] == 0, "the first start stands on its minimum already"
    assert found.best == 0


@pytest.mark.parametrize("solver", [BFGS(max_iter=3), LBFGS(max_iter=3)], ids=repr)
def test_running_out_of_iterations_is_a_field_not_an_error(solver):
    found = solver.minimise(banana, np.array([[-1.2, 1.0]]))
    assert not found.converged[0]
    assert found.n_iter[0] == 3
    assert found.gradient_norm[0] > 1e-3


@pytest.mark.parametrize("solver", [BFGS(max_iter=0), LBFGS(max_iter=0)], ids=repr)
def test_no_iterations_leave_the_start_unchanged(solver):
    start = np.array([[-1.2, 1.0]])
    assert_array_equal(solver.minimise(banana, start).weights, start)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_a_start_where_the_goal_is_not_finite_stops_and_is_never_the_best(solver):
    def edge(W, problems):
        value, gradient = bowls(W, problems)
        return np.where(W[:, 0] > 10, np.nan, value), gradient

    found = solver.minimise(edge, np.array([[20.0, 0.0], [1.0, 1.0]]))
    assert found.best == 1
    assert found.converged.tolist() == [False, True]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_the_value_never_rises(solver):
    values = []
    for max_iter in range(1, 12):
        steps = type(solver)(max_iter=max_iter)
        values.append(steps.minimise(banana, np.array([[-1.2, 1.0]])).value[0])
    assert np.all(np.diff(values) <= 0)
