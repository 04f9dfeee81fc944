"""What devices say by themselves: events, and where the world lets them push, changed readings.

A press is kept by its device, and told until it is acknowledged. A device tells its events to the node that
subscribed last, oldest first and one at a time, by radio, again every REPEAT_MS; the next one when that one
is acknowledged. Subscriptions and acknowledgements cross the radio too, once each: whoever sent one and
sees no effect sends it again. A report may come twice, or very late.

Readings are read, and not told, unless the world's settings say push. Then who reads a device subscribes to
it as well, every LISTEN_EVERY_MS, as a node's runtime does; and the device tells the one that subscribed
last when its readings change by themselves, at once and once: what is lost on the way, the next read finds.
What a command changed is in its answer.
"""

from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from comesh.core.draws import Draws
from comesh.core.effects import AcknowledgeEvent, CommandDevice, ReadDevice, Subscribe
from comesh.core.events import DeviceReported
from comesh.core.ids import DeviceId
from comesh.core.node import AnyEvent
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.virtual.devices import VirtualDevices
from comesh.drivers.virtual.sources import next_change_ms
from comesh.sim.device_radio import DeviceRadio
from comesh.sim.engine import Engine, Priority
from comesh.sim.machine import Machine, Process
from comesh.sim.radio import Radio
from comesh.sim.topology import Topology
from comesh.sim.traffic import Parcel

REPEAT_MS: Final = 1000.0
LISTEN_EVERY_MS: Final = 5000.0

_ARRIVAL: Final = int(Priority.ARRIVAL)
_encode = msgspec.msgpack.Encoder().encode


class DeviceEvents:
    """All devices that say something by themselves, and who listens to them."""

    def __init__(
        self,
        engine: Engine,
        radio: Radio,
        topology: Topology,
        devices: VirtualDevices,
        give: Callable[[Process, AnyEvent], None],
        *,
        seed: int,
        push: bool = False,
    ) -> None:
        self._engine = engine
        self._radio = radio
        self._air = DeviceRadio(engine, radio)
        self._stations = topology.devices
        self._devices = devices
        self._give = give
        self._push = push
        self._listener: dict[DeviceId, Machine] = {}
        self._repeats: dict[DeviceId, int] = {}
        """The engine's number of the next telling."""
        self._listened_ms: dict[tuple[str, DeviceId], float] = {}
        """When each machine last subscribed to a device that it reads."""
        self._pushed: dict[DeviceId, dict[str, Value]] = {}
        self._report_kind = radio.traffic.kind(DeviceReported.__name__)
        for device in devices.event_devices():
            between_ms = devices.spec(device).presses_ms
            if between_ms is not None:
                self._press_later(device, between_ms, stream(seed, f"presses {device}"))

    def press(self, device: DeviceId, values: dict[str, Value]) -> None:
        """An event; without values, what its readings show."""
        now_ms = self._engine.now_ms
        kept = self._devices.press(device, values or self._devices.readings(device, now_ms), now_ms)
        if kept and device not in self._repeats:
            self._tell(device)

    def listen(self, process: Process, effect: ReadDevice | CommandDevice) -> None:
        """Who reads a device wants to hear of changes at once, where it can push."""
        if not self._push or isinstance(effect, CommandDevice):
            return
        device = effect.device
        if device not in self._stations or self._devices.spec(device).event:
            return
        now_ms, key = self._engine.now_ms, (process.machine.name, device)
        if now_ms - self._listened_ms.get(key, -LISTEN_EVERY_MS) >= LISTEN_EVERY_MS:
            self._listened_ms[key] = now_ms
            self.perform(process, Subscribe(device))

    def perform(self, process: Process, effect: Subscribe | AcknowledgeEvent) -> None:
        """Send it to the device."""
        station = self._stations.get(effect.device)
        if station is None:
            return
        machine = process.machine
        kind = self._radio.traffic.kind(type(effect).__name__)
        parcel = Parcel(kind, machine.station, station, len(_encode(effect)))
        after_ms = self._air.cross(parcel)
        if after_ms is not None:
            at_ms = self._engine.now_ms + after_ms
            self._engine.at(at_ms, _ARRIVAL, self._at_device, parcel, machine, effect)

    def _press_later(self, device: DeviceId, between_ms: tuple[float, float], draws: Draws) -> None:
        at_ms = self._engine.now_ms + draws.between(*between_ms)
        self._engine.at(at_ms, _ARRIVAL, self._press_itself, device, between_ms, draws)

    def _press_itself(self, device: DeviceId, between_ms: tuple[float, float], draws: Draws) -> None:
        self.press(device, {})
        self._press_later(device, between_ms, draws)

    # At the device

    def _at_device(self, parcel: Parcel, machine: Machine, effect: Subscribe | AcknowledgeEvent) -> None:
        device = effect.device
        if not self._air.arrived(parcel) or self._devices.is_down(device):
            return
        match effect:
            case Subscribe():
                self._listener[device] = machine
                if self._devices.spec(device).event:
                    self._tell_anew(device)
                elif device not in self._pushed:
                    self._pushed[device] = self._devices.readings(device, self._engine.now_ms)
                    self._look_later(device)
            case AcknowledgeEvent():
                before = self._devices.next_event(device)
                self._devices.acknowledge(device, effect.token)
                if before is not self._devices.next_event(device):
                    self._tell_anew(device)
            case _:
                assert_never(effect)

    def _tell_anew(self, device: DeviceId) -> None:
        pending = self._repeats.pop(device, None)
        if pending is not None:
            self._engine.cancel(pending)
        self._tell(device)

    def _tell(self, device: DeviceId) -> None:
        """Tell the oldest event, and again later, as long as there is one and somebody to tell."""
        self._repeats.pop(device, None)
        event = self._devices.next_event(device)
        listener = self._listener.get(device)
        if event is None or listener is None:
            return
        self._repeats[device] = self._engine.at(
            self._engine.now_ms + REPEAT_MS, Priority.TIMER, self._tell, device
        )
        station = self._stations[device]
        if self._devices.is_down(device) or not self._radio.up[station]:
            return
        self._send(listener, DeviceReported(device=device, readings=event.values, token=event.token))

    def _look_later(self, device: DeviceId) -> None:
        """Look again when its readings may change by themselves."""
        now_ms = self._engine.now_ms
        changes_ms = [next_change_ms(one, now_ms) for one in self._devices.spec(device).sources.values()]
        coming_ms = [at_ms for at_ms in changes_ms if at_ms is not None]
        if coming_ms:
            self._engine.at(min(coming_ms), Priority.TIMER, self._look, device)

    def _look(self, device: DeviceId) -> None:
        readings = self._devices.read(device, self._engine.now_ms)
        listener = self._listener[device]
        up = self._radio.up[self._stations[device]]
        if readings is not None and up and readings != self._pushed[device]:
            self._pushed[device] = readings
            self._send(listener, DeviceReported(device=device, readings=readings))
        self._look_later(device)

    def _send(self, listener: Machine, report: DeviceReported) -> None:
        told = (report.device, report.token, report.readings)
        parcel = Parcel(
            self._report_kind, self._stations[report.device], listener.station, len(_encode(told))
        )
        for after_ms in self._radio.transmit(parcel):
            at_ms = self._engine.now_ms + after_ms
            self._engine.at(at_ms, _ARRIVAL, self._report, parcel, listener, report)

    def _report(self, parcel: Parcel, listener: Machine, report: DeviceReported) -> None:
        if self._air.arrived(parcel) and listener.process is not None:
            self._give(listener.process, report)
