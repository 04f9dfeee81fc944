"""Schedules: written, read back, told to people, drawn from seeds."""

import types
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comesh.core.ids import NodeId
from comesh.sim.faults import (
    Crash,
    DeviceWrong,
    Fault,
    Partition,
    Pause,
    Restart,
    Schedule,
    ScheduleError,
    crashes,
    parse_schedule,
)
from comesh.sim.random_faults import FaultClass, RandomFaults, random_schedule
from comesh.sim.topology import Shape, make_topology

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
MILLISECONDS = st.floats(0, 1e12)
RATES = st.floats(0, 1)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "at_ms": MILLISECONDS,
    "node": NAMES,
    "device": NAMES,
    "domain": st.text(max_size=8),
    "station": st.none() | NAMES,
    "reading": st.none() | NAMES,
    "keep_disk": st.booleans(),
    "for_ms": MILLISECONDS,
    "step_ms": MILLISECONDS,
    "extra_ms": MILLISECONDS,
    "up_to_ms": MILLISECONDS,
    "sources": st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    "destinations": st.lists(NAMES, max_size=3).map(tuple),
    "both": st.booleans(),
    "rate": RATES,
    "per": st.sampled_from(["hop", "message"]),
    "by_ms": st.floats(-1e12, 1e12),
    "ppm": st.floats(-900_000, 900_000),
    "value": st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
}


def fault_of(kind: type[Fault]) -> st.SearchStrategy[Fault]:
    return st.builds(kind, **{name: FIELDS[name] for name in kind.__struct_fields__})


FAULTS = st.one_of([fault_of(kind) for kind in get_args(Fault)])


@given(st.lists(FAULTS, max_size=6))
@settings(max_examples=150, deadline=None)
def test_round_trip(faults: list[Fault]) -> None:
    schedule = Schedule(tuple(faults))
    assert parse_schedule(schedule.to_yaml()) == schedule
    assert parse_schedule(schedule.to_json()) == schedule
    assert len(schedule.describe()) == len(faults)


def test_every_fault_has_a_name_of_its_own() -> None:
    assert isinstance(Fault, types.UnionType)
    tags = [kind.__struct_config__.tag for kind in get_args(Fault)]
    assert len(set(tags)) == len(tags)
    assert "power-loss" in tags


def test_faults_are_sorted_and_told_readably() -> None:
    schedule = parse_schedule(
        """
        faults:
        - {fault: pause, at_ms: 12000, node: n3, for_ms: 500}
        - {fault: partition, at_ms: 1500, from: [n1, n2], both: false}
        - {fault: crash, at_ms: 12000, node: n1}
        """
    )
    assert schedule.faults == (
        Partition(at_ms=1500.0, sources=("n1", "n2"), both=False),
        Pause(at_ms=12000.0, node=NodeId("n3"), for_ms=500.0),
        Crash(at_ms=12000.0, node=NodeId("n1")),
    )
    assert [" ".join(line.split()) for line in schedule.describe()] == [
        "1.500 s partition from=n1,n2 to=all-others both=False",
        "12.000 s pause node=n3 for_ms=500",
        "12.000 s crash node=n1",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("faults: [{fault: crash}]", r"at `\$.faults\[0\]`"),
        ("faults: [{fault: crush, at_ms: 1, node: a}]", "crush"),
        ("faults: [{fault: crash, at_ms: -1, node: a}]", ">= 0"),
        ("faults: [{fault: loss, at_ms: 1, rate: 2}]", "<= 1"),
        ("faults: [{fault: heal, at_ms: 1, node: a}]", "unknown field"),
        ("falts: []", "unknown field"),
        ("faults: {", "not YAML"),
        ("[1, 2]", "Expected `object`"),
    ],
)
def test_mistakes_say_where(text: str, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        parse_schedule(text)


def test_an_empty_file_is_an_empty_schedule() -> None:
    assert parse_schedule("") == parse_schedule("# nothing\n") == Schedule()


def test_wrong_values_keep_their_type() -> None:
    for value in (True, 1, 1.0, "1", "true", "null", "", "1e3"):
        schedule = Schedule((DeviceWrong(at_ms=0.0, device="d", value=value),))
        (fault,) = parse_schedule(schedule.to_yaml()).faults
        assert isinstance(fault, DeviceWrong)
        assert (type(fault.value), fault.value) == (type(value), value)


ALL = RandomFaults(run_ms=600_000.0, per_minute=dict.fromkeys(FaultClass, 3.0))


def test_random_schedules_come_from_the_seed_and_keep_the_end_quiet() -> None:
    topology = make_topology(Shape.RANDOM, devices=40, seed=1)
    drawn = random_schedule(topology, ALL, 1)
    assert drawn == random_schedule(topology, ALL, 1) != random_schedule(topology, ALL, 2)
    assert all(fault.at_ms + (getattr(fault, "for_ms", 0) or 0) <= 540_001.0 for fault in drawn.faults)
    assert parse_schedule(drawn.to_yaml()) == drawn


def test_every_crash_that_is_drawn_has_its_restart() -> None:
    wanted = RandomFaults(run_ms=600_000.0, per_minute={FaultClass.CRASH: 6.0})
    drawn = random_schedule(make_topology(Shape.GRID, devices=40, seed=1), wanted, 1).faults
    assert sum(isinstance(fault, Crash) for fault in drawn) == 54
    last = {fault.node: fault for fault in drawn if isinstance(fault, Crash | Restart)}
    assert all(isinstance(fault, Restart) for fault in last.values())


def test_one_class_does_not_move_another() -> None:
    topology = make_topology(Shape.GRID, devices=40, seed=1)
    alone = random_schedule(topology, RandomFaults(run_ms=3e5, per_minute={FaultClass.PAUSE: 2.0}), 1)
    both = random_schedule(
        topology, RandomFaults(run_ms=3e5, per_minute={FaultClass.PAUSE: 2.0, FaultClass.LOSS: 2.0}), 1
    )
    assert alone.faults == tuple(fault for fault in both.faults if isinstance(fault, Pause))


def test_crashes_one_after_the_other() -> None:
    schedule = crashes([NodeId("a"), NodeId("b")], first_ms=10.0, every_ms=5.0)
    assert [(fault.at_ms, fault.node) for fault in schedule.faults if isinstance(fault, Crash)] == [
        (10.0, "a"),
        (15.0, "b"),
    ]
