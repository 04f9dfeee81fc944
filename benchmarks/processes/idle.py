"""Nodes that have nothing to do: does anybody begin an election that nobody needs?"""

import time

from comesh.cli.up import wait_until_ready
from comesh.core.effects import LeaderChanged
from comesh.runtime.local_mesh import LocalMesh
from comesh.runtime.recording import Told, observation_of, read
from processes.documents import idle_document
from processes.locks import mesh_of

NODES = 5


def measure(lease: str, minutes: float) -> int:
    """How often a leader other than the first began to serve a config, after all were ready."""
    with mesh_of(idle_document(NODES, lease=lease)) as mesh:
        mesh.start_devices(["--still", "--quiet"])
        for node in mesh.nodes:
            mesh.start(node, record=mesh.directory / f"{node}.rec")
        wait_until_ready(mesh)
        ready_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
        time.sleep(60 * minutes)
        return sum(_served_since(mesh, node, ready_us) for node in mesh.nodes)


def _served_since(mesh: LocalMesh, node: str, since_us: int) -> int:
    count = 0
    for line in read(mesh.directory / f"{node}.rec"):
        if (
            line.at_us >= since_us
            and isinstance(line.what, Told)
            and line.what.kind == LeaderChanged.__name__
        ):
            told = observation_of(line.what)
            count += isinstance(told, LeaderChanged) and told.state == "serving"
    return count


if __name__ == "__main__":
    for lease in ("1s", "250ms"):
        print(lease, measure(lease, 10.0))
