"""Time for drivers and virtual devices: the event loop's on a node, virtual time in the simulator."""

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def now_ms(self) -> float:
        """Returns the time of a clock that never goes back."""
        ...

    def later(self, after_ms: float, call: Callable[[], None]) -> Timer:
        """Call once after that time, unless the timer is cancelled."""
        ...


class LoopScheduler:
    """The running event loop, with its own clock."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> float:
        return self._now_ms()

    def later(self, after_ms: float, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(after_ms / 1000, call)
