"""The dialect of a text file: its delimiter, header and notations, from its first lines."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

from eqsep.errors import ParameterError, UserError, counted, did_you_mean, quoted
from eqsep.io import notation as marks
from eqsep.io.notation import MISSING, THOUSANDS, Notation, is_number

_MARKS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", "~": "tildes"}
_MARKS |= {"^": "carets", "::": "double colons"}  # the likelier first
_DELIMITER = r'::|[^"\r\n\0\x80-\U0010ffff]'
_COMMENT = "#"
_AFTER_SPACE = re.compile(r' +"')  # a quote that Arrow would take for a part of the value
_NOWHERE = "\x1f"  # the delimiter of files with one column
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SAMPLED = 200  # lines that are divided
_ROWS_LOOKED_AT = 60  # rows whose values are looked at
_MIN_AGREEMENT = 0.8  # the least share of rows with one number of values
_MIN_AGREEMENT_OF_SPACES = 0.95  # the same if only spaces divide values
_MOST_HEADERS = 3
_GAP = re.compile(r"\s{2,}|\t")
_MIN_ALIGNED_LINES = 3  # lines from which blanks below each other may divide columns
_LINES_FOR_ALIGNMENT = 10  # lines from which they count more than two spaces between values
_MOST_TITLES = 100  # lines; below them are at least as many to look at
Row = list[str]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What is known about text files; None is to be inferred."""

    delimiter: str | None = None
    header: bool | None = None  # whether the first line names the columns, else c1, c2, …
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    skip: int | None = None  # lines before the table
    missing: tuple[str, ...] | None = None  # words for a missing value, or COLUMN=WORD
    sheet: str | None = None  # of a spreadsheet; else the first that is not empty

    def __post_init__(self) -> None:
        if self.delimiter is not None and not re.fullmatch(_DELIMITER, self.delimiter):
            self._refuse("delimiter", "one character other than a quote or a line break, like ';'")
        if self.decimal not in (None, ".", ","):
            self._refuse("decimal", "'.' or ','")
        if self.thousands not in (None, *THOUSANDS):
            self._refuse("thousands", f"one of {quoted(THOUSANDS)}")
        if self.thousands and self.thousands == self.decimal:
            self._refuse("thousands", "a mark other than the decimal one")
        if self.skip is not None and self.skip < 0:
            self._refuse("skip", "a number of lines")
        if self.encoding is not None and not _is_encoding(self.encoding):
            self._refuse("encoding", "a known encoding, such as utf-8, latin-1, cp1252 or utf-16")

    def _refuse(self, option: str, expected: str) -> NoReturn:
        raise ParameterError(option, expected=expected, got=getattr(self, option))

    def missing_in(self, column: str) -> tuple[str, ...]:
        """The words for a missing value in a column: the usual ones, if none are given."""
        return (*(() if self.said_missing() else MISSING), *self.said_missing(column))

    def said_missing(self, column: str | None = None) -> tuple[str, ...]:
        """The words for a missing value given for all columns, and for this one."""
        given = self.missing or ()
        own = (w.removeprefix(f"{column}=") for w in given if w.startswith(f"{column}="))
        return (*(word for word in given if "=" not in word), *own)

    def matched(self, column: str, texts: Iterable[str]) -> set[str]:
        """The entries of `missing` that some of these texts of a column stand for."""
        words = {word: word.removeprefix(f"{column}=") for word in self.missing or ()}
        return {
            entry
            for entry, word in words.items()
            if (entry != word or "=" not in word) and any(marks.is_same(word, t) for t in texts)
        }

    def check_missing(self, columns: Sequence[str], *, name: str) -> None:
        """Refuse words for missing values of columns that a table does not have."""
        for word in (word for word in self.missing or () if "=" in word):
            if not any(word.startswith(f"{column}=") for column in columns):
                there = f"with a column of {name} ({quoted(columns)})"
                meant = did_you_mean([word.partition("=")[0]], columns).strip()
                expected = f"a word, or COLUMN=word {there}"
                raise ParameterError("missing", expected=expected, got=word, hint=meant)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    columns: tuple[str, ...]
    before: int = 0  # characters before the first row
    delimiter: str = ","
    split: Callable[[str], Row] | None = None  # a line into its values, if no delimiter can
    decimal: str | None = None  # as some value shows, or as given
    notations: dict[str, Notation | None] = field(default_factory=dict)  # by column, if known
    said: tuple[str, ...] = ()  # what was inferred and is not obvious


