"""Folds the committed history of every group from what its leaders call committed (promises 2 and 3).

A leader tells each entry as it counts it committed, and its whole state when it begins to serve. This must
hold: under one number one entry; no number left out; the state a leader serves is the history so far, plus
entries that were proposed and are committed by being served; a ballot has one leader, a config one
successor, and nobody serves a config whose handoff was committed before it was elected.

What comes late is judged by what its leader could know: one that was paused may tell its commits, or begin to
serve, long after a higher ballot did, and must then fit the history below that ballot.

A reported lossy election cuts the history back to what its leader has. That is a loss, not a violation, if it
was due (`elections`).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from comesh.core.effects import Committed, LeaderChanged
from comesh.core.group.config import Config
from comesh.core.group.ledger import DIGEST_MASK, record_hash
from comesh.core.ids import GroupId, NodeId
from comesh.core.records import Entry, Gone, HandoffRecord, Record
from comesh.core.stamps import FIRST_ERA, Ballot, Era, Fence, RunId
from comesh.sim.checks.chronicle import name_of
from comesh.sim.checks.disks import Lacking, nobody
from comesh.sim.checks.elections import Unfounded, nothing
from comesh.sim.checks.lives import RunsSince, always
from comesh.sim.checks.proposals import Proposals
from comesh.sim.checks.violation import Loss, Promise, Verdicts

KEPT_NUMBERS: Final = 512
"""Number of past entries of one group that late reports are compared with."""
KEPT_REIGNS: Final = 64
"""Maximum leaderships of one group that are remembered."""
UNTOLD: Final = -1
"""Digest of an entry that was committed together with a later one."""

Change = tuple[str, Record | None, Record | None]
"""A record that changed: its key, the record before, the record after."""


class State(NamedTuple):
    """State of a group after an entry. told: its leader counted the entry as committed; otherwise a later
    leader inherited it, or a member knew first, and the effects of its commit did not happen, or not yet."""

    records: dict[str, Record]
    told: bool


class Follower(Protocol):
    """A checker that follows the committed history."""

    def on_entry(self, at_ms: float, group: GroupId, changes: list[Change], state: State) -> None:
        """Called when an entry is committed."""

    def on_state(
        self, at_ms: float, group: GroupId, records: dict[str, Record], *, lossy: bool
    ) -> list[RunId]:
        """Called when another state replaces the history's; returns the runs that are lost with it."""


class Handoff(NamedTuple):
    """The end of a config."""

    number: int
    digest: int
    successor: int
    fence: Fence
    """The leadership that was seen to commit it."""


class Leader(NamedTuple):
    node: NodeId
    mark: int
    ballot: Ballot
    since_ms: float


