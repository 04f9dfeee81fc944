"""Virtual devices: what they show, what commands do, how they fail, and the way there and back."""

import msgspec
import pytest
from toys import Scripted, line

from comesh.core.effects import CommandDevice, Effect, ReadDevice, SetTimer
from comesh.core.events import DeviceAnswered, Started, Timer, TimerFired
from comesh.core.ids import DeviceId, NodeId
from comesh.core.node import AnyEvent
from comesh.sim.device_calls import DRIVER_TIMEOUT_MS
from comesh.sim.devices import (
    Constant,
    DeviceSpec,
    RandomWalk,
    Reading,
    Reply,
    Request,
    Script,
    Source,
    SquareWave,
    VirtualDevices,
)
from comesh.sim.radio import RadioSettings
from comesh.sim.traffic import Lost
from comesh.sim.world import World, WorldSettings

D0, D1 = DeviceId("d0"), DeviceId("d1")
CALM = RadioSettings()


class Asking:
    """Performs each effect at its time; keeps the answers."""

    def __init__(self, plan: list[tuple[float, Effect]]) -> None:
        self._plan = plan
        self.answers: list[tuple[float, DeviceAnswered]] = []

    def __call__(self, event: AnyEvent, now_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(Timer("toy", "ask", n), at_ms) for n, (at_ms, _) in enumerate(self._plan)]
            case TimerFired():
                return [self._plan[int(event.timer.of)][1]]
            case DeviceAnswered():
                self.answers.append((now_ms, event))
        return []


def world_of(
    plan: list[tuple[float, Effect]],
    specs: dict[DeviceId, DeviceSpec] | None = None,
    *,
    radio: RadioSettings = CALM,
) -> tuple[World, Asking]:
    """n0 - d0 - d1 on a line; n0 asks."""
    asking = Asking(plan)
    settings = WorldSettings(start_spread_ms=0.0, radio=radio)
    topology = line(1, devices=2)
    return World(topology, lambda _: Scripted(asking), seed=1, settings=settings, devices=specs), asking


def shown(source: Source, times_ms: list[float], seed: int = 1) -> list[Reading]:
    devices = VirtualDevices({D0: 0}, {D0: DeviceSpec(source=source)}, seed)
    return [devices.reading(D0, at_ms) for at_ms in times_ms]


def test_sources() -> None:
    assert shown(Constant("open"), [0.0, 1e6]) == ["open", "open"]
    wave = SquareWave(first=1, second=2, period_ms=100.0)
    assert shown(wave, [0.0, 49.9, 50.0, 99.9, 100.0]) == [1, 1, 2, 2, 1]
    script = Script(((10.0, False), (20.0, True)))
    assert shown(script, [0.0, 10.0, 19.9, 20.0, 1e9]) == [False, False, False, True, True]
    with pytest.raises(ValueError, match="in order of time"):
        Script(((2.0, 1), (1.0, 2)))


def test_a_random_walk_depends_on_time_and_seed_not_on_who_looks() -> None:
    walk = RandomWalk(start=20.0, step=0.5, low=19.0, high=21.0, every_ms=10.0)
    often = shown(walk, [float(at_ms) for at_ms in range(2000)])
    assert often[-1] == shown(walk, [1999.0])[0]
    assert {19.0, 21.0} <= set(often)
    assert all(19 <= float(value) <= 21 for value in often)
    assert often != shown(walk, [float(at_ms) for at_ms in range(2000)], seed=2)


def test_a_read_takes_the_way_there_the_latency_and_the_way_back() -> None:
    world, asking = world_of(
        [(0.0, ReadDevice(D1, 7))], {D1: DeviceSpec(source=Constant(21.5), latency_ms=5.0)}
    )
    world.run_until(500.0)
    request = len(msgspec.msgpack.encode(Request(D1, 7)))
    reply = len(msgspec.msgpack.encode(Reply(D1, 7, reading=21.5)))
    took_ms = 20 + request * (1 + 2) / 625 + 5 + 20 + reply * (1 + 2) / 625
    assert asking.answers == [(pytest.approx(took_ms), DeviceAnswered(device=D1, call=7, reading=21.5))]
    traffic = world.traffic
    assert traffic.total(kind="ReadDevice").sent.size_bytes == request
    assert traffic.total(kind="DeviceAnswered").transmitted.size_bytes == 2 * reply
    assert traffic.total(station=1).relayed.messages == 2


