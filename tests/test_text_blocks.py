"""Text files block by block: the same rows as line by line, whatever stands where blocks end."""

import csv
import threading

import pytest

from eqsep.errors import UserError
from eqsep.io import streams
from eqsep.io import text as text_files
from eqsep.io.dialect import Layout
from eqsep.io.files import open_file

HEAD = "a,b,c\n"
LINES = [f"{i},name {i % 7},{i / 8}\n" for i in range(300)]
FILES = {
    "plain": "".join(LINES),
    "no end of the last line": "".join(LINES)[:-1],
    "a quoted value late": "".join(LINES[:150]) + '9,"two\nlines, and more",1\n' + "".join(LINES),
    "quotes everywhere": "".join(f'"{i}","x","y"\n' for i in range(200)),
    "both ends of lines": "".join(LINES).replace("\n", "\r\n"),
    "the old end of lines": "".join(LINES).replace("\n", "\r"),
    "blank lines": "\n\n".join(LINES),
    "beyond ASCII": "".join(LINES).replace("name 3", "größer"),
    "nothing in places": "".join(LINES).replace("name 3", ""),
    "no rows": "",
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for size in ("BLOCK", "LARGEST_BLOCK"):
        monkeypatch.setattr(text_files, size, 512)


def pieces_of(path):
    with open_file(str(path), layout=Layout()) as file:
        yield from file.pieces(file.columns)


@pytest.mark.parametrize("name", FILES)
def test_all_rows_come_in_their_order(tmp_path, name):
    path = tmp_path / "t.csv"
    head = HEAD.replace("\n", "\r") if name == "the old end of lines" else HEAD
    path.write_text(head + FILES[name], newline="")
    with path.open(newline="") as file:
        _, *wanted = ([value or None for value in row] for row in csv.reader(file) if row)
    pieces = list(pieces_of(path))
    assert pieces[0].num_rows == 0
    assert [list(row.values()) for piece in pieces for row in piece.to_pylist()] == wanted
    assert {str(piece.schema) for piece in pieces} == {str(pieces[0].schema)}


def test_blocks_are_parsed_until_a_quote_and_from_there_on_streamed(tmp_path, monkeypatch):
    path, streamed = tmp_path / "t.csv", []
    path.write_text(HEAD + FILES["a quoted value late"])
    usual = streams.Remembered
    monkeypatch.setattr(
        streams,
        "Remembered",
        lambda first, *rest, **more: streamed.append(first) or usual(first, *rest, **more),
    )
    list(pieces_of(path))
    assert b'"two' in streamed[0]
    assert len(streamed[0]) < 3 * 512
    list(pieces_of_plain(tmp_path))
    assert streamed[1] == b"\n"


def pieces_of_plain(folder):
    path = folder / "plain.csv"
    path.write_text(HEAD + FILES["plain"])
    return pieces_of(path)


def test_a_line_that_does_not_fit_is_refused_in_any_block(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "".join(LINES[:200]) + "1,2\n" + "".join(LINES[200:]))
    with pytest.raises(UserError, match="expected 3 values, got 2: '1,2'"):
        list(pieces_of(path))


def test_a_line_that_is_longer_than_a_block_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "".join(LINES[:90]) + f"1,{'long ' * 500},2\n" + "".join(LINES))
    with pytest.raises(UserError, match="a row is longer than"):
        list(pieces_of(path))


def test_who_stops_early_leaves_no_thread_behind(tmp_path):
    before = threading.active_count()
    pieces = pieces_of_plain(tmp_path)
    next(pieces), next(pieces)
    pieces.close()
    assert threading.active_count() == before


UNCLOSED = {
    "near the end": "".join(LINES) + '9,x,"never closed\n' + "".join(LINES[:20]),
    "in the last line": "".join(LINES) + '9,x,"1\n',
    "after values with quotes": '1,"a ""b"" c",2\n' * 90 + '9,x,"never, ""closed""\n',
}
CLOSED = {
    "a mark of inches": "".join(LINES) + '9,5" pipe,1\n' + "".join(LINES[:9]),
    "three quotes at the end": '1,"a",2\n' * 300 + '1,2,"""x"""\n',
    "inches in quotes and out of them": '1,"5"" pipe",5" pipe\n' * 41,
}


@pytest.mark.parametrize("name", UNCLOSED)
def test_a_file_that_ends_within_quotes_is_refused(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + UNCLOSED[name])
    with pytest.raises(UserError, match=r"t\.csv ends inside quotes: an earlier quote is never"):
        list(pieces_of(path))


@pytest.mark.parametrize("name", CLOSED)
def test_quotes_that_open_no_value_are_part_of_it(tmp_path, name):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + CLOSED[name])
    with path.open(newline="") as file:
        wanted = sum(1 for _ in csv.reader(file)) - 1
    assert sum(piece.num_rows for piece in pieces_of(path)) == wanted
