"""Tests that devices are withheld in a new era until every routine has answered (protocol, section 5)."""

from device_bench import AWAY, BUTTON, FAN, FENCE, HOME, LAMP, LANDING_MS, NEAR, R1, R2, R3, Bench, run_of
from msgspec.structs import replace

from comesh.core.effects import CommandDevice
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.records import Held, Outcome, Stage, Status
from comesh.core.stamps import FIRST_ERA, OPENING, Ballot, Era, RunId, Stamp
from comesh.core.strategies import Strategy
from comesh.core.work_messages import (
    CommandState,
    Fenced,
    LockRequest,
    LockState,
    Reading,
    RunQuery,
    RunState,
)

A, B = run_of(R1), run_of(R2)
ERA = Era(0, Ballot(1, 0))
EVERY = (LAMP, FAN)


def claim(routine: RoutineId, run: RunId | None = None, n: int | None = None, attempt: int = 1) -> RunState:
    """Returns a routine's answer: nothing, or that its run holds the lamp by the grant with this number."""
    held = () if n is None else (Held(LAMP, Stamp(0, OPENING, n), FIRST_ERA),)
    stage = None if run is None else Stage.EXECUTING
    return RunState(run, routine, stage, attempt, held, EVERY, ERA, 5.0, Strategy.PRIORITY)


def outage(bench: Bench | None = None) -> Bench:
    bench = bench or Bench()
    bench.lead(Ballot(1, 0), era=ERA)
    return bench


def nobody_else(bench: Bench, *routines: RoutineId) -> None:
    for routine in routines:
        bench.say(claim(routine), sender=HOME if routine == NEAR else AWAY)


def stamp_of(bench: Bench) -> int | None:
    hold = bench.record(LAMP).hold
    return None if hold is None else hold.stamp.n


def test_every_routine_that_commands_a_device_is_asked_until_it_answers() -> None:
    bench = outage()
    queries = bench.take(RunQuery)
    assert {query.routine: set(query.devices) for query in queries} == {
        R1: {LAMP, FAN},
        R2: {LAMP},
        R3: {FAN},
    }
    assert {query.era for query in queries} == {ERA}
    assert [query.routine for query in bench.take_local(RunQuery)] == [NEAR]
    bench.say(claim(R2))
    bench.run(3000)
    assert {query.routine for query in bench.take(RunQuery)} == {R1, R3}


def test_grants_are_withheld_until_all_answered_and_sensing_goes_on() -> None:
    bench = outage()
    assert bench.lock(A).answers[0].queued
    bench.run(1000)
    assert bench.take(Reading)
    nobody_else(bench, R1, R2)
    assert bench.record(LAMP).hold is None
    assert not bench.take(LockState)
    nobody_else(bench, NEAR)
    assert bench.has(A)
    (state,) = bench.take(LockState)
    assert state.answers[0].era == ERA
    assert bench.record(LAMP).settled == ERA


def test_devices_settle_one_by_one_and_unused_ones_at_once() -> None:
    bench = outage()
    assert bench.record(DeviceId("sensor")).settled == ERA
    nobody_else(bench, R1, R3)
    assert bench.record(FAN).settled == ERA
    assert "device/lamp" not in bench.committed or bench.record(LAMP).settled == FIRST_ERA


def test_the_higher_grant_of_two_claims_holds() -> None:
    bench = outage()
    bench.say(claim(R1, A, 4))
    bench.say(claim(R2, B, 7, attempt=3))
    nobody_else(bench, NEAR)
    hold = bench.record(LAMP).hold
    assert hold is not None
    assert (hold.run, hold.attempt, hold.stamp.n, hold.strategy) == (B, 3, 7, Strategy.PRIORITY)
    assert bench.lock(A).answers[0].queued
    assert bench.lock(B, attempt=3).answers[0].granted == hold.stamp


def test_a_hold_that_is_not_confirmed_is_dropped() -> None:
    bench = Bench()
    bench.lock(A)
    bench.lock(B)
    outage(bench)
    nobody_else(bench, R1, R2, NEAR)
    assert bench.has(B)


def test_a_confirmed_hold_keeps_its_grant_and_fence() -> None:
    bench = Bench()
    bench.lock(A)
    before = bench.record(LAMP).hold
    assert before is not None
    outage(bench)
    assert bench.lock(A).answers[0].queued
    bench.say(claim(R1, A, before.stamp.n))
    nobody_else(bench, R2, NEAR)
    after = bench.record(LAMP).hold
    assert after is not None
    assert (after.run, after.stamp, after.fence) == (A, before.stamp, FENCE)
    assert bench.record(LAMP).queue == ()


