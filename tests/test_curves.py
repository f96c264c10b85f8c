"""Curves by kind, counted scores, and promises of false alarms."""

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.metrics import average_precision_score

from eqsep.detector.calibration import Calibration
from eqsep.evaluation import (
    GroupRates,
    kept_promise,
    kept_promises,
    precision_recall_by_kind,
    score_histogram,
)


def test_a_curve_of_many_rows_keeps_its_shape_and_its_area():
    rng = np.random.default_rng(0)
    kind = np.repeat(["normal", "scan"], [3000, 2000])
    score = rng.normal(np.repeat([0, 1], [3000, 2000]))
    curve = precision_recall_by_kind(score, kind)["scan"]
    assert len(curve.recall) <= 400
    assert curve.recall[-1] == 1
    assert curve.average_precision == average_precision_score(kind == "scan", score)
    assert_allclose(
        np.sum(np.diff(np.append(0, curve.recall)) * curve.precision),
        curve.average_precision,
        atol=0.01,
    )
    assert curve.prevalence == 0.4


def test_overall_comes_last_and_holds_all_kinds():
    curves = precision_recall_by_kind([0, 1, 2, 3], ["normal", "b", "normal", "a"])
    assert list(curves) == ["a", "b", "overall"]
    assert curves["overall"].prevalence == 0.5


def test_bins_hold_every_row_and_the_threshold():
    score = np.array([0.1, 0.2, 0.4, 3.0])
    found = score_histogram(score, ["normal", "normal", "x", "x"], threshold=5.0, bins=10)
    assert (found.edges[0], found.edges[-1]) == (0, 5)
    assert list(found.shares) == ["normal", "x"]
    assert_allclose([shares.sum() for shares in found.shares.values()], 1)
    assert found.above == {"normal": 0, "x": 0}


def test_equal_scores_have_a_bin_too():
    assert_allclose(score_histogram([2.0, 2.0], ["normal"] * 2).shares["normal"].sum(), 1)


def test_the_thresholds_are_those_of_the_calibration():
    rng = np.random.default_rng(0)
    held = rng.normal(size=399)
    calibration = Calibration(held)
    for promise in kept_promises(rng.normal(size=100), calibration=calibration.ordered):
        assert promise.threshold == calibration.threshold(promise.rate)


def test_rates_that_cannot_be_promised_are_left_out():
    rates = [p.rate for p in kept_promises(np.zeros(9), calibration=np.arange(99))]
    assert rates == [0.01, 0.02, 0.05, 0.1]
    assert kept_promises([], calibration=np.arange(99)) == ()


def verdicts(true_rate, *, held_out, rows, n=150, rate=0.02):
    """How often each word is said of models with this mean rate, over draws of held-out rows."""
    rng = np.random.default_rng(0)
    rank = int(rate * (held_out + 1))
    own = rng.beta(rank, held_out + 1 - rank, size=n) * true_rate / rate
    own = own if held_out < 9_999 else np.full(n, true_rate)
    found = Counter()
    for alarms, times in Counter(rng.binomial(rows, np.minimum(own, 1)).tolist()).items():
        promise = kept_promise(alarms, rows, rate=rate, rank=rank, held_out=held_out)
        found[promise.verdict.word] += times / n
    return found


@pytest.mark.parametrize("held_out", [99, 999, 9_999])
@pytest.mark.parametrize("rows", [50, 500, 5_000])
def test_a_promise_that_holds_is_hardly_ever_called_broken(held_out, rows):
    assert verdicts(0.02, held_out=held_out, rows=rows)["broken"] <= 0.05


@pytest.mark.parametrize("rows", [50, 200, 500, 5_000])
def test_twice_the_promised_rate_is_hardly_ever_called_kept(rows):
    found = verdicts(0.04, held_out=9_999, rows=rows)
    assert found["kept"] <= 0.05
    assert rows < 5_000 or found["broken"] > 0.95


def test_enough_rows_tell_that_a_promise_is_kept():
    few = kept_promise(4, 200, rate=0.02, rank=200, held_out=9_999).verdict
    assert few.word == "cannot tell"
    assert 200 < few.units < 1_000
    assert verdicts(0.02, held_out=9_999, rows=3 * few.units)["kept"] > 0.9
    assert kept_promise(0, few.units, rate=0.02, rank=200, held_out=9_999).verdict.word == "kept"


