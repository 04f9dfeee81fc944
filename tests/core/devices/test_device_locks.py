"""Locks: the queue, attempts, late messages, wounds, and runs that fell silent (protocol, section 7)."""

from device_bench import AWAY, FAN, FENCE, LAMP, LATER_FENCE, OTHER, R1, R2, R3, Bench, make_program, run_of

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.records import Held, Kind, Stage, Standing
from comesh.core.stamps import FIRST_ERA, OPENING, Ballot, RunId, Stamp
from comesh.core.step import Step
from comesh.core.strategies import Strategy
from comesh.core.work_messages import (
    Home,
    LockRequest,
    LockState,
    Release,
    Released,
    RunQuery,
    RunState,
    Wound,
)

A, B, C = run_of(R1), run_of(R2), run_of(R3)
PRIORITY, OPTIMISTIC = Strategy.PRIORITY, Strategy.OPTIMISTIC


def queue(bench: Bench, device: DeviceId = LAMP) -> list[RunId]:
    return [waiter.run for waiter in bench.record(device).queue]


def refusals(state: LockState) -> list[str]:
    return [answer.refused for answer in state.answers]


def ended(
    run: RunId, *, stage: Stage | None = None, attempt: int = 1, held: tuple[Held, ...] = ()
) -> RunState:
    return RunState(run, run.routine, stage, attempt, held, (LAMP,), None)


def test_a_free_device_is_granted_after_commit_and_a_held_one_queued() -> None:
    bench = Bench()
    bench.commits = False
    bench.say(LockRequest(A, 1, (LAMP, FAN), 0.0, Strategy.SEQUENTIAL, FENCE))
    assert not bench.take(LockState)
    bench.commit()
    (state,) = bench.take(LockState)
    assert all(answer.granted is not None for answer in state.answers)
    assert bench.devices.busy
    (answer,) = bench.lock(B).answers
    assert answer.queued
    assert queue(bench) == [B]


def test_a_release_grants_to_the_next_and_sends_it_once() -> None:
    bench = Bench()
    bench.lock(A, LAMP, FAN)
    bench.lock(B, LAMP, FAN)
    bench.lock(C)
    bench.release(A, LAMP, FAN)
    assert bench.take(Released) == [Released(A, 1, (LAMP, FAN))]
    (told,) = bench.take(LockState)
    assert (told.run, [answer.device for answer in told.answers]) == (B, [LAMP, FAN])
    assert bench.has(B)
    bench.release(B, LAMP, FAN)
    assert bench.has(C)
    bench.release(C)
    assert not bench.devices.busy


NEXT, LAST = GroupId("next"), GroupId("last")


def passing(*devices: DeviceId, home: Home | None = None) -> LockRequest:
    onward = ((NEXT, (DeviceId("pump"),)), (LAST, (DeviceId("valve"),)))
    return LockRequest(A, 1, devices, 0.0, Strategy.SEQUENTIAL, FENCE, home, onward)


def posted(bench: Bench, kind: type[LockRequest | LockState]) -> list[GroupId | None]:
    """Returns the receivers since the last call."""
    to = [message.to for message in bench.posted if isinstance(message.body, kind)]
    bench.take(kind)
    return to


def test_a_request_granted_at_once_is_passed_on_after_commit() -> None:
    bench = Bench()
    bench.posted.clear()
    bench.commits = False
    bench.say(passing(LAMP, FAN))
    assert not bench.posted
    bench.commit()
    assert sorted(str(message.to) for message in bench.posted) == [AWAY, NEXT]
    assert [state.passed_on for state in bench.take(LockState)] == [NEXT]
    (onward,) = bench.take(LockRequest)
    assert (onward.run, onward.attempt, onward.devices) == (A, 1, (DeviceId("pump"),))
    assert (onward.home, onward.fence) == (Home(AWAY, OTHER), FENCE), "whom to answer"
    assert onward.onward == ((LAST, (DeviceId("valve"),)),)
    bench.say(passing(LAMP, FAN))
    assert posted(bench, LockRequest) == [NEXT], "an answer was lost: so may be this one"


def test_a_passed_on_request_is_answered_to_the_group_of_the_run() -> None:
    bench = Bench()
    home = Home(GroupId("routines"), NodeId("n9"))
    bench.say(passing(LAMP, home=home), sender=GroupId("before"))
    assert posted(bench, LockState) == [home.group]
    assert [request.home for request in bench.take(LockRequest)] == [home]
    bench.run(20_000)
    assert {message.to for message in bench.posted if isinstance(message.body, RunQuery)} == {home.group}