class GroupHistory:
    """The history of one group: its committed state, and its leaderships."""

    def __init__(self, group: GroupId) -> None:
        self.group = group
        self.number = 0
        self.digest = 0
        self.records: dict[str, Record] = {}
        self.hashes: dict[str, int] = {}
        self.sure = True
        """The fold equals the leaders' state; False after a violation, until a leader reports its state."""
        self.era = FIRST_ERA
        self.reported: set[Era] = set()
        """Eras whose beginning was reported."""
        self.alone: set[tuple[int, Ballot]] = set()
        """Ballots of configs (by mark) in which an operator let one member continue without a quorum."""
        self.known: dict[int, Config] = {}
        self.ended: dict[int, Handoff] = {}
        self.servers: dict[tuple[int, Ballot], tuple[NodeId, float]] = {}
        """Leaders, and since when they lead."""
        self.reigns: dict[Fence, int] = {}
        """Highest number that each leadership was seen to have committed, in order of fences."""
        self.entries: dict[int, Entry] = {}
        self.digests: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        """First state of each config: its digest, without the entry that ended the config before."""
        self.leader: Leader | None = None
        self.left_ms = 0.0
        """Time at which a leader last stopped serving."""
        self._last: tuple[Config | None, int] = (None, 0)

    def mark_of(self, config: Config) -> int:
        """Returns the mark of a config. Hashing is slow and the same config usually repeats, so the last mark
        is kept."""
        if self._last[0] is not config:
            self._last = (config, config.mark)
        return self._last[1]

    def put(self, entry: Entry) -> list[Change]:
        """Append the next entry."""
        changes: list[Change] = []
        for record in entry:
            key = record.key
            before = self.records.pop(key, None)
            self.digest -= self.hashes.pop(key, 0)
            if isinstance(record, Gone):
                changes.append((key, before, None))
            else:
                self.records[key] = record
                self.hashes[key] = record_hash(record)
                self.digest += self.hashes[key]
                changes.append((key, before, record))
        self.digest &= DIGEST_MASK
        self.number += 1
        self.remember(entry)
        return changes

    def replace(self, records: Iterable[Record], number: int) -> None:
        self.records = {record.key: record for record in records}
        self.hashes = {key: record_hash(record) for key, record in self.records.items()}
        self.digest = sum(self.hashes.values()) & DIGEST_MASK
        for gone in [one for one in self.digests if one > number]:
            del self.digests[gone]
        for gone in [one for one in self.entries if one >= number]:
            del self.entries[gone]
        self.number = number
        self.sure = True
        self.digests[number] = self.digest

    def remember(self, entry: Entry) -> None:
        self.entries[self.number] = entry
        self.digests[self.number] = self.digest
        self.entries.pop(self.number - KEPT_NUMBERS, None)
        self.digests.pop(self.number - KEPT_NUMBERS, None)
        self.starts.pop(self.number - KEPT_NUMBERS, None)

    def leave(self, at_ms: float) -> None:
        self.leader, self.left_ms = None, at_ms

    def reign(self, fence: Fence) -> None:
        """Record that this leadership committed all entries up to this number."""
        if fence not in self.reigns:
            self.reigns[fence] = 0
            self.reigns = dict(sorted(self.reigns.items())[-KEPT_REIGNS:])
        self.reigns[fence] = self.number

    def inherited(self, fence: Fence) -> int:
        """Returns the highest number that earlier leaderships have committed."""
        return max((number for one, number in self.reigns.items() if one < fence), default=0)

    def is_late(self, fence: Fence) -> bool:
        """True if a later leadership was seen already."""
        return bool(self.reigns) and fence < next(reversed(self.reigns))


