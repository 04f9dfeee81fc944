"""Tests of virtual devices: readings, commands, failures, and the radio path."""

import msgspec
import pytest
from toys import Scripted, Shelf, line

from comesh.core.actions import Action, Origin
from comesh.core.effects import CommandDevice, Effect, ReadDevice, SetTimer
from comesh.core.events import DeviceAnswered, Started, Timer, TimerFired
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.node import AnyEvent
from comesh.core.stamps import Ballot, RunId, Stamp
from comesh.core.values import Value
from comesh.drivers.interface import READ_TIMEOUT_MS, DeviceCommand
from comesh.drivers.virtual.devices import CommandSpec, DeviceSpec, Reply
from comesh.drivers.virtual.sources import Constant, RandomWalk, Script, Source, SquareWave
from comesh.sim.devices import REQUEST_LIVES_MS, read_bytes
from comesh.sim.radio import RadioSettings
from comesh.sim.traffic import Lost
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

D0, D1 = DeviceId("d0"), DeviceId("d1")
CALM = RadioSettings()
LAMP = DeviceSpec(
    sources={"on": Constant(False), "level": Constant(40), "scene": Constant("day")},
    commands={
        "dim": CommandSpec(sets="level", takes_ms=50.0),
        "sleep": CommandSpec(sets={"on": False, "scene": "night"}),
        "wake": CommandSpec(sets={"on": True, "scene": "day"}),
        "blink": CommandSpec(takes_ms=3000.0),
    },
    latency_ms=0.0,
)


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


def shown(source: Source, times_ms: list[float], seed: int = 1) -> list[Value]:
    devices = Shelf({D0: DeviceSpec(sources={"it": source})}, seed)
    return [devices.readings(D0, at_ms)["it"] for at_ms in times_ms]


def test_sources() -> None:
    assert shown(Constant("open"), [0.0, 1e6]) == ["open", "open"]
    wave = SquareWave(first=1, second=2, period_ms=100.0)
    assert shown(wave, [0.0, 49.9, 50.0, 99.9, 100.0]) == [1, 1, 2, 2, 1]
    script = Script(((10.0, False), (20.0, True)))
    assert shown(script, [0.0, 10.0, 19.9, 20.0, 1e9]) == [False, False, False, True, True]
    with pytest.raises(ValueError, match="in order of time"):
        Script(((2.0, 1), (1.0, 2)))


def test_a_random_walk_depends_on_time_and_seed_only() -> None:
    walk = RandomWalk(start=20.0, step=0.5, low=19.0, high=21.0, every_ms=10.0)
    often = shown(walk, [float(at_ms) for at_ms in range(2000)])
    assert often[-1] == shown(walk, [1999.0])[0]
    assert {19.0, 21.0} <= set(often)
    assert all(19 <= float(value) <= 21 for value in often)
    assert often != shown(walk, [float(at_ms) for at_ms in range(2000)], seed=2)
    whole = shown(RandomWalk(start=5, step=1, low=4, high=6, every_ms=10.0), [0.0, 10.0, 500.0])
    assert all(isinstance(value, int) for value in whole)


def test_each_reading_has_its_own_random_stream() -> None:
    walk = RandomWalk(every_ms=10.0)
    both = DeviceSpec(sources={"one": walk, "other": walk})
    alone = DeviceSpec(sources={"other": walk})
    first = Shelf({D0: both, D1: both})
    second = Shelf({D0: alone})
    shown = first.readings(D0, 5000.0)
    assert list(shown) == ["one", "other"]
    assert shown["one"] != shown["other"]
    assert shown != first.readings(D1, 5000.0)
    assert shown["other"] == second.readings(D0, 5000.0)["other"]


