"""Safety (promise 1), no loss (promise 4), firing once, and progress (promise 5), from what is committed."""

import pytest
from msgspec.structs import replace
from told_groups import Told, config, ended, gone, held, run, run_id

from comesh.core.group.ledger import Ledger
from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.orders import standing
from comesh.core.records import (
    AuditRecord,
    Firing,
    Gone,
    GroupRecord,
    HandoffRecord,
    Record,
    RoutineRecord,
    Stage,
)
from comesh.core.stamps import Ballot, Era, RunId
from comesh.core.strategies import Strategy
from comesh.core.traces import BecameTrue, ByHand, EventCame, Finished, Releasing
from comesh.sim.checks import Checks, Promise
from comesh.sim.checks.progress import Progress

A, B, A2 = run_id("a"), run_id("b"), run_id("a", 2)
HAND = run_id(standing.by_hand(DeviceId("d1")))
OTHER = config("other", nodes=("n4", "n5", "n6"))
SECOND = Ballot(1, 1)


def by_hand(one: RunId, *waiting: RunId, requests: tuple[tuple[str, RunId], ...] = ()) -> RoutineRecord:
    firings = tuple(Firing(late, 0.0, ByHand("ann")) for late in waiting)
    asked = requests or (("q" + str(one), one),)
    return RoutineRecord(one.routine, 1, requests=asked, waiting=firings)


def fired(*runs: RunId) -> Told:
    """Returns runs fired in group g by hand."""
    told = Told()
    told.lead(0.0, "n1")
    told.lead(0.0, "n4", OTHER)
    for at_ms, one in enumerate(runs, start=1):
        told.commit(float(at_ms), by_hand(one), run(one, Stage.ACQUIRING_LOCKS))
    return told


def ordered(one: RunId) -> AuditRecord:
    return AuditRecord(0, 1, 0.0, "ann", "set d1: on", "q1", one)


def commanded_by_hand() -> Told:
    """A person commands d1 of group g: the run's routine is in no document."""
    told = fired()
    told.commit(1.0, ordered(HAND), run(HAND, Stage.EXECUTING))
    return told


def lose(told: Told, *records: Record, number: int = 1) -> None:
    """Let group g continue from an older state and report it."""
    era = Era(1, SECOND)
    ledger = Ledger({record.key: record for record in records}, number)
    ledger.append((GroupRecord(era),))
    told.lead(50.0, "n2", ballot=SECOND, state="lossy", era=era, ledger=ledger)
    told.lead(51.0, "n2", ballot=SECOND, era=era, ledger=ledger)


# -- safety ----------------------------------------------------------------------------------------------


def test_runs_may_execute_one_after_the_other() -> None:
    told = fired(A, B)
    told.commit(3.0, run(A, Stage.EXECUTING, ["d1", "d2"]))
    told.commit(4.0, run(A, Stage.RELEASING_LOCKS, ["d1", "d2"]))
    told.commit(5.0, run(B, Stage.EXECUTING, ["d2", "d3"]))
    assert told.promises == []


def test_one_entry_may_end_a_run_and_start_the_next() -> None:
    told = fired(A, B)
    told.commit(3.0, run(A, Stage.EXECUTING))
    told.commit(4.0, run(B, Stage.EXECUTING), run(A, Stage.RELEASING_LOCKS))
    assert told.promises == []


def test_runs_of_other_devices_execute_at_once() -> None:
    told = fired(A, B)
    told.commit(3.0, run(A, Stage.EXECUTING, ["d1"]))
    told.commit(4.0, run(B, Stage.EXECUTING, ["d2"]))
    assert told.promises == []


@pytest.mark.parametrize("group", ["g", "other"])
def test_two_runs_with_a_device_in_common_execute_at_once(group: str) -> None:
    """In one group or in two."""
    told = fired(A)
    node = "n1" if group == "g" else "n4"
    told.commit(2.0, by_hand(B), run(B, Stage.ACQUIRING_LOCKS, ["d2", "d3"]), node=node, group=group)
    told.commit(3.0, run(A, Stage.EXECUTING, ["d1", "d2"]))
    told.commit(4.0, run(B, Stage.EXECUTING, ["d2", "d3"]), node=node, group=group)
    assert told.promises == [Promise.SAFETY]
    (violation,) = told.checks.violations
    assert "both command d2" in violation.what
    assert len(violation.history) == 4
    assert violation.history[-1].startswith(f"0.004 s {node} {group} committed: run b#1:0.0:1 EXECUTING")


def test_a_run_that_ends_while_executing_frees_its_devices() -> None:
    told = fired(A, B)
    told.commit(3.0, run(A, Stage.EXECUTING))
    told.commit(4.0, gone(A), ended(A))
    told.commit(5.0, run(B, Stage.EXECUTING))
    assert told.promises == []


