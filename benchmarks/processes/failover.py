"""A leader is killed (-9) while a routine executes: how long until the next command reaches a device?

The devices run in this process. The routine switches a lamp every 0.2 s, so that a command is under way
whenever its leader dies; the next leader reads it back and goes on.
"""

import asyncio
import time
from collections.abc import Callable

from comesh.core.ids import RoutineId
from comesh.drivers.virtual.devices import Acted, Pressed
from comesh.queries.answers import RoutineFired
from comesh.queries.requests import FireRoutine, ShowStatus
from comesh.runtime.client import Client
from comesh.runtime.local_mesh import LocalMesh
from peers.results import Result, result
from processes.documents import failover_document
from processes.locks import mesh_of
from processes.ready import devices_of, until_ready

ACTS_BEFORE = 5
"""Lamps that have acted when the leader is killed."""
BOUND_S = 30.0


class Acts:
    def __init__(self) -> None:
        self.began_ms: list[tuple[str, float]] = []
        """By whom each command was sent, and when it reached its device."""

    def on_entry(self, entry: Acted | Pressed) -> None:
        if isinstance(entry, Acted) and entry.refused is None:
            self.began_ms.append((entry.command.by, entry.began_ms))

    def of_others(self, than: str) -> list[float]:
        return [began_ms for by, began_ms in self.began_ms if by != than]

    async def until(self, enough: Callable[[], bool]) -> None:
        ends = time.monotonic() + BOUND_S
        while not enough():
            if time.monotonic() > ends:
                raise TimeoutError(f"{len(self.began_ms)} commands in {BOUND_S:.0f} s, and no more")
            await asyncio.sleep(0.001)


def leader_of(mesh: LocalMesh) -> str:
    for node in mesh.nodes:
        if mesh.runs(node):
            with Client(mesh.data_of(node)) as client:
                status = client.ask(ShowStatus())
            if any(one.serves and one.group != "deployment" for one in status.groups):
                return node
    raise RuntimeError("nobody leads")


async def trial(lease: str) -> float:
    """Milliseconds from the kill to when a command of another leader reaches a device."""
    with mesh_of(failover_document(lease=lease)) as mesh:
        acts = Acts()
        server = devices_of(mesh, acts.on_entry)
        assert mesh.devices_at is not None
        await server.open(*mesh.devices_at)
        try:
            await until_ready(mesh)
            leader = leader_of(mesh)
            asked = next(node for node in mesh.nodes if node != leader)

            def fire() -> RoutineFired:
                with Client(mesh.data_of(asked)) as client:
                    return client.ask(FireRoutine(routine=RoutineId("long")))

            await asyncio.get_running_loop().run_in_executor(None, fire)
            await acts.until(lambda: len(acts.began_ms) >= ACTS_BEFORE)
            killed = time.perf_counter()
            mesh.kill(leader)
            await acts.until(lambda: bool(acts.of_others(leader)))
            return min(acts.of_others(leader)) - 1000 * killed
        finally:
            server.close()


def measure(lease: str, trials: int) -> Result:
    return result(
        f"CoMesh, leader killed, next command, lease {lease}",
        "ms",
        [asyncio.run(trial(lease)) for _ in range(trials)],
    )


if __name__ == "__main__":
    for lease in ("1s", "250ms"):
        print(measure(lease, 3))
