"""The way of one process to a process of virtual devices: one socket for all of its devices.

Requests are sent once and not repeated here. An answer finds its request by number; one that comes when
nobody waits any more is dropped. If nothing listens there, reads fail at once; commands wait for their time,
because a refusal does not say which datagram it was for.

What was asked leaves with `flush`, or in the next turn of the loop; rest() says that all answers that came
together were told.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from secrets import randbits
from typing import Final

from comesh.core.ids import DeviceId
from comesh.drivers.ages import PeerClock
from comesh.drivers.virtual.datagrams import Address, Datagrams, connected
from comesh.drivers.virtual.wire import (
    Ask,
    Back,
    FromDevices,
    Packet,
    PacketError,
    Report,
    ToDevices,
    decode_backs,
    encode,
    join,
    split_address,
)

SENT: Final = "bytes to devices"
RECEIVED: Final = "bytes from devices"
MAX_OPEN: Final = 4096
"""Requests of one process that wait for an answer; further ones are refused."""


Answered = Callable[[FromDevices | Exception], None]
"""The answer; or TimeoutError, or LinkError."""


class LinkError(Exception):
    """It could not be sent; str() says why."""


class Link:
    def __init__(
        self, address: str, now_ms: Callable[[], float], rest: Callable[[], None] | None = None
    ) -> None:
        self.address = address
        self.clock = PeerClock()
        self._now_ms = now_ms
        self._rest = rest
        self.counters: Counter[str] = Counter()
        self.on_report: dict[DeviceId, Callable[[Report], None]] = {}
        self._client = randbits(62)
        self._number = 0
        self._waiting: dict[int, tuple[Answered, bool, asyncio.TimerHandle]] = {}
        """By number: who waits, whether it is a read, and until when."""
        self._datagrams: Datagrams | None = None
        self._users = 0
        self._opening = asyncio.Lock()

    def use(self) -> None:
        self._users += 1

    def leave(self) -> None:
        """The socket is closed with the last user."""
        self._users -= 1
        if self._users <= 0:
            self.close()

    def close(self) -> None:
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None
        for number in list(self._waiting):
            self._time_out(number)

    @property
    def is_open(self) -> bool:
        return self._datagrams is not None

    async def open(self) -> None:
        """LinkError: there is no such address."""
        async with self._opening:
            if self._datagrams is not None:
                return
            try:
                host, port = split_address(self.address)
                opened = await connected(host, port)
            except (OSError, ValueError) as wrong:
                raise LinkError(f"{self.address} cannot be reached: {wrong}") from None
            self._datagrams = Datagrams(
                opened, self._received, self._refused, join, self.counters, rest=self._rest
            )

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def send(self, body: ToDevices, number: int = 0) -> None:
        """Once; lost if the socket is not open."""
        if self._datagrams is not None:
            data = encode(Packet(self._client, number, body))
            self.counters[SENT] += len(data)
            self._datagrams.add(data)

    def flush(self) -> None:
        if self._datagrams is not None:
            self._datagrams.flush()

    def begin(
        self, body: ToDevices, timeout_ms: float, answered: Answered, number: int | None = None
    ) -> bool:
        """Ask, and be called back once; False: the socket is not open."""
        if self._datagrams is None:
            return False
        if len(self._waiting) >= MAX_OPEN:
            answered(LinkError(f"{MAX_OPEN} requests wait for {self.address} already"))
            return True
        number = self.next_number() if number is None else number
        is_read = not (isinstance(body, Ask) and body.request.command is not None)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(timeout_ms / 1000, self._time_out, number)
        self._waiting[number] = (answered, is_read, timer)
        self.send(body, number)
        return True

    def _end(self, number: int, told: FromDevices | Exception) -> None:
        answered, _, timer = self._waiting.pop(number)
        timer.cancel()
        answered(told)

    def _time_out(self, number: int) -> None:
        self._end(number, TimeoutError())

    async def ask(self, body: ToDevices, timeout_ms: float, number: int | None = None) -> FromDevices:
        """TimeoutError: no answer. LinkError: it was not sent, or nothing listens there."""
        if self._datagrams is None:
            await self.open()
        number = self.next_number() if number is None else number
        answered: asyncio.Future[FromDevices] = asyncio.get_running_loop().create_future()

        def told(back: FromDevices | Exception) -> None:
            if answered.done():
                return  # whoever waited was cancelled
            if isinstance(back, Exception):
                answered.set_exception(back)
            else:
                answered.set_result(back)

        if not self.begin(body, timeout_ms, told, number):
            raise LinkError(f"the way to {self.address} was closed")
        try:
            return await answered
        finally:
            waiting = self._waiting.pop(number, None)
            if waiting is not None:
                waiting[2].cancel()

    # -- datagrams ---------------------------------------------------------------------------------------

    def _received(self, data: bytes, _: Address) -> None:
        self.counters[RECEIVED] += len(data)
        try:
            backs = decode_backs(data)
        except PacketError as wrong:
            self.counters[f"dropped: {wrong}"] += 1
            return
        for back in backs:
            self.clock.heard(back.life, back.now_ms, self._now_ms())
            if isinstance(back.body, Report):
                listener = self.on_report.get(back.body.device)
                if listener is not None:
                    listener(back.body)
            else:
                self._answered(back)

    def _answered(self, back: Back) -> None:
        if back.client != self._client or back.number not in self._waiting:
            self.counters["dropped: an answer that nobody waits for"] += 1
        else:
            self._end(back.number, back.body)

    def _refused(self) -> None:
        """Nothing listens there, or did not a moment ago."""
        self.counters["refused"] += 1
        reads = [number for number, (_, is_read, _) in self._waiting.items() if is_read]
        for number in reads:
            self._end(number, LinkError(f"nothing listens at {self.address}; is `comesh virtual` running?"))


class Links:
    """Of one process: one link per address. rest: all answers that came together were told."""

    def __init__(self, now_ms: Callable[[], float], rest: Callable[[], None] | None = None) -> None:
        self._now_ms = now_ms
        self._rest = rest
        self._links: dict[str, Link] = {}

    def get(self, address: str) -> Link:
        return self._links.setdefault(address, Link(address, self._now_ms, self._rest))

    def flush(self) -> None:
        """What was asked leaves now."""
        for link in self._links.values():
            link.flush()

    def traffic(self) -> dict[str, int]:
        """Bytes to and from devices, of all links."""
        return {name: sum(link.counters[name] for link in self._links.values()) for name in (SENT, RECEIVED)}

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
