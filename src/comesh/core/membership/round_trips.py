"""Estimates round trips per peer, as TCP does it: a smoothed mean and mean deviation.

srtt <- 7/8 srtt + 1/8 sample;   deviation <- 3/4 deviation + 1/4 |srtt - sample|
"""

from array import array
from collections.abc import Sequence


class RoundTrips:
    __slots__ = ("_deviation_ms", "_smoothed_ms")

    def __init__(self, size: int) -> None:
        self._smoothed_ms = array("f", bytes(4 * size))
        self._deviation_ms = array("f", bytes(4 * size))

    def renumbered(self, numbers: Sequence[int | None], size: int) -> "RoundTrips":
        """Copies the estimates under other numbers: for each number here, the number there or None."""
        other = RoundTrips(size)
        for old, new in enumerate(numbers):
            if new is not None:
                other._smoothed_ms[new] = self._smoothed_ms[old]
                other._deviation_ms[new] = self._deviation_ms[old]
        return other

    def sample(self, number: int, took_ms: float) -> None:
        took_ms = max(took_ms, 0.001)
        smoothed = self._smoothed_ms[number]
        if not smoothed:
            self._smoothed_ms[number] = took_ms
            self._deviation_ms[number] = took_ms / 2
            return
        self._deviation_ms[number] += (abs(smoothed - took_ms) - self._deviation_ms[number]) / 4
        self._smoothed_ms[number] = smoothed + (took_ms - smoothed) / 8

    def estimate_ms(self, number: int) -> float | None:
        """Returns the smoothed round trip; None: never measured."""
        return self._smoothed_ms[number] or None

    def timeout_ms(self, number: int, min_ms: float, max_ms: float) -> float:
        """Returns srtt + 4 deviations within bounds; the upper bound while unknown."""
        smoothed = self._smoothed_ms[number]
        if not smoothed:
            return max_ms
        return min(max_ms, max(min_ms, smoothed + 4 * self._deviation_ms[number]))
