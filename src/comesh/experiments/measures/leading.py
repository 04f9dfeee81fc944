"""What leaders of groups wrote and told, put together: the proposal of an entry and its commit, the end of a
config and the beginning of the next one. Of a simulation while it runs, or of a history."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from comesh.core.effects import Committed, LeaderChanged
from comesh.core.group.config import Config
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended
from comesh.core.records import Entry
from comesh.core.stamps import Ballot


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
