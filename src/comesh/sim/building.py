"""Runs a deployment document in virtual time: its nodes are processes, its devices are virtual.

Everything runs as it would: groups replicate, lead and hand over, routines fire and act. The promises of the
protocol are checked all the while.
"""

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.program import Program
from comesh.core.values import Value
from comesh.deployment.model import Deployment
from comesh.deployment.program import load_program, program_of
from comesh.drivers.virtual.document_devices import device_specs
from comesh.sim.checks import Checks
from comesh.sim.fault_model import Fault
from comesh.sim.fault_schedules import Schedule, inject
from comesh.sim.group_watch import GroupNow, LiveGroups
from comesh.sim.protocol_watch import ProtocolWatch
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.topology import topology_of_plan
from comesh.sim.world_settings import WorldSettings

MAX_COMPILED = 32


class Compiler:
    """Compiles each newer version of a document once, for all nodes of a simulation."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], Program] = {}

    def __call__(self, text: str, version: int, previous: Program) -> Program:
        key = (text, version)
        if key not in self._made:
            program = load_program(text, version, previous)
            while len(self._made) >= MAX_COMPILED:
                del self._made[next(iter(self._made))]
            self._made[key] = program
        return self._made[key]


class Building:
    def __init__(self, deployment: Deployment, *, seed: int) -> None:
        self.deployment = deployment
        self.program = program_of(deployment)
        self.plan = self.program.plan
        self.simulation = Simulation(
            topology_of_plan(self.plan),
            seed=seed,
            settings=WorldSettings(
                radio=RadioSettings(hop_ms=deployment.settings.hop_ms), strict=self.program.settings.strict
            ),
            membership=MembershipSettings(period_ms=deployment.settings.membership_period_ms),
            devices=device_specs(deployment, seed),
            program=self.program,
            compile_text=Compiler(),
        )
        self.world = self.simulation.world
        self.checks = Checks.attach(self.world, self.program)
        self.protocol = ProtocolWatch(self.world, self.plan.genesis)
        self._groups = LiveGroups(self.world, self.plan)

    @property
    def groups(self) -> dict[GroupId, GroupNow]:
        """Returns the members and leader of each group."""
        return self._groups.now

    @property
    def epoch(self) -> int:
        return int(self.world.now_ms // self.deployment.settings.epoch_ms)

    def run(self, seconds: float) -> None:
        """Run for this long, then refresh the groups."""
        self.simulation.run(seconds=seconds)
        self._groups.look()

    def happen(self, *faults: Fault) -> None:
        inject(self.world, Schedule(faults))

    def running(self) -> list[NodeId]:
        return self._groups.running()

    def views(self) -> dict[NodeId, tuple[NodeId, ...]]:
        """Returns the nodes that each running node believes to be alive."""
        return self._groups.views()

    def agrees(self) -> bool:
        """True if every running node knows exactly which nodes run."""
        running = tuple(self.running())
        return all(view == running for view in self.views().values())

    def serves(self, group: GroupId) -> bool:
        """True if a node leads the group and a majority of its members runs."""
        now = self.groups[group]
        majority = 2 * sum(self.world.runs(node) for node in now.members) > len(now.members)
        return now.leader is not None and majority

    def readings(self, device: DeviceId) -> dict[str, Value]:
        """Returns the true readings of a device by name."""
        return self.world.devices[device].readings()
