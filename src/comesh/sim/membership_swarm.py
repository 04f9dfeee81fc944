"""The membership swarm: a seed draws a mesh and everything that goes wrong in it; checkers judge the result.

A seed decides size (from a single node on), shape, power domains, radio, clocks, membership settings, a
schedule of faults, and announcements that some nodes post while things break. First comes a phase in which
anything may break, then a quiet one in which the mesh has to recover (TigerBeetle's habit). What is checked
of membership:

- *agreement*: within RECOVERY_MS of the last fault all running nodes hold one table, its living members
  are those that run, and none is suspect; their boards of announcements are the same (what was posted a
  moment before its node crashed may be on none);
- *calm*: from then on no life that runs is buried, except where a card was copied: that name's address
  may have to be learned again;
- *one of each name*: at the end one process per name runs, and a process only ever ended itself because
  it was asked to, or because another one of its name runs or did a moment ago (RIVAL_MS).

Every verdict carries the command that replays it.
"""

import dataclasses

import msgspec

from comesh.core.draws import Draws
from comesh.core.effects import MemberChanged, Observation
from comesh.core.events import AnnouncementPosted
from comesh.core.ids import NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.messages import Announcement, MemberState
from comesh.core.node import Node
from comesh.core.streams import stream
from comesh.sim.engine import Priority
from comesh.sim.fault_schedules import RandomFaults, Schedule, draw_rates, random_schedule, without_copies
from comesh.sim.lives import LifeChange
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Shape, Topology, make_topology
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

BREAKING_MS = 60_000.0
RECOVERY_MS = 120_000.0
CALM_MS = 30_000.0
RIVAL_MS = 5_000.0
MAX_NODES = 40
MAX_POWER_DOMAINS = 4
MAX_ANNOUNCEMENTS = 12


class Posting(msgspec.Struct, frozen=True):
    """A node posts an announcement, if it runs then."""

    at_ms: float
    node: NodeId
    announcement: AnnouncementPosted


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The case that a seed draws."""

    seed: int
    topology: str
    nodes: int
    settings: WorldSettings
    membership: MembershipSettings
    faults: Schedule
    postings: tuple[Posting, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a seed. broken: one line per promise that did not hold."""

    seed: int
    nodes: int
    faults: int
    events: int
    recovered_after_s: float | None
    simulated_s: float = 0.0
    broken: tuple[str, ...]

    @property
    def replay(self) -> str:
        return f"comesh fuzz --seeds {self.seed}-{self.seed} --verbose"


def draw_topology(draws: Draws, seed: int) -> Topology:
    shape = draws.choice([Shape.GRID, Shape.RANDOM, Shape.CLUSTERED, Shape.LINE])
    nodes = 1 + draws.below(MAX_NODES)
    topology = make_topology(shape, devices=nodes, smart=1.0, seed=seed)
    return dataclasses.replace(topology, power_domains=_draw_domains(topology, seed))


def _draw_domains(topology: Topology, seed: int) -> dict[str, tuple[NodeId, ...]]:
    """Draw power domains: in every second case, each node is in one of a few domains, or in none."""
    draws = stream(seed, "swarm power")
    if draws.chance(0.5):
        return {}
    names = [f"p{number}" for number in range(1 + draws.below(MAX_POWER_DOMAINS))]
    drawn = {node: draws.choice(["", *names]) for node in sorted(topology.nodes)}
    domains = {name: tuple(node for node in drawn if drawn[node] == name) for name in names}
    return {name: nodes for name, nodes in domains.items() if nodes}


def _draw_postings(topology: Topology, seed: int) -> tuple[Posting, ...]:
    """Draw postings: a few keys with rising versions, each from any node."""
    draws = stream(seed, "swarm notices")
    nodes = sorted(topology.nodes)
    times_ms = sorted(
        round(draws.between(0.0, BREAKING_MS), 3) for _ in range(draws.below(MAX_ANNOUNCEMENTS + 1))
    )
    return tuple(
        Posting(
            at_ms,
            draws.choice(nodes),
            AnnouncementPosted(
                key=draws.choice(["one", "two"]), version=version, value=bytes(draws.below(200))
            ),
        )
        for version, at_ms in enumerate(times_ms, start=1)
    )


