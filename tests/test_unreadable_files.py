"""Files that cannot be read, change meanwhile, or are larger than they look: one sentence each."""

import csv
import gzip
import os
import subprocess
import sys
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hostile_places import denied, soon
from hostile_tables import FILLINGS, gzip_bomb, parquet_bomb
from invoking import CliRunner
from workbooks import packed, sheet, workbook

from eqsep import load_model
from eqsep.cli import app
from eqsep.cli import fit as training_data
from eqsep.cli.console import sentence
from eqsep.cli.inputs import InputSpec
from eqsep.detector import Model
from eqsep.errors import EqsepWarning, Note, UserError
from eqsep.io.dialect import Layout
from eqsep.io.files import open_file
from eqsep.io.text import BadRows
from eqsep.persistence import ModelFileError

ROWS = "size,shape\n" + "1.5,round\n2.5,flat\n" * 200
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs pipes with names")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Some rows, and a model of them."""
    home = tmp_path_factory.mktemp("unreadable")
    (home / "rows.csv").write_text(ROWS)
    run("fit", home / "rows.csv", "--landmarks", 20, "--out", home / "m.eqsep")
    return home


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(w) for w in words])
    assert result.exit_code == code, result.stderr
    return result.stderr


def refused(*words):
    said = run(*words, code=2)
    errors = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    return errors[0]


def read(path):
    with open_file(str(path), layout=Layout()) as file:
        return [table.num_rows for table in file.pieces(file.columns)]


@POSIX
def test_a_closed_standard_input_is_said(folder):
    words = [sys.executable, "-m", "eqsep", "score", str(folder / "m.eqsep"), "-"]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *words]
    done = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: Standard input is closed")


@POSIX
def test_a_pipe_is_read_when_somebody_writes_and_else_refused(folder, tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    with soon():
        assert "Nobody wrote to the pipe" in refused("score", folder / "m.eqsep", path)
    writer = threading.Thread(target=path.write_text, args=(ROWS,))
    writer.start()
    assert sum(read(path)) == 400
    writer.join()
    (tmp_path / "pipe.parquet").symlink_to(path)
    said = refused("score", folder / "m.eqsep", tmp_path / "pipe.parquet")
    assert "is a pipe or a device" in said


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux")  # noqa: PTH110
def test_an_error_of_the_disk_names_the_file(folder, tmp_path):
    (tmp_path / "t.csv").symlink_to("/proc/self/mem")
    said = refused("score", folder / "m.eqsep", tmp_path / "t.csv")
    assert said == f"Error: {tmp_path / 't.csv'} cannot be read: Input/output error."


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "xlsx"])
def test_a_file_without_rights_is_named(folder, tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    path.write_text(ROWS)
    with denied(path, None):
        said = refused("score", folder / "m.eqsep", path)
    assert "permission denied" in said
    assert str(path) in said


def change(path, data):
    path.write_bytes(data)
    os.utime(path, ns=(0, 0))  # at another time, however coarse the clock


def read_as_it_becomes(path, data):
    with open_file(str(path), layout=Layout()) as file:
        file.whole(file.columns)
        change(path, data)


def test_a_file_that_changes_as_it_is_read_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    with open_file(str(path), layout=Layout()) as file:
        assert file.whole(file.columns).num_rows == 400
    for data in (ROWS[:99].encode(), ROWS[::-1].encode()):
        path.write_text(ROWS)
        with pytest.raises(UserError, match="was changed while it was read"):
            read_as_it_becomes(path, data)


def test_a_log_may_grow_as_it_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    with pytest.warns(EqsepWarning, match="has grown while it was read"):
        read_as_it_becomes(path, ROWS.encode() * 2)


def test_a_scoring_that_is_refused_at_the_end_leaves_no_output(folder, tmp_path, monkeypatch):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text(ROWS)
    usual = Model.verdicts

    def changing(*words, **options):
        change(path, ROWS[:-10].encode())
        return usual(*words, **options)

    monkeypatch.setattr(Model, "verdicts", changing)
    assert "was changed" in refused("score", folder / "m.eqsep", path, "--out", out)
    assert not out.exists()


def test_files_that_are_read_twice_are_the_same_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(training_data, "LARGE", 100)
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    spec = InputSpec([str(path)], Layout())
    data = training_data.read_training_data(spec, None, random_state=0)
    batches = data.source.source.batches
    assert sum(rows.n_rows for rows, _ in batches) == 400
    change(path, ROWS.replace("size", "width").encode())
    with pytest.raises(UserError, match="has changed since it was first read"):
        next(iter(batches))


@pytest.mark.filterwarnings("ignore:2 columns of values")
@pytest.mark.parametrize("filling", ["JSON", "JSON below", "columns of spaces"])
def test_lines_without_end_are_not_held(tmp_path, filling):
    first, more = FILLINGS[filling]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(first) + gzip.compress(more * 2**20) * 40)
    with pytest.raises(UserError, match=r"A line of .* is longer than 4 MB"):
        read(path)


