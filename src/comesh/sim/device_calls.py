"""Device calls: a node's read or command on its way to a virtual device and back.

A request crosses the radio from the node's station to the device's like a message (distance, loss and
traffic count; at the same station there is none), the device works on it, and its answer comes back.
What does not come back within the driver's `DRIVER_TIMEOUT_MS`, besides the time that the command is
known to take, is answered with an error, once. A request that the radio repeats reaches the device once:
device protocols number their requests.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from comesh.core.effects import CommandDevice, ReadDevice
from comesh.core.events import DeviceAnswered
from comesh.core.node import AnyEvent
from comesh.sim.devices import Reply, Request, VirtualDevices
from comesh.sim.engine import Engine, Priority
from comesh.sim.machine import Process
from comesh.sim.radio import Radio
from comesh.sim.topology import Topology
from comesh.sim.traffic import Lost, Parcel

DRIVER_TIMEOUT_MS: Final = 2000.0

_encode = msgspec.msgpack.Encoder().encode


class DeviceCalls:
    """All calls under way."""

    def __init__(
        self,
        engine: Engine,
        radio: Radio,
        topology: Topology,
        devices: VirtualDevices,
        give: Callable[[Process, AnyEvent], None],
    ) -> None:
        self._engine = engine
        self._radio = radio
        self._stations = topology.devices
        self._devices = devices
        self._give = give
        self._timeouts: dict[tuple[Process, str, int], int] = {}
        self._answer_kind = radio.traffic.kind(DeviceAnswered.__name__)

    def ask(self, process: Process, effect: ReadDevice | CommandDevice) -> None:
        match effect:
            case ReadDevice():
                request = Request(effect.device, effect.call)
            case CommandDevice():
                request = Request(effect.device, effect.call, effect.command, effect.argument)
        if effect.device not in self._stations:
            error = DeviceAnswered(device=effect.device, call=effect.call, error="unknown device")
            self._later(0.0, self._close, process, error)
            return
        failed = DeviceAnswered(device=effect.device, call=effect.call, error="no answer")
        due_ms = self._engine.now_ms + self._devices.acting_ms(request) + DRIVER_TIMEOUT_MS
        timeout = self._engine.at(due_ms, Priority.TIMER, self._time_out, process, failed)
        self._timeouts[process, request.device, request.call] = timeout
        kind = self._radio.traffic.kind(type(effect).__name__)
        here, there = process.machine.station, self._stations[effect.device]
        parcel = Parcel(kind, here, there, len(_encode(request)))
        self._cross(parcel, self._at_device, process, request)

    def _at_device(self, process: Process, request: Request) -> None:
        takes_ms = self._devices.takes_ms(request)
        if takes_ms is not None:
            self._later(takes_ms, self._answer, process, request)

    def _answer(self, process: Process, request: Request) -> None:
        station = self._stations[request.device]
        if not self._radio.up[station]:
            return
        reply = self._devices.answer(request, process.machine.node_id, self._engine.now_ms)
        if reply is not None:
            parcel = Parcel(self._answer_kind, station, process.machine.station, len(_encode(reply)))
            self._cross(parcel, self._arrive, process, reply)

    def _arrive(self, process: Process, reply: Reply) -> None:
        event = DeviceAnswered(
            device=reply.device, call=reply.call, readings=reply.readings, error=reply.error
        )
        timeout = self._timeouts.pop((process, reply.device, reply.call), None)
        if timeout is not None:
            self._engine.cancel(timeout)
            self._close(process, event)

    def _time_out(self, process: Process, event: DeviceAnswered) -> None:
        del self._timeouts[process, event.device, event.call]
        self._close(process, event)

    def _close(self, process: Process, event: DeviceAnswered) -> None:
        if process.machine.process is process:
            self._give(process, event)

    def _cross(
        self, parcel: Parcel, then: Callable[..., None], process: Process, what: Request | Reply
    ) -> None:
        """Send by radio; the first copy that arrives goes on."""
        for number, after_ms in enumerate(sorted(self._radio.transmit(parcel))):
            goes_on = then if number == 0 else None
            self._later(after_ms, self._crossed, parcel, goes_on, process, what)

    def _crossed(
        self, parcel: Parcel, then: Callable[..., None] | None, process: Process, what: Request | Reply
    ) -> None:
        if not self._radio.up[parcel.destination]:
            self._radio.traffic.lost(parcel, Lost.STATION_DOWN)
            return
        if parcel.source != parcel.destination:
            self._radio.traffic.received(parcel)
        if then is not None:
            then(process, what)

    def _later(self, after_ms: float, call: Callable[..., None], *arguments: object) -> None:
        self._engine.at(self._engine.now_ms + after_ms, Priority.ARRIVAL, call, *arguments)
