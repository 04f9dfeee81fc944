"""Workloads: the same from one seed, and of the shape that they promise."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from toys import Shelf

from comesh.core.ids import DeviceId
from comesh.core.plan import Locality, SelectionSettings
from comesh.core.program import Predicate, ProtocolSettings, ReadingName
from comesh.core.strategies import Strategy
from comesh.core.values import Value
from comesh.drivers.interface import DeviceCommand
from comesh.drivers.virtual.sources import SquareWave
from comesh.sim.predicates import Comparison, Joined
from comesh.sim.topology import Shape, make_topology
from comesh.sim.workloads import Timing, Workload, contention_workload, paper_workload, signal_of

MESH = make_topology(Shape.GRID, devices=60, seed=3)
SELECTION = SelectionSettings(f=2, seed=1)
SETTINGS = ProtocolSettings()


def paper(seed: int = 1, routines: int = 40, *, alone: bool = True, firings: int = 3) -> Workload:
    timing = Timing(firings=firings)
    return paper_workload(
        MESH, SELECTION, SETTINGS, routines=routines, seed=seed, alone=alone, timing=timing, toggles=0.2
    )


def contention(seed: int = 1) -> Workload:
    return contention_workload(MESH, SELECTION, SETTINGS, seed=seed)


def virtual(workload: Workload) -> Shelf:
    return Shelf(workload.devices)


def values_at(devices: Shelf, predicate: Predicate, at_ms: float) -> dict[ReadingName, Value | None]:
    return {
        (device, reading): devices.readings(DeviceId(device), at_ms)[reading]
        for device, reading in predicate.reads
    }


@pytest.mark.parametrize("make", [paper, contention])
def test_a_seed_decides_the_workload(make: Callable[[int], Workload]) -> None:
    one, same, other = make(1), make(1), make(2)
    assert one.program.plan == same.program.plan
    assert one.program.routines == same.program.routines
    assert (one.devices, one.fires_ms) == (same.devices, same.fires_ms)
    assert one.program.routines != other.program.routines


def test_adding_a_routine_does_not_change_the_others() -> None:
    fewer, more = paper(routines=10, alone=False), paper(routines=11, alone=False)
    assert {name: more.program.routines[name] for name in fewer.program.routines} == fewer.program.routines
    assert set(fewer.fires_ms) < set(more.fires_ms)


@pytest.mark.parametrize("make", [paper, contention])
def test_every_routine_has_a_group_and_commands_that_its_devices_know(make: Callable[[], Workload]) -> None:
    workload = make()
    program = workload.program
    assert set(program.group_of_routine) == set(program.routines)
    for routine in program.routines.values():
        assert routine.steps
        assert len({step.device for step in routine.steps}) == len(routine.steps)
        for step in routine.steps:
            action = step.action
            command = workload.devices[step.device].commands[action.command]
            assert command.takes_ms < action.timeout_ms
            assert action.idempotent == (action.command != "toggle") == (action.expects is not None)


def test_a_device_shows_the_readings_that_a_command_expects() -> None:
    workload = paper_workload(MESH, SELECTION, SETTINGS, routines=20, seed=1)
    devices = virtual(workload)
    for routine in workload.program.routines.values():
        for step in routine.steps:
            _, answer = devices.command(step.device, DeviceCommand(step.action), 1000.0)
            fit = workload.program.devices[step.device].fit
            assert fit is not None
            shown = fit(answer.readings)
            assert shown == answer.readings, "a healthy device answers within its types"
            assert step.action.expects is not None
            assert {name: shown[name] for name in step.action.expects} == step.action.expects
            assert fit({**answer.readings, "on": "yes"}).keys() == shown.keys() - {"on"}


# -- the paper's simulations -------------------------------------------------------------------------------


def test_routines_touch_five_devices_on_average() -> None:
    workload = paper(routines=400, firings=1)
    routines = workload.program.routines.values()
    assert max(len(routine.steps) for routine in routines) == 5
    touched = [len(routine.touches) for routine in workload.program.plan.routines]
    assert 4.8 < sum(touched) / len(touched) < 5.2
    drawn = Counter(step.device for routine in routines for step in routine.steps)
    assert set(drawn) == set(MESH.devices), "uniformly: none of 60 is missed in 1,600 draws"
    assert max(drawn.values()) < 3 * min(drawn.values())
    kinds = Counter(step.action.command for routine in routines for step in routine.steps)
    assert 0.15 < kinds["toggle"] / kinds.total() < 0.25


@pytest.mark.parametrize("alone", [True, False])
def test_each_clause_becomes_true_at_its_given_time(alone: bool) -> None:
    workload = paper(alone=alone)
    devices = virtual(workload)
    assert len(workload.fires_ms) == 3 * 40
    assert list(workload.fires_ms) == sorted(workload.fires_ms)
    for at_ms, name in workload.fires_ms:
        clause = workload.program.routines[name].when
        assert clause is not None
        (trigger,) = clause.reads
        assert trigger[1] == signal_of(name)
        before, after = values_at(devices, clause, at_ms - 0.1), values_at(devices, clause, at_ms + 0.1)
        assert (clause.evaluate(before), clause.evaluate(after)) == (False, True)
        held = values_at(devices, clause, at_ms + 2 * SETTINGS.monitoring_ms)
        assert clause.evaluate(held) is True, "long enough to be polled"


def test_alone_means_one_at_a_time() -> None:
    apart = [later - sooner for (sooner, _), (later, _) in pairwise(paper(alone=True).fires_ms)]
    assert min(apart) > Timing().window_ms / 2
    crowded = [later - sooner for (sooner, _), (later, _) in pairwise(paper(alone=False).fires_ms)]
    assert min(crowded) < 1000.0


def test_a_window_in_which_a_signal_would_be_missed_is_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        paper_workload(
            MESH, SELECTION, SETTINGS, routines=1, seed=1, timing=Timing(window_ms=3 * SETTINGS.monitoring_ms)
        )


def test_strategies_take_turns() -> None:
    chosen = (Strategy.OPTIMISTIC, Strategy.SEQUENTIAL)
    workload = paper_workload(MESH, SELECTION, SETTINGS, routines=6, seed=1, strategies=chosen)
    assert [routine.strategy for routine in workload.program.routines.values()] == [*chosen] * 3


def test_a_hub_is_one_group() -> None:
    hub = SelectionSettings(f=0, cluster_size=10_000, clusters=Locality.LOCALITY)
    plan = paper_workload(MESH, hub, SETTINGS, routines=5, seed=1).program.plan
    assert {group: len(members) for group, members in plan.genesis.items()} == {"c1": 1, "deployment": 1}


# -- clauses -----------------------------------------------------------------------------------------------


def test_unknown_is_as_in_clauses() -> None:
    true, false, unknown = (Comparison(("d", name), "==", 1) for name in "tfu")
    values: dict[ReadingName, Value | None] = {("d", "t"): 1, ("d", "f"): 0}
    table = {
        (both, left, right): Joined(both, left, right).evaluate(values)
        for both in (True, False)
        for left in (true, false, unknown)
        for right in (true, false, unknown)
    }
    assert table[True, false, unknown] is table[True, unknown, false] is False
    assert table[False, true, unknown] is table[False, unknown, true] is True
    assert table[True, true, unknown] is table[False, false, unknown] is table[True, unknown, unknown] is None
    assert (table[True, true, true], table[False, false, false]) == (True, False)


# -- contention --------------------------------------------------------------------------------------------


def test_twenty_routines_compete_for_the_same_few_devices() -> None:
    workload = contention()
    routines = workload.program.routines
    assert len(routines) == 20
    wanted = Counter(device for routine in routines.values() for device in routine.commands)
    assert len(wanted) == 4
    assert min(wanted.values()) >= 5
    assert min(len(routine.commands) for routine in routines.values()) >= 2
    assert {routine.strategy for routine in routines.values()} == set(Strategy)
    for name, routine in routines.items():
        assert routine.when is not None
        ((device, reading),) = routine.when.reads
        assert reading == signal_of(name)
        assert isinstance(workload.devices[DeviceId(device)].sources[reading], SquareWave)


def test_one_device_is_not_enough() -> None:
    alone = make_topology(Shape.LINE, devices=1, seed=1)
    with pytest.raises(ValueError, match="two devices"):
        contention_workload(alone, SelectionSettings(f=0), SETTINGS, seed=1)
    with pytest.raises(ValueError, match="two devices"):
        contention_workload(MESH, SELECTION, SETTINGS, seed=1, contended=1)
