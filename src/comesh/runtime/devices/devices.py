"""`Devices`: performs the core's effects on devices, wherever they are; see `comesh.runtime.devices`."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, assert_never

from comesh.core.devices.calls import TOO_LATE
from comesh.core.effects import AcknowledgeEvent, CommandDevice, ReadDevice, Subscribe
from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.ids import DeviceId, NodeId
from comesh.deployment.model import Deployment, Device
from comesh.drivers.interface import DeviceCommand, DeviceFailedError, Readings
from comesh.drivers.registry import Surroundings, make_driver, missing_drivers
from comesh.drivers.scheduler import LoopScheduler
from comesh.drivers.subscribers import Renewals
from comesh.drivers.virtual.devices import Record, VirtualDevice
from comesh.drivers.virtual.hosted import VirtualDriver
from comesh.drivers.virtual.link import Links
from comesh.drivers.virtual.misbehaviour import misbehaviour_of
from comesh.drivers.virtual.wire import show_address
from comesh.runtime.devices.frames import (
    DeviceAcknowledge,
    DeviceCall,
    DeviceReply,
    DeviceReport,
    DeviceSubscribe,
    Frame,
    FrameError,
    decode,
)
from comesh.runtime.devices.homes import home_of
from comesh.runtime.devices.hosting import Hosting
from comesh.runtime.devices.local import Answer, LocalDevice, Trouble
from comesh.runtime.devices.relay import Relay, Send

DeviceEffect = ReadDevice | CommandDevice | Subscribe | AcknowledgeEvent
DeviceEvent = DeviceAnswered | DeviceReported

GRACE_MS: Final = 5000.0
"""A removed device's driver stays open for this long: a call may be under way."""
MAX_GIVEN_AT_ONCE: Final = 256
"""Maximum events handed over in one turn of the event loop; the rest comes in the next."""


