"""How long a member waits for a leader that it does not hear, and a leader for its members.

Two touches in a row have to be lost before a leader is suspected for silence alone. But who missed one asks,
with an `Ask` for no ballot: who leads answers with a touch, at once, and nothing else comes of it. From one
that is dead nothing comes, and it is suspected a whole touch sooner. When anybody may be promised anything is
another matter: `Replica.suspect` waits for the end of the lease.
"""

from typing import TYPE_CHECKING, Final

from comesh.core.group.roles import Role
from comesh.core.group_messages import Ask
from comesh.core.ids import NodeId
from comesh.core.stamps import NO_BALLOT, OPENING
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.leadership import Leadership
    from comesh.core.group.replica import Replica

IDLE_LEASES: Final = 2.5
BUSY_LEASES: Final = 1.5
"""A leader that was not heard for so many leases is suspected."""
SILENT_LEASES: Final = 1.5
"""Who acknowledged nothing for so long is not waited for."""
DOUBT_LEASES: Final = 1.25
"""One that was not heard for so many is asked: everybody is touched once per lease."""
DOUBT_ROUND_TRIPS: Final = 2.0
DOUBT: Final = Ask(NO_BALLOT)
"""Whether it leads still, of who wants nothing itself."""
MIN_DOUBT: Final = 0.25
"""Of a lease: an answer may take as long, however near the leader is. One that stands still is not suspected
sooner for it than a busy one is."""


def expect_leader(replica: "Replica", step: Step, *, heard: bool) -> None:
    """A leader was heard, or is due."""
    leases = BUSY_LEASES if replica.leader_busy else IDLE_LEASES
    replica.deadlines.set("suspicion", leases * replica.lease_ms, step)
    if heard:
        replica.deadlines.set("doubt", DOUBT_LEASES * replica.lease_ms, step)
    else:
        replica.deadlines.clear("doubt")


def doubt(replica: "Replica", step: Step) -> None:
    """It missed a touch: it is asked, and suspected if it says nothing."""
    if replica.role is not Role.FOLLOWER or replica.leader is None:
        return
    replica.send(replica.leader, DOUBT, step)
    trip_ms = replica.host.round_trip_ms(replica.config.seats[replica.leader].node)
    leases = BUSY_LEASES if replica.leader_busy else IDLE_LEASES
    wait_ms = max(DOUBT_ROUND_TRIPS * trip_ms, MIN_DOUBT * replica.lease_ms)
    max_ms = (leases - DOUBT_LEASES) * replica.lease_ms
    replica.deadlines.set("suspicion", min(wait_ms, max_ms), step)


def lost_members(replica: "Replica", leadership: "Leadership", step: Step) -> list[NodeId]:
    """Who is silent, where the next one would be one too many: nobody waits until these are believed dead.
    Not where f is 1: there every restart would move the group. Nor where more are silent: who hears so few
    is cut off itself."""
    config = replica.config
    lost = [
        seat.node
        for rank, seat in enumerate(config.seats)
        if rank != replica.rank and _is_lost(leadership, rank, config.lease_ms, step)
    ]
    return lost if len(lost) == len(config.seats) - config.quorum > 1 else []


def _is_lost(leadership: "Leadership", rank: int, lease_ms: float, step: Step) -> bool:
    """It missed two touches, or has not acknowledged a leader that was elected a lease ago."""
    if leadership.was_heard(rank):
        return leadership.silent_ms(rank, step) > IDLE_LEASES * lease_ms
    return leadership.ballot != OPENING and leadership.silent_ms(rank, step) >= lease_ms


def lack_sync(replica: "Replica", leadership: "Leadership", step: Step) -> list[int]:
    """Ranks that have not acknowledged that this member was elected: they are told until they are silent.
    Of a first leader Start tells."""
    if leadership.ballot == OPENING:
        return []
    max_ms = SILENT_LEASES * replica.lease_ms
    return [
        rank
        for rank in replica.peers
        if not leadership.was_heard(rank) and leadership.silent_ms(rank, step) <= max_ms
    ]
