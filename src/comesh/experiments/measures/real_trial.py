"""One trial of the paper's 11-node deployment on real processes: bytes by the counters of nodes and of the
network, delays by recordings.

Bytes of a node, end to end: to and from devices, and what it sends to other nodes, before that is bundled and
encrypted; membership apart. The devices are in this process, each with a socket at its station.
"""

import asyncio
import io
import os
import tarfile
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.drivers.virtual.server import DevicesServer
from comesh.experiments.measures.deployed_workload import PaperWorkload, make_workload
from comesh.experiments.measures.histories import recorded
from comesh.experiments.measures.stations import OURS, Stations, stations_of
from comesh.experiments.measures.trial import (
    DROPPED_S,
    Trial,
    Window,
    bandwidth_row,
    bandwidth_rows,
    delay_rows,
)
from comesh.experiments.stage import Recorded, Row
from comesh.lab.mesh import Mesh, now_us

BOUND_S: Final = 120.0
"""For whatever must happen: the machine may be busy with other trials."""
LOOK_S: Final = 1.0
PLAYED: Final = "trial.json"
PARTS: Final = {
    "devices": ("bytes to devices", "bytes from devices"),
    "groups": ("bytes of groups",),
    "membership": ("bytes of membership",),
    "encrypted": ("bytes sent",),
}
"""Of bandwidth, and the counters of a node that each is made of. Encrypted: all that it sends to other nodes,
with what the transport adds and says by itself."""


class _Counts(msgspec.Struct, frozen=True):
    """So far, by node."""

    at_s: float
    nodes: dict[NodeId, dict[str, int]]
    transmitted: dict[NodeId, dict[str, int]]


class _Played(msgspec.Struct, frozen=True, kw_only=True):
    """What of a trial is in no recording of its nodes."""

    before: _Counts
    after: _Counts
    ends_s: float
    """When the leaders had been killed."""
    network: str
    load: float


def real_trial(trial: Trial) -> Recorded:
    """Everything that it started has ended when this returns, or fails."""
    shared = Path("/dev/shm")
    workload = make_workload(trial.shape, routines=trial.routines, seed=trial.seed, lasts_s=trial.lasts_s)
    with (
        tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory,
        stations_of(workload) as stations,
    ):
        document = Path(directory) / "trial.yaml"
        document.write_text(
            make_workload(
                trial.shape,
                routines=trial.routines,
                seed=trial.seed,
                lasts_s=trial.lasts_s,
                settings=trial.settings,
                devices_at=stations.devices_at,
            ).document
        )
        with stations.mesh(document, Path(directory)) as mesh:
            before, after, ends_s = asyncio.run(_play(mesh, stations, workload, trial))
        load = os.getloadavg()[0]
        played = _Played(before=before, after=after, ends_s=ends_s, network=stations.name, load=load)
        (mesh.recordings / PLAYED).write_bytes(msgspec.json.encode(played))
        return Recorded(_rows(mesh.recordings), _packed(mesh.recordings))


def _rows(recordings: Path) -> list[Row]:
    played = msgspec.json.decode((recordings / PLAYED).read_bytes(), type=_Played)
    before, after = played.before, played.after
    window = Window(before.at_s * 1000, after.at_s * 1000, played.ends_s * 1000)
    rows = [*_bandwidth(before, after), *delay_rows(recorded(recordings), window)]
    rows.append({"measure": "machine load", "value": played.load})
    return [{**row, "network": played.network} for row in rows]


