"""A simulated mesh that keeps what is measured: proposals, commits, leaders, traces, messages.

Unless another radio is asked for, times are exact: a hop takes 10 ms whatever the size of a message (the
bandwidth is as good as unlimited), nothing is lost, and all nodes start at once. So a time divided by 10 ms
is a number of hops.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from comesh.core.actions import Action, RoutineStep
from comesh.core.effects import Committed, LeaderChanged, Observation, RunTraced
from comesh.core.group.config import Config
from comesh.core.group_messages import InConfig
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.journal import Appended, JournalRecord
from comesh.core.membership import MembershipSettings
from comesh.core.messages import Message
from comesh.core.plan import PlannedRoutine, SelectionSettings
from comesh.core.program import DeviceProgram, Program, ProtocolSettings, RoutineProgram
from comesh.core.selection.planning import make_plan
from comesh.core.stamps import RunId
from comesh.core.strategies import Strategy
from comesh.core.traces import Trace
from comesh.core.work_messages import GroupMessage, Work
from comesh.drivers.virtual.devices import SWITCH, DeviceSpec
from comesh.experiments.measures.histories import Change, Commit, Proposals
from comesh.experiments.measures.presets import Running
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Topology
from comesh.sim.world_settings import WorldSettings

HOP_MS = 10.0
EXACT = RadioSettings(hop_ms=HOP_MS, bandwidth_bytes_per_s=1e15)
FOR_EVER_MS = 1_000_000_000
"""An epoch that never ends."""
FLIGHT_MS = 3000.0


class Sent(NamedTuple):
    at_ms: float
    by: NodeId
    to: NodeId
    message: Message
    size_bytes: int

    @property
    def kind(self) -> str:
        """By what is inside, where groups speak."""
        message = self.message
        return type(message.body if isinstance(message, InConfig | GroupMessage) else message).__name__

    @property
    def group(self) -> GroupId | None:
        """Whose members speak to each other."""
        return self.message.group if isinstance(self.message, InConfig) else None

    @property
    def work(self) -> Work | None:
        return self.message.body if isinstance(self.message, GroupMessage) else None


class Traced(NamedTuple):
    at_ms: float
    node: NodeId
    run: RunId
    trace: Trace


class Mesh:
    """A simulation with everybody joined, and its records."""

    def __init__(
        self,
        topology: Topology,
        program: Program,
        devices: Mapping[DeviceId, DeviceSpec],
        *,
        seed: int,
        radio: RadioSettings = EXACT,
        membership: MembershipSettings | None = None,
        keep_messages: bool = True,
        push: bool = False,
    ) -> None:
        settings = WorldSettings(radio=radio, start_spread_ms=0.0, push=push)
        self.simulation = Simulation(
            topology,
            seed=seed,
            settings=settings,
            membership=membership,
            program=program,
            devices=devices,
            joined=True,
        )
        self.program = program
        self.world = self.simulation.world
        self.commits: list[Commit] = []
        self.changes: list[Change] = []
        self.traces: list[Traced] = []
        self.sent: list[Sent] = []
        self._proposals = Proposals()
        self._leaders: dict[GroupId, tuple[NodeId, Config]] = {}
        self._fired = 0
        self.world.observers.append(self._observe)
        self.world.writers.append(self._written)
        if keep_messages:
            self.world.senders.append(self._note)

    @classmethod
    def of(
        cls,
        topology: Topology,
        program: Program,
        devices: Mapping[DeviceId, DeviceSpec],
        setup: Running,
        *,
        seed: int,
        keep_messages: bool = True,
    ) -> "Mesh":
        """A mesh that runs with what a preset says."""
        radio, membership = setup.radio, setup.membership
        return cls(
            topology,
            program,
            devices,
            seed=seed,
            radio=radio,
            membership=membership,
            keep_messages=keep_messages,
        )

    @property
    def now_ms(self) -> float:
        return self.world.now_ms

    def run(self, seconds: float) -> None:
        self.simulation.run(seconds=seconds)

    def leader(self, group: GroupId) -> NodeId:
        """Who serves it now."""
        return self._leaders[group][0]

    def config(self, group: GroupId) -> Config:
        return self._leaders[group][1]

    def hops(self, one: NodeId, other: NodeId) -> int:
        """Along the shortest path as the mesh is now."""
        if one == other:
            return 0
        nodes = self.world.topology.nodes
        return self.world.radio.routes.length(nodes[one], nodes[other]) >> 16

    def quorum_hops(self, leader: NodeId, members: Iterable[NodeId], quorum: int) -> int:
        """To the f-th nearest other member: its answer makes f+1."""
        away = sorted(self.hops(leader, node) for node in members if node != leader)
        return away[quorum - 2] if quorum > 1 else 0

    def commit_hops(self, group: GroupId) -> int:
        """A round trip to the f-th nearest member of the group as it is now."""
        leader, config = self._leaders[group]
        return 2 * self.quorum_hops(leader, config.nodes, config.quorum)

    def fire(self, routine: RoutineId) -> None:
        """By hand, asked of the node that leads the routine's group: no way to go."""
        self._fired += 1
        leader = self.leader(self.program.group_of_routine[routine])
        self.world.fire(routine, f"bench {self._fired}", leader)

    def _observe(self, now_ms: float, node: NodeId, told: Observation) -> None:
        match told:
            case Committed():
                commit = self._proposals.committed(now_ms, node, told)
                if commit is not None:
                    self.commits.append(commit)
            case LeaderChanged():
                self.changes.append(Change(now_ms, node, told))
                if told.state == "serving":
                    self._leaders[told.group] = (node, told.config)
            case RunTraced():
                self.traces.append(Traced(now_ms, node, told.run, told.trace))
            case _:
                pass

    def _written(self, now_ms: float, node: NodeId, record: JournalRecord) -> None:
        if isinstance(record, Appended):
            self._proposals.written(now_ms, node, record)

    def _note(self, now_ms: float, by: NodeId, to: NodeId, message: Message, size_bytes: int) -> None:
        self.sent.append(Sent(now_ms, by, to, message, size_bytes))


def by_hand(
    topology: Topology,
    selection: SelectionSettings,
    settings: ProtocolSettings,
    routines: Mapping[str, Iterable[DeviceId]],
    strategy: Strategy,
) -> Program:
    """Routines that are fired by hand and switch these devices on, one after the other."""
    programs = {
        RoutineId(name): RoutineProgram(
            id=RoutineId(name),
            strategy=strategy,
            steps=tuple(RoutineStep(device, Action("set", True, expects={"on": True})) for device in devices),
        )
        for name, devices in routines.items()
    }
    planned = [PlannedRoutine(id=name, touches=tuple(sorted(one.commands))) for name, one in programs.items()]
    return Program(
        plan=make_plan(1, selection, topology.planned_nodes(), topology.planned_devices(), planned),
        devices={name: DeviceProgram(id=name, flight_ms=FLIGHT_MS) for name in topology.devices},
        routines=programs,
        settings=settings,
    )


def switches(topology: Topology) -> dict[DeviceId, DeviceSpec]:
    return dict.fromkeys(topology.devices, SWITCH)
