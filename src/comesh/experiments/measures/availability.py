"""The paper's availability (theorem 5): do all groups keep f+1 members when F > f of S nodes fail at once?

    P(F) = ( sum over i from max(0, k+F-S) to f of  C(S-F, k-i) C(F, i) / C(S, k) ) ^ G,   k = 2f+1

What stands in the brackets is one group's chance to lose at most f of its k members: exact, as a fraction of
whole numbers. To the power of G supposes that groups are chosen independently of each other.

Pure functions. `comesh availability` uses them, so nothing here needs the extra `sim`.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

import msgspec

LEVELS = (0.5, 0.9, 0.99)
"""The paper's: availability that is asked for."""


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """S nodes (the paper's smart devices), G groups of 2f+1 members each."""

    smart: int
    groups: int
    f: int

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise ValueError("there is at least one group")
        if self.f < 0:
            raise ValueError(f"f is {self.f}; it counts failures")
        if self.smart < self.k:
            raise ValueError(
                f"f = {self.f} makes groups of {self.k} members, and there are {self.smart} nodes"
            )

    @property
    def k(self) -> int:
        return 2 * self.f + 1


def group_survives(sizes: Sizes, failures: int) -> Fraction:
    """The chance of one group to lose at most f of its members."""
    smart, f, k = sizes.smart, sizes.f, sizes.k
    if not 0 <= failures <= smart:
        raise ValueError(f"{failures} of {smart} nodes cannot fail")
    ways = sum(
        math.comb(smart - failures, k - lost) * math.comb(failures, lost)
        for lost in range(max(0, k + failures - smart), f + 1)
    )
    return Fraction(ways, math.comb(smart, k))


def availability(sizes: Sizes, failures: int) -> float:
    """The chance of all groups, correct to the last digits of a float however many groups there are."""
    survives = group_survives(sizes, failures)
    if survives < Fraction(1, 2):
        return float(survives) ** sizes.groups
    # The complement is exact, so a chance very near to 1 does not lose its digits before it is raised to G.
    return math.exp(sizes.groups * math.log1p(-float(1 - survives)))


def curve(sizes: Sizes, *, down_to: float = 0.0) -> Iterator[tuple[int, float]]:
    """F and its availability from F = 0 on, up to the first that is below down_to."""
    for failures in range(sizes.smart + 1):
        chance = availability(sizes, failures)
        yield failures, chance
        if chance < down_to:
            return


def tolerated(sizes: Sizes, level: float) -> int:
    """The most failures with which the availability is still at that level. It falls with each failure."""
    low, high = 0, sizes.smart
    while low < high:
        middle = (low + high + 1) // 2
        if availability(sizes, middle) >= level:
            low = middle
        else:
            high = middle - 1
    return low
