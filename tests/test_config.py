"""Every number that a fit depends on: what is refused, and what stands in for what."""

from dataclasses import fields, replace

import pytest

from eqsep.detector import Config
from eqsep.errors import UserError
from eqsep.persistence import ModelFileError


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_landmarks": 1}, "n_landmarks must be a whole number of at least 2, got 1"),
        ({"n_landmarks": 50.0}, "n_landmarks must be a whole number of at least 2, got 50.0"),
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2, got 1"),
        ({"bandwidth": 0}, "bandwidth must be a number above 0, got 0"),
        ({"doubted_bandwidth": "wide"}, "doubted_bandwidth must be a number above 0, got 'wide'"),
        ({"alpha": float("nan")}, "alpha must be a number above 0, got nan"),
        ({"unlabelled_weight": -1}, "unlabelled_weight must be a number above 0, got -1"),
        ({"tree_columns": 1.5}, "tree_columns must be a number above 0, at most 1, got 1.5"),
        ({"isolated_share": 1}, "isolated_share must be a number of at least 0, below 1, got 1"),
    ],
    ids=str,
)
def test_what_no_fit_can_do_with_is_refused_with_what_came(wrong, message):
    with pytest.raises(UserError, match=message):
        Config(**wrong)
    with pytest.raises(UserError, match=message):
        replace(Config(), **wrong)


def test_a_fast_config_differs_in_the_number_of_rows_and_trees_alone():
    fast, usual = Config.fast(), Config()
    changed = {f.name for f in fields(Config) if getattr(fast, f.name) != getattr(usual, f.name)}
    fewer = {"n_landmarks", "n_trees", "n_trees_per_fold", "n_references", "n_surprise_trees"}
    assert changed == fewer
    assert all(getattr(fast, name) < getattr(usual, name) for name in changed)


def test_where_rows_are_doubted_the_values_for_these_stand_in_for_their_namesakes():
    config = Config(bandwidth=1.0, doubted_bandwidth=3.0, vote_weight=0.5, doubted_vote_weight=2.0)
    assert config.for_rows(doubted=False) == config
    doubted = config.for_rows(doubted=True)
    assert (doubted.bandwidth, doubted.vote_weight) == (3.0, 2.0)
    assert doubted.min_leaf == config.doubted_min_leaf
    assert doubted.excess_weight == config.doubted_excess_weight
    assert doubted.nearest_weight == config.doubted_nearest_weight
    assert doubted.surprise_weight == config.doubted_surprise_weight
    assert doubted.isolated_share == config.isolated_share != config.doubted_isolated_share
    assert doubted.alpha == config.alpha
    assert doubted.for_rows(doubted=True) == doubted


def test_without_a_labelled_anomaly_the_values_for_that_stand_in():
    config = Config(nearest_weight=0.3, unlabelled_nearest_weight=0.7)
    assert config.for_rows(doubted=False, labelled=False).nearest_weight == 0.7
    assert config.for_rows(doubted=False, labelled=False).bandwidth == config.bandwidth
    assert config.for_rows(doubted=True, labelled=False) == config.for_rows(doubted=True)


def test_a_file_keeps_every_number():
    config = Config(n_trees=7, powers=(1, 2), alpha=0.5)
    assert Config.from_state(config.state()) == config
    with pytest.raises(ModelFileError, match="of Config it lacks"):
        Config.from_state({"n_trees": 7})
    for wrong in ({"n_trees": -1}, {"n_trees": "7"}, {"powers": []}, {"colour": 1}):
        with pytest.raises(ModelFileError):
            Config.from_state(config.state() | wrong)


def test_a_block_may_have_a_default_of_its_own():
    before = Config.default()
    with Config.fast().as_default(), Config(n_trees=3).as_default():
        assert Config.default().n_trees == 3
    assert Config.default() == before
