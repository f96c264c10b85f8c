"""The project file `eqsep.toml`: options written once, beside the data.

Every command reads it. What is given on the command line wins.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from eqsep.errors import UserError, did_you_mean

NAME = "eqsep.toml"
ENDING = ".eqsep"  # of model files
_COLUMN_LISTS = {"drop", "categorical", "keep"}
_COLUMN_OPTIONS = {"--label", "--time", "--group", "--entity"}  # a column that is used
_MODEL_IS_OUT = ("fit", "learn", "forget")  # the model is what these write
_TAKE_BOTH = ("score", "explain", "learn", "forget", "suspects", "test", "watch")
_MODEL_IS_FIRST = (*_TAKE_BOTH, "info", "export", "serve")


@dataclass(frozen=True)
class _Value:
    """What a key may hold, in words, and how it is read; ValueError where it cannot be."""

    expected: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    return str(value)


def _texts(value: Any) -> list[str]:
    return [_text(one) for one in value] if isinstance(value, list) else [_text(value)]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


_TEXT, _TEXTS = _Value("a text", _text), _Value("a text or a list of texts", _texts)
_NUMBER, _WHOLE = _Value("a number", _number), _Value("a whole number", _whole)
_TRUTH = _Value("true or false", _truth)
KEYS = {
    "model": _TEXT,
    "label": _TEXT,
    "normal": _TEXTS,
    "seen": _TEXTS,
    "unlabelled": _TEXT,
    "drop": _TEXTS,
    "categorical": _TEXTS,
    "time": _TEXT,
    "group": _TEXT,
    "window": _WHOLE,
    "ordered": _TRUTH,
    "persist": _TEXT,
    "false_alarm_rate": _NUMBER,
    "confidence": _NUMBER,
    "unseen_rate": _NUMBER,
    "landmarks": _WHOLE,
    "bandwidth": _NUMBER,
    "random_state": _WHOLE,
    "missing": _TEXTS,
    "delimiter": _TEXT,
    "header": _TRUTH,
    "decimal": _TEXT,
    "thousands": _TEXT,
    "encoding": _TEXT,
    "skip": _WHOLE,
    "sheet": _TEXT,
    "bad_rows": _TEXT,
    "keep": _TEXTS,
}


@dataclass(frozen=True)
class Project:
    """A project file that was found, and what it holds."""

    path: Path
    values: Mapping[str, Any]

    @classmethod
    def found(cls, words: Sequence[str]) -> "Project | None":
        """The project file beside a file that the command line names, or in this folder."""
        folders = [path if path.is_dir() else path.parent for path in _paths(words)]
        for folder in dict.fromkeys([*folders, Path()]):
            if (folder / NAME).is_file():
                return cls.read(folder / NAME)
        return None

    @classmethod
    def read(cls, path: Path) -> "Project":
        """The project file at a path; refuses keys and values that no command knows."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path} is not valid TOML: {error}.") from error
        unknown = [key for key in content if key not in KEYS]
        if unknown:
            raise UserError(
                f"{path} has the unknown key {unknown[0]!r}: expected some of {', '.join(KEYS)}."
                f"{did_you_mean(unknown[:1], list(KEYS))}"
            )
        values = {}
        for key, value in content.items():
            try:
                values[key] = KEYS[key].read(value)
            except ValueError:
                expected = KEYS[key].expected
                raise UserError(f"{path}: {key} must be {expected}, got {value!r}.") from None
        return cls(path, values)

    @property
    def model(self) -> str | None:
        """The path of the model, which the file names from its own folder."""
        named = self.values.get("model")
        return None if named is None else os.path.normpath(self.path.parent / named)

    def arguments(self, command: str, words: list[str]) -> list[str]:
        """The words of a command line, with the model first where it is not named."""
        model = self.model
        if model is None or command not in _MODEL_IS_FIRST or "--help" in words:
            return words
        if command == "serve" and words[:1] in (["replay"], ["token"]):
            return words
        names_one = any(map(_names_model, _positional(words)))
        return words if names_one else [model, *words]

    def defaults(self, command: str, words: Sequence[str]) -> dict[str, Any]:
        """The options of a command that the file gives."""
        given = {key: value for key, value in self.values.items() if key != "model"}
        used = {value for option, value in pairwise(words) if option in _COLUMN_OPTIONS}
        if "drop" in given:  # the command line wins
            given["drop"] = [name for name in given["drop"] if name not in used]
        if "bad_rows" in given:
            given["bad_rows"] = os.path.normpath(self.path.parent / given["bad_rows"])
        for key in _COLUMN_LISTS & given.keys():  # the option divides names by commas
            given[key] = ['"{}"'.format(name.replace('"', '""')) for name in given[key]]
        if command in _MODEL_IS_OUT and self.model is not None:
            given["out"] = self.model
        if "--fdr" in words:  # another promise
            given.pop("false_alarm_rate", None)
        if "--like" in words:  # that model has settled them
            given = {k: v for k, v in given.items() if k not in ("window", "unlabelled")}
        return given


def check_model_named(command: str, words: Sequence[str]) -> None:
    """Refuse a command line without a model where no project file names one."""
    if "--help" in words:
        return
    if command == "fit" and not any(word.startswith("--out") for word in words):
        raise UserError("Where does the model go? Pass --out MODEL, or run eqsep init first.")
    files = list(_positional(words))
    if command in _TAKE_BOTH and len(files) == 1 and not _names_model(files[0]):
        raise UserError(
            f"Which model? Pass its file before {files[0]}, or name it in {NAME}, as eqsep init "
            f"does."
        )


def _paths(words: Sequence[str]) -> Iterator[Path]:
    for word in words:
        if word and not word.startswith("-") and Path(word).exists():
            yield Path(word)


def _positional(words: Sequence[str]) -> Iterator[str]:
    """The words that are not options or the values of `--out` and the like."""
    before = ""
    for word in words:
        if not word.startswith("-") and before not in ("--out", "--like", "--shadow"):
            yield word
        before = word


def _names_model(word: str) -> bool:
    return word.endswith(ENDING) or _is_model(word)


def _is_model(word: str) -> bool:
    from eqsep.persistence.container import MAGIC

    path = Path(word)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
