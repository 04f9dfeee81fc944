"""Starting the nodes of a mesh from a process that also is its devices, and waiting until all take part."""

import asyncio
import time

from comesh.drivers.virtual.devices import Record
from comesh.drivers.virtual.server import DevicesServer
from comesh.queries.answers import QueryError
from comesh.queries.requests import ShowStatus
from comesh.runtime.client import Client
from comesh.runtime.local_mesh import LocalMesh

READY_S = 60.0


def devices_of(mesh: LocalMesh, record: Record | None = None) -> DevicesServer:
    """All devices of a mesh, in this process, which so knows when each of them acts. They stand still."""
    return DevicesServer(
        mesh.deployment,
        sorted(mesh.deployment.devices),
        seed=1,
        now_ms=lambda: 1000 * time.perf_counter(),
        record=record,
        still=True,
    )


def is_ready(mesh: LocalMesh, node: str) -> bool:
    try:
        with Client(mesh.data_of(node), within_s=2.0) as client:
            return client.ask(ShowStatus()).ready
    except QueryError:
        return False


async def until_ready(mesh: LocalMesh, *, record: bool = False) -> float:
    """Start all nodes; how many seconds until each takes part. record: to the mesh's directory."""
    began = time.monotonic()
    for node in mesh.nodes:
        mesh.start(node, record=mesh.directory / f"{node}.rec" if record else None)
    loop = asyncio.get_running_loop()
    for node in mesh.nodes:
        while not await loop.run_in_executor(None, is_ready, mesh, node):
            if time.monotonic() - began > READY_S:
                raise TimeoutError(f"{node} is not ready after {READY_S:.0f} s: {mesh.last_words(node)}")
    return time.monotonic() - began
