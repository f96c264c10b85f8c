"""Columns of text in types: inferred at a fit, and read the same way later."""

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eqsep.errors import quoted
from eqsep.io import notation as marks
from eqsep.io.dialect import Layout
from eqsep.io.notation import MISSING, PLAIN, THOUSANDS, Notation
from eqsep.io.notes import note
from eqsep.tables.reading import NOTATION

_ALL_DIGITS, _ZEROS = r"^\s*\d+\s*$", r"^\s*0\d+\s*$"
_TRUTH = r"^(?i:true|false|0|1)$"
_CLOCK_TIME = r"^\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?$"
_SHORT_YEAR = r"^\s*(\d{1,2}[/.]\d{1,2}[/.]|\d{1,2}\.?[- ]?\pL+\.?[- ,]*)\d{2}(\D|$)"
_MONTH = r"^\s*(\pL+\.?[- ]+\d{4}|\d{4}[-/]\d{1,2})\s*$"
_MINUS_MOVED = {
    "behind": (r"^(.*)[-−]\s*$", r"-\1"),
    "brackets": (r"^\s*\((.*)\)\s*$", r"-\1"),
    "long": (r"^\s*−", "-"),
}  # to a minus before the number
_MOMENTS = (pa.timestamp("us"), pa.timestamp("us", "UTC"))
_FIRST_VALUES, _MORE_VALUES = 10, 1000  # values of a column that are tried before all of them
_NONE_WORD = "none"  # missing among numbers; among names often one more name
_GROUPS_SHOWN = 4  # groups of columns in a note
MATCHED = b"eqsep_matched"  # of a table: which words for a missing value its text had


@dataclass(frozen=True)
class Understood:
    """A column in its type, its notation if that is not plain, and a note about it."""

    column: Any
    notation: Notation | None = None
    said: str = ""


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def notation_of(field: pa.Field) -> tuple[Notation | None, bool]:
    """The notation of a column, as its file shows it, and whether that is certain."""
    state = (field.metadata or {}).get(NOTATION)
    if state is None:
        return None, False
    parts = json.loads(state)
    certain = parts.pop("certain", True)
    return Notation.of(parts), certain


def annotated(field: pa.Field, notation: Notation, *, certain: bool = True) -> pa.Field:
    state = notation.state() | ({} if certain else {"certain": False})
    return field.with_metadata({NOTATION: json.dumps(state).encode()})


def written(field: pa.Field, known: dict[str, Any] | None) -> list[Notation]:
    """The notations that a column may have, the likelier first: of its file, and of a model."""
    shown, certain = notation_of(field)
    learnt = None if known is None else Notation.of(known)
    if shown is not None and learnt is not None and learnt.unit not in ("", shown.unit):
        shown = replace(shown, unit="")
    both = (shown, learnt) if certain else (learnt, shown)
    there = [notation for notation in both if notation is not None]
    return there if any(notation != PLAIN for notation in there) else []


def understood(table: pa.Table, layout: Layout, *, as_text: Iterable[str] = ()) -> pa.Table:
    """The table with columns of text, except `as_text`, in types that all their values allow."""
    usual = marks.notations(layout.decimal, layout.thousands, delimiter=",")
    gone, kept, matched = dict[str, list[str]](), list[str](), set[str]()
    fields, columns = list(table.schema), table.columns
    for i, field in enumerate(table.schema):
        is_typed = field.name in as_text or not is_text(field.type)
        said = layout.said_missing(field.name)
        words = list(said if is_typed else layout.missing_in(field.name))
        if not words:
            continue
        column, tokens = without_missing(columns[i], words)
        found = Understood(column)
        if not is_typed:
            shown, certain = notation_of(field)
            tried = usual if shown is None or shown.dates else [shown, *usual]
            found = _inferred(column, tried, comma=certain and tried[0].decimal == ",")
            if _NONE_WORD not in said and _may_be_category(found.column, tokens):
                kept.append(field.name)
                words = [word for word in words if word != _NONE_WORD]
                column, tokens = without_missing(columns[i], words)
                found = Understood(column)
        if unasked := [t for t in tokens if not any(marks.is_same(word, t) for word in said)]:
            gone[field.name] = unasked
        matched |= layout.matched(field.name, tokens)
        if found.said:
            note(f"{field.name or '(no name)'}: {found.said}.")
        new, notation = pa.field(field.name, found.column.type), _with_missing(found, tokens, said)
        fields[i] = new if notation is None else annotated(new, notation)
        columns[i] = found.column
    texts = [f.name for f in fields if f.name in gone and is_text(f.type)]
    _note_words(gone, kept, texts=texts)
    marked = {MATCHED: json.dumps(sorted(matched)).encode()} if matched else None
    return pa.table(columns, schema=pa.schema(fields, metadata=marked))


