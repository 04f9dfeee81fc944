"""Programs: what the core runs is what the document says."""

import math
from datetime import UTC, datetime

import pytest
from deployment_texts import EXAMPLES, SMALL, changed

from comesh.core.actions import Action, RoutineStep
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import Program
from comesh.core.strategies import Batch, LockOrder, Strategy
from comesh.core.values import Value
from comesh.deployment.load import load
from comesh.deployment.program import SELF_FENCED_FLIGHT_MS, load_program, program_of

RICH = """\
settings:
  f: 0
  command_timeout: 4s
  time_zone: Europe/Zurich
  location: {latitude: 47.4, longitude: 8.5}
  durability: strict
  locks: {strategy: priority}
nodes:
  a: {place: [0m, 0m]}
devices:
  meter:
    place: [1m, 0m]
    driver: {type: modbus, host: 10.0.0.9}
    readings:
      celsius: {type: float, range: [-40, 60]}
      count: int
      mode: [auto, manual]
    commands:
      warm: {argument: float, sets: celsius, takes: 2s}
      reset: {sets: {count: 0, mode: auto}, takes: 1s}
      poke:
  lamp:
    on: a
    driver: {type: coap, host: 10.0.0.8}
    readings: {on: bool}
    commands:
      toggle: {toggles: on}
  button:
    place: [0m, 1m]
    event: true
    readings: {press: [single, double]}
routines:
  hot:
    when: 'meter.celsius > 30 && now.hour >= 8'
    for: 10s
    cooldown: 1m
    do:
      - {device: meter, command: warm, argument: 20}
      - {device: meter, command: reset, timeout: 9s}
      - {device: meter, command: poke, takes: 3s, best_effort: true}
      - {device: lamp, command: toggle}
  pressed:
    on_event: button.press == "double"
    strategy: optimistic
    do: [{device: lamp, command: toggle}]
  quarterly:
    every: 15m
    do: [{device: lamp, command: toggle}]
  morning:
    at: ["07:30", sunset]
    do: [{device: lamp, command: toggle}]
  by_hand:
    do: [{device: lamp, command: toggle}]
"""


def wall_ms(*when: int) -> float:
    return datetime(*when, tzinfo=UTC).timestamp() * 1000


@pytest.fixture(scope="module")
def rich() -> Program:
    return load_program(RICH)


def test_steps_carry_durations_and_what_they_expect(rich: Program) -> None:
    warm, reset, poke, toggle = rich.routines[RoutineId("hot")].steps
    action = Action("warm", 20.0, timeout_ms=6000.0, expects={"celsius": 20.0})
    assert warm == RoutineStep(DeviceId("meter"), action)
    assert isinstance(warm.action.argument, float)
    assert (reset.action.timeout_ms, reset.action.expects) == (9000.0, {"count": 0, "mode": "auto"})
    assert (poke.action.timeout_ms, poke.action.expects) == (7000.0, None)
    assert poke.best_effort
    assert (toggle.action.idempotent, toggle.action.expects) == (False, None)


def test_triggers(rich: Program) -> None:
    hot = rich.routines[RoutineId("hot")]
    assert hot.when is not None
    assert hot.when.reads == {("meter", "celsius"), ("now", "hour")}
    assert (hot.for_ms, hot.cooldown_ms, hot.on_event, hot.schedule) == (10_000.0, 60_000.0, None, None)
    assert hot.when.evaluate({("meter", "celsius"): 31.0, ("now", "hour"): 9}) is True
    assert hot.when.evaluate({("meter", "celsius"): 31.0}) is None
    pressed = rich.routines[RoutineId("pressed")]
    assert pressed.when is None
    assert pressed.on_event is not None
    assert pressed.on_event.evaluate({("button", "press"): "double"}) is True
    by_hand = rich.routines[RoutineId("by_hand")]
    assert (by_hand.when, by_hand.on_event, by_hand.schedule) == (None, None, None)
    assert rich.listeners[DeviceId("button")] == ("pressed",)


def test_strategies_are_the_routines_own_or_the_settings(rich: Program) -> None:
    assert rich.routines[RoutineId("hot")].strategy is Strategy.PRIORITY
    assert rich.routines[RoutineId("pressed")].strategy is Strategy.OPTIMISTIC


def test_schedules_go_from_wall_time_to_wall_time(rich: Program) -> None:
    quarterly = rich.routines[RoutineId("quarterly")].schedule
    morning = rich.routines[RoutineId("morning")].schedule
    assert quarterly is not None
    assert morning is not None
    at_ms = quarterly(wall_ms(2026, 6, 1, 12, 7))
    assert at_ms == wall_ms(2026, 6, 1, 12, 15)
    assert quarterly(at_ms) == wall_ms(2026, 6, 1, 12, 30)
    first = morning(wall_ms(2026, 6, 1, 0, 0))
    assert first == wall_ms(2026, 6, 1, 5, 30)
    sunset = morning(first)
    assert sunset is not None
    assert wall_ms(2026, 6, 1, 19, 10) < sunset < wall_ms(2026, 6, 1, 19, 25)
    assert morning(sunset) == wall_ms(2026, 6, 2, 5, 30)
    assert quarterly(1e18) is None


