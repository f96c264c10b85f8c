"""The record of a data set."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from eqsep.datasets import Split
from eqsep.datasets.split import for_protocol


def split_of(**changes):
    fields = {
        "X_train": np.zeros((3, 2)),
        "kind_train": np.array(["normal", "scan", "normal"]),
        "X_test": np.ones((2, 2)),
        "kind_test": np.array(["flood", "normal"]),
        "feature_names": ["a", "b"],
    }
    return Split(**fields | changes)


def test_y_is_one_exactly_where_the_kind_is_not_normal():
    split = split_of()
    assert split.y_train.tolist() == [0, 1, 0]
    assert split.y_test.tolist() == [1, 0]
    assert split.y_train.dtype.kind == "i"


def test_the_record_is_frozen_and_its_names_are_a_tuple():
    split = split_of()
    assert split.feature_names == ("a", "b")
    with pytest.raises(FrozenInstanceError):
        split.X_train = np.zeros((1, 2))


def test_lists_of_kinds_become_arrays():
    assert split_of(kind_test=["normal", "flood"]).y_test.tolist() == [0, 1]


@pytest.mark.parametrize("part", ["train", "test"])
def test_a_row_without_a_kind_is_refused(part):
    with pytest.raises(ValueError, match=f"kind_{part} has 1"):
        split_of(**{f"kind_{part}": ["normal"]})


def test_an_unknown_protocol_names_the_known_ones():
    with pytest.raises(ValueError, match=r"'papre'.*\['corrected', 'paper'\]"):
        for_protocol("papre", {"paper": 1, "corrected": 2})