def test_a_read_takes_latency_and_both_ways() -> None:
    sensor = DeviceSpec(sources={"celsius": Constant(21.5), "co2": Constant(400)}, latency_ms=5.0)
    world, asking = world_of([(0.0, ReadDevice(D1, 7))], {D1: sensor})
    world.run_until(500.0)
    request = read_bytes(D1)
    readings: dict[str, Value] = {"celsius": 21.5, "co2": 400}
    reply = len(msgspec.msgpack.encode(Reply(D1, 7, readings=readings)))
    took_ms = 20 + request * (1 + 2) / 625 + 5 + 20 + reply * (1 + 2) / 625
    assert asking.answers == [(pytest.approx(took_ms), DeviceAnswered(device=D1, call=7, readings=readings))]
    traffic = world.traffic
    assert traffic.total(kind="ReadDevice").sent.size_bytes == request
    assert traffic.total(kind="DeviceAnswered").transmitted.size_bytes == 2 * reply
    assert traffic.total(station=1).relayed.messages == 2


def test_commands_set_readings_take_time_and_are_logged() -> None:
    plan: list[tuple[float, Effect]] = [
        (0.0, CommandDevice(D0, 1, Action("dim", 3))),
        (200.0, ReadDevice(D0, 2)),
        (300.0, CommandDevice(D0, 3, Action("wake"))),
        (400.0, CommandDevice(D0, 4, Action("sleep"))),
        (500.0, CommandDevice(D0, 5, Action("blink", timeout_ms=4000.0))),
    ]
    world, asking = world_of(plan, {D0: LAMP})
    world.run_until(59.0)
    assert world.devices[D0].readings() == {"on": False, "level": 40, "scene": "day"}
    world.run_until(5000.0)
    dimmed: dict[str, Value] = {"on": False, "level": 3, "scene": "day"}
    woken, asleep = dimmed | {"on": True}, dimmed | {"scene": "night"}
    answers = [(event.call, event.readings) for _, event in asking.answers]
    assert answers == [(1, dimmed), (2, dimmed), (3, woken), (4, asleep), (5, asleep)]
    assert asking.answers[-1][0] == pytest.approx(3520.0, abs=0.2), "longer than the driver's timeout"
    acted = [
        (act.command.action.command, act.command.action.argument, act.readings, act.refused)
        for act in world.devices.log
    ]
    assert acted == [
        ("dim", 3, dimmed, None),
        ("wake", None, woken, None),
        ("sleep", None, asleep, None),
        ("blink", None, asleep, None),
    ]
    assert world.devices.log[0].at_ms == pytest.approx(60.0, abs=0.1)
    assert {act.command.by for act in world.devices.log} == {"n0"}


@pytest.mark.parametrize(
    ("command", "why"), [("explode", "no command 'explode'"), ("dim", "'dim' needs an argument")]
)
def test_unknown_commands_are_refused(command: str, why: str) -> None:
    world, asking = world_of([(0.0, CommandDevice(D0, 1, Action(command)))], {D0: LAMP})
    world.run_until(500.0)
    assert [event for _, event in asking.answers] == [DeviceAnswered(device=D0, call=1, error=why)]
    (acted,) = world.devices.log
    assert (acted.command.action.command, acted.refused) == (command, why)
    assert acted.readings == {"on": False, "level": 40, "scene": "day"}, "nothing changed"


def test_a_device_without_a_spec_is_a_switch() -> None:
    plan: list[tuple[float, Effect]] = [
        (0.0, CommandDevice(D0, 1, Action("on"))),
        (200.0, CommandDevice(D0, 2, Action("off"))),
        (400.0, CommandDevice(D0, 3, Action("set", True))),
    ]
    world, asking = world_of(plan)
    world.run_until(1000.0)
    assert [event.readings for _, event in asking.answers] == [{"on": True}, {"on": False}, {"on": True}]


def test_no_answer_is_an_error_after_the_drivers_timeout() -> None:
    world, asking = world_of([(0.0, ReadDevice(D0, 1)), (5000.0, ReadDevice(D0, 2))])
    world.devices[D0].misbehave(silent=True)
    world.run_until(4000.0)
    assert asking.answers == [(READ_TIMEOUT_MS, DeviceAnswered(device=D0, call=1, error="no answer"))]
    world.devices[D0].misbehave(silent=False)
    world.run_until(9000.0)
    assert asking.answers[1][1].readings == {"on": False}