def test_a_grant_committed_during_a_handoff_is_sent() -> None:
    """The grant holds in the next config, whose leader does not know that it was never sent."""
    bench = Bench()
    bench.commits = False
    bench.say(LockRequest(A, 1, (LAMP,), 0.0, Strategy.SEQUENTIAL, FENCE))
    step = Step(bench.now_ms, bench.now_ms)
    bench.serving.end(step)
    assert not bench.take(LockState)
    bench.serving.on_committed(bench.serving.next_entry - 1, step)
    assert [state.run for state in bench.take(LockState)] == [A]


def test_a_waiting_request_is_not_passed_on() -> None:
    bench = Bench()
    bench.lock(B, FAN)
    bench.say(passing(LAMP, FAN))
    assert [state.passed_on for state in bench.take(LockState)] == [None]
    bench.release(B, FAN)
    assert bench.has(A, FAN)
    assert [state.passed_on for state in bench.take(LockState)] == [None]
    assert not bench.take(LockRequest), "the run asks by itself"


def test_duplicate_requests_and_releases_change_nothing() -> None:
    bench = Bench()
    first = bench.lock(A)
    bench.lock(B)
    entries = bench.entries
    assert bench.lock(A) == first
    assert bench.lock(B).answers[0].queued
    assert bench.entries == entries
    bench.release(A)
    bench.release(A)
    assert len(bench.take(Released)) == 2
    assert bench.has(B)


def test_a_late_request_does_not_take_a_released_lock() -> None:
    bench = Bench()
    bench.release(A, attempt=2)
    assert refusals(bench.lock(A, attempt=1)) == ["released"]
    assert refusals(bench.lock(A, attempt=2)) == ["released"]
    assert bench.lock(A, attempt=3).answers[0].granted is not None


def test_a_late_release_does_not_free_a_newer_attempt() -> None:
    bench = Bench()
    old = bench.lock(A).answers[0].granted
    new = bench.lock(A, attempt=2, fence=LATER_FENCE).answers[0].granted
    assert old is not None
    assert new is not None
    assert new > old
    hold = bench.record(LAMP).hold
    assert hold is not None
    assert hold.fence == LATER_FENCE
    bench.release(A, attempt=1)
    assert bench.has(A, attempt=2)
    assert refusals(bench.lock(A, attempt=1)) == ["released"]


def test_a_newer_attempt_replaces_a_waiting_one_in_its_place() -> None:
    bench = Bench()
    bench.lock(A)
    bench.lock(B)
    bench.lock(C)
    assert bench.lock(B, attempt=2).answers[0].queued
    assert queue(bench) == [B, C]
    assert refusals(bench.lock(B, attempt=1)) == ["released"]
    bench.release(B, attempt=1)
    assert queue(bench) == [B, C]
    bench.release(B, attempt=2)
    assert queue(bench) == [C]


def test_optimistic_requests_are_refused_if_the_lock_is_held_or_awaited() -> None:
    bench = Bench()
    assert bench.lock(A, strategy=OPTIMISTIC).answers[0].granted is not None
    assert refusals(bench.lock(B, LAMP, FAN, strategy=OPTIMISTIC)) == ["held", ""]
    assert queue(bench) == []
    assert bench.lock(A, attempt=2, strategy=OPTIMISTIC).answers[0].granted is not None


def test_unknown_devices_are_refused() -> None:
    bench = Bench()
    assert refusals(bench.lock(A, DeviceId("nothing"))) == ["unknown"]
    bench.release(A, DeviceId("nothing"))
    assert bench.take(Released)
    assert "device/nothing" not in bench.committed


def test_priority_goes_by_age_and_wounds_a_younger_holder_until_it_gives_back() -> None:
    bench = Bench()
    bench.lock(C, strategy=PRIORITY, fired_ms=30.0)
    bench.lock(B, strategy=PRIORITY, fired_ms=20.0)
    assert bench.take(Wound) == [Wound(C, 1, LAMP)]
    bench.lock(A, strategy=PRIORITY, fired_ms=10.0)
    assert queue(bench) == [A, B]
    bench.run(5000)
    assert set(map(str, bench.take(Wound))) == {str(Wound(C, 1, LAMP))}
    bench.lead(Ballot(1, 0))
    assert bench.take(Wound) == [Wound(C, 1, LAMP)]
    bench.release(C)
    bench.take(Wound)
    bench.run(9000)
    assert bench.has(A)
    assert not bench.take(Wound)


def test_only_younger_holders_are_wounded_and_only_with_priority() -> None:
    bench = Bench()
    bench.lock(B, fired_ms=20.0)
    bench.lock(C, strategy=PRIORITY, fired_ms=30.0)
    bench.run(9000)
    assert not bench.take(Wound)
    bench.release(C)
    bench.lock(A, fired_ms=10.0)
    bench.run(45_000)
    assert not bench.take(Wound)


