"""Tests of a process of virtual devices: requests are done once, unreadable datagrams dropped."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from device_texts import BUTTON, DOOR, HEATER, HOUSE, LAMP, house, now_ms, until
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.core.actions import Action, Origin
from comesh.core.devices.calls import TOO_LATE
from comesh.core.ids import NodeId, RoutineId
from comesh.core.stamps import OPENING, RunId, Stamp
from comesh.drivers.interface import DeviceCommand, DeviceFailedError, NoAnswerError, Readings, TooLateError
from comesh.drivers.scheduler import LoopScheduler
from comesh.drivers.virtual import wire
from comesh.drivers.virtual.admin import DevicesClient, DevicesClientError
from comesh.drivers.virtual.devices import Acted, Pressed, Reply, Request, VirtualDevice
from comesh.drivers.virtual.link import Link, LinkError
from comesh.drivers.virtual.misbehaviour import Misbehaviour
from comesh.drivers.virtual.options import spec_of
from comesh.drivers.virtual.remote import RemoteVirtualDriver
from comesh.drivers.virtual.server import DevicesServer, outside_devices
from comesh.runtime.recording import DeviceActed, DevicePressed, read

N1 = NodeId("n1")
LOOP = LoopScheduler(now_ms)


@asynccontextmanager
async def serving(port: int = 0) -> AsyncIterator[tuple[DevicesServer, str, int]]:
    deployment = house()
    server = DevicesServer(
        deployment, outside_devices(deployment, stand_in=False), seed=1, now_ms=now_ms, still=True
    )
    try:
        host, port = await server.open("127.0.0.1", port)
        yield server, host, port
    finally:
        server.close()
        await asyncio.sleep(0)


def packet(number: int, body: wire.ToDevices, client: int = 7) -> bytes:
    return wire.join([wire.encode(wire.Packet(client, number, body))])


def flip(number: int, life: str = "", at_ms: float = 0.0) -> bytes:
    return packet(number, wire.Ask(Request(LAMP, number, DeviceCommand(Action("flip"))), life, at_ms))


class Plain:
    """A plain socket, to send datagrams that no real client sends."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect((host, port))

    def __enter__(self) -> "Plain":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, data: bytes) -> None:
        self._socket.send(data)

    async def hear(self) -> wire.FromDevices:
        return (await self.hear_all()).body

    async def hear_all(self) -> wire.Back:
        async with asyncio.timeout(20):
            data = await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
        return wire.decode_backs(data)[0]


def test_a_duplicate_request_is_carried_out_once() -> None:
    async def scene() -> None:
        async with serving() as (server, host, port):
            with Plain(host, port) as plain:
                plain.say(packet(9, wire.TellReadings(LAMP)))
                back = await plain.hear_all()
                answers = []
                for number in (1, 1, 2, 1):
                    plain.say(flip(number, back.life, back.now_ms))
                    answers.append(await plain.hear())
                assert all(isinstance(answer, wire.Answer) for answer in answers)
                assert answers[0] == answers[1] == answers[3]
                assert server.device(LAMP).readings() == {"on": False}
                assert server.counters["requests that came twice"] == 2
                assert len(server._log) == 2

    asyncio.run(scene())


def test_a_command_that_is_too_old_is_not_begun() -> None:
    async def scene() -> None:
        async with serving() as (server, host, port):
            with Plain(host, port) as plain:
                plain.say(packet(9, wire.TellReadings(LAMP)))
                back = await plain.hear_all()
                for number, life, at_ms in ((1, back.life, back.now_ms - 5000.0), (2, "other", back.now_ms)):
                    plain.say(flip(number, life, at_ms))
                    answer = await plain.hear()
                    assert isinstance(answer, wire.Answer)
                    assert answer.reply.error == TOO_LATE
                assert not server._log
                assert server.counters["commands that came too late"] == 2

    asyncio.run(scene())


def test_actions_due_while_the_process_was_stopped_are_skipped() -> None:
    async def scene() -> None:
        offset_ms = 0.0
        acts: list[Acted | Pressed] = []
        spec = spec_of(LAMP, house().devices[LAMP], seed=1, still=True)
        device = VirtualDevice(
            LAMP, spec, LoopScheduler(lambda: now_ms() + offset_ms), seed=1, record=acts.append
        )
        answers: list[Reply] = []
        slowly = DeviceCommand(Action("slowly", True))
        device.ask(Request(LAMP, 1, slowly), answers.append)
        offset_ms = 5000.0
        await until(lambda: device.counters["dropped: the process was stopped"] == 1)
        device.ask(Request(LAMP, 2, slowly), answers.append)
        await until(lambda: answers)
        assert len(acts) == len(answers) == 1
        device.close()

    asyncio.run(scene())


