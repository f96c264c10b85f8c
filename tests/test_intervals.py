"""Bootstrap intervals of average precision and of the difference of two."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import average_precision_score

from eqsep.evaluation import (
    average_precision_by_kind,
    average_precision_difference,
    average_precision_interval,
    prevalence_by_kind,
)

SHIFT = {"normal": 0.0, "flood": 1.0, "scan": 2.0}


@pytest.fixture
def rows():
    """Scores with ties, in random order."""
    rng = np.random.default_rng(0)
    kind = rng.permutation(np.repeat(list(SHIFT), [150, 20, 40]))
    return rng.normal([SHIFT[name] for name in kind]).round(1), kind


def test_the_value_is_average_precision_and_chance_the_prevalence(rows):
    score, kind = rows
    found = average_precision_interval(score, kind, n_resamples=20, random_state=0)
    assert list(found) == ["flood", "scan", "overall"]
    assert {name: one.value for name, one in found.items()} == pytest.approx(
        average_precision_by_kind(score, kind)
    )
    assert {name: one.prevalence for name, one in found.items()} == prevalence_by_kind(kind)


def test_prevalence_is_what_a_constant_score_gets(rows):
    _, kind = rows
    constant = np.zeros(len(kind))
    assert prevalence_by_kind(kind) == pytest.approx(average_precision_by_kind(constant, kind))
    for one in average_precision_interval(constant, kind, n_resamples=20).values():
        assert_allclose([one.low, one.high], one.prevalence)  # as many rows of each kind are drawn
    with pytest.raises(ValueError, match="found none"):
        prevalence_by_kind(["normal", "normal"])


def test_the_ends_are_those_of_scipys_bootstrap(rows):
    """SciPy resamples the normal and the anomalous scores apart, which is one stratum each."""
    score, kind = rows

    def area(normal, anomalous):
        y = np.repeat([0, 1], [len(normal), len(anomalous)])
        return average_precision_score(y, np.concatenate([normal, anomalous]))

    expected = stats.bootstrap(
        (score[kind == "normal"], score[kind == "scan"]),
        area,
        method="percentile",
        vectorized=False,
        n_resamples=400,
        confidence_level=0.8,
        random_state=np.random.default_rng(0),
    ).confidence_interval
    found = average_precision_interval(score, kind, confidence=0.8, n_resamples=400, random_state=0)
    assert_allclose([found["scan"].low, found["scan"].high], expected, atol=0.012)


def test_overall_draws_as_many_rows_of_each_kind_as_there_are():
    """Two kinds that never mix: drawn from all anomalies alike, overall would vary."""
    kind = np.repeat(["normal", "above", "below"], [30, 10, 10])
    score = np.repeat([0.0, 1.0, -1.0], [30, 10, 10])
    found = average_precision_interval(score, kind, n_resamples=50, random_state=0)
    overall = found["overall"]
    assert overall.low == overall.high == overall.value
    assert_allclose(overall.value, 0.5 * 1 + 0.5 * 20 / 50)
    assert (found["above"].low, found["above"].high) == (1, 1)


@pytest.mark.extra
def test_most_intervals_hold_the_true_value():
    rng = np.random.default_rng(0)
    many = np.repeat([0, 1], [80_000, 16_000])
    truth = average_precision_score(many, rng.normal(1.5 * many))
    kind = np.repeat(["normal", "scan"], [200, 40])
    shift = 1.5 * (kind == "scan")
    found = [
        average_precision_interval(rng.normal(shift), kind, n_resamples=100, random_state=seed)
        for seed in range(100)
    ]
    held = np.mean([one["scan"].low <= truth <= one["scan"].high for one in found])
    assert 0.88 <= held <= 0.99


def test_a_seed_decides_the_draws_and_more_confidence_is_wider(rows):
    first, again, other, wider = (
        average_precision_interval(*rows, random_state=seed, confidence=share, n_resamples=100)
        for seed, share in ((1, 0.9), (1, 0.9), (2, 0.9), (1, 0.99))
    )
    assert first == again
    assert first != other
    for name in first:
        assert wider[name].low <= first[name].low <= first[name].high <= wider[name].high


def test_a_difference_is_that_of_the_values_and_turns_its_sign(rows):
    score, kind = rows
    noisy = score + np.random.default_rng(1).normal(size=len(kind))
    there = average_precision_difference({"a": score, "b": noisy}, kind, random_state=0)
    back = average_precision_difference({"b": noisy, "a": score}, kind, random_state=0)
    areas = [average_precision_by_kind(s, kind) for s in (score, noisy)]
    for name, one in there.items():
        assert_allclose(one.value, areas[0][name] - areas[1][name])
        assert_allclose([one.low, one.high], [-back[name].high, -back[name].low])
    assert there["overall"].low > 0


def test_the_draws_of_two_scores_are_paired(rows):
    score, kind = rows
    same = average_precision_difference({"a": score, "b": 2 * score}, kind, n_resamples=50)
    assert {(one.value, one.low, one.high) for one in same.values()} == {(0, 0, 0)}


def test_kinds_may_be_numbers(rows):
    score, kind = rows
    number = np.array([list(SHIFT).index(name) for name in kind])
    options = {"n_resamples": 20, "random_state": 0}
    named = average_precision_interval(score, kind, **options)
    numbered = average_precision_interval(score, number, normal=0, **options)
    assert list(numbered) == ["1", "2", "overall"]
    assert list(numbered.values()) == list(named.values())
    gain = average_precision_difference({"a": score, "b": -score}, number, normal=0, **options)
    assert list(gain) == list(numbered)


def test_intervals_read_as_text(rows):
    found = average_precision_interval(*rows, random_state=0)["scan"]
    assert str(found).startswith(f"{found.value:.3f} [{found.low:.3f}, ")
    assert str(found).endswith("(chance 0.211)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 95}, "between 0 and 1, got 95"),
        ({"n_resamples": 0}, "at least 1, got 0"),
        ({"normal": "good"}, "normal kind 'good'"),
    ],
)
def test_what_makes_no_interval_is_refused(rows, options, message):
    score, kind = rows
    with pytest.raises(ValueError, match=message):
        average_precision_interval(score, kind, **options)
    with pytest.raises(ValueError, match=message):
        average_precision_difference({"a": score, "b": score}, kind, **options)


def test_a_difference_needs_two_scores(rows):
    score, kind = rows
    with pytest.raises(ValueError, match=r"expected 2 scores, got 1 \(\['a'\]\)"):
        average_precision_difference({"a": score}, kind)
    with pytest.raises(ValueError, match="got 209 scores and 210 kinds"):
        average_precision_difference({"a": score, "b": score[1:]}, kind)
