"""Text files of many dialects: one table, written in all of them, is read as the same values."""

import datetime as dt
import gzip
import io
import json
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest

from eqsep.errors import Note, UserError
from eqsep.io.dialect import Dialect, Layout, aligned, detect
from eqsep.io.files import cast, open_file
from eqsep.io.inference import written
from eqsep.io.notation import (
    Notation,
    bare,
    date_order,
    decimal_mark,
    is_number,
    read_date,
    shared_unit,
    strange_numbers,
    without_minus,
)
from eqsep.io.streams import encoding_of

N = 40
ANY = Layout()
RNG = np.random.default_rng(0)
TRUTH = {
    "place": [("Köln", "Zürich", "São Paulo", "Bern")[i % 4] for i in range(N)],
    "amount": [round(float(v), 2) for v in RNG.uniform(1, 99_999, N)],
    "count": [int(v) for v in RNG.integers(1_000, 9_999_999, N)],
    "day": [dt.datetime(2024, 1 + i % 12, 1 + i % 28) for i in range(N)],
    "flag": [i % 3 == 0 for i in range(N)],
    "zip": [f"{i * 97:05d}" for i in range(N)],
    "kind": ["normal" if i % 5 else "fraud" for i in range(N)],
}
GERMAN, SWISS, FRENCH = Notation(",", "."), Notation(".", "'"), Notation(",", " ")
ENGLISH, PLAIN = Notation(".", ","), Notation()


@dataclass(frozen=True)
class Writing:
    """How the table is written, and what must be said of it."""

    delimiter: str = ","
    notation: Notation = PLAIN
    date: str = "%Y-%m-%d"
    encoding: str = "utf-8"
    end: str = "\n"
    header: bool = True
    above: str = ""
    below: dict = field(default_factory=dict)  # a second line of the header: units
    missing: str = ""
    layout: Layout = ANY
    said: tuple = ()
    columns: tuple = tuple(TRUTH)

    def number(self, value):
        text = f"{value:,}" if self.notation.thousands else str(value)
        marks = {",": self.notation.thousands, ".": self.notation.decimal}
        return "".join(marks.get(c, c) for c in text) + (" " + self.notation.unit).rstrip()

    def value(self, name, value):
        if name in ("amount", "count"):
            return self.number(value)
        if name == "day":
            return value.strftime(self.date)
        return str(value).lower() if name == "flag" else value

    def rows(self):
        table = [[self.value(name, TRUTH[name][i]) for name in self.columns] for i in range(N)]
        if self.missing:
            table[7][self.columns.index("amount")] = self.missing
        return table

    def text(self):
        lines = [list(self.columns)] if self.header else []
        lines += [[self.below.get(name, "") for name in self.columns]] if self.below else []
        lines += self.rows()
        if self.delimiter in ("spaces", "columns"):
            lines = [[v.replace(" ", "_") for v in line] for line in lines]
            if self.delimiter == "columns":
                lines = [[v.replace("_", " ") for v in line] for line in lines]
            widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
            gap = " " if self.delimiter == "spaces" else "   "
            made = [
                gap.join(v.ljust(w) for v, w in zip(line, widths, strict=True)) for line in lines
            ]
        else:
            made = [self.delimiter.join(map(self.quoted, line)) for line in lines]
        return self.above + self.end.join(made) + self.end

    def quoted(self, value):
        return f'"{value}"' if self.delimiter in value or "\n" in value else value

    def names(self):
        if not self.header:
            return [f"c{i + 1}" for i in range(len(self.columns))]
        return [f"{c} {self.below[c]}" if c in self.below else c for c in self.columns]


