"""Serves many virtual devices in one process, over datagrams on a plain socket (`wire.py`).

Rules: a request that came twice is not done twice; what cannot be read is dropped and counted; a device that
is silent says nothing, not even that it is; a command that was on its way for too long is not begun.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from secrets import token_hex
from typing import Final, assert_never

from comesh.core.devices.calls import TOO_LATE
from comesh.core.ids import DeviceId
from comesh.deployment.model import Deployment
from comesh.drivers.ages import is_too_old
from comesh.drivers.interface import Readings
from comesh.drivers.recent import Recent
from comesh.drivers.scheduler import LoopScheduler
from comesh.drivers.subscribers import Subscribers
from comesh.drivers.virtual.datagrams import Address, Datagrams, listening
from comesh.drivers.virtual.devices import Acted, Pressed, Record, Reply, VirtualDevice
from comesh.drivers.virtual.options import pushes, spec_of
from comesh.drivers.virtual.wire import (
    MAX_BYTES,
    Acknowledge,
    Answer,
    Ask,
    Back,
    Done,
    FromDevices,
    Listen,
    LogPage,
    Packet,
    PacketError,
    Press,
    Refused,
    Report,
    SetMisbehaviour,
    SetReading,
    TellCounters,
    TellLog,
    TellReadings,
    ToDevices,
    decode_packets,
    encode,
    join,
)

LOG_KEPT: Final = 20_000
"""Log entries of all devices together that can be queried; older ones are in the recording only."""
PAGE_ENTRIES: Final = 64
"""Maximum log entries in one datagram."""


def outside_devices(deployment: Deployment, *, stand_in: bool) -> list[DeviceId]:
    """Returns the virtual devices that are part of no node; stand_in: also those that no driver reaches
    yet."""
    return [
        device_id
        for device_id, device in deployment.devices.items()
        if device.on is None and (stand_in or device.driver.type == "virtual")
    ]


class DevicesServer:
    def __init__(
        self,
        deployment: Deployment,
        devices: Iterable[DeviceId],
        *,
        seed: int,
        now_ms: Callable[[], float],
        record: Record | None = None,
        still: bool = False,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._now_ms = now_ms
        self._life = token_hex(4)
        self._record = record
        self._devices: dict[DeviceId, VirtualDevice] = {}
        self._sequence: Counter[DeviceId] = Counter()
        self._subscribers: dict[DeviceId, Subscribers[Address]] = {}
        self._recent: Recent[bytes] = Recent()
        self._log: deque[Acted | Pressed] = deque(maxlen=LOG_KEPT)
        self._logged = 0
        self._datagrams: Datagrams | None = None
        for device_id in devices:
            device = deployment.devices[device_id]
            self._devices[device_id] = VirtualDevice(
                device_id,
                spec_of(device_id, device, seed=seed, still=still),
                LoopScheduler(now_ms),
                seed=seed,
                life=token_hex(4),
                record=self._keep,
                pushes=deployment.settings.push and pushes(device),
            )
            self._subscribers[device_id] = Subscribers()

    def __len__(self) -> int:
        return len(self._devices)

    def device(self, device: DeviceId) -> VirtualDevice:
        return self._devices[device]

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Open the socket and return its address. OSError: it cannot listen there."""
        opened = await listening(host, port)
        self._datagrams = Datagrams(opened, self._received, self._refused, join, self.counters)
        for device in self._devices.values():
            device.open()
        return self._datagrams.own_address

    def close(self) -> None:
        for device in self._devices.values():
            device.close()
        if self._datagrams is not None:
            self._datagrams.close()
            self._datagrams = None

    # -- datagrams ---------------------------------------------------------------------------------------

    def _received(self, data: bytes, addr: Address) -> None:
        self.counters["datagrams received"] += 1
        try:
            packets = decode_packets(data)
        except PacketError as wrong:
            self.counters[f"dropped: {wrong}"] += 1
            return
        for packet in packets:
            self._on_packet(packet, addr)

    def _on_packet(self, packet: Packet, addr: Address) -> None:
        body = packet.body
        match body:
            case Ask(request=request) if request.command is None:
                self._ask(packet, body, addr)  # a read may be answered twice
            case Listen():
                self._listen(body, addr)
            case Acknowledge():
                if body.device in self._devices:
                    self._devices[body.device].acknowledge(body.token)
            case _:
                self._once(packet, addr)

    def _refused(self) -> None:
        """A client is gone: its datagram was refused."""
        self.counters["could not send"] += 1

    def _once(self, packet: Packet, addr: Address) -> None:
        request = (packet.client, packet.number)
        if not self._recent.begin(request):
            self.counters["requests that came twice"] += 1
            answer = self._recent.answer(request)
            if answer is not None:
                self._send(answer, addr)
            return
        body = packet.body
        if isinstance(body, Ask):
            self._ask(packet, body, addr)
        else:
            self._back(packet, self._told(body), addr)

    def _back(self, packet: Packet, body: FromDevices, addr: Address) -> None:
        data = encode(Back(packet.client, packet.number, body, self._life, self._now_ms()))
        self._recent.end((packet.client, packet.number), data)
        self._send(data, addr)

    def _send(self, data: bytes, addr: Address) -> None:
        if len(data) > MAX_BYTES:
            self.counters["dropped: too long to send"] += 1
        elif self._datagrams is not None:
            self._datagrams.add(data, addr)

    # -- what nodes ask ----------------------------------------------------------------------------------

    def _ask(self, packet: Packet, ask: Ask, addr: Address) -> None:
        request = ask.request
        device = self._devices.get(request.device)
        if device is None:
            error = f"no device {request.device} here; is it another process that has it?"
            self._back(packet, Answer("", 0, Reply(request.device, request.call, error=error)), addr)
            return
        too_old = is_too_old(ask.life, ask.at_ms, own_life=self._life, now_ms=self._now_ms())
        if request.command is not None and too_old:
            if device.misbehaviour.silent:
                return
            self.counters["commands that came too late"] += 1
            self._back(packet, Answer("", 0, Reply(request.device, request.call, error=TOO_LATE)), addr)
            return

        def answer(reply: Reply) -> None:
            self._sequence[reply.device] += 1
            self._back(packet, Answer(device.life, self._sequence[reply.device], reply), addr)

        device.ask(request, answer)

    def _listen(self, listen: Listen, addr: Address) -> None:
        device = self._devices.get(listen.device)
        if device is None or device.misbehaviour.silent:
            return
        if self._subscribers[listen.device].renew(addr, self._now_ms()):
            device.subscribe(lambda readings, token: self._report(device, readings, token))

    def _report(self, device: VirtualDevice, readings: Readings, token: str | None) -> None:
        self._sequence[device.name] += 1
        report = Report(device.name, device.life, self._sequence[device.name], readings, token)
        data = encode(Back(0, 0, report, self._life, self._now_ms()))
        for addr in self._subscribers[device.name].at(self._now_ms()):
            self._send(data, addr)

    # -- what people ask ---------------------------------------------------------------------------------

    def _told(self, body: ToDevices) -> FromDevices:
        match body:
            case TellLog():
                return self._page(body.first)
            case TellCounters():
                return Done(counters=dict(self.counters))
            case SetMisbehaviour() | Press() | SetReading() | TellReadings():
                device = self._devices.get(body.device)
                if device is None:
                    return Refused(f"no device {body.device} here; it has {len(self._devices)} others")
                try:
                    return _done_to(device, body)
                except ValueError as wrong:
                    return Refused(str(wrong))
            case Ask() | Listen() | Acknowledge():
                return Refused("this has no answer of its own")
            case _:
                assert_never(body)

    def _keep(self, entry: Acted | Pressed) -> None:
        self._log.append(entry)
        self._logged += 1
        if self._record is not None:
            self._record(entry)

    def _page(self, first: int) -> LogPage:
        """Returns as many entries as fit into a datagram."""
        oldest = self._logged - len(self._log)
        begin = max(first, oldest)
        entries = PAGE_ENTRIES
        while True:
            end = min(begin + entries, self._logged)
            numbered = [(number, self._log[number - oldest]) for number in range(begin, end)]
            page = LogPage(
                begin,
                tuple((number, entry) for number, entry in numbered if isinstance(entry, Acted)),
                tuple((number, entry) for number, entry in numbered if isinstance(entry, Pressed)),
                max(begin, end),
                self._logged,
            )
            if entries == 1 or len(encode(Back(0, 0, page, self._life, 0.0))) <= MAX_BYTES:
                return page
            entries //= 2


def _done_to(device: VirtualDevice, body: SetMisbehaviour | Press | SetReading | TellReadings) -> Done:
    token: str | None = None
    match body:
        case SetMisbehaviour():
            device.set_misbehaviour(body.how)
        case Press():
            token = device.press(body.values)
        case SetReading():
            device.set_reading(body.reading, body.value)
        case TellReadings():
            pass
        case _:
            assert_never(body)
    return Done(readings=device.readings(), token=token)
