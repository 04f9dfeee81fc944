"""The way of one process to a process of virtual devices: one socket for all of its devices.

Requests are sent once and not repeated here. An answer finds its request by number; one that comes when
nobody waits any more is dropped. If nothing listens there, reads fail at once; commands wait for their time,
because a refusal does not say which datagram it was for.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from secrets import randbits
from typing import Final

from comesh.core.ids import DeviceId
from comesh.drivers.virtual.wire import (
    Ask,
    Back,
    FromDevices,
    Packet,
    PacketError,
    Report,
    ToDevices,
    decode_back,
    encode,
    split_address,
)

MOST_OPEN: Final = 4096
"""Requests of one process that wait for an answer; further ones are refused."""


class LinkError(Exception):
    """It could not be sent; str() says why."""


class Link:
    def __init__(self, address: str) -> None:
        self.address = address
        self.counters: Counter[str] = Counter()
        self.on_report: dict[DeviceId, Callable[[Report], None]] = {}
        self._client = randbits(62)
        self._number = 0
        self._waiting: dict[int, tuple[asyncio.Future[FromDevices], bool]] = {}
        """By number: who waits, and whether it is a read."""
        self._transport: asyncio.DatagramTransport | None = None
        self.is_full = False
        """The socket takes no more: what is sent is lost, and counted."""
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
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        for answered, _ in self._waiting.values():
            if not answered.done():
                answered.set_exception(TimeoutError())
        self._waiting.clear()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    async def open(self) -> None:
        """LinkError: there is no such address."""
        async with self._opening:
            if self._transport is not None:
                return
            try:
                host, port = split_address(self.address)
                loop = asyncio.get_running_loop()
                self._transport, _ = await loop.create_datagram_endpoint(
                    lambda: _Receiver(self), remote_addr=(host, port)
                )
            except (OSError, ValueError) as wrong:
                raise LinkError(f"{self.address} cannot be reached: {wrong}") from None

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def send(self, body: ToDevices, number: int = 0) -> None:
        """Once; lost if the socket is not open."""
        if self._transport is None or self._transport.is_closing():
            return
        if self.is_full:
            self.counters["dropped: the socket is full"] += 1
        else:
            self._transport.sendto(encode(Packet(self._client, number, body)))

    async def ask(self, body: ToDevices, timeout_ms: float, number: int | None = None) -> FromDevices:
        """TimeoutError: no answer. LinkError: it was not sent, or nothing listens there."""
        if self._transport is None:
            await self.open()
        if len(self._waiting) >= MOST_OPEN:
            raise LinkError(f"{MOST_OPEN} requests wait for {self.address} already")
        number = self.next_number() if number is None else number
        answered: asyncio.Future[FromDevices] = asyncio.get_running_loop().create_future()
        is_read = not (isinstance(body, Ask) and body.request.command is not None)
        self._waiting[number] = (answered, is_read)
        try:
            self.send(body, number)
            return await asyncio.wait_for(answered, timeout_ms / 1000)
        finally:
            self._waiting.pop(number, None)

    # -- datagrams ---------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        try:
            back = decode_back(data)
        except PacketError as wrong:
            self.counters[f"dropped: {wrong}"] += 1
            return
        if isinstance(back.body, Report):
            listener = self.on_report.get(back.body.device)
            if listener is not None:
                listener(back.body)
            return
        self._answered(back)

    def _answered(self, back: Back) -> None:
        waiting = self._waiting.get(back.number) if back.client == self._client else None
        if waiting is None or waiting[0].done():
            self.counters["dropped: an answer that nobody waits for"] += 1
        else:
            waiting[0].set_result(back.body)

    def refused(self) -> None:
        """Nothing listens there, or did not a moment ago."""
        self.counters["refused"] += 1
        for answered, is_read in self._waiting.values():
            if is_read and not answered.done():
                answered.set_exception(
                    LinkError(f"nothing listens at {self.address}; is `comesh devices` running?")
                )


class _Receiver(asyncio.DatagramProtocol):
    def __init__(self, link: Link) -> None:
        self._link = link

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._link.received(data)

    def pause_writing(self) -> None:
        self._link.is_full = True

    def resume_writing(self) -> None:
        self._link.is_full = False

    def error_received(self, exc: Exception) -> None:
        self._link.refused()


class Links:
    """Of one process: one link per address."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    def get(self, address: str) -> Link:
        return self._links.setdefault(address, Link(address))

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
