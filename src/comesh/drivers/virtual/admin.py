"""`DevicesClient`: makes the devices of a `comesh virtual` process misbehave, or acts as a person in the
room; for tests, the lab and the demo.

    client = DevicesClient("127.0.0.1:7500")
    await client.misbehave("lamp_1", Misbehaviour(silent=True))
    await client.misbehave("lamp_1")                          # fine again
    await client.set_reading("door", "open", True)        # somebody opens the door
    token = await client.press("button", {"press": "double"})
    await client.close()

A request that is not answered is sent again under its number, and so done once.
"""

from typing import Final

from comesh.core.ids import DeviceId
from comesh.core.values import Value
from comesh.drivers.interface import Readings
from comesh.drivers.scheduler import LoopScheduler
from comesh.drivers.virtual import wire
from comesh.drivers.virtual.devices import Acted, Pressed
from comesh.drivers.virtual.link import Link, LinkError
from comesh.drivers.virtual.misbehaviour import FINE, Misbehaviour

TRIES: Final = 5
TRY_MS: Final = 1000.0


def _no_clock() -> float:
    """The client sends no commands of nodes, so it need not measure their age."""
    return 0.0


class DevicesClientError(Exception):
    """The request failed or was not answered; str() says which and why."""


class DevicesClient:
    def __init__(self, address: str) -> None:
        self._link = Link(address, LoopScheduler(_no_clock))

    async def __aenter__(self) -> "DevicesClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._link.close()

    async def misbehave(self, device: str, how: Misbehaviour = FINE) -> None:
        """Replace the device's misbehaviour."""
        await self._ask(wire.SetMisbehaviour(DeviceId(device), how))

    async def press(self, device: str, values: dict[str, Value] | None = None) -> str | None:
        """Returns the token of the event; None: the device had no room for it, or is gone."""
        return (await self._ask(wire.Press(DeviceId(device), values or {}))).token

    async def set_reading(self, device: str, reading: str, value: Value) -> None:
        await self._ask(wire.SetReading(DeviceId(device), reading, value))

    async def readings(self, device: str) -> Readings:
        """Returns the true readings, whatever the device answers to nodes."""
        return (await self._ask(wire.TellReadings(DeviceId(device)))).readings

    async def counters(self) -> dict[str, int]:
        return (await self._ask(wire.TellCounters())).counters

    async def log(self, first: int = 0) -> list[Acted | Pressed]:
        """Returns what all devices did and had, in order, starting at that entry."""
        entries: list[Acted | Pressed] = []
        while True:
            page = await self._back(wire.TellLog(first))
            if not isinstance(page, wire.LogPage):
                raise DevicesClientError(f"{self._link.address} answered something else than its log")
            numbered: list[tuple[int, Acted | Pressed]] = [*page.acted, *page.pressed]
            entries += [entry for _, entry in sorted(numbered, key=lambda one: one[0])]
            if page.next >= page.end:
                return entries
            first = page.next

    async def _ask(self, body: wire.ToDevices) -> wire.Done:
        back = await self._back(body)
        match back:
            case wire.Done():
                return back
            case wire.Refused():
                raise DevicesClientError(back.why)
            case wire.Answer() | wire.Report() | wire.LogPage():
                raise DevicesClientError(f"{self._link.address} answered something else")

    async def _back(self, body: wire.ToDevices) -> wire.FromDevices:
        number = self._link.next_number()
        for _ in range(TRIES):
            try:
                answer = await self._link.ask(body, TRY_MS, number)
            except LinkError as wrong:
                raise DevicesClientError(str(wrong)) from None
            if answer is not None:
                return answer
        raise DevicesClientError(
            f"{self._link.address} did not answer {TRIES} times; is `comesh virtual` running there?"
        )