def test_slow_and_wrong_devices() -> None:
    world, asking = world_of(
        [(0.0, ReadDevice(D0, 1)), (3000.0, ReadDevice(D0, 2)), (6000.0, ReadDevice(D0, 3))]
    )
    world.devices[D0].misbehave(slow_ms=1000.0)
    world.run_until(2900.0)
    world.devices[D0].misbehave(slow_ms=5000.0)
    world.run_until(5900.0)
    world.devices[D0].misbehave(slow_ms=0.0)
    world.devices[D0].misbehave(wrong={"on": "?"})
    world.run_until(20_000.0)
    assert [(event.readings, event.error) for _, event in asking.answers] == [
        ({"on": False}, None),
        ({}, "no answer"),
        ({"on": "?"}, None),
    ], "the late answer to the second call is not given after its error"
    assert asking.answers[0][0] == pytest.approx(1025.0, abs=0.1)
    assert world.devices[D0].readings() == {"on": False}


def test_one_reading_can_be_wrong_while_the_others_are_right() -> None:
    world, asking = world_of([(0.0, ReadDevice(D0, 1)), (100.0, ReadDevice(D0, 2))], {D0: LAMP})
    world.devices[D0].misbehave(wrong={"level": -1e9})
    world.run_until(90.0)
    world.devices[D0].misbehave(wrong={})
    world.run_until(500.0)
    answers = [event.readings for _, event in asking.answers]
    right = {"on": False, "level": 40, "scene": "day"}
    assert answers == [right | {"level": -1e9}, right]


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
        world_of([], {DeviceId("d7"): DeviceSpec()})


def test_a_command_sets_existing_readings_only() -> None:
    for sets in ("level", {"level": 1}):
        with pytest.raises(ValueError, match="command dim sets level, which is no reading"):
            DeviceSpec(commands={"dim": CommandSpec(sets=sets)})


def test_a_toggle_inverts_the_current_reading() -> None:
    spec = DeviceSpec(
        sources={"on": Script(((0.0, False), (100.0, True)))}, commands={"toggle": CommandSpec(toggles="on")}
    )
    devices = Shelf({D0: spec})
    shown = [devices.command(D0, DeviceCommand(Action("toggle")), 150.0) for _ in range(3)]
    assert [reply.readings["on"] for _, reply in shown] == [False, True, False]
    with pytest.raises(ValueError, match="command toggle sets on, which is no reading"):
        DeviceSpec(commands={"toggle": CommandSpec(toggles="on")})


def stamp(n: int) -> Stamp:
    return Stamp(1, Ballot(0, 0), n)


def origin(grant: Stamp | None) -> Origin:
    return Origin(RunId(RoutineId("dusk"), 1, stamp(3)), grant=grant)


def test_the_log_records_the_run_of_a_command() -> None:
    run = RunId(RoutineId("dusk"), 1, stamp(3))
    command = CommandDevice(D1, 1, Action("dim", 5), Origin(run, 2, 4, stamp(9)))
    world, asking = world_of([(100.0, command)], {D1: LAMP})
    world.run_until(1000.0)
    (acted,) = world.devices.log
    assert acted.command.origin == Origin(run, 2, 4, stamp(9))
    assert (acted.command.sent_ms, round(acted.began_ms), round(acted.at_ms)) == (100.0, 120, 170)
    assert [event.error for _, event in asking.answers] == [None]


def test_a_command_is_not_sent_after_its_time_by_the_clock_of_its_node() -> None:
    plan: list[tuple[float, Effect]] = [
        (100.0, CommandDevice(D0, 1, Action("dim", 1), until_ms=100.0)),
        (200.0, CommandDevice(D0, 2, Action("dim", 2), until_ms=199.9)),
    ]
    world, asking = world_of(plan, {D0: LAMP})
    world.machines[NodeId("n0")].clock.skew(0.0, 1e6)
    world.run_until(1000.0)
    assert [(event.call, event.error) for _, event in asking.answers] == [(1, None), (2, "too late")]
    assert asking.answers[1][0] == 200.0, "at once"
    assert [acted.call for acted in world.devices.log] == [1]
    assert world.traffic.total(kind="CommandDevice").sent.messages == 1


