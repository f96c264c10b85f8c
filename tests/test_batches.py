"""Rows in batches: where they come from, and what is kept of them in bounded memory."""

import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from eqsep.tables.batches import (
    Reservoir,
    Strata,
    batches_from,
    joined,
    prefetched,
    record_batches,
    sample_size,
    tables,
)
from eqsep.tables.reading import is_stream, read_table

ROWS = pd.DataFrame({"a": [1.0, 2.0], "kind": ["normal", None]})


class Twice:
    """Batches that can be read again."""

    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (ROWS, False),
        (pl.from_pandas(ROWS), False),
        (pa.table({"a": [1]}), False),
        (np.zeros((2, 2)), False),
        ([[1.0, 2.0], [3.0, 4.0]], False),
        ([{"a": 1}], False),
        (((1.0, 2.0), (3.0, 4.0)), False),
        ([], False),
        ("file.csv", False),
        ({"a": [1]}, False),
        (pa.dataset.dataset(pa.table({"a": [1]})), True),
        ([ROWS, ROWS], True),
        ([(ROWS, [0, 1])], True),
        (iter([ROWS]), True),
        (lambda: iter([ROWS]), True),
        (Twice(ROWS), True),
        (pa.table({"a": [1]}).to_reader(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_batches_are_told_from_rows(X, expected):
    assert is_stream(X) is expected


@pytest.mark.parametrize(
    "batch",
    [ROWS, pl.from_pandas(ROWS), pa.Table.from_pandas(ROWS), pa.RecordBatch.from_pandas(ROWS)],
    ids=lambda batch: type(batch).__module__,
)
def test_labels_are_a_column_of_each_batch(batch):
    ((X, y),) = batches_from([batch], "kind", name="me")
    assert [column.name for column in read_table(X, name="me").columns] == ["a"]
    assert next(iter(y.to_pylist() if hasattr(y, "to_pylist") else y)) == "normal"


@pytest.mark.parametrize(
    ("X", "again"),
    [
        (lambda: iter([ROWS]), True),
        (Twice(ROWS), True),
        ([ROWS], True),
        (iter([ROWS]), False),
        (pa.dataset.dataset(pa.Table.from_pandas(ROWS)), True),
    ],
)
def test_what_can_be_read_again_is_known(X, again):
    source = batches_from(X, None, name="me")
    assert source.again is again
    assert len(list(source)) == 1
    assert len(list(source)) == int(again)


def test_labels_alone_are_read_without_the_rows():
    data = pa.dataset.dataset(pa.Table.from_pandas(ROWS))
    ((n_rows, y),) = batches_from(data, "kind", name="me").labels()
    assert (n_rows, y.to_pylist()) == (2, ["normal", None])
    assert list(batches_from(data, None, name="me").labels()) == [(2, None)]


@pytest.mark.parametrize(
    ("X", "y", "told"),
    [
        ([ROWS], [0, 1], "y must be the name of the column of labels, or None; got list"),
        ([ROWS], "sort", "label column 'sort' is missing: the columns are 'a', 'kind'"),
        (pa.dataset.dataset(pa.table({"a": [1]})), "sort", "'sort' is missing.*are 'a'. Pass"),
        ([(ROWS, [0, 1])], "kind", "bring their labels, and y='kind' names a column"),
        ([np.zeros((2, 2))], "kind", "a batch is ndarray, whose columns have no names"),
    ],
)
def test_labels_that_are_not_there_are_refused(X, y, told):
    with pytest.raises(ValueError, match=told):
        list(batches_from(X, y, name="me"))


def test_what_is_read_ahead_comes_in_order_and_errors_come_through():
    def batches():
        yield from range(20)
        raise OSError("the disk is gone")

    ahead = prefetched(batches())
    assert [next(ahead) for _ in range(20)] == list(range(20))
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)


def test_reading_ends_when_nobody_wants_more():
    before = threading.active_count()
    batches = prefetched(iter(range(10**9)))
    assert [next(batches), next(batches)] == [0, 1]
    assert threading.active_count() == before + 1
    batches.close()
    assert threading.active_count() == before


def test_a_file_is_not_read_faster_than_its_rows_are_worked_on(tmp_path):
    n, groups = 20_000, 40
    table = pa.table({f"x{j}": np.random.default_rng(j).normal(size=n * groups) for j in range(5)})
    pa.parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=n)
    before, held, rows = pa.total_allocated_bytes(), 0, 0
    for batch in record_batches(pa.dataset.dataset(tmp_path), None, n // 2):
        time.sleep(0.002)  # as long as a reader that does not wait takes for several groups
        held, rows = max(held, pa.total_allocated_bytes() - before), rows + len(batch)
    assert rows == n * groups
    assert held < table.nbytes / 4


def test_folders_that_name_a_value_and_filters_count_when_files_are_read_by_groups(tmp_path):
    table = pa.table({"a": list(range(10)), "site": ["here", "there"] * 5})
    by_site = pa.dataset.partitioning(pa.schema([("site", pa.string())]), flavor="hive")
    pa.dataset.write_dataset(table, tmp_path, format="parquet", partitioning=by_site)
    data = pa.dataset.dataset(tmp_path, partitioning=by_site)
    read = pa.Table.from_batches(list(record_batches(data, None, 3)))
    assert read.sort_by("a").to_pydict() == table.to_pydict()
    some = data.filter(pa.dataset.field("a") > 6)
    read = pa.Table.from_batches(list(record_batches(some, ["a"], 3)))
    assert sorted(read["a"].to_pylist()) == [7, 8, 9]


def test_batches_have_the_columns_of_the_first_in_its_order():
    batches = [({"a": 1, "b": "x"},), ({"b": "y", "a": 2},)]
    both = joined([table for table, _ in tables(((list(b), None) for b in batches), name="me")])
    assert [(c.name, c.values.tolist()) for c in both.columns] == [("a", [1, 2]), ("b", ["x", "y"])]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (
            [{"a": 1.0}],
            "Batch 2 does not have the columns of the batches before it: 'b' not in both",
        ),
        ([{"a": 1.0, "b": "x", "c": 1}], "Batch 2 .*: 'c' not in both"),
        (np.zeros((1, 2)), "Batch 2 does not have the columns"),
    ],
)
def test_other_columns_in_a_later_batch_are_refused(second, told):
    with pytest.raises(ValueError, match=told):
        list(tables([([{"a": 1.0, "b": "x"}], None), (second, None)], name="me"))


