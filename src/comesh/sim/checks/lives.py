"""Which processes have run since when, as the world knows it: observations only name a node."""

from collections.abc import Callable

from comesh.core.ids import NodeId
from comesh.sim.lives import LifeChange
from comesh.sim.machine import Machine
from comesh.sim.world import World

RunsSince = Callable[[NodeId, float], bool]
"""Whether a process of that node runs that ran at that time already."""


def always(_: NodeId, __: float) -> bool:
    """Where nothing ever ends."""
    return True


class Lives:
    def __init__(self, world: World) -> None:
        self._world = world
        self._read = 0
        self._started_ms: dict[str, float] = {}
        self._machines: dict[NodeId, list[Machine]] = {}
        """Of a node: its own, those from copies of its card, and those whose certificate was revoked."""
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
