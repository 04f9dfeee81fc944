"""Randomness from a seed: SplitMix64, the same on every machine and Python.

The core draws from here only, so that a run is a function of its seed.
"""

from collections.abc import MutableSequence, Sequence
from typing import TypeVar

_MASK = (1 << 64) - 1
_T = TypeVar("_T")


def mix64(word: int) -> int:
    """The finalizer of SplitMix64: each input bit flips each output bit half of the time."""
    word = (word + 0x9E3779B97F4A7C15) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return word ^ (word >> 31)


class Draws:
    """A stream of draws."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = mix64(seed & _MASK)

    def word(self) -> int:
        """64 random bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        return word ^ (word >> 31)

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1 (bias under 2^-32 for bounds below 2^32)."""
        return (self.word() * bound) >> 64

    def unit(self) -> float:
        """A float in [0, 1)."""
        return (self.word() >> 11) * 2.0**-53

    def chance(self, probability: float) -> bool:
        return self.unit() < probability

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.unit()

    def choice(self, items: Sequence[_T]) -> _T:
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[_T]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]

    def sample(self, items: Sequence[_T], count: int) -> list[_T]:
        """count distinct items, or all of them in random order where there are fewer."""
        pool = list(items)
        for first in range(min(count, len(pool))):
            other = first + self.below(len(pool) - first)
            pool[first], pool[other] = pool[other], pool[first]
        return pool[:count]

    def fork(self, salt: int) -> "Draws":
        """An independent stream for a part, not disturbed by how often others draw."""
        return Draws(self.word() ^ mix64(salt))
