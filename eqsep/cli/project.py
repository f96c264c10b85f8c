"""The project file `eqsep.toml`: options written once, next to the data; the command line wins."""

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eqsep.errors import UserError, did_you_mean

NAME = "eqsep.toml"
ENDING = ".eqsep"  # of model files
COLUMN_LISTS = ("drop", "categorical", "keep")  # options that split names at commas
_TEXT, _TEXTS = ("a text", str, int, float), ("a text or a list of texts", list, str, int, float)
_NUMBER, _WHOLE_NUMBER, _TRUTH = (
    ("a number", int, float),
    ("a whole number", int),
    ("true or false", bool),
)
KEYS: dict[str, tuple[Any, ...]] = {  # what is expected, and the types of such a value
    **dict.fromkeys(("model", "label", "unlabelled", "time", "group", "persist"), _TEXT),
    **dict.fromkeys(("normal", "seen", "missing", *COLUMN_LISTS), _TEXTS),
    **dict.fromkeys(("false_alarm_rate", "confidence", "unseen_rate", "bandwidth"), _NUMBER),
    **dict.fromkeys(("window", "landmarks", "random_state", "skip"), _WHOLE_NUMBER),
    **dict.fromkeys(("ordered", "header", "clean"), _TRUTH),
    **dict.fromkeys(("delimiter", "decimal", "thousands", "encoding", "sheet", "bad_rows"), _TEXT),
}


@dataclass(frozen=True)
class Project:
    """A project file that was found, and what it holds."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[str, int] = field(default_factory=dict)  # where each key stands
    overruled: Collection[str] = ()  # keys whose value the command line sets
    drafted: Mapping[str, str] = field(default_factory=dict)  # texts in lines that are comments

    @classmethod
    def read(cls, path: Path) -> "Project":
        """The project file at a path; refuses keys and values that no command knows."""
        lines: dict[str, list[int]] = {}
        try:
            text = path.read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                if found := re.match(r"\s*(\w+)\s*=", line):
                    lines.setdefault(found[1], []).append(number)
            content = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            twice = next((key for key in lines if len(lines[key]) > 1), None)
            if twice is not None and "overwrite" in str(error):
                first, second = lines[twice][:2]
                raise UserError(
                    f"{path} has the key {twice!r} twice, in lines {first} and {second}: keep one "
                    f"of them."
                ) from error
            raise UserError(f"{path} is not valid TOML: {error}.") from error
        unknown = [key for key in content if key not in KEYS]
        if unknown:
            raise UserError(
                f"{path} has the unknown key {unknown[0]!r}: expected some of {', '.join(KEYS)}."
                f"{did_you_mean(unknown[:1], list(KEYS))}"
            )
        for key, value in content.items():
            if not _has_type(value, KEYS[key][1:]):
                raise UserError(f"{path}: {key} must be {KEYS[key][0]}, got {value!r}.")
            if KEYS[key] == _TEXT:
                content[key] = str(value)
            elif KEYS[key] == _TEXTS:
                content[key] = list(map(str, value if isinstance(value, list) else [value]))
        last = {key: places[-1] for key, places in lines.items()}
        drafted = dict(re.findall(r'^# *(\w+) = "([^"]+)"', text, re.MULTILINE))
        return cls(path, content, last, drafted=drafted)

    def gives(self, key: str) -> bool:
        """Whether the value of an option comes from here."""
        return key in self.values and key not in self.overruled

    def named(self, key: str, value: str = "") -> str:
        """A key, with its value if given, and where it stands."""
        line = f" (line {self.lines[key]})" if key in self.lines else ""
        return f"{key}{value and f' = {value}'} in {self.path}{line}"

    @property
    def model(self) -> str | None:
        """The path of the model, which the file names from its own folder."""
        named = self.values.get("model")
        return None if named is None else os.path.normpath(self.path.parent / named)

    @property
    def options(self) -> dict[str, Any]:
        """What it gives for options of commands."""
        given = {key: value for key, value in self.values.items() if key != "model"}
        if "bad_rows" in given:
            given["bad_rows"] = os.path.normpath(self.path.parent / given["bad_rows"])
        return given


def _has_type(value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):  # Python counts it among whole numbers
        return bool in types
    if isinstance(value, list):
        return list in types and all(_has_type(one, _TEXT[1:]) for one in value)
    return isinstance(value, types)


def quoted_column(name: str) -> str:
    """The name of a column for options that split names at commas: in quotes if it needs them."""
    is_plain = name and all(letter.isalnum() or letter in "_-." for letter in name)
    return name if is_plain else '"{}"'.format(name.replace('"', '""'))


current_project: ContextVar[Project | None] = ContextVar("current_project", default=None)
label_column: ContextVar[str | None] = ContextVar("label_column", default=None)


def known_label() -> str | None:
    """The label column of the command, of its model, or of the project."""
    project = current_project.get()
    return label_column.get() or (None if project is None else project.values.get("label"))


def shown_kind(kind: str) -> str:
    """A kind as people read it, with the label column where that helps."""
    from eqsep.detector.namer import kind_text  # slow to import

    return kind_text(kind, known_label())