def test_optimistic_requests_are_refused_meanwhile() -> None:
    bench = outage()
    assert bench.lock(A, strategy=Strategy.OPTIMISTIC).answers[0].refused == "held"


def test_a_claim_that_was_released_meanwhile_is_void() -> None:
    bench = outage()
    bench.say(claim(R1, A, 4))
    bench.release(A)
    nobody_else(bench, R2, NEAR)
    assert bench.record(LAMP).hold is None


def test_a_newer_attempt_asked_for_meanwhile_renews_the_claimed_hold() -> None:
    bench = outage()
    bench.say(claim(R1, A, 40))
    assert bench.lock(A, attempt=2).answers[0].queued
    nobody_else(bench, R2, NEAR)
    assert bench.has(A, attempt=2)
    assert stamp_of(bench) != 40


def test_answers_of_another_era_do_not_count() -> None:
    bench = outage()
    for routine in (R1, R2, NEAR):
        bench.say(replace(claim(routine), era=Era(0, Ballot(0, 0))))
    assert "device/lamp" not in bench.committed or bench.record(LAMP).settled == FIRST_ERA


def test_a_new_leader_of_the_era_asks_again_and_a_settled_device_stays_so() -> None:
    bench = outage()
    nobody_else(bench, R1, R3)
    bench.take(RunQuery)
    bench.lead(Ballot(2, 0))
    assert {query.routine: set(query.devices) for query in bench.take(RunQuery)} == {R1: {LAMP}, R2: {LAMP}}


def test_commands_and_fences_wait_unanswered_until_settled() -> None:
    bench = Bench()
    bench.lock(A)
    stamp = stamp_of(bench)
    outage(bench)
    bench.command(A)
    bench.fence(A, FENCE)
    assert not bench.take(CommandState)
    assert not bench.take(Fenced)
    bench.say(claim(R1, A, stamp))
    nobody_else(bench, R2, NEAR)
    bench.fence(A, FENCE)
    assert bench.take(Fenced)[0].devices[0].held == Stamp(0, OPENING, stamp or 0)
    bench.command(A)
    bench.answer(bench.sent_command().call, LAMP, {"on": True})
    assert [state.state.outcome for state in bench.take(CommandState)] == [Outcome.DONE]


def test_an_open_call_is_not_repeated_before_its_device_is_settled() -> None:
    bench = Bench()
    bench.lock(A)
    stamp = stamp_of(bench)
    bench.command(A)
    bench.take_done(CommandDevice)
    outage(bench)
    bench.run(LANDING_MS + 5000)
    assert not bench.take_done(CommandDevice)
    bench.say(claim(R1, A, stamp))
    nobody_else(bench, R2, NEAR)
    assert bench.sent_origin().run == A


def test_an_open_call_of_a_dropped_hold_is_waited_for() -> None:
    bench = Bench()
    bench.lock(A)
    bench.command(A)
    outage(bench)
    bench.lock(B)
    nobody_else(bench, R1, R2, NEAR)
    assert bench.record(LAMP).hold is None
    bench.run(LANDING_MS + 10)
    assert bench.has(B)


def test_the_routine_of_a_hold_is_asked_at_its_group() -> None:
    bench = Bench()
    stray = run_of(RoutineId("removed"))
    bench.say(LockRequest(stray, 1, (LAMP,), 0.0, Strategy.SEQUENTIAL, FENCE))
    outage(bench)
    assert RunQuery(None, stray.routine, (LAMP,), ERA) in bench.take(RunQuery)
    nobody_else(bench, R1, R2, NEAR)
    assert bench.record(LAMP).settled == FIRST_ERA
    bench.say(claim(stray.routine, stray, 1))
    assert bench.has(stray)


def test_events_count_from_above_the_possibly_lost_ones() -> None:
    bench = Bench()
    bench.report(BUTTON, {"pressed": True}, "a")
    outage(bench)
    bench.report(BUTTON, {"pressed": True}, "b")
    assert [event.sequence for event in bench.record(BUTTON).events] == [1, 1002]


def test_an_event_device_counts_on_also_where_all_its_events_were_lost() -> None:
    bench = outage()
    bench.report(BUTTON, {"pressed": True}, "a")
    assert [event.sequence for event in bench.record(BUTTON).events] == [1001]
    assert bench.record(LAMP).sequence == 0, "who tells no events has none to count"


def test_status_is_gossiped_from_above_the_possibly_lost_versions() -> None:
    bench = Bench()
    bench.run(1000)
    bench.committed["device/sensor"] = replace(
        bench.record(DeviceId("sensor")), status=Status.DOWN, status_version=2
    )
    outage(bench)
    assert ("device/sensor", 1002, b"down") in bench.announcements