def test_after_a_loss_a_run_executes_only_when_that_is_committed_again() -> None:
    """The state that is left says EXECUTING; the release that was lost had let another run in."""
    told = fired(A)
    told.commit(2.0, run(A, Stage.EXECUTING))
    told.commit(3.0, run(A, Stage.RELEASING_LOCKS))
    told.commit(4.0, by_hand(B), run(B, Stage.EXECUTING), node="n4", group="other")
    lose(told, by_hand(A), run(A, Stage.EXECUTING), number=2)
    assert told.promises == []
    told.commit(52.0, run(A, Stage.EXECUTING, attempt=2), node="n2")
    assert told.promises == []
    told.commit(53.0, run(A, Stage.ACQUIRING_LOCKS, attempt=2), node="n2")
    told.commit(54.0, run(A, Stage.EXECUTING, attempt=2), node="n2")
    assert told.promises == [Promise.SAFETY]


def test_a_served_run_executes_without_a_reported_commit() -> None:
    told = fired(A, B)
    told.ledger("g").append((run(A, Stage.EXECUTING),))
    told.lead(10.0, "n2", ballot=SECOND)
    told.commit(11.0, run(B, Stage.EXECUTING), node="n2")
    assert told.promises == [Promise.SAFETY]


# -- no loss ---------------------------------------------------------------------------------------------


def test_a_run_ends_in_its_routine() -> None:
    told = fired(A)
    told.commit(2.0, gone(A), ended(A, reason="d1: no answer"))
    assert told.promises == []


def test_a_run_vanishes() -> None:
    told = fired(A)
    told.commit(2.0, gone(A))
    told.commit(3.0, held("d1", None))
    assert [violation.promise for violation in told.checks.violations] == [Promise.NO_LOSS]


def test_a_run_vanishes_in_the_last_entry() -> None:
    told = fired(A)
    told.commit(2.0, gone(A))
    assert told.promises == [Promise.NO_LOSS]


