"""The paper's 11-node workload on real nodes: the delays that the authors' program was measured by.

What each is, read off the recordings of all nodes by one clock:
- quorum, election, state transfer: as in `comesh.experiments.measures.histories`. Leaders are killed
  for elections, since the workload kills none;
- lock acquisition, by the number of devices: a run begins -> it has all locks; of runs that had to wait for
  nobody, since the workload asks for more than there is. Whose devices are all in its own cluster has them
  with the commit of its firing, and waits for nothing. There are too few such runs in the workload: all
  twenty routines of several seeds are also fired by hand, one after the other, with commands that take no
  time;
- sync delay: the last device that a waiting run lacks is granted to it -> it executes.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from comesh.core.effects import Committed, RunTraced
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.records import DeviceRecord
from comesh.core.traces import (
    AttemptBegan,
    Executing,
    LeaderTookOver,
    LockGranted,
    LockQueued,
    LockRefused,
    Wounded,
)
from comesh.experiments.measures.deployed_workload import PaperWorkload, make_workload
from comesh.experiments.measures.histories import Moment, elections, quorums, recorded, transfers
from comesh.lab.shapes import Shape
from comesh.queries.requests import FireRoutine
from comesh.runtime.client import Client
from comesh.runtime.local_mesh import LocalMesh
from processes.failover import leader_of
from processes.locks import mesh_of
from processes.ready import devices_of, until_ready

KILLS = 5
KILL_EVERY_S = 12.0
DOWN_S = 4.0
SEEDS = range(1, 6)
ALL_ROUTINES = 20
ROUNDS = 3
APART_S = 0.6
"""From one firing by hand to the next: twenty of them are longer than a routine's cooldown."""

Delays = dict[str, list[float]]


async def play(mesh: LocalMesh, workload: PaperWorkload, seconds: float) -> None:
    """The mesh is recorded to its directory."""
    server = devices_of(mesh)
    assert mesh.devices_at is not None
    await server.open(*mesh.devices_at)
    loop = asyncio.get_running_loop()
    try:
        await until_ready(mesh, record=True)
        for reading in workload.readings:
            if reading.at_ms < 1000 * seconds:
                device = server.device(DeviceId(reading.device))
                loop.call_later(reading.at_ms / 1000, device.set_reading, "level", reading.level)
        await asyncio.sleep(seconds - KILLS * KILL_EVERY_S)
        for _ in range(KILLS):
            victim = await loop.run_in_executor(None, leader_of, mesh)
            mesh.kill(victim)
            await asyncio.sleep(DOWN_S)
            mesh.start(victim, record=mesh.directory / f"{victim}.rec")
            await asyncio.sleep(KILL_EVERY_S - DOWN_S)
    finally:
        server.close()


def without_waiting(document: str) -> str:
    """The same, with commands that take no time."""
    return re.sub(r", takes: \d+s", "", document)


async def fire_all(mesh: LocalMesh) -> None:
    """Every routine, one after the other; the mesh is recorded to its directory."""
    server = devices_of(mesh)
    assert mesh.devices_at is not None
    await server.open(*mesh.devices_at)
    loop = asyncio.get_running_loop()
    try:
        await until_ready(mesh, record=True)
        for _ in range(ROUNDS):
            for routine in mesh.deployment.routines:
                await loop.run_in_executor(None, _fire, mesh, routine)
                await asyncio.sleep(APART_S)
    finally:
        server.close()


def _fire(mesh: LocalMesh, routine: str) -> None:
    with Client(mesh.data_of(mesh.nodes[0])) as client:
        client.ask(FireRoutine(routine=RoutineId(routine)))


def delays(directory: Path) -> Delays:
    moments = recorded(directory)
    found: Delays = defaultdict(list)
    for name, samples in (
        ("quorum", quorums(moments)),
        ("election", elections(moments)),
        ("state transfer", transfers(moments)),
    ):
        found[name] += [one.took_ms for one in samples]
    _locks(moments, found)
    return {name: values for name, values in found.items() if values}


def _locks(moments: Iterable[Moment], found: Delays) -> None:
    began: dict[object, float] = {}
    waited: set[object] = set()
    devices: dict[object, int] = defaultdict(int)
    granted: dict[object, float] = {}
    for at_ms, _, told in moments:
        if isinstance(told, Committed):
            for record in told.entry:
                if isinstance(record, DeviceRecord) and record.hold is not None:
                    granted[record.hold.run] = max(at_ms, granted.get(record.hold.run, 0.0))
        elif isinstance(told, RunTraced):
            match told.trace:
                case AttemptBegan():
                    began.setdefault(told.run, at_ms)
                case LockGranted():
                    devices[told.run] += 1
                case LockQueued() | LockRefused() | Wounded() | LeaderTookOver():
                    waited.add(told.run)
                case Executing() if told.run in began:
                    if told.run not in waited:
                        found[f"lock acquisition, {devices[told.run]}"].append(at_ms - began[told.run])
                    elif told.run in granted:
                        found["sync delay"].append(at_ms - granted[told.run])
                    del began[told.run]
                case _:
                    pass


def measure(seconds: float = 150.0, routines: int = 10, seed: int = 3) -> Delays:
    workload = make_workload(Shape.GRID, routines=routines, seed=seed, lasts_s=seconds)
    with mesh_of(workload.document) as mesh:
        asyncio.run(play(mesh, workload, seconds))
        mesh.close()
        return delays(mesh.directory)


def measure_locks(seeds: Iterable[int] = SEEDS) -> Delays:
    """Of routines that are fired by hand, by the number of devices."""
    found: Delays = defaultdict(list)
    for seed in seeds:
        workload = make_workload(Shape.GRID, routines=ALL_ROUTINES, seed=seed)
        with mesh_of(without_waiting(workload.document)) as mesh:
            asyncio.run(fire_all(mesh))
            mesh.close()
            for name, values in delays(mesh.directory).items():
                if name.startswith("lock acquisition"):
                    found[name] += values
    return found


if __name__ == "__main__":
    from statistics import median

    measured = measure()
    for by_hand, more in measure_locks().items():
        measured.setdefault(by_hand, []).extend(more)
    for name, values in sorted(measured.items()):
        print(f"{name:24} {median(values):8.2f} ms, median of {len(values)}")
