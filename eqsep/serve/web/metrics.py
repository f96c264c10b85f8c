"""What Prometheus reads of the service, in its text format."""

import os
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from eqsep.serve.workspace import Workspace

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_FRESH = 5.0  # seconds that what the store says is shown again


class Histogram:
    """How many requests took how long.

    Examples
    --------
    >>> histogram = Histogram()
    >>> for seconds in (0.002, 0.004, 9.0):
    ...     histogram.observe(seconds)
    >>> [n for bound, n in histogram.cumulative() if bound in ("0.0025", "0.005", "+Inf")]
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self.total, self.seconds = 0, 0.0
        self._counts = [0] * (len(BOUNDS) + 1)

    def observe(self, seconds: float) -> None:
        """Count one request."""
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += 1
        self.seconds += seconds

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """The requests up to each bound."""
        so_far = 0
        for bound, n in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            so_far += n
            yield bound, so_far


class Metrics:
    """The figures of this process, and those that the store has of all processes."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._latency: dict[str, Histogram] = {}
        self._refused = 0
        self._kept: tuple[float, list[str]] = (-_FRESH, [])
        self._lock = threading.Lock()

    def observe(self, model: str, seconds: float) -> None:
        """A request for scores was answered."""
        histogram = self._latency.get(model)
        if histogram is None:
            histogram = self._latency.setdefault(model, Histogram())
        histogram.observe(seconds)

    def refuse(self) -> None:
        """A request was told to come again, as too many rows wait."""
        self._refused += 1

    def text(self, *, waiting: int) -> str:
        """All of it, as Prometheus reads it."""
        process = {"process": str(os.getpid())}
        lines = [*self._of_store()]
        lines += _family("eqsep_waiting_rows", "gauge", "Rows that wait.", [(process, waiting)])
        refused = [(process, self._refused)]
        lines += _family("eqsep_refused_total", "counter", "Requests while busy.", refused)
        lines += [
            "# HELP eqsep_request_seconds Time to answer.",
            "# TYPE eqsep_request_seconds histogram",
        ]
        for model, histogram in list(self._latency.items()):
            told = {"model": model} | process
            for bound, n in histogram.cumulative():
                lines.append(_sample("eqsep_request_seconds_bucket", told | {"le": bound}, n))
            lines.append(_sample("eqsep_request_seconds_sum", told, histogram.seconds))
            lines.append(_sample("eqsep_request_seconds_count", told, histogram.total))
        return "\n".join(lines) + "\n"

    def _of_store(self) -> list[str]:
        with self._lock:  # one caller asks the store, others see what it was told
            at, lines = self._kept
            if time.monotonic() - at >= _FRESH:
                lines = list(self._asked())
                self._kept = (time.monotonic(), lines)
            return lines

    def _asked(self) -> Iterator[str]:
        watches = {name: self._ws.watching.status(name) for name in self._ws.ledger.names()}
        versions = {name: self._ws.ledger.live(name).id for name in watches}
        for name, kind, told, of in (
            ("eqsep_rows_total", "counter", "Rows taken in.", lambda w: w.rows),
            ("eqsep_alarms_total", "counter", "Rows that raised an alarm.", lambda w: w.alarms),
            ("eqsep_alarm_rate", "gauge", "Share of alarms.", lambda w: w.alarm_rate),
            (
                "eqsep_promised_rate",
                "gauge",
                "Share promised of normal rows.",
                lambda w: w.promised,
            ),
            (
                "eqsep_martingale",
                "gauge",
                "Evidence that rows have changed.",
                lambda w: w.martingale,
            ),
        ):
            samples = [({"model": model}, of(watch)) for model, watch in watches.items()]
            yield from _family(name, kind, told, samples)
        live = [({"model": model}, version) for model, version in versions.items()]
        yield from _family("eqsep_model_version", "gauge", "The live version.", live)


def _family(
    name: str, kind: str, told: str, samples: Iterable[tuple[dict[str, str], float]]
) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield _sample(name, labels, value)


def _sample(name: str, labels: dict[str, Any], value: float | None) -> str:
    inside = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {'NaN' if value is None else value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
