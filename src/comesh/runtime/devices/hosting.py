"""`Hosting`: answers calls of other nodes to the devices that are part of this one.

A command that comes twice is done once. It is begun as soon as it comes, and not at all once as long has
passed as its asker waits for it; see `frames.py` for what protects against late ones.
"""

from collections import Counter
from collections.abc import Callable
from secrets import token_hex

from msgspec.structs import replace

from comesh.core.devices.calls import TOO_LATE
from comesh.core.ids import NodeId
from comesh.drivers.ages import is_too_old
from comesh.drivers.interface import Readings
from comesh.drivers.recent import Recent
from comesh.runtime.devices.frames import DeviceCall, DeviceReply, DeviceReport, encode
from comesh.runtime.devices.local import LocalDevice
from comesh.runtime.devices.relay import Send


class Hosting:
    def __init__(self, *, send: Send, now_ms: Callable[[], float], counters: Counter[str]) -> None:
        self._send = send
        self._now_ms = now_ms
        self._counters = counters
        self._life = token_hex(4)
        self._recent: Recent[bytes] = Recent()

    def on_call(self, sender: NodeId, call: DeviceCall, local: LocalDevice | None, why_not: str) -> None:
        key = (sender, call.life, call.call)
        is_command = call.command is not None
        if is_command and not self._recent.begin(key):
            self._counters["device calls that came twice"] += 1
            known = self._recent.answer(key)
            if known is not None:
                self._send(sender, known)
            return

        def answer(readings: Readings, error: str | None) -> None:
            if local is not None:
                local.sequence += 1
            reply = DeviceReply(
                call.device,
                call.life,
                call.call,
                self._life,
                self._now_ms(),
                0 if local is None else local.sequence,
                readings,
                error,
            )
            frame = encode(reply)
            if is_command:
                self._recent.end(key, frame)
            self._send(sender, frame)

        if local is None:
            answer({}, why_not)
        elif call.command is None:
            local.ask(None, answer)
        elif is_too_old(call.host_life, call.host_ms, own_life=self._life, now_ms=self._now_ms()):
            self._counters["commands that came too late"] += 1
            answer({}, TOO_LATE)
        else:
            until_ms = self._now_ms() + call.command.action.timeout_ms
            local.ask(replace(call.command, by=sender), answer, until_ms)

    def report(self, subscriber: NodeId, local: LocalDevice, readings: Readings, token: str | None) -> None:
        report = DeviceReport(local.device, self._life, self._now_ms(), local.sequence, readings, token)
        self._send(subscriber, encode(report))
