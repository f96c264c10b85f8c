"""The rows of a fit: large files are sampled fairly, in order, and read in batches."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from eqsep.cli import fit as training_data
from eqsep.cli.fit import FileRows, FileSample, is_large, read_training_data, sample_files
from eqsep.cli.inputs import InputSpec
from eqsep.errors import UserError
from eqsep.io.dialect import Layout
from eqsep.labels import WITHOUT
from eqsep.tables import batches

KINDS = ["normal", "normal", "normal", "scan", "normal", "flood"]


def frame(n, start=0):
    """Rows that know their number, by a number and by a name."""
    number = np.arange(start, start + n)
    kinds = np.resize(KINDS, start + n)[start:]
    return pd.DataFrame({"number": number, "name": [f"n{i}" for i in number], "kind": kinds})


@pytest.fixture
def spec(tmp_path):
    """Two files of 60 and 40 rows, of different types."""
    frame(60).to_csv(tmp_path / "a.csv", index=False)
    frame(40, start=60).to_parquet(tmp_path / "b.parquet")
    return InputSpec([str(tmp_path / "a.csv"), str(tmp_path / "b.parquet")], Layout(), "kind")


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(training_data, "LARGE", 0)
    monkeypatch.setattr(training_data, "ROWS_AT_ONCE", 25)


def pieces(data):
    """What is read for each batch."""
    return list(data.source.source.batches)


def column(table, name):
    (found,) = (c for c in table.columns if c.name == name)
    return found.values.tolist()


def test_some_rows_of_files_are_taken_by_their_positions():
    tables = [pa.table({"x": x}) for x in ([0, 1, 2], [3, 4], [5, 6, 7])]
    rows = FileRows(list(zip("aba", tables, strict=True)))
    taken = rows.take(np.array([1, 2, 5, 7]))
    assert [(file, t["x"].to_pylist()) for file, t in taken.parts] == [("a", [1, 2]), ("a", [5, 7])]
    by_file, order = rows.by_file()
    assert [t["x"].to_pylist() for t in by_file] == [[0, 1, 2, 5, 6, 7], [3, 4]]
    assert order.tolist() == [0, 1, 2, 5, 6, 7, 3, 4]


def test_a_sample_of_all_rows_holds_each_once_with_its_label(spec):
    sample = sample_files(spec, None, np.random.default_rng(0))
    assert sample.n_rows == 100
    assert sample.counts == {"normal": 67, "scan": 17, "flood": 16}
    rows = sample.strata.sample()
    assert sorted(rows.positions.tolist()) == list(range(100))
    tables, order = rows.rows.by_file()
    numbers = np.concatenate([np.array(t["number"].to_pylist(), dtype=int) for t in tables])
    assert numbers.tolist() == rows.positions[order].tolist()
    assert rows.y.tolist() == [KINDS[i % 6] for i in rows.positions]
    assert "kind" not in tables[0].schema.names


def test_samples_of_files_merge_into_that_of_all(spec):
    first, second = (
        sample_files(replace(spec, paths=[path]), None, np.random.default_rng(i))
        for i, path in enumerate(spec.paths)
    )
    merged = FileSample().merge(first).merge(second)
    assert (merged.n_rows, merged.counts["scan"]) == (100, 17)
    rows = merged.strata.sample()
    assert sorted(rows.positions.tolist()) == list(range(100))
    assert rows.y.tolist() == [KINDS[i % 6] for i in rows.positions]


@pytest.mark.parametrize("normal", [(), ("flood",), ("normal", "flood")])
def test_anomalies_are_sampled_apart(spec, normal, monkeypatch):
    monkeypatch.setattr(batches, "SAMPLE", 30)
    monkeypatch.setattr(batches, "ANOMALIES", 0)
    sample = sample_files(replace(spec, normal=normal), None, np.random.default_rng(0))
    assert sample.strata.n_normal == {(): 67, ("flood",): 16, ("normal", "flood"): 83}[normal]
    others = 100 - sample.strata.n_normal
    drawn = sample.strata.sample().y
    drawn_others = ~np.isin(drawn.astype(str), normal or ["normal"])
    assert np.sum(drawn_others) == min(round(0.3 * others), 10)


@pytest.mark.parametrize(
    ("labels", "n_normal"),
    [
        (["0", "1", None, "0"], 3),
        (["0.0", "1.0", "0.0", "1.0"], 2),
        (["False", "true", "FALSE", "x"], 2),
        (["Normal", "normal", "odd", "no"], 2),
    ],
)
def test_labels_that_may_be_normal_are_known_as_they_are_written(tmp_path, labels, n_normal):
    pd.DataFrame({"x": [1, 2, 3, 4], "kind": labels}).to_csv(tmp_path / "t.csv", index=False)
    spec = InputSpec([str(tmp_path / "t.csv")], Layout(), "kind")
    sample = sample_files(spec, None, np.random.default_rng(0))
    assert sample.strata.n_normal == n_normal


def test_too_many_labels_end_the_reading(tmp_path):
    n = 20_000
    pd.DataFrame({"x": range(n), "kind": range(n)}).to_json(
        tmp_path / "t.jsonl", orient="records", lines=True
    )
    spec = InputSpec([str(tmp_path / "t.jsonl")], Layout(), "kind")
    assert sample_files(spec, None, np.random.default_rng(0)).n_rows < n


@pytest.mark.usefixtures("large")
def test_large_files_give_a_sample_in_order_and_all_rows_in_batches(spec, monkeypatch):
    monkeypatch.setattr(batches, "SAMPLE", 30)
    monkeypatch.setattr(batches, "ANOMALIES", 0)
    data = read_training_data(spec, None, random_state=0)
    numbers = np.array(column(data.sample, "number"), dtype=int)
    assert len(numbers) == 30
    assert (np.diff(numbers) > 0).all()
    assert data.labels.texts.tolist() == [KINDS[i % 6] for i in numbers]
    assert column(data.sample, "name") == [f"n{i}" for i in numbers]
    assert data.counts == {"normal": 67, "flood": 16, "scan": 17}
    assert (sum(data.counts.values()), data.normal) == (100, "normal")
    for _ in range(2):  # it can be read again
        parts = pieces(data)
        assert [i for rows, _ in parts for i in column(rows, "number")] == list(range(100))
        assert [k for _, y in parts for k in y] == [KINDS[i % 6] for i in range(100)]
        assert all(rows.n_rows >= 25 for rows, _ in parts[:-1])


@pytest.mark.usefixtures("large")
def test_of_large_files_unseen_kinds_are_left_out(spec):
    data = read_training_data(replace(spec, seen=["scan"]), None, random_state=0)
    assert data.counts == {"normal": 67, "scan": 17}
    assert set(data.labels.texts) == {"normal", "scan"}
    assert data.sample.n_rows == 84
    ys = [k for _, y in pieces(data) for k in y]
    assert (len(ys), set(ys)) == (84, {"normal", "scan"})


@pytest.mark.usefixtures("large")
def test_of_large_files_numbers_are_labels_too(tmp_path):
    table = frame(60).assign(kind=np.resize([0.0, 0.0, 1.0, np.nan], 60))
    table.to_csv(tmp_path / "t.csv", index=False)
    spec = InputSpec([str(tmp_path / "t.csv")], Layout(), "kind")
    data = read_training_data(spec, None, random_state=0)
    assert data.counts == {"0": 30, "1": 15, WITHOUT: 15}
    assert data.normal is None
    assert [k for _, y in pieces(data) for k in y][:4] == [0, 0, 1, None]


@pytest.mark.usefixtures("large")
def test_of_large_files_without_labels_all_rows_are_normal(spec):
    data = read_training_data(replace(spec, label=None), None, random_state=0)
    assert (data.counts, data.labels, data.normal) == ({"normal": 100}, None, None)
    assert [y for _, y in pieces(data)] == [None] * len(pieces(data))


@pytest.mark.usefixtures("large")
def test_a_column_of_names_is_one_in_all_batches(spec):
    spec = replace(spec, paths=spec.paths[:1], names=["number"])
    data = read_training_data(spec, None, random_state=0)
    for rows in (data.sample, *(rows for rows, _ in pieces(data))):
        (number,) = (c for c in rows.columns if c.name == "number")
        assert (number.kind, number.categorical) == ("text", True)


@pytest.mark.usefixtures("large")
def test_large_files_without_rows_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("x,kind\n")
    with pytest.raises(UserError, match="has no rows"):
        read_training_data(
            InputSpec([str(tmp_path / "t.csv")], Layout(), "kind"), None, random_state=0
        )


@pytest.mark.usefixtures("large")
def test_large_files_of_different_types_are_refused(spec):
    with pytest.raises(UserError, match="Types differ from file to file"):
        read_training_data(replace(spec, names=["number"]), None, random_state=0)


def test_files_in_memory_and_in_batches_tell_the_same(spec, monkeypatch):
    at_once = read_training_data(spec, None, random_state=0)
    monkeypatch.setattr(training_data, "LARGE", 0)
    in_batches = read_training_data(spec, None, random_state=0)
    assert at_once.counts == in_batches.counts
    assert column(at_once.sample, "name") == column(in_batches.sample, "name")
    assert at_once.labels.texts.tolist() == in_batches.labels.texts.tolist()
    assert at_once.source.table is at_once.sample


@pytest.mark.parametrize(("name", "large"), [("t.csv", False), ("t.parquet", True), ("t.pq", True)])
def test_packed_files_are_larger_than_they_look(tmp_path, monkeypatch, name, large):
    (tmp_path / name).write_bytes(b"x" * 100)
    monkeypatch.setattr(training_data, "LARGE", 499)
    assert is_large([str(tmp_path / name)]) is large
    monkeypatch.setattr(training_data, "LARGE", 500)  # five times as large, not larger than that
    assert is_large([str(tmp_path / name)]) is False


def test_the_sizes_of_files_add_up_and_standard_input_is_read_once(tmp_path, monkeypatch):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(b"x" * 60)
    monkeypatch.setattr(training_data, "LARGE", 100)
    assert is_large([str(tmp_path)])
    assert not is_large([str(tmp_path / "a.csv")])
    assert not is_large([str(tmp_path), "-"])