def many():
    """Every delimiter with every notation, encodings, ends of lines, headers and titles."""
    marks = {"commas": ",", "semicolons": ";", "tabs": "\t", "bars": "|", "columns": "columns"}
    notations = {"plain": PLAIN, "German": GERMAN, "Swiss": SWISS, "French": FRENCH}
    notations["English"] = ENGLISH
    for mark, delimiter in marks.items():
        for called, notation in notations.items():
            yield f"{mark}, {called}", Writing(delimiter, notation)
    for mark in ("commas", "semicolons", "tabs"):
        for encoding in ("latin-1", "cp1252", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
            yield f"{mark}, {encoding}", Writing(marks[mark], GERMAN, encoding=encoding)
    for order in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y"):
        yield f"dates {order}", Writing(";", GERMAN, order, said=("day: dates",))
    for order in ("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%y", "%d %b %y"):
        said = ("two-digit years as 1969 to 2068",)
        yield f"dates {order}", Writing(";", GERMAN, order, said=said)
    for unit in ("€", "CHF", "°C", "l/min"):
        for mark, notation in ((",", ENGLISH), (";", GERMAN), ("\t", FRENCH)):
            said = (f": numbers in {unit} with thousands",)
            yield f"{mark}, {unit}", Writing(mark, replace(notation, unit=unit), said=said)
    yield "dates of several forms", Writing(date="%B %d, %Y")
    for end in ("\r\n", "\r"):
        for mark in ("commas", "tabs"):
            yield f"{mark}, {end!r}", Writing(marks[mark], end=end)
    for mark in ("commas", "semicolons", "bars", "tabs"):
        no_names = Writing(marks[mark], header=False, said=("The first line holds values",))
        yield f"{mark}, no header", no_names
    title = "Payments of 2024\n\nmade by hand\n"
    left_out = ("2 lines before the table",)
    for mark in ("commas", "semicolons", "tabs"):
        yield f"{mark}, below a title", Writing(marks[mark], above=title, said=left_out)
        units = {"amount": "[EUR]", "count": "(pieces)"}
        two = Writing(marks[mark], below=units, said=("The first 2 lines name the columns",))
        yield f"{mark}, two lines of header", two
    for word in ("n/a", "N/A", "?", "-", "null", "NULL", "None", "NaN", "#N/A", "n.A."):
        yield f"missing {word}", Writing(missing=word, said=("Taken as missing: ",))
    yield "missing as told", Writing(missing="999999", layout=Layout(missing=("999999",)))
    options = Layout(delimiter=";", header=True, decimal=",", thousands=".", encoding="cp1252")
    yield "all said", Writing(";", GERMAN, encoding="cp1252", layout=options)
    yield "lines skipped", Writing(above="a;b;c\n" * 3, layout=Layout(skip=3))
    yield "numbers alone, spaces", Writing("spaces", columns=("amount", "count"))
    yield "fixed width", Writing("columns", columns=("amount", "place", "count"), missing=" ")


FILES = dict(many())


def read(path, layout=ANY):
    """The values of a file as a fit takes them, and the notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with open_file(str(path), layout=layout) as file:
            table = file.whole(file.columns)
    assert all(isinstance(w.message, Note) for w in caught)
    return table, [str(w.message) for w in caught]


def read_like(path, table, layout=ANY):
    """The values of a file in the types and notations of a table that was fitted to."""
    kinds = {pa.float64(): "number", pa.int64(): "number", pa.timestamp("us"): "date"}
    columns = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        with open_file(str(path), layout=layout) as file:
            read = pa.concat_tables(list(file.pieces(file.columns)))
    for learnt in table.schema:
        reads = "boolean" if pa.types.is_boolean(learnt.type) else kinds.get(learnt.type, "text")
        known = json.loads((learnt.metadata or {}).get(b"eqsep.notation", b"{}")) or None
        how = written(read.schema.field(learnt.name), known)
        values = cast(read.column(learnt.name), reads, how).to_pylist()
        columns[learnt.name] = [None if v != v else v for v in values]
    return columns


def test_there_are_many_files():
    assert len(FILES) >= 60


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_dialect_is_read_as_the_same_values(name, tmp_path):
    writing = FILES[name]
    path = tmp_path / "table.csv"
    path.write_bytes(writing.text().encode(writing.encoding))
    table, notes = read(path, writing.layout)
    assert table.schema.names == writing.names()
    for column, called in zip(writing.columns, writing.names(), strict=True):
        expected = list(TRUTH[column])
        if writing.missing and column == "amount":
            expected[7] = None
        got = [None if v != v else v for v in table.column(called).to_pylist()]
        assert got == expected, column
    for said in writing.said:
        assert any(said in note for note in notes), notes
    again = read_like(path, table, writing.layout)
    assert again == {
        column: [float(v) if type(v) is int else None if v != v else v for v in values]
        for column, values in table.to_pydict().items()
    }


def test_what_is_obvious_is_not_said(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(Writing(columns=("place", "amount", "day", "kind")).text())
    assert read(path)[1] == []


@pytest.mark.parametrize("form", ["%Y/%m/%d", "%b %d, %Y"])
def test_dates_with_the_year_or_a_name_first_are_not_day_first(tmp_path, form):
    path = tmp_path / "table.csv"
    path.write_text(Writing("\t", date=form, columns=("place", "amount", "day", "kind")).text())
    assert read(path)[1][-1] == "day: dates."


def test_notes_name_the_column_and_how_it_is_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(Writing(";", GERMAN, "%d.%m.%Y", "cp1252").text().encode("cp1252"))
    notes = read(path)[1]
    assert "amount: numbers with decimal comma and thousands points." in notes
    assert "count: numbers with thousands points." in notes
    assert "day: dates, day first." in notes
    assert "zip: names, as some begin with 0." in notes
    assert any("cp1252" in note for note in notes)


@pytest.mark.parametrize(
    ("text", "columns", "values"),
    [
        # the table of which the advice once led in a circle
        ("name  x  y\npage 1  2.5   3\npage 2  3.5  14\n", ["name", "x", "y"], ["page 1", 2.5, 3]),
        ("a b c\n1 2 3\n10  20 30\n", ["a", "b", "c"], [1, 2, 3]),
        ('a,"b, c"\n1,2\n', ["a", "b, c"], [1, 2]),
        ('a,b\n1,"two\nlines"\n2,one\n', ["a", "b"], [1, "two\nlines"]),
        ("x\n1,5\n2,5\n", ["x"], [1.5]),
        ("1,5;2,5\n3,5;4,5\n", ["c1", "c2"], [1.5, 2.5]),
        ("0,1,2\n5,6,7\n8,9,9\n", ["0", "1", "2"], [5, 6, 7]),  # as pandas writes it
        ("land,2019,2020\nA,5,6\nB,8,9\n", ["land", "2019", "2020"], ["A", 5, 6]),
        ("land,2019,17\nA,5,6\nB,8,9\n", ["c1", "c2", "c3"], ["land", 2019, 17]),  # 17 is no year
        ("5,tcp,0.1\n3,udp,0.2\n", ["c1", "c2", "c3"], [5, "tcp", 0.1]),
        ("day;x\n31.12.2024;1\nJan 2, 2024;2\n", ["day", "x"], [dt.datetime(2024, 12, 31), 1]),
        ("a;b\n1.234;2,5\n2.000;3\n", ["a", "b"], [1234.0, 2.5]),
        ("a;b\n1.234;2\n2.000;3\n", ["a", "b"], [1.234, 2]),  # nothing shows a decimal comma
        ('a,b\n"1,234",2.5\n"12,000",1\n', ["a", "b"], [1234.0, 2.5]),
        ("a,b\n0x10,1\n0x1F,2\n", ["a", "b"], [16, 1]),
        ("\ufeff\na,b\n1,2\n", ["a", "b"], [1, 2]),  # a first line that is empty
        ("a,b\r1,2\r", ["a", "b"], [1, 2]),
        ("a,b\n1,n/a\n2,-\n", ["a", "b"], [1, None]),
        ("s,,t\nlow,high,low\n1,2,3\n5,6,7\n", ["s low", "s high", "t low"], [1, 2, 3]),
        ("a,b\n007,1\n012,2\n", ["a", "b"], ["007", 1]),
        ("t\n12:30\n13:45:10\n", ["t"], [dt.time(12, 30)]),
        ("a|b\n1|x,y\n2|z,w\n", ["a", "b"], [1, "x,y"]),
        ("who,what\nx;y,1\nz;w,2\n", ["who", "what"], ["x;y", 1]),
        ("a;b\n1,5 %;5‰\n-12%;0‰\n", ["a", "b"], [0.015, 0.005]),
        ("a,b\n-$5,€ 7\n$1.5,€-8\n", ["a", "b"], [-5, 7]),
        ("a;b\n5 €;1\n7,50 EUR;2\n", ["a", "b"], [5, 1]),  # one currency, spelt in two ways
        ("a,b\n5 €,1\n7 $,2\n", ["a", "b"], ["5 €", 1]),  # two currencies are no numbers
        ("a,b\n5 %,1\n7,2\n", ["a", "b"], ["5 %", 1]),  # 7 of what?
        ("a,b\n5 apples,1\n7 apples,2\n", ["a", "b"], ["5 apples", 1]),
        ("a,b\n40.1.24,1\n2.1.24,2\n", ["a", "b"], ["40.1.24", 1]),  # no day
        ("a;b\n1.234,50-;(5)\n2;7\n", ["a", "b"], [-1234.5, -5]),
        ("a,b\n($5.5),−5\n$2,7\n", ["a", "b"], [-5.5, -5]),
        ("a;b\n5,5 €-;(5 %)\n2 €;7 %\n", ["a", "b"], [-5.5, -0.05]),
        ("a,b\n5-,(5)\n7-,(7)\n", ["a", "b"], ["5-", "(5)"]),  # all of them: something else
        ("a|b\n--|---\n1|2\n3|4\n", ["a", "b"], [1, 2]),  # a line below the header
        (
            "Ward 7\nof May\n\n" + "".join(
                f"{a:>4} {b:>4} {c:<4}\n"
                for a, b, c in [("id", "tsh", "note"), ("----", "----", "----")]
                + [(i, "" if i % 4 == 0 else i / 2, "ok" if i % 2 else "a b") for i in range(1, 30)]
            ),
            ["id", "tsh", "note"], [1, 0.5, "ok"],
        ),  # one space between columns, titles, and a line below the header
        ("5 €;x\n7 €;y\n", ["c1", "c2"], [5, "x"]),
    ],
)  # fmt: skip
def test_what_is_understood(text, columns, values, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    table, _ = read(path)
    assert table.schema.names == columns
    assert [table.column(name)[0].as_py() for name in columns] == values


@pytest.mark.parametrize(
    ("below", "most"),
    [
        ("a,b,c\n" + 5 * "1,2,5\n3,4,6\n", 100),
        ("\na     b     c\n" + 5 * "1     2.5   x y\n3     4.5   z\n", 99),
    ],
    ids=["commas", "columns"],
)
def test_up_to_a_hundred_lines_of_titles_are_skipped(below, most, tmp_path):
    path, titles = tmp_path / "table.csv", ["Report", "Made in the north by hand", "Two words"] * 34
    found = []
    for n in (most, most + 1):
        path.write_text("\n".join(titles[:n]) + "\n" + below)
        found.append(read(path)[0].schema.names)
    assert found == [["a", "b", "c"], ["Report"]]  # more of them are a column of texts


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"decimal": ",", "thousands": ","}, "thousands must be a mark other"),
        ({"skip": -1}, "skip must be a number of lines"),
        ({"encoding": "klingon"}, "or utf-16, got 'klingon'"),
        ({"encoding": "rot13"}, "or utf-16, got 'rot13'"),
    ],
)
def test_options_that_cannot_be_are_refused(layout, message):
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        Layout(**layout)


def test_options_go_before_what_a_file_shows(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b\n1.234;2,5\n5.678;3\n")
    assert read(path)[0].column("a")[0].as_py() == 1234
    assert read(path, Layout(decimal="."))[0].column("a")[0].as_py() == 1.234
    path.write_text("1;2\n3;4\n")
    assert read(path)[0].schema.names == ["1", "2"]  # places in order, as names
    assert read(path, Layout(header=False))[0].schema.names == ["c1", "c2"]
    assert read(path, Layout(delimiter=","))[0].schema.names == ["1;2"]


def test_months_are_read_as_their_first_day(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        ",issued,next,due,code\n5%,Mar-2018,2018-03,Mar 2018,2018-13\n6%,Oct-2019,1999-12,,\n"
    )
    table, notes = read(path)
    march, december = dt.datetime(2018, 3, 1), dt.datetime(1999, 12, 1)
    assert table["issued"].to_pylist() == [march, dt.datetime(2019, 10, 1)]
    assert table["next"].to_pylist() == [march, december]
    assert table["due"].to_pylist() == [march, None]
    assert table["code"].to_pylist() == ["2018-13", None]
    assert notes[0] == "(no name): numbers in %, read as fractions: 1% is 0.01."
    assert notes[1] == "issued: dates, months as their first day."
    like = read_like(path, table)
    assert [like[name][0] for name in ("issued", "next", "due")] == [march] * 3


def test_a_model_reads_what_its_own_notation_allows_and_the_file_does_not_say(tmp_path):
    fitted, later, other = (tmp_path / name for name in ("a.csv", "b.csv", "c.csv"))
    fitted.write_text("a;day\n1.234,5;31/12/2024\n2.000;1/2/2024\n")
    table, _ = read(fitted)
    later.write_text("a;day\n1.234;1/2/2024\n")  # a thousand, and the first of February
    assert read_like(later, table) == {"a": [1234.0], "day": [dt.datetime(2024, 2, 1)]}
    other.write_text("a,day,x\n1.234,2024-02-01,0.5\n")  # shows a decimal point
    assert read_like(other, table) == {"a": [1.234], "day": [dt.datetime(2024, 2, 1)]}


def test_a_sign_is_a_unit_that_a_model_keeps(tmp_path):
    fitted, later = tmp_path / "a.csv", tmp_path / "b.csv"
    fitted.write_text("a;b;c\n1.234,50 €;5 %;1\n2 €;7 %;2\n")
    table, notes = read(fitted)
    assert notes[1:] == [
        "a: numbers in € with decimal comma and thousands points.",
        "b: numbers in %, read as fractions: 1% is 0.01.",
    ]
    for text, a, b, c in (
        ("1.234 €;5 %;3 kg", 1234, 0.05, 3),  # a unit where the model knows none
        ("2,5;0,05;3", 2.5, 0.05, 3),  # none where it knows one
        ("$2;5‰;3", "$2", "5‰", 3),  # another one is refused
    ):
        later.write_text(f"a;b;c\n{text}\n")
        assert read_like(later, table) == {"a": [a], "b": [b], "c": [c]}


def test_the_list_of_what_is_missing_is_that_which_is_used(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,k.A.\n2,#DIV/0!\n3,5\n")
    table, (note,) = read(path)
    assert table.column("b").to_pylist() == [None, None, 5]
    assert note == "Taken as missing: '#DIV/0!', 'k.A.' in 'b'."
    table, notes = read(path, Layout(missing=("k.A.",)))  # somebody knows what is missing
    assert table.column("b").to_pylist() == [None, "#DIV/0!", "5"]
    assert notes == []


@pytest.mark.parametrize("word", ["none", "None"])
def test_none_among_names_is_one_of_them(tmp_path, word):
    path = tmp_path / "table.csv"
    path.write_text(f"size,heat\nsmall,1\n{word},none\n,3\nbig,4\n")
    table, notes = read(path)
    assert table.column("size").to_pylist() == ["small", word, None, "big"]
    assert table.column("heat").to_pylist() == [1, None, 3, 4]  # among numbers it is missing
    assert notes == [
        "Taken as missing: 'none' in 'heat'.",
        "'none' is a name in 'size'. If it is a missing value, pass missing=['size=none'].",
    ]
    assert read_like(path, table)["size"] == ["small", word, None, "big"]
    table, notes = read(path, Layout(missing=("size=none",)))
    assert table.column("size").to_pylist() == ["small", None, None, "big"]
    assert notes == ["Taken as missing: 'none' in 'heat'."]  # that in 'size' was asked for


def test_a_column_of_numbers_with_two_words_is_asked_about_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["heat", *map(str, range(50)), "none", "error"]) + "\n")
    table, notes = read(path)
    assert table.column("heat").to_pylist()[-2:] == [None, "error"]
    assert "is a name" not in " ".join(notes)


def test_packed_files_have_dialects_too(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(Writing(";", GERMAN, encoding="utf-16").text().encode("utf-16")))
    assert read(path)[0].column("amount").to_pylist() == TRUTH["amount"]


def test_a_later_byte_that_is_no_utf8_is_western(tmp_path):
    path = tmp_path / "table.csv"
    lines = ["a,b"] + ["1,plain"] * 60_000  # far beyond what is looked at
    path.write_bytes(("\n".join(lines) + "\n2,Köln\n").encode("cp1252"))
    table, notes = read(path)
    assert table.column("b")[-1].as_py() == "Köln"
    assert any("cp1252" in note for note in notes)


def test_letters_that_latin_1_lacks_are_those_of_cp1252(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("a,b\n1,“Köln” – 5 €\n2,x\n".encode("cp1252"))
    assert read(path)[0].column("b")[0].as_py() == "“Köln” – 5 €"


def test_newlines_in_quotes_belong_to_the_value_wherever_they_stand(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + '1,"x\n\ny"\n' * 200_000)  # several blocks
    with open_file(str(path), layout=ANY) as file:
        tables = list(file.pieces(file.columns))
    assert sum(table.num_rows for table in tables) == 200_000
    assert {text for t in tables for text in t.column("b").unique().to_pylist()} == {"x\n\ny"}


def test_thousands_go_before_what_semicolons_show(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a;b\n1,234;x\n5,678;y\n")
    assert read(path)[0].column("a").to_pylist() == [1.234, 5.678]
    assert read(path, Layout(thousands=","))[0].column("a").to_pylist() == [1234, 5678]


def test_a_score_reads_0x10_as_a_fit_does():
    assert cast(pa.chunked_array([["0x10", "0x1F"]]), "number").to_pylist() == [16.0, 31.0]


def test_blank_lines_below_a_title_are_no_columns(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("A title alone\n\n\n\n\n\n")
    assert read(path)[0].column_names == ["A title alone"]


def test_bytes_of_no_text_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"PK\x03\x04\0\0\0\0\x01\x02\0\x07" * 9)
    with pytest.raises(UserError, match="is not text"):
        read(path)


def test_numbers_and_dates_are_known_by_their_form():
    assert [is_number(t) for t in ("1", "-1.5e3", "1.234,5", "1'000", "a1", "", "1.2.3")] == [
        *(True,) * 4,
        *(False,) * 3,
    ]
    assert decimal_mark([["1,5"], ["2.5"]]) is None  # one of each
    assert decimal_mark([["a,5", "b"], ["2.5"]]) == "."
    assert date_order(["1/2/2024", "1/31/2024"]) == "month first"
    assert date_order(["1/2/2024"]) == "day first"
    zoned = read_date("2024-12-31T23:30:00+01:00", "day first")
    assert zoned == dt.datetime(2024, 12, 31, 22, 30)
    with pytest.raises(ValueError, match="not a date"):
        read_date("1.2.3", "day first")


def test_values_that_are_no_numbers_as_the_others_are_found():
    numbers = [f"{i},5 €" for i in range(40)]
    assert strange_numbers(numbers) == []
    others = ["leer", "1.5 €", "3 $", "3"]
    assert strange_numbers([*numbers, *others]) == others
    assert strange_numbers([*numbers[:19], "leer"]) == []  # few values are names
    assert strange_numbers([*numbers, *map("word{}".format, range(6))]) == []


def test_an_encoding_is_known_by_its_first_bytes():
    assert encoding_of("a,b\n".encode("utf-16-be"), Layout()) == ("utf-16-be", 0)
    assert encoding_of(b"\xff\xfea\0", Layout()) == ("utf-16-le", 2)
    assert encoding_of(b"\xff\xfea\0", Layout(encoding="utf-16")) == ("utf-16-le", 2)
    assert encoding_of(b"a", Layout(encoding="cp1252")) == ("cp1252", 0)


def test_a_header_alone_is_a_dialect():
    found = detect("a;b\n", Layout(), name="t.csv")
    assert isinstance(found, Dialect)
    assert (found.columns, found.delimiter) == (("a", "b"), ";")
    with pytest.raises(UserError, match="is empty"):
        detect("\n\n", Layout(), name="t.csv")


def test_standard_input_has_a_dialect(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a;b\n1,5;x\n")))
    table, notes = read("-")
    assert table.to_pydict() == {"a": [1.5], "b": ["x"]}
    assert "Values are separated by semicolons." in notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# made 2024\n# by x, y\na,b\n1,2\n3,4\n", {"a": [1, 3], "b": [2, 4]}),
        ("# made 2024\n# a,b\n1,2\n3,4\n5,6\n", {"a": [1, 3, 5], "b": [2, 4, 6]}),
        ("#a,b\n1,2\n3,4\n", {"#a": [1, 3], "b": [2, 4]}),  # a header, as it is written
        ('"a", "b"\n"x", "y, z"\n"u", "v"\n', {"a": ["x", "u"], "b": ["y, z", "v"]}),
        ("a,b\n'x, y',1\n'u',2\n", {"a": ["x, y", "u"], "b": [1, 2]}),
        ("a~b\n1~2\n3~4\n", {"a": [1, 3], "b": [2, 4]}),
        ("a^b\n1^2\n3^4\n", {"a": [1, 3], "b": [2, 4]}),
    ],
)
def test_comments_other_quotes_and_other_marks(text, expected, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert read(path)[0].to_pydict() == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_double_colons_divide_values(tmp_path, end):
    path = tmp_path / "a.csv"
    path.write_text(end.join(["a::b::c", '1::2.5::"x::y"', "3::4::z", ""]), newline="")
    table, notes = read(path, Layout())
    assert table.to_pydict() == {"a": [1, 3], "b": [2.5, 4.0], "c": ["x::y", "z"]}
    assert "Values are written with :: between them." in notes
    assert read(path, Layout(delimiter="::"))[0].equals(table)
    path.write_text("ip,n\nfe80::1,5\nfe80::2,6\n")
    assert read(path, Layout())[0].schema.names == ["ip", "n"]


def test_a_backslash_before_a_quote_is_told_from_one_at_the_end_of_a_value(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n"He said \\"hi\\", twice",5\n"plain",6\n')
    assert read(path, Layout())[0].to_pydict() == {
        "a": ['He said "hi", twice', "plain"],
        "b": [5, 6],
    }
    path.write_text('a,b\n"C:\\dir\\",5\n"D:\\",6\n')
    assert read(path, Layout())[0].to_pydict() == {"a": ["C:\\dir\\", "D:\\"], "b": [5, 6]}


def test_a_dialect_is_found_and_said():
    found = detect("day;amount\n31.12.2024;1.234,5\n", ANY, name="a.csv")
    assert (found.columns, found.delimiter) == (("day", "amount"), ";")
    assert found.said == ("values are separated by semicolons",)


def test_aligned_lines_are_divided_below_their_header():
    split = aligned(["name     size", "page 1   2.5", "page 20  13"])
    assert split("page 3   0.5") == ["page 3", "0.5"]


def test_numbers_are_read_in_one_notation():
    texts = ("1.234,5", "12", "1.5", "a")
    assert [GERMAN.reads(text) for text in texts] == [True, True, False, False]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("5,50-", ("5,50", "behind")),
        ("(5)", ("5", "brackets")),
        ("−5", ("5", "long")),
        ("-5", ("-5", "")),
    ],
)
def test_a_minus_may_be_in_an_unusual_place(text, found):
    assert without_minus(text) == found


def test_units_are_taken_from_numbers_alone():
    assert bare("-1.234,50 EUR") == ("-1.234,50", "€")
    assert bare("$5") == ("5", "$")
    assert bare("12 apples") == ("12 apples", "")
    shared = (shared_unit(texts) for texts in (["5 €", "7 EUR"], ["5 €", "7 $"], ["5 €", "7"]))
    assert list(shared) == ["€", "", ""]


def test_a_decimal_mark_is_known_if_some_number_shows_it():
    assert decimal_mark([["1,5", "2"], ["1.234"]]) == ","
    assert decimal_mark([["1.234"], ["12"]]) is None


def test_dates_are_read_by_day_and_by_the_name_of_the_month():
    assert read_date("31.12.2024", "day first") == dt.datetime(2024, 12, 31)
    assert read_date("Dec 31, 2024 5:04 PM", "day first") == dt.datetime(2024, 12, 31, 17, 4)


def test_a_number_for_a_missing_value_is_found_by_its_value(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n-9999.0,1.000\n-9999,1\n7.5,-9999.0\n8.5,1.0\n")
    table, _ = read(path, Layout(missing=("a=-9999", "b=1")))
    assert table.column("a").to_pylist() == [None, None, 7.5, 8.5]
    assert table.column("b").to_pylist() == [1, None, -9999, None]  # 1.000 may be a thousand
    assert read_like(path, table) == {"a": [None, None, 7.5, 8.5], "b": [1, None, -9999, None]}
