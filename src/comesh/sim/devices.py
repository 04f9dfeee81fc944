"""The devices of a world, and the radio path between them and nodes, as a device protocol uses it.

A device protocol numbers and dates what it sends: what the radio repeats goes on once, and what it holds up
for longer than REQUEST_LIVES_MS not at all. A request crosses from the node's station to the device's like a
message (distance, loss and traffic count; at the same station there is none), the device works on it, and its
answer comes back. A call that is not answered in time (the timeout of its action, READ_TIMEOUT_MS for a read)
ends with an error. A command is not sent after its until_ms by the clock of its node.

What a device tells by itself goes to the node that subscribed last. Subscriptions and acknowledgements cross
the radio once: whoever sent one and sees no effect sends it again. A report may come twice, or very late.
Where the world's settings say push, a node that reads a device subscribes to it as well, every
LISTEN_EVERY_MS, as the runtime of a node does.

Speed: most of what devices do is to be read, so a read takes two entries of the engine: it arrives and is
answered in one.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, assert_never

import msgspec

from comesh.core.devices.calls import NO_ANSWER, TOO_LATE
from comesh.core.effects import AcknowledgeEvent, CommandDevice, ReadDevice, Subscribe
from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.ids import DeviceId
from comesh.core.node import AnyEvent
from comesh.drivers.interface import READ_TIMEOUT_MS, DeviceCommand, Readings
from comesh.drivers.pending import PendingCalls
from comesh.drivers.subscribers import Renewals
from comesh.drivers.virtual.devices import SWITCH, Acted, DeviceSpec, Pressed, Reply, Request, VirtualDevice
from comesh.sim.engine import Engine, EngineScheduler, Priority
from comesh.sim.machine import Machine, Process
from comesh.sim.radio import Radio
from comesh.sim.topology import Topology
from comesh.sim.traffic import Lost, Parcel

REQUEST_LIVES_MS: Final = 2000.0
MAX_OPEN_CALLS: Final = 1 << 20
"""Maximum number of open calls of a world; no run comes near it."""
CALL_NUMBER: Final = 1 << 31
"""A call number of maximal length, so that the size of a read depends on its device alone."""

_ARRIVAL: Final = int(Priority.ARRIVAL)
_encode = msgspec.msgpack.Encoder().encode
_NO_ORIGIN: Final = (None, 0, 0, None)
"""Stands for the origin of commands of no run; it has the same length."""

Asked = ReadDevice | CommandDevice


def read_bytes(device: DeviceId) -> int:
    """Returns the size of a read on the air."""
    return len(_encode((device, CALL_NUMBER, None, None, *_NO_ORIGIN)))


def command_bytes(effect: CommandDevice) -> int:
    """Returns the size of a command on the air: its action and origin, without its leader's timeout."""
    origin = _NO_ORIGIN if effect.origin is None else msgspec.structs.astuple(effect.origin)
    action = effect.action
    return len(_encode((effect.device, effect.call, action.command, action.argument, *origin)))


