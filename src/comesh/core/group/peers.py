"""The other members of a config, as the leader of one ballot knows them.

An update goes to the f nearest members at once, for their acknowledgements commit it. The others hear it a
little later, with whatever came meanwhile. They are needed only where one of the nearest does not answer:
then it counts as late, and somebody else takes its place until it answers again.

How near a member is, its own acknowledgements say; until there are any, what membership measured does.
"""

from collections.abc import Container
from typing import Final

from comesh.core.group.config import UNBOUND_STORE
from comesh.core.group.member import IDLE_LEASES, Member
from comesh.core.group.serving import OutboundMessage
from comesh.core.ids import NodeId
from comesh.core.stamps import OPENING, Ballot
from comesh.core.step import Step

SMOOTHING: Final = 0.25
"""How much the latest round trip counts: as much as with TCP's estimate, twice over, since few come."""
MIN_WAIT_MS: Final = 10.0
"""Between neighbours on a wire two round trips are shorter than a busy machine takes to answer."""
SILENT_LEASES: Final = 1.5
"""A member that acknowledged nothing for so long is not waited for."""


class Peer:
    """Another member. Of this ballot only: what it said in another one counts for nothing."""

    __slots__ = (
        "acked",
        "heard_ms",
        "lease_from_ms",
        "messages",
        "near",
        "node",
        "rank",
        "round_trip_ms",
        "said_ms",
        "sent",
        "sent_again",
    )

    def __init__(self, rank: int, node: NodeId, now_ms: float) -> None:
        self.rank = rank
        self.node = node
        self.acked: int | None = None
        """The number up to which it has everything; None: not even the state that the ballot opened with."""
        self.sent = 0
        """The number up to which it was sent everything, acknowledged or not."""
        self.sent_again = 0
        """The number up to which it was sent something more than once."""
        self.said_ms = now_ms
        """When it was last sent anything that it acknowledges."""
        self.heard_ms = now_ms
        """When it last acknowledged anything; before it ever did, when the ballot was opened."""
        self.lease_from_ms = float("-inf")
        """When the latest message that it acknowledged was sent."""
        self.round_trip_ms: float | None = None
        self.near = False
        """One of the nearest, which hear updates at once."""
        self.messages: list[OutboundMessage] = []
        """Messages that wait for entries which it was not yet sent."""

    def sample(self, round_trip_ms: float) -> None:
        before_ms = self.round_trip_ms
        if before_ms is None:
            self.round_trip_ms = round_trip_ms
        else:
            self.round_trip_ms = before_ms + SMOOTHING * (round_trip_ms - before_ms)

    def has(self, number: int) -> bool:
        """It acknowledged that entry, and was sent it once: what was sent again had no messages with it."""
        return (self.acked or 0) >= number > self.sent_again


class Peers:
    def __init__(self, member: Member, ballot: Ballot, quorum: int, now_ms: float) -> None:
        self._member = member
        self._elected = ballot != OPENING
        self._others = quorum - 1
        self._opened_ms = now_ms
        seats = member.config.seats
        self.all = tuple(Peer(rank, seats[rank].node, now_ms) for rank in member.peers)
        self.of_rank = {peer.rank: peer for peer in self.all}
        self.of_node = {peer.node: peer for peer in self.all}
        self.nearest: list[Peer] = []
        self.wait_ms = MIN_WAIT_MS
        """How long the others wait for an update."""
        self.far_ms = member.far_round_trip_ms
        """The round trip to the farthest."""

    def _round_trip_ms(self, peer: Peer) -> float:
        known_ms = peer.round_trip_ms
        return self._member.host.round_trip_ms(peer.node) if known_ms is None else known_ms

    def is_near(self, peer: Peer) -> bool:
        """Its acknowledgement comes before the others would be asked."""
        return self._round_trip_ms(peer) <= self.wait_ms

    def is_silent(self, peer: Peer, step: Step) -> bool:
        return step.now_ms - peer.heard_ms > SILENT_LEASES * self._member.lease_ms

    def choose_nearest(self, step: Step, number: int = 0) -> None:
        """Choose the f nearest. Members that do not answer, lack something up to that number, or are believed
        dead come last."""
        self.far_ms = self._member.far_round_trip_ms
        is_dead = self._member.host.is_dead
        order = [
            (
                peer.acked is None or peer.acked < number or self.is_silent(peer, step) or is_dead(peer.node),
                self._round_trip_ms(peer),
                peer.rank,
            )
            for peer in self.all
        ]
        chosen = sorted(order)[: self._others]
        for peer in self.nearest:
            peer.near = False
        self.nearest = [self.of_rank[rank] for _, _, rank in chosen]
        for peer in self.nearest:
            peer.near = True
        self.wait_ms = max([MIN_WAIT_MS, *(2 * round_trip_ms for _, round_trip_ms, _ in chosen)])

    def lack_sync(self, step: Step) -> list[Peer]:
        """Those that have not acknowledged that this member was elected: they are told until they are silent.
        Of a first leader Start tells."""
        if not self._elected:
            return []
        return [peer for peer in self.all if peer.acked is None and not self.is_silent(peer, step)]

    def lost(self, step: Step) -> list[NodeId]:
        """Those that are silent, where the next one would be one too many: nobody waits until these are
        believed dead. Not where f is 1: there every restart would move the group. Nor where more are silent:
        who hears so few is cut off itself."""
        config = self._member.config
        lost = [peer.node for peer in self.all if self._is_lost(peer, step)]
        if self._is_late(step):
            lost += [seat.node for seat in config.seats if seat.store == UNBOUND_STORE]
        return lost if len(lost) == len(config.seats) - config.quorum > 1 else []

    def _is_lost(self, peer: Peer, step: Step) -> bool:
        """It missed two touches, or has not acknowledged a leader that was elected a lease ago."""
        if peer.acked is None:
            return self._is_late(step)
        return step.now_ms - peer.heard_ms > IDLE_LEASES * self._member.lease_ms

    def _is_late(self, step: Step) -> bool:
        return self._elected and step.now_ms - self._opened_ms >= self._member.lease_ms

    def unseated(self, living: Container[NodeId], step: Step) -> list[NodeId]:
        """Nodes that live but do not fill their seat: nobody took it, or its journal is gone."""
        member = self._member
        silent_after_ms = member.settings.silent_after_ms
        found: list[NodeId] = []
        for rank, seat in enumerate(member.config.seats):
            peer = self.of_rank.get(rank)
            silent = peer is not None and step.now_ms - peer.heard_ms > silent_after_ms
            if rank != member.rank and seat.node in living and (peer is None or silent):
                found.append(seat.node)
        return found