def _is_encoding(name: str) -> bool:
    with suppress(LookupError, ValueError):
        return bool("a".encode(name))
    return False


@dataclass(frozen=True)
class _Form:
    """Lines divided into values: each row, and the number of its last line."""

    delimiter: str
    rows: list[tuple[Row, int]]
    split: Callable[[str], Row] | None = None
    titles: int = 0  # rows before the table
    quoting: str = ""  # in words, if `split` is needed for quotes or a long delimiter

    @property
    def table(self) -> list[Row]:
        return [row for row, _ in self.rows[self.titles :]]

    @property
    def agreement(self) -> float:
        """The share of rows with as many values as the first one; 0 if that has only one."""
        width = len(self.table[0])
        return sum(len(row) == width for row in self.table) / len(self.table) if width > 1 else 0.0

    @property
    def numbers(self) -> float:
        return sum(is_number(v) for row in self.table for v in row) / sum(map(len, self.table))


def detect(text: str, layout: Layout, *, name: str, tabs: bool = False) -> Dialect:
    """The dialect of a file that begins with these lines; `tabs` if its ending promises them."""
    lines = _LINE.findall(text)
    start = next((i for i in range(layout.skip or 0, len(lines)) if lines[i].strip()), None)
    if start is None:
        raise UserError(f"{name} is empty: expected a line with the names of the columns.")
    comments = 0 if layout.skip is not None else _comment_lines(lines[start:])
    start += comments
    try:
        form = _form(lines[start : start + _SAMPLED], layout, tabs=tabs)
    except csv.Error as error:
        raise UserError(
            f"The first lines of {name} cannot be read: {error}. Check the quotes in them, or "
            f"name the delimiter."
        ) from error
    table = form.table
    above = _header_in_comment(lines[start - 1], form) if comments else None
    n = 0 if above else _header_rows(table, layout)
    last = form.rows[form.titles + n - 1][1] if form.titles + n else 0
    columns = _names(table[:n]) if n else above or tuple(f"c{i + 1}" for i in range(len(table[0])))
    values = _values(table[n:], len(columns), layout)
    decimal = layout.decimal or ("," if layout.thousands == "." else marks.decimal_mark(values))
    tried = marks.notations(decimal, layout.thousands, delimiter=form.delimiter)
    unseen = Notation(",", ".") if decimal == "," else None
    shown = {c: _notation(v, tried) or unseen for c, v in zip(columns, values, strict=True)}
    said = _said(form, n or bool(above), layout, tabs=tabs, comments=comments - bool(above))
    return Dialect(
        columns=columns,
        before=sum(map(len, lines[: start + last])),
        delimiter=form.delimiter,
        split=form.split,
        decimal=decimal,
        notations=shown,
        said=tuple(said),
    )


def _comment_lines(lines: Sequence[str]) -> int:
    """How many of the first lines are comments after a #; a single one may be a header."""
    n = next((i for i, line in enumerate(lines) if not line.startswith(_COMMENT)), 0)
    alone = n == 1 and any(lines[0].count(m) == lines[1].count(m) > 0 for m in _MARKS)
    return n if n and lines[n].strip() and not alone else 0


def _header_in_comment(line: str, form: _Form) -> tuple[str, ...] | None:
    """The names of columns in the comment before a table that begins with numbers, if any."""
    text = line.lstrip(_COMMENT).strip()
    names = form.split(text) if form.split else next(csv.reader([text], delimiter=form.delimiter))
    named = tuple(name.strip() for name in names)
    first = form.table[0]
    fits = len(named) == len(first) and all(named) and not any(map(is_number, named))
    return named if fits and any(map(is_number, first)) else None


