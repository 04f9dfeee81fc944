"""What orders claims, grants and runs. All compare field by field, the first one first.

A stamp is unique and rises because a claim to lead is flushed before it is used: no two leaders of a group
ever share (config, ballot), and one leader counts n.
"""

import msgspec

from comesh.core.ids import Counter, RoutineId


class Ballot(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A claim to lead inside one config: none < (0,0) < (1,r) < ..."""

    round: int
    rank: int

    def __str__(self) -> str:
        return "none" if self.round < 0 else f"{self.round}.{self.rank}"


NO_BALLOT = Ballot(-1, -1)
OPENING = Ballot(0, 0)
"""What rank 0 of a config opens with, without an election."""


class Fence(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Which leader of a group speaks: later ones are higher."""

    config: Counter
    ballot: Ballot


class Era(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """The last time a group had to go on from an incomplete state: the (config, ballot) of that Sync."""

    config: Counter = 0
    ballot: Ballot = NO_BALLOT


FIRST_ERA = Era()


class Stamp(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Numbers what a leader proposes: firings, grants, events, versions of readings."""

    config: Counter
    ballot: Ballot
    n: Counter

    def __str__(self) -> str:
        return f"{self.config}:{self.ballot}:{self.n}"


class RunId(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One firing of a routine. birth: the deployment version that added the routine."""

    routine: RoutineId
    birth: Counter
    stamp: Stamp

    def __str__(self) -> str:
        return f"{self.routine}#{self.stamp}"
