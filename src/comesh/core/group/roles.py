"""What a member of a config can be, and every way from one role to another.

`Replica.become` takes no way that is not in this table, and docs/protocol.md draws its diagram from it.
"""

from enum import StrEnum


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
    Role.RECOVERING: "lost power: promises as not whole, acknowledges nothing",
    Role.FOLLOWER: "acknowledges, promises",
    Role.ASKING: "pre-vote: would you promise me?",
    Role.CLAIMING: "collects promises",
    Role.SYNCING: "opens its ballot with the newest state",
    Role.SERVING: "everything: the only role with outside effects",
    Role.HANDING_OFF: "commits the handoff entry, then Start to the successor",
    Role.RETIRED: "answers Moved",
}

WAYS: dict[tuple[Role, Role], str] = {
    (Role.INVITED, Role.SYNCING): "state of the proof flushed, and rank 0",
    (Role.RECOVERING, Role.FOLLOWER): "state from a leader, for its nonce",
    (Role.RECOVERING, Role.ASKING): "no leader answers",
    (Role.FOLLOWER, Role.ASKING): "suspicion",
    (Role.ASKING, Role.FOLLOWER): "a leader is seen",
    (Role.ASKING, Role.RECOVERING): "a leader is seen, and this member is not whole",
    (Role.ASKING, Role.CLAIMING): "f+1 would promise",
    (Role.CLAIMING, Role.FOLLOWER): "refused",
    (Role.CLAIMING, Role.RECOVERING): "refused, and this member is not whole",
    (Role.CLAIMING, Role.SYNCING): "f+1 whole promises; or f+1 not whole, and cold_wait is over (lossy)",
    (Role.SYNCING, Role.SERVING): "f+1 acknowledged",
    (Role.SYNCING, Role.HANDING_OFF): "f+1 acknowledged, and the state ends with a handoff entry",
    (Role.SYNCING, Role.FOLLOWER): "a higher ballot",
    (Role.SERVING, Role.FOLLOWER): "a higher ballot, or gave up",
    (Role.SERVING, Role.HANDING_OFF): "handoff entry proposed",
    (Role.HANDING_OFF, Role.FOLLOWER): "a higher ballot, or gave up",
    (Role.HANDING_OFF, Role.RETIRED): "f+1 of the successor installed",
    (Role.FOLLOWER, Role.RETIRED): "told that a successor is installed",
    (Role.RECOVERING, Role.RETIRED): "told that a successor is installed",
    (Role.ASKING, Role.RETIRED): "told that a successor is installed",
    (Role.CLAIMING, Role.RETIRED): "told that a successor is installed",
    (Role.SYNCING, Role.RETIRED): "told that a successor is installed",
    (Role.SERVING, Role.RETIRED): "told that a successor is installed",
}