def _may_be_category(column: Any, tokens: Sequence[str]) -> bool:
    """Whether "none" is one of the names in a column, not a gap among numbers or dates."""
    if _NONE_WORD not in map(str.casefold, tokens) or not is_text(column.type):
        return False
    names = pc.unique(column.drop_null()).to_pylist()
    return not (marks.strange_numbers(names) or marks.strange_dates(names))


def _note_words(
    gone: Mapping[str, list[str]], kept: Sequence[str], *, texts: Sequence[str]
) -> None:
    """Note the usual words taken as missing, by column, and columns in which "none" is `kept`."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, words in gone.items():
        alike.setdefault(tuple(words), []).append(name)
    if alike:
        shown = [f"{quoted(w)} in {quoted(names, most=4)}" for w, names in alike.items()]
        more = ", and so on" * (len(shown) > _GROUPS_SHOWN)
        message = f"Taken as missing: {'; '.join(shown[:_GROUPS_SHOWN])}{more}."
        fields = {"topic": "missing_words", "words": ", ".join(filter(None, MISSING))}
        if texts:
            others = ", and so on" * (len(texts) > 1)
            fields["hint"] = f"To keep a word as a name, pass categorical=[{texts[0]!r}]{others}."
            fields |= {"topic": "missing_names", "column": texts[0], "others": others}
        note(message, **fields)
    if kept:
        word = f"{kept[0]}={_NONE_WORD}"
        note(
            f"{_NONE_WORD!r} is a name in {quoted(kept, most=4)}.",
            hint=f"If it is a missing value, pass missing=[{word!r}].",
            topic="none_is_name",
            word=word,
        )


def note_unmatched(tables: Sequence[pa.Table], layout: Layout) -> None:
    """Note the words for a missing value that nothing in the tables matches."""
    found = ((table.schema.metadata or {}).get(MATCHED, b"[]") for table in tables)
    matched = {word for state in found for word in json.loads(state)}
    begins = [f"{name}=" for name in tables[0].schema.names]  # without columns that are left out
    read = [w for w in layout.missing or () if "=" not in w or any(map(w.startswith, begins))]
    unused = [word for word in read if word not in matched]
    if unused:
        note(f"missing: {quoted(unused)} matched nothing in the table.")


def _with_missing(found: Understood, tokens: Sequence[str], said: Sequence[str]) -> Notation | None:
    """The notation, with the words for a missing value that a model must know."""
    if not said and not (tokens and is_text(found.column.type)):
        return found.notation
    words = {word.casefold() for word in (*tokens, *said)}
    return replace(found.notation or PLAIN, missing=tuple(sorted(words)))


def without_missing(
    column: pa.ChunkedArray, missing: Sequence[str] = MISSING
) -> tuple[pa.ChunkedArray, list[str]]:
    """The column with null for words for a missing value, and which of these it has.

    A number also stands for other spellings of its value: -9999 for -9999.0.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        plain, found = without_missing(column.cast(kind.value_type), missing)
        return (plain.cast(kind) if found else column), found
    words = [m.casefold() for m in missing]
    if not is_text(kind):
        return _without_numbers(column, words)
    trimmed = pc.utf8_trim_whitespace(column)
    there = pc.is_in(pc.utf8_lower(trimmed), value_set=pa.array(["", *words], column.type))
    values = {value for word in words if (value := marks.value_of(word)) is not None}
    if values:
        whole = "|".join(f"{abs(int(value))}" for value in values)
        near = pc.match_substring_regex(trimmed, rf"^[+-]?0*(?:{whole})(?:[.,]\d*)?$")
        texts = pc.unique(trimmed.filter(near)).to_pylist()
        same = [text for text in texts if marks.value_of(text) in values]
        there = pc.or_(there, pc.is_in(trimmed, value_set=pa.array(same, column.type)))
    if not pc.any(there).as_py():
        return column, []
    found = pc.unique(trimmed.filter(there)).to_pylist()
    column = pc.if_else(there, pa.scalar(None, column.type), column)
    return column, sorted((word for word in found if word), key=str.casefold)


