"""Rows that come again are told the same, and are not scored again."""

import numpy as np
import pyarrow as pa
import pytest

from eqsep.cli import score as repeating
from eqsep.cli.score import VerdictCache
from eqsep.tables.reading import UnreadableError


class Lengths:
    """Tells of each row how long its texts are, and counts the rows it is asked for."""

    def __init__(self):
        self.asked = 0

    def __call__(self, table):
        self.asked += len(table)
        rows = table.to_pylist()
        if any("bad" in row.values() for row in rows):
            first = next(i for i, row in enumerate(rows) if "bad" in row.values())
            raise UnreadableError("No number.", row=first)
        return {
            "length": np.array([sum(len(str(v)) for v in row.values()) for row in rows]),
            "text": np.array([str(row) for row in rows], dtype=object),
        }


def plainly(table):
    return {name: values.tolist() for name, values in Lengths()(table).items()}


def told(repeats, table, columns=None):
    found = repeats(table, columns or table.column_names)
    return {name: values.tolist() for name, values in found.items()}


def random_rows(rng, n, *, of):
    return pa.table(
        {
            "a": pa.array(rng.choice(["x", "yy", None, "a longer text"], n)),
            "b": pa.array(rng.integers(of, size=n).astype(str)),
            "c": pa.array(rng.integers(3, size=n)),
            "d": pa.array(np.where(rng.uniform(size=n) < 0.2, None, 0.5)),
            "e": pa.array(rng.uniform(size=n) < 0.5),
        }
    )


def test_all_pieces_are_told_as_they_are_alone():
    rng, lengths = np.random.default_rng(0), Lengths()
    repeats = VerdictCache(lengths)
    pieces = [random_rows(rng, 200, of=9) for _ in range(8)]
    for piece in pieces:
        assert told(repeats, piece) == plainly(piece)
    assert lengths.asked == len({str(row) for piece in pieces for row in piece.to_pylist()})


def test_rows_are_counted_by_the_columns_that_are_scored():
    lengths = Lengths()
    repeats = VerdictCache(lambda rows: lengths(rows.select(["b"])))
    table = pa.table({"id": ["1", "2", "3"], "b": ["u", "v", "u"]})
    assert told(repeats, table, ["b"])["length"] == [1, 1, 1]
    assert lengths.asked == 2


def test_nothing_is_not_an_empty_text():
    table = pa.table({"a": pa.array(["", None, ""])})
    assert told(VerdictCache(Lengths()), table) == plainly(table)


def test_the_same_text_of_a_file_that_is_written_otherwise_is_another_value():
    lengths = Lengths()
    repeats = VerdictCache(lengths)
    for written in (None, {"decimal": ","}):
        field = pa.field("a", pa.string(), metadata=written)
        told(repeats, pa.table([pa.array(["1,5"])], schema=pa.schema([field])))
    assert lengths.asked == 2


def test_columns_in_several_chunks_and_parts_of_tables_are_the_same_rows():
    lengths = Lengths()
    repeats, whole = VerdictCache(lengths), pa.table({"a": ["p", "q", "r", "p"]})
    told(repeats, whole)
    chunked = pa.concat_tables([whole.slice(2), whole.slice(1, 2)])
    assert told(repeats, chunked) == plainly(chunked)
    assert lengths.asked == 3


def test_what_has_no_key_is_scored_each_time():
    lengths = Lengths()
    repeats, table = VerdictCache(lengths), pa.table({"a": pa.array([[1], [1]])})
    assert told(repeats, table) == plainly(table)
    assert lengths.asked == 2


def test_without_room_looking_goes_on_where_rows_come_again(monkeypatch):
    monkeypatch.setattr(repeating, "MOST", 4)
    lengths = Lengths()
    repeats, few = VerdictCache(lengths), pa.table({"a": list("abcd")})
    for _ in range(3):
        assert told(repeats, few) == plainly(few)
    assert lengths.asked == 4
    others = pa.table({"a": list("abxyxx")})
    assert told(repeats, others) == plainly(others)
    assert lengths.asked == 6


def test_without_room_and_without_repeats_nothing_is_looked_up(monkeypatch):
    monkeypatch.setattr(repeating, "MOST", 4)
    lengths = Lengths()
    repeats = VerdictCache(lengths)
    for start in (0, 100, 200):
        told(repeats, pa.table({"a": [str(i) for i in range(start, start + 50)]}))
    again = pa.table({"a": ["0", "0"]})
    assert told(repeats, again) == plainly(again)
    assert lengths.asked == 152


def test_an_error_names_the_row_of_the_piece():
    repeats = VerdictCache(Lengths())
    told(repeats, pa.table({"a": ["u", "v"]}))
    with pytest.raises(UnreadableError) as error:
        told(repeats, pa.table({"a": ["u", "u", "v", "bad"]}))
    assert error.value.row == 3
