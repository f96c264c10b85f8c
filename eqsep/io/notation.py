"""How text writes numbers, dates, units and missing values: patterns and words."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

MISSING = (
    *("", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "nat", "null", "(null)", "nil", "none"),
    *("?", "-", "--", "—", "k.a.", "k. a.", "n.v.", "#nv", "#value!", "#div/0!", "#num!", "#ref!"),
)  # in any case; also of German tables and of spreadsheets
THOUSANDS = {"": "", ".": r"\.", ",": ",", " ": "[ \u00a0\u202f\u2009]", "'": "['’]"}
_ANY_THOUSANDS = {
    ",": "[. '’\u00a0\u202f]",
    ".": "[, '’\u00a0\u202f]",
}  # thousands, by decimal mark
_DECIMALS = {",": ",", ".": r"\."}
_CURRENCIES = (
    "€ EUR Euro $ US$ USD £ GBP CHF Fr. ¥ JPY CNY ₹ INR SEK NOK DKK kr PLN zł CZK Kč HUF CAD AUD"
)
_PHYSICAL = "% ‰ °C °F bar mbar Pa hPa kPa MPa mg g kg t µm mm cm m km l ml l/min m³ m/s km/h"
_ELECTRIC = "V mV kV A mA W kW MW kWh Hz kHz MHz rpm ms s min h"
_SAME_UNIT = {"EUR": "€", "Euro": "€"}
_SHARES = {"%": -2, "‰": -3}  # powers of ten
_WORDS = {".": "points", ",": "commas", " ": "spaces", "'": "apostrophes"}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_OTHER_MONTHS = {"mär": 3, "mrz": 3, "mai": 5, "okt": 10, "dez": 12}  # German ones
_CLOCK = r"(?:[T ,]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*([AaPp]\.?[Mm]\.?)?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
_DATES = tuple(  # compiled on first use: that takes as long as scoring a row
    rf"\s*{day}{_CLOCK}{_ZONE}\s*"
    for day in (
        r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
        r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<y>\d{4})",
        r"(?P<a>\d{1,2})(?P<mark>[/.])(?P<b>\d{1,2})(?P=mark)(?P<y>\d{2})",
        r"(?P<d>\d{1,2})\.?[- ]?(?P<name>[A-Za-zä]{3,9})\.?[- ,]*(?P<y>\d{4}|\d{2})",
        r"(?P<name>[A-Za-zä]{3,9})\.? +(?P<d>\d{1,2}),? +(?P<y>\d{4})",
        r"(?P<name>[A-Za-zä]{3,9})\.?[- ]+(?P<y>\d{4})",  # a month is its first day
        r"(?P<y>(?:19|20)\d{2})[-/](?P<m>\d{1,2})",
    )
)
DAY_FIRST, MONTH_FIRST = "day first", "month first"
_MAX_DISTINCT_NAMES = 20  # distinct values: so few are names, even if most of them are numbers
_MOSTLY = 0.9  # the share of numbers from which the others are taken for mistakes
_CENTURY = 69  # years of two digits from here are in the 1900s


@dataclass(frozen=True)
class Notation:
    """How a column is written."""

    decimal: str = "."
    thousands: str = ""
    dates: str = ""  # "day first" or "month first", if not as in 2024-12-31
    missing: tuple[str, ...] = ()  # words for a missing value in lower case, if not the usual ones
    unit: str = ""  # before or after each number, such as "€" or "%"
    minus: str = ""  # "behind" in 5-, "brackets" in (5), "long" in −5

    @property
    def pattern(self) -> str:
        number = _pattern(_DECIMALS[self.decimal], THOUSANDS[self.thousands])
        if self.unit:
            number = rf"(?:\s*[+-]?{self.unit_pattern}{number}|{number}{self.unit_pattern}\s*)"
        return f"(?:{number}|{_MINUS[self.minus].format(number)})" if self.minus else number

    @property
    def unit_pattern(self) -> str:
        """The regular expression of its unit, in all spellings."""
        spelt = [self.unit, *(other for other, one in _SAME_UNIT.items() if one == self.unit)]
        return f"(?:{'|'.join(map(re.escape, spelt))})"

    @property
    def exponent(self) -> int:
        """The power of ten that its numbers are multiplied by: -2 if they are per cent."""
        return _SHARES.get(self.unit, 0)

    def reads(self, text: str) -> bool:
        return re.fullmatch(self.pattern, text) is not None

    def state(self) -> dict[str, Any]:
        """The fields that are not the default, as JSON has them."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["missing"] = list(self.missing)
        return {k: v for k, v in values.items() if v != getattr(PLAIN, k) and v != []}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Notation":
        return cls(**state | {"missing": tuple(state.get("missing", ()))})

    def said(self, *, comma: bool = False, thousands: bool = False) -> str:
        """What was inferred, in words: dates, or numbers, some of them with these marks."""
        if self.dates:
            return f"dates, {self.dates}"
        marks = ["decimal comma"] * comma
        marks += [f"thousands {_WORDS[self.thousands]}"] if thousands else []
        marks += [_MINUS_SAID[self.minus]] if self.minus else []
        unit = f" in {self.unit}" if self.unit else ""
        share = f", read as fractions: 1{self.unit} is {10**self.exponent:g}" * bool(self.exponent)
        return f"numbers{unit}{' with ' * bool(marks)}{' and '.join(marks)}{share}"


