"""Shuttle and Satimage: on files of a few rows, and on the real ones where they are."""

from collections import Counter

import pytest
from benches import bench
from sklearn.naive_bayes import GaussianNB

from eqsep.evaluation import leave_one_kind_out

load_satimage, load_shuttle = bench("statlog").load_satimage, bench("statlog").load_shuttle


def test_rows_of_both_files_follow_each_other(tmp_path, write_classes):
    write_classes("shuttle", "shuttle.trn", width=9, classes=[2, 1])
    write_classes("shuttle", "shuttle.tst", width=9, classes=[1, 3, 4, 5, 6, 7])
    table = load_shuttle(data_home=tmp_path)
    assert table.X[:, 0].tolist() == [0, 1, 0, 1, 2, 3, 4, 5]
    assert table.kind.tolist() == [
        *("fpv close", "normal", "normal", "fpv open", "high", "bypass", "bpv close", "bpv open")
    ]


def test_the_caller_says_which_grounds_are_normal(tmp_path, write_classes):
    for file in ("sat.trn", "sat.tst"):
        write_classes("satimage", file, width=36, classes=[1, 2, 3, 4, 5, 7])
    kinds = {
        normal: load_satimage(data_home=tmp_path, normal=normal).kind[:6].tolist()
        for normal in (("red soil", "cotton crop"), "grey soil")
    }
    assert kinds["red soil", "cotton crop"] == [
        *("normal", "normal", "grey soil", "damp grey soil", "vegetation stubble"),
        "very damp grey soil",
    ]
    assert kinds["grey soil"].count("normal") == 1
    default = load_satimage(data_home=tmp_path).kind[:6].tolist()
    assert default == [
        *("normal", "cotton crop", "normal", "damp grey soil", "vegetation stubble", "normal")
    ]
    with pytest.raises(ValueError, match=r"unknown grounds: \['soil'\]"):
        load_satimage(data_home=tmp_path, normal=["soil"])
    with pytest.raises(ValueError, match="names no ground"):
        load_satimage(data_home=tmp_path, normal=[])


def test_shuttle_has_as_many_rows_as_published(home_of):
    table = load_shuttle(data_home=home_of("shuttle"))
    assert table.X.shape == (58_000, 9)
    assert Counter(table.kind.tolist()) == {
        **{"normal": 45_586, "fpv close": 50, "fpv open": 171, "high": 8_903},
        **{"bypass": 3_267, "bpv close": 10, "bpv open": 13},
    }


def test_satimage_has_as_many_rows_as_published(home_of):
    table = load_satimage(data_home=home_of("satimage"))
    assert table.X.shape == (6_435, 36)
    assert table.y.sum() == 2_036
    assert Counter(table.kind.tolist()) == {
        **{"normal": 4_399, "cotton crop": 703, "damp grey soil": 626},
        **{"vegetation stubble": 707},
    }


def test_a_table_is_ready_to_leave_a_kind_out(home_of):
    table = load_satimage(data_home=home_of("satimage"))
    result = leave_one_kind_out(GaussianNB(), table.X, table.kind, random_state=0)
    assert result.results[0].seen > 0.95
    assert [one.kind for one in result.results] == (
        ["cotton crop", "damp grey soil", "vegetation stubble"]
    )
