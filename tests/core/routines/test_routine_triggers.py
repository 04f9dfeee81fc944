"""Tests of firing: edges, `for:`, cooldown, schedules, events, requests; also over changes of leader."""

from routine_bench import OWN, SOMEBODY, START_MS, Bench, Clause, is_true, program, routine

from comesh.core.ids import DeviceId, RoutineId
from comesh.core.records import Outcome, Stage
from comesh.core.routines.runs import MAX_WAITING
from comesh.core.routines.triggers import MAX_REQUESTS, MISSED_MS
from comesh.core.stamps import Ballot, Stamp
from comesh.core.traces import BecameTrue, Dropped, EventCame, Fired, Ignored, StayedTrue
from comesh.core.work_messages import (
    DeviceEvents,
    EventsSeen,
    Fire,
    LockRequest,
    Ordered,
    Reading,
    Seen,
    SequencedEvent,
    Watch,
)

R = RoutineId("r")


def when(device: str = "b1", **more: object) -> Bench:
    return Bench(program(routine("a1", when=is_true(device), **more)))


def firings(bench: Bench) -> int:
    return len(bench.told(Fired))


def press(*sequences: int, on: bool = True) -> DeviceEvents:
    events = tuple(SequencedEvent(one, {"on": on}, START_MS) for one in sequences)
    return DeviceEvents(DeviceId("b1"), R, events)


# -- readings ----------------------------------------------------------------------------------------------


def test_watch_is_repeated_until_each_device_has_answered() -> None:
    clause = Clause([("b1", "on"), ("b2", "up"), ("a1", "on"), ("now", "hour")], lambda _: None)
    bench = Bench(program(routine("a1", when=clause)))
    assert bench.take(Watch) == [
        (OWN, Watch((DeviceId("a1"),))),
        ("c2", Watch((DeviceId("b1"), DeviceId("b2")))),
    ]
    bench.reads("a1", n=1, on=False)
    bench.reads("b1", n=1, on=False)
    bench.wait(1200)
    assert bench.take(Watch) == [("c2", Watch((DeviceId("b2"),)))]
    bench.wait(1700)
    assert bench.take(Watch) == []
    bench.wait(600)
    assert len(bench.take(Watch)) == 1, "the pause doubles"
    bench.reads("b2", n=1, up=False)
    bench.wait(60_000)
    assert bench.take(Watch) == []


def test_every_reading_is_seen_and_only_a_newer_one_counts() -> None:
    bench = when()
    bench.reads("b1", n=5, on=False)
    bench.reads("b1", n=4, on=True)
    assert [body.version.n for _, body in bench.take(Seen)] == [5, 4]
    assert firings(bench) == 0
    bench.hear(Reading(DeviceId("d1"), bench.stamp(), {"on": True}, True), "c3")
    assert [to for to, _ in bench.take(Seen)] == ["c3"], "also one that no clause names"


def test_down_makes_readings_missing_and_up_false() -> None:
    seen: list[dict[object, object]] = []
    clause = Clause([("b1", "on"), ("b1", "up")], lambda values: seen.append(dict(values)))
    bench = Bench(program(routine("a1", when=clause)))
    assert seen == []
    bench.reads("b1", n=1, on=True)
    bench.reads("b1", n=2, up=False)
    assert seen == [{("b1", "on"): True, ("b1", "up"): True}, {("b1", "up"): False}]
    bench.hear(Reading(DeviceId("b1"), Stamp(1, Ballot(0, 0), 3), {"on": True}, False), "c2")
    assert seen[2:] == [{("b1", "up"): False}], "whatever is said of one that is down"


# -- edges -------------------------------------------------------------------------------------------------


def test_fires_when_the_clause_becomes_true() -> None:
    bench = when()
    bench.reads("b1", n=1, on=False)
    assert firings(bench) == 0 and bench.routine().truth is False
    bench.reads("b1", n=2, on=True)
    assert bench.told(Fired) == [Fired(BecameTrue({"b1.on": True}))]
    assert bench.stage is Stage.ACQUIRING_LOCKS and bench.run().fired_ms == bench.wall_ms
    assert {record.key for record in bench.entries[-1]} == {"routine/r", "run/r"}, "one entry"
    bench.reads("b1", n=3, on=True, level=4)
    assert firings(bench) == 1


