"""Tests of the contract of all drivers. A new driver needs a row in RIGS: a device, and a hand to it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

import pytest
from device_texts import BUTTON, LAMP, house, now_ms, until

from comesh.core.actions import Action, Origin
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.stamps import OPENING, RunId, Stamp
from comesh.core.values import Value
from comesh.drivers.interface import (
    DeviceCommand,
    DeviceFailedError,
    Driver,
    NoAnswerError,
    PromptDriver,
    Readings,
)
from comesh.drivers.registry import Surroundings, make_driver
from comesh.drivers.scheduler import LoopScheduler
from comesh.drivers.virtual.devices import VirtualDevice
from comesh.drivers.virtual.hosted import VirtualDriver
from comesh.drivers.virtual.link import Links
from comesh.drivers.virtual.misbehaviour import FINE, Misbehaviour
from comesh.drivers.virtual.server import DevicesServer

LOOP = LoopScheduler(now_ms)


@dataclass
class Rig:
    """A device with the readings and commands of `lamp` or `button` in device_texts, and a hand to it."""

    driver: Driver
    misbehave: Callable[[Misbehaviour], None]
    set_reading: Callable[[str, Value], None]
    press: Callable[[dict[str, Value]], str | None]
    fences: bool = True
    pushes: bool = True
    has_events: bool = True


@asynccontextmanager
async def hosted(device: DeviceId) -> AsyncIterator[Rig]:
    surroundings = Surroundings(scheduler=LOOP, links=Links(LOOP), still=True)
    driver = make_driver(device, house().devices[device], surroundings)
    assert isinstance(driver, VirtualDriver)
    yield _rig(driver, driver.device)


@asynccontextmanager
async def remote(device: DeviceId) -> AsyncIterator[Rig]:
    server = DevicesServer(house(), [device], seed=0, now_ms=now_ms, still=True)
    host, port = await server.open("127.0.0.1", 0)
    surroundings = Surroundings(scheduler=LOOP, links=Links(LOOP), devices_at=f"{host}:{port}")
    yield _rig(make_driver(device, house().devices[device], surroundings), server.device(device))
    surroundings.links.close()
    server.close()


def _rig(driver: Driver, device: VirtualDevice) -> Rig:
    return Rig(driver, device.set_misbehaviour, device.set_reading, device.press)


RIGS: dict[str, Callable[[DeviceId], AbstractAsyncContextManager[Rig]]] = {
    "hosted virtual": hosted,
    "remote virtual": remote,
}

Scene = Callable[[Rig], object]


@pytest.fixture(params=sorted(RIGS))
def play(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a scene with an open driver, and closes it."""
    rig_of = RIGS[request.param]

    def played(scene: Scene, device: DeviceId = LAMP) -> None:
        async def whole() -> None:
            async with rig_of(device) as rig, asyncio.timeout(60):
                await rig.driver.open()
                assert await rig.driver.read()  # as nodes do, again and again
                await scene(rig)  # a scene is an async function
                await rig.driver.close()

        asyncio.run(whole())

    return played


def stamp(n: int) -> Stamp:
    return Stamp(1, OPENING, n)


def setting(value: bool, *, grant: Stamp | None = None, timeout_ms: float = 2000.0) -> DeviceCommand:
    run = RunId(RoutineId("dusk"), 1, stamp(1))
    return DeviceCommand(Action("set", value, timeout_ms), Origin(run, grant=grant))