def test_the_moment_is_local_and_the_sun_sets_at_sunset(rich: Program) -> None:
    now = rich.moment(wall_ms(2026, 6, 1, 22, 5))
    assert now == {
        ("now", "time"): "00:05",
        ("now", "hour"): 0,
        ("now", "minute"): 5,
        ("now", "weekday"): "tue",
        ("now", "day"): 2,
        ("now", "month"): 6,
        ("sun", "up"): False,
    }
    morning = rich.routines[RoutineId("morning")].schedule
    assert morning is not None
    sunset = morning(wall_ms(2026, 6, 1, 12, 0))
    assert sunset is not None
    assert rich.moment(sunset - 60_000)["sun", "up"] is True
    assert rich.moment(sunset + 60_000)["sun", "up"] is False
    assert rich.moment(1e18) == {}
    assert ("sun", "up") not in load_program(SMALL).moment(0.0)


def test_answers_fit_the_declared_types(rich: Program) -> None:
    fit = rich.devices[DeviceId("meter")].fit
    assert fit is not None
    fitted = fit({"celsius": 21, "count": 3, "mode": "auto", "other": 1})
    assert fitted == {"celsius": 21.0, "count": 3, "mode": "auto"}
    assert isinstance(fitted["celsius"], float)
    wrong: list[dict[str, Value]] = [
        {"celsius": math.nan},
        {"celsius": math.inf},
        {"celsius": True},
        {"count": 2.5},
        {"mode": "odd"},
    ]
    assert [fit(answer) for answer in wrong] == [{}] * len(wrong)
    assert fit({"celsius": 1000.0}) == {"celsius": 1000.0}, "out of range is still something"


def test_who_fences_itself_has_a_short_flight(rich: Program) -> None:
    flights = {name: device.flight_ms for name, device in rich.devices.items()}
    assert flights == {"meter": None, "lamp": SELF_FENCED_FLIGHT_MS, "button": SELF_FENCED_FLIGHT_MS}
    assert {name for name, device in rich.devices.items() if device.event} == {"button"}


def test_settings(rich: Program) -> None:
    assert (rich.settings.strict, rich.settings.estimated_timeouts) == (True, True)
    paper = load_program(SMALL.replace("{f: 1}", "{preset: paper, f: 1, flight_limit: 7s}")).settings
    assert (paper.batch, paper.order) == (Batch.NONE, LockOrder.DEVICE)
    assert (paper.lease_ms, paper.epoch_ms, paper.monitoring_ms) == (20_000, 200_000, 1000.0)
    assert (paper.strict, paper.estimated_timeouts, paper.flight_limit_ms) == (False, False, 7000.0)


def test_what_exists_keeps_its_birth_and_its_cluster() -> None:
    text = changed("lamp.level > 5", "lamp.level > 7") + (
        "  dark:\n    when: lamp.level < 1\n    do: [{device: lamp, command: switch, argument: false}]\n"
    )
    first = load_program(SMALL)
    second = load_program(text, 2, first)
    third = load_program(SMALL, 3, second)
    assert [program.version for program in (first, second, third)] == [1, 2, 3]
    assert {name: routine.birth for name, routine in second.routines.items()} == {"light": 1, "dark": 2}
    again = load_program(text, 4, third)
    assert again.routines[RoutineId("dark")].birth == 4, "it was gone: another one of that name"
    assert second.plan.genesis == first.plan.genesis
    assert (first.text, second.text) == (SMALL, text)


def test_a_new_group_is_of_the_version_that_added_it() -> None:
    small = SMALL.replace("{f: 1}", "{f: 1, selection: {cluster_size: 2}}")
    more = small.replace("routines:", "  valve: {place: [2m, 2m], readings: {open: bool}}\nroutines:")
    first = load_program(small, 3)
    second = load_program(more, 4, first)
    assert first.first_versions == {"c1": 3, DEPLOYMENT: 3}
    assert second.first_versions == {"c1": 3, "c2": 4, DEPLOYMENT: 3}


def test_a_wrong_text_is_refused_in_plain_words() -> None:
    with pytest.raises(ValueError, match=r"routines\.light\.when: 'lamp' has no reading 'lvl'"):
        load_program(changed("lamp.level > 5", "lamp.lvl > 5"))
    with pytest.raises(ValueError, match="UTF-8"):
        load_program("name: \ud800")


def test_central_is_one_group_of_one_node() -> None:
    for path in EXAMPLES:
        text = path.read_text().replace("\nsettings:\n", "\nsettings:\n  preset: central\n", 1)
        text = "\n".join(line for line in text.splitlines() if not line.startswith(("  f:", "  selection:")))
        plan = load_program(text).plan
        assert len(plan.devices) > 25, "more than one cluster otherwise"
        assert sorted(plan.genesis) == ["c1", DEPLOYMENT]
        assert [len(members) for members in plan.genesis.values()] == [1, 1]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_become_programs(path: object) -> None:
    deployment = load(str(path)).deployment
    assert deployment is not None
    program = program_of(deployment)
    assert set(program.group_of_routine) == set(deployment.routines)
    for routine in program.routines.values():
        for step in routine.steps:
            assert step.action.timeout_ms > 0
            fit = program.devices[step.device].fit
            assert fit is not None
            assert step.action.expects is None or fit(step.action.expects) == step.action.expects


def test_groups_that_share_a_routine_exchange_letters() -> None:
    program = load_program(next(path for path in EXAMPLES if path.stem == "office").read_text(), 1)
    for routine, spec in program.routines.items():
        read = {device for device, readers in program.watchers.items() if routine in readers}
        devices = (spec.commands | read) & program.devices.keys()
        groups = {program.group_of_device[device] for device in devices} | {program.group_of_routine[routine]}
        for group in groups:
            assert groups - {group} <= set(program.correspondents.get(group, ()))
    assert all(group not in others for group, others in program.correspondents.items())
    assert len(program.correspondents) > 1
    assert DEPLOYMENT not in program.correspondents