def test_true_at_first_sight_fires() -> None:
    bench = when()
    bench.reads("b1", n=1, on=True)
    assert firings(bench) == 1


def test_unknown_leaves_truth_as_it_was() -> None:
    bench = when()
    bench.reads("b1", n=1, on=True)
    bench.reads("b1", n=2, up=False)
    assert bench.routine().truth is True
    bench.reads("b1", n=3, on=True)
    assert firings(bench) == 1


def test_a_new_leader_neither_repeats_nor_misses_an_edge() -> None:
    bench = when()
    bench.reads("b1", n=1, on=True)
    bench.new_leader()
    bench.reads("b1", n=1, on=True)
    assert firings(bench) == 1
    bench.reads("b1", n=2, on=False)
    bench.commits = False
    bench.reads("b1", n=3, on=True)
    bench.new_leader()
    assert bench.routine().truth is False, "the edge was not committed, so it has not happened"
    bench.reads("b1", n=3, on=True)
    assert firings(bench) == 2


def test_a_late_reading_for_an_earlier_leader_is_no_edge() -> None:
    bench = when()
    bench.reads("b1", n=1, on=True)
    bench.reads("b1", n=2, on=False)
    earlier = bench.serving.fence
    bench.new_leader()
    for watched in (None, earlier):
        bench.hear(Reading(DeviceId("b1"), Stamp(1, Ballot(0, 0), 1), {"on": True}, True, watched), "c2")
    assert firings(bench) == 1
    assert not bench.take(Seen), "it is to be told again, as an answer"
    bench.reads("b1", n=2, on=False)
    bench.reads("b1", n=3, on=True)
    assert firings(bench) == 2


def test_nothing_is_sent_or_traced_before_the_commit() -> None:
    bench = when("a1")
    bench.take(Watch)
    bench.commits = False
    bench.reads("a1", n=1, on=True)
    assert bench.traces == [] and bench.records == {}
    bench.commits = True
    bench.step(lambda step: None)
    assert firings(bench) == 1


