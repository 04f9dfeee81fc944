"""`Devices`: what the core wants of devices is done where they are, and answered in the core's words."""

import asyncio
import math

import pytest
from device_texts import BELL, BUTTON, DOOR, HEATER, HOUSE, LAMP, house, until
from meshes import Mesh, mesh

from comesh.core.actions import Action, Origin
from comesh.core.devices.calls import NO_ANSWER, TOO_LATE
from comesh.core.effects import AcknowledgeEvent, CommandDevice, ReadDevice, Subscribe
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.stamps import OPENING, RunId, Stamp
from comesh.drivers.interface import DeviceCommand, Ended, Readings, Report
from comesh.drivers.virtual.devices import Acted, Pressed
from comesh.runtime.devices import devices as devices_module
from comesh.runtime.devices import local
from comesh.runtime.devices.frames import DeviceCall, DeviceReport, decode, encode
from comesh.runtime.devices.homes import home_of, nearest_node

N1, N2, N3 = NodeId("n1"), NodeId("n2"), NodeId("n3")


def stamp(n: int) -> Stamp:
    return Stamp(1, OPENING, n)


def origin(grant: int, attempt: int = 0, step: int = 0) -> Origin:
    return Origin(RunId(RoutineId("dusk"), 1, stamp(1)), attempt, step, stamp(grant))


def setting(
    call: int,
    value: bool,
    *,
    of: Origin | None = None,
    timeout_ms: float = 2000.0,
    until_ms: float = math.inf,
) -> CommandDevice:
    return CommandDevice(LAMP, call, Action("set", value, timeout_ms), of, until_ms)


# -- where devices are -----------------------------------------------------------------------------------


def test_a_device_is_part_of_its_node_or_of_the_nearest() -> None:
    def home(device: DeviceId, devices_at: str | None = None) -> NodeId | None:
        return home_of(house(), device, devices_at=devices_at, stand_in=False)

    assert [home(device) for device in (LAMP, DOOR, BUTTON, HEATER, BELL)] == [N1, N2, N3, N2, N3]
    assert [home(device, "127.0.0.1:1") for device in (LAMP, HEATER)] == [None, N2]


def test_of_nodes_as_near_the_first_by_id_has_it() -> None:
    text = HOUSE.replace("place: [1m, 0m, 0m]", "place: [5m, 0m, 0m]")
    deployment = house(text)
    assert nearest_node(deployment, deployment.place_of(LAMP)) == N1


@pytest.mark.parametrize("node", [N1, N2])
def test_reads_and_commands_work_from_every_node(node: NodeId) -> None:
    async def scene() -> None:
        async with mesh() as joined:
            devices = joined.nodes[node]
            devices.perform(ReadDevice(LAMP, 1))
            assert not joined.answers[node], "answers come later"
            assert (await joined.answer(node, 1)).readings == {"on": False}
            devices.perform(setting(2, True, of=origin(2)))
            assert (await joined.answer(node, 2)).readings == {"on": True}
            devices.perform(CommandDevice(LAMP, 3, Action("slowly", False), origin(3)))
            assert (await joined.answer(node, 3)).readings == {"on": False}
            devices.perform(setting(4, True, of=origin(1)))
            assert "fenced" in str((await joined.answer(node, 4)).error)
            devices.perform(CommandDevice(LAMP, 5, Action("dance")))
            assert "no command" in str((await joined.answer(node, 5)).error)

    asyncio.run(scene())


def test_a_fence_holds_across_the_nodes_that_command() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            joined.nodes[N3].perform(setting(1, True, of=origin(9)))
            await joined.answer(N3, 1)
            joined.nodes[N1].perform(setting(2, False, of=origin(8)))
            joined.nodes[N2].perform(setting(3, False, of=origin(8)))
            assert "fenced" in str((await joined.answer(N1, 2)).error)
            assert "fenced" in str((await joined.answer(N2, 3)).error)

    asyncio.run(scene())


# -- what must not be done -------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [N1, N2])
def test_a_command_after_its_lease_is_not_sent(node: NodeId) -> None:
    async def scene() -> None:
        async with mesh() as joined:
            devices = joined.nodes[node]
            devices.perform(setting(1, True, until_ms=0.0))
            assert (await joined.answer(node, 1)).error == TOO_LATE
            devices.perform(ReadDevice(LAMP, 2))
            assert (await joined.answer(node, 2)).readings == {"on": False}

    asyncio.run(scene())


