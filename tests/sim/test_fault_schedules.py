"""Tests of schedules: written, read back, described, drawn from seeds."""

import inspect
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comesh.core.ids import DeviceId, NodeId
from comesh.core.values import Value
from comesh.sim.fault_files import classes_table, fields_table, kinds_table, parse_faults, parse_schedule
from comesh.sim.fault_model import DRAWN, KINDS, Fault, ScheduleError
from comesh.sim.fault_schedules import WIPE_APART_MS, RandomFaults, Schedule, crashes, random_schedule
from comesh.sim.faults import Crash, DeviceLate, DeviceWrong, Partition, Pause, PowerLoss, Press, Slow
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
    "values": st.dictionaries(NAMES, st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)),
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
    fields = {name: FIELDS[name] for name in kind.__struct_fields__}
    return st.builds(kind, **fields | ({"by_ms": MILLISECONDS} if kind is DeviceLate else {}))


FAULTS = st.one_of([fault_of(kind) for kind in KINDS.values()])


@given(st.lists(FAULTS, max_size=6))
@settings(max_examples=150, deadline=None)
def test_round_trip(faults: list[Fault]) -> None:
    schedule = Schedule(tuple(faults))
    assert parse_schedule(schedule.to_yaml()) == schedule
    assert parse_schedule(schedule.to_json()) == schedule
    assert len(schedule.describe()) == len(faults)


def test_long_texts_read_back_the_same() -> None:
    values: dict[str, Value] = {f"a{number}": False for number in range(9)} | {
        "text": "0\U00010000" + "0 0" * 40
    }
    schedule = Schedule((Press(at_ms=0.0, device=DeviceId("a"), values=values),))
    assert parse_schedule(schedule.to_yaml()) == schedule


def test_every_fault_has_a_name_of_its_own() -> None:
    assert {str(kind.__struct_config__.tag) for kind in KINDS.values()} == set(KINDS)
    assert KINDS["power-loss"] is PowerLoss


