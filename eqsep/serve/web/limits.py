"""What one caller may ask of the service, and how often."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_MOST_KEYS = 10_000  # callers that are remembered: the longest unseen are forgotten first


@dataclass(frozen=True)
class Limits:
    """Bounds on requests.

    Attributes
    ----------
    body : int
        Bytes of a request.
    model : int
        Bytes of a model file that an administrator sends.
    rows : int
        Rows of a request.
    columns : int
        Values of a row, those that the model does not know too.
    text : int
        Characters of a value.
    waiting : int
        Rows that wait to be scored: beyond it, callers are told to come again.
    seconds : float
        That a request may take to be sent, and to be scored.
    requests : float
        Requests in a second with one token; twice that at once.
    strangers : float
        The same without a token, by address.
    attempts : float
        Wrong tokens in a minute from one address.
    """

    body: int = 16 * 2**20
    model: int = 512 * 2**20
    rows: int = 10_000
    columns: int = 2_000
    text: int = 10_000
    waiting: int = 20_000
    seconds: float = 30.0
    requests: float = 5_000.0
    strangers: float = 50.0
    attempts: float = 10.0


class TokenBuckets:
    """A bucket for each caller: it holds so many tokens, fills at a rate, and a request takes one.

    Parameters
    ----------
    rate : float
        Tokens in a second.
    size : float
        Tokens that a full bucket holds.
    clock : callable
        Seconds, from anywhere.

    Examples
    --------
    >>> buckets = TokenBuckets(rate=1.0, size=2.0, clock=lambda: 0.0)
    >>> [buckets.take("10.0.0.1") for _ in range(3)]
    [0.0, 0.0, 1.0]
    """

    def __init__(
        self, *, rate: float, size: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._size, self._clock = rate, size, clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str) -> float:
        """The seconds until this caller may come again; 0 where it may now."""
        return max(1 - self._now(key)[0], 0.0) / self._rate

    def take(self, key: str) -> float:
        """Take a token if there is one, and return 0; else the seconds until there is."""
        tokens, now = self._now(key)
        if tokens < 1:
            return (1 - tokens) / self._rate
        self._held[key] = (tokens - 1, now)
        self._held.move_to_end(key)
        if len(self._held) > _MOST_KEYS:
            self._held.popitem(last=False)
        return 0.0

    def _now(self, key: str) -> tuple[float, float]:
        now = self._clock()
        tokens, since = self._held.get(key, (self._size, now))
        return min(tokens + (now - since) * self._rate, self._size), now