def test_old_holds_and_waiters_are_asked_about_and_freed_when_their_run_has_ended() -> None:
    bench = Bench()
    bench.lock(A)
    bench.lock(B)
    bench.run(9000)
    assert not bench.take(RunQuery)
    bench.run(2000)
    assert bench.take(RunQuery) == [RunQuery(A, R1, (LAMP,), None)]
    bench.run(10_000)
    assert bench.take(RunQuery) == [RunQuery(A, R1, (LAMP,), None), RunQuery(B, R2, (LAMP,), None)]
    bench.say(ended(A, stage=Stage.EXECUTING, held=(Held(LAMP, Stamp(0, OPENING, 1), FIRST_ERA),)))
    assert bench.has(A)
    bench.say(ended(A))
    assert bench.has(B)
    assert refusals(bench.lock(A)) == ["released"]


def test_a_waiter_that_asks_again_is_not_asked_about() -> None:
    bench = Bench()
    bench.lock(A)
    for _ in range(3):
        bench.lock(B)
        bench.run(12_000)
    assert {query.run for query in bench.take(RunQuery)} == {A}


def test_a_run_that_went_on_to_a_newer_attempt_does_not_have_the_old_one() -> None:
    bench = Bench()
    bench.lock(A)
    bench.lock(B)
    bench.say(ended(A, stage=Stage.ACQUIRING_LOCKS, attempt=1))
    assert bench.has(A)
    bench.say(ended(A, stage=Stage.ACQUIRING_LOCKS, attempt=3))
    assert bench.has(B)
    assert bench.lock(A, attempt=3).answers[0].queued


def test_a_new_run_of_the_holders_routine_has_the_holder_asked_about_at_once() -> None:
    bench = Bench()
    bench.lock(A)
    newer = run_of(R1, 2)
    assert bench.lock(newer).answers[0].queued
    assert bench.take(RunQuery) == [RunQuery(A, R1, (LAMP,), None)]
    bench.say(ended(A))
    assert bench.has(newer)
    assert refusals(bench.lock(A)) == ["released"]


def test_a_run_of_a_removed_routine_is_asked_about_at_its_group() -> None:
    bench = Bench()
    stray = run_of(RoutineId("removed"))
    bench.say(LockRequest(stray, 1, (LAMP,), 0.0, Strategy.SEQUENTIAL, FENCE), sender=GroupId("elsewhere"))
    bench.lead(Ballot(1, 0))
    bench.run(11_000)
    assert [message.to for message in bench.posted if isinstance(message.body, RunQuery)] == ["elsewhere"]


def test_a_removed_device_serves_waiting_runs_only_and_is_then_forgotten() -> None:
    bench = Bench()
    bench.lock(A)
    bench.lock(B)
    bench.lock(A, FAN)
    bench.release(A, FAN)
    bench.lead(Ballot(1, 0), program=make_program(devices=(DeviceId("sensor"),)))
    assert "device/fan" not in bench.committed
    assert refusals(bench.lock(C)) == ["unknown"]
    assert bench.lock(B).answers[0].queued
    bench.release(A)
    assert bench.has(B)
    bench.release(B)
    assert "device/lamp" not in bench.committed
    assert not bench.devices.busy


def test_the_order_to_break_a_lock_goes_with_the_lock_of_a_removed_device() -> None:
    bench = Bench()
    bench.lock(A)
    bench.lead(Ballot(1, 0), program=make_program(devices=(DeviceId("sensor"),)))
    order = Standing(Kind.BREAKING, LAMP, "ann", 0.0, A)
    step = bench._step()
    bench.serving.put(order)
    bench.devices.break_lock(LAMP, step)
    bench._finish(step)
    assert order.key in bench.committed
    bench.release(A)
    assert not {"device/lamp", order.key} & set(bench.committed)


def test_a_leader_without_the_document_of_its_config_forgets_nothing() -> None:
    bench = Bench()
    bench.release(A)
    older = make_program(devices=(DeviceId("sensor"),))
    older.version = 0
    bench.lead(Ballot(1, 0), program=older)
    assert R1 in bench.record(LAMP).released


def test_marks_of_removed_routines_are_bounded() -> None:
    bench = Bench()
    for number in range(100):
        bench.release(run_of(RoutineId(f"gone{number:03}")))
    bench.release(A)
    released = bench.record(LAMP).released
    assert len(released) <= 66
    assert "gone099" in released
    assert R1 in released


def test_requests_are_answered_to_their_sender() -> None:
    bench = Bench()
    bench.say(Release(A, 1, (LAMP,)))
    assert [message.to for message in bench.posted if isinstance(message.body, Released)] == [AWAY]