def test_commands_set_the_reading_take_time_and_are_logged() -> None:
    plan: list[tuple[float, Effect]] = [
        (0.0, CommandDevice(D0, 1, "set", 3)),
        (200.0, ReadDevice(D0, 2)),
        (300.0, CommandDevice(D0, 3, "toggle")),
        (400.0, CommandDevice(D0, 4, "explode")),
        (500.0, CommandDevice(D0, 5, "on")),
        (600.0, CommandDevice(D0, 6, "off")),
    ]
    world, asking = world_of(plan, {D0: DeviceSpec(command_ms=50.0, latency_ms=0.0)})
    world.run_until(59.0)
    assert world.devices.reading(D0, world.now_ms) is False
    world.run_until(1000.0)
    answers = [(event.call, event.reading, event.error) for _, event in asking.answers]
    assert answers == [
        (1, 3, None),
        (2, 3, None),
        (3, False, None),
        (4, None, "no command 'explode'"),
        (5, True, None),
        (6, False, None),
    ]
    acted = [(act.command, act.reading, act.refused) for act in world.devices.log]
    assert acted == [
        ("set", 3, None),
        ("toggle", False, None),
        ("explode", False, "no command 'explode'"),
        ("on", True, None),
        ("off", False, None),
    ]
    assert world.devices.log[0].at_ms == pytest.approx(60.0, abs=0.1)
    assert {act.by for act in world.devices.log} == {"n0"}


def test_no_answer_is_an_error_after_the_drivers_timeout() -> None:
    world, asking = world_of([(0.0, ReadDevice(D0, 1)), (5000.0, ReadDevice(D0, 2))])
    world.devices.set_down(D0, True)
    world.run_until(4000.0)
    assert asking.answers == [(DRIVER_TIMEOUT_MS, DeviceAnswered(device=D0, call=1, error="no answer"))]
    world.devices.set_down(D0, False)
    world.run_until(9000.0)
    assert asking.answers[1][1].reading is False


def test_slow_and_wrong_devices() -> None:
    world, asking = world_of(
        [(0.0, ReadDevice(D0, 1)), (3000.0, ReadDevice(D0, 2)), (6000.0, ReadDevice(D0, 3))]
    )
    world.devices.set_slow(D0, 1000.0)
    world.run_until(2900.0)
    world.devices.set_slow(D0, 5000.0)
    world.run_until(5900.0)
    world.devices.set_slow(D0, 0.0)
    world.devices.set_wrong(D0, "?")
    world.run_until(20_000.0)
    assert [(event.reading, event.error) for _, event in asking.answers] == [
        (False, None),
        (None, "no answer"),
        ("?", None),
    ], "the late answer to the second call is not given after its error"
    assert asking.answers[0][0] == pytest.approx(1025.0, abs=0.1)
    assert world.devices.reading(D0, world.now_ms) is False


def test_a_lost_request_or_answer_is_no_answer() -> None:
    plan: list[tuple[float, Effect]] = [(10.0 * call, ReadDevice(D1, call)) for call in range(300)]
    world, asking = world_of(plan, radio=RadioSettings(loss_per_hop=0.1, duplicate=0.2))
    world.run_until(10_000.0)
    assert len(asking.answers) == 300, "each call is answered once"
    answered = sum(event.error is None for _, event in asking.answers)
    assert answered / 300 == pytest.approx(0.9**4, abs=0.12)
    total = world.traffic.total()
    assert total.sent.messages == total.received.messages + sum(world.traffic.losses().values())


def test_a_device_at_a_dark_station_and_one_that_does_not_exist() -> None:
    world, asking = world_of([(0.0, ReadDevice(D1, 1)), (0.0, ReadDevice(DeviceId("d9"), 2))])
    world.radio.set_up(2, False)
    world.run_until(5000.0)
    errors = {event.call: event.error for _, event in asking.answers}
    assert errors == {1: "no answer", 2: "unknown device"}
    assert world.traffic.losses() == {("ReadDevice", Lost.STATION_DOWN): 1}


def test_answers_to_a_process_that_ended_go_nowhere() -> None:
    world, asking = world_of([(0.0, ReadDevice(D1, 1)), (1.0, ReadDevice(D1, 2))])
    world.run_until(5.0)
    world.crash(world.machines[NodeId("n0")])
    world.start(world.machines[NodeId("n0")])
    world.run_until(5000.0)
    assert [event.call for _, event in asking.answers] == [1, 2], "only the successor's own calls"


def test_specs_for_devices_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="no device d7"):
        VirtualDevices({D0: 0}, {DeviceId("d7"): DeviceSpec()}, 1)