class WorldDevices(Mapping[DeviceId, VirtualDevice]):
    """All devices of a world by name."""

    def __init__(
        self,
        engine: Engine,
        radio: Radio,
        topology: Topology,
        specs: Mapping[DeviceId, DeviceSpec],
        give: Callable[[Process, AnyEvent], None],
        *,
        seed: int,
        push: bool = False,
    ) -> None:
        unknown = sorted(set(specs) - set(topology.devices))
        if unknown:
            raise ValueError(f"no device {unknown[0]} in this topology")
        self.log: list[Acted] = []
        """What the devices did, in order."""
        self.events: list[Pressed] = []
        """Events of event devices, in order."""
        self.watchers: list[Callable[[Process, Asked], None]] = []
        """Called with every request of a node to a device, whether it arrives or not."""
        self._engine = engine
        self._radio = radio
        self._stations = topology.devices
        self._give = give
        self._push = push
        self._calls: PendingCalls[None, DeviceAnswered] = PendingCalls(
            EngineScheduler(engine, Priority.TIMER), max_each=MAX_OPEN_CALLS
        )
        self._renewals: Renewals[tuple[str, DeviceId]] = Renewals()
        self._read_bytes: dict[DeviceId, int] = {}
        kind = radio.traffic.kind
        self._read_kind, self._command_kind = kind(ReadDevice.__name__), kind(CommandDevice.__name__)
        self._answer_kind, self._report_kind = kind(DeviceAnswered.__name__), kind(DeviceReported.__name__)
        scheduler = EngineScheduler(engine, Priority.ARRIVAL)
        self._devices = {
            name: VirtualDevice(
                name,
                specs.get(name, SWITCH),
                scheduler,
                seed=seed,
                record=self._record,
                pushes=push,
                has_power=partial(radio.up.__getitem__, station),
            )
            for name, station in sorted(topology.devices.items())
        }
        for device in self._devices.values():
            device.open()

    def __getitem__(self, device: DeviceId) -> VirtualDevice:
        return self._devices[device]

    def __iter__(self) -> Iterator[DeviceId]:
        return iter(self._devices)

    def __len__(self) -> int:
        return len(self._devices)

    def _record(self, entry: Acted | Pressed) -> None:
        if isinstance(entry, Acted):
            self.log.append(entry)
        else:
            self.events.append(entry)

    # -- calls -------------------------------------------------------------------------------------------

    def ask(self, process: Process, effect: Asked) -> None:
        for watcher in self.watchers:
            watcher(process, effect)
        device = self._devices.get(effect.device)
        if device is None:
            self._refuse(process, effect, "unknown device")
            return
        match effect:
            case ReadDevice():
                self._read(process, effect, device)
                if self._push and not device.spec.event:
                    self._listen(process, effect.device)
            case CommandDevice():
                now_ms = self._engine.now_ms
                if process.machine.clock.monotonic_ms(now_ms) > effect.until_ms:
                    self._refuse(process, effect, TOO_LATE)
                else:
                    self._command(process, effect, device)
            case _:
                assert_never(effect)

    def _refuse(self, process: Process, effect: Asked, why: str) -> None:
        error = DeviceAnswered(device=effect.device, call=effect.call, error=why)
        self._engine.at(self._engine.now_ms, _ARRIVAL, self._close, process, error)

    def _open(self, process: Process, effect: Asked, timeout_ms: float) -> int:
        def ended(answer: DeviceAnswered | None) -> None:
            none = DeviceAnswered(device=effect.device, call=effect.call, error=NO_ANSWER)
            self._close(process, none if answer is None else answer)

        call = self._calls.open(None, timeout_ms, ended)
        assert call is not None
        return call

    def _close(self, process: Process, event: DeviceAnswered) -> None:
        if process.machine.process is process:
            self._give(process, event)

    def _read(self, process: Process, effect: ReadDevice, device: VirtualDevice) -> None:
        call = self._open(process, effect, READ_TIMEOUT_MS)
        size_bytes = self._read_bytes.get(device.name)
        if size_bytes is None:
            size_bytes = self._read_bytes[device.name] = read_bytes(device.name)
        parcel = Parcel(self._read_kind, process.machine.station, self._stations[device.name], size_bytes)
        after_ms = self._cross(parcel)
        if after_ms is not None:
            at_ms = self._engine.now_ms + after_ms + device.read_ms
            self._engine.at(at_ms, _ARRIVAL, self._read_at_device, parcel, device, call, effect.call)

    def _read_at_device(self, parcel: Parcel, device: VirtualDevice, call: int, number: int) -> None:
        readings = device.read() if self._arrived(parcel) else None
        if readings is not None:
            self._send_back(parcel, call, Reply(device.name, number, readings))

    def _command(self, process: Process, effect: CommandDevice, device: VirtualDevice) -> None:
        call = self._open(process, effect, effect.action.timeout_ms)
        machine, now_ms = process.machine, self._engine.now_ms
        command = DeviceCommand(effect.action, effect.origin, machine.node_id, now_ms)
        request = Request(device.name, effect.call, command)
        parcel = Parcel(
            self._command_kind, machine.station, self._stations[device.name], command_bytes(effect)
        )
        after_ms = self._cross(parcel)
        if after_ms is not None:
            self._engine.at(
                now_ms + after_ms, _ARRIVAL, self._command_at_device, parcel, device, call, request
            )

    def _command_at_device(self, parcel: Parcel, device: VirtualDevice, call: int, request: Request) -> None:
        if self._arrived(parcel):
            device.ask(request, partial(self._send_back, parcel, call))

    def _send_back(self, asked: Parcel, call: int, reply: Reply) -> None:
        parcel = Parcel(self._answer_kind, asked.destination, asked.source, len(_encode(reply)))
        after_ms = self._cross(parcel)
        if after_ms is not None:
            self._engine.at(self._engine.now_ms + after_ms, _ARRIVAL, self._back, parcel, call, reply)

    def _back(self, parcel: Parcel, call: int, reply: Reply) -> None:
        if self._arrived(parcel):
            answer = DeviceAnswered(
                device=reply.device, call=reply.call, readings=reply.readings, error=reply.error
            )
            self._calls.answer(call, answer)

    # -- what devices tell by themselves -----------------------------------------------------------------

    def perform(self, process: Process, effect: Subscribe | AcknowledgeEvent) -> None:
        """Perform an effect of a node on a device."""
        device = self._devices.get(effect.device)
        if device is None:
            return
        machine = process.machine
        kind = self._radio.traffic.kind(type(effect).__name__)
        parcel = Parcel(kind, machine.station, self._stations[effect.device], len(_encode(effect)))
        after_ms = self._cross(parcel)
        if after_ms is not None:
            at_ms = self._engine.now_ms + after_ms
            self._engine.at(at_ms, _ARRIVAL, self._at_device, parcel, device, machine, effect)

    def _listen(self, process: Process, device: DeviceId) -> None:
        if self._renewals.are_due((process.machine.name, device), self._engine.now_ms):
            self.perform(process, Subscribe(device))

    def _at_device(
        self, parcel: Parcel, device: VirtualDevice, machine: Machine, effect: Subscribe | AcknowledgeEvent
    ) -> None:
        if not self._arrived(parcel) or not device.misbehaviour.hears:
            return
        match effect:
            case Subscribe():
                device.subscribe(partial(self._report, device.name, machine))
            case AcknowledgeEvent():
                device.acknowledge(effect.token)
            case _:
                assert_never(effect)

    def _report(self, device: DeviceId, listener: Machine, readings: Readings, token: str | None) -> None:
        report = DeviceReported(device=device, readings=readings, token=token)
        size_bytes = len(_encode((device, token, readings)))
        parcel = Parcel(self._report_kind, self._stations[device], listener.station, size_bytes)
        for after_ms in self._radio.transmit(parcel):
            at_ms = self._engine.now_ms + after_ms
            self._engine.at(at_ms, _ARRIVAL, self._reported, parcel, listener, report)

    def _reported(self, parcel: Parcel, listener: Machine, report: DeviceReported) -> None:
        if self._arrived(parcel) and listener.process is not None:
            self._give(listener.process, report)

    # -- the radio ---------------------------------------------------------------------------------------

    def _cross(self, parcel: Parcel) -> float | None:
        """Send a parcel; returns the delay of its first copy, if one arrives. Further copies are only
        counted."""
        arrivals = self._radio.transmit(parcel)
        if len(arrivals) == 1 and arrivals[0] <= REQUEST_LIVES_MS:
            return arrivals[0]
        first_ms: float | None = None
        for after_ms in sorted(arrivals):
            if after_ms > REQUEST_LIVES_MS:
                self._radio.traffic.lost(parcel, Lost.ON_THE_WAY)
            elif first_ms is None:
                first_ms = after_ms
            else:
                self._engine.at(self._engine.now_ms + after_ms, _ARRIVAL, self._count, parcel)
        return first_ms

    def _count(self, parcel: Parcel) -> None:
        self._arrived(parcel)

    def _arrived(self, parcel: Parcel) -> bool:
        """Count a parcel at its destination; False: nothing there hears it."""
        if not self._radio.up[parcel.destination]:
            self._radio.traffic.lost(parcel, Lost.STATION_DOWN)
            return False
        if parcel.source != parcel.destination:
            self._radio.traffic.received(parcel)
        return True
