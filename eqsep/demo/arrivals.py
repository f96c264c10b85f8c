"""The demonstration of a service: card payments, one by one, with frauds in bursts."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from eqsep.datasets import make_mixed_demo
from eqsep.demo.payments import SEEN
from eqsep.detector import Detector

Payment = dict[str, Any]

FRAUDS = (SEEN, "takeover", "skimming", "money mule", "sleeper")
ENTITY = "card"  # the column by which payments belong together; it is not learnt
_CARDS = 400
_BLOCK = 600  # payments that are made at a time
_BETWEEN, _BURST = 40, (2, 7)  # normal payments between bursts, on average; frauds in one


def fitted_detector(*, n_rows: int = 4_000, n_landmarks: int = 700) -> Detector:
    """A detector of payments that has seen one kind of fraud."""
    rng = check_random_state(0)
    table = make_mixed_demo(n_samples=n_rows, random_state=rng)
    known = np.flatnonzero(np.isin(table.kind, ("normal", SEEN)))
    rows = [_as_sent(table.X[i]) for i in known]
    seed = int(rng.randint(2**31 - 1))
    detector = Detector(n_landmarks=n_landmarks, unseen_rate=0.1, random_state=seed)
    detector.fit_quietly(rows, table.kind[known])  # made-up rows
    return detector


def arriving(random_state: Any = None) -> Iterator[tuple[Payment, str]]:
    """Payments without end, each with its true kind; frauds come in bursts, on one or two cards."""
    rng = check_random_state(random_state)
    waiting: dict[str, list[Payment]] = {name: [] for name in ("normal", *FRAUDS)}
    while True:
        while min(map(len, waiting.values())) < _BURST[1]:
            table = make_mixed_demo(n_samples=_BLOCK, random_state=rng)
            for row, kind in zip(table.X, table.kind.tolist(), strict=True):
                if kind in waiting:
                    waiting[kind].append(_as_sent(row))
        for _ in range(min(1 + rng.poisson(_BETWEEN), len(waiting["normal"]))):
            yield {ENTITY: _card(rng), **waiting["normal"].pop()}, "normal"
        kind = str(rng.choice(FRAUDS))
        cards = [_card(rng) for _ in range(1 + rng.randint(2))]
        for _ in range(rng.randint(*_BURST)):
            yield {ENTITY: cards[rng.randint(len(cards))], **waiting[kind].pop()}, kind


@contextmanager
def arriving_live(take: Callable[[list[Payment]], object], *, speed: float) -> Iterator[None]:
    """Hand payments to `take` in the background while the block runs, `speed` of them a second."""
    ends = threading.Event()
    payments = arriving()

    def run() -> None:
        owed, last = 0.0, time.monotonic()
        while not ends.wait(max(0.05, 1 / speed)):
            now = time.monotonic()
            owed, last = owed + speed * (now - last), now
            rows = [row for row, _ in islice(payments, int(owed))]
            owed -= len(rows)
            if rows:
                take(rows)

    thread = threading.Thread(target=run, name="payments", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def _as_sent(row: Payment) -> Payment:
    """A payment with the hour of the day in place of its date: it arrives now."""
    rest = dict(row)
    at = rest.pop("time")
    return {"hour": round(at.hour + at.minute / 60, 1), **rest}


def _card(rng: Any) -> str:
    return f"C-{1000 + rng.randint(_CARDS)}"
