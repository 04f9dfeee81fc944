"""`PendingCalls`: calls that were sent and not answered yet.

    calls: PendingCalls[DeviceId, Reply] = PendingCalls(scheduler, max_each=64)
    number = calls.open(device, 2000.0, ended)      # None: too many wait for this device
    send(number, ...)
    calls.answer(number, reply)                     # False: nobody waits for it

Rules:
- a call ends exactly once: with its answer, or with None when its time is over;
- an answer that comes later, or twice, finds nobody who waits;
- numbers count up and are never used again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from comesh.drivers.scheduler import Scheduler, Timer

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")


class TooManyError(Exception):
    """The maximum number of calls is waiting already."""


class _Call(NamedTuple, Generic[K, A]):
    of: K
    ended: Callable[[A | None], None]
    timer: Timer


class PendingCalls(Generic[K, A]):
    """Open calls by number. max_each: maximum number of open calls of one kind, such as to one device."""

    def __init__(self, scheduler: Scheduler, *, max_each: int) -> None:
        self._scheduler = scheduler
        self._max_each = max_each
        self._number = 0
        self._open: dict[int, _Call[K, A]] = {}
        self._count: Counter[K] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def open(
        self, of: K, timeout_ms: float, ended: Callable[[A | None], None], *, number: int | None = None
    ) -> int | None:
        """Open a call and return its number; None: too many calls of this kind are open.

        number: one of `next_number`, for a call that is sent again.
        """
        if self._count[of] >= self._max_each:
            return None
        number = self.next_number() if number is None else number
        timer = self._scheduler.later(timeout_ms, lambda: self._end(number, None))
        self._open[number] = _Call(of, ended, timer)
        self._count[of] += 1
        return number

    def of(self, number: int) -> K | None:
        """Returns the kind of the open call with this number; None: there is none."""
        call = self._open.get(number)
        return None if call is None else call.of

    def answer(self, number: int, answer: A) -> bool:
        """End the call with its answer. False: the call is not open."""
        if number not in self._open:
            return False
        self._end(number, answer)
        return True

    def answer_all(self, of: K, answer: A) -> None:
        """End all calls of this kind with this answer."""
        for number in [number for number, call in self._open.items() if call.of == of]:
            self._end(number, answer)

    def forget(self, number: int) -> None:
        """Drop a call without ending it."""
        if number in self._open:
            self._take(number)

    def forget_all(self) -> None:
        """Drop all calls without ending them."""
        for number in list(self._open):
            self._take(number)

    def close(self) -> None:
        """End all calls without an answer."""
        for number in list(self._open):
            if number in self._open:
                self._end(number, None)

    async def call(
        self, of: K, timeout_ms: float, send: Callable[[int], None], *, number: int | None = None
    ) -> A | None:
        """Send a call and wait for its answer; None: none came in time. TooManyError: it was not sent."""
        answered: asyncio.Future[A | None] = asyncio.get_running_loop().create_future()

        def ended(answer: A | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        opened = self.open(of, timeout_ms, ended, number=number)
        if opened is None:
            raise TooManyError
        send(opened)
        try:
            return await answered
        finally:
            self.forget(opened)

    def _end(self, number: int, answer: A | None) -> None:
        self._take(number).ended(answer)

    def _take(self, number: int) -> _Call[K, A]:
        call = self._open.pop(number)
        call.timer.cancel()
        if self._count[call.of] > 1:
            self._count[call.of] -= 1
        else:
            del self._count[call.of]
        return call
