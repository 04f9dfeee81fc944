"""A simulated world that records as a mesh of real processes would: one file per node, one of
the devices."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec

from comesh.core.draws import Draws
from comesh.core.effects import Observation
from comesh.core.ids import NodeId
from comesh.core.journal import JournalRecord
from comesh.core.plan import SelectionSettings
from comesh.core.program import Program, ProtocolSettings
from comesh.runtime.recording import (
    OBSERVED,
    Began,
    DeviceActed,
    Disturbed,
    Flushed,
    Line,
    Recorder,
    What,
    Wrote,
    read,
    told,
)
from comesh.sim.disk import Disk
from comesh.sim.fault_model import Fault
from comesh.sim.fault_schedules import Schedule
from comesh.sim.lives import LifeChange
from comesh.sim.machine import Steppable
from comesh.sim.simulation import Simulation
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import contention_workload
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

BASE_US = 5_000_000_000
"""Uptime of the machine at the start."""
RECORD_BYTES = 100
"""Size of every record in the journal."""


class WorldRecorder:
    """Listens to a world from before its first step on. Worlds with copied cards are not for it: what is
    told there only names the node."""

    def __init__(self, directory: Path, world: World) -> None:
        self._directory = directory
        self._world = world
        self._make_node = world._make_node
        self._lose_power = Disk.lose_power
        self._recorders: dict[str, Recorder] = {}
        self._written: Counter[str] = Counter()
        self._flushed: Counter[str] = Counter()
        self._acts = self._lives = 0
        world._make_node = self.make_node
        world.observers.append(self._on_observed)
        world.writers.append(self._on_written)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The tail that a power loss takes is taken from the recorded journal too."""
        lose_power = self._lose_power
        recorder = self

        def recorded(disk: Disk, now_ms: float, draws: Draws) -> int:
            lost = lose_power(disk, now_ms, draws)
            for name, machine in recorder._world.machines.items():
                if machine.disk is disk:
                    recorder._written[name] -= RECORD_BYTES * lost
            return lost

        with patch.object(Disk, "lose_power", recorded):
            yield
        self._read_on(self._world.now_ms)
        for recording in self._recorders.values():
            recording.close()

    def make_node(self, node: NodeId) -> Steppable:
        """Start a process."""
        disk = self._world.machines[node].disk
        if not disk.boot:
            self._written[node] = self._flushed[node] = 0
        written = self._written[node]
        self._flushed[node] = min(self._flushed[node], written)
        began = Began(disk.boot + 1, disk.store, disk.initialised, disk.lost_power, 1, written)
        self._write(self._world.now_ms, node, began)
        return self._make_node(node)

    def _write(self, at_ms: float, who: str, what: What) -> None:
        if who not in self._recorders:
            self._recorders[who] = Recorder(self._directory / f"{who}.rec", who)
        self._recorders[who].write(_stamp_us(at_ms), what)

    def _on_observed(self, at_ms: float, node: NodeId, observation: Observation) -> None:
        self._read_on(at_ms)
        if type(observation).__name__ in OBSERVED:
            self._write(at_ms, node, told(observation))

    def _on_written(self, at_ms: float, node: NodeId, record: JournalRecord) -> None:
        written = self._written[node] = self._written[node] + RECORD_BYTES
        self._write(at_ms, node, Wrote(msgspec.msgpack.encode(record), written))
        flushed = written - RECORD_BYTES * self._world.machines[node].disk.unflushed
        if flushed > self._flushed[node]:
            self._flushed[node] = flushed
            self._write(at_ms, node, Flushed(flushed))

    def _read_on(self, at_ms: float) -> None:
        world = self._world
        for acted in world.devices.log[self._acts :]:
            command = acted.command
            shifted = msgspec.structs.replace(
                acted,
                at_ms=_stamp_us(acted.at_ms) / 1000,
                command=msgspec.structs.replace(command, sent_ms=_stamp_us(command.sent_ms) / 1000),
                began_ms=_stamp_us(acted.began_ms) / 1000,
            )
            self._write(at_ms, "devices", DeviceActed(shifted))
        self._acts = len(world.devices.log)
        for life in world.lives[self._lives :]:
            if life.change is not LifeChange.STARTED:
                self._write(life.at_ms, "lab", Disturbed(life.change.value, (life.machine,), ends=True))
        self._lives = len(world.lives)


def _stamp_us(at_ms: float) -> int:
    return BASE_US + int(at_ms * 1000)


def record(
    directory: Path,
    *faults: Fault,
    seconds: float = 20.0,
    seed: int = 1,
    settings: WorldSettings | None = None,
) -> Program:
    """Eight nodes, and twelve routines that want the same five devices; the program that they ran."""
    topology = make_topology(Shape.GRID, devices=12, smart=0.7, seed=seed)
    workload = contention_workload(
        topology,
        SelectionSettings(f=1, seed=seed, cluster_size=6),
        ProtocolSettings(epoch_ms=15_000),
        seed=seed,
        routines=12,
        contended=5,
    )
    simulation = Simulation(
        topology,
        seed=seed,
        settings=settings,
        devices=workload.devices,
        program=workload.program,
        faults=Schedule(faults),
        joined=True,
    )
    with WorldRecorder(directory, simulation.world).listening():
        simulation.run(seconds=seconds)
    return workload.program


def rewrite(path: Path, change: Callable[[list[Line]], list[Line]]) -> None:
    """Put other lines in the place of those of a recording."""
    lines = change(list(read(path)))
    path.unlink()
    for line in lines:
        recorder = Recorder(path, line.who)
        recorder.write(line.at_us, line.what)
        recorder.close()
