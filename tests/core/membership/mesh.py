"""A mesh of membership nodes in the simulator, with what the tests ask of it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from comesh.core.draws import mix64
from comesh.core.effects import AnnouncementLearned, Effect, MemberChanged, Observation
from comesh.core.events import AnnouncementPosted
from comesh.core.ids import NodeId
from comesh.core.membership import MembershipSettings, Roster
from comesh.core.messages import MemberState
from comesh.core.node import AnyEvent, Node
from comesh.core.selection.hashing import id_hash
from comesh.core.step import Step
from comesh.sim.lives import Life, LifeChange
from comesh.sim.machine import Machine
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Shape, make_topology
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

DEFAULTS = MembershipSettings()


ADOPT = "adopt the roster of this version"


class Adopter(Node):
    """A node that is told of new rosters directly, in place of a deployment version that spreads."""

    def __init__(self, rosters: list[Roster], own: NodeId, membership: MembershipSettings, seed: int) -> None:
        super().__init__(own=own, roster=rosters[-1], membership=membership, seed=seed)
        self._rosters = rosters

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float | None = None) -> list[Effect]:
        if isinstance(event, AnnouncementPosted) and event.key == ADOPT:
            step = Step(now_ms, now_ms if wall_ms is None else wall_ms)
            self.membership.adopt(self._rosters[event.version], step)
            return step.effects
        return super().step(event, now_ms, wall_ms)


class Mesh:
    def __init__(
        self,
        size: int,
        *,
        seed: int = 1,
        loss: float = 0.0,
        settings: MembershipSettings = DEFAULTS,
        shape: Shape = Shape.GRID,
        start_spread_ms: float = 0.0,
        domains: int = 0,
        later: int = 0,
    ) -> None:
        """domains: nodes hang on so many circuits, in turn; 0: each on its own. later: so many nodes, the
        ones in the middle of the order of names, come only with a later deployment version."""
        self.topology = make_topology(shape, devices=size, smart=1.0, seed=seed)
        nodes = self.topology.planned_nodes()
        if domains:
            nodes = tuple(
                msgspec.structs.replace(node, power_domain=f"circuit_{number % domains}")
                for number, node in enumerate(nodes)
            )
        self.nodes = nodes
        first = (size - later) // 2
        self.later = tuple(node.id for node in nodes[first : first + later])
        self.rosters = [Roster(nodes[:first] + nodes[first + later :])]
        stations = {node: at for node, at in self.topology.nodes.items() if node not in self.later}
        self.log: list[tuple[float, NodeId, Observation]] = []
        self.settings = settings

        def make_node(node: NodeId) -> Node:
            seeded = mix64(seed ^ id_hash("node", node))
            return Adopter(self.rosters, node, settings, seeded)

        self.world = World(
            replace(self.topology, nodes=stations),
            make_node,
            seed=seed,
            settings=WorldSettings(
                radio=RadioSettings(loss_per_message=loss), start_spread_ms=start_spread_ms, through_wire=True
            ),
        )
        self.world.topology = self.topology  # later nodes have a place already, but no machine
        self.world.observers.append(lambda at_ms, node, what: self.log.append((at_ms, node, what)))

    @property
    def roster(self) -> Roster:
        """Returns the roster of the newest version."""
        return self.rosters[-1]

    @property
    def ids(self) -> tuple[NodeId, ...]:
        return self.roster.ids

    def adopt(self, *names: str, by: Sequence[str] | None = None) -> None:
        """A new version has just these nodes. Those who run, or those in `by`, hear of it now."""
        self.rosters.append(Roster([node for node in self.nodes if node.id in names]))
        for name, machine in self.world.machines.items():
            if machine.process is not None and (by is None or name in by):
                version = len(self.rosters) - 1
                self.world.give(machine.process, AnnouncementPosted(key=ADOPT, version=version, value=b""))

    def arrive(self, name: str) -> None:
        """Start a node of a later version for the first time."""
        node = NodeId(name)
        self.world.start(self.world.add_machine(name, node, self.topology.nodes[node]))

    @property
    def now_ms(self) -> float:
        return self.world.now_ms

    def machine(self, name: str) -> Machine:
        return self.world.machines[name]

    def node(self, name: str) -> Node:
        process = self.machine(name).process
        assert process is not None, f"{name} is not running"
        assert isinstance(process.node, Node)
        return process.node

    def running(self) -> list[NodeId]:
        return [node for node in self.ids if self.machine(node).process is not None]

    def run(self, seconds: float) -> None:
        self.world.run_until(self.now_ms + 1000 * seconds)

    def run_until(self, condition: Callable[[], bool], within_seconds: float = 60) -> float:
        """Run until the condition holds; returns the seconds, fails if it never does."""
        began_ms = self.now_ms
        while not condition():
            assert self.now_ms - began_ms < 1000 * within_seconds, "it did not happen in time"
            self.run(0.1)
        return (self.now_ms - began_ms) / 1000

    def crash(self, name: str) -> None:
        self.world.crash(self.machine(name))

    def start(self, name: str, *, wiped: bool = False) -> None:
        machine = self.machine(name)
        if wiped:
            self.world.wipe(machine)
        self.world.start(machine)

    def believes(self, observer: str, subject: str) -> MemberState:
        return self.node(observer).membership.beliefs.table.state(self.roster.index[NodeId(subject)])

    def all_believe(self, subject: str, state: MemberState) -> bool:
        return all(self.believes(node, subject) == state for node in self.running() if node != subject)

    def agree(self) -> bool:
        """True if every running node holds the same, correct table."""
        running = self.running()
        tables = {self.node(node).membership.beliefs.table.digest for node in running}
        return len(tables) == 1 and all(
            self.node(node).membership.living == tuple(running) for node in running
        )

    def changes(self, subject: str, state: str) -> list[tuple[float, NodeId]]:
        return [
            (at_ms, node)
            for at_ms, node, what in self.log
            if isinstance(what, MemberChanged) and what.node == subject and what.state == state
        ]

    def false_deaths(self) -> list[tuple[float, NodeId, NodeId]]:
        """Returns which nodes declared which others dead; all are false in runs without deaths."""
        return [
            (at_ms, node, what.node)
            for at_ms, node, what in self.log
            if isinstance(what, MemberChanged) and what.state == "dead"
        ]

    def route(self, name: str, key: str, version: int, value: bytes) -> None:
        process = self.machine(name).process
        assert process is not None
        self.world.give(process, AnnouncementPosted(key=key, version=version, value=value))

    def learned(self, key: str) -> dict[NodeId, list[bytes]]:
        learned: dict[NodeId, list[bytes]] = {}
        for _, node, what in self.log:
            if isinstance(what, AnnouncementLearned) and what.key == key:
                learned.setdefault(node, []).append(what.value)
        return learned

    def posted(self, name: str, key: str) -> bytes | None:
        """Returns the announcement with that key on a node's board."""
        announcement = self.node(name).membership.beliefs.board.get(key)
        return None if announcement is None else announcement.value

    def stopped(self) -> list[Life]:
        """Returns the processes that ended themselves, with their reasons."""
        return [life for life in self.world.lives if life.change is LifeChange.STOPPED]