def test_a_lease_that_ends_while_the_driver_opens_is_over() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            gate = asyncio.Event()
            driver = SlowToOpen(gate)
            _put(joined, driver)
            now = joined.nodes[N1]._now_ms()
            joined.nodes[N1].perform(setting(1, True, until_ms=now + 10_000.0))
            joined.offset_ms = 20_000.0
            gate.set()
            assert (await joined.answer(N1, 1)).error == TOO_LATE
            assert not driver.commands

    asyncio.run(scene())


def test_a_frame_that_comes_twice_is_done_once() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            joined.arrives = lambda *_: 2
            for call in (1, 2, 3):
                joined.nodes[N2].perform(CommandDevice(LAMP, call, Action("flip")))
                answer = await joined.answer(N2, call)
                assert answer.readings == {"on": call % 2 == 1}
            counters = joined.nodes[N1].counters
            await until(lambda: counters["device calls that came twice"] == 3)

    asyncio.run(scene())


def test_a_command_that_nobody_answers_may_have_been_done() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            joined.arrives = lambda sender, *_: int(sender != N1)
            joined.nodes[N2].perform(setting(1, True, timeout_ms=30.0))
            assert (await joined.answer(N2, 1)).error == NO_ANSWER
            assert joined.nodes[N2].troubles[LAMP].endswith("is it on? It is part of n1.")
            joined.arrives = lambda *_: 1
            joined.nodes[N2].perform(ReadDevice(LAMP, 2))
            assert (await joined.answer(N2, 2)).readings == {"on": True}
            assert LAMP not in joined.nodes[N2].troubles

    asyncio.run(scene())


def test_a_command_that_was_on_its_way_for_too_long_is_not_begun() -> None:
    """Such as one that waited in the socket of a node that was stopped: nobody waits for it any more."""

    async def scene() -> None:
        async with mesh() as joined:
            held: list[bytes] = []

            def hold(_: NodeId, to: NodeId, frame: bytes) -> int:
                if to == N1:
                    held.append(frame)
                return int(to != N1)

            joined.arrives = hold
            joined.nodes[N2].perform(setting(1, True, timeout_ms=20.0))
            assert (await joined.answer(N2, 1)).error == NO_ANSWER
            joined.offset_ms += 5000.0
            assert joined.nodes[N1].on_frame(N2, held[0])
            assert joined.nodes[N1].counters["commands that came too late"] == 1
            joined.arrives = lambda *_: 1
            joined.nodes[N2].perform(setting(2, True))
            assert (await joined.answer(N2, 2)).readings == {"on": True}

    asyncio.run(scene())


def test_who_does_not_know_the_clock_asks_twice() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            joined.nodes[N2]._relay._clocks.clear()
            joined.nodes[N2].perform(setting(1, True))
            assert (await joined.answer(N2, 1)).error == TOO_LATE
            joined.nodes[N2].perform(setting(2, True))
            assert (await joined.answer(N2, 2)).readings == {"on": True}

    asyncio.run(scene())


# -- faults ----------------------------------------------------------------------------------------------


