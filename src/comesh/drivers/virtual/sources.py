"""Sources: what one reading of a virtual device shows by itself, as a function of time and seed.

It does not depend on who asks or how often, nor on any other reading: each draws from a stream of its own.
"""

from typing import assert_never

import msgspec

from comesh.core.draws import Draws
from comesh.core.values import Value


class Constant(msgspec.Struct, frozen=True, tag="constant", tag_field="kind", forbid_unknown_fields=True):
    value: Value = False


class RandomWalk(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="random-walk",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """A value that moves up or down by step every every_ms, between low and high. Whole if these numbers all
    are."""

    start: int | float = 20.0
    step: int | float = 0.1
    low: int | float = 10.0
    high: int | float = 30.0
    every_ms: float = 1000.0


class SquareWave(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="square-wave",
    tag_field="kind",
    forbid_unknown_fields=True,
):
    """A value that alternates: first for half of period_ms, then second."""

    first: Value = False
    second: Value = True
    period_ms: float = 10_000.0


class Script(msgspec.Struct, frozen=True, tag="script", tag_field="kind", forbid_unknown_fields=True):
    """Values in order of time, each from its time on; before the first one, the first value."""

    points: tuple[tuple[float, Value], ...]

    def __post_init__(self) -> None:
        times_ms = [at_ms for at_ms, _ in self.points]
        if not times_ms or times_ms != sorted(times_ms):
            raise ValueError("a script needs at least one point, in order of time")


Source = Constant | RandomWalk | SquareWave | Script


def next_change_ms(source: Source, now_ms: float) -> float | None:
    """Returns when the value may next change; None: never again."""
    match source:
        case Constant():
            return None
        case SquareWave():
            return _next_multiple(now_ms, source.period_ms / 2)
        case Script():
            return next((at_ms for at_ms, _ in source.points if at_ms > now_ms), None)
        case RandomWalk():
            return _next_multiple(now_ms, source.every_ms)
        case _:
            assert_never(source)


def _next_multiple(now_ms: float, of_ms: float) -> float:
    """Returns the first multiple after now_ms: rounding must not give the same instant again."""
    at_ms = (now_ms // of_ms + 1) * of_ms
    return at_ms if at_ms > now_ms else at_ms + of_ms


class Shown:
    """The current value of one source, queried in order of time."""

    __slots__ = ("_draws", "_source", "_steps", "_walked")

    def __init__(self, source: Source, draws: Draws) -> None:
        self._source = source
        self._draws = draws
        self._steps = 0
        self._walked: int | float = source.start if isinstance(source, RandomWalk) else 0

    def at(self, now_ms: float) -> Value:
        source = self._source
        match source:
            case Constant():
                return source.value
            case SquareWave():
                return source.first if now_ms % source.period_ms * 2 < source.period_ms else source.second
            case Script():
                past = [value for at_ms, value in source.points if at_ms <= now_ms]
                return past[-1] if past else source.points[0][1]
            case RandomWalk():
                return self._walk(source, int(now_ms // source.every_ms))
            case _:
                assert_never(source)

    def _walk(self, walk: RandomWalk, steps: int) -> int | float:
        while self._steps < steps:
            self._steps += 1
            moved = self._walked + (walk.step if self._draws.chance(0.5) else -walk.step)
            self._walked = min(max(moved, walk.low), walk.high)
        return self._walked
