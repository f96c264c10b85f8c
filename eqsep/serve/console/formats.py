"""The filters of the templates: values as people read them."""

import hashlib
import math
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from eqsep.labels import NORMAL, OR, UNSEEN
from eqsep.serve.alarms import MISSING, first_name
from eqsep.serve.verdicts import Fit

_HUES = 8
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def hue(kind: str) -> str:
    """The CSS class for the colour of a kind, always the same for the same name."""
    if kind in (UNSEEN, NORMAL):
        return kind
    return f"kind-{hashlib.sha256(kind.encode()).digest()[0] % _HUES}"


def other_names(kind: str) -> str:
    """The other names, as in "or a, b"."""
    others = kind.split(OR)[1:]
    return "or " + ", ".join(others) if others else ""


def fitting(fit: Fit, p_value: float | None) -> str:
    """How well a row fits a kind, in words."""
    if p_value is None:
        return "not known"
    if p_value <= 1 / (min(fit.n_rows, fit.n_needed) + 1) + 1e-9:
        return "unlike its rows"
    return "like most of its rows" if p_value >= 0.5 else "like a few of its rows"


def ago(at: float) -> str:
    """How long ago a time was, in the largest unit that it fills."""
    seconds = time.time() - at
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now"


def lasting(seconds: float) -> str:
    """A length of time, in the largest unit that it fills."""
    size, unit = next((one for one in _UNITS if seconds >= one[0]), _UNITS[-1])
    n = seconds / size
    return f"{f'{n:.0f}' if n >= 10 else f'{n:.1f}'.removesuffix('.0')} {unit}"


def clock(at: float) -> str:
    """A time of day, with the date where it is another day."""
    then, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(time.time(), UTC)
    return f"{then:%H:%M} UTC" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M} UTC"


def moment(at: float) -> str:
    """A time in full."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(at: float) -> str:
    """A time for programs."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def score(value: float) -> str:
    """A score, to three places."""
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"


def signed(value: float) -> str:
    """A number with its sign."""
    return f"{value:+.3f}".replace("-", "−")


def share(value: float) -> str:
    """A share as a percentage."""
    return f"{100 * value:.3g}%"


def shown(value: Any) -> str:
    """A value of a row: numbers without needless digits, and "missing"."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def in_query(value: Any) -> str:
    """A value in an address, with all its digits."""
    is_number = isinstance(value, float) and not math.isnan(value)
    return quote(repr(value) if is_number else shown(value), safe="")


def plural(n: int, word: str) -> str:
    """A count with its noun."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


FILTERS = {
    function.__name__: function
    for function in (
        *(ago, clock, first_name, fitting, hue, in_query, iso, lasting, moment),
        *(other_names, plural, score, share, shown, signed),
    )
}