def _without_numbers(column: Any, words: Sequence[str]) -> tuple[Any, list[str]]:
    """A typed column with null for numbers among the words, and which of these it has."""
    known = {value: word for word in words if (value := marks.value_of(word)) is not None}
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not known or not is_number:
        return column, []
    numbers = column.cast(pa.float64(), safe=False)
    there = pc.is_in(numbers, value_set=pa.array(known, pa.float64()))
    found = pc.unique(numbers.filter(there)).to_pylist()
    if found:
        column = pc.if_else(there, pa.scalar(None, column.type), column)
    return column, sorted(known[value] for value in found)


def _inferred(column: Any, tried: Sequence[Notation], *, comma: bool) -> Understood:
    """A column in the type that all its values allow."""
    if column.null_count == len(column):
        return Understood(pa.chunked_array([pa.nulls(len(column))]))
    if _all(column, _ALL_DIGITS) and _some(column, _ZEROS):
        return Understood(column, None, "names, as some begin with 0")
    if comma:
        found = _in_notation(column, tried)
        if found is not None:
            return found
    typed = _cast(column, pa.int64(), pa.float64(), *_MOMENTS)
    if typed is not None:
        return Understood(typed)
    if _all(column, _TRUTH):
        return Understood(pc.cast(pc.utf8_lower(column), pa.bool_()))
    if _all(column, _CLOCK_TIME):
        times = clock_times(column)
        return Understood(column if times is None else times)
    first = pc.unique(column.slice(0, _MORE_VALUES).drop_null()).to_pylist()
    return (
        _in_notation(column, marks.in_signs_of(first, tried))
        or _dates(column)
        or Understood(column)
    )


def plain_type(column: Any) -> pa.DataType:
    """The type that all values of a column of text allow without trimming; else a string."""
    found = _inferred(column, [], comma=False).column.type
    if found in (pa.int64(), pa.float64(), pa.timestamp("us")):
        with suppress(pa.ArrowInvalid):
            pc.cast(column, found)
            return found
    return pa.string()


def _cast(column: Any, *kinds: pa.DataType) -> Any:
    """The column in the first of some types that all values allow; None if none does."""
    for kind in kinds:
        with suppress(pa.ArrowInvalid):
            for n in (_FIRST_VALUES, _MORE_VALUES):  # each value that fails takes time
                _trimmed(column.slice(0, n), kind)
            return _trimmed(column, kind)
    return None


def _trimmed(column: Any, kind: pa.DataType) -> Any:
    try:
        return pc.cast(column, kind)
    except pa.ArrowInvalid:
        return pc.cast(pc.utf8_trim_whitespace(column), kind)


def _all(column: Any, pattern: str) -> bool:
    """Whether all values match; the first ones are tried first."""
    parts = (column.slice(0, _MORE_VALUES), column)
    matched = (pc.all(pc.match_substring_regex(part, pattern)) for part in parts)
    return all(found.as_py() is not False for found in matched)