def test_faults_are_sorted_and_described() -> None:
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
        "1.500 s partition from=n1,n2 both=False",
        "12.000 s pause node=n3 for_ms=500",
        "12.000 s crash node=n1",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("faults: [{fault: crash}]", r"^fault 1 \(crash\): it needs at \(duration\) and node \(node\)$"),
        (
            "[{fault: crush, at_ms: 1, node: a}]",
            "^fault 1: unknown kind of fault 'crush'; did you mean 'crash'",
        ),
        ("faults: [{at: 1s, node: a}]", "does not say which kind"),
        (
            "faults: [{fault: crash, at_ms: -1, node: a}]",
            "at_ms: -1 does not fit; expected: milliseconds from 0",
        ),
        ("faults: [{fault: crash, at_ms: 5s, node: a}]", "with a unit write at: 5s"),
        ("faults: [{fault: crash, at: 5, node: a}]", "at: 5 is not a duration; write it with its unit"),
        ("faults: [{fault: crash, at: 5s, at_ms: 5000, node: a}]", "say the same thing"),
        ("faults: [{fault: loss, at_ms: 1, rate: 2}]", "rate: 2 does not fit; expected: number from 0 to 1"),
        ("faults: [{fault: heal, at_ms: 1, node: a}]", "unknown field 'node'; it takes at$"),
        ("faults: [{fault: crash, at_ms: 1, nodee: a}]", "unknown field 'nodee'; did you mean 'node'"),
        ("faults: [{fault: [crash], at_ms: 1}]", "fault 1: unknown kind of fault a list"),
        ("faults: [3]", "fault 1: expected a mapping"),
        ("falts: []", "unknown key 'falts'"),
        ("faults: 3", "expected a list of faults, not 3"),
        ("faults: {", "^not YAML: [^\n]*$"),
    ],
)
def test_mistakes_say_where(text: str, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        parse_schedule(text)


def test_mistakes_have_their_line() -> None:
    text = "# two\nfaults:\n- {fault: heal, at: 1s}\n- {fault: crash,\n   at: 1s}\n"
    with pytest.raises(ScheduleError, match=r"fault 2 \(crash\)") as caught:
        parse_faults(text)
    assert caught.value.line == 4
    with pytest.raises(ScheduleError) as caught:
        parse_faults("faults:\n- {fault: heal\n- [}\n")
    assert caught.value.line > 1
    good = parse_faults("- {fault: heal, at: 2s}\n\n- {fault: heal, at: 1s}\n")
    assert good.lines == (1, 3)
    assert good.place_of(good.schedule.faults[0]) == (2, 3)
    assert good.place_of(None) is None


def test_durations_with_units() -> None:
    plain = parse_schedule(
        "[{fault: pause, at_ms: 5000, node: a, for_ms: 500}, {fault: skew, at_ms: 0, node: a, by_ms: -90000}]"
    )
    assert plain == parse_schedule(
        "- {fault: pause, at: 5s, node: a, for: 500ms}\n- {fault: skew, at: 0, node: a, by: -1m30s}"
    )
    slow = parse_schedule(
        "[{fault: slow, at: 1h, node: a, step: 80ms}, {fault: reorder, at: 1h, rate: 1, up_to: 2s}]"
    )
    assert len(slow.faults) == 2


def test_a_list_alone_is_a_schedule_too() -> None:
    assert parse_schedule('[{"fault": "heal", "at_ms": 1}]') == parse_schedule(
        "faults: [{fault: heal, at_ms: 1}]"
    )


@pytest.mark.parametrize("table", [kinds_table, fields_table, classes_table])
def test_the_page_has_all_kinds_fields_and_classes(table: Callable[[], str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
    assert table() in page, table()


def test_an_empty_file_is_an_empty_schedule() -> None:
    assert parse_schedule("") == parse_schedule("# nothing\n") == Schedule()


def test_wrong_values_keep_their_type() -> None:
    for value in (True, 1, 1.0, "1", "true", "null", "", "1e3"):
        schedule = Schedule((DeviceWrong(at_ms=0.0, device="d", value=value),))
        (fault,) = parse_schedule(schedule.to_yaml()).faults
        assert isinstance(fault, DeviceWrong)
        assert (type(fault.value), fault.value) == (type(value), value)


ALL = RandomFaults(run_ms=600_000.0, per_minute=dict.fromkeys(DRAWN, 3.0))


def test_random_schedules_come_from_the_seed_and_keep_the_end_quiet() -> None:
    topology = make_topology(Shape.RANDOM, devices=40, seed=1)
    drawn = random_schedule(topology, ALL, 1)
    assert drawn == random_schedule(topology, ALL, 1) != random_schedule(topology, ALL, 2)
    assert all(fault.at_ms + (getattr(fault, "for_ms", 0) or 0) <= 540_001.0 for fault in drawn.faults)
    assert parse_schedule(drawn.to_yaml()) == drawn


def test_drawn_faults_end_by_themselves() -> None:
    wanted = RandomFaults(run_ms=600_000.0, per_minute={"crash": 6.0})
    drawn = random_schedule(make_topology(Shape.GRID, devices=40, seed=1), wanted, 1).faults
    assert len(drawn) == 54
    assert all(isinstance(fault, Crash) and fault.keep_disk and fault.for_ms is not None for fault in drawn)


def test_one_class_does_not_change_the_draws_of_another() -> None:
    topology = make_topology(Shape.GRID, devices=40, seed=1)
    alone = random_schedule(topology, RandomFaults(run_ms=3e5, per_minute={"pause": 2.0}), 1)
    both = random_schedule(topology, RandomFaults(run_ms=3e5, per_minute={"pause": 2.0, "loss": 2.0}), 1)
    assert alone.faults == tuple(fault for fault in both.faults if isinstance(fault, Pause))


def test_crashes_one_after_the_other() -> None:
    schedule = crashes([NodeId("a"), NodeId("b")], first_ms=10.0, every_ms=5.0)
    assert [(fault.at_ms, fault.node) for fault in schedule.faults if isinstance(fault, Crash)] == [
        (10.0, "a"),
        (15.0, "b"),
    ]


def test_disks_are_wiped_far_apart() -> None:
    """A wipe that would come too soon after another one keeps its disk."""
    wanted = RandomFaults(run_ms=1_200_000.0, per_minute={"wipe": 6.0})
    drawn = random_schedule(make_topology(Shape.GRID, devices=40, seed=1), wanted, 1).faults
    ends = [fault.wipes_at_ms for fault in drawn if isinstance(fault, Crash)]
    wiped = sorted(at_ms for at_ms in ends if at_ms is not None)
    assert all(later - earlier >= WIPE_APART_MS for earlier, later in itertools.pairwise(wiped))
    assert 10 < len(wiped) < len(ends) == len(drawn)


def test_each_class_draws_its_faults() -> None:
    topology = make_topology(Shape.GRID, devices=40, seed=1)

    def kinds(fault_class: str, buttons: Sequence[DeviceId] = ()) -> set[str]:
        wanted = RandomFaults(run_ms=600_000.0, per_minute={fault_class: 6.0})
        faults = random_schedule(topology, wanted, 1, buttons).faults
        return {str(type(fault).__struct_config__.tag) for fault in faults}

    assert kinds("kill") == {"kill"}
    assert kinds("outage") == {"power-loss"}
    assert kinds("disk") == {"disk-full"}
    assert kinds("late") == {"reorder"}
    assert kinds("device") == {"device-down", "device-slow", "device-wrong"}
    assert kinds("device-late") == {"device-late"}
    assert kinds("press") == set()
    assert kinds("press", [DeviceId("d3")]) == {"press"}


def test_new_kinds_can_be_written_by_hand() -> None:
    schedule = parse_schedule(
        """
        - {fault: kill, at: 1s, node: n3}
        - {fault: disk-full, at: 2s, node: n3, for: 20s}
        - {fault: power-loss, at: 3s, domain: "*"}
        - {fault: device-late, at: 4s, device: d1, by: 20s}
        - {fault: press, at: 5s, device: d2, values: {press: long, times: 2}}
        """
    )
    assert [" ".join(line.split()[2:]) for line in schedule.describe()] == [
        "kill node=n3",
        "disk-full node=n3 for_ms=20000",
        "power-loss domain=*",
        "device-late device=d1 by_ms=20000",
        "press device=d2 values=press:long,times:2",
    ]
    with pytest.raises(ScheduleError, match="by: '-20s' is not a duration"):
        parse_schedule("[{fault: device-late, at: 4s, device: d1, by: -20s}]")
    with pytest.raises(ScheduleError, match="values: 3 does not fit; expected: mapping of readings"):
        parse_schedule("[{fault: press, at: 4s, device: d1, values: 3}]")


def test_the_page_shows_a_fault_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
    assert inspect.getsource(Slow) in page