PLAIN = Notation()
_MINUS = {"behind": r"{}[-−]\s*", "brackets": r"\s*\({}\)\s*", "long": r"\s*−{}"}
_MINUS_SAID = {
    "behind": "a trailing minus",
    "brackets": "negative numbers in brackets",
    "long": "long minus signs",
}
_MINUS_IN = {style: pattern.format(r"([^-−()]*\d[^-−()]*)") for style, pattern in _MINUS.items()}


def without_minus(text: str) -> tuple[str, str]:
    """A text without a minus in an unusual place, and the style of that."""
    if not any(mark in text for mark in "-−("):
        return text, ""
    for style, pattern in _MINUS_IN.items():
        if found := re.fullmatch(pattern, text):
            return found[1], style
    return text, ""


def shared_minus(texts: Iterable[str]) -> str:
    """The style of minus that all negative numbers share; "" if usual, or if all values have it."""
    styles = {without_minus(text)[1] for text in texts}
    one = styles - {""}
    return one.pop() if len(one) == 1 and styles != {"behind"} and styles != {"brackets"} else ""


def _pattern(decimal: str, thousands: str) -> str:
    grouped = rf"|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+" if thousands else ""
    whole = rf"(?:\d+{grouped})"
    return rf"\s*[+-]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?\s*"


_ONE_OF = {mark: _pattern(_DECIMALS[mark], _ANY_THOUSANDS[mark]) for mark in _DECIMALS}
_BEFORE = "|".join(map(re.escape, _CURRENCIES.split()))
_AFTER = "|".join([_BEFORE, *map(re.escape, f"{_PHYSICAL} {_ELECTRIC}".split())])
_DIGITS = r"[+-]?[\d.,'’ \u00a0\u202f\u2009]*\d[.,]?"
_BESIDE = (
    rf"\s*(?P<sign>[+-]?)(?:(?P<before>{_BEFORE})\s*)?(?P<number>{_DIGITS})"
    rf"(?:\s*(?P<after>{_AFTER}))?\s*"
)


def bare(text: str) -> tuple[str, str]:
    """A number in some notation without its unit, and the unit; a text as it is."""
    positive, minus = without_minus(text)
    found = re.fullmatch(_BESIDE, positive)
    if not found or (found["before"] and found["after"]):
        return text, ""
    unit = found["before"] or found["after"] or ""
    if not unit and not minus:
        return text, ""
    return "-" * bool(minus) + found["sign"] + found["number"], _SAME_UNIT.get(unit, unit)


def shared_unit(texts: Iterable[str]) -> str:
    """The unit that all of these numbers have; "" if there is none."""
    first = ""
    for text in texts:
        unit = bare(text)[1]
        if not unit or unit != (first := first or unit):
            return ""
    return first


def in_signs_of(texts: Sequence[str], tried: Iterable[Notation]) -> list[Notation]:
    """The notations with the unit and the minus that these texts show."""
    unit, minus = shared_unit(texts), shared_minus(texts)
    return [replace(notation, unit=unit, minus=minus) for notation in tried]


def is_number(text: str) -> bool:
    """Whether a text is a number in some notation, with a unit or without."""
    if text.isascii() and text.isdigit():
        return True
    number = bare(text)[0]
    return any(re.fullmatch(pattern, number) for pattern in _ONE_OF.values())


def strange_numbers(values: Sequence[str]) -> list[str]:
    """The distinct values that are not numbers like the others, if these are many and most."""
    numbers = [value for value in values if is_number(value)]
    if len(values) <= _MAX_DISTINCT_NAMES or len(numbers) < _MOSTLY * len(values):
        return []
    unit = Counter(bare(value)[1] for value in numbers).most_common(1)[0][0]
    same = {value for value in numbers if bare(value)[1] == unit}
    comma, point = ({v for v in same if re.fullmatch(_ONE_OF[m], bare(v)[0])} for m in ",.")
    usual = same - min(comma - point, point - comma, key=len)
    return [value for value in values if value not in usual]