def test_clauses_that_name_the_time_are_evaluated_every_second() -> None:
    clause = Clause([("now", "second")], lambda values: values[("now", "second")] >= 3)
    made = program(routine("a1", when=clause), moment=lambda ms: {("now", "second"): (ms - START_MS) // 1000})
    bench = Bench(made)
    assert bench.routine().truth is False, "at once"
    bench.wait(2500)
    assert firings(bench) == 0
    bench.wait(600)
    assert firings(bench) == 1


# -- for, cooldown -----------------------------------------------------------------------------------------


def test_for_fires_when_it_stayed_true_that_long() -> None:
    bench = when(for_ms=5000.0)
    bench.reads("b1", n=1, on=True)
    assert bench.routine().true_since_ms == bench.wall_ms
    bench.wait(4900)
    assert firings(bench) == 0
    bench.wait(200)
    assert bench.told(Fired) == [Fired(StayedTrue(5000.0, {"b1.on": True}))]
    assert bench.routine().true_since_ms is None
    bench.wait(60_000)
    assert firings(bench) == 1


def test_for_begins_anew_after_false_and_counts_on_while_unknown() -> None:
    bench = when(for_ms=5000.0)
    bench.reads("b1", n=1, on=True)
    bench.wait(3000)
    bench.reads("b1", n=2, on=False)
    assert bench.routine().true_since_ms is None
    bench.reads("b1", n=3, on=True)
    bench.wait(3000)
    bench.reads("b1", n=4, up=False)
    bench.wait(1900)
    assert firings(bench) == 0
    bench.wait(200)
    assert firings(bench) == 1


def test_for_goes_on_under_a_new_leader_from_its_committed_start() -> None:
    bench = when(for_ms=5000.0)
    bench.reads("b1", n=1, on=True)
    bench.wait(2000)
    bench.new_leader()
    bench.reads("b1", n=1, on=True)
    bench.wait(2900)
    assert firings(bench) == 0
    bench.wait(200)
    assert firings(bench) == 1


def test_a_for_that_came_due_between_leaders_waits_for_readings() -> None:
    for on, fired in ((True, 1), (False, 0)):
        bench = when(for_ms=5000.0)
        bench.reads("b1", n=1, on=True)
        bench.new_leader(gap_ms=9000)
        bench.wait(500)
        assert firings(bench) == 0
        bench.reads("b1", n=2, on=on)
        bench.wait(1000)
        assert firings(bench) == fired


def test_edges_within_the_cooldown_are_ignored_but_known() -> None:
    bench = Bench(program(routine(when=is_true("b1"), cooldown_ms=10_000.0)))
    bench.reads("b1", n=1, on=True)
    bench.reads("b1", n=2, on=False)
    bench.wait(4000)
    bench.reads("b1", n=3, on=True)
    assert firings(bench) == 1 and bench.routine().truth is True
    assert bench.told(Ignored) == [Ignored(BecameTrue({"b1.on": True}), cooldown_ms=6000.0)]
    bench.new_leader()
    bench.reads("b1", n=4, on=False)
    bench.reads("b1", n=5, on=True)
    assert len(bench.told(Ignored)) == 2, "the next leader keeps it too"
    bench.wait(6000)
    bench.reads("b1", n=6, on=False)
    bench.reads("b1", n=7, on=True)
    assert firings(bench) == 2


# -- schedules ---------------------------------------------------------------------------------------------


def every(ms: float) -> object:
    return lambda after_ms: (after_ms // ms + 1) * ms


def test_a_schedule_fires_at_its_instants_and_commits_them() -> None:
    bench = Bench(program(routine(schedule=every(60_000.0))))
    assert bench.routine().instant_ms == START_MS and firings(bench) == 0
    first = (START_MS // 60_000 + 1) * 60_000
    bench.wait(first - START_MS - 1)
    assert firings(bench) == 0
    bench.wait(1)
    assert firings(bench) == 1 and bench.routine().instant_ms == first
    assert any(record.key == "routine/r" for record in bench.entries[-1])
    bench.wait(60_000)
    assert firings(bench) == 2


def test_the_latest_missed_instant_is_made_up_for_once() -> None:
    bench = Bench(program(routine(schedule=every(60_000.0))))
    bench.new_leader(gap_ms=300_000)
    assert firings(bench) == 1
    assert bench.routine().instant_ms == bench.wall_ms // 60_000 * 60_000
    bench.new_leader()
    assert firings(bench) == 1


def test_an_instant_missed_too_long_ago_is_passed_over() -> None:
    day = 86_400_000.0
    bench = Bench(program(routine(schedule=every(day))))
    to_midnight = day - START_MS % day
    bench.new_leader(gap_ms=to_midnight + MISSED_MS + 1)
    assert firings(bench) == 0
    bench.new_leader(gap_ms=day - MISSED_MS)
    assert firings(bench) == 1, "the day after, in time"


def test_a_schedule_that_ends() -> None:
    bench = Bench(program(routine(schedule=lambda after_ms: None)))
    bench.wait(100_000_000)
    assert firings(bench) == 0 and bench.timers == {}


# -- events ------------------------------------------------------------------------------------------------


def test_an_event_is_taken_once_and_in_order() -> None:
    bench = Bench(program(routine("a1", on_event=is_true("b1"))))
    bench.hear(press(2, 1), "c2")
    assert bench.told(Fired)[0].cause == EventCame(DeviceId("b1"), 1, {"on": True})
    assert firings(bench) == 2 and bench.routine().marks == {"b1": 2}
    assert {record.key for record in bench.entries[-1]} == {"routine/r", "run/r"}, "mark and firing together"
    assert bench.take(EventsSeen) == [("c2", EventsSeen(DeviceId("b1"), R, 2))]
    bench.hear(press(1, 2), "c2")
    bench.new_leader()
    bench.hear(press(2, 3), "c2")
    assert firings(bench) == 3
    assert bench.take(EventsSeen) == [("c2", EventsSeen(DeviceId("b1"), R, 3))]


def test_an_event_is_taken_once_by_a_routine_that_did_not_listen_for_a_while() -> None:
    """The device keeps it for another listener, or an earlier report arrives late."""
    listens = routine("a1", on_event=is_true("b1"))
    bench = Bench(program(listens))
    bench.hear(press(1), "c2")
    bench.new_leader(made=program(routine("a1"), version=2))
    bench.new_leader(made=program(listens, version=3))
    bench.hear(press(1, 2), "c2")
    assert firings(bench) == 2 and bench.routine().marks == {"b1": 2}


def test_an_event_that_does_not_match_is_marked_too() -> None:
    bench = Bench(program(routine("a1", on_event=is_true("b1"))))
    bench.hear(press(1, on=False), "c2")
    assert firings(bench) == 0 and bench.routine().marks == {"b1": 1}
    assert len(bench.take(EventsSeen)) == 1


def test_an_event_is_not_confirmed_before_the_commit() -> None:
    bench = Bench(program(routine("a1", on_event=is_true("b1"))))
    bench.commits = False
    bench.hear(press(1), "c2")
    assert bench.take(EventsSeen) == []
    bench.new_leader()
    bench.hear(press(1), "c2")
    assert firings(bench) == 1 and len(bench.take(EventsSeen)) == 1


def test_events_without_a_routine_are_confirmed() -> None:
    bench = Bench(program(routine("a1")))
    bench.hear(press(4, 5), "c2")
    assert bench.take(EventsSeen) == [("c2", EventsSeen(DeviceId("b1"), R, 5))]


# -- by hand -----------------------------------------------------------------------------------------------


def test_a_request_fires_once() -> None:
    bench = Bench(program(routine("b1")))
    bench.hear(Fire(R, "q1"))
    bench.hear(Fire(R, "q1"))
    bench.new_leader()
    bench.hear(Fire(R, "q1"))
    assert bench.take(Ordered) == [(SOMEBODY, Ordered("q1", bench.run().run))]
    assert firings(bench) == 1


def test_an_unknown_routine_is_answered() -> None:
    bench = Bench(program(routine("b1")))
    bench.hear(Fire(RoutineId("nix"), "q1"))
    assert bench.take(Ordered) == [(SOMEBODY, Ordered("q1", None, "c1 has no routine nix"))]


def test_a_firing_by_hand_ignores_the_cooldown() -> None:
    bench = Bench(program(routine(cooldown_ms=10_000.0)))
    for number in range(MAX_REQUESTS + 6):
        bench.hear(Fire(R, f"q{number}"))
    assert firings(bench) == MAX_REQUESTS + 6
    assert len(bench.routine().requests) == MAX_REQUESTS
    bench.hear(Fire(R, "q69"))
    assert firings(bench) == MAX_REQUESTS + 6


def test_firings_wait_for_the_live_run_up_to_a_bound() -> None:
    bench = Bench(program(routine("b1", when=is_true("b2"))))
    for number in range(MAX_WAITING + 2):
        bench.hear(Fire(R, f"q{number}"))
    answers = [body for _, body in bench.take(Ordered)]
    assert [body.run is None for body in answers] == [False] * (MAX_WAITING + 1) + [True]
    assert "wait already" in answers[-1].why_not
    assert len(bench.routine().waiting) == MAX_WAITING
    bench.reads("b2", n=1, on=True)
    assert len(bench.told(Dropped)) == 2 and bench.routine().truth is True
    first, second = answers[0].run, answers[1].run
    assert bench.run().run == first
    bench.grant("b1")
    bench.outcome(0, Outcome.DONE)
    bench.release("b1")
    assert bench.run().run == second, "the one that waited longest"
    assert [body.run for _, body in bench.take(LockRequest)] == [first, second]


def test_stamps_of_runs_rise() -> None:
    bench = Bench(program(routine()))
    bench.hear(Fire(R, "q1"))
    bench.new_leader()
    bench.hear(Fire(R, "q2"))
    one, other = (body.run for _, body in bench.take(Ordered)), bench.routine().requests
    assert [run.stamp for run in one if run] == [Stamp(1, Ballot(1, 0), 1)]
    assert other[0][1] < other[1][1]
