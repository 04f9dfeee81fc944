"""How fast the UDP transport is, encryption and all: sealing alone, then two processes on loopback.

    python benchmarks/transport.py [SECONDS]

Per row some SECONDS (2 unless told). Round trips go one after the other, 200 bytes each way; a one-way time
is the difference of the two processes' readings of the machine's one clock. Messages per second are confirmed
ones of 200 bytes: one per flush, and twenty, as a busy node sends them. No bar of its own: these figures are
inside those of the protocol.
"""

import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from comesh.core.ids import NodeId
from comesh.runtime.credentials import Authority, Credentials
from comesh.runtime.transport.packets import DATA_HEADER_BYTES
from comesh.runtime.transport.session import Session, Way
from comesh.runtime.transport.udp import UdpTransport

HERE, THERE = NodeId("here"), NodeId("there")
HOST = "127.0.0.1"
SMALL_BYTES = 200
LONG_BYTES = 1_048_576
CONFIRM_EVERY = 100
MAX_UNCONFIRMED = 400
"""Small messages on the way at once."""
BOUND_S = 10.0
ECHO, COUNT, STAMP = b"e", b"c", b"s"


def sealing_us(keys: Path, size_bytes: int, rounds: int = 20_000) -> float:
    """Seal and open, without a socket."""
    way = Way(None, ())
    one = Session(Credentials.load(keys, HERE).context(), b"1" * 8, way, initiated=True, now_ms=0.0)
    other = Session(Credentials.load(keys, THERE).context(), b"2" * 8, way, initiated=False, now_ms=0.0)
    one.name_remote(other.own_id)
    said = one.handshake(b"")[1]
    for _ in range(3):
        answer = other.handshake(b"".join(said))[1]
        said = one.handshake(b"".join(answer))[1]
    message = bytes(size_bytes)
    began = time.perf_counter()
    for _ in range(rounds):
        other.connection.bio_write(one.seal(message)[DATA_HEADER_BYTES:])
        other.connection.recv(2048)
    return (time.perf_counter() - began) / rounds * 1e6


def serve(keys: Path, pipe: Connection) -> None:
    """The other process: answers with the same, with the time, or with how many came."""

    async def whole() -> None:
        transport = UdpTransport(THERE, Credentials.load(keys, THERE), listen=[(HOST, 0)], addresses={})
        counted = 0

        def deliver(sender: NodeId, message: bytes) -> None:
            nonlocal counted
            kind = message[:1]
            if kind == ECHO:
                transport.send(sender, message)
            elif kind == STAMP:
                transport.send(sender, time.monotonic_ns().to_bytes(8, "big"))
            else:
                counted += 1
                if len(message) > SMALL_BYTES or counted % CONFIRM_EVERY == 0:
                    transport.send(sender, counted.to_bytes(8, "big"))
            transport.flush()

        await transport.open(deliver)
        pipe.send(transport.port)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        await transport.close()

    asyncio.run(whole())


class Bench:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waits: asyncio.Future[None] | None = None
        self._latest: bytes | None = None
        self.transport: UdpTransport

    def deliver(self, _: NodeId, message: bytes) -> None:
        self._latest = message
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)

    async def answer(self) -> bytes:
        """The latest that was not taken yet."""
        while self._latest is None:
            self._waits = asyncio.get_running_loop().create_future()
            await self._waits
        found, self._latest = self._latest, None
        return found

    async def ask(self, message: bytes) -> bytes:
        self.transport.send(THERE, message)
        self.transport.flush()
        return await self.answer()

    async def round_trips_us(self) -> list[float]:
        message, found = ECHO + bytes(SMALL_BYTES - 1), []
        ends = time.perf_counter() + self._seconds
        while (began := time.perf_counter()) < ends:
            await self.ask(message)
            found.append((time.perf_counter() - began) * 1e6)
        return found

    async def one_way_us(self) -> list[float]:
        message, found = STAMP + bytes(SMALL_BYTES - 1), []
        ends = time.perf_counter() + self._seconds
        while time.perf_counter() < ends:
            began = time.monotonic_ns()
            found.append((int.from_bytes(await self.ask(message), "big") - began) / 1e3)
        return found

    async def messages_per_s(self, counted: int, batch: int) -> tuple[float, int]:
        """And how many were sent by then."""
        message = COUNT + bytes(SMALL_BYTES - 1)
        before = sent = confirmed = counted
        began = time.perf_counter()
        while time.perf_counter() - began < self._seconds:
            while sent - confirmed < MAX_UNCONFIRMED:
                for _ in range(batch):
                    self.transport.send(THERE, message)
                self.transport.flush()
                sent += batch
            confirmed = int.from_bytes(await self.answer(), "big")
        while sent - confirmed >= CONFIRM_EVERY:
            confirmed = int.from_bytes(await self.answer(), "big")
        return (confirmed - before) / (time.perf_counter() - began), sent

    async def megabytes_per_s(self) -> float:
        message, count = COUNT + bytes(LONG_BYTES - 1), 0
        began = time.perf_counter()
        while time.perf_counter() - began < self._seconds:
            await self.ask(message)
            count += 1
        return count * LONG_BYTES / 1e6 / (time.perf_counter() - began)


def row(what: str, figure: float, unit: str) -> None:
    print(f"{what:<48}{figure:>12,.1f}  {unit}", flush=True)


async def measure(keys: Path, port: int, seconds: float) -> None:
    bench = Bench(seconds)
    bench.transport = UdpTransport(
        HERE, Credentials.load(keys, HERE), listen=[(HOST, 0)], addresses={THERE: [(HOST, port)]}
    )
    await bench.transport.open(bench.deliver)
    began = time.perf_counter()
    await bench.ask(ECHO)
    row("first round trip, with the handshake", (time.perf_counter() - began) * 1e3, "ms")
    trips, ways = await bench.round_trips_us(), await bench.one_way_us()
    row("round trip, 200 bytes, p50", statistics.median(trips), "us")
    row("round trip, 200 bytes, p99", statistics.quantiles(trips, n=100)[98], "us")
    row("one way, 200 bytes, p50", statistics.median(ways), "us")
    singly, counted = await bench.messages_per_s(0, 1)
    row("messages of 200 bytes, one per flush", singly, "per s")
    together, _ = await bench.messages_per_s(counted, 20)
    row("messages of 200 bytes, twenty per flush", together, "per s")
    row("messages of 1 MiB, one after the other", await bench.megabytes_per_s(), "MB/s")
    await bench.transport.close()
    for name, count in sorted(bench.transport.counters.items()):
        if name.startswith("dropped") or name == "fragments sent again":
            row(name, count, "")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    with tempfile.TemporaryDirectory() as scratch:
        keys = Path(scratch) / "keys"
        authority = Authority.create(keys)
        for name in (HERE, THERE):
            authority.issue(name).write(keys, name)
        row("seal and open 200 bytes", sealing_us(keys, 200), "us")
        row("seal and open 1,100 bytes", sealing_us(keys, 1_100), "us")
        methods = multiprocessing.get_context("spawn")
        ours, theirs = methods.Pipe()
        other = methods.Process(target=serve, args=(keys, theirs))
        other.start()
        try:
            asyncio.run(asyncio.wait_for(measure(keys, ours.recv(), seconds), BOUND_S + 6 * seconds))
        finally:
            ours.send(None)
            other.join(BOUND_S)
            other.kill()


if __name__ == "__main__":
    main()
