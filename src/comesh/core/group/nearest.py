"""Which members hear an update at once: the f nearest, for their acknowledgements commit it.

The others hear it a little later, with whatever came meanwhile. They are needed only where one of the
nearest does not answer; then it counts as late, and somebody else takes its place until it answers again.
"""

from collections.abc import Collection, Container

from comesh.core.group.replica import Replica

LEAST_WAIT_MS = 10.0
"""Between neighbours on a wire two round trips are shorter than a busy machine takes to answer."""


class Nearest:
    __slots__ = ("_replica", "ranks", "wait_ms")

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self.ranks: Collection[int] = ()
        self.wait_ms = LEAST_WAIT_MS
        """How long the others wait for an update."""

    def choose(self, late: Container[int]) -> None:
        """Whoever is late, or held for dead, comes last."""
        replica = self._replica
        host, seats = replica.host, replica.config.seats
        far = sorted(
            (rank in late or host.is_dead(seats[rank].node), host.round_trip_ms(seats[rank].node), rank)
            for rank in replica.peers
        )
        chosen = far[: replica.quorum - 1]
        self.ranks = [rank for _, _, rank in chosen]
        self.wait_ms = max([LEAST_WAIT_MS, *(2 * round_trip_ms for _, round_trip_ms, _ in chosen)])
