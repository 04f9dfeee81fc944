"""`VirtualDriver`: a virtual device that is part of this process, and dies with it."""

import asyncio
from collections.abc import Callable

from comesh.core.ids import DeviceId
from comesh.core.values import Value
from comesh.drivers.interface import (
    DeviceCommand,
    DeviceFailedError,
    Readings,
    Report,
    no_answer,
    timeout_of,
)
from comesh.drivers.virtual.devices import DeviceSpec, Reply, Request
from comesh.drivers.virtual.faults import Fault
from comesh.drivers.virtual.living import LivingDevice, Record


class VirtualDriver:
    """The driver, and the device itself: besides what every driver does, it can be told to misbehave."""

    def __init__(
        self,
        device: DeviceId,
        spec: DeviceSpec,
        *,
        seed: int,
        now_ms: Callable[[], float],
        record: Record | None = None,
        pushes: bool = False,
    ) -> None:
        self.living = LivingDevice(device, spec, seed=seed, now_ms=now_ms, record=record, pushes=pushes)
        self._device = device
        self._call = 0

    async def open(self) -> None:
        self.living.open()

    async def close(self) -> None:
        self.living.close()

    async def read(self) -> Readings:
        return await self._ask(None)

    async def command(self, asked: DeviceCommand) -> Readings:
        return await self._ask(asked)

    def read_now(self) -> Readings | None:
        return self.living.read_now()

    def command_now(self, asked: DeviceCommand) -> Readings | None:
        reply = self.living.command_now(self._next_call(), asked)
        return None if reply is None else _readings(reply)

    def subscribe(self, report: Report) -> None:
        self.living.subscribe(report)

    def acknowledge(self, token: str) -> None:
        self.living.acknowledge(token)

    def set_fault(self, fault: Fault) -> None:
        self.living.set_fault(fault)

    def set_reading(self, reading: str, value: Value) -> None:
        self.living.set_reading(reading, value)

    def press(self, values: dict[str, Value]) -> str | None:
        return self.living.press(values)

    def _next_call(self) -> int:
        self._call += 1
        return self._call

    async def _ask(self, asked: DeviceCommand | None) -> Readings:
        timeout_ms = timeout_of(asked)
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def answer(reply: Reply) -> None:
            if not answered.done():
                answered.set_result(reply)

        self.living.ask(Request(self._device, self._next_call(), asked), answer)
        try:
            return _readings(await asyncio.wait_for(answered, timeout_ms / 1000))
        except TimeoutError:
            raise no_answer(self._device, timeout_ms) from None


def _readings(reply: Reply) -> Readings:
    if reply.error is not None:
        raise DeviceFailedError(reply.error)
    return dict(reply.readings)