def test_a_slow_step_makes_a_command_late() -> None:
    world, asking = world_of([(100.0, CommandDevice(D0, 1, Action("dim", 1), until_ms=120.0))], {D0: LAMP})
    world.run_until(50.0)
    world.machines[NodeId("n0")].step_ms = 30.0
    world.run_until(1000.0)
    assert [event.error for _, event in asking.answers] == ["too late"], "what counts is when it is performed"


@pytest.mark.parametrize("timeout_ms", [300.0, 5000.0])
def test_a_command_has_its_own_timeout(timeout_ms: float) -> None:
    world, asking = world_of(
        [(0.0, CommandDevice(D0, 1, Action("blink", timeout_ms=timeout_ms)))], {D0: LAMP}
    )
    world.run_until(10_000.0)
    (answer,) = asking.answers
    assert (round(answer[0]), answer[1].error) == (
        (300, "no answer") if timeout_ms == 300.0 else (3020, None)
    )
    assert len(world.devices.log) == 1, "it acts all the same"


@pytest.mark.parametrize("fences", [True, False])
def test_a_device_that_fences_refuses_older_grants(fences: bool) -> None:
    spec = msgspec.structs.replace(LAMP, fences=fences)
    grants = [stamp(2), stamp(1), None, stamp(2), Stamp(2, Ballot(0, 0), 1), stamp(9)]
    plan: list[tuple[float, Effect]] = [
        (100.0 * call, CommandDevice(D0, call, Action("dim", call), origin(grant)))
        for call, grant in enumerate(grants)
    ]
    world, asking = world_of(plan, {D0: spec})
    world.run_until(2000.0)
    refused = [acted.call for acted in world.devices.log if acted.refused is not None]
    assert refused == ([1, 3, 5] if fences else [])
    errors = [event.error for _, event in asking.answers if event.error is not None]
    why = [
        "fenced: grant 1:0.0:1 is older than 1:0.0:2",
        "fenced: grant 1:0.0:2 is another command's",
        "fenced: grant 1:0.0:9 is older than 2:0.0:1",
    ]
    assert errors == (why if fences else [])
    assert world.devices[D0].readings()["level"] == (4 if fences else 5)


@pytest.mark.parametrize("after_ms", [1.0, 500.0])
@pytest.mark.parametrize("fences", [True, False])
def test_a_repeated_command_under_one_grant_is_done_once(fences: bool, after_ms: float) -> None:
    spec = DeviceSpec(
        sources={"on": Constant(False)},
        commands={"flip": CommandSpec(toggles="on", takes_ms=100.0)},
        fences=fences,
    )
    plan: list[tuple[float, Effect]] = [
        (call * after_ms, CommandDevice(D0, call, Action("flip"), origin(stamp(2)))) for call in (1, 2)
    ]
    world, asking = world_of(plan, {D0: spec})
    world.run_until(2000.0)
    assert [event.error for _, event in asking.answers] == [None, None]
    assert len(world.devices.log) == (1 if fences else 2)
    assert world.devices[D0].readings() == {"on": fences}


def test_a_request_that_is_held_up_for_long_is_lost() -> None:
    plan: list[tuple[float, Effect]] = [
        (10.0 * call, CommandDevice(D0, call, Action("on"))) for call in range(200)
    ]
    world, asking = world_of(plan, radio=RadioSettings(reorder=1.0, reorder_ms=30_000.0, duplicate=0.3))
    world.run_until(60_000.0)
    assert len(asking.answers) == 200
    assert all(acted.began_ms - acted.command.sent_ms <= REQUEST_LIVES_MS for acted in world.devices.log)
    assert 5 < len(world.devices.log) < 40
    assert len({acted.call for acted in world.devices.log}) == len(world.devices.log), "each at most once"
    total = world.traffic.total()
    assert total.sent.messages == total.received.messages + sum(world.traffic.losses().values())


def test_a_read_takes_two_entries_of_the_engine() -> None:
    """Speed: two entries, besides the timer that asks for it, and no timeout that runs for nothing."""
    plan: list[tuple[float, Effect]] = [(10.0 * call, ReadDevice(D1, call)) for call in range(100)]
    world, asking = world_of(plan)
    world.run_until(5000.0)
    assert len(asking.answers) == 100
    assert world.engine.handled == 1 + 100 * (1 + 2)
    assert len(world.engine) == 0