class Devices:
    def __init__(
        self,
        own: NodeId,
        deployment: Deployment,
        *,
        send: Send,
        give: Callable[[list[DeviceEvent]], None],
        now_ms: Callable[[], float],
        devices_at: str | tuple[str, int] | None = None,
        record: Record | None = None,
        trouble: Trouble | None = None,
        seed: int | None = None,
        still: bool = False,
        stand_in: bool = False,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.troubles: dict[DeviceId, str] = {}
        """The last problem of each device, for people."""
        self._own = own
        self._deployment = deployment
        self._give = give
        self._now_ms = now_ms
        self._trouble_told = trouble
        scheduler = LoopScheduler(now_ms)
        self._surroundings = Surroundings(
            scheduler=scheduler,
            links=Links(scheduler, self._on_rest),
            record=record,
            devices_at=show_address(*devices_at) if isinstance(devices_at, tuple) else devices_at,
            push=deployment.settings.push,
            seed=deployment.settings.seed if seed is None else seed,
            still=still,
            stand_in=stand_in,
        )
        self._relay = Relay(scheduler, send=send, trouble=self._trouble, counters=self.counters)
        self._hosting = Hosting(send=send, now_ms=now_ms, counters=self.counters)
        self._locals: dict[DeviceId, LocalDevice] = {}
        self._homes: dict[DeviceId, NodeId] = {}
        """The other nodes that devices are part of."""
        self._here: set[DeviceId] = set()
        """Devices that are part of this node."""
        self._cannot: dict[DeviceId, str] = {}
        """Devices without a driver, and the reason."""
        self._renewals: Renewals[DeviceId] = Renewals()
        self._outbox: deque[DeviceEvent] = deque()
        self._handing_over: asyncio.Handle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._open = False

    async def open(self) -> dict[str, list[DeviceId]]:
        """Open all drivers. Returns the missing types of drivers, with the devices that need them."""
        self._open = True
        for device_id in self._deployment.devices:
            self._add(device_id)
        await asyncio.sleep(0)  # drivers that open without waiting are open after this
        return {} if self._surroundings.stand_in else missing_drivers(self._deployment)

    async def close(self) -> None:
        self._open = False
        self._relay.close()
        self._outbox.clear()
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        await asyncio.gather(*(local.close() for local in self._locals.values()))
        self._locals.clear()
        self._surroundings.links.close()

    def traffic(self) -> dict[str, int]:
        """Returns bytes to and from devices in other processes."""
        return self._surroundings.links.traffic()

    def adopt(self, deployment: Deployment) -> None:
        """Switch to a new version of the document: opens drivers of new devices, closes those of removed
        ones. An unchanged device in the same place keeps its driver, and its state if it is virtual."""
        before, self._deployment = self._deployment, deployment
        self._surroundings = replace(self._surroundings, push=deployment.settings.push)
        for device_id, device in before.devices.items():
            new = deployment.devices.get(device_id)
            if new is None or not self._is_same(before, device_id, device, new):
                self._remove(device_id)
        for device_id in deployment.devices:
            if device_id not in self._locals and device_id not in self._homes:
                self._add(device_id)

    # -- effects -----------------------------------------------------------------------------------------

    def perform(self, effect: DeviceEffect) -> None:
        """Perform an effect without blocking; answers and reports are given later, on the event loop."""
        device, call = effect.device, 0
        match effect:
            case ReadDevice(call=call):
                self._ask(device, None, self._answer_to(device, call))
                self._listen(device)
            case CommandDevice(call=call):
                now_ms = self._now_ms()
                if now_ms > effect.until_ms:
                    self.counters["commands after their lease"] += 1
                    self._later(DeviceAnswered(device=device, call=call, error=TOO_LATE))
                    return
                asked = DeviceCommand(effect.action, effect.origin, self._own, now_ms)
                self._ask(device, asked, self._answer_to(device, call), effect.until_ms)
            case Subscribe():
                self._subscribe(device)
            case AcknowledgeEvent(token=token):
                if device in self._locals:
                    self._locals[device].acknowledge(token)
                elif device in self._homes:
                    self._relay.acknowledge(self._homes[device], device, token)
            case _:
                assert_never(effect)

    def rest(self) -> None:
        """The step has no more effects: send all queued requests now."""
        self._surroundings.links.flush()

    def _ask(
        self,
        device: DeviceId,
        asked: DeviceCommand | None,
        answer: Answer,
        until_ms: float = math.inf,
    ) -> None:
        local = self._locals.get(device)
        if local is not None:
            local.ask(asked, answer, until_ms)
        elif device in self._homes:
            self._relay.ask(self._homes[device], device, asked, answer)
        else:
            answer({}, self._why_not(device))

    def _answer_to(self, device: DeviceId, call: int) -> Answer:
        def answer(readings: Readings, error: str | None) -> None:
            if error is None:
                self.troubles.pop(device, None)
            self._later(DeviceAnswered(device=device, call=call, readings=readings, error=error))

        return answer

    def _subscribe(self, device: DeviceId) -> None:
        if device in self._locals:
            self._locals[device].subscribe(self._own, self._now_ms())
        elif device in self._homes:
            self._relay.subscribe(self._homes[device], device)

    def _listen(self, device: DeviceId) -> None:
        """Subscribe to a device that this node reads, for its pushed changes. The core subscribes to events
        only."""
        entry = self._deployment.devices.get(device)
        if entry is None or entry.event or not self._surroundings.push:
            return
        if self._renewals.are_due(device, self._now_ms()):
            self._subscribe(device)

    # -- frames ------------------------------------------------------------------------------------------

    def on_frame(self, sender: NodeId, frame: bytes) -> bool:
        """Handle a frame from a node that the transport has authenticated. False: the frame is not about
        devices."""
        try:
            said = decode(frame)
        except FrameError as wrong:
            self.counters[f"dropped: {wrong}"] += 1
            return False
        if self._open:
            self._on_said(sender, said)
        return True

    def _on_said(self, sender: NodeId, said: Frame) -> None:
        match said:
            case DeviceCall():
                local = self._hosted(said.device)
                why_not = f"{said.device} is not part of {self._own}"
                self._hosting.on_call(sender, said, local, self._cannot.get(said.device, why_not))
            case DeviceReply():
                self._relay.on_reply(sender, said)
            case DeviceSubscribe():
                local = self._hosted(said.device)
                if local is not None and sender in self._deployment.nodes:
                    local.subscribe(sender, self._now_ms())
            case DeviceAcknowledge():
                local = self._hosted(said.device)
                if local is not None:
                    local.acknowledge(said.token)
            case DeviceReport():
                if self._homes.get(said.device) != sender:
                    self.counters["dropped: a report of another node's device"] += 1
                elif self._relay.is_news(said):
                    self._later(DeviceReported(device=said.device, readings=said.readings, token=said.token))
            case _:
                assert_never(said)

    def _hosted(self, device: DeviceId) -> LocalDevice | None:
        """Returns a device that is part of this node: others are reached by each node itself."""
        return self._locals.get(device) if device in self._here else None

    def _on_report(self, local: LocalDevice, readings: Readings, token: str | None) -> None:
        for subscriber in local.subscribers.at(self._now_ms()):
            if subscriber == self._own:
                self._later(DeviceReported(device=local.device, readings=readings, token=token))
            else:
                self._hosting.report(subscriber, local, readings, token)

    # -- what people do to virtual devices of this node --------------------------------------------------

    def virtual(self, device: DeviceId) -> VirtualDevice | None:
        """Returns a virtual device of this process."""
        local = self._locals.get(device)
        return local.driver.device if local is not None and isinstance(local.driver, VirtualDriver) else None

    def set_fault(self, device: DeviceId, be: str, ms: float = 0.0) -> None:
        """Set a misbehaviour of `misbehaviour.py` by name. ValueError says what is wrong, and what to do."""
        virtual = self.virtual(device)
        if virtual is None:
            home = self._homes.get(device)
            where = f"; ask {home}, it is part of that" if home is not None else ""
            raise ValueError(f"{device} is no virtual device of {self._own}{where}")
        virtual.set_misbehaviour(misbehaviour_of(be, ms, virtual.spec.sources))

    # -- drivers -----------------------------------------------------------------------------------------

    def _home(self, deployment: Deployment, device: DeviceId) -> NodeId | None:
        if device not in deployment.devices:
            return None
        at, stand_in = self._surroundings.devices_at, self._surroundings.stand_in
        return home_of(deployment, device, devices_at=at, stand_in=stand_in)

    def _is_same(self, before: Deployment, device_id: DeviceId, old: Device, new: Device) -> bool:
        unseen = {"name": None, "place": None}
        return old.model_copy(update=unseen) == new.model_copy(update=unseen) and self._home(
            before, device_id
        ) == self._home(self._deployment, device_id)

    def _add(self, device_id: DeviceId) -> None:
        self._cannot.pop(device_id, None)
        home = self._home(self._deployment, device_id)
        if home is not None and home != self._own:
            self._homes[device_id] = home
            return
        if home is not None:
            self._here.add(device_id)
        try:
            driver = make_driver(device_id, self._deployment.devices[device_id], self._surroundings)
        except DeviceFailedError as wrong:
            self._cannot[device_id] = str(wrong)
            self._trouble(device_id, str(wrong))
            return
        local = self._locals[device_id] = LocalDevice(
            device_id,
            driver,
            self._surroundings.scheduler,
            reported=self._on_report,
            trouble=self._trouble,
            counters=self.counters,
        )
        local.open()

    def _remove(self, device_id: DeviceId) -> None:
        self._homes.pop(device_id, None)
        self._here.discard(device_id)
        self._cannot.pop(device_id, None)
        self._renewals.forget(device_id)
        self.troubles.pop(device_id, None)
        local = self._locals.pop(device_id, None)
        if local is not None:
            task = asyncio.get_running_loop().create_task(_close_later(local))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _why_not(self, device: DeviceId) -> str:
        return self._cannot.get(device, f"no device {device} in the document of {self._own}")

    def _trouble(self, device: DeviceId, text: str) -> None:
        if self.troubles.get(device) != text:
            self.troubles[device] = text
            if self._trouble_told is not None:
                self._trouble_told(device, text)

    # -- events ------------------------------------------------------------------------------------------

    def _later(self, event: DeviceEvent) -> None:
        """Queue an event: all events of one turn of the event loop are given in the next, in order and
        together; those of one link, after all of it was read."""
        self._outbox.append(event)
        if self._handing_over is None:
            self._hand_over_soon()

    def _hand_over_soon(self) -> None:
        self._handing_over = asyncio.get_running_loop().call_soon(self._hand_over)

    def _on_rest(self) -> None:
        if self._handing_over is not None:
            self._handing_over.cancel()
            self._hand_over()

    def _hand_over(self) -> None:
        events = [self._outbox.popleft() for _ in range(min(len(self._outbox), MAX_GIVEN_AT_ONCE))]
        self._handing_over = None
        if self._outbox:
            self._hand_over_soon()
        self._give(events)


async def _close_later(local: LocalDevice) -> None:
    try:
        await asyncio.sleep(GRACE_MS / 1000)
    finally:
        await local.close()