def draw(seed: int) -> tuple[Case, Topology]:
    """Draw the case of a seed; the same seed always gives the same case."""
    draws = stream(seed, "swarm")
    topology = draw_topology(draws, seed)
    settings = WorldSettings(
        radio=RadioSettings(
            hop_ms=draws.choice([1.0, 5.0, 10.0]),
            loss_per_message=draws.choice([0.0, 0.0, 0.01, 0.05]),
            duplicate=draws.choice([0.0, 0.0, 0.02]),
            reorder=draws.choice([0.0, 0.0, 0.05]),
        ),
        skew_ms=draws.choice([0.0, 0.0, 60_000.0]),
        drift_ppm=draws.choice([0.0, 100.0, 10_000.0]),
        start_spread_ms=draws.choice([0.0, 1000.0, 20_000.0]),
        through_wire=True,
    )
    per_minute = draw_rates(draws, seed, lambda _: [0.0, 0.0, 1.0, 3.0, 6.0])
    wanted = RandomFaults(
        run_ms=BREAKING_MS + RECOVERY_MS + CALM_MS, quiet_ms=RECOVERY_MS + CALM_MS, per_minute=per_minute
    )
    # A copy that wins has another address than the deployed one. With nobody at the deployed addresses, a
    # new node has no way to find anybody, and no protocol could help it.
    most_copies = max(1, len(topology.nodes) // 3)
    case = Case(
        seed=seed,
        topology=topology.name,
        nodes=len(topology.nodes),
        settings=settings,
        membership=MembershipSettings(spatial=draws.chance(0.8)),
        faults=without_copies(random_schedule(topology, wanted, seed), most_copies),
        postings=_draw_postings(topology, seed),
    )
    return case, topology


def run_seed(seed: int) -> Verdict:
    """Draw the case, run its faults, let the mesh recover, and judge."""
    case, topology = draw(seed)
    simulation = Simulation(
        topology,
        seed=seed,
        settings=case.settings,
        membership=case.membership,
        joined=False,
        faults=case.faults,
    )
    for posting in case.postings:
        simulation.world.engine.at(posting.at_ms, Priority.ARRIVAL, _post, simulation.world, posting)
    judge = Judge(simulation)
    simulation.run(seconds=BREAKING_MS / 1000)
    recovered_after_s = judge.wait_for_agreement()
    judge.calm = True
    simulation.run(seconds=CALM_MS / 1000)
    return Verdict(
        seed=seed,
        nodes=case.nodes,
        faults=len(case.faults.faults),
        events=simulation.world.engine.handled,
        recovered_after_s=recovered_after_s,
        simulated_s=simulation.world.now_ms / 1000,
        broken=tuple(judge.verdict()),
    )


def _post(world: World, posting: Posting) -> None:
    process = world.machines[posting.node].process
    if process is not None:
        world.give(process, posting.announcement)


class Judge:
    """Checks the promises of a run."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._buried: list[str] = []
        self._late: list[str] = []
        self.calm = False
        self._world.observers.append(self._on_observation)

    def wait_for_agreement(self) -> float | None:
        """Returns the seconds of the quiet phase until all agreed, or None."""
        began_ms = self._world.now_ms
        while disagreement := self._disagreement():
            if self._world.now_ms - began_ms >= RECOVERY_MS:
                self._late.append(
                    f"no agreement {RECOVERY_MS / 1000:.0f} s after the last fault: {disagreement}"
                )
                return None
            self._simulation.run(seconds=1)
        return (self._world.now_ms - began_ms) / 1000

    def verdict(self) -> list[str]:
        untruth = self._wrong_view() or self._other_boards()
        if untruth and not self._late:
            self._late.append(f"agreement was lost in the calm: {untruth}")
        return [*self._late, *self._buried, *self._wrong_counts(), *self._wrong_stops()]

    def _on_observation(self, now_ms: float, observer: NodeId, observation: Observation) -> None:
        if not self.calm or not isinstance(observation, MemberChanged) or observation.state != "dead":
            return
        machines = [m for m in self._world.machines.values() if m.node_id == observation.node]
        node = machines[0].process.node if len(machines) == 1 and machines[0].process is not None else None
        if isinstance(node, Node) and node.membership.incarnation.life == observation.incarnation.life:
            self._buried.append(f"at {now_ms / 1000:.3f} s {observer} buried {observation.node}, which runs")

    def _running(self) -> dict[NodeId, list[Node]]:
        running: dict[NodeId, list[Node]] = {}
        for machine in self._world.machines.values():
            if machine.process is not None and isinstance(machine.process.node, Node):
                running.setdefault(machine.node_id, []).append(machine.process.node)
        return running

    def _disagreement(self) -> str:
        return self._wrong_view() or self._suspicion() or self._difference() or self._other_boards()

    def _wrong_view(self) -> str:
        """Describe a running node whose list of living nodes is wrong; empty if there is none."""
        running = self._running()
        truth = tuple(sorted(running))
        for node_id, nodes in sorted(running.items()):
            if len(nodes) > 1:
                return f"{len(nodes)} processes run as {node_id}"
            living = nodes[0].membership.living
            if living != truth:
                missing, extra = sorted(set(truth) - set(living)), sorted(set(living) - set(truth))
                return f"{node_id} misses {missing} and believes in {extra}"
        return ""

    def _difference(self) -> str:
        """Describe two running nodes whose tables differ; empty if there are none."""
        running = sorted(self._running().items())
        digests = {nodes[0].membership.beliefs.table.digest: node_id for node_id, nodes in running}
        return (
            f"tables differ, as between {' and '.join(sorted(digests.values())[:2])}"
            if len(digests) > 1
            else ""
        )

    def _other_boards(self) -> str:
        """Describe two running nodes whose announcements differ; empty if there are none."""
        boards: dict[tuple[Announcement, ...], NodeId] = {}
        for node_id, nodes in sorted(self._running().items()):
            board = sorted(nodes[0].membership.beliefs.board, key=lambda announcement: announcement.key)
            boards.setdefault(tuple(board), node_id)
        return (
            f"boards differ, as between {' and '.join(sorted(boards.values())[:2])}"
            if len(boards) > 1
            else ""
        )

    def _suspicion(self) -> str:
        """Describe a suspicion that is still open somewhere; empty if there is none."""
        for node_id, nodes in sorted(self._running().items()):
            table = nodes[0].membership.beliefs.table
            for number in table.living_numbers():
                if table.state(number) == MemberState.SUSPECT:
                    return f"{node_id} suspects {table.roster.ids[number]}"
        return ""

    def _wrong_counts(self) -> list[str]:
        """Describe names with no process, or several, at the end; nodes that left may be absent."""
        running = self._running()
        last = {self._world.machines[life.machine].node_id: life for life in self._world.lives}
        return [
            f"{len(running.get(node_id, []))} processes run as {node_id} at the end"
            for node_id in sorted(self._world.topology.nodes)
            if len(running.get(node_id, [])) != 1 and not last[node_id].why.endswith("as asked")
        ]

    def _wrong_stops(self) -> list[str]:
        """Describe processes that stopped for a rival that did not exist."""
        wrong: list[str] = []
        running: dict[str, set[str]] = {}
        ended_ms: dict[str, float] = {}
        for life in self._world.lives:
            node_id = self._world.machines[life.machine].node_id
            alive = running.setdefault(node_id, set())
            if life.change is LifeChange.STARTED:
                alive.add(life.machine)
                continue
            alive.discard(life.machine)
            lately = life.at_ms - ended_ms.get(node_id, float("-inf")) < RIVAL_MS
            ended_ms[node_id] = life.at_ms
            gave_way = life.change is LifeChange.STOPPED and "another process" in life.why
            if gave_way and not alive and not lately:
                wrong.append(f"at {life.at_ms / 1000:.3f} s {life.machine} gave way to nobody: {life.why}")
        return wrong