def test_garbage_is_dropped_and_counted() -> None:
    good = flip(1)
    bad = [
        b"",
        b"\x02" + good[1:],
        good[:-1],
        good + b"x",
        b"\x01",
        b"\x01\xc1",
        os.urandom(500),
        b"\x01" + b"\x91" * 9000,
    ]

    async def scene() -> None:
        async with serving() as (server, host, port):
            with Plain(host, port) as plain:
                for data in bad:
                    plain.say(data)
                plain.say(
                    packet(1, wire.SetMisbehaviour(LAMP, Misbehaviour())).replace(
                        b"\xcb" + b"\0" * 8, b"\xcb\x7f\xf8" + b"\0" * 6
                    )
                )
                plain.say(packet(9, wire.TellReadings(LAMP)))
                assert isinstance(await plain.hear(), wire.Done)
                dropped = sum(count for name, count in server.counters.items() if name.startswith("dropped"))
                assert dropped == len(bad) + 1

    asyncio.run(scene())


def test_misbehaviour_and_log_are_reachable_over_the_socket() -> None:
    async def scene() -> None:
        async with serving() as (_, host, port), DevicesClient(f"{host}:{port}") as client:
            link = Link(f"{host}:{port}", LOOP)
            driver = RemoteVirtualDriver(LAMP, link, LOOP)
            await driver.open()
            await client.misbehave("lamp", Misbehaviour(silent=True))
            with pytest.raises(NoAnswerError):
                await driver.command(DeviceCommand(Action("flip", timeout_ms=20.0)))
            await client.misbehave("lamp")
            await client.set_reading("lamp", "on", True)
            assert await driver.read() == {"on": True} == await client.readings("lamp")
            stamps = [Stamp(3, OPENING, number) for number in range(100)]
            run = RunId(RoutineId("dusk"), 1, stamps[0])
            for stamp in stamps:  # the clock is known from the read before
                await driver.command(DeviceCommand(Action("flip"), Origin(run, grant=stamp), N1, 5.0))
            token = await client.press("button", {"press": "double"})
            log = await client.log()
            assert len(log) == 101
            assert isinstance(log[0], Acted)
            assert log[0].command == DeviceCommand(Action("flip"), Origin(run, grant=stamps[0]), N1, 5.0)
            assert [one.readings["on"] for one in log[:4] if isinstance(one, Acted)] == [
                False,
                True,
                False,
                True,
            ]
            assert isinstance(log[-1], Pressed)
            assert (log[-1].token, log[-1].values) == (token, {"press": "double"})
            assert await client.log(100) == log[100:]
            assert (await client.counters())["datagrams received"] > 100
            await driver.close()

    asyncio.run(scene())


def test_impossible_requests_are_refused_with_a_reason() -> None:
    async def scene() -> None:
        async with serving() as (_, host, port), DevicesClient(f"{host}:{port}") as client:
            with pytest.raises(DevicesClientError, match="no device heater here"):
                await client.misbehave("heater", Misbehaviour(gone=True))
            with pytest.raises(DevicesClientError, match="no reading 'colour'; its readings: on"):
                await client.set_reading("lamp", "colour", "red")
            with pytest.raises(DevicesClientError, match="no event device"):
                await client.press("lamp")
            link = Link(f"{host}:{port}", LOOP)
            driver = RemoteVirtualDriver(HEATER, link, LOOP)
            with pytest.raises(DeviceFailedError, match="no device heater here"):
                await driver.read()
            link.close()

    asyncio.run(scene())


def test_one_socket_is_shared_by_all_drivers_of_an_address() -> None:
    async def scene() -> None:
        async with serving() as (_, host, port):
            link = Link(f"{host}:{port}", LOOP)
            drivers = [RemoteVirtualDriver(one, link, LOOP) for one in (LAMP, DOOR)]
            for driver in drivers:
                await driver.open()
            assert await asyncio.gather(*(driver.read() for driver in drivers)) == [
                {"on": False},
                {"open": False},
            ]
            await drivers[0].close()
            assert await drivers[1].read() == {"open": False}
            await drivers[1].close()
            assert not link.is_open

    asyncio.run(scene())


