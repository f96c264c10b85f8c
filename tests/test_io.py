"""`eqsep.io`: what the command reads, Python reads, in one call."""

import datetime as dt
import gzip
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from eqsep import Detector
from eqsep.detector import Config
from eqsep.errors import Note, UserError
from eqsep.io import open_table, read_table, write_table
from eqsep.io.writing import as_column, output_format, with_nulls

ROWS = "id;day;amount;shape\n007;31.12.2024;1.234,50 €;round\n008;01.01.2025;n/a;flat\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "payments.csv"
    path.write_text(ROWS)
    return path


def quiet(read, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        return read(*args, **options)


def test_dialect_units_dates_and_missing_values_are_understood_and_noted(table):
    with pytest.warns(Note) as notes:
        found = read_table(table)
    assert found.column("amount").to_pylist() == [1234.5, None]
    assert found.column("day")[0].as_py().isoformat() == "2024-12-31T00:00:00"
    assert found.column("id").to_pylist() == ["007", "008"]
    said = " ".join(str(note.message) for note in notes)
    assert "semicolons" in said
    assert "Taken as missing: 'n/a' in 'amount'." in said


@pytest.mark.parametrize("ending", ["dat", "asc", "txt", "log", ""])
def test_text_is_opened_by_its_content_whatever_its_ending(table, tmp_path, ending):
    path = tmp_path / f"rows.{ending}".rstrip(".")
    path.write_text(ROWS)
    assert quiet(read_table, path).equals(quiet(read_table, table))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_binary_formats_are_opened_by_their_content_too(table, tmp_path, form):
    written, renamed = tmp_path / f"t.{form}", tmp_path / "rows"
    write_table(quiet(read_table, table), written)
    renamed.write_bytes(written.read_bytes())
    assert read_table(renamed).column("amount").to_pylist() == [1234.5, None]


def test_files_and_folders_are_one_table(table, tmp_path):
    (tmp_path / "more.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    assert quiet(read_table, tmp_path).num_rows == 4
    assert quiet(read_table, [table, tmp_path / "more.csv.gz"]).num_rows == 4


def test_options_say_what_is_not_to_be_inferred(table):
    found = quiet(read_table, table, drop=["day"], categorical=["id"], missing="n/a", decimal=",")
    assert found.column_names == ["id", "amount", "shape"]
    assert pa.types.is_dictionary(found.schema.field("id").type)
    assert quiet(read_table, table, drop="day").column_names == ["id", "amount", "shape"]
    with pytest.raises(TypeError, match=r"Unknown option 'lable'.* Did you mean 'label'"):
        read_table(table, lable=";")
    with pytest.raises(UserError, match="delimiter must be one character"):
        read_table(table, delimiter=";;")


def test_words_for_missing_values_that_nothing_matches_are_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("air temp,b,c\n1,k.A.,2\n2,5,3\n")
    words = ["air temp=-9999", "b=k.a.", "zzz", "c=4"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table([path, path], missing=words, drop="c")
    notes = [line for line in str(caught[0].message).splitlines() if "matched" in line]
    assert notes == ["- missing: 'air temp=-9999', 'zzz' matched nothing in the table."]
    assert table.schema.metadata is None
    with pytest.raises(UserError, match=r"got 'airtemp=-9999'\. Did you mean 'air temp'"):
        read_table(path, missing=["airtemp=-9999"])


def test_labels_stay_as_they_are_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n1,01\n2,n/a\n")
    assert read_table(path, label="kind").column("kind").to_pylist() == ["01", "n/a"]


def test_a_detector_refuses_to_learn_the_labels_of_a_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,kind\n" + "".join(f"{i}.5,{'ok' if i % 9 else 'bad'}\n" for i in range(40)))
    table = read_table(path, label="kind")
    for rows, y in [(table, None), (table, table["kind"]), ([table], None), (table.slice(3), None)]:
        with pytest.raises(UserError, match="'kind' of X holds the labels") as refused:
            Detector().fit(rows, y)
    code = refused.value.hint.split(": ")[-1].removesuffix(".")
    quick = Detector(false_alarm_rate=0.1, n_landmarks=20, config=Config.fast())
    found = eval(code, {"fit": quick.fit, "table": table})  # what the hint says works
    assert list(found.feature_names_in_) == ["x"]
    assert list(quick.fit([table], "kind").feature_names_in_) == ["x"]


def test_bad_rows_are_set_aside(tmp_path):
    path, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_text("x,y\n1,2\n1,2,3\n4,5\n")
    with pytest.warns(Note, match="1 row could not be read"):
        assert read_table(path, bad_rows=bad).to_pydict() == {"x": [1, 4], "y": [2, 5]}
    assert bad.read_text().splitlines()[1].endswith('2,"expected 2 values, got 3","1,2,3"')


def test_bad_rows_need_not_be_utf8(tmp_path):
    path, bad = tmp_path / "t.csv", tmp_path / "bad.csv"
    path.write_bytes(b"amount,country\n50,AT\n1,\xfcber,9\n7,K\xf6ln\n")
    with pytest.warns(Note) as notes:
        found = read_table(path, bad_rows=str(bad))
    assert len(notes) == 1  # each warning comes with a line of the caller's code
    assert found.to_pydict() == {"amount": [50, 7], "country": ["AT", "Köln"]}
    assert "1,über,9" in bad.read_text(encoding="utf-8")
    assert sum("read as cp1252" in str(note.message) for note in notes) == 1
    assert {note.filename for note in notes} == {__file__}


def test_a_ragged_row_is_named_by_its_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('x,y\n1,"two\nlines"\n3,4\n5,6,7\n')
    with pytest.raises(UserError, match=r"t\.csv, line 5: expected 2 values, got 3: '5,6,7'\."):
        read_table(path)
    path.write_text("A title\n\nx,y\n" + "1,2\n" * 20 + "5\n")
    with pytest.raises(UserError, match=r"t\.csv, line 24: expected 2 values, got 1"):
        quiet(read_table, path)


def test_half_a_character_in_json_is_named_by_its_line(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "\\ud83d\\ude00"}\n{"a": "\\ud800"}\n')
    with pytest.raises(UserError, match=r"^Line 2 of .*t\.jsonl: This holds '\\ud800', half of a"):
        read_table(path)


def test_a_table_that_may_be_transposed_is_asked_about(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text("\n".join(",".join(str(i * j % 97) for j in range(300)) for i in range(12)))
    with pytest.warns(Note) as notes:
        assert read_table(path).num_columns == 300
    asked = "300 columns without names and only 12 rows. If each column is a sample, transpose"
    assert any(asked in str(note.message) for note in notes)


def test_a_detector_says_how_to_pass_a_file_and_its_labels(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{i % 13}.5,{'bad' if i % 20 == 0 else 'ok'}" for i in range(200)]
    path.write_text("\n".join(["x,kind", *rows]) + "\n")
    with pytest.raises(UserError, match=r"table = eqsep\.io\.read_table\(path\)") as refused:
        Detector().fit(str(path))
    table = read_table(path)
    code = refused.value.hint.split(": ")[-1].removesuffix(".")
    quick = partial(Detector, false_alarm_rate=0.05, n_landmarks=20, config=Config.fast())
    found = eval(code, {"Detector": quick, "table": table})  # what the hint says works
    assert list(found.kinds_) == ["bad"]
    assert list(found.feature_names_in_) == ["x"]
    with pytest.raises(UserError, match=r"pass its values, X\['kind'\], and leave it out of X"):
        Detector().fit(table, "kind")


def test_batches_have_the_types_of_the_first_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;day\n" + "".join(f"{i},5;0{1 + i % 9}.01.2025\n" for i in range(60_000)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        with open_table(path) as batches:
            tables = list(batches)
        whole = read_table(path)
    assert len(tables) > 1
    joined = pa.concat_tables(tables)
    assert joined.column("x").to_pylist() == whole.column("x").to_pylist()
    assert joined.column("day").to_pylist() == whole.column("day").to_pylist()


def test_batches_of_dates_are_read_in_the_order_that_later_rows_show(tmp_path):
    path = tmp_path / "t.csv"
    hours = [dt.datetime(2013, 1, 1) + dt.timedelta(hours=i) for i in range(600)]
    path.write_text("taken at,x\n" + "".join(f"{t:%m/%d/%Y %H:%M},1.5\n" for t in hours))
    with (
        pytest.warns(Note, match="taken at: dates, month first"),
        open_table(path) as batches,
    ):
        (batch,) = batches
    assert batch.column("taken at").to_pylist() == hours


def test_a_later_value_of_another_type_is_refused_with_its_row(tmp_path):
    path = tmp_path / "t.csv"
    text = "x,y\n" + "1.5,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 60_000
    path.write_text(text + "oops,b\n")
    with (
        pytest.raises(UserError, match=r"row 60001: column 'x' holds 'oops'"),
        open_table(path) as batches,
    ):
        list(batches)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "jsonl", "parquet", "arrow"])
def test_what_is_written_reads_back(tmp_path, form):
    path = tmp_path / f"t.{form}"
    write_table({"x": [1.5, 2.0], "y": ["a,b", 'say "no"']}, path)
    assert read_table(path).to_pydict() == {"x": [1.5, 2.0], "y": ["a,b", 'say "no"']}


def test_quotes_stand_around_values_that_need_them_alone(tmp_path):
    path = tmp_path / "t.csv"
    write_table({"x": [0.1, 2.0, None], "y": ["plain", "a,b", None]}, path)
    assert path.read_text() == 'x,y\n0.1,plain\n2,"a,b"\n,\n'


def test_a_table_of_no_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match="expects a table of pyarrow, a frame, or a dict"):
        write_table(3, tmp_path / "t.csv")
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("path", ["payments.csv", Path("payments.csv")])
def test_a_detector_that_is_given_a_path_names_the_reader(path):
    with pytest.raises(UserError, match=r"expects a table, got .*payments.*read_table\(path\)"):
        Detector().fit(path)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_no_text_of_a_spreadsheet_is_run_as_a_formula(tmp_path, kind):
    path = tmp_path / "t.csv"
    write_table({"x": pa.array(["=1+1", "plain"]).cast(kind)}, path, format="spreadsheet")
    assert path.read_text() == "x\n'=1+1\nplain\n"


def test_columns_of_lists_are_left_out_and_empty_tables_are_tables(tmp_path):
    path = tmp_path / "t.parquet"
    write_table(pa.table({"x": pa.array([1, 2], pa.float32()), "many": [[1], [2]]}), path)
    with pytest.warns(Note, match="left out 'many', which hold lists or bytes"):
        assert read_table(path).to_pydict() == {"x": [1.0, 2.0]}
    (tmp_path / "t.csv").write_text("x,y\n")
    assert read_table(tmp_path / "t.csv").num_rows == 0


def test_half_floats_are_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    write_table({"x": np.arange(3, dtype=np.float16)}, path)
    assert read_table(path).schema.field("x").type == pa.float32()


def test_a_name_of_no_encoding_is_a_damaged_file(tmp_path):
    path = tmp_path / "t.parquet"
    write_table({"total": [1, 2]}, path)
    path.write_bytes(path.read_bytes().replace(b"total", b"to\xe9al"))
    with pytest.raises(UserError, match=r"t\.parquet cannot be read: .*codec can't decode"):
        read_table(path)


def test_a_quote_that_is_never_closed_is_not_looked_for_line_by_line(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text('x,y\n1,"' + "a\n" * 2**20)
    monkeypatch.setattr("eqsep.io.text.ragged_line", lambda *_: pytest.fail("it is read again"))
    with pytest.raises(UserError, match="longer than 1 MB, or a quote is never closed"):
        read_table(path)


def test_a_line_without_end_is_refused_where_bad_rows_are_set_aside(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1," + "a" * 2**23)
    with pytest.raises(UserError, match=r"A line of .*t\.csv is longer than 4 MB"):
        read_table(path, bad_rows=tmp_path / "bad.csv")


def test_the_format_is_asked_for_or_the_ending_of_the_name():
    asked = [("scores.csv.gz", None), ("-", None), ("-", "jsonl")]
    assert [output_format(*one) for one in asked] == ["csv", "csv", "jsonl"]


def test_columns_of_arrow_are_made_without_pandas():
    assert as_column(np.array(["a", "été"], dtype=object), pa.string()).to_pylist() == ["a", "été"]
    assert with_nulls(np.array([0.5, np.nan])).to_pylist() == [0.5, None]


def test_a_note_says_how_to_keep_a_word(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("state,land\n-,NA\nold,EU\n")
    said = r"'-' in 'state'; 'NA' in 'land'\. To keep a word .* categorical=\['state'\], and so on"
    with pytest.warns(Note, match=said):
        read_table(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = read_table(path, categorical=["state", "land"])
    assert kept.to_pylist() == [{"state": "-", "land": "NA"}, {"state": "old", "land": "EU"}]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "arrow"])
def test_words_for_missing_values_apply_in_all_formats(tmp_path, form):
    path = tmp_path / f"table.{form}"
    values = {"heat": [1.5, -999.0, 2.5], "n": [1, 2, -9], "state": ["on", "gone", "off"]}
    land = pa.array(["EU", "none", "US"]).dictionary_encode()
    write_table(pa.table(values | {"note": ["a", "-9", "b"], "land": land}), path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing to note: it was asked for
        table = read_table(path, missing=["heat=-999", "state=Gone", "n=-9", "land=none"])
    gone = {"heat": [1.5, None, 2.5], "n": [1, 2, None], "state": ["on", None, "off"]}
    gone |= {"note": ["a", "-9", "b"], "land": ["EU", None, "US"]}
    assert table.to_pydict() == gone
    with pytest.warns(Note, match="missing: 'heat=-8' matched nothing in the table"):
        read_table(path, missing=["heat=-8"])


def test_a_word_for_a_missing_label_makes_no_other_word_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("heat,kind\n1,none\n2,-1\n3,na\n")
    found = quiet(read_table, path, label="kind", missing=["kind=-1"])
    assert found.column("kind").to_pylist() == ["none", None, "na"]


def test_a_name_of_two_columns_is_refused_and_values_only_in_text_may_be_the_reason(tmp_path):
    table = pa.table([[1], [2]], names=["a", "a"])
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(UserError, match=r"more than one column of the same name: rename them\.$"):
        read_table(tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("tcp,tcp,a\nudp,tcp,b\n")
    with pytest.raises(UserError, match=r"or pass header=False if the first line holds values\.$"):
        read_table(tmp_path / "t.csv")
    assert quiet(read_table, tmp_path / "t.csv", header=False).num_rows == 2
