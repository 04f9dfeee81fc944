"""A deployment document brought to life in virtual time: its nodes as processes, its devices as virtual ones.

Groups follow the clock: at each epoch every group's members are selected anew from the nodes that live,
with the epoch before as the table, as the nodes themselves compute it.
"""

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.node import Node
from comesh.core.selection import Selector
from comesh.core.values import Value
from comesh.deployment.model import Deployment
from comesh.deployment.outlook import Members
from comesh.deployment.planning import plan_of
from comesh.sim.document_devices import device_specs
from comesh.sim.faults import Fault, Schedule
from comesh.sim.injection import inject
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.topology import topology_of_plan
from comesh.sim.world import WorldSettings


class Building:
    def __init__(self, deployment: Deployment, *, seed: int) -> None:
        self.deployment = deployment
        self.plan = plan_of(deployment)
        self.selector = Selector(self.plan)
        self.simulation = Simulation(
            topology_of_plan(self.plan),
            seed=seed,
            settings=WorldSettings(radio=RadioSettings(hop_ms=deployment.settings.hop_ms)),
            membership=MembershipSettings(period_ms=deployment.settings.membership_period_ms),
            devices=device_specs(deployment, seed),
        )
        self.world = self.simulation.world
        self.groups: Members = {group: self.plan.genesis[group] for group in self.selector.groups}
        self._epoch = 0

    @property
    def epoch(self) -> int:
        return int(self.world.now_ms // self.deployment.settings.epoch_ms)

    def run(self, seconds: float) -> None:
        """Go on for this long, and select the groups anew where an epoch has passed."""
        self.simulation.run(seconds=seconds)
        while self._epoch < self.epoch:
            self._epoch += 1
            self.groups = self.selector.select_all(self._epoch, self.living(), self.groups)

    def happen(self, *faults: Fault) -> None:
        inject(self.world, Schedule(faults))

    def running(self) -> list[NodeId]:
        return [node.id for node in self.plan.nodes if self.world.runs(node.id)]

    def views(self) -> dict[NodeId, tuple[NodeId, ...]]:
        """Whom each running node believes to live."""
        views: dict[NodeId, tuple[NodeId, ...]] = {}
        for node_id in self.running():
            process = self.world.machines[node_id].process
            if process is not None and isinstance(process.node, Node):
                views[node_id] = process.node.membership.living
        return views

    def agrees(self) -> bool:
        """Does every running node know exactly who runs?"""
        running = tuple(self.running())
        return all(view == running for view in self.views().values())

    def living(self) -> tuple[NodeId, ...]:
        """What most running nodes believe."""
        views = list(self.views().values())
        return max(views, key=views.count, default=())

    def can_act(self, group: GroupId) -> bool:
        """Does a majority of a group's members run?"""
        members = self.groups[group]
        return 2 * sum(self.world.runs(node) for node in members) > len(members)

    def readings(self, device: DeviceId) -> dict[str, Value]:
        """What the readings of a device really are now, by name."""
        return self.world.devices.readings(device, self.world.now_ms)
