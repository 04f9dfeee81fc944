"""The paper's 11-node workload on real nodes: the delays that the authors' program was measured by.

What each is, read off the recordings of all nodes (times by one clock, in microseconds):
- quorum: the leader writes an entry -> it counts it as committed;
- election: a candidate writes its claim -> it serves. Leaders are killed for this: the workload kills none;
- state transfer: the leader of a config proposes its end -> the leader of the next one serves;
- lock acquisition, by the number of devices: a run asks for its first lock -> it has all; of runs that had to
  wait for nobody, since the workload asks for more than there is;
- sync delay: the last device that a waiting run lacks is granted to it -> it executes.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from comesh.core.effects import Committed, LeaderChanged, RunTraced
from comesh.core.ids import DeviceId
from comesh.core.journal import Appended, Promised
from comesh.core.records import DeviceRecord
from comesh.runtime.local_mesh import LocalMesh
from comesh.runtime.recording import Line, Told, Wrote, observation_of, read, record_of
from paper_workload import PaperWorkload, Shape, make_workload
from processes.failover import leader_of
from processes.locks import mesh_of
from processes.ready import devices_of, until_ready

KILLS = 5
KILL_EVERY_S = 12.0
DOWN_S = 4.0

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
                living = server.living(DeviceId(reading.device))
                loop.call_later(reading.at_ms / 1000, living.set_reading, "level", reading.level)
        await asyncio.sleep(seconds - KILLS * KILL_EVERY_S)
        for _ in range(KILLS):
            victim = await loop.run_in_executor(None, leader_of, mesh)
            mesh.kill(victim)
            await asyncio.sleep(DOWN_S)
            mesh.start(victim, record=mesh.directory / f"{victim}.rec")
            await asyncio.sleep(KILL_EVERY_S - DOWN_S)
    finally:
        server.close()


def delays(directory: Path) -> Delays:
    found: Delays = defaultdict(list)
    lines = sorted(
        (line for path in directory.glob("*.rec") for line in read(path)), key=lambda one: one.at_us
    )
    _quorums(lines, found)
    _elections(lines, found)
    _transfers(lines, found)
    _locks(lines, found)
    return found


def _told(lines: list[Line]) -> Iterator[tuple[int, str, object]]:
    for line in lines:
        if isinstance(line.what, Told):
            yield line.at_us, line.who, observation_of(line.what)


def _quorums(lines: list[Line], found: Delays) -> None:
    written: dict[tuple[str, int, object, int], int] = {}
    for line in lines:
        if isinstance(line.what, Wrote):
            record = record_of(line.what)
            if isinstance(record, Appended):
                written.setdefault((line.who, record.mark, record.ballot, record.number), line.at_us)
        elif isinstance(line.what, Told) and line.what.kind == Committed.__name__:
            told = observation_of(line.what)
            assert isinstance(told, Committed)
            began_us = written.get((line.who, told.config.mark, told.ballot, told.number))
            if began_us is not None:
                found["quorum"].append((line.at_us - began_us) / 1000)


def _elections(lines: list[Line], found: Delays) -> None:
    claimed: dict[tuple[str, int, object], int] = {}
    for line in lines:
        if isinstance(line.what, Wrote):
            record = record_of(line.what)
            if isinstance(record, Promised):
                claimed.setdefault((line.who, record.mark, record.ballot), line.at_us)
    for at_us, who, told in _told(lines):
        if isinstance(told, LeaderChanged) and told.state == "serving" and told.ballot.round > 0:
            began_us = claimed.get((who, told.config.mark, told.ballot))
            if began_us is not None:
                found["election"].append((at_us - began_us) / 1000)


def _transfers(lines: list[Line], found: Delays) -> None:
    ended: dict[tuple[str, int], int] = {}
    for at_us, _, told in _told(lines):
        if not isinstance(told, LeaderChanged):
            continue
        if told.state == "handing off":
            ended.setdefault((told.group, told.config.number), at_us)
        elif told.state == "serving":
            began_us = ended.pop((told.group, told.config.number - 1), None)
            if began_us is not None:
                found["state transfer"].append((at_us - began_us) / 1000)


def _locks(lines: list[Line], found: Delays) -> None:
    asked: dict[object, int] = {}
    waited: dict[object, int] = {}
    devices: dict[object, int] = defaultdict(int)
    granted: dict[object, int] = {}
    for at_us, _, told in _told(lines):
        if isinstance(told, Committed):
            for record in told.entry:
                if isinstance(record, DeviceRecord) and record.hold is not None:
                    granted[record.hold.run] = max(at_us, granted.get(record.hold.run, 0))
        elif isinstance(told, RunTraced):
            match told.what:
                case "lock asked":
                    asked.setdefault(told.run, at_us)
                case "granted":
                    devices[told.run] += 1
                case "queued" | "refused" | "wounded" | "leader":
                    waited[told.run] = at_us
                case "executing" if told.run in asked:
                    if told.run not in waited:
                        found[f"lock acquisition, {devices[told.run]}"].append(
                            (at_us - asked[told.run]) / 1000
                        )
                    elif told.run in granted:
                        found["sync delay"].append((at_us - granted[told.run]) / 1000)
                    del asked[told.run]
                case _:
                    pass


def measure(seconds: float = 150.0, routines: int = 10, seed: int = 3) -> Delays:
    workload = make_workload(Shape.GRID, routines=routines, seed=seed, lasts_s=seconds)
    with mesh_of(workload.document) as mesh:
        asyncio.run(play(mesh, workload, seconds))
        mesh.close()
        return delays(mesh.directory)


if __name__ == "__main__":
    from statistics import median

    for name, values in sorted(measure().items()):
        print(f"{name:24} {median(values):8.2f} ms, median of {len(values)}")
