"""The demonstration's results."""

import numpy as np
import pytest

from eqsep.demo import FAMILIES, run_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo()


def test_one_class_of_xor_lies_on_one_line_and_the_other_off_it(demo):
    classes = [[corner.distance for corner in demo.xor if corner.y == y] for y in (0, 1)]
    on, off = sorted(classes, key=max)
    assert max(on) < 0.05 < 0.5 < min(off)
    assert all(corner.predicted == corner.y for corner in demo.xor)


def test_every_function_that_is_not_constant_was_tried_and_fitted(demo):
    assert len(set(demo.functions)) == 14
    assert not {"true", "false"} & set(demo.functions)
    assert demo.fitted == demo.functions


def of(demo, method):
    return {one.gamma: one for one in demo.circles if one.method == method}


def test_the_closed_separator_ranks_the_unseen_circle_first_at_every_width(demo):
    ours = of(demo, "KernelEqualitySeparator")
    assert list(ours) == ["default", "8", "16"]
    for one in ours.values():
        assert one.average_precision > 0.99
        assert one.flags_far
    assert ours["8"].flagged > 0.95
    assert ours["8"].false_alarms < 0.05


def test_at_no_width_does_the_support_vector_machine_do_better(demo):
    ours, svc = of(demo, "KernelEqualitySeparator"), of(demo, "SVC")
    assert list(svc) == list(ours)
    for gamma in svc:
        assert svc[gamma].average_precision <= ours[gamma].average_precision
        assert svc[gamma].flagged <= ours[gamma].flagged
    assert svc["default"].average_precision < demo.prevalence == 0.25


def test_closing_rows_agree_with_the_paper(demo):
    numbers = {(row.family, row.n_features): row.number for row in demo.closing}
    for n in (2, 3, 10):
        assert [numbers[family, n] for family in FAMILIES] == [1, n, n + 1]
    for row in demo.closing:
        assert 0 <= row.at_n <= row.at_n_plus_1 <= row.at_2n <= 1


def test_panels_hold_fitted_estimators_of_the_plane(demo):
    assert len(demo.panels) == 4
    for estimator, X, y, title in demo.panels:
        assert estimator.n_features_in_ == np.shape(X)[1] == 2
        assert len(X) == len(y)
        assert title


def test_another_seed_tells_the_same_story():
    other = run_demo(random_state=1)
    assert other.fitted == other.functions
    ours, svc = of(other, "KernelEqualitySeparator"), of(other, "SVC")
    assert ours["default"].average_precision > 0.99 > svc["default"].average_precision
    assert ours["8"].flagged > svc["8"].flagged
