"""Operations as data: what people do to a mesh while it breaks (orders, versions, machines added and
removed).

Whom and what an operation means is found when it happens, because versions change what there is: `pick`
chooses among the routines or devices that the asked node knows by then. A request that is repeated means what
it meant first.
"""

from enum import StrEnum

import msgspec

from comesh.core.ids import NodeId


class What(StrEnum):
    FIRE = "fire"
    PAUSE = "pause"
    PAUSE_ALL = "pause-all"
    RESUME = "resume"
    RESUME_ALL = "resume-all"
    MAINTAIN = "maintain"
    RESTORE = "restore"
    SET = "set"
    BREAK_LOCK = "break-lock"
    REMEMBER = "remember"
    APPLY = "apply"
    REACH = "reach"
    JOIN = "join"
    LEAVE = "leave"
    LEAVE_DEAD = "leave-dead"
    LEAVE_NOW = "leave-now"
    REVOKE = "revoke"
    RESTART_ALL = "restart-all"


MEANINGS = {
    What.FIRE: "a routine is fired by hand",
    What.PAUSE: "a routine is paused",
    What.PAUSE_ALL: "all routines are paused: an order to each group",
    What.RESUME: "a routine is resumed",
    What.RESUME_ALL: "all routines are resumed",
    What.MAINTAIN: "the maintenance of a device begins",
    What.RESTORE: "the maintenance of a device ends",
    What.SET: "a device is commanded by hand",
    What.BREAK_LOCK: "the lock of a device is broken",
    What.REMEMBER: "something is noted in the audit log",
    What.APPLY: "a version adds, changes and removes routines and devices, or changes settings",
    What.REACH: "all groups are told to work by the newest version at once",
    What.JOIN: "a version adds a node; its machine starts later, with an empty disk and that version",
    What.LEAVE: "a version has a node no more; it ends by itself once it has no seat",
    What.LEAVE_DEAD: "a node is dead, never comes back, and a version has it no more",
    What.LEAVE_NOW: "a version has a node no more, which is stopped at once and never comes back",
    What.REVOKE: "a certificate is revoked; later a machine with an empty disk takes the name and the place",
    What.RESTART_ALL: "all nodes are restarted, each once the one before has joined",
}
"""Explanations for people; docs/simulator.md has them too."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, asked of a node, or of another one if that node does not run."""

    at_ms: float
    what: What
    node: NodeId
    """The node that is asked."""
    request: str
    by: str
    pick: int = 0
    of: NodeId | None = None
    """The node that joins, leaves or is replaced."""
    stale: int = 0
    """How many versions older than the newest known one the applied version builds on."""
    later_ms: float = 0.0
    """Delay until the machine of a node that joins or is replaced starts."""

    def __str__(self) -> str:
        of = "" if self.of is None else f" {self.of}"
        stale = f", {self.stale} behind" if self.stale else ""
        return f"{self.at_ms / 1000:.3f} s  {self.node}: {self.what}{of} ({self.request} by {self.by}{stale})"
