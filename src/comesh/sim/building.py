"""A deployment document brought to life in virtual time: its nodes as processes, its devices as virtual ones.

Groups follow the clock: `group_watch.py` says how.
"""

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.values import Value
from comesh.deployment.model import Deployment
from comesh.deployment.outlook import Members
from comesh.deployment.planning import plan_of
from comesh.sim.document_devices import device_specs
from comesh.sim.faults import Fault, Schedule
from comesh.sim.group_watch import EpochGroups
from comesh.sim.injection import inject
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.topology import topology_of_plan
from comesh.sim.world import WorldSettings


class Building:
    def __init__(self, deployment: Deployment, *, seed: int) -> None:
        self.deployment = deployment
        self.plan = plan_of(deployment)
        self.simulation = Simulation(
            topology_of_plan(self.plan),
            seed=seed,
            settings=WorldSettings(radio=RadioSettings(hop_ms=deployment.settings.hop_ms)),
            membership=MembershipSettings(period_ms=deployment.settings.membership_period_ms),
            devices=device_specs(deployment, seed),
        )
        self.world = self.simulation.world
        self._groups = EpochGroups(self.world, self.plan, deployment.settings.epoch_ms)

    @property
    def groups(self) -> Members:
        """The members of each group in this epoch."""
        return self._groups.members

    @property
    def epoch(self) -> int:
        return self._groups.epoch

    def run(self, seconds: float) -> None:
        """Go on for this long, and select the groups anew where an epoch has passed."""
        self.simulation.run(seconds=seconds)
        self._groups.follow()

    def happen(self, *faults: Fault) -> None:
        inject(self.world, Schedule(faults))

    def running(self) -> list[NodeId]:
        return self._groups.running()

    def views(self) -> dict[NodeId, tuple[NodeId, ...]]:
        """Whom each running node believes to live."""
        return self._groups.views()

    def agrees(self) -> bool:
        """Does every running node know exactly who runs?"""
        running = tuple(self.running())
        return all(view == running for view in self.views().values())

    def living(self) -> tuple[NodeId, ...]:
        """What most running nodes believe."""
        return self._groups.living()

    def can_act(self, group: GroupId) -> bool:
        """Does a majority of a group's members run?"""
        members = self.groups[group]
        return 2 * sum(self.world.runs(node) for node in members) > len(members)

    def readings(self, device: DeviceId) -> dict[str, Value]:
        """What the readings of a device really are now, by name."""
        return self.world.devices.readings(device, self.world.now_ms)
