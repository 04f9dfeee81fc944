"""The swarm: a seed draws a mesh and everything that goes wrong in it; the checkers judge the result.

First a phase in which anything may break, then a quiet one in which everything must go on (TigerBeetle's
habit). The promises of section 9 of the protocol are judged after every event, by `checks`, from the devices'
own view and the committed history; progress in the quiet phase. Every verdict carries the command that
replays it.
"""

import msgspec

from comesh.core.effects import Committed, Observation, RunTraced
from comesh.core.events import ApplyAsked, FireAsked, RecoverAsked
from comesh.core.group.groups import Groups
from comesh.core.group.replica import Replica
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.node import Node
from comesh.core.program import Program
from comesh.core.traces import Fired
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.sim.checks import Checks, Promise, Violation
from comesh.sim.checks.runs import LiveRun
from comesh.sim.engine import Priority
from comesh.sim.machine import Process
from comesh.sim.members import members
from comesh.sim.simulation import Simulation
from comesh.sim.swarm_case import BREAKING_MS, QUIET_MS, Asking, Case, Compiler, Drawing, draw
from comesh.sim.trace import Trace
from comesh.sim.world import NodeFactory, World

PROGRESS_MS = 120_000.0
"""Bound after the last fault within which every group serves and every waiting run starts: a routine may have
eight firings in its queue, which are older than those of its rivals and go first."""
SETTLED_MS = 12_000.0
"""The quiet phase ends this long after the last group came to be served, once no work is left."""
OPERATOR_MS = 20_000.0
"""Time after the last fault after which a group without a quorum gets an operator."""
SLICE_MS = 2000.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a seed. broken: the violations, readable."""

    seed: int
    nodes: int
    faults: int
    events: int
    runs: int
    commits: int
    lossy: int
    quiet_s: float
    simulated_s: float = 0.0
    done: dict[str, int] = {}
    """Number of operations by kind, in swarms that have them."""
    broken: tuple[Violation, ...]

    @property
    def replay(self) -> str:
        return f"comesh fuzz --seeds {self.seed}-{self.seed} --verbose"


class Swarm:
    """One seed, ready to run."""

    breaking_ms = BREAKING_MS

    def __init__(
        self, seed: int, *, case: Case | None = None, trace: Trace | None = None, drawing: Drawing = draw
    ) -> None:
        """Prepare a seed. case: replaces the drawn one; drawing: replaces the swarm's function that draws."""
        drawn, self.topology, self.program, specs = drawing(seed)
        self.case = case or drawn
        self.simulation = Simulation(
            self.topology,
            seed=seed,
            settings=self.case.settings,
            faults=self.case.faults,
            devices=specs,
            make_node=self._nodes(specs),
            trace=trace,
        )
        self.world: World = self.simulation.world
        self.checks = Checks.attach(self.world, self.program)
        self._runs = self._commits = 0
        self._unserved_ms: dict[GroupId, float] = {}
        self.world.observers.append(self._count)
        for asking in self.case.askings:
            self.world.engine.at(asking.at_ms, Priority.ARRIVAL, self._ask, asking)

    def _nodes(self, specs: dict[DeviceId, DeviceSpec]) -> NodeFactory:
        return members(
            self.topology,
            self.case.membership,
            seed=self.case.seed,
            program=self.program,
            compile_text=Compiler(self.case, self.topology, specs),
        )

    def _ask(self, asking: Asking) -> None:
        process = self.world.machines[asking.node].process
        if process is None:
            return
        if asking.routine is not None:
            self.world.give(process, FireAsked(routine=asking.routine, request=asking.request))
        else:
            text = f"version {asking.base + 1}"
            self.world.give(process, ApplyAsked(base=asking.base, text=text, request=asking.request))

    def run(self) -> Verdict:
        checks = self.checks
        world = self.world
        while world.now_ms < self.breaking_ms and not checks.violations:
            self.simulation.run(seconds=min(SLICE_MS, self.breaking_ms - world.now_ms) / 1000)
        progress = checks.progress(PROGRESS_MS)
        progress.begin(world.now_ms)
        settled_ms: float | None = None
        while world.now_ms < self.breaking_ms + QUIET_MS and not checks.violations:
            self._start_all()
            self.simulation.run(seconds=SLICE_MS / 1000)
            progress.judge(world.now_ms)
            self._recover_lost()
            if settled_ms is None and self.settled():
                settled_ms = world.now_ms
            if settled_ms is not None and world.now_ms >= settled_ms + SETTLED_MS and self.rests():
                break
        else:
            self._tell_restless()
        checks.finish()
        return Verdict(
            seed=self.case.seed,
            nodes=len(self.topology.nodes),
            faults=len(self.case.faults.faults),
            events=world.engine.handled,
            runs=self._runs,
            commits=self._commits,
            lossy=len(checks.losses),
            quiet_s=(world.now_ms - self.breaking_ms) / 1000,
            simulated_s=world.now_ms / 1000,
            done=self.done(),
            broken=tuple(checks.violations),
        )

    def done(self) -> dict[str, int]:
        """Returns the number of operations by kind, for the verdict."""
        return {}

    def _start_all(self) -> None:
        """Nodes that left late because they were paused missed their restart; start them again."""
        for node in self.topology.nodes:
            if not self.world.runs(node):
                self.world.start(self.world.machines[node])

    def _recover_lost(self) -> None:
        """Act as an operator for groups whose quorum is lost for good: continue from the newest member."""
        seated: dict[GroupId, list[tuple[Process, Replica]]] = {}
        for process, groups in self._groups():
            for replica in groups.replicas.values():
                seated.setdefault(replica.config.group, []).append((process, replica))
        served = {group for _, groups in self._groups() for group in groups.served}
        for group, replicas in sorted(seated.items()):
            newest = max(replica.config.number for _, replica in replicas)
            left = [one for one in replicas if one[1].config.number == newest]
            if group in served:
                self._unserved_ms[group] = self.world.now_ms
                continue
            unserved_ms = self.world.now_ms - self._unserved_ms.setdefault(group, self.world.now_ms)
            if unserved_ms >= OPERATOR_MS and self._is_lost([replica for _, replica in left]):
                process, _ = max(left, key=lambda one: (one[1].accepted, one[1].ledger.number))
                self.world.give(process, RecoverAsked(group=group))

    def _is_lost(self, left: list[Replica]) -> bool:
        """True if the remaining members of a config are no quorum."""
        return len(left) < left[0].config.quorum

    def _groups(self) -> list[tuple[Process, Groups]]:
        """Returns the groups of every running node."""
        processes = [machine.process for machine in self.world.machines.values()]
        return [
            (process, process.node.groups)
            for process in processes
            if process is not None and isinstance(process.node, Node) and process.node.groups is not None
        ]

    def _count(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        if isinstance(observation, Committed):
            self._commits += 1
        elif isinstance(observation, RunTraced) and isinstance(observation.trace, Fired):
            self._runs += 1

    def settled(self) -> bool:
        """True if every group is served, and nothing that waited at the end of the faults still does."""
        return not self._unserved() and all(run.since_ms > self.breaking_ms for run in self._live())

    def rests(self) -> bool:
        """True if every group is served and no run is left; triggers have long stopped."""
        return not self._restless()

    def _tell_restless(self) -> None:
        """Report that the quiet phase never came to rest."""
        stuck = self._restless()
        if stuck and not self.checks.violations:
            what = f"at the end of the quiet phase {', '.join(stuck)}"
            self.checks.broken(Promise.PROGRESS, self.world.now_ms, what)

    def _restless(self) -> list[str]:
        """Describe the work that is left."""
        stuck = [f"nobody serves {group}" for group in sorted(self._unserved())]
        return stuck + [f"{live.run} is live" for live in self._live()]

    def _unserved(self) -> set[GroupId]:
        served = {group for _, groups in self._groups() for group in groups.served}
        return set(self._newest().plan.genesis) - served

    def _newest(self) -> Program:
        """Returns the deployment version whose groups must be served: the first one has them all."""
        return self.program

    def _live(self) -> list[LiveRun]:
        return [run for runs in self.checks.runs.live.values() for run in runs.values()]


def run_seed(seed: int) -> Verdict:
    """Draw the case, run its faults, let the mesh recover, and judge."""
    return Swarm(seed).run()
