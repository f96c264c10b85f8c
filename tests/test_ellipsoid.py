"""Columns that move together: the ellipsoid of normal rows, and what lies beyond it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import LedoitWolf
from sklearn.metrics import average_precision_score
from summed import term_of

from eqsep import Detector, load_model
from eqsep.datasets import make_process
from eqsep.detector.terms import EllipsoidTerm
from eqsep.detector.terms.term import EncodedRows
from eqsep.engine.backends import NUMPY
from eqsep.engine.ellipsoid import Ellipsoid, along


def together(n, *, noise=0.1, seed=0):
    """Four columns that follow one level, and a constant one."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, 1)) * [1, -2, 0.5, 3] + rng.normal(scale=noise, size=(n, 4))
    return np.column_stack([columns, np.full(n, 7.0)]).astype(np.float32)


def ellipsoid_of(rows):
    return Ellipsoid.of(rows, np.random.RandomState(0))


def along_of(ellipsoid, rows):
    return along(rows, np.arange(rows.shape[1]), ellipsoid.centre, ellipsoid.axes)


def excess_of(ellipsoid, rows):
    """What the term over this ellipsoid says of rows."""
    columns = np.arange(rows.shape[1])
    term = EllipsoidTerm(ellipsoid=ellipsoid, columns=columns, weight=0.1)
    return term.solve(None)(EncodedRows(rows, None, NUMPY), None)


def test_the_axes_are_those_of_the_covariance_of_ledoit_and_wolf():
    rows = together(1500)
    ellipsoid = ellipsoid_of(rows)
    scaled = (rows[:, :4] - rows[:, :4].mean(axis=0)) / rows[:, :4].std(axis=0)
    y = (rows - ellipsoid.centre) @ ellipsoid.axes
    assert_allclose(along_of(ellipsoid, rows), y, atol=1e-9)
    covariance = LedoitWolf(assume_centered=True).fit(scaled)
    assert_allclose((y**2).sum(axis=1), covariance.mahalanobis(scaled), rtol=1e-2, atol=1e-2)


def test_a_step_makes_a_normal_row_rarer_by_a_factor_of_ten():
    ellipsoid = ellipsoid_of(together(20_000))
    steps = excess_of(ellipsoid, together(20_000, seed=1))
    for step in (0, 0.3, 1):
        assert np.mean(steps > step) == pytest.approx(0.1 * 10**-step, rel=0.25)
    assert 0 < np.mean(steps > 2) < 0.001  # Gaussian rows thin out faster


def test_few_rows_of_many_columns_that_its_axes_follow_do_not_make_new_rows_look_rare():
    rng = np.random.default_rng(0)
    ellipsoid = ellipsoid_of(rng.normal(size=(200, 60)))
    assert np.mean(excess_of(ellipsoid, rng.normal(size=(2000, 60))) > 1) < 0.05


def test_a_row_with_usual_values_that_do_not_belong_together_is_beyond():
    ellipsoid = ellipsoid_of(together(2000))
    rows = np.array([[1, -2, 0.5, 3, 7], [1, 2, 0.5, 3, 7], [0.4, -2, 0.5, 3, 7]])
    usual, out_of_step, a_little = excess_of(ellipsoid, rows)
    assert usual == 0
    assert out_of_step > a_little > 0


def test_the_farther_the_more_without_an_end():
    ellipsoid = ellipsoid_of(together(2000))
    rows = np.array([[t, 0, 0, 0, 7] for t in (1, 2, 4, 1e6, 1e30)])
    found = excess_of(ellipsoid, rows)
    assert (np.diff(found) > 0).all()
    assert np.isfinite(found).all()


def test_columns_that_have_nothing_to_do_with_each_other_count_next_to_nothing():
    apart = np.random.default_rng(0).normal(size=(2000, 4))
    assert ellipsoid_of(apart).trust < 0.01
    assert ellipsoid_of(together(2000)).trust == 1
    assert 0.05 < ellipsoid_of(together(2000, noise=1.5)).trust < 1


def test_heavy_tails_count_less_than_gaussian_ones():
    rng = np.random.default_rng(0)
    level = rng.standard_t(df=2, size=(4000, 1))
    heavy = level + 0.3 * rng.standard_t(df=2, size=(4000, 6))
    light = rng.normal(size=(4000, 1)) + 0.3 * rng.normal(size=(4000, 6))
    assert ellipsoid_of(heavy).trust < ellipsoid_of(light).trust / 2


@pytest.mark.parametrize(
    "rows", [np.empty((0, 3)), np.ones((50, 3)), np.random.default_rng(0).normal(size=(50, 1))]
)
def test_less_than_two_columns_that_vary_have_none(rows):
    assert ellipsoid_of(rows) is None


def test_a_row_is_on_its_own_to_the_last_bit():
    ellipsoid, rows = ellipsoid_of(together(2000)), together(3000, seed=2)
    y = along_of(ellipsoid, rows)
    assert_array_equal(
        y, np.concatenate([along_of(ellipsoid, part) for part in np.split(rows, 1000)])
    )
    alone = np.concatenate([excess_of(ellipsoid, rows[i : i + 7]) for i in range(0, 3000, 7)])
    assert_array_equal(excess_of(ellipsoid, rows), alone)


def test_faults_that_show_between_columns_alone_are_found(tmp_path):
    """Of a pump that wears, a detector without the ellipsoid sees little."""
    process = make_process(n_normal_runs=12, n_fault_runs=2, n_rows=200, random_state=0)
    wanted = np.isin(process.kind, ("normal", "pump wear", "blocked pipe"))
    rows, kind, run = process.X[wanted], process.kind[wanted], process.groups[wanted]
    learnt = (kind == "normal") & (np.unique(run, return_inverse=True)[1] % 2 == 0)
    detector = Detector(n_landmarks=300, bandwidth=0.25, random_state=0).fit(rows[learnt])
    score = detector.score_samples(rows[~learnt])
    encoded = detector.plan_.encode(rows[~learnt])
    weight = term_of(detector.plan_, EllipsoidTerm).weight
    without = score - weight * detector.model_.score.values(encoded)["excess"]
    is_fault = kind[~learnt] != "normal"
    precision = [average_precision_score(is_fault, s) for s in (score, without)]
    assert precision[0] > precision[1] + 0.1
    detector.save(tmp_path / "m.eqsep")
    assert_array_equal(load_model(tmp_path / "m.eqsep").score_samples(rows[~learnt]), score)
