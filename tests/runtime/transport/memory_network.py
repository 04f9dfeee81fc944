"""A network in memory, for tests: the interface of the real one, with loss, repetition and delay if wanted.

    network = MemoryNetwork()
    one, other = network.transport(NodeId("n1")), network.transport(NodeId("n2"))

A sender is who it says, because only the transport of that name can say so.
"""

import asyncio
from collections import Counter
from typing import Final

from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.runtime.transport import MAX_MESSAGE_BYTES, Deliver, Rest, TransportError, no_rest

MAX_PENDING: Final = 65_536
"""Messages of one transport that wait for a flush or for their delay; more are dropped and counted."""


class MemoryNetwork:
    """Connects transports in memory. Without draws nothing is lost, repeated or late."""

    def __init__(
        self,
        draws: Draws | None = None,
        *,
        loss: float = 0.0,
        duplication: float = 0.0,
        delay_ms: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._draws = draws
        self._loss = loss
        self._duplication = duplication
        self._delay_ms = delay_ms
        self.opened: dict[NodeId, MemoryTransport] = {}

    def transport(self, own: NodeId) -> "MemoryTransport":
        return MemoryTransport(self, own)

    def fates(self) -> list[float]:
        """After how many milliseconds each copy of one message comes: none if it is lost."""
        if self._draws is None:
            return [0.0]
        if self._draws.chance(self._loss):
            return []
        copies = 2 if self._draws.chance(self._duplication) else 1
        return [self._draws.between(*self._delay_ms) for _ in range(copies)]


class MemoryTransport:
    def __init__(self, network: MemoryNetwork, own: NodeId) -> None:
        self._network = network
        self._own = own
        self._counters: Counter[str] = Counter()
        self._deliver: Deliver | None = None
        self._rest: Rest = no_rest
        self._pending: list[tuple[NodeId, bytes]] = []
        self._under_way: dict[int, asyncio.TimerHandle] = {}
        self._last = 0
        self._flush_soon: asyncio.Handle | None = None

    @property
    def counters(self) -> Counter[str]:
        return self._counters

    async def open(self, deliver: Deliver, rest: Rest = no_rest) -> None:
        if self._own in self._network.opened:
            raise TransportError(f"{self._own} is open in this network already; close it first")
        self._network.opened[self._own] = self
        self._deliver = deliver
        self._rest = rest

    def send(self, to: NodeId, message: bytes) -> None:
        if self._deliver is None:
            self._counters["dropped: the transport is not open"] += 1
        elif to == self._own:
            self._counters["dropped: to ourselves"] += 1
        elif len(message) > MAX_MESSAGE_BYTES:
            self._counters["dropped: message too long"] += 1
        elif len(self._pending) + len(self._under_way) >= MAX_PENDING:
            self._counters["dropped: too many messages wait"] += 1
        else:
            self._pending.append((to, message))
            if self._flush_soon is None:
                self._flush_soon = asyncio.get_running_loop().call_soon(self.flush)

    def send_to_all_of(self, to: NodeId, message: bytes) -> None:
        """There is only one: a name is opened once."""
        self.send(to, message)

    def flush(self) -> None:
        if self._flush_soon is not None:
            self._flush_soon.cancel()
            self._flush_soon = None
        pending, self._pending = self._pending, []
        for to, message in pending:
            self._counters["messages sent"] += 1
            self._counters["bytes sent"] += len(message)
            for delay_ms in self._network.fates():
                self._start(to, message, delay_ms)

    def _start(self, to: NodeId, message: bytes, delay_ms: float) -> None:
        """Schedules a delivery, never within this call: a receiver that answers at once would be inside its
        own step."""
        self._last += 1
        loop = asyncio.get_running_loop()
        self._under_way[self._last] = loop.call_later(
            delay_ms / 1000.0, self._arrive, self._last, to, message
        )

    def _arrive(self, number: int, to: NodeId, message: bytes) -> None:
        del self._under_way[number]
        receiver = self._network.opened.get(to)
        if receiver is None or receiver._deliver is None:
            self._counters["dropped: nobody there"] += 1
            return
        receiver._counters["messages received"] += 1
        receiver._counters["bytes received"] += len(message)
        receiver._deliver(self._own, message)
        receiver._rest()

    async def close(self) -> None:
        if self._network.opened.get(self._own) is self:
            del self._network.opened[self._own]
        self._deliver = None
        self._pending.clear()
        if self._flush_soon is not None:
            self._flush_soon.cancel()
            self._flush_soon = None
        for handle in self._under_way.values():
            handle.cancel()
        self._under_way.clear()
