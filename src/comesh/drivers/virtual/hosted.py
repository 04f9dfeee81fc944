"""`VirtualDriver`: a virtual device that is part of this process and ends with it."""

from functools import partial
from secrets import token_hex

from comesh.core.ids import DeviceId
from comesh.drivers.interface import (
    DeviceCommand,
    DeviceFailedError,
    Ended,
    Readings,
    Report,
    no_answer,
    timeout_of,
)
from comesh.drivers.pending import PendingCalls, TooManyError
from comesh.drivers.scheduler import Scheduler
from comesh.drivers.virtual.devices import MAX_WAITING, DeviceSpec, Record, Reply, Request, VirtualDevice


class VirtualDriver:
    """Driver of a virtual device of this process; `device` is the device, which can be made to misbehave."""

    def __init__(
        self,
        device: DeviceId,
        spec: DeviceSpec,
        scheduler: Scheduler,
        *,
        seed: int,
        record: Record | None = None,
        pushes: bool = False,
    ) -> None:
        self.device = VirtualDevice(
            device, spec, scheduler, seed=seed, life=token_hex(4), record=record, pushes=pushes
        )
        self._calls: PendingCalls[None, Reply] = PendingCalls(scheduler, max_each=MAX_WAITING)

    async def open(self) -> None:
        self.device.open()

    async def close(self) -> None:
        self.device.close()
        self._calls.close()

    async def read(self) -> Readings:
        return await self._call(None)

    async def command(self, asked: DeviceCommand) -> Readings:
        return await self._call(asked)

    def read_now(self) -> Readings | None:
        return self.device.read_now()

    def command_now(self, asked: DeviceCommand) -> Readings | None:
        reply = self.device.command_now(self._calls.next_number(), asked)
        return None if reply is None else self._readings(asked, reply)

    def begin(self, asked: DeviceCommand | None, ended: Ended) -> bool:
        def answered(reply: Reply | None) -> None:
            result: Readings | Exception
            try:
                result = self._readings(asked, reply)
            except DeviceFailedError as wrong:
                result = wrong
            ended(result)

        call = self._calls.open(None, timeout_of(asked), answered)
        if call is None:
            return False
        self._send(asked, call)
        return True

    def subscribe(self, report: Report) -> None:
        self.device.subscribe(report)

    def acknowledge(self, token: str) -> None:
        self.device.acknowledge(token)

    async def _call(self, asked: DeviceCommand | None) -> Readings:
        try:
            reply = await self._calls.call(None, timeout_of(asked), partial(self._send, asked))
        except TooManyError:
            raise DeviceFailedError(f"{MAX_WAITING} calls of {self.device.name} wait already") from None
        return self._readings(asked, reply)

    def _send(self, asked: DeviceCommand | None, call: int) -> None:
        def answer(reply: Reply) -> None:
            self._calls.answer(reply.call, reply)

        self.device.ask(Request(self.device.name, call, asked), answer)

    def _readings(self, asked: DeviceCommand | None, reply: Reply | None) -> Readings:
        if reply is None:
            raise no_answer(self.device.name, timeout_of(asked))
        if reply.error is not None:
            raise DeviceFailedError(reply.error)
        return dict(reply.readings)