def strange_dates(values: Sequence[str]) -> list[str]:
    """The distinct values that are not dates, if nearly all of many are."""
    order = date_order(values)
    others = [value for value in values if not is_date(value, order)]
    return (
        others
        if len(values) > _MAX_DISTINCT_NAMES and len(others) <= (1 - _MOSTLY) * len(values)
        else []
    )


def is_date(text: str, order: str) -> bool:
    with suppress(ValueError):
        return bool(read_date(text, order))
    return False


def value_of(text: str) -> float | None:
    """The value of a number without thousands or unit; None if three digits may be thousands."""
    found = re.fullmatch(r"[+-]?(\d+)(?:[.,](\d*))?", text)
    if found is None or (len(found[2] or "") == 3 and len(found[1]) <= 3):
        return None
    return float(text.replace(",", "."))


def is_same(word: str, text: str) -> bool:
    """Whether a text is this word, in any case, or a number of the same value."""
    value = value_of(word)
    return word.casefold() == text.casefold() or (value is not None and value == value_of(text))


def is_ruler(row: Sequence[str]) -> bool:
    drawn = "".join(row).replace(" ", "")
    return len(drawn) > len(row) and set(drawn) <= set("-=+:|_")


def decimal_mark(columns: Iterable[Sequence[str]]) -> str | None:
    """The decimal mark that values of a file show, if it is only one."""
    shown = set()
    for column in columns:
        values = [bare(value)[0] for value in column]
        comma, point = ({v for v in values if re.fullmatch(_ONE_OF[m], v)} for m in ",.")
        if len(comma | point) < len(set(values)) / 2:
            continue  # not a column of numbers
        shown |= {mark for mark, only in ((",", comma - point), (".", point - comma)) if only}
    return shown.pop() if len(shown) == 1 else None


def notations(decimal: str | None, thousands: str | None, *, delimiter: str) -> list[Notation]:
    """The notations of numbers to try, the likely ones first, given the marks that are known."""
    comma = [Notation(",", mark) for mark in (".", " ", "'")]
    point = [Notation(".", mark) for mark in ("", ",", " ", "'")]
    if thousands is not None:
        decimal = decimal or ("," if thousands == "." else ".")
        return [Notation(decimal, thousands), PLAIN]
    if decimal == ",":
        return [*comma, PLAIN]
    if decimal is None and delimiter == ";":
        return [PLAIN, *comma, *point[1:]]
    return point + comma


def date_order(texts: Iterable[str]) -> str:
    """Whether the day or the month comes first in dates with slashes; the day if unclear."""
    return MONTH_FIRST if any(second > 12 for _, second in _slashed(texts)) else DAY_FIRST


def shows_order(texts: Iterable[str]) -> bool:
    """Whether these dates have one order: none with slashes, or one with a day above 12."""
    found = _slashed(texts)
    return not found or any(max(pair) > 12 for pair in found)


def _slashed(texts: Iterable[str]) -> list[tuple[int, int]]:
    """The first two numbers of the dates with slashes and the year at the end."""
    found = (re.fullmatch(_DATES[1], text) or re.fullmatch(_DATES[2], text) for text in texts)
    return [(int(one["a"]), int(one["b"])) for one in found if one and one["mark"] == "/"]


def read_date(text: str, order: str) -> dt.datetime:
    match = next((m for pattern in _DATES if (m := re.fullmatch(pattern, text))), None)
    if match is None:
        raise ValueError(f"{text!r} is not a date")
    year, month, day = _day(match.groupdict(), order)
    hour, minute, second, fraction, half, zone = match.groups()[-6:]
    hours = int(hour or 0)
    if half:
        hours = hours % 12 + 12 * (half[0] in "Pp")
    micro = int((fraction or "0").ljust(6, "0")[:6])
    made = dt.datetime(year, month, day, hours, int(minute or 0), int(second or 0), micro)
    if zone is None or zone[0] not in "+-":
        return made
    away = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return made - away if zone[0] == "+" else made + away


def _day(parts: dict[str, str], order: str) -> tuple[int, int, int]:
    year = int(parts["y"])
    if len(parts["y"]) == 2:
        year += 1900 if year >= _CENTURY else 2000
    if "a" in parts:
        first, second = int(parts["a"]), int(parts["b"])
        turned = parts["mark"] == "/" and order == MONTH_FIRST
        return (year, first, second) if turned else (year, second, first)
    if "name" in parts:
        name = parts["name"][:3].lower()
        month = _MONTHS.index(name) + 1 if name in _MONTHS else _OTHER_MONTHS.get(name, 0)
        return year, month, int(parts.get("d", 1))
    return year, int(parts["m"]), int(parts.get("d", 1))
