"""A deployment document brought to life in virtual time: its nodes as processes, its devices as virtual ones.

Groups follow the clock: at each epoch every group's members are selected anew from the nodes that live,
with the epoch before as the table, as the nodes themselves compute it.
"""

from typing import assert_never

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.membership import MembershipSettings
from comesh.core.node import Node
from comesh.core.selection import Selector
from comesh.deployment.model import Deployment, Device
from comesh.deployment.outlook import Members
from comesh.deployment.planning import plan_of
from comesh.deployment.values import Kind, Value, ValueType
from comesh.sim.devices import Constant, DeviceSpec, RandomWalk, SquareWave
from comesh.sim.faults import Fault, Schedule
from comesh.sim.injection import inject
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.streams import stream
from comesh.sim.topology import topology_of_plan
from comesh.sim.world import WorldSettings

_SHORTEST_WAVE_MS, _LONGEST_WAVE_MS = 10_000.0, 90_000.0
_WALK_STEPS = 200
"""A numeric reading walks through its range in steps of this share."""


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
            devices={device: _spec(device, spec, seed) for device, spec in deployment.devices.items()},
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

    def reading(self, device: DeviceId) -> Value:
        """What the first reading of a device really is now."""
        value = self.world.devices.reading(device, self.world.now_ms)
        kind = _first_reading(self.deployment.devices[device])
        if isinstance(value, float) and kind is not None and kind.kind is Kind.INT:
            return round(value)
        return value


def _first_reading(device: Device) -> ValueType | None:
    return next(iter(device.readings.values()), None)


def _spec(device_id: DeviceId, device: Device, seed: int) -> DeviceSpec:
    """A behaviour that fits the device's first reading."""
    kind = _first_reading(device)
    draws = stream(seed, f"behaviour {device_id}")
    wave_ms = draws.between(_SHORTEST_WAVE_MS, _LONGEST_WAVE_MS)
    if kind is None:
        return DeviceSpec()
    match kind.kind:
        case Kind.CHOICE:
            words = kind.values or ("",)
            return DeviceSpec(source=SquareWave(first=words[0], second=words[-1], period_ms=wave_ms))
        case Kind.BOOL:
            return DeviceSpec(source=SquareWave(period_ms=wave_ms))
        case Kind.INT | Kind.FLOAT:
            low, high = kind.range or (0.0, 100.0)
            start = low + (high - low) * draws.between(0.3, 0.6)
            step = (high - low) / _WALK_STEPS
            return DeviceSpec(source=RandomWalk(start=start, step=step, low=low, high=high))
        case Kind.TEXT:
            return DeviceSpec(source=Constant(""))
        case _:
            assert_never(kind.kind)
