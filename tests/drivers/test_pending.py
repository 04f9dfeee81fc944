"""Tests that each open call ends exactly once."""

import asyncio

import pytest

from comesh.drivers.pending import PendingCalls, TooManyError
from comesh.drivers.scheduler import LoopScheduler
from comesh.sim.engine import Engine, EngineScheduler, Priority


class Bench:
    """Pending calls in virtual time, and how each ended."""

    def __init__(self, max_each: int = 2) -> None:
        self.engine = Engine()
        scheduler = EngineScheduler(self.engine, Priority.TIMER)
        self.calls: PendingCalls[str, str] = PendingCalls(scheduler, max_each=max_each)
        self.ends: list[tuple[float, int, str | None]] = []

    def open(self, of: str, timeout_ms: float = 100.0) -> int | None:
        number: int | None = None

        def ended(answer: str | None) -> None:
            assert number is not None
            self.ends.append((self.engine.now_ms, number, answer))

        number = self.calls.open(of, timeout_ms, ended)
        return number


def test_a_call_ends_with_its_answer_and_only_once() -> None:
    bench = Bench()
    first, second = bench.open("lamp"), bench.open("door")
    assert (first, second) == (1, 2)
    bench.engine.run_until(10.0)
    assert bench.calls.of(2) == "door"
    assert bench.calls.answer(2, "open")
    assert not bench.calls.answer(2, "open"), "it came twice"
    bench.engine.run_until(1000.0)
    assert not bench.calls.answer(1, "on"), "too late"
    assert bench.ends == [(10.0, 2, "open"), (100.0, 1, None)]
    assert len(bench.calls) == len(bench.engine) == 0


def test_open_calls_of_each_kind_are_bounded() -> None:
    bench = Bench()
    assert [bench.open("lamp"), bench.open("lamp"), bench.open("lamp"), bench.open("door")] == [1, 2, None, 3]
    bench.calls.answer(1, "on")
    assert bench.open("lamp") == 4


def test_all_calls_of_a_kind_end_together() -> None:
    bench = Bench()
    for of in ("lamp", "door", "lamp"):
        bench.open(of)
    bench.calls.answer_all("lamp", "gone")
    assert bench.ends == [(0.0, 1, "gone"), (0.0, 3, "gone")]
    bench.calls.close()
    assert bench.ends[2:] == [(0.0, 2, None)]


def test_a_dropped_call_does_not_end() -> None:
    bench = Bench()
    bench.open("lamp")
    bench.open("door")
    bench.calls.forget(1)
    bench.calls.forget(1)
    bench.calls.forget_all()
    bench.engine.run_until(1000.0)
    assert bench.ends == []
    assert bench.calls.of(1) is None


def test_an_answer_may_open_the_next_call() -> None:
    bench = Bench(max_each=1)
    opened: list[int | None] = []
    bench.calls.open("lamp", 100.0, lambda _: opened.append(bench.open("lamp")))
    bench.calls.answer(1, "on")
    assert opened == [2]


def test_a_coroutine_waits_until_the_timeout() -> None:
    async def scene() -> None:
        calls: PendingCalls[None, str] = PendingCalls(LoopScheduler(lambda: 0.0), max_each=1)

        def send(number: int) -> None:
            asyncio.get_running_loop().call_soon(calls.answer, number, "now")

        assert await calls.call(None, 5000.0, send) == "now"
        assert await calls.call(None, 5.0, lambda _: None) is None
        waiting = asyncio.create_task(calls.call(None, 5000.0, lambda _: None))
        await asyncio.sleep(0)
        with pytest.raises(TooManyError):
            await calls.call(None, 5000.0, lambda _: None)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(calls) == 0
        sent: list[int] = []
        assert await calls.call(None, 5.0, sent.append, number=calls.next_number()) is None
        assert await calls.call(None, 5.0, sent.append, number=sent[0]) is None
        assert sent[0] == sent[1]

    asyncio.run(scene())