def test_a_run_vanishes_behind_another_one() -> None:
    told = fired(A)
    told.commit(2.0, by_hand(A2), run(A2, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.NO_LOSS]


def test_a_waiting_firing_becomes_the_run() -> None:
    told = fired(A)
    told.commit(2.0, by_hand(A, A2, requests=(("q", A), ("q2", A2))))
    told.commit(3.0, run(A2, Stage.ACQUIRING_LOCKS), ended(A))
    assert told.promises == []


def test_a_waiting_firing_vanishes() -> None:
    told = fired(A)
    told.commit(2.0, by_hand(A, A2, requests=(("q", A), ("q2", A2))))
    told.commit(3.0, by_hand(A, requests=(("q", A), ("q2", A2))))
    assert told.promises == [Promise.NO_LOSS]


def test_an_entry_may_end_several_runs_if_their_traces_say_so() -> None:
    told = fired(A)
    told.commit(2.0, by_hand(A, A2, requests=(("q", A), ("q2", A2))))
    told.commit(3.0, gone(A), ended(A2))
    told.trace(3.0, A, Releasing(""))
    told.trace(3.0, A, Finished())
    assert told.promises == []


def test_a_trace_that_does_not_end_a_run_is_not_enough() -> None:
    told = fired(A)
    told.commit(2.0, gone(A))
    told.trace(2.0, A, Releasing(""))
    assert told.promises == [Promise.NO_LOSS]


def test_a_removed_routine_takes_its_released_run_along() -> None:
    told = fired(A)
    told.commit(2.0, run(A, Stage.RELEASING_LOCKS))
    told.commit(3.0, gone(A), Gone("routine/a"))
    assert told.promises == []


def test_a_removed_routine_does_not_take_an_executing_run_along() -> None:
    told = fired(A)
    told.commit(2.0, run(A, Stage.EXECUTING))
    told.commit(3.0, gone(A), Gone("routine/a"))
    assert told.promises == [Promise.NO_LOSS]


def test_a_run_comes_back_after_its_end() -> None:
    told = fired(A)
    told.commit(2.0, gone(A), ended(A))
    told.commit(3.0, by_hand(A, requests=(("q9", A),)), run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.NO_LOSS]


def test_runs_go_with_a_reported_loss() -> None:
    told = fired(A, B)
    lose(told, by_hand(A), run(A, Stage.ACQUIRING_LOCKS), number=1)
    assert told.promises == []
    (loss,) = told.checks.losses
    assert (loss.runs, loss.entries) == ((B,), 1)


def test_an_end_that_was_lost_may_come_again() -> None:
    told = fired(A)
    told.commit(2.0, gone(A), ended(A))
    lose(told, by_hand(A), run(A, Stage.RELEASING_LOCKS), number=1)
    told.commit(52.0, gone(A), ended(A), node="n2")
    assert told.promises == []


def test_the_end_of_a_command_by_hand_that_was_lost_may_come_again() -> None:
    """Its routine leaves no record: only the run's own says that it lives."""
    told = commanded_by_hand()
    told.commit(2.0, gone(HAND))
    told.trace(2.0, HAND, Finished())
    lose(told, run(HAND, Stage.EXECUTING), number=1)
    told.commit(52.0, gone(HAND), node="n2")
    told.trace(52.0, HAND, Finished())
    assert told.promises == []


def test_an_end_that_was_not_lost_stays() -> None:
    told = fired(A)
    told.commit(2.0, gone(A), ended(A))
    told.commit(3.0, by_hand(A2), run(A2, Stage.ACQUIRING_LOCKS))
    told.commit(4.0, gone(A2), ended(A2))
    lose(told, by_hand(A2), run(A2, Stage.ACQUIRING_LOCKS), number=3)
    assert not told.checks.violations
    told.commit(52.0, by_hand(A, requests=(("q9", A),)), run(A, Stage.ACQUIRING_LOCKS), node="n2")
    assert [violation.what for violation in told.checks.violations] == [f"{A} had ended, and is live again"]


def test_the_end_of_a_command_by_hand_that_was_not_lost_stays() -> None:
    told = commanded_by_hand()
    told.commit(2.0, gone(HAND))
    told.trace(2.0, HAND, Finished())
    lose(told, number=2)
    told.commit(52.0, ordered(HAND), run(HAND, Stage.EXECUTING), node="n2")
    assert told.promises == [Promise.NO_LOSS]


def test_a_command_by_hand_comes_back_after_its_end() -> None:
    told = commanded_by_hand()
    told.commit(2.0, gone(HAND))
    told.trace(2.0, HAND, Finished())
    told.commit(3.0, ordered(HAND), run(HAND, Stage.EXECUTING))
    assert told.promises == [Promise.NO_LOSS]


def test_runs_go_on_in_the_next_config() -> None:
    told = fired(A)
    following = config(number=2, nodes=("n2", "n3", "n4"))
    told.lead(5.0, "n1", state="handing off")
    told.commit(6.0, HandoffRecord(following))
    told.lead(7.0, "n2", following)
    told.commit(8.0, gone(A), ended(A), node="n2")
    assert told.promises == []


# -- firing once -----------------------------------------------------------------------------------------


def routine(**fields: object) -> RoutineRecord:
    return RoutineRecord(RoutineId("a"), 1, **fields)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (routine(instant_ms=1.0), routine(instant_ms=2.0)),
        (routine(marks={"b": 1}), routine(marks={"b": 2})),
        (routine(requests=(("q", B),)), routine(requests=(("q", B), ("q2", A)))),
    ],
)
def test_the_cause_of_a_firing_is_committed_with_it(before: RoutineRecord, after: RoutineRecord) -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, before)
    told.commit(2.0, after, run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == []
    told.commit(3.0, after, run(A2, Stage.ACQUIRING_LOCKS))
    told.trace(3.0, A, Finished())
    assert told.promises == [Promise.FIRED_ONCE]


def test_a_clause_may_fire_and_be_false_again_in_one_entry() -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, routine(truth=False))
    told.commit(2.0, routine(truth=False), run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == []


def test_a_clause_fires_once_per_entry() -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, routine(truth=False))
    waits = (Firing(A2, 0.0, BecameTrue({})),)
    told.commit(2.0, routine(truth=True, waiting=waits), run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.FIRED_ONCE]


def test_a_clause_does_not_fire_while_its_time_counts() -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, routine(truth=True, true_since_ms=1.0))
    told.commit(2.0, routine(truth=True, true_since_ms=1.0), run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.FIRED_ONCE]


def test_a_firing_without_a_record_of_its_routine() -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.FIRED_ONCE]


def test_one_event_fires_twice() -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, routine(marks={"b": 1}))
    waiting = (Firing(A2, 0.0, EventCame(DeviceId("d1"), 1, {})),)
    told.commit(2.0, routine(marks={"b": 2}, waiting=waiting), run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.FIRED_ONCE]


def test_two_events_fire_twice() -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, routine(marks={"b": 1}))
    waiting = (Firing(A2, 0.0, EventCame(DeviceId("d1"), 1, {})),)
    told.commit(2.0, routine(marks={"b": 3}, waiting=waiting), run(A, Stage.ACQUIRING_LOCKS))
    assert told.promises == []