def test_another_kind_of_column_in_a_later_batch_is_refused():
    parts = [read_table([{"a": a}], name="me") for a in (1.0, "x")]
    with pytest.raises(
        ValueError, match="Column 'a' is not of one kind in all batches: it is a co"
    ):
        joined(parts)


@pytest.mark.parametrize("value", [1.0, "x", True, np.datetime64("2024-01-01")])
@pytest.mark.parametrize("empty_first", [False, True])
def test_a_batch_without_values_in_a_column_takes_the_kind_of_the_others(value, empty_first):
    values = [None, value] if empty_first else [value, None]
    whole = read_table([{"a": v} for v in values], name="me").columns[0]
    (column,) = joined([read_table([{"a": v}], name="me") for v in values]).columns
    assert column.kind == whole.kind
    assert repr(column.values) == repr(whole.values)


def test_every_row_is_as_likely_to_be_in_the_sample():
    rng, times = np.random.default_rng(0), np.zeros(60)
    for _ in range(3000):
        halves = [Reservoir(10, np.concatenate) for _ in range(2)]
        for start in range(0, 60, 12):
            halves[start > 20].add(np.arange(start, start + 12), rng.random(12))
        halves[0].merge(halves[1], moved=lambda rows: rows)
        sample = halves[0].rows()
        assert len(sample) == 10 == len(set(sample.tolist()))
        times[sample] += 1
    # 500 times each, with a deviation of 20
    assert np.abs(times - 500).max() < 90


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_samples_of_different_sizes_merge_into_one_in_any_order(order):
    priorities = np.random.default_rng(0).random(60)
    samples = [Strata(size, np.concatenate) for size in (5, 8, 30)]
    for i, sample in enumerate(samples):
        rows = np.arange(20 * i, 20 * (i + 1))
        drawn = type("Drawn", (), {"random": lambda _, n, rows=rows: priorities[rows[:n]]})()
        sample.add(rows, is_normal=np.ones(20, dtype=bool), rng=drawn)
    first, *others = (samples[i] for i in order)
    for other in others:
        first.merge(other, moved=lambda rows: rows)
    assert (first.size, first.n_normal, first.is_whole) == (5, 60, False)
    assert set(first.sample()) == set(np.argsort(priorities)[:5])


def test_a_smaller_sample_is_a_part_of_the_sample_and_an_empty_one_is_none():
    reservoir = Reservoir(5, np.concatenate)
    assert reservoir.rows() is None
    reservoir.add(np.arange(100), np.random.default_rng(0).random(100))
    few = reservoir.rows(3)
    assert len(few) == 3
    assert set(few) < set(reservoir.rows())


def test_a_sample_of_wide_rows_has_fewer():
    assert (sample_size(50), sample_size(2000)) == (100_000, 20_000)


def test_a_reservoir_keeps_the_lowest_priorities_in_order():
    reservoir = Reservoir(3, np.concatenate)
    reservoir.add(np.arange(5), np.array([0.9, 0.1, 0.5, 0.2, 0.4]))
    assert reservoir.rows().tolist() == [1, 3, 4]


def test_a_list_of_rows_is_no_stream_and_a_list_of_batches_is():
    rows = np.zeros((3, 2))
    given = (rows, rows.tolist(), [rows, rows], iter([(rows, [0, 1, 0])]))
    assert [is_stream(X) for X in given] == [False, False, True, True]
