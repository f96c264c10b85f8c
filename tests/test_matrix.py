"""Encoded matrices: the same bits by whatever way values come."""

import datetime as dt
import pickle

import numpy as np
import pyarrow as pa
import pytest
from eqsep.tables.fitted import aligned, encoded, encoded_values
from numpy.testing import assert_array_equal

from eqsep.engine import compiled
from eqsep.tables import TableEncoder

NAMES = ("size", "share", "constant", "shape", "truth", "time", "gone")


def rows_of(n, *, seed, missing=0.0):
    """Every kind of column, as JSON brings it."""
    rng = np.random.default_rng(seed)
    start = dt.datetime(2025, 1, 1)
    rows = [
        {
            "size": float(np.exp(3 * rng.normal())),
            "share": int(rng.integers(0, 4)),
            "constant": 3.0,
            "shape": str(rng.choice(["round", "flat", "thin"])),
            "truth": bool(rng.random() < 0.5),
            "time": (start + dt.timedelta(minutes=int(rng.integers(50_000)))).isoformat(),
            "gone": None,
        }
        for _ in range(n)
    ]
    for row in rows:
        for name in NAMES:
            if rng.random() < missing:
                row[name] = None
    return rows


def table_of(encoder, rows):
    """The same rows as a table, which `encoded` then reads column by column."""
    return aligned(encoder, rows)


def learnt(**missing):
    rows = rows_of(300, seed=0, **missing)
    times = [row | {"time": row["time"] and dt.datetime.fromisoformat(row["time"])} for row in rows]
    return TableEncoder(numeric_encoding="both").fit(times)


@pytest.mark.parametrize("before", [0.0, 0.2])
@pytest.mark.parametrize("now", [0.0, 0.2])
def test_plain_values_are_encoded_as_their_table_is(before, now):
    encoder = learnt(missing=before)
    rows = rows_of(90, seed=1, missing=now)
    rows[0] |= {"size": -1e9, "shape": "square", "constant": 4}
    rows[1] |= {"size": float("inf"), "share": True, "constant": float("nan"), "truth": "TRUE"}
    rows[2] |= {"size": 10**305, "share": -0.0}
    plain = encoded_values(encoder, rows)
    by_table = encoded(encoder, table_of(encoder, rows))
    assert plain.tobytes() == by_table.tobytes()
    alone = np.concatenate([encoded_values(encoder, [row]) for row in rows])
    assert alone.tobytes() == by_table.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        {"size": "7"},
        {"size": 10**400},
        {"shape": 7},
        {"truth": 1},
        {"size": np.float64(2.0)},
        {"shape": np.str_("round")},
    ],
)
def test_other_types_are_read_by_a_table(values):
    encoder = learnt()
    row = rows_of(1, seed=1)[0] | values
    assert encoded_values(encoder, [row]) is None
    assert encoded(encoder, [row]).tobytes() == encoded(encoder, table_of(encoder, [row])).tobytes()


def test_other_columns_are_left_to_a_table():
    encoder = learnt()
    row = rows_of(1, seed=1)[0]
    assert encoded_values(encoder, [row | {"more": 1}]) is None
    assert encoded_values(encoder, [{"size": 1.0}]) is None
    assert encoded_values(encoder, [row, [1]]) is None
    assert encoded_values(encoder, []) is None
    assert encoded_values(encoder, np.zeros((2, len(row)))) is None
    with pytest.raises(ValueError, match=r"Columns \['share'.* are missing"):
        encoded(encoder, [{"size": 1.0}])


def test_a_date_that_cannot_be_read_is_named():
    with pytest.raises(ValueError, match="Column 'time' held dates in training, and 'soon' cannot"):
        encoded(learnt(), [rows_of(1, seed=1)[0] | {"time": "soon"}])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_encoded_as_their_table_is(dtype, order):
    rng = np.random.default_rng(0)
    encoder = TableEncoder(numeric_encoding="both").fit(rng.normal(size=(300, 3)) * 9)
    X = np.asarray(np.abs(rng.normal(size=(700, 3)) * 30), dtype=dtype, order=order)
    given = X.copy()
    assert_array_equal(encoded_values(encoder, X), encoded(encoder, table_of(encoder, X)))
    assert_array_equal(X, given)
    assert encoded_values(encoder, X[:, :2]) is None
    assert encoded_values(encoder, X[0]) is None
    assert encoded_values(encoder, X[:0]) is None
    assert encoded_values(encoder, X.astype(bool)) is None


def test_an_encoder_of_names_alone_takes_plain_values():
    rows = [{"shape": name} for name in "aabbb"]
    encoder = TableEncoder().fit(rows)
    assert_array_equal(encoded_values(encoder, [{"shape": "a"}]) > 0, [[False, True, False]])


def test_neither_threads_nor_the_length_of_a_table_change_a_bit(monkeypatch):
    monkeypatch.setattr(compiled, "WORTH_A_THREAD", 1)
    encoder, rows = learnt(missing=0.1), rows_of(1300, seed=2, missing=0.1)
    table = pa.Table.from_pylist([{"id": 1} | row for row in rows]).drop_columns("id")
    several = {}
    for n in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", n)
        several[n] = encoded(encoder, table).tobytes()
    assert several["1"] == several["3"] == encoded(encoder, rows).tobytes()
    few = encoded(encoder, table.slice(700, 5))
    assert_array_equal(few, encoded(encoder, rows)[700:705])
    assert_array_equal(few, encoded(encoder, rows[700:705]))


def test_the_sign_of_zero_is_kept_beside_its_neighbour():
    encoder = TableEncoder(numeric_encoding="standard").fit([[-1.0], [0.0], [1.0]])
    signs = np.signbit(encoder.transform([[0.0], [-0.0], [0.0]])).ravel()
    assert signs.tolist() == [False, True, False]


def test_a_fitted_encoder_can_be_sent_before_and_after_its_first_use():
    encoder, rows = learnt(), rows_of(5, seed=3)
    sent = pickle.loads(pickle.dumps(encoder))
    expected = encoded(encoder, rows)
    assert_array_equal(encoded(sent, rows), expected)
    assert_array_equal(encoded(pickle.loads(pickle.dumps(encoder)), rows), expected)