def _form(lines: Sequence[str], layout: Layout, *, tabs: bool) -> _Form:
    if layout.delimiter is not None:
        spaces = layout.delimiter == " "
        form = _split(lines, str.split) if spaces else _divided(lines, layout.delimiter)
        return form if layout.skip is not None else _after_titles(form)
    if tabs and "\t" in lines[0]:
        return _divided(lines, "\t")
    there = [mark for mark in _MARKS if any(mark in line for line in lines)]
    forms = [_divided(lines, mark) for mark in there]
    if layout.skip is None:
        forms = [_after_titles(form) for form in forms]
    likely = [form for form in forms if form.agreement >= _MIN_AGREEMENT]
    ranks = [(form.titles, -round(form.agreement, 1)) for form in likely]
    tied = [form for form, rank in zip(likely, ranks, strict=True) if rank == min(ranks)]
    best = max(tied, key=lambda form: form.numbers) if tied[1:] else next(iter(tied), None)
    if best is None or best.titles:
        split = aligned(lines)
        best = best if split is None else _split(lines, split)
    if best is not None:
        return best
    if layout.skip is None and (below := _aligned_below(lines)):
        return replace(_split(lines, below[1]), titles=below[0])
    first = max(there, key=lines[0].count, default=_NOWHERE)
    return _divided(lines, first if first in lines[0] else _NOWHERE)


def _divided(lines: Sequence[str], delimiter: str) -> _Form:
    if len(delimiter) > 1:
        return _quoted(lines, delimiter, f"{delimiter} between them")
    reader = csv.reader(lines, delimiter=delimiter)
    form = _Form(delimiter, [(row, reader.line_num) for row in reader if row])
    if _has_apostrophes(lines, delimiter):
        other = _quoted(lines, delimiter, "apostrophes for quotes", quotechar="'")
        return max(form, other, key=lambda one: one.agreement)
    mark = re.escape(delimiter)
    escaped = re.compile(rf'(?:^|{mark})"[^"]*[^"\\]\\"(?!{mark}|"|\s*$)')
    if any(map(escaped.search, lines)):
        return _quoted(lines, delimiter, "backslashes before quotes", escapechar="\\")
    if sum(any(map(_AFTER_SPACE.match, row)) for row in form.table) > len(form.table) / 2:
        return _quoted(lines, delimiter, "quotes after a space", skipinitialspace=True)
    return form


def _quoted(lines: Sequence[str], delimiter: str, quoting: str, **options: Any) -> _Form:
    """Lines with quotes or a delimiter that Arrow does not know, divided one by one."""
    mark = delimiter if len(delimiter) == 1 else _NOWHERE

    def split(line: str) -> Row:
        line = line.rstrip("\r\n").replace(delimiter, mark)
        row = next(csv.reader([line], delimiter=mark, **options), [])
        return [value.replace(mark, delimiter) for value in row]

    return replace(_split(lines, split), quoting=quoting)


def _has_apostrophes(lines: Sequence[str], delimiter: str) -> bool:
    """Whether a value between apostrophes contains the delimiter, and no line has quotes."""
    mark = re.escape(delimiter)
    within = re.compile(rf"(?:^|{mark})'[^'{mark}]*{mark}[^']*'(?:{mark}|\s*$)")
    return not any('"' in line for line in lines) and any(map(within.search, lines))


def _split(lines: Sequence[str], split: Callable[[str], Row]) -> _Form:
    rows = [(split(line), i + 1) for i, line in enumerate(lines) if line.strip()]
    return _Form(",", rows, split)


