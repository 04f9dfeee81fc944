"""Knows which processes have run since when: observations name a node only."""

from collections.abc import Callable

from comesh.core.ids import NodeId
from comesh.sim.lives import LifeChange
from comesh.sim.machine import Machine
from comesh.sim.world import World

RunsSince = Callable[[NodeId, float], bool]
"""Returns whether a process of that node has run since that time."""


def always(_: NodeId, __: float) -> bool:
    """A `RunsSince` for worlds in which no process ends."""
    return True


class Lives:
    def __init__(self, world: World) -> None:
        self._world = world
        self._read = 0
        self._started_ms: dict[str, float] = {}
        self._machines: dict[NodeId, list[Machine]] = {}
        """Machines of each node: its own, those from copies of its card, and those whose certificate was
        revoked."""
        self._counted = 0

    def runs_since(self, node: NodeId, since_ms: float) -> bool:
        world = self._world
        while self._read < len(world.lives):
            life = world.lives[self._read]
            self._read += 1
            if life.change is LifeChange.STARTED:
                self._started_ms[life.machine] = life.at_ms
        if self._counted != len(world.machines) + len(world.revoked):
            self._counted = len(world.machines) + len(world.revoked)
            self._machines.clear()
            for machine in (*world.machines.values(), *world.revoked):
                self._machines.setdefault(machine.node_id, []).append(machine)
        return any(
            machine.process is not None and self._started_ms[machine.name] <= since_ms
            for machine in self._machines[node]
        )
