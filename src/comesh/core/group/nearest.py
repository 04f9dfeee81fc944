"""Which members hear an update at once: the f nearest, for their acknowledgements commit it.

The others hear it a little later, with whatever came meanwhile. They are needed only where one of the
nearest does not answer; then it counts as late, and somebody else takes its place until it answers again.

How near a member is, its own acknowledgements say; until there are any, what membership measured does.
"""

from collections.abc import Collection, Container

from comesh.core.group.replica import Replica

SMOOTHING = 0.25
"""How much the latest round trip counts: as much as with TCP's estimate, twice over, since few come."""
MIN_WAIT_MS = 10.0
"""Between neighbours on a wire two round trips are shorter than a busy machine takes to answer."""


class Nearest:
    __slots__ = ("_replica", "_round_trips_ms", "ranks", "wait_ms")

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._round_trips_ms: dict[int, float] = {}
        self.ranks: Collection[int] = ()
        self.wait_ms = MIN_WAIT_MS
        """How long the others wait for an update."""

    def sample(self, rank: int, round_trip_ms: float) -> None:
        before_ms = self._round_trips_ms.get(rank, round_trip_ms)
        self._round_trips_ms[rank] = before_ms + SMOOTHING * (round_trip_ms - before_ms)

    def _round_trip_ms(self, rank: int) -> float:
        replica = self._replica
        known_ms = self._round_trips_ms.get(rank)
        return replica.host.round_trip_ms(replica.config.seats[rank].node) if known_ms is None else known_ms

    def is_near(self, rank: int) -> bool:
        """Its acknowledgement comes before the others would be asked."""
        return self._round_trip_ms(rank) <= self.wait_ms

    def choose(self, late: Container[int]) -> None:
        """Whoever is late, or held for dead, comes last."""
        replica = self._replica
        host, seats = replica.host, replica.config.seats
        far = sorted(
            (rank in late or host.is_dead(seats[rank].node), self._round_trip_ms(rank), rank)
            for rank in replica.peers
        )
        chosen = far[: replica.quorum - 1]
        self.ranks = [rank for _, _, rank in chosen]
        self.wait_ms = max([MIN_WAIT_MS, *(2 * round_trip_ms for _, round_trip_ms, _ in chosen)])
