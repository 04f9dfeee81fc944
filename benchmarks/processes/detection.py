"""Ten idle nodes, one killed (-9): how long until every other node holds it for dead?"""

import asyncio
import time

from comesh.core.effects import MemberChanged
from comesh.runtime.local_mesh import LocalMesh
from comesh.runtime.recording import Told, observation_of, read
from peers.results import Result, result
from processes.documents import idle_document
from processes.locks import mesh_of
from processes.ready import is_ready

NODES = 10
SETTLE_S = 4.0
BOUND_S = 15.0


def _dead_us(mesh: LocalMesh, node: str, victim: str) -> int | None:
    """When a node first held another one for dead, by CLOCK_BOOTTIME."""
    for line in read(mesh.directory / f"{node}.rec"):
        if isinstance(line.what, Told) and line.what.kind == MemberChanged.__name__:
            told = observation_of(line.what)
            if isinstance(told, MemberChanged) and told.node == victim and told.state == "dead":
                return line.at_us
    return None


async def trial(number: int) -> float:
    with mesh_of(idle_document(NODES)) as mesh:
        mesh.start_devices(["--still", "--quiet"])
        for node in mesh.nodes:
            mesh.start(node, record=mesh.directory / f"{node}.rec")
        while not all(is_ready(mesh, node) for node in mesh.nodes):
            await asyncio.sleep(0.1)
        await asyncio.sleep(SETTLE_S)
        victim = mesh.nodes[number % NODES]
        killed_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
        mesh.kill(victim)
        others = [node for node in mesh.nodes if node != victim]
        ends = time.monotonic() + BOUND_S
        while time.monotonic() < ends:
            found = [_dead_us(mesh, node, victim) for node in others]
            known = [at_us for at_us in found if at_us is not None]
            if len(known) == len(others):
                return (max(known) - killed_us) / 1e6
            await asyncio.sleep(0.2)
    raise TimeoutError(f"not everybody knew of {victim} within {BOUND_S:.0f} s")


def measure(trials: int) -> Result:
    took_s = [asyncio.run(trial(number)) for number in range(trials)]
    return result(f"CoMesh, {NODES} nodes, kill -9 until all know", "s", took_s)


if __name__ == "__main__":
    print(measure(3))