def test_rows_of_json_come_in_pieces_of_bounded_size(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": "%s"}\n' % ("x" * 2**21) * 33)
    assert read(tmp_path / "t.jsonl") == [16, 16, 1]  # of 32 MB


def test_packed_files_are_large_by_what_they_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(training_data, "LARGE", 2**24)
    gz, table = tmp_path / "t.csv.gz", tmp_path / "t.parquet"
    gz.write_bytes(gzip_bomb(np.random.default_rng(0), megabytes=15))
    assert not training_data.is_large([str(gz)])
    gz.write_bytes(gzip_bomb(np.random.default_rng(0), megabytes=17))
    assert training_data.is_large([str(gz)])
    table.write_bytes(parquet_bomb(2**20))
    assert not training_data.is_large([str(table)])
    table.write_bytes(parquet_bomb(2**22))
    assert table.stat().st_size < 2**20
    assert training_data.is_large([str(table)])


@pytest.mark.parametrize("place", ["XFD1048576", "ZZZZ99999999"])
def test_a_cell_beyond_all_memory_is_refused(folder, tmp_path, place):
    pytest.importorskip("python_calamine", reason="needs eqsep[excel]")
    path = workbook(tmp_path / "t.xlsx", data=[["size"], [1]])
    text = sheet([["size"]], f'<row><c r="{place}"><v>1</v></c></row>')
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    packed(path, files | {"xl/worksheets/s0.xml": text})
    assert "takes more than 4 GB" in refused("score", folder / "m.eqsep", path)


def test_a_lack_of_memory_is_said(folder, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("eqsep.cli.score.files_of", fail)
    said = refused("score", folder / "m.eqsep", folder / "rows.csv")
    assert said == "Error: Not enough memory: use fewer rows or columns."


def test_a_model_that_says_to_be_of_a_terabyte_is_not_read(folder, tmp_path):
    path = tmp_path / "m.eqsep"
    path.write_bytes((folder / "m.eqsep").read_bytes())
    os.truncate(path, 2**40)
    with pytest.raises(ModelFileError, match="do not add up to its length"):
        load_model(path)


def test_a_value_of_thousands_of_characters_is_shown_in_part():
    assert sentence(UserError(f"{'x' * 5000} is long.")) == f"{'x' * 100}… is long."


def test_bad_rows_go_to_a_file_that_nothing_else_uses(folder, tmp_path):
    model, out = folder / "m.eqsep", tmp_path / "out.csv"
    before = model.read_bytes()
    for path, reason in (
        (model, "which is read or written"),
        (out, "which is read or written"),
        (tmp_path, "is not a file"),
        (tmp_path / "none" / "q.csv", "There is no folder"),
    ):
        words = ("score", model, folder / "rows.csv", "--out", out, "--bad-rows", path)
        assert reason in refused(*words)
    assert model.read_bytes() == before
    assert not out.exists()


def test_bad_rows_of_one_file_do_not_replace_those_of_another(folder, tmp_path):
    bad, rows, later = tmp_path / "q.csv", tmp_path / "t.csv", tmp_path / "later.csv"
    rest = ("--bad-rows", bad, "--out", tmp_path / "out.csv")
    rows.write_text("size,shape\n1,2,3\n1,flat\n4,5,6\n")
    later.write_text("size,shape\n1,flat\n")
    run("score", folder / "m.eqsep", rows, *rest)
    first = bad.read_bytes()
    assert first.count(b"\n") == 3
    assert "could not be read" not in run("score", folder / "m.eqsep", later, *rest)
    assert bad.read_bytes() == first  # no row of it is bad
    later.write_text('size,shape\n1,flat\n7,"8\n8",9\n')
    run("score", folder / "m.eqsep", later, *rest)
    rows.write_text("size,shape\n99,flat\n1,2,3\n")
    run("score", folder / "m.eqsep", rows, *rest, "--exit-code", code=1)
    with bad.open(newline="") as file:
        found = [(Path(row["file"]).name, row["row"], row["text"]) for row in csv.DictReader(file)]
    assert found == [("later.csv", "2", '7,"8\n8",9'), ("t.csv", "2", "1,2,3")]


def test_a_refused_command_writes_no_file_of_bad_rows(folder, tmp_path):
    bad, rows = tmp_path / "q.csv", tmp_path / "t.csv"
    words = ("score", folder / "m.eqsep", rows, "--bad-rows", bad, "--out", tmp_path / "out.csv")
    rows.write_text('size,shape\n1,2,3\n1,flat\n"4,flat\n')  # a quote that is never closed
    said = run(*words, code=2)
    assert f"2 rows could not be read; the first is row 1 of {rows}: expected 2 values" in said
    assert not bad.exists()
    rows.write_text("size,shape\n1,2,3\n1,flat\n")
    bad.write_text("my,notes\n1,2\n")
    assert "is not a file of bad rows: pass another name" in refused(*words)
    assert bad.read_text() == "my,notes\n1,2\n"


def test_numbers_of_rows_skip_those_that_could_not_be_divided(tmp_path):
    bad = BadRows(tmp_path / "q.csv")
    rng = np.random.default_rng(0)
    gone = np.sort(rng.choice(np.arange(1, 200), 80, replace=False))

    class Row:
        expected_columns, actual_columns, text = 2, 3, ""

    with warnings.catch_warnings(), bad.written():
        warnings.simplefilter("ignore", Note)
        handler = bad.handler("t.csv")
        for number in np.tile(gone, 2):  # read twice
            row = Row()
            row.number = int(number)
            handler(row)
    there = np.setdiff1d(np.arange(1, 200), gone)
    assert [bad.number("t.csv", i) for i in range(len(there))] == there.tolist()


def test_results_of_eqsep_in_a_folder_are_not_read_as_tables(folder, tmp_path):
    model = folder / "m.eqsep"
    (tmp_path / "rows.csv").write_text(ROWS + "1,2,3\n")
    words = ("score", model, tmp_path, "--bad-rows", tmp_path / "bad.csv")
    for name in ("scores.csv", "kept.csv.gz", "scores.jsonl", "scores.parquet", "scores.csv"):
        run(*words, "--keep", "shape", "--explain", 1, "--out", tmp_path / name)
    said = run(*words, "--out", tmp_path / "more.arrow")
    names = ("bad.csv", "kept.csv.gz", "scores.csv", "scores.jsonl", "scores.parquet")
    left = ", ".join(repr(str(tmp_path / name)) for name in names)
    assert f"Note: Left out {left}: results that eqsep wrote." in said
    assert (tmp_path / "scores.csv").read_text().count("\n") == 401
    assert "Left out" in run("watch", model, tmp_path, "--bad-rows", tmp_path / "bad.csv")


def test_a_table_of_a_folder_that_lacks_a_column_is_named(folder, tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "b.csv").write_text("row,score,p_value\n1,2,3\n")  # not one of eqsep's
    said = refused("score", folder / "m.eqsep", tmp_path, "--out", tmp_path / "scores.csv")
    assert f"Error: {tmp_path / 'b.csv'}: Columns 'size', 'shape' are missing: " in said
