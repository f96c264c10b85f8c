"""Spreadsheets: read as the text of a CSV file would be, with the types of their cells."""

import datetime as dt
import sys

import pytest
from workbooks import workbook

from eqsep.errors import MissingExtraError, Note, UserError
from eqsep.io.dialect import Layout
from eqsep.io.files import open_file

ANY = Layout()


def read(path, layout=ANY):
    with open_file(str(path), layout=layout) as file:
        return file.whole(file.columns).to_pydict()


def test_cells_keep_their_types_and_titles_are_left_out(tmp_path):
    pytest.importorskip("python_calamine", reason="needs eqsep[excel]")
    day = dt.datetime(2024, 12, 31)
    rows = [
        ["Report of May", None, None, None],
        ["day", "amount", "zip", "kind"],
        [day, 1.5, "01234", "normal"],
        [day, 2, "00007", "n/a"],
    ]
    path = workbook(tmp_path / "t.xlsx", empty=[], data=rows)
    with pytest.warns(Note) as told:
        found = read(path)
    assert found == {
        "day": [day, day],
        "amount": [1.5, 2.0],
        "zip": ["01234", "00007"],
        "kind": ["normal", None],
    }
    said = [str(warning.message) for warning in told]
    assert "Read the sheet 'data' of 'empty', 'data'; name another sheet to read it." in said
    assert "Skipped 1 line before the table." in said


def test_a_sheet_is_chosen_by_its_name(tmp_path):
    pytest.importorskip("python_calamine", reason="needs eqsep[excel]")
    cover = [["Laboratory", "May"], ["made by", "Ada"]]
    path = workbook(tmp_path / "t.xlsx", Cover=cover, Values=[["a", "b"], [1, 2], [3, 4]])
    assert read(path, Layout(sheet="Values")) == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(UserError, match=r"no sheet 'values': .* 'Values'\. Did you mean 'Values'"):
        read(path, Layout(sheet="values"))


def test_decimal_commas_in_text_are_understood(tmp_path):
    pytest.importorskip("python_calamine", reason="needs eqsep[excel]")
    path = workbook(tmp_path / "t.xlsx", data=[["a", "b"], ["1.234,5", 1], ["2,5", 2]])
    with pytest.warns(Note, match="a: numbers with decimal comma"):
        assert read(path) == {"a": [1234.5, 2.5], "b": [1, 2]}


def test_what_is_no_spreadsheet_is_refused(tmp_path):
    pytest.importorskip("python_calamine", reason="needs eqsep[excel]")
    (tmp_path / "bad.xlsx").write_bytes(b"PK no")
    with pytest.raises(UserError, match="cannot be read"):
        read(tmp_path / "bad.xlsx")
    with pytest.raises(UserError, match="is empty"):
        read(workbook(tmp_path / "t.xlsx", data=[]))


def test_without_the_extra_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match=r'pip install "eqsep\[excel\]"'):
        read(workbook(tmp_path / "t.xlsx", data=[["a"], [1]]))
