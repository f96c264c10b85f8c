"""Requests that come together are scored together, and one harms no other."""

import asyncio
import threading

import pytest

from eqsep.errors import UserError
from eqsep.serve.web import service as web_service
from eqsep.serve.web.limits import TokenBuckets
from eqsep.serve.web.service import Batcher, Busy


class Slow:
    """Answers each row with itself, once it is let go; remembers its batches."""

    def __init__(self):
        self.batches, self.goes = [], threading.Event()

    def __call__(self, model, rows, keep):
        assert self.goes.wait(10)
        self.batches.append((model, keep, len(rows)))
        if any(row.get("bad") for row in rows):
            raise UserError("a bad row")
        return [row["x"] for row in rows]


def run(asked, take, **told):
    """The answers, or errors, to requests that come while the first of them is scored."""

    async def ask():
        batcher = Batcher(take, **told)
        batcher.start()
        first = asyncio.create_task(batcher.answers("m", [{"x": -1}], keep=True))
        await asyncio.sleep(0)
        while batcher.waiting:
            await asyncio.sleep(0.001)
        rest = [asyncio.create_task(batcher.answers(*one, keep=keep)) for *one, keep in asked]
        await asyncio.sleep(0)
        take.goes.set()
        out = await asyncio.gather(first, *rest, return_exceptions=True)
        batcher.stop()
        return out[1:]

    return asyncio.run(ask())


def test_what_waits_is_one_batch_of_each_model_and_each_gets_its_own():
    take = Slow()
    asked = [("m", [{"x": i}, {"x": 10 * i}], True) for i in range(5)]
    asked += [("other", [{"x": 7}], True), ("m", [{"x": 8}], False)]
    assert run(asked, take) == [[0, 0], [1, 10], [2, 20], [3, 30], [4, 40], [7], [8]]
    assert take.batches == [("m", True, 1), ("m", True, 10), ("other", True, 1), ("m", False, 1)]


def test_batches_are_bounded_and_a_large_request_is_one_of_its_own():
    take = Slow()
    asked = [("m", [{"x": i}] * n, True) for i, n in enumerate((2, 2, 9, 1))]
    answers = run(asked, take, at_once=4)
    assert [len(answer) for answer in answers] == [2, 2, 9, 1]
    assert [n for *_, n in take.batches] == [1, 4, 9, 1]


def test_one_that_fails_harms_no_other():
    take = Slow()
    asked = [("m", [{"x": 1}], True), ("m", [{"x": 2, "bad": True}], True), ("m", [{"x": 3}], True)]
    first, bad, last = run(asked, take)
    assert (first, last) == ([1], [3])
    assert isinstance(bad, UserError)


def test_more_rows_than_may_wait_are_refused_at_once():
    take = Slow()
    asked = [("m", [{"x": 1}] * 3, True), ("m", [{"x": 2}] * 3, True), ("m", [{"x": 3}], True)]
    first, busy, last = run(asked, take, most=4)
    assert (first, last) == ([1, 1, 1], [3])
    assert isinstance(busy, Busy)


def test_one_that_nobody_waits_for_is_not_scored():
    take = Slow()

    async def ask():
        batcher = Batcher(take)
        batcher.start()
        first = asyncio.create_task(batcher.answers("m", [{"x": 0}], keep=True))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(batcher.answers("m", [{"x": 1}], keep=True))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        take.goes.set()
        await first
        assert await batcher.answers("m", [{"x": 2}], keep=True) == [2]
        batcher.stop()
        with pytest.raises(Busy):
            await batcher.answers("m", [{"x": 3}], keep=True)

    asyncio.run(ask())
    assert sum(n for *_, n in take.batches) == 2


def test_the_requests_of_a_batch_are_woken_together(monkeypatch):
    """To wake the loop for each costs as much as to score its row."""
    woken, take = [], Slow()
    wake = asyncio.BaseEventLoop.call_soon_threadsafe

    def counted(loop, *args, **options):
        woken.append(threading.current_thread().name)
        return wake(loop, *args, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", counted)
    assert run([("m", [{"x": i}], True) for i in range(20)], take) == [[i] for i in range(20)]
    assert [n for *_, n in take.batches] == [1, 20]
    assert woken.count("scoring") == 2


def test_a_batch_waits_for_those_who_were_just_answered(monkeypatch):
    """They ask again: one batch with those who came meanwhile costs less than two."""
    monkeypatch.setattr(web_service, "PATIENCE", 10.0)
    take = Slow()

    async def ask():
        batcher = Batcher(take)
        batcher.start()
        first = asyncio.create_task(batcher.answers("m", [{"x": 0}], keep=True))
        while not batcher.waiting:
            await asyncio.sleep(0)
        while batcher.waiting:
            await asyncio.sleep(0.001)
        rest = [asyncio.create_task(batcher.answers("m", [{"x": 1}], keep=True)) for _ in range(9)]
        await asyncio.sleep(0)
        take.goes.set()
        await first
        await asyncio.gather(batcher.answers("m", [{"x": 0}], keep=True), *rest)
        batcher.stop()

    asyncio.run(ask())
    assert [n for *_, n in take.batches] == [1, 10]


def test_one_that_waits_too_long_is_told_to_retry():
    take = Slow()

    async def ask():
        batcher = Batcher(take, seconds=0.05)
        batcher.start()
        with pytest.raises(Busy):
            await batcher.answers("m", [{"x": 0}], keep=True)
        take.goes.set()
        batcher.stop()

    asyncio.run(ask())


def test_a_bucket_fills_again_with_time():
    now = [0.0]
    buckets = TokenBuckets(rate=2.0, size=4.0, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(6)] == [0, 0, 0, 0, 0.5, 0.5]
    assert buckets.take("b") == 0
    now[0] = 1.0
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0.5]
    now[0] = 1000.0
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]


def test_callers_that_are_remembered_are_bounded():
    buckets = TokenBuckets(rate=1.0, size=1.0, clock=lambda: 0.0)
    for i in range(10_001):
        buckets.take(str(i))
    assert buckets.take("10000") == 1.0
    assert buckets.take("0") == 0.0  # forgotten, as the longest unseen
