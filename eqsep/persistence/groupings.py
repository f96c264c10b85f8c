"""How a detector takes rows that belong together, and what was found to break its promise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eqsep.checks import CAUTIONS
from eqsep.detector.windows import SHORTEST
from eqsep.persistence.codecs import (
    BOUND,
    RATE,
    TEXTS,
    Codec,
    RecordCodec,
    Schema,
    bounded,
    items,
    word,
)
from eqsep.persistence.container import damaged

_TEXT = Schema("a text", lambda value, sizes: type(value) is str)  # noqa: ARG005
_FIELDS = Schema(
    "texts and numbers by name",
    lambda value, sizes: (  # noqa: ARG005
        type(value) is dict and all(type(v) in (str, int, float) for v in value.values())
    ),
)
_RENAMED = {"advice": "hint"}
_TWO_NAMES = Schema(
    "the names of two columns, or None",
    lambda value, sizes: (  # noqa: ARG005
        type(value) is list and len(value) == 2 and all(type(v) in (str, type(None)) for v in value)
    ),
)
_LENGTH = Schema(
    "a whole number of rows",
    lambda value, sizes: type(value) is int and SHORTEST <= value < 2**31,  # noqa: ARG005
)
_LISTS = ("columns", "kinds")


@dataclass(frozen=True)
class GroupingCodec(RecordCodec):
    """A grouping: the columns as a list, the edges as an array, the bound as NumPy's number."""

    def encode(self, value: Any) -> dict[str, Any]:
        columns, edges = list(value.columns), np.array(value.edges, dtype=float)
        bound, gap = np.uint64(value.row_bound), float(value.gap)
        return {"columns": columns, "edges": edges, "row_bound": bound, "gap": gap}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        made = super().decode(parts, name)
        if len(made.edges) in (1, 2) or (np.diff(made.edges) <= 0).any():
            damaged("the times between which its blocks lie do not rise")
        group, time = made.columns
        if (time is None and len(made.edges)) or (group is None and not len(made.edges)):
            damaged("it has blocks of time without times, or neither groups nor blocks")
        edges, bound = tuple(made.edges.tolist()), int(made.row_bound)
        return replace(made, columns=tuple(made.columns), edges=edges, row_bound=bound)


@dataclass(frozen=True)
class FindingCodec(RecordCodec):
    """What a check has found, its category by name; older files call the hint advice."""

    def encode(self, value: Any) -> dict[str, Any]:
        parts = super().encode(value)
        return parts | {"category": value.category.__name__, "fields": dict(value.fields)}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        if "advice" in parts:  # in files of eqsep 0.2.0, with an option, which nobody asks for now
            parts = {_RENAMED.get(k, k): v for k, v in parts.items() if k != "option"}
        made = super().decode(parts, name)
        return replace(made, category=next(c for c in CAUTIONS if c.__name__ == made.category))


@dataclass(frozen=True)
class WindowsCodec(RecordCodec):
    """Windows: the columns, and what each is read as, as lists."""

    def encode(self, value: Any) -> dict[str, Any]:
        return super().encode(value) | {part: list(getattr(value, part)) for part in _LISTS}

    def decode(self, parts: dict[str, Any], name: str) -> Any:
        made = super().decode(parts, name)
        if len(made.columns) != len(made.kinds) or not any(made.kinds):
            damaged("its windows are of no column, or of columns that are not there")
        return replace(made, **{part: tuple(parts[part]) for part in _LISTS})


GROUPINGS: dict[str, Codec] = {
    "detector.Grouping": GroupingCodec(
        "eqsep.detector.grouping",
        {
            "columns": _TWO_NAMES,
            "edges": bounded(None, dtype="float64"),
            "row_bound": BOUND,
            "gap": RATE,
        },
    ),
    "detector.Windows": WindowsCodec(
        "eqsep.detector.windows",
        {
            "length": _LENGTH,
            "columns": TEXTS,
            "kinds": items(word("", "number", "duration")),
        },
    ),
    "checks.Finding": FindingCodec(
        "eqsep.checks",
        {
            "category": word(*(category.__name__ for category in CAUTIONS)),
            **dict.fromkeys(("message", "hint"), _TEXT),
            "fields": _FIELDS,
        },
    ),
}
