"""What a member of a config can be, and every way from one role to another.

A member has one phase at a time: it follows, stands for election (`election.py`) or leads (`leadership.py`).
The phase holds what belongs to it and nothing else, and ends with its deadlines. `Member.move` takes no way
that is not in `TRANSITIONS`, and docs/protocol.md draws its diagram from it.
"""

from enum import StrEnum
from typing import ClassVar

from comesh.core.group.serving import Serving
from comesh.core.group_messages import Body
from comesh.core.step import Step


class Role(StrEnum):
    INVITED = "invited"
    RECOVERING = "recovering"
    FOLLOWER = "follower"
    ASKING = "asking"
    CLAIMING = "claiming"
    SYNCING = "syncing"
    SERVING = "serving"
    HANDING_OFF = "handing off"
    RETIRED = "retired"


DOES = {
    Role.INVITED: "keeps the base of a config to come",
    Role.RECOVERING: "a follower that lost power: promises as not whole, acknowledges nothing",
    Role.FOLLOWER: "acknowledges, promises",
    Role.ASKING: "pre-vote: would you promise me?",
    Role.CLAIMING: "collects promises",
    Role.SYNCING: "opens its ballot with the newest state",
    Role.SERVING: "everything: the only role with outside effects",
    Role.HANDING_OFF: "commits the handoff entry, then Start to the successor",
    Role.RETIRED: "answers Moved",
}


class Trigger(StrEnum):
    """What takes a member from one role to another, in the words of the diagram."""

    FIRST_LEADER = "state of the proof flushed, and rank 0"
    MADE_WHOLE = "state from a leader, for its nonce"
    SUSPECTED = "no leader is heard"
    PREVOTED = "f+1 would promise"
    WON = "f+1 whole promises; or f+1 not whole, and cold_wait is over (lossy)"
    OPENED = "f+1 acknowledged"
    OPENED_WITH_HANDOFF = "f+1 acknowledged, and the state ends with a handoff entry"
    HANDOFF_PROPOSED = "handoff entry proposed"
    DEPOSED = "deposed"
    """It was refused, heard a leader or a higher ballot, or gave up."""
    SUCCEEDED = "f+1 of a successor are installed"


_ELECTING_OR_LEADING = (Role.ASKING, Role.CLAIMING, Role.SYNCING, Role.SERVING, Role.HANDING_OFF)

TRANSITIONS: dict[tuple[Role, Trigger], Role] = {
    (Role.INVITED, Trigger.FIRST_LEADER): Role.SYNCING,
    (Role.RECOVERING, Trigger.MADE_WHOLE): Role.FOLLOWER,
    (Role.RECOVERING, Trigger.SUSPECTED): Role.ASKING,
    (Role.FOLLOWER, Trigger.SUSPECTED): Role.ASKING,
    (Role.ASKING, Trigger.PREVOTED): Role.CLAIMING,
    (Role.CLAIMING, Trigger.WON): Role.SYNCING,
    (Role.SYNCING, Trigger.OPENED): Role.SERVING,
    (Role.SYNCING, Trigger.OPENED_WITH_HANDOFF): Role.HANDING_OFF,
    (Role.SERVING, Trigger.HANDOFF_PROPOSED): Role.HANDING_OFF,
    **{(role, Trigger.DEPOSED): Role.FOLLOWER for role in _ELECTING_OR_LEADING},
    **{
        (role, Trigger.SUCCEEDED): Role.RETIRED
        for role in (Role.RECOVERING, Role.FOLLOWER, *_ELECTING_OR_LEADING)
    },
}
"""A member that comes to follow and is not whole is RECOVERING instead."""


class Phase:
    """Base of all phases."""

    deadlines: ClassVar[tuple[str, ...]] = ()
    """The names of those that end with the phase."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.serving: Serving | None = None
        """What serves the group, where this member leads and serves."""

    def on_body(self, rank: int, body: Body, step: Step) -> None:
        """An answer from another member. Where nothing waits for it, it is late: what it answers is over."""

    def on_due(self, name: str, step: Step) -> None:
        """A deadline of this phase, or one that was due together with what ended the phase before."""

    def sent_ms(self, step: Step) -> int:
        """The time that messages carry, and acknowledgements carry back; only a leader has one."""
        return 0


class Following(Phase):
    """Waits for a leader to be heard; also the phase of a member that is yet to begin, or has retired."""
