"""The HTTP interface of real nodes: how soon it answers, and what it costs a node that nobody asks.

    python benchmarks/api.py [reads] [rest]

reads: five nodes, 200 requests a second at one of them over eight connections, timed from when each is due
whether or not earlier ones were answered, while five routines a second are fired. A local read is of a device
whose group the asked node leads; a forwarded one is of a device that another node leads. The client is
part of this process, so its own time is in the figures. rest: the same mesh with and without the interface,
each node a process as `comesh node` starts it, one after the other. About two minutes.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, quantiles

import msgspec

from comesh.api.tokens import create
from comesh.cli.up import begin, wait_until_ready
from comesh.deployment.load import load_bytes
from comesh.queries.requests import Role
from comesh.runtime.local_mesh import LocalMesh
from processes.rest import usage
from protocol_rows import Row, at_most, main_of

NODES = 5
RATE = 200
SECONDS = 20.0
CONNECTIONS = 8
FIRINGS_PER_S = 5
SETTLE_S = 8.0
REST_S = 40.0
PER_CENT = 100.0


def document() -> str:
    """A lamp near each node, each a group of its own, and a routine for each lamp."""
    return "\n".join(
        [
            "name: asked",
            "settings: {f: 1, epoch: 1h, hop: 1ms, selection: {cluster_size: 1}}",
            "nodes:",
            *(f"  n{number}: {{place: [{20 * number}m, 0m]}}" for number in range(NODES)),
            "devices:",
            *(
                f"  l{number}: {{place: [{20 * number}m, 1m], readings: {{on: bool}}, "
                "commands: {set: {argument: bool, sets: on}}}"
                for number in range(NODES)
            ),
            "routines:",
            *(
                f"  r{number}: {{do: [{{device: l{number}, command: set, argument: true}}]}}"
                for number in range(NODES)
            ),
        ]
    )


class Single(LocalMesh):
    """Each node begins as `comesh node` does, and shares nothing with the others."""

    def _inside(self, name: str) -> list[str]:
        return ["env"]


@contextmanager
def mesh_of(*, api: bool, kind: type[LocalMesh] = LocalMesh) -> Iterator[LocalMesh]:
    text, shared = document(), Path("/dev/shm")
    outcome = load_bytes(text.encode())
    assert outcome.deployment is not None, outcome.errors
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        mesh = kind(Path(directory), outcome.deployment, text, api=api)
        try:
            mesh.prepare()
            begin(mesh)
            wait_until_ready(mesh)
            yield mesh
        finally:
            mesh.close()


# -- reads ---------------------------------------------------------------------------------------------------


class Connection:
    """One request at a time, on a connection that stays."""

    def __init__(self, at: tuple[str, int], token: str) -> None:
        self._at = at
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, method: str = "GET") -> bytes:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._at)
        reader, writer = self._streams
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {self._token}\r\n"
        writer.write(f"{head}content-length: 0\r\n\r\n".encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b" 200 " not in answer[:20]:
            raise RuntimeError(body.decode())
        return body

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def reads_of(at: tuple[str, int], token: str, path: str) -> list[float]:
    """Milliseconds from when each request was due until it was answered."""
    due: asyncio.Queue[float] = asyncio.Queue()
    took_ms: list[float] = []

    async def work() -> None:
        connection = Connection(at, token)
        while True:
            when = await due.get()
            await connection.ask(path)
            took_ms.append(1000 * (time.perf_counter() - when))

    workers = [asyncio.create_task(work()) for _ in range(CONNECTIONS)]
    firing = asyncio.create_task(fire(at, token))
    began = time.perf_counter()
    for number in range(int(RATE * SECONDS)):
        when = began + number / RATE
        await asyncio.sleep(max(0.0, when - time.perf_counter()))
        due.put_nowait(when)
    while len(took_ms) < int(RATE * SECONDS):
        await asyncio.sleep(0.01)
        for one in (*workers, firing):
            if one.done():
                one.result()
    for one in (*workers, firing):
        one.cancel()
    await asyncio.gather(*workers, firing, return_exceptions=True)
    return took_ms


async def fire(at: tuple[str, int], token: str) -> None:
    connection, number = Connection(at, token), 0
    while True:
        await connection.ask(f"/api/v1/routines/r{number % NODES}/fire", "POST")
        number += 1
        await asyncio.sleep(1 / FIRINGS_PER_S)


async def of_reads_in(mesh: LocalMesh, token: str) -> dict[str, list[float]]:
    asked = Connection(mesh.api_at[mesh.nodes[0]], token)
    listed = json.loads(await asked.ask("/api/v1/devices"))["devices"]
    asked.close()
    leaders = {one["device"]: one["answered_by"] for one in listed}
    node = next(node for node in mesh.nodes if node in leaders.values())
    local = next(device for device, leader in leaders.items() if leader == node)
    far = next(device for device, leader in leaders.items() if leader != node)
    at = mesh.api_at[node]
    return {
        "local": await reads_of(at, token, f"/api/v1/devices/{local}"),
        "forwarded": await reads_of(at, token, f"/api/v1/devices/{far}"),
    }


def of_reads() -> Iterator[Row]:
    with mesh_of(api=True) as mesh:
        token = create(mesh.directory / "keys", "bench", Role.OPERATOR, 1000 * time.time())
        time.sleep(SETTLE_S)
        found = asyncio.run(of_reads_in(mesh, token))
    for what, bar_ms in (("local", 5.0), ("forwarded", 15.0)):
        cuts = quantiles(found[what], n=100)
        told = f"p90 {cuts[89]:.2f}, p99 {cuts[98]:.2f}"
        yield at_most(f"{what} read at {RATE} a second, p50, ms", cuts[49], bar_ms, told)


# -- rest ----------------------------------------------------------------------------------------------------


class Rest(msgspec.Struct, frozen=True):
    memory_mib: float
    cpu_percent: float


def at_rest(*, api: bool) -> Rest:
    """Means over the nodes."""
    with mesh_of(api=api, kind=Single) as mesh:
        time.sleep(SETTLE_S)
        before, at = usage(mesh), time.monotonic()
        time.sleep(REST_S)
        after, took_s = usage(mesh), time.monotonic() - at
    return Rest(
        fmean(mib for _, mib in after.values()),
        fmean(PER_CENT * (after[node][0] - before[node][0]) / took_s for node in after),
    )


def of_rest() -> Iterator[Row]:
    without, having = at_rest(api=False), at_rest(api=True)
    told = f"{without.memory_mib:.1f} without, {having.memory_mib:.1f} with"
    more_mib = having.memory_mib - without.memory_mib
    yield at_most("what it adds to a node at rest, MiB resident", more_mib, 20.0, told)
    told = f"{without.cpu_percent:.2f} without, {having.cpu_percent:.2f} with"
    more = having.cpu_percent - without.cpu_percent
    yield at_most("what it adds to a node at rest, percent of a core", more, 1.0, told)


PARTS: dict[str, Callable[[], Iterator[Row]]] = {"reads": of_reads, "rest": of_rest}


if __name__ == "__main__":
    sys.exit(main_of(PARTS, tuple(PARTS)))
