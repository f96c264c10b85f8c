"""AI4I 2020: on files of a few rows, and on the real one where it is."""

from collections import Counter

import numpy as np
import pytest
from benches import bench
from numpy.testing import assert_array_equal

load_ai4i2020 = bench("ai4i2020").load_ai4i2020

HEADER = (
    "UDI,Product ID,Type,Air temperature [K],Process temperature [K],Rotational speed [rpm],"
    "Torque [Nm],Tool wear [min],Machine failure,TWF,HDF,PWF,OSF,RNF"
)
NUMERIC = (
    *("Air temperature [K]", "Process temperature [K]", "Rotational speed [rpm]"),
    *("Torque [Nm]", "Tool wear [min]"),
)
# Type, then machine failure and the five flags, and the kind that they make.
ROWS = [
    ("M", "0,0,0,0,0,0", "normal"),
    ("L", "1,1,0,0,0,0", "TWF"),
    ("H", "1,0,1,0,0,0", "HDF"),
    ("L", "1,0,0,1,0,0", "PWF"),
    ("L", "1,0,0,0,1,0", "OSF"),
    ("L", "0,0,0,0,0,1", "RNF"),
    ("L", "1,0,1,0,1,0", "several"),
    ("L", "1,1,0,0,0,1", "several"),
    ("L", "1,0,0,0,0,0", "unassigned"),
]


def write(home, *, rows=ROWS, header=HEADER):
    """Row i measures 100 i, 100 i + 1, ...; its numbers of row and product are 7,000 and more."""
    (home / "ai4i2020").mkdir(exist_ok=True)
    lines = [
        f"{7000 + i},{kind}{7000 + i},{kind},{','.join(str(100 * i + j) for j in range(5))},{flags}"
        for i, (kind, flags, *_) in enumerate(rows)
    ]
    text = "\n".join([header, *lines]) + "\n"
    (home / "ai4i2020" / "ai4i2020.csv").write_text(text, encoding="utf-8-sig")
    return home


def test_the_kind_comes_from_the_flags(tmp_path):
    table = load_ai4i2020(data_home=write(tmp_path))
    assert table.kind.tolist() == [kind for *_, kind in ROWS]


def test_neither_labels_nor_numbers_of_rows_are_features(tmp_path):
    array, frame = (load_ai4i2020(data_home=write(tmp_path), as_frame=f) for f in (False, True))
    assert array.feature_names == ("Type=H", "Type=L", "Type=M", *NUMERIC)
    assert tuple(frame.X.columns) == frame.feature_names == ("Type", *NUMERIC)
    assert frame.X["Type"].tolist() == [kind for kind, *_ in ROWS]
    assert_array_equal(array.X[:3, :3], [[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    measured = 100 * np.arange(len(ROWS))[:, None] + np.arange(5)
    assert_array_equal(array.X[:, 3:], measured)
    assert_array_equal(frame.X[list(NUMERIC)].to_numpy(), measured)


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([("M", "0,0,0,0,0,2")], HEADER, r"RNF is one of \[0.0, 1.0\], got \[2.0\]"),
        ([("M", "-1,0,0,0,0,0")], HEADER, r"Machine failure is one of .* got \[-1.0\]"),
        ([("X", "0,0,0,0,0,0")], HEADER, r"Type is one of \['H', 'L', 'M'\], got \['X'\]"),
        ([("M", "0,0,0,0,0")], HEADER, "14 columns separated by commas"),
        ([], HEADER, "14 columns separated by commas"),
        (ROWS, HEADER.replace("TWF,HDF", "HDF,TWF"), "expected the header UDI,"),
    ],
)
def test_what_the_file_does_not_define_is_refused(tmp_path, rows, header, message):
    with pytest.raises(ValueError, match=f"ai4i2020.csv is not a file of AI4I 2020: .*{message}"):
        load_ai4i2020(data_home=write(tmp_path, rows=rows, header=header))


def test_the_real_file_has_as_many_rows_as_published(home_of):
    table = load_ai4i2020(data_home=home_of("ai4i2020"))
    assert table.X.shape == (10_000, 8)
    assert Counter(table.kind.tolist()) == {
        **{"normal": 9_643, "TWF": 42, "HDF": 106, "PWF": 80, "OSF": 78, "RNF": 18},
        **{"several": 24, "unassigned": 9},
    }
    assert table.X[:, :3].sum(axis=0).tolist() == [1_003, 6_000, 2_997]
