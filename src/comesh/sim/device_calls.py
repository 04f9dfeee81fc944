"""Device calls: a node's read or command on its way to a virtual device and back.

A request crosses the radio from the node's station to the device's like a message (distance, loss and
traffic count; at the same station there is none), the device works on it, and its answer comes back. What
does not come back in time (a command's own timeout, or DRIVER_TIMEOUT_MS for a read) is answered with an
error, once. Only a device whose commands land late (`DeviceLate`) hears them whatever their age, and its
answers to them are lost.

A command is not sent after its until_ms by the clock of its node. Speed: most reads come back, so a timeout
is only scheduled once it is known that no answer will come in time; a read is heard and answered at once.
"""

from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from comesh.core.effects import CommandDevice, ReadDevice
from comesh.core.events import DeviceAnswered
from comesh.core.ids import DeviceId
from comesh.core.node import AnyEvent
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.devices import Reply, Request, VirtualDevices
from comesh.sim.device_radio import DeviceRadio
from comesh.sim.engine import Engine, Priority
from comesh.sim.machine import Process
from comesh.sim.radio import Radio
from comesh.sim.topology import Topology
from comesh.sim.traffic import Parcel

DRIVER_TIMEOUT_MS: Final = 2000.0
SOME_CALL: Final = 1 << 31
"""As long as call numbers get: so the size of a read depends on its device alone."""

_ARRIVAL: Final = int(Priority.ARRIVAL)
_TIMER: Final = int(Priority.TIMER)
_encode = msgspec.msgpack.Encoder().encode
_OF_NO_RUN: Final = (None, 0, 0, None)
"""As long as an origin."""


def read_bytes(device: DeviceId) -> int:
    """What a read of the device is on the air."""
    return len(_encode((device, SOME_CALL, None, None, *_OF_NO_RUN)))


def command_bytes(effect: CommandDevice) -> int:
    """What a command is on the air: what to do and for whom, but not how long its leader waits for it."""
    origin = _OF_NO_RUN if effect.origin is None else msgspec.structs.astuple(effect.origin)
    action = effect.action
    return len(_encode((effect.device, effect.call, action.command, action.argument, *origin)))


