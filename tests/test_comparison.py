"""Detectors over data sets: a published worked example, limits, and refusals."""

import doctest

import numpy as np
import pandas as pd
import pytest
from benches import bench
from numpy.testing import assert_allclose
from scipy import stats

comparison = bench("comparison")
compare, compare_pair = comparison.compare, comparison.compare_pair
mean_ranks = comparison.mean_ranks

# Demšar 2006, table 6: AUC of four variants of C4.5 on 14 data sets. On the last but one (voting)
# the printed values of the last two are equal but ranked 2 and 3, which 0.97501 stands for.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
TREES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
PUBLISHED = dict(zip(TREES, AUC.T, strict=True))


def test_mean_ranks_are_the_published_ones():
    expected = dict(zip(TREES, (3.143, 2.000, 2.893, 1.964), strict=True))
    assert mean_ranks(PUBLISHED) == pytest.approx(expected, abs=5e-4)
    assert compare(PUBLISHED).mean_rank == mean_ranks(PUBLISHED)


def test_friedmans_statistic_is_the_published_one_corrected_for_ties():
    """The publication has 9.28 without the correction, by 1 - sum(t³ - t) / N (k³ - k)."""
    found = compare(PUBLISHED)
    tied = 1 - (6 + 6 + 60 + 6) / (14 * 60)  # three pairs and one data set with all four equal
    assert_allclose(found.friedman.value * tied, 9.28, atol=0.005)
    assert_allclose(found.friedman.p_value, stats.chi2.sf(found.friedman.value, 3))


def test_the_f_statistic_is_the_published_one_where_nothing_is_tied():
    """F_F = 3.69 is made of 9.28; with untied ranks it is the F of an analysis of variance."""
    assert_allclose(13 * 9.28 / (14 * 3 - 9.28), 3.69, atol=0.005)
    values = np.random.default_rng(0).normal([0, 0.5, 1], size=(9, 3))
    found = compare(dict(zip("abc", values.T, strict=True))).iman_davenport
    ranks = stats.rankdata(-values, axis=1)
    between = 9 * np.sum((ranks.mean(axis=0) - 2) ** 2)
    within = np.sum((ranks - ranks.mean(axis=0)) ** 2)  # data sets all have the mean rank 2
    assert_allclose(found.value, (between / 2) / (within / 16))
    assert_allclose(found.p_value, stats.f.sf(found.value, 2, 16))


@pytest.mark.parametrize(("confidence", "published"), [(0.95, 2.569), (0.90, 2.291)])
def test_the_critical_difference_is_the_published_one(confidence, published):
    found = compare(PUBLISHED, confidence=confidence)
    assert_allclose(found.critical_difference, published * np.sqrt(4 * 5 / (6 * 14)), atol=5e-4)


def test_pairs_are_told_apart_as_published():
    """At 95 % none of them; at 90 % C4.5 is worse than C4.5+m and than C4.5+m+cf."""
    strict, mild = compare(PUBLISHED), compare(PUBLISHED, confidence=0.9)
    assert_allclose(strict.critical_difference, 1.25, atol=0.005)
    assert not strict.differ(*TREES)
    assert mild.differ("C4.5", "C4.5+m")
    assert mild.differ("C4.5", "C4.5+m+cf")
    assert not mild.differ("C4.5+cf", "C4.5+m")


def test_wilcoxons_sum_of_ranks_is_the_published_one():
    pair = compare_pair({name: PUBLISHED[name] for name in ("C4.5+m", "C4.5")})
    assert pair.wilcoxon.value == 12
    assert pair.wilcoxon.p_value < 0.05
    assert (pair.wins, pair.ties, pair.losses) == (10, 2, 2)
    assert_allclose(pair.mean_gain, np.mean(AUC[:, 1] - AUC[:, 0]))
    back = compare_pair({name: PUBLISHED[name] for name in ("C4.5", "C4.5+m")})
    assert (back.wins, back.losses) == (2, 10)
    assert back.wilcoxon == pair.wilcoxon


def test_differences_that_are_equal_in_decimals_are_tied():
    assert 0.3 - 0.2 != 0.2 - 0.1
    pair = compare_pair({"a": [0.3, 0.1, 0.9], "b": [0.2, 0.2, 0.5]})
    assert pair.wilcoxon.value == 1.5


def test_frames_are_taken_like_mappings():
    assert compare(pd.DataFrame(PUBLISHED)) == compare(PUBLISHED)


def test_equal_detectors_do_not_differ():
    equal = {name: [0.5, 0.7, 0.9] for name in "abc"}
    found = compare(equal)
    assert (found.friedman.value, found.friedman.p_value) == (0, 1)
    assert (found.iman_davenport.value, found.iman_davenport.p_value) == (0, 1)
    assert set(found.mean_rank.values()) == {2}
    pair = compare_pair({name: equal[name] for name in "ab"})
    assert (pair.ties, pair.wilcoxon.p_value, pair.wilcoxon.value) == (3, 1, 3)


def test_one_order_on_all_data_sets_has_an_infinite_f():
    found = compare({"a": [3, 6, 9, 5], "b": [2, 5, 8, 4], "c": [1, 4, 7, 3]})
    assert_allclose(found.friedman.value, 8)
    assert (found.iman_davenport.value, found.iman_davenport.p_value) == (np.inf, 0)


def test_the_table_starts_with_the_best_and_shows_chance_last():
    text = str(compare(PUBLISHED, prevalence=np.full(14, 0.25), confidence=0.9))
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == (
        ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5", "(chance)"]
    )
    assert [line.endswith("*") for line in lines[1:5]] == [False, False, False, True]
    assert "(0.250)" in lines[5]
    assert "chance" not in str(compare(PUBLISHED))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1, 2], "b": [1, 2]}, r"at least 3 detectors, got 2 .*compare_pair"),
        ({"a": [1, 2], "b": [1, 2], "c": [1]}, r"'c': \(1,\)"),
        ({"a": [1], "b": [1], "c": [1]}, "at least 2 data sets"),
        ({"a": 1, "b": 1, "c": 1}, r"'a': \(\)"),
        ({"a": [1, 2], "b": [1, 2], "c": [1, np.nan]}, "1 of 6 are NaN"),
    ],
)
def test_what_cannot_be_ranked_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        compare(table)


def test_other_arguments_are_refused_with_what_came():
    for confidence in (5, 1, 0):
        with pytest.raises(ValueError, match=f"between 0 and 1, got {confidence}"):
            compare(PUBLISHED, confidence=confidence)
    for prevalence in ([0.5], np.full(14, 2)):
        with pytest.raises(ValueError, match="each of the 14 data sets"):
            compare(PUBLISHED, prevalence=prevalence)
    with pytest.raises(ValueError, match="takes two detectors, got 4"):
        compare_pair(PUBLISHED)


def test_the_examples_run():
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testmod(comparison, optionflags=flags)
    assert (found.failed, found.attempted > 3) == (0, True)
