"""Thyroid: on files of a few rows, and on the real ones where they are."""

from collections import Counter

import numpy as np
import pytest

from eqsep.datasets import load_thyroid


def test_thyroid_trains_on_normal_rows_and_hyperfunction(tmp_path, write_classes):
    write_classes("ann-thyroid", "ann-train.data", width=21, classes=[3, 2, 1, 3, 2])
    write_classes("ann-thyroid", "ann-test.data", width=21, classes=[1, 3, 2])
    for protocol in ("corrected", "paper"):
        split = load_thyroid(data_home=tmp_path, protocol=protocol)
        assert split.kind_train.tolist() == ["normal", "hyperfunction", "normal"]
        assert split.X_train[:, 0].tolist() == [0, 2, 3]
        moved = {"corrected": [], "paper": [1, 4]}[protocol]
        assert split.X_test[:, 0].tolist() == [0, 1, 2, *moved]
        kinds = ["hyperfunction", "normal", "subnormal", *["subnormal"] * len(moved)]
        assert split.kind_test.tolist() == kinds
    with pytest.raises(ValueError, match="Unknown protocol 'published'"):
        load_thyroid(data_home=tmp_path, protocol="published")


@pytest.mark.parametrize(("protocol", "subnormal"), [("corrected", 177), ("paper", 177 + 191)])
def test_thyroid_has_as_many_rows_as_published(protocol, subnormal, home_of):
    split = load_thyroid(data_home=home_of("ann-thyroid"), protocol=protocol)
    assert Counter(split.kind_train.tolist()) == {"normal": 3_488, "hyperfunction": 93}
    assert Counter(split.kind_test.tolist()) == (
        {"normal": 3_178, "hyperfunction": 73, "subnormal": subnormal}
    )


def test_the_thyroid_columns_are_in_their_order(home_of):
    """The index (fti) is thyroxine (tt4) by uptake (t4u), the one that varies least."""
    frame = load_thyroid(data_home=home_of("ann-thyroid"), as_frame=True).X_train
    off = np.abs(frame["fti"] - frame["tt4"] / frame["t4u"] / 10)
    assert np.median(off) < 0.001
    assert frame[["tt4", "t4u", "fti"]].std().idxmin() == "t4u"
    binary = [name for name in frame if set(frame[name]) <= {0.0, 1.0}]
    assert binary == list(frame.columns[1:16])
