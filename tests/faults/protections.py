"""Every protection of the protocol, how a test takes it away, and what then breaks.

A protection is taken away by replacing one small method of the core, for as long as a seed runs; production
code has no switch for it. A swarm then has to find a broken promise: a checker that finds nothing when a
protection is gone would find nothing when it is broken by mistake either.

protection_seeds.json has seeds that show each. What a seed draws changes with the swarm, and what it meets
changes with the core, so that they go stale; `find_protections.py` finds new ones and writes them down.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import msgspec
from focused_swarm import (
    CUTS,
    EVENTS,
    GRANTS,
    LATE,
    PROMISES,
    STALLS,
    SUCCESSORS,
    TAILS,
    Flapping,
    Focus,
    FocusedSwarm,
)

from comesh.core.devices import calls, lock_queue, locks
from comesh.core.devices.cluster import Cluster
from comesh.core.devices.event_feeds import EventFeeds
from comesh.core.group.election import Election
from comesh.core.group.groups import Groups
from comesh.core.group.handoff import Handoff
from comesh.core.group.leadership import Leadership
from comesh.core.group.member import Member
from comesh.core.group.replica import Replica
from comesh.core.group.serving import Serving
from comesh.core.membership.medley import Medley
from comesh.core.records import Stage
from comesh.core.routines.answers import Answers
from comesh.core.routines.triggers import Triggers
from comesh.sim import membership_swarm
from comesh.sim.checks import Promise
from comesh.sim.swarm import Swarm

MEMBERSHIP: Final = "membership agrees"
"""What the swarm of membership judges: all believe the same, and it is true."""

UNDISTURBED: Final = "healthy leaders stay"
"""Who was cut off and comes back deposes nobody that a quorum follows."""


class Finding(msgspec.Struct, frozen=True):
    """A promise that a seed broke, and how."""

    promise: str
    what: str


Judge = Callable[[int], tuple[Finding, ...]]


def of_groups(seed: int) -> tuple[Finding, ...]:
    """The swarm of groups, up to its first violation."""
    return tuple(Finding(str(one.promise), one.what) for one in Swarm(seed).run().broken)


def of_membership(seed: int) -> tuple[Finding, ...]:
    return tuple(Finding(MEMBERSHIP, what) for what in membership_swarm.run_seed(seed).broken)


def of_focus(focus: Focus) -> Judge:
    """A focused swarm, up to its first violation."""

    def judge(seed: int) -> tuple[Finding, ...]:
        broken = FocusedSwarm(seed, focus).run().broken
        return tuple(Finding(str(one.promise), one.what) for one in broken)

    return judge


def of_flapping(seed: int) -> tuple[Finding, ...]:
    swarm = Flapping(seed)
    broken = swarm.run().broken
    return (
        *(Finding(str(one.promise), one.what) for one in broken),
        *(Finding(UNDISTURBED, what) for what in swarm.disturbed),
    )


class Protection(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    what: str
    """What it is, and what happens without it."""
    off: Callable[[], AbstractContextManager[None]]
    """While this is entered, it is not there."""
    breaks: frozenset[str]
    """The promises of which one breaks first."""
    judge: Judge = of_groups


@contextmanager
def replaced(owner: Any, name: str, by: Any) -> Iterator[None]:
    """Another method, function or property in the place of one that is there."""
    before = vars(owner)[name]
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, before)


def replacing(owner: Any, name: str, by: Any) -> Callable[[], AbstractContextManager[None]]:
    return lambda: replaced(owner, name, by)


def _always(*_: Any, **__: Any) -> bool:
    return True


def _never(*_: Any, **__: Any) -> bool:
    return False


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _revoke(self: Any, device: Any, hold: Any, wounded: Any, step: Any) -> None:
    """Take the lock back instead of asking for it."""
    self.free(device, hold.run, hold.attempt, step)


def _is_not_ending(self: Any, run: Any) -> bool:
    return run.stage is not Stage.RELEASING_LOCKS


def _is_of_run(one: Any, run: Any, attempt: int) -> bool:
    return bool(one.run == run)


def _send_and_write(self: Any, entry: Any, waiting: Any, step: Any) -> None:
    self._send_with_messages(waiting, step)
    self.member.persist(entry, self.ballot, step)


def _by_number(self: Any, promise: Any, rank: int) -> Any:
    return (promise.number, rank == self._member.rank)


_OF_LATE, _OF_STALLS, _OF_EVENTS = of_focus(LATE), of_focus(STALLS), of_focus(EVENTS)
_SAFETY, _HISTORY, _INHERITANCE = str(Promise.SAFETY), str(Promise.ONE_HISTORY), str(Promise.INHERITANCE)
_LOSS, _PROGRESS, _STRAY = str(Promise.NO_LOSS), str(Promise.PROGRESS), str(Promise.NO_STRAY)
_ONCE, _QUORUM = str(Promise.FIRED_ONCE), str(Promise.QUORUM)
_CHAIN = frozenset({_HISTORY, _INHERITANCE, _QUORUM})
"""One history, and whoever leads has all of it."""
_LOCKS = frozenset({_SAFETY, _STRAY})

PROTECTIONS: Final = (
    # -- inside a config
    Protection(
        name="ballot check",
        what="a member refuses what comes under a lower ballot than it promised",
        off=replacing(Replica, "_is_outdated", _never),
        breaks=_CHAIN,
    ),
    Protection(
        name="promised ballot flushed",
        what="a promise is on disk before it is said: after a power loss nobody is promised the same again",
        off=replacing(Member, "_flushes_promises", _never),
        breaks=_CHAIN,
        judge=of_focus(PROMISES),
    ),
    Protection(
        name="order of updates",
        what="an update is accepted only after the one before it, of the same ballot",
        off=replacing(Replica, "_follows", _always),
        breaks=_CHAIN,
    ),
    Protection(
        name="newest accepted ballot",
        what="of the promised states the one with the highest accepted ballot is taken, not the longest",
        off=replacing(Election, "_newness", _by_number),
        breaks=_CHAIN,
        judge=of_focus(CUTS),
    ),
    Protection(
        name="whole members elect",
        what="the promise of a member that lost power, and so perhaps updates, does not count",
        off=replacing(Election, "_counts", _always),
        breaks=_CHAIN,
        judge=of_focus(TAILS),
    ),
    Protection(
        name="lease",
        what="a leader that f members may have left sends no command",
        off=replacing(Leadership, "_lease_for_ms", lambda self: 60_000.0),
        breaks=_LOCKS,
        judge=_OF_STALLS,
    ),
    Protection(
        name="pre-vote",
        what="only who would be promised by f+1 claims: who was cut off does not depose a healthy leader",
        off=replacing(Election, "_is_prevoted", _always),
        breaks=frozenset({UNDISTURBED}),
        judge=of_flapping,
    ),
    Protection(
        name="commit before outside effects",
        what="a grant, a command, a firing is said only when what it rests on is committed",
        off=replacing(Serving, "_waits_for", property(lambda self: self.committed)),
        breaks=_CHAIN | _LOCKS | {_LOSS},
    ),
    Protection(
        name="messages where two decide",
        what="a member acts on a message that came with an update only where its leader and it are a quorum",
        off=replacing(Member, "completes_quorum", _always),
        breaks=_CHAIN | _LOCKS,
    ),
    Protection(
        name="messages after writing",
        what="a leader has written what it sends messages with: the member counts on that",
        off=replacing(Leadership, "_write_and_send", _send_and_write),
        breaks=_CHAIN | _LOCKS,
    ),
    # -- from config to config
    Protection(
        name="handoff entry is the last",
        what="from proposing the handoff on a leader serves nobody and proposes nothing",
        off=replacing(Handoff, "_end_serving", _nothing),
        breaks=_CHAIN,
    ),
    Protection(
        name="handoff entry ends the config",
        what="whoever comes to lead a config that holds the entry starts its successor, and does not serve",
        off=replacing(Leadership, "_holds_handoff", _never),
        breaks=_CHAIN,
    ),
    Protection(
        name="Ready before commit",
        what="a handoff is proposed only when f+1 of the new members have the base on disk",
        off=replacing(Handoff, "_is_enough", _always),
        breaks=frozenset({_PROGRESS}),
        judge=of_focus(SUCCESSORS),
    ),
    Protection(
        name="tombstone",
        what="who left a config knows for ever that it is over, and cannot be seated in it again",
        off=replacing(Groups, "_bury", _nothing),
        breaks=_CHAIN,
    ),
    # -- locks and commands
    Protection(
        name="attempt in lock messages",
        what="a release frees the attempts up to its own: a late one does not free a live lock",
        off=replacing(lock_queue, "_is_of", _is_of_run),
        breaks=_LOCKS,
        judge=_OF_LATE,
    ),
    Protection(
        name="irrevocable grant",
        what="a device's group asks a younger holder to give back, and never takes",
        off=replacing(locks.Locks, "_send_wound", _revoke),
        breaks=_LOCKS,
    ),
    Protection(
        name="who executes ignores wounds",
        what="a run that executes keeps its locks to its end",
        off=replacing(Answers, "_gives_back", _is_not_ending),
        breaks=_LOCKS,
    ),
    Protection(
        name="fence",
        what="a leader of a routine that another one followed commands nothing any more",
        off=replacing(calls, "_is_fenced_off", _never),
        breaks=_LOCKS,
        judge=_OF_LATE,
    ),
    Protection(
        name="quiescing",
        what="a device is not granted while a command of a former holder may still land",
        off=replacing(locks, "is_quiet", _always),
        breaks=_LOCKS,
        judge=_OF_STALLS,
    ),
    Protection(
        name="reconciliation",
        what="after an outage a device is granted to nobody until all who may hold it were asked",
        off=replacing(Cluster, "is_settled", _always),
        breaks=_LOCKS,
        judge=of_focus(GRANTS),
    ),
    # -- events
    Protection(
        name="event high-water mark",
        what="a routine knows which events it took: one that comes again fires nothing",
        off=replacing(Triggers, "_is_taken", _never),
        breaks=frozenset({_ONCE}),
        judge=_OF_EVENTS,
    ),
    Protection(
        name="event tokens",
        what="a device's group knows which events it took: a report that comes again is not another event",
        off=replacing(EventFeeds, "_is_known", _never),
        breaks=frozenset({_ONCE}),
        judge=_OF_EVENTS,
    ),
    # -- membership
    Protection(
        name="refutation",
        what="a node that is suspected contradicts with a higher incarnation",
        off=replacing(Medley, "_refute", _nothing),
        breaks=frozenset({MEMBERSHIP}),
        judge=of_membership,
    ),
    Protection(
        name="voices of older lives",
        what="a message of an earlier life of a node is no sign of life, and is not acted on",
        off=replacing(Medley, "_is_past", _never),
        breaks=frozenset({MEMBERSHIP}),
        judge=of_membership,
    ),
)
