"""Texts and numbers that people and programs send, checked in one place."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from eqsep.errors import UserError

MOST_KIND = MOST_NAME = 100  # characters
MOST_VALUE = 200
MOST_NOTE = 2_000
LARGEST = 2**63 - 1  # of a number in the store
_CHARACTERS_SHOWN = 60  # characters of a text in a message
_IN_NOTES = str.maketrans("", "", "\n\r\t")


class Invalid(UserError):
    """A text or a number that is not accepted."""


def name(text: str, *, what: str = "A name", most: int = MOST_NAME) -> str:
    """A text in one line, 1 to `most` printable characters, as it is stored."""
    # Composed (NFC), so that two that look the same are the same.
    found = unicodedata.normalize("NFC", text).strip()
    if not 0 < len(found) <= most or not found.isprintable():
        raise Invalid(f"{what} must have 1 to {most} printable characters, got {_shown(text)}.")
    return found


def value(text: str) -> str:
    """A value of a row, or the name of a column: it may hold anything but U+0000."""
    if "\0" in text:
        raise Invalid("Text cannot contain the character U+0000.")
    if len(text) > MOST_VALUE:
        raise Invalid(f"Text must have at most {MOST_VALUE} characters here, got {len(text):,}.")
    return text


def note(text: str) -> str:
    """A text of several lines, or none, as it is stored."""
    found = unicodedata.normalize("NFC", text).strip()
    if len(found) > MOST_NOTE:
        raise Invalid(f"A note must have at most {MOST_NOTE:,} characters, got {len(found):,}.")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in found.translate(_IN_NOTES)):
        raise Invalid("A note cannot contain control characters.")
    return found


def number(text: str, *, what: str) -> int:
    """The number of a row, a verdict, a version or a session."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or int(text) > LARGEST:
        raise Invalid(f"Expected the number of {what}, got {_shown(text)}.")
    return int(text)


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _CHARACTERS_SHOWN else f"{text[:_CHARACTERS_SHOWN]!r}…"


class Asked(BaseModel):
    """What somebody asks for; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# Types of fields and parameters.
WholeNumber = Annotated[int, Field(ge=0, le=LARGEST)]
Text = Annotated[str, Field(max_length=MOST_VALUE), AfterValidator(value)]
NoteText = Annotated[str, Field(max_length=MOST_NOTE)]
