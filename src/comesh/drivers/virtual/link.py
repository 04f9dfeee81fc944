"""Connects one process to a process of virtual devices: one socket for all of its devices.

Requests are sent once and not repeated here. An answer finds its request by number; one that comes when
nobody waits any more is dropped. If nothing listens there, reads fail at once; commands wait for their time,
because a refusal does not say which datagram it was for.

What was asked leaves with `flush`, or in the next turn of the loop; rest() says that all answers that came
together were told.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from secrets import randbits
from typing import Final

from comesh.core.ids import DeviceId
from comesh.drivers.ages import PeerClock
from comesh.drivers.pending import PendingCalls, TooManyError
from comesh.drivers.scheduler import Scheduler
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
"""Maximum number of reads, and of other requests, that wait for an answer; further ones are refused."""


Answered = Callable[["FromDevices | LinkError | None"], None]
"""Called with the answer, the reason why there is none, or None if none came in time."""


class LinkError(Exception):
    """The request could not be sent; str() says why."""


class Link:
    def __init__(self, address: str, scheduler: Scheduler, rest: Callable[[], None] | None = None) -> None:
        self.address = address
        self.clock = PeerClock()
        self._scheduler = scheduler
        self._rest = rest
        self.counters: Counter[str] = Counter()
        self.on_report: dict[DeviceId, Callable[[Report], None]] = {}
        self._client = randbits(62)
        self._calls: PendingCalls[bool, FromDevices | LinkError] = PendingCalls(scheduler, max_each=MAX_OPEN)
        """Open calls. Reads are True: a refusal ends them at once."""
        self._datagrams: Datagrams | None = None
        self._users = 0
        self._opening = asyncio.Lock()

    def use(self) -> None:
        self._users += 1

    def leave(self) -> None:
        """One user less; the last one closes the socket."""
        self._users -= 1
        if self._users <= 0:
            self.close()

    def close(self) -> None:
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None
        self._calls.close()

    @property
    def is_open(self) -> bool:
        return self._datagrams is not None

    async def open(self) -> None:
        """Open the socket. LinkError: there is no such address."""
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
        return self._calls.next_number()

    def send(self, body: ToDevices, number: int = 0) -> None:
        """Send once; lost if the socket is not open."""
        if self._datagrams is not None:
            data = encode(Packet(self._client, number, body))
            self.counters[SENT] += len(data)
            self._datagrams.add(data)

    def flush(self) -> None:
        if self._datagrams is not None:
            self._datagrams.flush()

    def begin(self, body: ToDevices, timeout_ms: float, answered: Answered) -> bool:
        """Send a request and call back once; False: the socket is not open."""
        if self._datagrams is None:
            return False
        call = self._calls.open(_is_read(body), timeout_ms, answered)
        if call is None:
            answered(self._too_many())
        else:
            self.send(body, call)
        return True

    async def ask(self, body: ToDevices, timeout_ms: float, number: int | None = None) -> FromDevices | None:
        """Send a request and wait. None: no answer in time. LinkError: it was not sent, or nothing listens
        there."""
        if self._datagrams is None:
            await self.open()
        try:
            answer = await self._calls.call(
                _is_read(body), timeout_ms, partial(self.send, body), number=number
            )
        except TooManyError:
            raise self._too_many() from None
        if isinstance(answer, LinkError):
            raise answer
        return answer

    def _too_many(self) -> LinkError:
        return LinkError(f"{MAX_OPEN} requests wait for {self.address} already")

    # -- datagrams ---------------------------------------------------------------------------------------

    def _received(self, data: bytes, _: Address) -> None:
        self.counters[RECEIVED] += len(data)
        try:
            backs = decode_backs(data)
        except PacketError as wrong:
            self.counters[f"dropped: {wrong}"] += 1
            return
        for back in backs:
            self.clock.heard(back.life, back.now_ms, self._scheduler.now_ms())
            if isinstance(back.body, Report):
                listener = self.on_report.get(back.body.device)
                if listener is not None:
                    listener(back.body)
            else:
                self._answered(back)

    def _answered(self, back: Back) -> None:
        if back.client != self._client or not self._calls.answer(back.number, back.body):
            self.counters["dropped: an answer that nobody waits for"] += 1

    def _refused(self) -> None:
        """Nothing listens there, or did not a moment ago: reads end at once."""
        self.counters["refused"] += 1
        why = LinkError(f"nothing listens at {self.address}; is `comesh virtual` running?")
        self._calls.answer_all(True, why)


def _is_read(body: ToDevices) -> bool:
    return not (isinstance(body, Ask) and body.request.command is not None)


class Links:
    """The links of a process, one per address. rest: called when all answers that arrived together were
    handled."""

    def __init__(self, scheduler: Scheduler, rest: Callable[[], None] | None = None) -> None:
        self._scheduler = scheduler
        self._rest = rest
        self._links: dict[str, Link] = {}

    def get(self, address: str) -> Link:
        return self._links.setdefault(address, Link(address, self._scheduler, self._rest))

    def flush(self) -> None:
        """Send all queued requests now."""
        for link in self._links.values():
            link.flush()

    def traffic(self) -> dict[str, int]:
        """Returns bytes to and from devices, of all links."""
        return {name: sum(link.counters[name] for link in self._links.values()) for name in (SENT, RECEIVED)}

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
