"""Timers of a node by a clock that counts suspended time.

The event loop's own clock stands still while the machine sleeps, and a lease does not. So timers are kept
here, by the node's clock; the loop is only asked to wake up for the earliest one, and now and then to look.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from comesh.core.events import Timer

LOOK_MS: Final = 1000.0
"""At least so often the clock is looked at, in case the machine slept."""
MAX_STALE: Final = 1024
"""Entries of moved and cancelled timers that may stay in the heap before it is cleaned."""


class Timers:
    def __init__(self, now_ms: Callable[[], float], fire: Callable[[Timer], None]) -> None:
        self._now_ms = now_ms
        self._fire = fire
        self._due: dict[Timer, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Timer]] = []
        self._number = 0
        self._wake: asyncio.TimerHandle | None = None
        self._wakes_ms = float("inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def set(self, timer: Timer, after_ms: float) -> None:
        self._number += 1
        due_ms = self._now_ms() + after_ms
        self._due[timer] = (due_ms, self._number)
        heappush(self._heap, (due_ms, self._number, timer))
        if len(self._heap) > 2 * len(self._due) + MAX_STALE:
            self._clean()
        if due_ms < self._wakes_ms:
            self._wake_at(due_ms)

    def cancel(self, timer: Timer) -> None:
        self._due.pop(timer, None)

    def close(self) -> None:
        """Nothing fires any more."""
        self._closed = True
        self._due.clear()
        self._heap.clear()
        if self._wake is not None:
            self._wake.cancel()

    def _wake_at(self, due_ms: float) -> None:
        if self._closed:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if self._wake is not None:
            self._wake.cancel()
        self._wakes_ms = due_ms
        wait_ms = min(max(due_ms - self._now_ms(), 0.0), LOOK_MS)
        self._wake = self._loop.call_later(wait_ms / 1000, self._on_wake)

    def _on_wake(self) -> None:
        self._wake = None
        self._wakes_ms = float("inf")
        now_ms = self._now_ms()
        heap, due = self._heap, self._due
        while heap and heap[0][0] <= now_ms:
            due_ms, number, timer = heappop(heap)
            if due.get(timer) == (due_ms, number):
                del due[timer]
                self._fire(timer)
        while heap and due.get(heap[0][2]) != heap[0][:2]:
            heappop(heap)
        if heap and heap[0][0] < self._wakes_ms:
            self._wake_at(heap[0][0])

    def _clean(self) -> None:
        self._heap = sorted((due_ms, number, timer) for timer, (due_ms, number) in self._due.items())
