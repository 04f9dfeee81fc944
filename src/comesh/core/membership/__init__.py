"""Membership: Medley, a SWIM in which near nodes are probed more often (docs/membership.md).

Read in this order: settings (every knob with its formula), roster (the nodes of a deployment and how near
they are), table (what one node believes of each), schedule (whom to probe next), suspicion, health,
round_trips, gossip_queue (what rides on messages), announcements (opaque payloads), medley (joins them).
"""

from comesh.core.membership.medley import Medley
from comesh.core.membership.roster import Roster
from comesh.core.membership.settings import MembershipSettings

__all__ = ["Medley", "MembershipSettings", "Roster"]
