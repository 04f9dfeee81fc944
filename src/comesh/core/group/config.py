"""A config: one fixed membership of a group. All of it is its identity."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Annotated, NamedTuple

import msgspec

from comesh.core.ids import Counter, GroupId, NodeId

GENESIS_STORE = 0
"""The store of a seat in a first config: whoever holds the genesis right, which is written once."""
UNBOUND_STORE = -1
"""The store of a seat that nobody was Ready to take: it neither acks nor promises in this config."""
OF_THE_SEAT = -2
"""In a message: the store that the sender's seat was given to. Who has the config in its journal sits with
that one, so it need not be said."""


class Seat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A member: a node and the journal it sits with. A replaced disk is another store, so a stranger."""

    node: NodeId
    store: int


def unbound(nodes: Iterable[NodeId]) -> tuple[Seat, ...]:
    """Seats that nobody has taken, or of which nothing but the nodes is known."""
    return tuple(Seat(node, UNBOUND_STORE) for node in nodes)


class Address(NamedTuple):
    """Which config a message is of. check: so much of its mark as messages carry, to be short."""

    group: GroupId
    number: int
    check: int


class Config(msgspec.Struct, frozen=True, array_like=True, gc=False):
    group: GroupId
    number: Counter
    epoch: int
    seats: Annotated[tuple[Seat, ...], msgspec.Meta(min_length=1)]
    """In rank order; one without any is refused when it comes from the wire."""
    lease_ms: int
    version: Counter
    """The deployment version that this config works by."""

    @property
    def f(self) -> int:
        return len(self.seats) // 2

    @property
    def quorum(self) -> int:
        return self.f + 1

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        return tuple(seat.node for seat in self.seats)

    @property
    def predecessor(self) -> "Config":
        """The config before, as far as this one tells of it: that there was one. Who sat in it is not known
        here; the members of this one are named, for they know more."""
        return msgspec.structs.replace(self, number=self.number - 1, seats=unbound(self.nodes))

    def rank_of(self, node: NodeId) -> int | None:
        for rank, seat in enumerate(self.seats):
            if seat.node == node:
                return rank
        return None

    @property
    def mark(self) -> int:
        """A digest of the whole identity: two configs of one group and number are told apart by it."""
        return int.from_bytes(blake2b(_encode(self), digest_size=MARK_BYTES).digest(), "little")

    @property
    def address(self) -> Address:
        return Address(self.group, self.number, self.mark & _CHECKED)


MARK_BYTES = 7
"""Enough that no two configs of a deployment share one, whatever its age: journals go by it alone."""
_CHECKED = 0xFFFF_FFFF
"""Enough for the few configs of one group and number: those that a handoff tried one after the other."""
_encode = msgspec.msgpack.Encoder().encode
