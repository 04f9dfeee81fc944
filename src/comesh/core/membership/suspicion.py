"""Computes how long a suspected member has to prove that it lives.

As in Lifeguard: the longest time at first, shrinking with the logarithm of how many others came to suspect it
by themselves, down to the shortest. A node that cannot hear much by its own fault will find nobody who
confirms, and so condemns slowly.

    timeout = max(shortest, longest - (longest - shortest) * log(c + 1) / log(needed + 1))

Only a *witness*, a node that tried the suspect itself, buries it when that time is over. Others wait HEARSAY
times as long for news from the witnesses, and then look for themselves: so a node that merely missed the
contradiction does not bury the living.
"""

import math

from comesh.core.ids import Incarnation, NodeId

HEARSAY = 2


class Suspicion:
    __slots__ = ("_by", "_longest_ms", "_needed", "_own", "_shortest_ms", "began_ms", "incarnation")

    def __init__(
        self,
        *,
        own: NodeId,
        incarnation: Incarnation,
        began_ms: float,
        shortest_ms: float,
        longest_ms: float,
        needed: int,
    ) -> None:
        self._own = own
        self.incarnation = incarnation
        self.began_ms = began_ms
        self._shortest_ms = shortest_ms
        self._longest_ms = longest_ms
        self._needed = needed
        self._by: set[NodeId] = set()

    def confirm(self, by: NodeId) -> bool:
        """Counts another node's suspicion. True if it shortens the time."""
        if by in self._by or (len(self._by) > self._needed and by != self._own):
            return False
        self._by.add(by)
        return True

    @property
    def is_witnessed(self) -> bool:
        """Says if this node tried the suspect itself."""
        return self._own in self._by

    def left_ms(self, now_ms: float) -> float:
        wait_ms = self._timeout_ms() * (1 if self.is_witnessed else HEARSAY)
        return max(0.0, self.began_ms + wait_ms - now_ms)

    def _timeout_ms(self) -> float:
        if self._needed < 1:
            return self._shortest_ms
        confirmed = max(0, len(self._by) - 1)
        share = math.log(confirmed + 1) / math.log(self._needed + 1)
        return max(self._shortest_ms, self._longest_ms - (self._longest_ms - self._shortest_ms) * share)
