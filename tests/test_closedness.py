"""Closedness along each column."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from eqsep import Detector
from eqsep.checks import LeakingColumnWarning
from eqsep.datasets import make_mixed_demo
from eqsep.detector import ColumnClosedness, Config, End, closedness_by_column


@pytest.fixture(scope="module")
def payments():
    table = make_mixed_demo(n_samples=900, as_frame=True, random_state=0)
    return table.X[table.kind == "normal"]


@pytest.fixture(scope="module")
def detector(payments):
    return Detector(config=Config.fast(), n_landmarks=80, bandwidth=1 / 16, random_state=0).fit(
        payments
    )


@pytest.fixture(scope="module")
def found(detector, payments):
    return {one.column: one for one in closedness_by_column(detector, payments)}


def test_every_column_is_looked_at_in_the_order_of_the_table(found, payments):
    assert list(found) == payments.columns.tolist()


def test_with_too_high_a_threshold_no_value_raises_an_alarm():
    """Distances alone keep far values apart with so narrow a kernel; without them nothing does."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    config = replace(Config.fast(), unlabelled_nearest_weight=0.0, unlabelled_excess_weight=0.0)
    with warnings.catch_warnings(action="ignore"):
        narrow = Detector(config=config, bandwidth=0.002, random_state=0).fit(X)
    far = closedness_by_column(narrow, X)
    assert [[end.rings for end in one.ends] for one in far] == [[False] * 3] * 3


def test_values_that_only_anomalies_have_raise_an_alarm_anywhere():
    day = pd.date_range("2024-01-01", periods=300, freq="D")
    is_left = np.arange(300) % 5 == 0
    rows = pd.DataFrame({"size": np.arange(300) % 7, "left": day.where(is_left)})
    detector = Detector(config=Config.fast(), n_landmarks=40, random_state=0)
    with pytest.warns(LeakingColumnWarning):
        detector.fit(rows, np.where(is_left, "gone", "normal"))
    left = closedness_by_column(detector, rows[~is_left])[1]
    assert [(end.alarm, end.since, end.beyond) for end in left.ends] == [(1.0, None, None)] * 2
    inside = left.values[25:-25]
    assert (inside[0], inside[-1]) == ("2024-01-01", "2024-10-22")  # as learnt of anomalies


def test_a_missing_value_is_not_counted_as_one_that_is_far_out():
    def closedness(*ends):
        return ColumnClosedness("x", ("7",), None, np.zeros((1, 3)), 0.5, ends)

    late, silent = End("above", 1.0, "7", 3.0), End("missing", 0.1)
    both = closedness(late, silent)
    assert (both.at_far_values, both.closed, both.is_late) == (True, False, True)
    assert closedness(silent).at_far_values is None
    below = End("below", 0.1)
    assert closedness(below, late).at_far_values is True  # one side is enough
    assert closedness(below, silent).at_far_values is False


def test_far_out_the_alarm_rings_on_both_sides_of_every_number(found):
    for name in ("amount", "items", "distance_km", "minutes_since_last", "account_age_days"):
        below, above = found[name].ends[:2]
        assert (below.where, above.where) == ("below", "above")
        assert below.alarm == above.alarm == 1
        assert float(below.since) < float(above.since)


def test_from_the_value_that_is_named_half_of_the_rows_ring(detector, payments, found):
    above = found["amount"].ends[1]
    passing = payments[detector.predict(payments) == 0]
    share = np.mean(detector.predict(passing.assign(amount=2 * float(above.since))))
    assert share > 0.4
    assert np.mean(detector.predict(passing.assign(amount=float(above.since) / 20))) < 0.3


def test_the_scores_are_those_of_rows_with_the_value(detector, payments):
    one = payments[detector.predict(payments) == 0][:1]
    found = {c.column: c for c in closedness_by_column(detector, one, n_rows=1)}
    channels = found["channel"]
    for name, score in zip(channels.values, channels.score[:, 1], strict=True):
        assert_allclose(detector.score_samples(one.assign(channel=name)), score, atol=1e-6)
    column = found["account_age_days"]
    at = column.position.tolist().index(0.5)
    assert_allclose(column.score[at], detector.score_samples(one)[0], atol=1e-6)


def test_a_missing_value_is_an_end_only_where_normal_rows_have_none(found, payments):
    has_missing = payments.isna().any()
    for name, one in found.items():
        assert ("missing" in {end.where for end in one.ends}) == (not has_missing[name])


def test_a_column_is_closed_where_all_its_ends_ring(found):
    for one in found.values():
        assert one.closed == all(end.alarm >= 0.5 for end in one.ends)
    assert found["amount"].closed


def test_where_the_alarm_rings_is_measured_in_ranges_of_the_normal_rows(found, payments):
    for name in ("amount", "items", "distance_km", "minutes_since_last", "account_age_days"):
        low, high = payments[name].min(), payments[name].max()
        below, above = found[name].ends[:2]
        for end, gap in ((below, low - float(below.since)), (above, float(above.since) - high)):
            assert_allclose(end.beyond, max(gap / (high - low), 0), rtol=0.02, atol=0.02)
            assert end.is_late == (end.beyond > 0.5)


def test_many_columns_keep_the_alarm_of_one_far_out_or_silent():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=(400, 2)), rng.normal(size=(400, 60))
    alone = Detector(config=Config.fast(), n_landmarks=60, random_state=0).fit(few)
    beside = Detector(config=Config.fast(), n_landmarks=60, random_state=0).fit(
        np.hstack([few, many])
    )
    near = closedness_by_column(alone, few)[0]
    far = closedness_by_column(beside, np.hstack([few, many]))[0]
    assert near.closed
    assert not near.is_late
    assert far.is_late or not far.closed


@pytest.mark.parametrize(
    ("alarm", "beyond", "late"),
    [(1.0, 0.0, False), (1.0, 0.5, False), (0.5, 0.6, True), (0.4, None, False)],
)
def test_an_end_is_late_more_than_half_a_range_beyond(alarm, beyond, late):
    end = End("above", alarm, "7", beyond)
    column = ColumnClosedness("x", ("7",), None, np.zeros((1, 3)), 0.5, (end,))
    assert (end.is_late, column.is_late) == (late, late)


def test_dates_keep_their_hour_and_truths_have_no_third_value(found):
    assert found["card_present"].values == ("True", "False")
    assert [end.where for end in found["card_present"].ends] == ["missing"]
    assert all(end.rings for end in found["time"].ends)


def test_a_constant_column_and_rows_that_all_ring_are_looked_at_too():
    X = np.column_stack([np.full(300, 7.0), np.random.default_rng(0).normal(size=300)])
    detector = Detector(config=Config.fast(), random_state=0, false_alarm_rate=0.05).fit(X)
    constant = closedness_by_column(detector, X)[0]
    assert constant.score[constant.position == 0.5, 1] < detector.threshold_
    assert len(closedness_by_column(detector, X + 100)) == 2
