"""Rows as requests bring them: what is wrong with one is said of that one alone."""

import asyncio
import io
import threading
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from served import GOOD, machine_rows, small_detector

from eqsep import Detector
from eqsep.errors import UserError
from eqsep.serve.web.limits import Limits, TooMany
from eqsep.serve.web.rows import RowChecker, answers_stream, arrow_rows, csv_rows, json_rows
from eqsep.serve.web.service import Service
from eqsep.serve.workspace import Workspace

LIMITS = Limits(rows=50, columns=20, text=40)


@pytest.fixture(scope="module")
def reader():
    return RowChecker(small_detector().model_, LIMITS)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"load": 1.0, "shape": "fan"}, "missing columns: 'heat'"),
        (GOOD | {"heat": "hot"}, "column 'heat': expected a number, got 'hot'"),
        (GOOD | {"heat": [1.0]}, "column 'heat': expected a single value"),
        (GOOD | {"extra": {"deep": 1}}, "column 'extra': expected a single value"),
        (GOOD | {"shape": "x" * 41}, "at most 40 characters, got 41"),
        (GOOD | {"shape": "a\0b"}, "U+0000"),
        (GOOD | {str(i): 0 for i in range(30)}, "at most 20 columns, got 33"),
        ([1, 2], "expected an object of columns and values, got a list"),
        (None, "expected an object of columns and values, got None"),
    ],
)
def test_a_bad_row_is_told_of_alone(reader, bad, told):
    checked = reader.check([GOOD, bad, GOOD])
    assert checked.places == [0, 2]
    (error,) = checked.errors
    assert error.row == 1
    assert told in error.error
    assert checked.spread(["a", "b"]) == ["a", None, "b"]


@pytest.mark.parametrize("value", [None, 1, True, "60.5", 1e308, "-inf"])
def test_values_that_the_model_reads_are_taken(reader, value):
    row = GOOD | {"heat": value, "note": "unknown columns come along"}
    assert reader.check([row]).rows == [row]


def test_dates_are_texts_of_iso_8601_and_nothing_else():
    rows = [
        {"at": f"2026-01-{1 + i % 28:02}T12:00:00", "x": x}
        for i, x in enumerate(np.random.default_rng(0).normal(size=300).tolist())
    ]
    at = pa.array([np.datetime64(row["at"]) for row in rows])
    table = pa.table({"at": at, "x": [row["x"] for row in rows]})
    model = Detector(bandwidth=1.0, n_landmarks=30).fit(table).model_
    reader = RowChecker(model, LIMITS)
    assert reader.reads == {"at": "date", "x": "number"}
    checked = reader.check([rows[0], {"at": 17.5, "x": 1.0}, {"at": "yesterday", "x": 1.0}])
    assert checked.places == [0]
    assert "expected a date" in checked.errors[0].error
    assert "got 'yesterday'" in checked.errors[1].error


def test_json_is_rows_or_one_row():
    assert json_rows(b'{"rows": [{"heat": 1}]}', LIMITS) == [{"heat": 1}]
    assert json_rows(b'{"heat": 1}', LIMITS) == [{"heat": 1}]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "Expected JSON"),
        (b"\xff", "Expected JSON"),
        (b"NaN", "Expected JSON"),
        (b"[" * 1100 + b"]" * 1100, "Expected JSON"),
        (b'{"rows": 3}', "Expected"),
        (b"3", "Expected"),
        (b'{"rows": []}', "at least one row"),
    ],
)
def test_json_that_is_none_is_refused(body, told):
    with pytest.raises(UserError, match=told):
        json_rows(body, LIMITS)


def test_too_many_rows_are_refused():
    with pytest.raises(TooMany, match="at most 50 rows in a request, got 51"):
        json_rows(b'{"rows": [' + b"1," * 50 + b"1]}", LIMITS)


def test_csv_reads_numbers_and_says_of_ragged_lines(reader):
    text = "heat,load,shape,id\n60.5,0,pump,007\n61,,fan,8\n1,2\nhot,1,fan,9\ninf,1,fan,10\n"
    checked = csv_rows(text.encode(), LIMITS, reader=reader)
    assert checked.rows == [
        {"heat": 60.5, "load": 0.0, "shape": "pump", "id": "007"},
        {"heat": 61.0, "load": None, "shape": "fan", "id": "8"},
        {"heat": 1e300, "load": 1.0, "shape": "fan", "id": "10"},
    ]
    assert checked.places == [0, 1, 4]
    assert [error.error for error in checked.errors] == [
        "expected 4 values, as in the first line, got 2",
        "column 'heat': expected a number, got 'hot'",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"a,a\n1,2\n", "once"),
        (b"\xff\xfe", "UTF-8"),
        (b'a\n"b', "cannot be read"),
        (b"a\n", "one row"),
    ],
)
def test_csv_that_is_none_is_refused(reader, text, told):
    with pytest.raises(UserError, match=told):
        csv_rows(text, LIMITS, reader=reader)


def stream(table, **options):
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table)
    return out.getvalue()


