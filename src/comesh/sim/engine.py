"""Virtual time: a heap of due entries, and a clock that jumps from one entry to the next.

Rules: entries run in the order (time, priority, sequence), so that ties are settled by what they are
and then by who came first, never by memory addresses or hashes; time is in milliseconds and never goes
back, and is never NaN or infinite; nothing in here is random. The key is SimPy's.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum
from math import isfinite
from typing import Any

STALE_ENTRIES_KEPT = 4096
"""Maximum cancelled entries in the heap before it is swept (and never more than half of it)."""


class Priority(IntEnum):
    """Order of entries of one instant: the world changes, then messages arrive, then timers fire."""

    FAULT = 0
    ARRIVAL = 1
    TIMER = 2


_Entry = tuple[float, int, int, Callable[..., None], tuple[Any, ...]]


class Engine:
    """Runs callbacks in virtual time."""

    __slots__ = ("_cancelled", "_heap", "_sequence", "handled", "now_ms")

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.handled = 0
        """Number of entries run so far: the events by which speed is measured."""
        self._heap: list[_Entry] = []
        self._sequence = 0
        self._cancelled: set[int] = set()

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled)

    def at(self, time_ms: float, priority: int, call: Callable[..., None], *arguments: Any) -> int:
        """Call at that time, or now if it is past. Returns a number that cancels the call.

        ValueError for a time that would never come.
        """
        if not isfinite(time_ms):
            raise ValueError(f"{time_ms} ms is no time at which anything can happen")
        self._sequence = sequence = self._sequence + 1
        time_ms = max(time_ms, self.now_ms)
        heapq.heappush(self._heap, (time_ms, priority, sequence, call, arguments))
        return sequence

    def cancel(self, sequence: int) -> None:
        """Cancel an entry that has not run yet; each at most once."""
        cancelled = self._cancelled
        cancelled.add(sequence)
        if len(cancelled) > STALE_ENTRIES_KEPT and 2 * len(cancelled) > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2] not in cancelled]
            heapq.heapify(self._heap)
            cancelled.clear()

    def run_until(self, end_ms: float) -> None:
        """Run everything that is due up to and including end_ms; the clock then stands there."""
        if not isfinite(end_ms):
            raise ValueError(f"{end_ms} ms is no time to run until")
        pop = heapq.heappop
        cancelled = self._cancelled
        while (heap := self._heap) and heap[0][0] <= end_ms:
            time_ms, _, sequence, call, arguments = pop(heap)
            if cancelled and sequence in cancelled:
                cancelled.remove(sequence)
                continue
            self.now_ms = time_ms
            self.handled += 1
            call(*arguments)
        self.now_ms = max(self.now_ms, end_ms)


class EngineTimer:
    """A pending call of an engine."""

    __slots__ = ("_call", "_engine", "_sequence")

    def __init__(self, engine: Engine, at_ms: float, priority: int, call: Callable[[], None]) -> None:
        self._engine = engine
        self._call = call
        self._sequence: int | None = engine.at(at_ms, priority, self._run)

    def cancel(self) -> None:
        """Cancel the call; does nothing if it has run, or was cancelled before."""
        if self._sequence is not None:
            self._engine.cancel(self._sequence)
            self._sequence = None

    def _run(self) -> None:
        self._sequence = None
        self._call()


class EngineScheduler:
    """Virtual time for virtual devices and pending calls, at one priority: see `drivers/scheduler.py`."""

    __slots__ = ("_engine", "_priority")

    def __init__(self, engine: Engine, priority: Priority) -> None:
        self._engine = engine
        self._priority = int(priority)

    def now_ms(self) -> float:
        return self._engine.now_ms

    def later(self, after_ms: float, call: Callable[[], None]) -> EngineTimer:
        return EngineTimer(self._engine, self._engine.now_ms + after_ms, self._priority, call)