def _after_titles(form: _Form) -> _Form:
    """The same without titles: lines of one value before the table."""
    first = [sum(bool(value.strip()) for value in row) for row, _ in form.rows[:_MOST_TITLES]]
    n = next((i for i, n_values in enumerate(first) if n_values > 1), len(first))
    header, *below = [row for row, _ in form.rows[n:]] if 0 < n < len(form.rows) else [[]]
    width = Counter(map(len, below)).most_common(1)[0][0] if len(below) > 1 else 0
    if not below:  # no rows at all: the last line names the columns
        width = len(header) if len({*map(str.strip, header), ""}) == len(header) + 1 else 0
    has_names = len(header) == width > 1 and not any(map(is_number, header))
    return replace(form, titles=n) if has_names else form


def _header_rows(table: Sequence[Row], layout: Layout) -> int:
    if layout.header is not None:
        return int(layout.header)
    first, *others = table
    if others and marks.is_ruler(others[0]):
        return 2
    rows = [row for row in others if len(row) == len(first)]
    at = [i for i, value in enumerate(first) if is_number(value)]
    if at:
        return int(_are_names(first, at, rows))
    below = rows[len(rows) // 2 :]
    numeric = [i for i in range(len(first)) if below and all(is_number(row[i]) for row in below)]
    n = 1
    if len(numeric) > 1:
        while n < min(_MOST_HEADERS, len(rows)) and _is_header(rows[n - 1], numeric):
            n += 1
    return n


def _are_names(first: Row, at: Sequence[int], rows: Sequence[Row]) -> bool:
    """Whether numbers in the first line are names of columns: years, or 0, 1, 2, …"""
    if len(set(first)) < len(first) or not all(first[i].strip().isdigit() for i in at):
        return False
    numbers = [int(first[i]) for i in at]
    others = [i for i in range(len(first)) if i not in at]
    if any(first[i] == row[i] for row in rows for i in others):
        return False
    in_order = numbers == list(range(numbers[0], numbers[0] + len(at))) and numbers[0] < 2
    return in_order or all(1900 <= year <= 2100 for year in numbers)


def _is_header(row: Row, numeric: Sequence[int]) -> bool:
    """Whether a row has words, and no number, in columns of numbers."""
    words = [word for i in numeric if (word := row[i].strip())]
    return bool(words) and not any(is_number(w) or w.casefold() in MISSING for w in words)


def _names(rows: Sequence[Row]) -> tuple[str, ...]:
    """The names of columns, joined from several rows; above an empty cell, the last name counts."""
    rows = [row for row in rows if not marks.is_ruler(row)] or rows
    last = rows[-1]
    if len(rows) == 1:
        return tuple(last if last.count("") < 2 else _numbered(last))
    above = []
    for row in rows[:-1]:
        filled: Row = []
        for value in row:
            filled.append(value.strip() or (filled[-1] if filled and "" in row else ""))
        above.append(filled)
    parts = zip(*above, (value.strip() for value in last), strict=False)
    return tuple(_numbered([" ".join(p for p in part if p) for part in parts]))


def _numbered(names: Iterable[str]) -> list[str]:
    return [name or f"c{i + 1}" for i, name in enumerate(names)]


def _values(rows: Sequence[Row], width: int, layout: Layout) -> list[list[str]]:
    """The values of each column in the first rows, without missing ones."""
    gone = {m.casefold() for m in layout.said_missing() or MISSING} | {""}
    whole = [row for row in rows[:_ROWS_LOOKED_AT] if len(row) == width]
    columns = zip(*whole, strict=True) if whole else [()] * width
    return [[v for v in map(str.strip, column) if v.casefold() not in gone] for column in columns]


def _notation(values: Sequence[str], tried: Iterable[Notation]) -> Notation | None:
    """How a column of numbers or dates is written, as its first values show; else None."""
    if not values:
        return None
    for notation in marks.in_signs_of(values, tried):
        if all(map(notation.reads, values)):
            return notation
    if all(map(_ISO_DATE.match, values)):
        return None
    order = marks.date_order(values)
    if not marks.shows_order(values) or not all(marks.is_date(value, order) for value in values):
        return None
    return Notation(dates=order)


def _said(form: _Form, n: int, layout: Layout, *, tabs: bool, comments: int) -> Iterable[str]:
    if left_out := form.titles + comments:
        yield f"skipped {counted(left_out, 'line')} before the table"
    if form.quoting:
        yield f"values are written with {form.quoting}"
    elif layout.delimiter is None and form.split is not None:
        yield f"{len(form.table[0])} columns of values are separated by spaces"
    elif layout.delimiter is None and form.delimiter not in (",", "\t" if tabs else ",", _NOWHERE):
        yield f"values are separated by {_MARKS[form.delimiter]}"
    if n == 0 and layout.header is None:
        yield "the first line holds values, so columns are called c1, c2, …"
    if n > 1 and not marks.is_ruler(form.table[1]):
        yield f"the first {n} lines name the columns: {quoted(_names(form.table[:n]), most=3)}"


def aligned(lines: Sequence[str]) -> Callable[[str], Row] | None:
    """A function that divides aligned lines into values, some of them numbers, if any does."""
    lines = [line.expandtabs().rstrip() for line in lines if line.strip()]
    if not lines:
        return None
    by_gaps, by_spaces = list(map(_split_at_gaps, lines)), list(map(str.split, lines))
    starts = _starts(lines)
    fixed = partial(_split_at, starts)
    by_place = list(map(fixed, lines))
    below = len(lines) >= _MIN_ALIGNED_LINES and len(starts) > 1 and _numeric(by_place) > 0
    if (
        len(lines) >= _LINES_FOR_ALIGNMENT
        and len(starts) > 1
        and _numeric(by_place) > _numeric(by_gaps) > 0
    ):
        return str.split if _agree(by_spaces, 1.0) else fixed  # one space between two values
    for least in (1.0, _MIN_AGREEMENT_OF_SPACES):
        if _agree(by_gaps, least):
            joined = (value.split() for row in by_gaps[1:] for value in row)
            by_chance = any(len(v) > 1 and all(map(is_number, v)) for v in joined)
            return str.split if by_chance and _agree(by_spaces, least) else _split_at_gaps
        if _agree(by_spaces, least):
            return str.split
        if below:
            return fixed
    return None


def _aligned_below(lines: Sequence[str]) -> tuple[int, Callable[[str], Row]] | None:
    """The same for lines below titles and a blank line, and how many lines the titles have."""
    for n, line in enumerate(lines[:_MOST_TITLES]):
        if not line.strip() and len(lines) > n + _MIN_ALIGNED_LINES:
            split = aligned(lines[n + 1 :])
            if split is not None:
                return sum(bool(title.strip()) for title in lines[:n]), split
    return None


def _split_at_gaps(line: str) -> Row:
    return _GAP.split(line.strip())


def _split_at(starts: tuple[int, ...], line: str) -> Row:
    """The values of a line that begin at these places."""
    line = line.expandtabs().rstrip("\r\n")
    ends = (*starts[1:], max(len(line), starts[-1]))
    return [line[i:j].strip() for i, j in zip((0, *starts[1:]), ends, strict=True)]


def _agree(rows: Sequence[Row], least: float) -> bool:
    """Whether this share of the rows has as many values as the first, and a column has numbers."""
    width = len(rows[0])
    same = sum(len(row) == width for row in rows)
    return width > 1 and same >= least * len(rows) and _numeric(rows) > 0


def _starts(lines: Sequence[str]) -> tuple[int, ...]:
    """Where columns begin: under a name, after a place that is blank in all lines."""
    width = max(map(len, lines))
    blank = [all(line[i : i + 1] in ("", " ") for line in lines) for i in range(width)]
    starts = [i for i in range(width) if not blank[i] and (i == 0 or blank[i - 1])]
    ends = [*starts[1:], width]
    return tuple(i for i, j in zip(starts, ends, strict=True) if lines[0][i:j].strip())


def _numeric(rows: Sequence[Row]) -> int:
    """How many columns hold only numbers below their first value."""
    width = len(rows[0])
    below = [row for row in rows[1:] if len(row) == width and not marks.is_ruler(row)]
    columns = zip(*below, strict=True)
    return sum(any(column) and all(is_number(v) for v in column if v) for column in columns)
