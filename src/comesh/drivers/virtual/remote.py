"""`RemoteVirtualDriver`: reaches a virtual device of a `comesh virtual` process from a node."""

from typing import Final

from comesh.core.devices.calls import TOO_LATE
from comesh.core.ids import DeviceId
from comesh.drivers.interface import (
    DeviceCommand,
    DeviceFailedError,
    Ended,
    NoAnswerError,
    Readings,
    Report,
    TooLateError,
    no_answer,
    timeout_of,
)
from comesh.drivers.scheduler import Scheduler, Timer
from comesh.drivers.subscribers import SUBSCRIPTION_MS
from comesh.drivers.virtual import wire
from comesh.drivers.virtual.devices import Request
from comesh.drivers.virtual.link import Link, LinkError

SUBSCRIBE_EVERY_MS: Final = 1000.0
"""A live subscription is repeated this often, so that a restarted device process learns of it."""


class RemoteVirtualDriver:
    def __init__(self, device: DeviceId, link: Link, scheduler: Scheduler) -> None:
        self._device = device
        self._link = link
        self._scheduler = scheduler
        self._report: Report | None = None
        self._subscribed_ms = 0.0
        self._repeat: Timer | None = None
        self._life = ""
        self._sequence = 0

    async def open(self) -> None:
        self._link.use()
        self._link.on_report[self._device] = self._on_report
        try:
            await self._link.open()
        except LinkError:
            return  # the caller gets the error

    async def close(self) -> None:
        if self._repeat is not None:
            self._repeat.cancel()
            self._repeat = None
        self._report = None
        self._link.on_report.pop(self._device, None)
        self._link.leave()

    async def read(self) -> Readings:
        return await self._call(None)

    async def command(self, asked: DeviceCommand) -> Readings:
        return await self._call(asked)

    def begin(self, asked: DeviceCommand | None, ended: Ended) -> bool:
        timeout_ms = timeout_of(asked)

        def answered(back: wire.FromDevices | LinkError | None) -> None:
            ended(self._result(back, timeout_ms))

        return self._link.begin(self._ask(asked), timeout_ms, answered)

    def subscribe(self, report: Report) -> None:
        self._report = report
        self._subscribed_ms = self._scheduler.now_ms()
        if self._repeat is not None:
            self._repeat.cancel()
        self._listen()

    def acknowledge(self, token: str) -> None:
        self._link.send(wire.Acknowledge(self._device, token))

    def _ask(self, asked: DeviceCommand | None) -> wire.Ask:
        return wire.Ask(Request(self._device, 0, asked), *self._link.clock.at(self._scheduler.now_ms()))

    async def _call(self, asked: DeviceCommand | None) -> Readings:
        timeout_ms = timeout_of(asked)
        back: wire.FromDevices | LinkError | None
        try:
            back = await self._link.ask(self._ask(asked), timeout_ms)
        except LinkError as wrong:
            back = wrong
        result = self._result(back, timeout_ms)
        if isinstance(result, Exception):
            raise result
        return result

    def _result(
        self, back: wire.FromDevices | LinkError | None, timeout_ms: float
    ) -> Readings | DeviceFailedError:
        match back:
            case wire.Answer(reply=reply) if reply.error == TOO_LATE:
                return TooLateError(TOO_LATE)
            case wire.Answer(reply=reply):
                self._is_new(back.life, back.sequence)
                return reply.readings if reply.error is None else DeviceFailedError(reply.error)
            case wire.Report() | wire.Done() | wire.Refused() | wire.LogPage():
                return NoAnswerError(f"{self._device}: {self._link.address} answered something else")
            case None:
                return no_answer(self._device, timeout_ms)
            case LinkError():
                return DeviceFailedError(f"{self._device}: {back}")

    def _listen(self) -> None:
        self._repeat = None
        if self._report is None or self._scheduler.now_ms() - self._subscribed_ms > SUBSCRIPTION_MS:
            return
        self._link.send(wire.Listen(self._device))
        self._repeat = self._scheduler.later(SUBSCRIBE_EVERY_MS, self._listen)

    def _on_report(self, report: wire.Report) -> None:
        is_new = self._is_new(report.life, report.sequence)
        if self._report is not None and (is_new or report.token is not None):
            self._report(report.readings, report.token)

    def _is_new(self, life: str, sequence: int) -> bool:
        """True if nothing newer from the device is known; it is remembered as the newest."""
        if life == self._life and sequence <= self._sequence:
            return False
        self._life, self._sequence = life, sequence
        return True
