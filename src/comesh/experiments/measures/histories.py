"""What nodes wrote and told, in order of time: of a simulation, or of real processes by their recordings.

Both are read the same way, so that what is measured means the same in both. Times are in milliseconds by one
clock: the simulation's, or that of the machine, which all its processes share.

What leaders wrote and told is put together: the proposal of an entry and its commit, the end of a config and
the beginning of the next one. Off that the delays of group operations are read (P16), without the
deployment's group:

- quorum: the leader writes an entry -> it counts it as committed;
- election: a candidate writes its claim -> it serves;
- state transfer: the leader of a config proposes its end -> the leader of the next one serves.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from comesh.core.effects import Committed, LeaderChanged, Observation
from comesh.core.group.config import Config
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended, JournalRecord, Promised
from comesh.core.plan import DEPLOYMENT
from comesh.core.records import Entry
from comesh.core.stamps import Ballot
from comesh.runtime.recording import Told, Wrote, observation_of, read, record_of
from comesh.sim.world import World


class Moment(NamedTuple):
    at_ms: float
    who: str
    what: JournalRecord | Observation


class Sample(NamedTuple):
    """One measured delay, and when it ended."""

    at_ms: float
    took_ms: float


def recorded(directory: Path) -> list[Moment]:
    """Of all recordings in a directory."""
    found: list[Moment] = []
    for path in sorted(directory.glob("*.rec")):
        for line in read(path):
            if isinstance(line.what, Wrote):
                found.append(Moment(line.at_us / 1000, line.who, record_of(line.what)))
            elif isinstance(line.what, Told):
                found.append(Moment(line.at_us / 1000, line.who, observation_of(line.what)))
    return sorted(found, key=lambda moment: moment.at_ms)


class Watched:
    """Of a simulated world, from now on."""

    def __init__(self, world: World) -> None:
        self.moments: list[Moment] = []
        world.observers.append(self._note)
        world.writers.append(self._note)

    def _note(self, now_ms: float, node: NodeId, what: JournalRecord | Observation) -> None:
        self.moments.append(Moment(now_ms, node, what))


class Commit(NamedTuple):
    group: GroupId
    leader: NodeId
    config: Config
    proposed_ms: float
    committed_ms: float
    entry: Entry


class Change(NamedTuple):
    at_ms: float
    node: NodeId
    told: LeaderChanged


class Proposals:
    """When each node wrote which entry. Of those who write it, its leader tells that it is committed. The
    ballot tells apart what a node wrote for two leaders under one number."""

    def __init__(self) -> None:
        self._written_ms: dict[tuple[NodeId, int, Ballot, int], float] = {}

    def written(self, at_ms: float, node: NodeId, record: Appended) -> None:
        self._written_ms.setdefault((node, record.mark, record.ballot, record.number), at_ms)

    def committed(self, at_ms: float, node: NodeId, told: Committed) -> Commit | None:
        """None: nobody saw it written."""
        proposed_ms = self._written_ms.pop((node, told.config.mark, told.ballot, told.number), None)
        if proposed_ms is None:
            return None
        return Commit(told.group, node, told.config, proposed_ms, at_ms, told.entry)


def handoffs(changes: Iterable[Change]) -> Iterator[tuple[Change, Change]]:
    """Who ended a config and, after that, who first served the next one."""
    ended: dict[tuple[GroupId, int], Change] = {}
    for change in changes:
        group, number = change.told.group, change.told.config.number
        if change.told.state == "handing off":
            ended.setdefault((group, number), change)
        elif change.told.state == "serving":
            ending = ended.pop((group, number - 1), None)
            if ending is not None:
                yield ending, change


def quorums(moments: Iterable[Moment]) -> list[Sample]:
    found: list[Sample] = []
    proposals = Proposals()
    for at_ms, who, what in moments:
        if isinstance(what, Appended):
            proposals.written(at_ms, NodeId(who), what)
        elif isinstance(what, Committed) and what.group != DEPLOYMENT:
            commit = proposals.committed(at_ms, NodeId(who), what)
            if commit is not None:
                found.append(Sample(at_ms, at_ms - commit.proposed_ms))
    return found


def elections(moments: Sequence[Moment]) -> list[Sample]:
    found: list[Sample] = []
    claimed: dict[tuple[str, int, object], float] = {}
    for at_ms, who, what in moments:
        if isinstance(what, Promised):
            claimed.setdefault((who, what.mark, what.ballot), at_ms)
        elif isinstance(what, LeaderChanged) and what.state == "serving" and what.ballot.round > 0:
            began_ms = claimed.get((who, what.config.mark, what.ballot))
            if began_ms is not None and what.group != DEPLOYMENT:
                found.append(Sample(at_ms, at_ms - began_ms))
    return found


def transfers(moments: Iterable[Moment]) -> list[Sample]:
    changes = (
        Change(at_ms, NodeId(who), what)
        for at_ms, who, what in moments
        if isinstance(what, LeaderChanged) and what.group != DEPLOYMENT
    )
    return [Sample(serving.at_ms, serving.at_ms - ending.at_ms) for ending, serving in handoffs(changes)]