class _Call:
    """One read or command under way."""

    __slots__ = (
        "began_ms",
        "due_ms",
        "late",
        "parcel",
        "process",
        "refused",
        "request",
        "timed_out",
    )

    def __init__(self, process: Process, request: Request, parcel: Parcel, due_ms: float) -> None:
        self.process = process
        self.request = request
        self.parcel = parcel
        self.due_ms = due_ms
        self.began_ms = 0.0
        self.late = False
        self.refused: str | None = None
        self.timed_out = False
        """Its error is given, or will be when it is due: an answer comes too late."""


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
        self._air = DeviceRadio(engine, radio)
        self._stations = topology.devices
        self._devices = devices
        self._give = give
        self._read_bytes: dict[DeviceId, int] = {}
        self._read_kind = radio.traffic.kind(ReadDevice.__name__)
        self._command_kind = radio.traffic.kind(CommandDevice.__name__)
        self._answer_kind = radio.traffic.kind(DeviceAnswered.__name__)

    def ask(self, process: Process, effect: ReadDevice | CommandDevice) -> None:
        device = effect.device
        station = self._stations.get(device)
        if station is None:
            self._refuse(process, effect, "unknown device")
            return
        match effect:
            case ReadDevice():
                self._read(process, effect, station)
            case CommandDevice():
                now_ms = self._engine.now_ms
                if process.machine.clock.monotonic_ms(now_ms) > effect.until_ms:
                    self._refuse(process, effect, "too late")
                else:
                    self._command(process, effect, station)
            case _:
                assert_never(effect)

    def _refuse(self, process: Process, effect: ReadDevice | CommandDevice, why: str) -> None:
        error = DeviceAnswered(device=effect.device, call=effect.call, error=why)
        self._engine.at(self._engine.now_ms, _ARRIVAL, self._close, process, error)

    # Reads

    def _read(self, process: Process, effect: ReadDevice, station: int) -> None:
        device = effect.device
        size_bytes = self._read_bytes.get(device)
        if size_bytes is None:
            size_bytes = self._read_bytes[device] = read_bytes(device)
        now_ms = self._engine.now_ms
        parcel = Parcel(self._read_kind, process.machine.station, station, size_bytes)
        call = _Call(process, Request(device, effect.call), parcel, now_ms + DRIVER_TIMEOUT_MS)
        after_ms = self._air.cross(parcel)
        if after_ms is None:
            self._no_answer(call)
        else:
            self._due(call, now_ms + after_ms + self._devices.read_ms(device), self._read_at_device)

    def _read_at_device(self, call: _Call) -> None:
        readings = None
        if self._air.arrived(call.parcel):
            readings = self._devices.read(call.request.device, self._engine.now_ms)
        if readings is None:
            self._no_answer(call)
        else:
            self._send_back(call, Reply(call.request.device, call.request.call, readings))

    # Commands

    def _command(self, process: Process, effect: CommandDevice, station: int) -> None:
        device, now_ms = effect.device, self._engine.now_ms
        command = DeviceCommand(effect.action, effect.origin, process.machine.node_id, now_ms)
        request = Request(device, effect.call, command)
        parcel = Parcel(self._command_kind, process.machine.station, station, command_bytes(effect))
        call = _Call(process, request, parcel, now_ms + effect.action.timeout_ms)
        after_ms = self._air.cross(parcel)
        if after_ms is None:
            self._no_answer(call)
            return
        late_ms = self._devices.late_ms(device)
        if late_ms:
            call.late = True
            self._no_answer(call)
        self._due(call, now_ms + after_ms + late_ms, self._at_device)

    def _at_device(self, call: _Call) -> None:
        begun = None
        if call.request.command is not None and self._air.arrived(call.parcel):
            begun = self._devices.begin(call.request.device, call.request.command)
        if begun is None:
            self._no_answer(call)
            return
        takes_ms, call.refused = begun
        call.began_ms = self._engine.now_ms
        self._due(call, call.began_ms + takes_ms, self._act)

    def _act(self, call: _Call) -> None:
        reply, request = None, call.request
        if request.command is not None and self._radio.up[call.parcel.destination]:
            reply = self._devices.act(
                request.device,
                request.call,
                request.command,
                self._engine.now_ms,
                refused=call.refused,
                began_ms=call.began_ms,
            )
        if reply is None:
            self._no_answer(call)
        elif not call.late:
            self._send_back(call, reply)

    # Answers

    def _send_back(self, call: _Call, reply: Reply) -> None:
        there, back = call.parcel.destination, call.parcel.source
        parcel = Parcel(self._answer_kind, there, back, len(_encode(reply)))
        after_ms = self._air.cross(parcel)
        if after_ms is None:
            self._no_answer(call)
        else:
            self._due(call, self._engine.now_ms + after_ms, self._arrive, parcel, reply)

    def _arrive(self, call: _Call, parcel: Parcel, reply: Reply) -> None:
        if self._air.arrived(parcel) and not call.timed_out:
            event = DeviceAnswered(
                device=reply.device, call=reply.call, readings=reply.readings, error=reply.error
            )
            self._close(call.process, event)

    def _due(self, call: _Call, at_ms: float, then: Callable[..., None], *more: object) -> None:
        """Go on with a call at that time; if it is over by then, its timeout comes first."""
        if at_ms > call.due_ms:
            self._no_answer(call)
        self._engine.at(at_ms, _ARRIVAL, then, call, *more)

    def _no_answer(self, call: _Call) -> None:
        """It is known that none comes in time."""
        if not call.timed_out:
            call.timed_out = True
            failed = DeviceAnswered(device=call.request.device, call=call.request.call, error="no answer")
            self._engine.at(call.due_ms, _TIMER, self._close, call.process, failed)

    def _close(self, process: Process, event: DeviceAnswered) -> None:
        if process.machine.process is process:
            self._give(process, event)