def _in_notation(column: Any, tried: Sequence[Notation]) -> Understood | None:
    """The numbers of a column in the first notation that all of them are written in."""
    for notation in tried:
        if _all(column, f"^{notation.pattern}$"):
            numbers = _cast(plain_numbers(column, notation), pa.float64())
            if numbers is None:
                return None
            mark = THOUSANDS[notation.thousands]
            seen = bool(mark) and _some(column, rf"\d{mark}\d{{3}}")
            comma = notation.decimal == "," and _some(column, ",")
            odd = seen or comma or notation.unit or notation.minus
            whole = numbers if odd else _cast(column, pa.int64())
            said = notation.said(comma=comma, thousands=seen) if odd else ""
            return Understood(numbers if whole is None else whole, notation if odd else None, said)
    return None


def _some(column: Any, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, pattern)).as_py())


def plain_numbers(column: Any, notation: Notation) -> Any:
    """The same texts, with the numbers among them written plainly."""
    if replace(notation, dates="", missing=()) == PLAIN:
        return column
    plain = column
    if notation.minus:
        plain = pc.replace_substring_regex(plain, *_MINUS_MOVED[notation.minus])
    if notation.unit:
        plain = pc.replace_substring_regex(plain, rf"\s*{notation.unit_pattern}\s*", "")
    if notation.thousands:
        plain = pc.replace_substring_regex(plain, THOUSANDS[notation.thousands], "")
    if notation.decimal != ".":
        plain = pc.replace_substring(plain, notation.decimal, ".")
    if notation.exponent:
        trimmed = pc.utf8_trim_whitespace(plain)
        plain = pc.binary_join_element_wise(trimmed, f"e{notation.exponent}", "")
    return pc.if_else(pc.match_substring_regex(column, f"^{notation.pattern}$"), plain, column)


def _dates(column: Any) -> Understood | None:
    """Dates in other forms than 2024-12-31; a column may have several."""
    first = column.slice(0, _MORE_VALUES).drop_null()
    if not _all(first, r"\d") or _some(first, r"^\s*[+-]?\d+\s*$"):
        return None
    order = marks.date_order(pc.unique(column.drop_null()).to_pylist())
    found = dates(column, order)
    if found is None:
        return None
    notation = Notation(dates=order)
    more = ", two-digit years as 1969 to 2068" if _some(column, _SHORT_YEAR) else ""
    more += ", months as their first day" if _some(column, _MONTH) else ""
    ordered = _some(column, r"^\s*\d{1,2}\D")  # not 2024/12/31, nor Dec 31, 2024
    return Understood(found, notation, (notation.said() if ordered else "dates") + more)


def dates(column: Any, order: str) -> Any:
    return _mapped(column, lambda text: marks.read_date(text, order), pa.timestamp("us"))


def clock_times(column: Any) -> Any:
    """The column as times of day, which a fit takes as durations; None if some value is not."""
    return _mapped(column, lambda text: dt.time.fromisoformat(text.zfill(5)), pa.time64("us"))


def _mapped(column: Any, read: Callable[[str], Any], kind: pa.DataType) -> Any:
    """The column with a function of each distinct text, or None if it fails for one."""
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    try:
        values = [read(text) for text in coded.dictionary.to_pylist()]
        found = pa.array(values, kind).take(coded.indices)
    except (ValueError, OverflowError, pa.ArrowException):
        return None
    return pa.chunked_array([found])


def cast_as(column: Any, reads: str, written: Sequence[Notation]) -> Any:
    """The same as `files.cast`, for strings in any notation."""
    missing = next((n.missing for n in written if n.missing), ())
    if reads == "text":
        return without_missing(column, missing)[0] if missing else column
    column, _ = without_missing(column, (*MISSING, *missing))
    if reads in ("number", "duration"):
        for notation in written or [PLAIN]:
            plain = plain_numbers(column, notation)
            found = _cast(plain, pa.float64(), pa.int64())  # the second knows 0x10, as a fit does
            if found is not None:
                return found.cast(pa.float64())
        times = clock_times(column) if reads == "duration" else None
        return plain if times is None else times
    found = _cast(column, *([pa.bool_()] if reads == "boolean" else _MOMENTS))
    if found is None and reads != "boolean":
        shown = next((n.dates for n in written if n.dates), "")
        found = dates(column, shown or marks.date_order(column.drop_null().to_pylist()))
    return column if found is None else found