def test_arrow_has_the_values_of_json():
    table = pa.table(
        {
            "heat": [1.5, float("nan"), float("inf")],
            "shape": pa.array(["fan", None, "pump"]).dictionary_encode(),
            "on": [True, None, False],
            "at": pa.array([0, None, 1_500_000], pa.timestamp("us")),
            "took": pa.array([1_500, None, 0], pa.duration("ms")),
            "n": pa.array([1, None, 3], pa.int32()),
        }
    )
    assert arrow_rows(stream(table), LIMITS) == [
        {"heat": 1.5, "shape": "fan", "on": True, "at": "1970-01-01T00:00:00", "took": 1.5, "n": 1},
        {"heat": None, "shape": None, "on": None, "at": None, "took": None, "n": None},
        {
            "heat": 1e300,
            "shape": "pump",
            "on": False,
            "at": "1970-01-01T00:00:01.500000",
            "took": 0.0,
            "n": 3,
        },
    ]


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.parametrize("coded", [False, True])
def test_a_compressed_stream_is_refused_before_it_is_unpacked(compression, coded):
    values = pa.array(["a" * 30] * 40)
    table = pa.table({"x": values.dictionary_encode() if coded else values})
    with pytest.raises(UserError, match="without compression"):
        arrow_rows(stream(table, compression=compression), LIMITS)


def test_one_long_text_is_not_copied_into_many_rows():
    coded = pa.DictionaryArray.from_arrays(pa.array([0] * 40), pa.array(["x" * 100_000]))
    with pytest.raises(TooMany, match="at most 40 characters"):
        arrow_rows(stream(pa.table({"x": coded})), LIMITS)


def coded(value, n):
    """A column of a dictionary with one value: each row is an index of one byte."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int8()), value)


BOMBS = {  # streams of up to 1.5 MB that stand for gigabytes
    "texts": pa.table({f"c{i}": coded(pa.array(["x" * 9_999]), 10_000) for i in range(40)}),
    "lists": pa.table({"x": coded(pa.array([["x" * 9_999] * 40]), 10_000)}),
    "nulls": pa.table({f"c{i}": pa.nulls(10_000) for i in range(1_999)}),
}


@pytest.mark.parametrize("table", BOMBS.values(), ids=BOMBS)
def test_a_stream_that_stands_for_gigabytes_is_refused_before_it_is_decoded(table):
    body = stream(table)
    assert len(body) < 1_500_000
    whole = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(whole)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=r"Expected at most|cannot be read"):
            arrow_rows(body, Limits())
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(whole)
    assert pool.max_memory() < 2**20


@pytest.mark.parametrize("unit", [b"{},", b"[],", b"1,", b'"",'])
def test_values_of_json_are_counted_before_they_are_made(unit):
    body = b"[" + unit * (15 * 2**20 // len(unit)) + b"1]"
    tracemalloc.start()
    with pytest.raises(TooMany, match="1,000,000 values"):
        json_rows(body, Limits())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_long_bodies_are_decoded_beside_the_event_loop():
    service = Service(Workspace("sqlite://"), Limits())

    async def thread_of(body):
        return await service.decoded(body, threading.get_ident) == threading.get_ident()

    assert asyncio.run(thread_of(b"x" * 100))
    assert not asyncio.run(thread_of(b"x" * 100_000))
    assert not asyncio.run(thread_of(None))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": [[1], [2]]}),
        pa.table({"x": [b"ab"]}),
        pa.table({"x": [{"deep": 1}]}),
        pa.table({"x": pa.nulls(51)}),
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]),
    ],
)
def test_other_streams_are_refused(table):
    with pytest.raises(UserError):
        arrow_rows(stream(table), LIMITS)


def test_damaged_streams_are_refused():
    whole = stream(pa.table({"x": ["ab", "cd"], "y": [1.0, 2.0]}))
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(0, len(whole), 1000).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        try:
            arrow_rows(bytes(damaged), LIMITS)
        except UserError:
            refused += 1
    for end in range(0, len(whole), 7):
        try:
            arrow_rows(whole[:end], LIMITS)
        except UserError:
            refused += 1
    assert refused > 300


def test_answers_as_a_stream_have_a_row_for_each_row():
    from eqsep.serve.intake import RowAnswer

    answers = [RowAnswer(0.5, 0.1, True, "leak", 3, 9, kind_probability=0.8), None]
    table = pa.ipc.open_stream(answers_stream(answers, {1: "bad"})).read_all()
    assert table.to_pylist() == [
        {
            "score": 0.5,
            "p_value": 0.1,
            "alarm": True,
            "kind": "leak",
            "kind_probability": 0.8,
            "id": 9,
            "version": 3,
            "error": None,
        },
        dict.fromkeys(("score", "p_value", "alarm", "kind", "kind_probability", "id", "version"))
        | {"error": "bad"},
    ]


def test_the_rows_of_a_fit_pass_the_check(reader):
    rows = machine_rows(40)
    assert reader.check(rows).rows == rows