@pytest.mark.parametrize("marks", [{"b": 1}, {}])
def test_marks_of_events_never_fall(marks: dict[str, int]) -> None:
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, routine(marks={"b": 2}))
    told.commit(2.0, routine(marks=marks))
    assert told.promises == [Promise.FIRED_ONCE]


def test_a_request_fires_two_runs() -> None:
    told = fired(A)
    told.commit(2.0, gone(A), ended(A))
    told.commit(3.0, by_hand(A2, requests=(("q" + str(A), A2),)), run(A2, Stage.ACQUIRING_LOCKS))
    assert told.promises == [Promise.FIRED_ONCE]


# -- progress --------------------------------------------------------------------------------------------


def quiet(told: Told, *groups: str, dead: str = "") -> Progress:
    checks = told.checks
    progress = Progress(
        checks,
        checks.histories,
        checks.runs,
        checks.locks,
        groups=[GroupId(group) for group in groups],
        runs_since=lambda node, since_ms: node != dead,
        bound_ms=1000.0,
    )
    progress.begin(100.0)
    return progress


def test_progress_without_delays_is_accepted() -> None:
    told = fired(A)
    progress = quiet(told, "g", "other")
    assert progress.judge(1100.0)
    told.commit(1100.0, run(A, Stage.EXECUTING))
    assert progress.judge(2900.0)
    told.commit(3000.0, run(A, Stage.RELEASING_LOCKS))
    told.commit(3100.0, gone(A), ended(A))
    assert progress.judge(9000.0)
    assert told.promises == []


@pytest.mark.parametrize(
    ("stage", "fine_ms", "late_ms"),
    [(Stage.ACQUIRING_LOCKS, 1099, 1101), (Stage.EXECUTING, 2099, 2101), (Stage.RELEASING_LOCKS, 1099, 1101)],
)
def test_a_run_stays_in_its_stage(stage: Stage, fine_ms: float, late_ms: float) -> None:
    told = fired(A)
    told.commit(5.0, run(A, stage))
    progress = quiet(told)
    assert progress.judge(fine_ms)
    assert not progress.judge(late_ms)
    assert progress.judge(late_ms + 1), "it is told once"
    assert told.promises == [Promise.PROGRESS]


def test_a_run_fired_in_the_quiet_phase_has_the_full_bound() -> None:
    told = fired()
    progress = quiet(told)
    told.commit(900.0, by_hand(A, A2, requests=(("q", A), ("q2", A2))), run(A, Stage.ACQUIRING_LOCKS))
    assert progress.judge(1890.0)
    assert not progress.judge(1901.0)
    assert len(told.promises) == 1, "what waits behind it is not told as well"


def test_a_firing_that_need_not_wait_must_start() -> None:
    told = fired()
    waits = by_hand(A, A2, requests=(("q", A), ("q2", A2)))
    told.commit(5.0, waits, run(A, Stage.ACQUIRING_LOCKS))
    progress = quiet(told)
    told.commit(900.0, ended(A, A2), gone(A))
    assert progress.judge(1900.0)
    assert not progress.judge(1901.0)
    assert [violation.what for violation in told.checks.violations] == [f"{A2} is waiting since 0.900 s"]


def optimistic(one: RunId) -> Told:
    told = fired()
    record = run(one, Stage.ACQUIRING_LOCKS)
    told.commit(1.0, by_hand(one), replace(record, strategy=Strategy.OPTIMISTIC))
    return told


def test_an_optimistic_run_may_be_refused_while_others_hold_its_devices() -> None:
    told = optimistic(A)
    told.commit(2.0, held("d1", B))
    progress = quiet(told)
    assert progress.judge(1200.0)
    told.commit(1300.0, held("d1", None))
    assert progress.judge(2200.0)
    assert not progress.judge(2400.0)


def test_a_group_without_a_leader() -> None:
    told = fired()
    told.lead(50.0, "n1", state="following")
    progress = quiet(told, "g", "other", "third")
    assert progress.judge(1100.0)
    assert not progress.judge(1101.0)
    assert [violation.what for violation in told.checks.violations] == [
        "nobody serves g since 0.050 s",
        "nobody serves third since 0.000 s",
    ]


def test_a_group_whose_leader_is_dead() -> None:
    told = fired()
    progress = quiet(told, "g", dead="n1")
    assert not progress.judge(1101.0)


def test_a_handoff_within_the_bound_is_no_gap() -> None:
    told = fired()
    progress = quiet(told, "g")
    told.lead(5000.0, "n1", state="handing off")
    assert progress.judge(5500.0)
    assert not progress.judge(6001.0)


def test_the_groups_of_a_program_are_known() -> None:
    told = Told(Checks([]))
    told.checks.groups = (GroupId("g"),)
    progress = told.checks.progress(1000.0)
    progress.begin(0.0)
    assert not progress.judge(1001.0)