class Histories:
    """Histories of all groups. genesis: the nodes of the first configs, where they are known; runs_since:
    tells which lives run; lacking: finds members that have not written a committed entry; unfounded: says
    what is wrong with a loss."""

    def __init__(
        self,
        verdicts: Verdicts,
        proposals: Proposals,
        followers: tuple[Follower, ...],
        *,
        genesis: dict[GroupId, tuple[NodeId, ...]] | None = None,
        runs_since: RunsSince = always,
        lacking: Lacking = nobody,
        unfounded: Unfounded = nothing,
    ) -> None:
        self._verdicts = verdicts
        self._proposals = proposals
        self._lacking = lacking
        self._unfounded = unfounded
        self._followers = followers
        self._genesis = genesis or {}
        self._runs_since = runs_since
        self.groups: dict[GroupId, GroupHistory] = {}

    def follow(self, follower: Follower) -> None:
        """Add a checker that follows the history, before the first entry."""
        self._followers = (*self._followers, follower)

    def _group(self, group: GroupId) -> GroupHistory:
        history = self.groups.get(group)
        if history is None:
            history = self.groups[group] = GroupHistory(group)
        return history

    def _broken(self, promise: Promise, at_ms: float, history: GroupHistory, what: str) -> None:
        self._verdicts.broken(promise, at_ms, what, group=history.group)

    # -- entries -----------------------------------------------------------------------------------------

    def on_committed(self, at_ms: float, node: NodeId, told: Committed, *, known: bool = False) -> None:
        """Take a committed entry. known: a member reports it, before its leader counts it or after that
        leader died; the effects of its commit come later, or never."""
        history = self._group(told.group)
        mark = history.mark_of(told.config)
        fence = Fence(told.config.number, told.ballot)
        if Era(fence.config, fence.ballot) < history.era:
            return  # a late report: entries of a past era that it had committed are known to be lost
        self._admit(at_ms, node, history, told.config, mark)
        if not known:
            self._one_leader(at_ms, node, history, mark, told.ballot)
        handoff = history.ended.get(mark)
        if handoff is not None and told.number > handoff.number:
            what = (
                f"{node} committed {told.number} in {name_of(told.config)}, which ended at {handoff.number}"
            )
            self._broken(Promise.ONE_HISTORY, at_ms, history, what)
        elif told.number <= history.number:
            self._compare(at_ms, node, history, told)
        else:
            if history.is_late(fence):
                what = f"{node} committed {told.number} under {told.ballot}, but a later leader lacks it"
                self._broken(Promise.INHERITANCE, at_ms, history, what)
            if told.number > history.number + 1:
                what = f"{node} committed {told.number} after {history.number}: numbers were left out"
                self._broken(Promise.ONE_HISTORY, at_ms, history, what)
                history.number, history.sure = told.number - 1, False
            self._test_quorum(at_ms, history, told, mark)
            self._commit(at_ms, history, mark, told.entry, by=fence, told=not known)
            self._test_digest(at_ms, node, history, told)
            history.reign(fence)

    def _commit(
        self, at_ms: float, history: GroupHistory, mark: int, entry: Entry, *, by: Fence, told: bool
    ) -> None:
        changes = history.put(entry)
        self._proposals.settle(mark, history.number)
        if mark in history.ended:
            what = f"entry {history.number} was committed in a config that was handed off at"
            self._broken(Promise.ONE_HISTORY, at_ms, history, f"{what} {history.ended[mark].number}")
        for record in entry:
            if isinstance(record, HandoffRecord):
                successor = record.successor.mark
                history.ended[mark] = Handoff(history.number, history.digest, successor, by)
        for follower in self._followers:
            follower.on_entry(at_ms, history.group, changes, State(history.records, told))

    def _compare(self, at_ms: float, node: NodeId, history: GroupHistory, told: Committed) -> None:
        """Compare an entry under a number that is committed already."""
        entry = history.entries.get(told.number)
        digest = history.digests.get(told.number)
        other = entry is not None and entry is not told.entry and entry != told.entry
        if other or (told.digest not in (UNTOLD, digest) and digest is not None and history.sure):
            what = f"{node} committed another entry as number {told.number} than was committed before"
            self._broken(Promise.ONE_HISTORY, at_ms, history, what)

    def _test_quorum(
        self, at_ms: float, history: GroupHistory, told: Committed | LeaderChanged, mark: int
    ) -> None:
        """Check that f+1 members wrote what is committed or served; nobody need have written the first
        state."""
        if not told.number or (mark, told.ballot) in history.alone:
            return
        lacking = self._lacking(told.config, mark, told.ballot, told.number)
        if lacking:
            what = f"{told.number} counts as committed under ballot {told.ballot}, but is not on the disks of"
            what = f"{what} {', '.join(lacking)}"
            self._broken(Promise.QUORUM, at_ms, history, what)

    def _test_digest(self, at_ms: float, node: NodeId, history: GroupHistory, told: Committed) -> None:
        if history.sure and told.digest not in (UNTOLD, history.digest):
            what = f"{node} has digest {told.digest:x} at {told.number}, the history {history.digest:x}"
            self._broken(Promise.ONE_HISTORY, at_ms, history, what)
            history.sure = False

    # -- leaders -----------------------------------------------------------------------------------------

    def on_leader(self, at_ms: float, node: NodeId, told: LeaderChanged) -> None:
        history = self._group(told.group)
        mark = history.mark_of(told.config)
        if told.state == "lossy":
            self._lose(at_ms, history, told, mark)
            return
        if told.state in ("serving", "handing off"):
            self._begin(at_ms, node, history, told, mark)
        elif history.leader is not None and (history.leader.node, history.leader.mark) == (node, mark):
            history.leave(at_ms)

    def _lose(self, at_ms: float, history: GroupHistory, told: LeaderChanged, mark: int) -> None:
        """Check a loss. It is excused only with a reason of its own; an operator needs none."""
        history.reported.add(told.era)
        if told.alone:
            history.alone.add((mark, told.ballot))
            return
        for what in self._unfounded(told, mark):
            self._broken(Promise.INHERITANCE, at_ms, history, what)

    def _begin(
        self, at_ms: float, node: NodeId, history: GroupHistory, told: LeaderChanged, mark: int
    ) -> None:
        serves = told.state == "serving"
        if not serves and (mark, told.ballot) in history.servers:
            if history.leader is not None and history.leader.node == node:
                history.leave(at_ms)
            return  # it continues, without outside effects
        fence = Fence(told.config.number, told.ballot)
        self._admit(at_ms, node, history, told.config, mark)
        self._one_leader(at_ms, node, history, mark, told.ballot)
        if not self._after_handoff(at_ms, node, history, told, mark):
            if told.era > history.era:
                self._cut(at_ms, node, history, told)
            self._inherit(at_ms, node, history, told, mark)
        if serves and not history.is_late(fence):
            history.leader = Leader(node, mark, told.ballot, at_ms)

    def _after_handoff(
        self, at_ms: float, node: NodeId, history: GroupHistory, told: LeaderChanged, mark: int
    ) -> bool:
        """Returns True if that config was over, so that nothing is left to judge."""
        handoff = history.ended.get(mark)
        if handoff is None:
            return False
        fence = Fence(told.config.number, told.ballot)
        if handoff.fence < fence:
            if told.state == "serving":
                what = (
                    f"{node} serves {name_of(told.config)}, ballot {told.ballot}, after its committed handoff"
                )
                self._broken(Promise.ONE_HISTORY, at_ms, history, what)
            elif (told.number, told.digest) != (handoff.number, handoff.digest):
                what = (
                    f"{node} hands off at {told.number} ({told.digest:x}), the handoff was {handoff.number}"
                )
                self._broken(Promise.INHERITANCE, at_ms, history, f"{what} ({handoff.digest:x})")
        return True

    def _inherit(
        self, at_ms: float, node: NodeId, history: GroupHistory, told: LeaderChanged, mark: int
    ) -> None:
        fence = Fence(told.config.number, told.ballot)
        needs = history.inherited(fence)
        claim = f"{node} is {told.state} with ballot {told.ballot} of {name_of(told.config)}"
        if told.number < needs:
            what = f"{claim} at {told.number}, but {needs} was committed before"
            self._broken(Promise.INHERITANCE, at_ms, history, what)
            return
        if history.is_late(fence):
            known = (history.digests.get(told.number), history.starts.get(told.number), None)
            other = known[0] is not None and told.digest not in known
            if told.number > history.number or (history.sure and other):
                self._broken(
                    Promise.INHERITANCE, at_ms, history, f"{claim}, with another state at {told.number}"
                )
            return
        self._test_quorum(at_ms, history, told, mark)
        if not self._go_on(at_ms, history, told, mark):
            what = (
                f"{claim} at {told.number}, but its state is not what was committed and proposed up to there"
            )
            self._broken(Promise.INHERITANCE, at_ms, history, what)
            self._replace(at_ms, history, told, lossy=False)
        handoff = history.ended.get(mark)
        if told.state == "serving" and handoff is not None:
            what = f"{claim}, but its state has the handoff entry {handoff.number}"
            self._broken(Promise.ONE_HISTORY, at_ms, history, what)
        history.reign(fence)

    def _go_on(self, at_ms: float, history: GroupHistory, told: LeaderChanged, mark: int) -> bool:
        """Extend the history to the state that a leader serves; False: no entries lead there."""
        if sum(map(record_hash, told.records)) & DIGEST_MASK != told.digest:
            return False
        if not history.sure:
            self._replace(at_ms, history, told, lossy=False)
            return True
        if self._reach(at_ms, history, told, mark):
            return True
        record = history.records.get("handoff")
        if isinstance(record, HandoffRecord) and record.successor.mark == mark:
            # A config begins with the state of the one before, without the entry that ended that.
            ended = history.digest
            history.replace((one for one in history.records.values() if one is not record), history.number)
            history.starts[history.number], history.digests[history.number] = history.digest, ended
            return self._reach(at_ms, history, told, mark)
        return False

    def _reach(self, at_ms: float, history: GroupHistory, told: LeaderChanged, mark: int) -> bool:
        if told.number == history.number:
            return told.digest == history.digest
        if not self._proposals.watching:
            self._replace(at_ms, history, told, lossy=False)
            return True
        path = self._proposals.path(mark, history.number, history.hashes, to=told.number, digest=told.digest)
        for entry in path or ():
            self._commit(at_ms, history, mark, entry, by=Fence(told.config.number, told.ballot), told=False)
        return path is not None

    def _cut(self, at_ms: float, node: NodeId, history: GroupHistory, told: LeaderChanged) -> None:
        """Begin a new era: the history continues from the state of its leader."""
        if told.era not in history.reported:
            what = f"{node} serves era {told.era.config}:{told.era.ballot}, whose beginning nobody reported"
            self._broken(Promise.INHERITANCE, at_ms, history, what)
        before = history.number
        history.era = told.era
        history.reigns.clear()
        runs = self._replace(at_ms, history, told, lossy=True)
        # The entry that opens the era was not committed before.
        lost = max(0, before - (told.number - 1))
        self._verdicts.lost(Loss(at_ms, history.group, lost, tuple(runs)))

    def _replace(
        self, at_ms: float, history: GroupHistory, told: LeaderChanged, *, lossy: bool
    ) -> list[RunId]:
        history.replace(told.records, told.number)
        runs: list[RunId] = []
        for follower in self._followers:
            runs.extend(follower.on_state(at_ms, history.group, history.records, lossy=lossy))
        return runs

    # -- configs -----------------------------------------------------------------------------------------

    def _admit(self, at_ms: float, node: NodeId, history: GroupHistory, config: Config, mark: int) -> None:
        """Check that a config is the first of its group, or the one that a committed handoff names."""
        if mark in history.known:
            return
        if not history.known:
            first = self._genesis.get(history.group, config.nodes)
            if config.nodes != first:
                what = f"{node} leads {name_of(config)}, but the group began with {', '.join(first)}"
                self._broken(Promise.ONE_HISTORY, at_ms, history, what)
        elif all(handoff.successor != mark for handoff in history.ended.values()):
            what = f"{node} leads {name_of(config)}, which no committed handoff names"
            self._broken(Promise.ONE_HISTORY, at_ms, history, what)
        history.known[mark] = config

    def _one_leader(
        self, at_ms: float, node: NodeId, history: GroupHistory, mark: int, ballot: Ballot
    ) -> None:
        """Check that one life of one node leads a ballot."""
        first, since_ms = history.servers.setdefault((mark, ballot), (node, at_ms))
        if first != node or not self._runs_since(node, since_ms):
            after = "after a restart" if first == node else f"as did {first}"
            what = f"{node} leads with ballot {ballot} of {name_of(history.known[mark])}, {after}"
            self._broken(Promise.ONE_HISTORY, at_ms, history, what)
            history.servers[mark, ballot] = (node, at_ms)
