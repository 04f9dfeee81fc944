"""Bytes on the paper's 11-node workload: a hub (central mode) against the nodes of a mesh.

What a node sends and receives is counted: to and from devices, and to other nodes for groups; membership
apart. Between nodes only what is sent is counted, once, before it is encrypted and bundled. Ten epochs of the
mesh pass; a hub's rate is the same at all times, and it runs for less.
"""

import asyncio
import time

from comesh.core.ids import DeviceId
from comesh.experiments.measures.deployed_workload import CENTRAL, MESH, PaperWorkload, make_workload
from comesh.experiments.measures.real_trial import PARTS
from comesh.experiments.measures.trial import DROPPED_S
from comesh.lab.shapes import Shape
from comesh.queries.requests import ShowStatus
from comesh.runtime.client import Client
from comesh.runtime.local_mesh import LocalMesh
from processes.locks import mesh_of
from processes.ready import devices_of, until_ready

EPOCHS_S, HUB_S = 600.0, 150.0
WORK = (*PARTS["devices"], *PARTS["groups"])
MEMBERSHIP = PARTS["membership"]

Rates = dict[str, tuple[float, float]]
"""By node: bytes per second of its work, and of membership."""


def _counts(mesh: LocalMesh) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for node in mesh.nodes:
        with Client(mesh.data_of(node)) as client:
            counts[node] = client.ask(ShowStatus()).counters
    return counts


async def play(mesh: LocalMesh, workload: PaperWorkload, seconds: float) -> Rates:
    server = devices_of(mesh)
    assert mesh.devices_at is not None
    await server.open(*mesh.devices_at)
    loop = asyncio.get_running_loop()
    try:
        await until_ready(mesh)
        for reading in workload.readings:
            device = server.device(DeviceId(reading.device))
            loop.call_later(reading.at_ms / 1000, device.set_reading, "level", reading.level)
        await asyncio.sleep(DROPPED_S)
        before, at = await loop.run_in_executor(None, _counts, mesh), time.monotonic()
        await asyncio.sleep(seconds)
        after, took_s = await loop.run_in_executor(None, _counts, mesh), time.monotonic() - at
    finally:
        server.close()

    def rate(node: str, names: tuple[str, ...]) -> float:
        return sum(after[node].get(name, 0) - before[node].get(name, 0) for name in names) / took_s

    return {node: (rate(node, WORK), rate(node, MEMBERSHIP)) for node in mesh.nodes}


def measure(seconds: float, routines: int = 10, seed: int = 3) -> tuple[Rates, Rates]:
    """Of the hub's deployment, and of the mesh."""
    rates: list[Rates] = []
    for settings, lasts_s in ((CENTRAL, HUB_S), (MESH, seconds)):
        workload = make_workload(
            Shape.GRID, routines=routines, seed=seed, lasts_s=seconds + DROPPED_S, settings=settings
        )
        with mesh_of(workload.document) as mesh:
            rates.append(asyncio.run(play(mesh, workload, lasts_s)))
    return rates[0], rates[1]


if __name__ == "__main__":
    hub_rates, mesh_rates = measure(EPOCHS_S)
    hub = max(work for work, _ in hub_rates.values())
    work = [one for one, _ in mesh_rates.values()]
    print(f"hub {hub:.0f} bytes/s; mean node {sum(work) / len(work):.0f}, busiest {max(work):.0f}")
    print(f"hub / mean node {hub / (sum(work) / len(work)):.2f}; hub / busiest node {hub / max(work):.2f}")
    of_membership = [one for _, one in mesh_rates.values()]
    print(f"membership, mean node: {sum(of_membership) / len(of_membership):.0f} bytes/s")
