"""Checks lossy elections: whether one was due, and whether it continued from the newest possible state.

Members that are not whole meet nobody for sure, so an election among them may lose what was committed. That
is the exception to inheritance, and therefore judged by itself, from the disks of the config's seats: f+1 of
them must not be whole, as each was when it promised that ballot, and the state that the new era begins with
is the newest of those whose promises it must have had.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from comesh.core.effects import LeaderChanged
from comesh.core.group.config import Seat
from comesh.core.ids import NodeId
from comesh.core.journal import JournalRecord, KeptConfig, Promised
from comesh.core.records import Record
from comesh.core.stamps import Ballot
from comesh.sim.checks.disks import MachineSeen, is_beyond, sits

KEPT_PROMISES: Final = 2000
"""Maximum promises kept, over all members and configs; an election ends long before they are dropped."""
ERA_KEY: Final = "group"
"""Key of the record that an era begins with."""

Unfounded = Callable[[LeaderChanged, int], list[str]]
"""Returns what is wrong with a lossy election of a config (and its mark)."""


def nothing(_: LeaderChanged, __: int) -> list[str]:
    """An `Unfounded` for worlds without disks: every election is accepted."""
    return []


class Standing(NamedTuple):
    """The state of a member when it promised."""

    whole: bool
    state: KeptConfig


class Elections:
    def __init__(self, machines: Mapping[str, MachineSeen]) -> None:
        self._machines = machines
        self._promised: OrderedDict[tuple[int, Ballot, NodeId], Standing] = OrderedDict()

    def on_written(self, at_ms: float, node: NodeId, record: JournalRecord) -> None:
        if not isinstance(record, Promised):
            return
        for machine in self._of(node):
            kept = machine.disk.image().configs.get(record.mark)
            if kept is not None and kept.promised == record.ballot:
                self._promised[record.mark, record.ballot, node] = Standing(kept.whole, kept.copy())
        while len(self._promised) > KEPT_PROMISES:
            self._promised.popitem(last=False)

    def _of(self, node: NodeId) -> list[MachineSeen]:
        """Returns the machines of a node: its own, and those started from copies of its card."""
        return [machine for machine in self._machines.values() if machine.node_id == node]

    def _sitting(self, seat: Seat) -> MachineSeen | None:
        """Returns the machine whose disk holds the seat; None: it is gone, or a copy acts in its place."""
        machines = self._of(seat.node)
        for machine in machines:
            if sits(seat, machine.disk) and (machine.process is not None or len(machines) == 1):
                return machine
        return None

    def unfounded(self, told: LeaderChanged, mark: int) -> list[str]:
        wrong = []
        config = told.config
        whole = [seat.node for seat in config.seats if self._is_whole(seat, told, mark)]
        if len(config.seats) - len(whole) < config.quorum:
            names = ", ".join(whole)
            wrong.append(f"ballot {told.ballot} of {config.group} is lossy, but {names} are whole")
        better = self._newer_promise(told, mark)
        if better:
            era = f"the era of ballot {told.ballot} of {config.group}"
            wrong.append(f"{era} begins at {told.number}, {better}")
        return wrong

    def _is_whole(self, seat: Seat, told: LeaderChanged, mark: int) -> bool:
        """True if the member has its seat and lost nothing, when it promised this ballot or else now."""
        machine = self._sitting(seat)
        if machine is None or (machine.name == seat.node and len(self._of(seat.node)) > 1):
            return False  # the copy of a card may be heard in place of the original
        disk = machine.disk
        standing = self._promised.get((mark, told.ballot, seat.node))
        if standing is not None:
            return standing.whole
        if disk.lost_power:
            return False
        image = disk.image()
        kept = image.configs.get(mark)
        if kept is None:
            return is_beyond(image, told.config)
        return kept.installed and kept.whole

    def _newer_promise(self, told: LeaderChanged, mark: int) -> str:
        """Describe a member with a newer state than the era began with, whose promise the leader must have
        had.

        A leader chooses among f+1 promises or more, its own included. Which ones reached it in time nobody
        else knows, so it is held to the best of those f+1 that have the least.
        """
        began = {record.key: record for record in told.records if record.key != ERA_KEY}
        states = self._states(told, mark)
        promised = sum((mark, told.ballot, seat.node) in self._promised for seat in told.config.seats)
        served = [
            _newness(kept)
            for kept in states.values()
            if kept.number + 1 == told.number and _without_era(kept) == began
        ]
        if not served:
            gone = promised > len(states)  # a disk was lost after its node had promised
            return "" if gone else "with a state that nobody had who promised it"
        nodes = sorted(states, key=lambda node: _newness(states[node]), reverse=True)
        heard = {*nodes[promised - told.config.quorum :], told.config.nodes[told.ballot.rank]}
        for node in nodes:
            if node in heard and _newness(states[node]) > max(served):
                kept = states[node]
                return f"but {node}, who promised it, has {kept.number} of ballot {kept.accepted}"
        return ""

    def _states(self, told: LeaderChanged, mark: int) -> dict[NodeId, KeptConfig]:
        """Returns the states of those that promised this ballot; for its leader, the state it continued
        from."""
        states: dict[NodeId, KeptConfig] = {}
        for rank, seat in enumerate(told.config.seats):
            machine = self._sitting(seat)
            standing = self._promised.get((mark, told.ballot, seat.node))
            if standing is None or machine is None:
                continue
            if rank == told.ballot.rank:
                states[seat.node] = standing.state
                continue
            kept = machine.disk.image().configs.get(mark)
            if kept is not None and kept.promised == told.ballot:
                states[seat.node] = kept
        return states


def _newness(kept: KeptConfig) -> tuple[Ballot, int]:
    return (kept.accepted, kept.number)


def _without_era(kept: KeptConfig) -> dict[str, Record]:
    return {key: record for key, record in kept.records.items() if key != ERA_KEY}