def _packed(recordings: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        for path in sorted(recordings.iterdir()):
            archive.add(path, path.name)
    return packed.getvalue()


def reread(recording: bytes) -> list[Row]:
    """The rows of a trial, computed from what `real_trial` recorded."""
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(fileobj=io.BytesIO(recording), mode="r:xz") as archive:
            archive.extractall(directory, filter="data")
        return _rows(Path(directory))


async def _play(
    mesh: Mesh, stations: Stations, workload: PaperWorkload, trial: Trial
) -> tuple[_Counts, _Counts, float]:
    """What was counted before and after, and when leaders had been killed."""
    async with _devices(mesh, stations) as servers:
        groups = await asyncio.to_thread(_begin, mesh)
        loop = asyncio.get_running_loop()
        for reading in workload.readings:
            device = servers[reading.device].device(reading.device)
            loop.call_later(reading.at_ms / 1000, device.set_reading, "level", reading.level)
        await _pass(DROPPED_S)
        before = await asyncio.to_thread(_count, mesh, stations)
        await _pass(trial.seconds)
        after = await asyncio.to_thread(_count, mesh, stations)
        for number in range(trial.kills):
            await asyncio.to_thread(_kill, mesh, groups, number)
        return before, after, now_us() / 1e6


async def _pass(seconds: float) -> None:
    """KeyboardInterrupt: whoever started this process is gone, and nobody waits for the result."""
    parent = os.getppid()
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        await asyncio.sleep(min(left, LOOK_S))
        if os.getppid() != parent:
            raise KeyboardInterrupt


@asynccontextmanager
async def _devices(mesh: Mesh, stations: Stations) -> AsyncIterator[dict[DeviceId, DevicesServer]]:
    """Each a server of its own; they stand still but for the readings that they are given."""
    servers: dict[DeviceId, DevicesServer] = {}
    try:
        for device in sorted(mesh.deployment.devices):
            server = servers[device] = DevicesServer(
                mesh.deployment, [device], seed=1, now_ms=lambda: now_us() / 1000, still=True
            )
            await stations.open(device, server)
        yield servers
    finally:
        for server in servers.values():
            server.close()


def _begin(mesh: Mesh) -> frozenset[GroupId]:
    """Start all nodes, and wait until all take part; which groups there are."""
    for node in mesh.nodes:
        mesh.start(node)
    mesh.wait_for(
        lambda: all(map(mesh.runs, mesh.nodes)) and mesh.is_ready(), "all nodes are ready", bound_s=BOUND_S
    )
    groups = frozenset(one.group for status in mesh.statuses().values() for one in status.groups)
    mesh.wait_for(lambda: set(mesh.leaders()) == groups, "all groups are served", bound_s=BOUND_S)
    return groups


def _count(mesh: Mesh, stations: Stations) -> _Counts:
    nodes: dict[NodeId, dict[str, int]] = {}

    def asked() -> bool:
        nodes.update({status.node: status.counters for status in mesh.statuses().values()})
        return len(nodes) == len(mesh.nodes)

    mesh.wait_for(asked, "all nodes say what they sent", bound_s=BOUND_S)
    transmitted = {node: dict(counters) for node, counters in stations.transmitted().items()}
    return _Counts(now_us() / 1e6, nodes, transmitted)


def _kill(mesh: Mesh, groups: frozenset[GroupId], number: int) -> None:
    """kill -9 of the leader of a group, each time of the next one; until all is well again."""
    leaders = mesh.leaders()
    chosen = sorted(group for group in leaders if group != "deployment")
    victim = leaders[chosen[number % len(chosen)]]
    mesh.kill(victim)
    mesh.wait_for(lambda: set(mesh.leaders()) == groups, "all groups are served again", bound_s=BOUND_S)
    mesh.start(victim)
    mesh.wait_for(mesh.is_ready, f"{victim} is back", bound_s=BOUND_S)
    mesh.wait_for(lambda: set(mesh.leaders()) == groups, "all groups are served again", bound_s=BOUND_S)


def _bandwidth(before: _Counts, after: _Counts) -> list[Row]:
    took_s = after.at_s - before.at_s

    def rates(
        first: Mapping[NodeId, Mapping[str, int]], last: Mapping[NodeId, Mapping[str, int]], *names: str
    ) -> dict[str, float]:
        return {
            node: sum(counters.get(name, 0) - first[node].get(name, 0) for name in names) / took_s
            for node, counters in last.items()
        }

    rows = bandwidth_rows({part: rates(before.nodes, after.nodes, *names) for part, names in PARTS.items()})
    if after.transmitted:
        hops = {f"hop by hop, {one}": (one,) for one in (*OURS, "routing")}
        for name, counters in {"hop by hop": OURS, **hops}.items():
            rows.append(bandwidth_row(name, rates(before.transmitted, after.transmitted, *counters)))
    return rows
