"""The records of data sets: `eqsep.datasets.records`."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from eqsep.datasets import LabelledTable, TrainTestSplit
from eqsep.datasets.records import for_protocol


def split_of(**changes):
    fields = {
        "X_train": np.zeros((3, 2)),
        "kind_train": np.array(["normal", "scan", "normal"]),
        "X_test": np.ones((2, 2)),
        "kind_test": np.array(["flood", "normal"]),
        "feature_names": ["a", "b"],
    }
    return TrainTestSplit(**fields | changes)


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


def test_y_of_a_table_is_one_exactly_where_the_kind_is_not_normal():
    table = LabelledTable(
        X=np.zeros((3, 1)), kind=["normal", "scan", "normal"], feature_names=["a"]
    )
    assert table.y.tolist() == [0, 1, 0]
    assert table.feature_names == ("a",)
    with pytest.raises(FrozenInstanceError):
        table.kind = np.array(["scan"])


def test_a_row_of_a_table_without_a_kind_is_refused():
    with pytest.raises(
        ValueError, match=r"LabelledTable expects one kind .*X has 2 rows, kind has 1"
    ):
        LabelledTable(X=np.zeros((2, 1)), kind=["normal"], feature_names=["a"])


def test_groups_and_times_are_kept_and_there_is_one_for_each_row():
    rows = {"X": np.zeros((2, 1)), "kind": ["normal", "scan"], "feature_names": ["a"]}
    assert LabelledTable(**rows).groups is None
    assert LabelledTable(**rows).time is None
    table = LabelledTable(**rows, groups=[7, 7], time=[0, 1])
    assert table.groups.tolist() == [7, 7]
    assert table.time.tolist() == [0, 1]
    for name, noun in (("groups", "group"), ("time", "time")):
        with pytest.raises(ValueError, match=f"one {noun} for each row: .* {name} has 3"):
            LabelledTable(**rows, **{name: [1, 2, 3]})
