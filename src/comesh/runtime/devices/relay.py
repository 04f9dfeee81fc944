"""`Relay`: calls to devices that are part of another node, through that node.

Asking: a call waits for its reply for as long as the core would, and then has none. Whatever comes later, or
twice, or from a node that was not asked, is dropped and counted. Answering is in `hosting.py`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from secrets import token_hex
from typing import Final

from comesh.core.devices.calls import NO_ANSWER
from comesh.core.ids import DeviceId, NodeId
from comesh.drivers.ages import PeerClock
from comesh.drivers.interface import DeviceCommand, no_answer, timeout_of
from comesh.runtime.devices.frames import (
    DeviceAcknowledge,
    DeviceCall,
    DeviceReply,
    DeviceReport,
    DeviceSubscribe,
    encode,
)
from comesh.runtime.devices.local import MAX_OPEN_CALLS, Answer, Trouble

Send = Callable[[NodeId, bytes], None]
MAX_KNOWN: Final = 10_000
"""Devices of which it is remembered what they said last."""


class _Open:
    __slots__ = ("answer", "device", "home", "is_command", "timer")

    def __init__(self, device: DeviceId, home: NodeId, is_command: bool, answer: Answer) -> None:
        self.device = device
        self.home = home
        self.is_command = is_command
        self.answer = answer
        self.timer: asyncio.TimerHandle | None = None


class Relay:
    def __init__(
        self, *, send: Send, now_ms: Callable[[], float], trouble: Trouble, counters: Counter[str]
    ) -> None:
        self._send = send
        self._now_ms = now_ms
        self._trouble = trouble
        self._counters = counters
        self._life = token_hex(4)
        self._number = 0
        self._open: dict[int, _Open] = {}
        self._count: Counter[DeviceId] = Counter()
        self._clocks: dict[NodeId, PeerClock] = {}
        """Of nodes that answered a call."""
        self._said: dict[DeviceId, tuple[str, int]] = {}

    def ask(self, home: NodeId, device: DeviceId, asked: DeviceCommand | None, answer: Answer) -> None:
        if self._count[device] >= MAX_OPEN_CALLS:
            self._counters["device calls refused"] += 1
            answer({}, f"{MAX_OPEN_CALLS} calls of {device} are open already; this one was not sent")
            return
        self._number += 1
        number = self._number
        clock = self._clocks.get(home)
        host_life, host_ms = ("", 0.0) if clock is None else clock.at(self._now_ms())
        call = DeviceCall(device, self._life, number, host_life, host_ms, asked)
        timeout_ms = timeout_of(asked)
        waiting = self._open[number] = _Open(device, home, asked is not None, answer)
        self._count[device] += 1
        loop = asyncio.get_running_loop()
        waiting.timer = loop.call_later(timeout_ms / 1000, self._no_answer, number, timeout_ms)
        self._send(home, encode(call))

    def subscribe(self, home: NodeId, device: DeviceId) -> None:
        self._send(home, encode(DeviceSubscribe(device)))

    def acknowledge(self, home: NodeId, device: DeviceId, token: str) -> None:
        self._send(home, encode(DeviceAcknowledge(device, token)))

    def on_reply(self, sender: NodeId, reply: DeviceReply) -> None:
        waiting = self._open.get(reply.call) if reply.life == self._life else None
        if waiting is None or waiting.home != sender or waiting.device != reply.device:
            self._counters["dropped: a reply that nobody waits for"] += 1
            return
        self._end(reply.call, waiting)
        clock = self._clocks.setdefault(sender, PeerClock())
        clock.heard(reply.host_life, reply.host_ms, self._now_ms())
        self._is_new(reply.device, reply.host_life, reply.sequence)
        waiting.answer({} if reply.error is not None else reply.readings, reply.error)

    def is_news(self, report: DeviceReport) -> bool:
        """Whether nothing is known that the device said later."""
        return self._is_new(report.device, report.host_life, report.sequence) or report.token is not None

    def close(self) -> None:
        for waiting in self._open.values():
            if waiting.timer is not None:
                waiting.timer.cancel()
        self._open.clear()
        self._count.clear()

    def _no_answer(self, number: int, timeout_ms: float) -> None:
        waiting = self._open[number]
        self._end(number, waiting)
        text = f"{no_answer(waiting.device, timeout_ms)} It is part of {waiting.home}."
        self._trouble(waiting.device, text)
        waiting.answer({}, NO_ANSWER if waiting.is_command else text)

    def _end(self, number: int, waiting: _Open) -> None:
        del self._open[number]
        self._count[waiting.device] -= 1
        if waiting.timer is not None:
            waiting.timer.cancel()

    def _is_new(self, device: DeviceId, life: str, sequence: int) -> bool:
        known = self._said.get(device)
        if known is not None and known[0] == life and sequence <= known[1]:
            return False
        self._said[device] = (life, sequence)
        if len(self._said) > MAX_KNOWN:
            del self._said[next(iter(self._said))]
        return True