def test_a_rate_above_the_promise_is_never_called_kept_and_luck_is_named():
    few = kept_promise(15, 628, rate=0.01, rank=1, held_out=99)  # 2.39 % [1.34 %, 3.91 %]
    assert few.low > 0.01
    assert str(few.verdict).endswith("but with so few held-out rows this may be chance")
    many = kept_promise(15, 628, rate=0.01, rank=50, held_out=4_999)
    assert str(many.verdict).startswith("broken, or bad luck: if the promise holds, 1 test in 300 ")
    assert str(kept_promise(30, 628, rate=0.01, rank=50, held_out=4_999).verdict) == "broken"
    assert str(kept_promise(15, 628, rate=0.01, rank=0, held_out=80).verdict) == (
        "no promise was made"
    )


def test_no_number_of_rows_is_named_where_none_would_do():
    """With 1,199 held-out rows, a share of 1.6 % may be chance for ever, with any new rows."""
    for more in (1, 4, 100):
        lasting = kept_promise(157 * more, 9747 * more, rate=0.01, rank=12, held_out=1199)
        assert str(lasting.verdict).endswith("but with so few held-out rows this may be chance")


def group_verdicts(true_rate, *, n_groups, n=150, rate=0.1, held_out=49):
    """The same over draws of held-out groups and of new ones, which differ."""
    rng = np.random.default_rng(0)
    found = Counter()
    for _ in range(n):
        of_group = 0.7 * rng.normal(size=(held_out + n_groups, 1))
        held, new = np.split(of_group + rng.normal(size=(len(of_group), 30)), [held_out])
        limit = Calibration(
            held.ravel(), groups=np.repeat(np.arange(held_out, dtype=np.uint64), 30)
        ).threshold(rate)
        luck = np.std((held > limit).mean(axis=1)) / held_out**0.5
        exact = norm.ppf(1 - true_rate, scale=(0.7**2 + 1) ** 0.5)
        alarm = new > (limit if true_rate == rate else exact)
        rates = GroupRates.of(alarm.mean(axis=1), promised=rate, luck=luck, unit="group")
        found[rates.verdict.word] += 1 / n
    return found


@pytest.mark.parametrize("n_groups", [5, 20, 200])
def test_the_same_of_groups(n_groups):
    assert group_verdicts(0.1, n_groups=n_groups)["broken"] <= 0.05
    twice = group_verdicts(0.2, n_groups=n_groups)
    assert twice["kept"] <= 0.05
    assert n_groups < 200 or twice["broken"] > 0.5


def test_groups_without_an_alarm_do_not_keep_a_promise_if_they_are_few():
    few = GroupRates.of([0.0] * 4, promised=0.05, luck=0.01, unit="group")
    assert str(few.verdict) == "cannot tell: about 10 groups are needed"
    assert GroupRates.of([0.0] * 19, promised=0.05, luck=0, unit="group").verdict.word == "kept"
    none = GroupRates.of([0.0] * 19, promised=None, luck=0, unit="group")
    assert str(none).endswith("highest 0.00%; no promise was made")


@pytest.mark.parametrize(("shift", "verdict"), [(1.0, "broken"), (-1.5, "kept")])
def test_only_more_alarms_break_the_promise(shift, verdict):
    rng = np.random.default_rng(0)
    promise = kept_promises(
        rng.normal(shift, size=2000), calibration=rng.normal(size=999), rates=[0.05]
    )[0]
    assert promise.verdict.word == verdict
    assert promise.low <= promise.measured <= promise.high


@pytest.mark.parametrize(
    ("alarms", "rows", "rank", "held_out", "words"),
    [
        (8, 1000, 10, 999, "kept"),
        (2, 200, 10, 999, "cannot tell: about 730 normal rows are needed"),
        (40, 1000, 10, 999, "broken"),
        (20, 1000, 100, 9999, "broken, or bad luck: if the promise holds, 1 test in 200 gives"),
        (24, 1000, 1, 99, "cannot tell: more than promised, but with so few held-out rows this"),
        (24, 1000, 0, 50, "no promise was made"),
    ],
)
def test_verdicts_on_a_promise_of_one_in_a_hundred(alarms, rows, rank, held_out, words):
    found = kept_promise(alarms, rows, rate=0.01, rank=rank, held_out=held_out)
    assert str(found.verdict).startswith(words)
