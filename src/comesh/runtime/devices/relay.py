"""`Relay`: calls to devices that are part of another node, through that node.

Asking: a call waits for its reply for as long as the core would, and then has none. Whatever comes later, or
twice, or from a node that was not asked, is dropped and counted. Answering is in `hosting.py`.
"""

from collections import Counter
from collections.abc import Callable
from secrets import token_hex
from typing import Final

from comesh.core.devices.calls import NO_ANSWER
from comesh.core.ids import DeviceId, NodeId
from comesh.drivers.ages import PeerClock
from comesh.drivers.interface import DeviceCommand, no_answer, timeout_of
from comesh.drivers.pending import PendingCalls
from comesh.drivers.scheduler import Scheduler
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
"""Maximum number of devices whose last sequence number is remembered."""


class Relay:
    def __init__(self, scheduler: Scheduler, *, send: Send, trouble: Trouble, counters: Counter[str]) -> None:
        self._scheduler = scheduler
        self._send = send
        self._trouble = trouble
        self._counters = counters
        self._life = token_hex(4)
        self._calls: PendingCalls[tuple[NodeId, DeviceId], DeviceReply] = PendingCalls(
            scheduler, max_each=MAX_OPEN_CALLS
        )
        self._clocks: dict[NodeId, PeerClock] = {}
        """Clocks of the nodes that answered a call."""
        self._said: dict[DeviceId, tuple[str, int]] = {}

    def ask(self, home: NodeId, device: DeviceId, asked: DeviceCommand | None, answer: Answer) -> None:
        def ended(reply: DeviceReply | None) -> None:
            if reply is not None:
                answer({} if reply.error is not None else reply.readings, reply.error)
                return
            text = f"{no_answer(device, timeout_of(asked))} It is part of {home}."
            self._trouble(device, text)
            answer({}, text if asked is None else NO_ANSWER)

        number = self._calls.open((home, device), timeout_of(asked), ended)
        if number is None:
            self._counters["device calls refused"] += 1
            answer({}, f"{MAX_OPEN_CALLS} calls of {device} are open already; this one was not sent")
            return
        clock = self._clocks.get(home)
        host_life, host_ms = ("", 0.0) if clock is None else clock.at(self._scheduler.now_ms())
        self._send(home, encode(DeviceCall(device, self._life, number, host_life, host_ms, asked)))

    def subscribe(self, home: NodeId, device: DeviceId) -> None:
        self._send(home, encode(DeviceSubscribe(device)))

    def acknowledge(self, home: NodeId, device: DeviceId, token: str) -> None:
        self._send(home, encode(DeviceAcknowledge(device, token)))

    def on_reply(self, sender: NodeId, reply: DeviceReply) -> None:
        if reply.life != self._life or self._calls.of(reply.call) != (sender, reply.device):
            self._counters["dropped: a reply that nobody waits for"] += 1
            return
        clock = self._clocks.setdefault(sender, PeerClock())
        clock.heard(reply.host_life, reply.host_ms, self._scheduler.now_ms())
        self._is_new(reply.device, reply.host_life, reply.sequence)
        self._calls.answer(reply.call, reply)

    def is_news(self, report: DeviceReport) -> bool:
        """True if nothing newer from the device is known."""
        return self._is_new(report.device, report.host_life, report.sequence) or report.token is not None

    def close(self) -> None:
        self._calls.forget_all()

    def _is_new(self, device: DeviceId, life: str, sequence: int) -> bool:
        known = self._said.get(device)
        if known is not None and known[0] == life and sequence <= known[1]:
            return False
        self._said[device] = (life, sequence)
        if len(self._said) > MAX_KNOWN:
            del self._said[next(iter(self._said))]
        return True
