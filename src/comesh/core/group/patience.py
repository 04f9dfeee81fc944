"""How long a member waits for a leader that it does not hear.

Two touches in a row have to be lost before a leader is suspected for silence alone. But who missed one asks:
a leader that lives answers an `Ask` with a touch, at once, and nothing else comes of it. From one that is
dead nothing comes, and it is suspected a whole touch sooner. When anybody may be promised anything is another
matter: `Replica.suspect` waits for the end of the lease.
"""

from typing import TYPE_CHECKING, Final

from comesh.core.group.roles import Role
from comesh.core.group_messages import Ask
from comesh.core.stamps import Ballot
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.replica import Replica

IDLE_LEASES: Final = 2.5
BUSY_LEASES: Final = 1.5
"""A leader that was not heard for so many leases is suspected."""
DOUBT_LEASES: Final = 1.25
"""One that was not heard for so many is asked: everybody is touched once per lease."""
DOUBT_ROUND_TRIPS: Final = 2.0
LEAST_DOUBT: Final = 0.1
"""Of a lease: an answer may take as long, however near the leader is."""


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
    replica.send(replica.leader, Ask(Ballot(replica.promised.round + 1, replica.rank)), step)
    trip_ms = replica.host.round_trip_ms(replica.config.seats[replica.leader].node)
    leases = BUSY_LEASES if replica.leader_busy else IDLE_LEASES
    wait_ms = max(DOUBT_ROUND_TRIPS * trip_ms, LEAST_DOUBT * replica.lease_ms)
    most_ms = (leases - DOUBT_LEASES) * replica.lease_ms
    replica.deadlines.set("suspicion", min(wait_ms, most_ms), step)