def test_if_nothing_listens_a_read_fails_and_a_command_has_no_answer() -> None:
    async def scene() -> None:
        async with serving() as (_, host, port):
            pass
        link = Link(f"{host}:{port}", LOOP)
        driver = RemoteVirtualDriver(LAMP, link, LOOP)
        await driver.open()
        with pytest.raises(DeviceFailedError, match="is `comesh virtual` running"):
            await driver.read()
        with pytest.raises(NoAnswerError, match="is it on"):
            await driver.command(DeviceCommand(Action("flip", timeout_ms=50.0)))
        await driver.close()

    asyncio.run(scene())


@pytest.mark.parametrize("address", ["nowhere", "1.2.3.4:99999", ":7", "host.invalid:x"])
def test_an_invalid_address_is_reported(address: str) -> None:
    async def scene() -> None:
        with pytest.raises(LinkError, match="cannot be reached"):
            await Link(address, LOOP).open()

    asyncio.run(scene())


def test_a_restarted_process_is_found_again_with_new_events() -> None:
    async def scene() -> None:
        told: list[tuple[Readings, str | None]] = []
        async with serving() as (server, host, port):
            driver = RemoteVirtualDriver(BUTTON, Link(f"{host}:{port}", LOOP), LOOP)
            await driver.open()
            driver.subscribe(lambda readings, token: told.append((readings, token)))
            first = server.device(BUTTON).press({"press": "single"})
            await until(lambda: told)
        async with serving(port) as (server, _, _):
            second = server.device(BUTTON).press({"press": "double"})
            await until(lambda: told[-1] == ({"press": "double"}, second))
            driver.acknowledge(str(first))
            third = server.device(BUTTON).press({"press": "single"})
            driver.acknowledge(str(second))
            await until(lambda: told[-1][1] == third)
            assert len({first, second, third}) == 3
            assert set(await driver.read()) == {"press"}
            await driver.close()

    asyncio.run(scene())


# -- the command -----------------------------------------------------------------------------------------


@contextmanager
def process(file: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    running = subprocess.Popen(
        [sys.executable, "-m", "comesh", "virtual", str(file), "--still", "--end-with-stdin", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert running.stdout is not None
        assert select.select([running.stdout], [], [], 60)[0], "it did not get ready"
        word, address = running.stdout.readline().split()
        assert word == "ready"
        yield running, address
    finally:
        running.kill()
        running.communicate()


@pytest.fixture
def document(tmp_path: Path) -> Path:
    file = tmp_path / "house.yaml"
    file.write_text(HOUSE)
    return file


@pytest.mark.parametrize("how", ["stdin", "signal"])
def test_the_command_serves_the_devices_of_a_document(document: Path, tmp_path: Path, how: str) -> None:
    recording = tmp_path / "devices.recording"
    began_ms = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000

    async def scene(address: str) -> None:
        async with DevicesClient(address) as client:
            await client.press("button", {"press": "double"})
            driver = RemoteVirtualDriver(LAMP, Link(address, LOOP), LOOP)
            await driver.open()
            with pytest.raises(TooLateError):
                await driver.command(DeviceCommand(Action("flip"), by=N1))
            await driver.command(DeviceCommand(Action("flip"), by=N1))
            await driver.close()

    with process(document, "--record", str(recording)) as (running, address):
        asyncio.run(scene(address))
        if how == "signal":
            running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=60)
        assert (running.returncode, out) == (0, "")
        assert err.splitlines() == ["button: event {'press': 'double'}", "lamp: flip by n1, now {'on': True}"]
    lines = list(read(recording))
    assert [type(line.what) for line in lines] == [DevicePressed, DeviceActed]
    assert all(line.who == "devices" and line.at_us / 1000 >= began_ms for line in lines)


def test_the_command_can_serve_some_devices_quietly(document: Path) -> None:
    async def scene(address: str) -> None:
        async with DevicesClient(address) as client:
            assert await client.readings("door") == {"open": False}
            await client.press("button")
            with pytest.raises(DevicesClientError, match="no device lamp here"):
                await client.readings("lamp")

    with process(document, "--only", "door, button", "--quiet") as (running, address):
        asyncio.run(scene(address))
        assert running.communicate(timeout=60) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--only", "lanp"), "no device lanp; did you mean"),
        (("--only", "heater"), "heater is part of a node"),
        (("--listen", "here"), "is no address; write host:port"),
        (("--record", "missing/recording"), "cannot be written"),
    ],
)
def test_wrong_options_are_reported(document: Path, arguments: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(app, ["virtual", str(document), *arguments])
    assert done.exit_code == 2
    assert says in done.stderr


def test_a_port_in_use_is_reported(document: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        done = CliRunner().invoke(app, ["virtual", str(document), "--listen", at])
    assert done.exit_code == 2
    assert f"cannot listen at {at}" in done.stderr