def test_a_device_can_be_told_to_misbehave() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            devices = joined.nodes[N1]
            devices.set_fault(LAMP, "silent")
            devices.perform(setting(1, True, timeout_ms=20.0))
            assert (await joined.answer(N1, 1)).error == NO_ANSWER
            assert devices.troubles[LAMP] == "lamp did not answer within 20 ms; is it on?"
            devices.set_fault(LAMP, "gone")
            devices.perform(setting(2, True))
            assert (await joined.answer(N1, 2)).error == "lamp is gone"
            devices.set_fault(LAMP, "wrong")
            devices.perform(ReadDevice(LAMP, 3))
            assert (await joined.answer(N1, 3)).readings == {"on": "nonsense"}
            devices.set_fault(LAMP, "slow", 500.0)
            devices.perform(setting(4, True, timeout_ms=20.0))
            assert (await joined.answer(N1, 4)).error == NO_ANSWER
            devices.set_fault(LAMP, "well")
            devices.perform(setting(5, True))
            assert (await joined.answer(N1, 5)).readings == {"on": True}

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("device", "be", "ms", "says"),
    [
        (LAMP, "purple", 0.0, "it can be well, slow"),
        (LAMP, "slow", float("nan"), "expected 0 to"),
        (LAMP, "slow", -1.0, "expected 0 to"),
        (HEATER, "silent", 0.0, "ask n2"),
        (DeviceId("moon"), "silent", 0.0, "no virtual device of n1"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(device: DeviceId, be: str, ms: float, says: str) -> None:
    async def scene() -> None:
        async with mesh() as joined:
            with pytest.raises(ValueError, match=says):
                joined.nodes[N1].set_fault(device, be, ms)

    asyncio.run(scene())


class Odd:
    """A driver that breaks every rule."""

    def __init__(self) -> None:
        self.commands: list[DeviceCommand] = []

    async def open(self) -> None:
        raise RuntimeError("open")

    async def close(self) -> None:
        raise RuntimeError("close")

    async def read(self) -> Readings:
        raise KeyError("read")

    async def command(self, asked: DeviceCommand) -> Readings:
        self.commands.append(asked)
        raise ZeroDivisionError("command")

    def subscribe(self, report: Report) -> None:
        raise RuntimeError("subscribe")

    def acknowledge(self, token: str) -> None:
        raise RuntimeError("acknowledge")


class SlowToOpen(Odd):
    def __init__(self, gate: asyncio.Event) -> None:
        super().__init__()
        self._gate = gate

    async def open(self) -> None:
        await self._gate.wait()


class Silent(Odd):
    async def read(self) -> Readings:
        await asyncio.Event().wait()
        return {}


class CallsBack(Odd):
    """Twice, if it is asked for a read; a command it cannot begin."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[Ended] = []

    async def open(self) -> None:
        pass

    def begin(self, asked: DeviceCommand | None, ended: Ended) -> bool:
        if asked is not None:
            raise OverflowError("begin")
        self.ended += [ended, ended]
        return True


def _put(joined: Mesh, driver: Odd) -> None:
    """In the place of the lamp's."""
    devices = joined.nodes[N1]
    device = local.LocalDevice(
        LAMP,
        driver,
        devices._surroundings.scheduler,
        reported=devices._on_report,
        trouble=devices._trouble,
        counters=devices.counters,
    )
    device.open()
    devices._locals[LAMP] = device


def test_a_driver_that_breaks_the_rules_is_an_error_and_no_crash() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            _put(joined, Odd())
            devices = joined.nodes[N1]
            devices.perform(ReadDevice(LAMP, 1))
            assert "KeyError" in str((await joined.answer(N1, 1)).error)
            devices.perform(setting(2, True))
            assert (await joined.answer(N1, 2)).error == NO_ANSWER, "perhaps it did it"
            assert "ZeroDivisionError" in devices.troubles[LAMP]
            devices.perform(Subscribe(LAMP))
            devices.perform(AcknowledgeEvent(LAMP, "x"))
            assert devices.counters["driver errors"] >= 5

    asyncio.run(scene())


def test_a_driver_that_calls_back_is_heard_once_and_not_after_its_end() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            driver = CallsBack()
            _put(joined, driver)
            devices = joined.nodes[N1]
            await asyncio.sleep(0)
            for call in range(local.MAX_OPEN_CALLS + 1):
                devices.perform(ReadDevice(LAMP, call))
            last = await joined.answer(N1, local.MAX_OPEN_CALLS)
            assert "are open already" in str(last.error)
            for ended in driver.ended[:2]:
                ended({"on": True})
            assert (await joined.answer(N1, 0)).readings == {"on": True}
            assert [event.call for event in joined.answers[N1]].count(0) == 1
            devices.perform(setting(100, True))
            assert (await joined.answer(N1, 100)).error == NO_ANSWER, "perhaps it did it"
            await devices._locals[LAMP].close()
            driver.ended[2]({"on": True})
            assert not devices._outbox

    asyncio.run(scene())


def test_open_calls_of_a_device_are_bounded() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            _put(joined, Silent())
            for call in range(local.MAX_OPEN_CALLS + 1):
                joined.nodes[N1].perform(ReadDevice(LAMP, call))
            last = await joined.answer(N1, local.MAX_OPEN_CALLS)
            assert "are open already" in str(last.error)
            joined.arrives = lambda *_: 0
            for call in range(local.MAX_OPEN_CALLS + 1):
                joined.nodes[N3].perform(ReadDevice(LAMP, call))
            last = await joined.answer(N3, local.MAX_OPEN_CALLS)
            assert "are open already" in str(last.error)

    asyncio.run(scene())


# -- what devices say by themselves ----------------------------------------------------------------------


@pytest.mark.parametrize("node", [N3, N1])
def test_an_event_reaches_who_subscribed_until_it_is_acknowledged(node: NodeId) -> None:
    async def scene() -> None:
        async with mesh() as joined:
            joined.nodes[node].perform(Subscribe(BELL))
            bell = joined.nodes[N3].virtual(BELL)
            assert bell is not None
            tokens = [bell.press({"rung": True}), bell.press({"rung": False})]
            reports = joined.reports[node]
            await until(lambda: len(reports) >= 2)
            assert {report.token for report in reports} == {tokens[0]}
            joined.nodes[node].perform(AcknowledgeEvent(BELL, str(tokens[0])))
            await until(lambda: reports[-1].token == tokens[1])
            joined.nodes[node].perform(AcknowledgeEvent(BELL, str(tokens[1])))
            third = bell.press({"rung": True})
            await until(lambda: reports[-1].token == third)

    asyncio.run(scene())


def listening(joined: Mesh) -> list[NodeId]:
    host = joined.nodes[N3]
    return list(host._locals[BELL].subscribers.at(host._now_ms()))


def test_a_new_leader_and_the_old_one_both_listen_for_a_while() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            for node in (N1, N2):
                joined.nodes[node].perform(Subscribe(BELL))
            bell = joined.nodes[N3].virtual(BELL)
            assert bell is not None
            await until(lambda: listening(joined) == [N1, N2])
            token = bell.press({"rung": True})
            for node in (N1, N2):
                await until(lambda node=node: token in [one.token for one in joined.reports[node]])
            joined.offset_ms = 16_000.0
            joined.nodes[N2].perform(Subscribe(BELL))
            await until(lambda: listening(joined) == [N2])

    asyncio.run(scene())


@pytest.mark.parametrize("node", [N2, N1])
def test_who_reads_a_device_hears_of_its_changes(node: NodeId) -> None:
    async def scene() -> None:
        async with mesh() as joined:
            joined.nodes[node].perform(ReadDevice(DOOR, 1))
            await joined.answer(node, 1)
            await until(lambda: joined.reports[node])  # the subscription has come
            door = joined.nodes[N2].virtual(DOOR)
            assert door is not None
            door.set_reading("open", True)
            await until(lambda: joined.reports[node][-1].readings == {"open": True})
            assert joined.reports[node][-1].token is None

    asyncio.run(scene())


def test_nothing_is_pushed_where_the_document_says_so() -> None:
    async def scene() -> None:
        async with mesh(house("settings: {push: false}\n" + HOUSE)) as joined:
            joined.nodes[N1].perform(ReadDevice(DOOR, 1))
            await joined.answer(N1, 1)
            assert len(joined.frames) == 2, "a call and its reply"

    asyncio.run(scene())


def test_a_report_that_was_overtaken_is_dropped() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            held: list[bytes] = []

            def hold(sender: NodeId, _: NodeId, frame: bytes) -> int:
                if isinstance(decode(frame), DeviceReport):
                    held.append(frame)
                    return 0
                return 1

            joined.arrives = hold
            joined.nodes[N1].perform(ReadDevice(DOOR, 1))
            await until(lambda: held)
            joined.nodes[N1].perform(ReadDevice(DOOR, 2))
            await joined.answer(N1, 2)
            assert joined.nodes[N1].on_frame(N2, held[0])
            newer = decode(held[0])
            assert isinstance(newer, DeviceReport)
            later = DeviceReport(DOOR, newer.host_life, 0.0, newer.sequence + 9, {"open": True})
            assert joined.nodes[N1].on_frame(N2, encode(later))
            await until(lambda: joined.reports[N1])
            assert [report.readings for report in joined.reports[N1]] == [{"open": True}]

    asyncio.run(scene())


# -- frames from outside ---------------------------------------------------------------------------------


def test_what_cannot_be_read_or_was_not_asked_for_is_dropped() -> None:
    async def scene() -> None:
        async with mesh() as joined:
            devices = joined.nodes[N1]
            good = encode(DeviceCall(LAMP, "life", 1))
            for bad in (b"", b"\xd1", b"\xd2" + good[1:], good[:-1], b"\xd1" + b"\xff" * 50, b"\x01abc"):
                assert not devices.on_frame(N2, bad)
            assert devices.on_frame(N2, encode(DeviceReport(HEATER, "x", 0.0, 1, {"celsius": 99.0})))
            assert devices.on_frame(N3, encode(DeviceReport(HEATER, "x", 0.0, 1, {"celsius": 99.0})))
            await until(lambda: joined.reports[N1])
            assert len(joined.reports[N1]) == 1, "only from the node that has it"
            assert devices.on_frame(N2, encode(DeviceCall(HEATER, "life", 1)))
            refusal = decode(joined.frames[-1][2])
            assert "not part of n1" in str(getattr(refusal, "error", None))

    asyncio.run(scene())


# -- versions and missing drivers ------------------------------------------------------------------------


def test_a_device_without_a_driver_says_which_is_missing() -> None:
    text = HOUSE.replace(
        "    readings: {open: bool}", "    readings: {open: bool}\n    driver: {type: mqtt, topic: a}"
    )

    async def scene() -> None:
        async with mesh(house(text)) as joined:
            devices = joined.nodes[N1]
            devices.perform(ReadDevice(DOOR, 1))
            assert (await joined.answer(N1, 1)).error == "door: driver mqtt is not built yet"
            assert await devices.open() == {"mqtt": [DOOR]}
        async with mesh(house(text), stand_in=True) as joined:
            joined.nodes[N1].perform(ReadDevice(DOOR, 1))
            assert (await joined.answer(N1, 1)).readings == {"open": False}

    asyncio.run(scene())


def test_a_new_version_adds_and_removes_devices_and_keeps_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices_module, "GRACE_MS", 1.0)
    text = HOUSE.replace("  lamp:\n    place: [1m", "  lantern:\n    place: [1m").replace(
        "device: lamp", "device: lantern"
    )
    text = text.replace("  door:", "  door:\n    name: Front door")

    async def scene() -> None:
        async with mesh() as joined:
            for node in (N1, N2):
                joined.nodes[node].perform(setting(1, True))
                await joined.answer(node, 1)
            door = joined.nodes[N2].virtual(DOOR)
            for devices in joined.nodes.values():
                devices.adopt(house(text))
            assert joined.nodes[N2].virtual(DOOR) is door
            for node in (N1, N2):
                joined.nodes[node].perform(ReadDevice(LAMP, 2))
                assert "no device lamp" in str((await joined.answer(node, 2)).error)
                joined.nodes[node].perform(ReadDevice(DeviceId("lantern"), 3))
                assert (await joined.answer(node, 3)).readings == {"on": False}
            await until(lambda: not joined.nodes[N1]._closing)

    asyncio.run(scene())


def test_what_devices_do_is_told_for_recordings() -> None:
    told: list[Acted | Pressed] = []

    async def scene() -> None:
        async with mesh(record=told.append) as joined:
            begun_ms = joined.nodes[N1]._now_ms()
            joined.nodes[N2].perform(setting(1, True, of=origin(3, 2, 1)))
            await joined.answer(N2, 1)
            bell = joined.nodes[N3].virtual(BELL)
            assert bell is not None
            token = bell.press({"rung": True})
            acted, pressed = told
            assert isinstance(acted, Acted)
            assert isinstance(pressed, Pressed)
            command = acted.command
            assert (command.by, command.action.command, command.origin) == (N2, "set", origin(3, 2, 1))
            assert begun_ms <= command.sent_ms <= acted.began_ms <= acted.at_ms
            assert (pressed.token, pressed.values) == (token, {"rung": True})

    asyncio.run(scene())
