"""Events of devices: a press is kept by its device, and told until it is acknowledged.

A device tells its events to the node that subscribed last, oldest first and one at a time, by radio, again
every REPEAT_MS; the next one when that one is acknowledged. Subscriptions and acknowledgements cross the
radio too, once each: whoever sent one and sees no effect sends it again. A report may come twice, or very
late. Readings are not told, they are read.
"""

from collections.abc import Callable
from typing import Final, assert_never

import msgspec

from comesh.core.draws import Draws
from comesh.core.effects import AcknowledgeEvent, Subscribe
from comesh.core.events import DeviceReported
from comesh.core.ids import DeviceId
from comesh.core.node import AnyEvent
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.virtual.devices import VirtualDevices
from comesh.sim.device_radio import DeviceRadio
from comesh.sim.engine import Engine, Priority
from comesh.sim.machine import Machine, Process
from comesh.sim.radio import Radio
from comesh.sim.topology import Topology
from comesh.sim.traffic import Parcel

REPEAT_MS: Final = 1000.0

_ARRIVAL: Final = int(Priority.ARRIVAL)
_encode = msgspec.msgpack.Encoder().encode


class DeviceEvents:
    """All event devices and who listens to them."""

    def __init__(
        self,
        engine: Engine,
        radio: Radio,
        topology: Topology,
        devices: VirtualDevices,
        give: Callable[[Process, AnyEvent], None],
        *,
        seed: int,
    ) -> None:
        self._engine = engine
        self._radio = radio
        self._air = DeviceRadio(engine, radio)
        self._stations = topology.devices
        self._devices = devices
        self._give = give
        self._listener: dict[DeviceId, Machine] = {}
        self._repeats: dict[DeviceId, int] = {}
        """The engine's number of the next telling."""
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
                self._tell_anew(device)
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
        report = DeviceReported(device=device, readings=event.values, token=event.token)
        size_bytes = len(_encode((device, event.token, event.values)))
        parcel = Parcel(self._report_kind, station, listener.station, size_bytes)
        for after_ms in self._radio.transmit(parcel):
            at_ms = self._engine.now_ms + after_ms
            self._engine.at(at_ms, _ARRIVAL, self._report, parcel, listener, report)

    def _report(self, parcel: Parcel, listener: Machine, report: DeviceReported) -> None:
        if self._air.arrived(parcel) and listener.process is not None:
            self._give(listener.process, report)
