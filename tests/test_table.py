"""The record of a table."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from eqsep.datasets import Table


def test_y_is_one_exactly_where_the_kind_is_not_normal():
    table = Table(X=np.zeros((3, 1)), kind=["normal", "scan", "normal"], feature_names=["a"])
    assert table.y.tolist() == [0, 1, 0]
    assert table.feature_names == ("a",)
    with pytest.raises(FrozenInstanceError):
        table.kind = np.array(["scan"])


def test_a_row_without_a_kind_is_refused():
    with pytest.raises(ValueError, match=r"Table expects one kind .*X has 2 rows, kind has 1"):
        Table(X=np.zeros((2, 1)), kind=["normal"], feature_names=["a"])


def test_groups_and_times_are_kept_and_there_is_one_for_each_row():
    rows = {"X": np.zeros((2, 1)), "kind": ["normal", "scan"], "feature_names": ["a"]}
    assert Table(**rows).groups is None
    assert Table(**rows).time is None
    table = Table(**rows, groups=[7, 7], time=[0, 1])
    assert table.groups.tolist() == [7, 7]
    assert table.time.tolist() == [0, 1]
    for name, noun in (("groups", "group"), ("time", "time")):
        with pytest.raises(ValueError, match=f"one {noun} for each row: .* {name} has 3"):
            Table(**rows, **{name: [1, 2, 3]})
