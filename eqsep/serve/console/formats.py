"""Values as people read them: the filters of the templates."""

import hashlib
import math
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from eqsep.labels import NORMAL, OR
from eqsep.serve.alarms import MISSING
from eqsep.serve.verdicts import Fit

HUES = 8
UNSEEN = "unseen"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def hue(kind: str) -> str:
    """The class of a kind's colour: the same for the same name, on every page and day.

    >>> hue("unseen"), hue("normal"), hue("takeover") == hue("takeover")
    ('unseen', 'normal', True)
    """
    if kind in (UNSEEN, NORMAL):
        return kind
    return f"kind-{hashlib.sha256(kind.encode()).digest()[0] % HUES}"


def first_name(kind: str) -> str:
    """The name that most speaks for, of those that a row may have.

    >>> first_name("mule or takeover"), first_name("unseen")
    ('mule', 'unseen')
    """
    return kind.split(OR)[0]


def other_names(kind: str) -> str:
    """The others, in a few words.

    >>> other_names("mule or takeover or skimming"), other_names("mule")
    ('or takeover, skimming', '')
    """
    others = kind.split(OR)[1:]
    return "or " + ", ".join(others) if others else ""


def fitting(fit: Fit, p_value: float | None) -> str:
    """How well a row fits a kind, in words.

    >>> fit = Fit(None, 0.4, n_rows=12, n_needed=9)
    >>> fitting(fit, 0.6), fitting(fit, 0.2), fitting(fit, 0.08)
    ('like most of its rows', 'like a few of its rows', 'unlike its rows')
    >>> fitting(fit, None)
    'not known'
    """
    if p_value is None:
        return "not known"
    if p_value <= 1 / (min(fit.n_rows, fit.n_needed) + 1) + 1e-9:
        return "unlike its rows"
    return "like most of its rows" if p_value >= 0.5 else "like a few of its rows"


def ago(at: float) -> str:
    """How long ago a moment was, in the largest unit that it fills.

    >>> ago(time.time() - 130), ago(time.time() + 5)
    ('2 min ago', 'now')
    """
    seconds = time.time() - at
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now"


def moment(at: float) -> str:
    """A moment in full.

    >>> moment(0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(at: float) -> str:
    """A moment for machines."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def score(value: float) -> str:
    """A score, to three places.

    >>> score(0.12345), score(1234567.0)
    ('0.123', '1.23e+06')
    """
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.3g}"


def signed(value: float) -> str:
    """A number that says whether it adds or takes away.

    >>> signed(0.5), signed(-0.25)
    ('+0.500', '−0.250')
    """
    return f"{value:+.3f}".replace("-", "−")


def share(value: float) -> str:
    """A share as a percentage.

    >>> share(0.0123), share(0.5), share(0.0)
    ('1.23%', '50%', '0%')
    """
    return f"{100 * value:.3g}%"


def shown(value: Any) -> str:
    """A value of a row: numbers without needless digits, and a word for what is missing.

    >>> shown(12.50), shown(1234567.0), shown(None), shown("AT"), shown(True)
    ('12.5', '1234567', 'missing', 'AT', 'True')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def in_query(value: Any) -> str:
    """A value, with all of its digits, in an address.

    >>> in_query("a b&c/d"), in_query(1 / 3), in_query(None)
    ('a%20b%26c%2Fd', '0.3333333333333333', 'missing')
    """
    is_number = isinstance(value, float) and not math.isnan(value)
    return quote(repr(value) if is_number else shown(value), safe="")


def plural(n: int, word: str) -> str:
    """A count with its noun.

    >>> plural(1, "alarm"), plural(1200, "alarm")
    ('1 alarm', '1,200 alarms')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


FILTERS = {
    function.__name__: function
    for function in (
        *(ago, first_name, fitting, hue, in_query, iso, moment),
        *(other_names, plural, score, share, shown, signed),
    )
}