def test_a_command_changes_what_is_read(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        assert await rig.driver.read() == {"on": False}
        assert await rig.driver.command(setting(True)) == {"on": True}
        assert await rig.driver.read() == {"on": True}
        assert await rig.driver.command(DeviceCommand(Action("flip"))) == {"on": False}

    play(scene)


def test_a_command_that_takes_time_is_answered_at_its_end(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        assert await rig.driver.command(DeviceCommand(Action("slowly", True))) == {"on": True}

    play(scene)


def test_an_unknown_command_or_a_missing_argument_is_refused_for_certain(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        for wrong in (DeviceCommand(Action("dance")), DeviceCommand(Action("set"))):
            with pytest.raises(DeviceFailedError) as failed:
                await rig.driver.command(wrong)
            assert not isinstance(failed.value, NoAnswerError)
            assert str(failed.value)
        assert await rig.driver.read() == {"on": False}

    play(scene)


def test_a_command_under_an_older_grant_is_refused(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        if not rig.fences:
            return
        await rig.driver.command(setting(True, grant=stamp(2)))
        with pytest.raises(DeviceFailedError, match="fenced") as failed:
            await rig.driver.command(setting(False, grant=stamp(1)))
        assert not isinstance(failed.value, NoAnswerError)
        assert await rig.driver.command(setting(False, grant=stamp(3))) == {"on": False}

    play(scene)


def test_under_one_grant_a_command_is_done_once_and_another_is_refused(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        if not rig.fences:
            return
        await rig.driver.command(setting(True, grant=stamp(2)))
        with pytest.raises(DeviceFailedError, match="fenced") as failed:
            await rig.driver.command(setting(False, grant=stamp(2)))
        assert not isinstance(failed.value, NoAnswerError)
        assert await rig.driver.read() == {"on": True}
        assert await rig.driver.command(setting(True, grant=stamp(2))) == {"on": True}, "the same again"

    play(scene)


def test_a_silent_device_does_not_answer_until_it_recovers(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        rig.misbehave(Misbehaviour(silent=True))
        with pytest.raises(NoAnswerError, match="did not answer within 30 ms; is it on"):
            await rig.driver.command(setting(True, timeout_ms=30.0))
        rig.misbehave(FINE)
        assert await rig.driver.read() == {"on": False}

    play(scene)


def test_a_missing_device_fails_for_certain(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        rig.misbehave(Misbehaviour(gone=True))
        for asked in (rig.driver.read(), rig.driver.command(setting(True))):
            with pytest.raises(DeviceFailedError) as failed:
                await asked
            assert not isinstance(failed.value, NoAnswerError)
        rig.misbehave(FINE)
        assert await rig.driver.read() == {"on": False}

    play(scene)


def test_slow_and_wrong_devices_answer_late_and_wrong(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        rig.misbehave(Misbehaviour(slow_ms=500.0))
        with pytest.raises(NoAnswerError):
            await rig.driver.command(setting(True, timeout_ms=20.0))
        rig.misbehave(Misbehaviour(slow_ms=20.0))
        assert set(await rig.driver.read()) == {"on"}
        rig.misbehave(Misbehaviour(wrong={"on": "purple"}))
        assert await rig.driver.read() == {"on": "purple"}

    play(scene)


def test_a_late_command_lands_after_its_timeout(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        rig.misbehave(Misbehaviour(late_ms=60.0))
        with pytest.raises(NoAnswerError):
            await rig.driver.command(setting(True, timeout_ms=20.0))
        rig.misbehave(FINE)
        seen: Readings = {}
        async with asyncio.timeout(20):
            while seen != {"on": True}:
                seen = await rig.driver.read()
                await asyncio.sleep(0.005)

    play(scene)


def test_a_call_may_be_cancelled(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        rig.misbehave(Misbehaviour(silent=True))
        calls = [asyncio.create_task(one) for one in (rig.driver.read(), rig.driver.command(setting(True)))]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        assert all(isinstance(one, asyncio.CancelledError) for one in await gathered(calls))
        rig.misbehave(FINE)
        assert await rig.driver.read() == {"on": False}

    play(scene)


async def gathered(calls: list["asyncio.Task[Readings]"]) -> list[object]:
    return list(await asyncio.gather(*calls, return_exceptions=True))


def test_many_calls_at_once_each_get_their_own_answer(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        commands = [rig.driver.command(setting(number % 2 == 0)) for number in range(30)]
        answers = await asyncio.gather(*commands)
        assert [answer["on"] for answer in answers] == [number % 2 == 0 for number in range(30)]

    play(scene)


def test_an_event_is_repeated_until_it_is_acknowledged(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        if not rig.has_events:
            return
        told: list[tuple[Readings, str | None]] = []
        rig.driver.subscribe(lambda readings, token: told.append((readings, token)))
        tokens = [rig.press({"press": "single"}), rig.press({"press": "double"})]
        assert None not in tokens
        await until(lambda: len(told) >= 2)
        assert {token for _, token in told} == {tokens[0]}, "one at a time, the oldest first, again"
        assert told[0][0] == {"press": "single"}
        rig.driver.acknowledge(str(tokens[0]))
        await until(lambda: told[-1] == ({"press": "double"}, tokens[1]))
        rig.driver.acknowledge("another-life.99999999")
        rig.driver.acknowledge(str(tokens[1]))
        third = rig.press({"press": "single"})
        await until(lambda: told[-1][1] == third)
        assert len({*tokens, third}) == 3

    play(scene, BUTTON)


def test_an_event_before_the_subscription_is_reported(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        token = rig.press({"press": "single"})
        told: list[str | None] = []
        rig.driver.subscribe(lambda _, token: told.append(token))
        await until(lambda: token in told)

    play(scene, BUTTON)


def test_a_change_is_pushed_to_the_subscriber(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        if not rig.pushes:
            return
        told: list[tuple[Readings, str | None]] = []
        rig.driver.subscribe(lambda readings, token: told.append((readings, token)))
        await until(lambda: told)  # the subscription has come
        rig.set_reading("on", True)
        await until(lambda: told[-1] == ({"on": True}, None))
        await rig.driver.command(setting(False))
        await until(lambda: told[-1] == ({"on": False}, None))

    play(scene)


def test_a_later_subscription_replaces_an_earlier_one(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        first: list[str | None] = []
        second: list[str | None] = []
        rig.driver.subscribe(lambda _, token: first.append(token))
        rig.driver.subscribe(lambda _, token: second.append(token))
        token = rig.press({"press": "single"})
        await until(lambda: token in second)
        assert token not in first

    play(scene, BUTTON)


def test_prompt_answers_equal_those_of_read_and_command(play: Callable[..., None]) -> None:
    async def scene(rig: Rig) -> None:
        driver = rig.driver
        if not isinstance(driver, PromptDriver):
            return
        assert driver.read_now() == {"on": False}
        assert driver.command_now(setting(True, grant=stamp(2))) == {"on": True}
        with pytest.raises(DeviceFailedError, match="fenced"):
            driver.command_now(setting(False, grant=stamp(1)))
        assert driver.command_now(DeviceCommand(Action("slowly", False))) is None
        rig.misbehave(Misbehaviour(silent=True))
        assert driver.read_now() is None
        assert driver.command_now(setting(False)) is None
        rig.misbehave(FINE)
        assert await driver.read() == {"on": True}

    play(scene)
