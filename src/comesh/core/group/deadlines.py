"""Named deadlines of one part, behind one timer.

A deadline that moves later costs nothing: the timer fires early, finds nothing due and is set again. A
follower moves its suspicion with every touch that it hears, so this is what makes touches cheap. Where
deadlines are short and are mostly moved in time, `wake_on_time` spares the wake-up instead.
"""

from comesh.core.events import Timer
from comesh.core.step import Step

ROUNDING_MS = 1e-6
"""A timer on a clock that drifts may fire this much early."""


class Deadlines:
    __slots__ = ("_at_ms", "_timer", "_timer_ms")

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._at_ms: dict[str, float] = {}
        self._timer_ms = float("inf")

    def __contains__(self, name: str) -> bool:
        return name in self._at_ms

    def set(self, name: str, after_ms: float, step: Step) -> None:
        """Due after this long; replaces one of the same name."""
        at_ms = step.now_ms + after_ms
        self._at_ms[name] = at_ms
        if at_ms < self._timer_ms:
            self._timer_ms = at_ms
            step.set_timer(self._timer, after_ms)

    def clear(self, *names: str) -> None:
        for name in names:
            self._at_ms.pop(name, None)

    def wake_on_time(self, step: Step) -> None:
        """Nothing is due as early as the timer: it waits for the first deadline."""
        first_ms = min(self._at_ms.values(), default=self._timer_ms)
        if first_ms > self._timer_ms:
            self._timer_ms = first_ms
            step.set_timer(self._timer, first_ms - step.now_ms)

    def due(self, step: Step) -> list[str]:
        """The timer fired: what is due, and no deadline any more, in order of time."""
        now_ms = step.now_ms
        soon_ms = now_ms + ROUNDING_MS
        due = sorted((at_ms, name) for name, at_ms in self._at_ms.items() if at_ms <= soon_ms)
        for _, name in due:
            del self._at_ms[name]
        self._timer_ms = float("inf")
        if self._at_ms:
            self._timer_ms = min(self._at_ms.values())
            step.set_timer(self._timer, self._timer_ms - now_ms)
        return [name for _, name in due]

    def end(self, step: Step) -> None:
        self._at_ms.clear()
        if self._timer_ms < float("inf"):
            step.cancel_timer(self._timer)
            self._timer_ms = float("inf")
