"""Runs under a new leader, after an outage, and under a newer deployment version."""

from routine_bench import Bench, command, is_true, program, routine

from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.records import Outcome, RoutineStep, Stage
from comesh.core.stamps import Ballot, Era, Fence
from comesh.core.strategies import Strategy
from comesh.core.traces import Dropped, Fired, LeaderTookOver
from comesh.core.work_messages import (
    Command,
    FenceAsked,
    Fenced,
    FencedDevice,
    Fire,
    LockRequest,
    Ordered,
    Release,
    RunQuery,
    RunState,
    StepState,
    Wound,
)

R = RoutineId("r")


def acquiring(strategy: Strategy = Strategy.SEQUENTIAL) -> Bench:
    """b1 is held, d1 is not yet."""
    bench = Bench(program(routine("b1", "d1", strategy=strategy)))
    bench.hear(Fire(R, "q"))
    bench.grant("b1")
    return bench


def executing() -> Bench:
    bench = acquiring()
    bench.grant("d1")
    assert bench.stage is Stage.EXECUTING
    return bench


def fences(bench: Bench) -> list[tuple[str, tuple[str, ...], Fence]]:
    return [(to, body.devices, body.fence) for to, body in bench.take(FenceAsked)]


def commanded(bench: Bench) -> list[tuple[str, int]]:
    return [(body.device, body.origin.step) for _, body in bench.take(Command)]


def given_back(bench: Bench) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(to, body.attempt, body.devices) for to, body in bench.take(Release)]


# -- a new leader ------------------------------------------------------------------------------------------


def test_acquiring_requests_the_missing_locks_again() -> None:
    bench = acquiring()
    bench.new_leader()
    ((to, body),) = bench.take(LockRequest)
    assert (to, body.attempt, body.devices, body.fence) == ("c3", 1, ("d1",), bench.serving.fence)
    assert bench.told(LeaderTookOver) == [LeaderTookOver(NodeId("n1"), "1.0")] and bench.part.busy
    bench.grant("d1")
    assert bench.stage is Stage.EXECUTING and commanded(bench) == [("b1", 0)]


def test_a_firing_that_was_not_committed_has_not_happened() -> None:
    bench = Bench(program(routine("b1")))
    bench.commits = False
    bench.hear(Fire(R, "q"))
    bench.new_leader()
    assert bench.stage is None and bench.said == [] and not bench.part.busy


def test_a_grant_that_was_not_committed_is_asked_for_again() -> None:
    bench = acquiring()
    bench.commits = False
    bench.grant("d1")
    bench.new_leader()
    assert bench.stage is Stage.ACQUIRING_LOCKS and commanded(bench) == []
    assert [body.devices for _, body in bench.take(LockRequest)] == [("d1",)]


def test_an_attempt_given_back_under_the_leader_before_stays_given_back() -> None:
    bench = acquiring(Strategy.PRIORITY)
    bench.hear(Wound(bench.run().run, 1, DeviceId("b1")), "c2")
    bench.new_leader()
    assert bench.run().attempt == 2
    assert given_back(bench) == [("c2", 1, ("b1",)), ("c3", 1, ("d1",))]
    assert bench.take(LockRequest) == []


def test_a_resting_run_asks_at_once() -> None:
    bench = acquiring(Strategy.OPTIMISTIC)
    bench.refuse("d1")
    bench.release("b1", attempt=1)
    bench.release("d1", attempt=1)
    bench.new_leader()
    assert [(to, body.attempt) for to, body in bench.take(LockRequest)] == [("c2", 2), ("c3", 2)]


def test_executing_fences_all_devices_before_it_commands() -> None:
    bench = executing()
    bench.new_leader()
    fence = bench.serving.fence
    assert fences(bench) == [("c2", ("b1",), fence), ("c3", ("d1",), fence)]
    bench.outcome(0)
    bench.fenced("b1")
    assert commanded(bench) == [] and bench.run().progress == ()
    bench.wait(1200)
    assert fences(bench) == [("c3", ("d1",), fence)], "repeated until it is answered"
    bench.fenced("d1")
    assert commanded(bench) == [("b1", 0)]
    bench.fenced("d1")
    bench.outcome(0)
    bench.outcome(1)
    assert bench.stage is Stage.RELEASING_LOCKS and bench.run().reason == ""


def test_outcomes_that_devices_know_are_taken_over() -> None:
    bench = executing()
    bench.new_leader()
    bench.fenced("d1")
    bench.fenced("b1", steps=[StepState(0, Outcome.DONE, "")])
    assert commanded(bench) == [("d1", 1)]
    bench.new_leader()
    bench.fenced("d1", steps=[StepState(1, Outcome.DONE, "")])
    bench.fenced("b1", steps=[StepState(0, Outcome.DONE, "")])
    assert commanded(bench) == [] and bench.stage is Stage.RELEASING_LOCKS


def test_steps_under_way_or_refused_are_asked_for_again() -> None:
    for outcome in (None, Outcome.REFUSED):
        bench = executing()
        bench.new_leader()
        bench.fenced("d1")
        bench.fenced("b1", steps=[StepState(0, outcome, "")])
        assert commanded(bench) == [("b1", 0)]


def test_a_failure_that_a_device_knows_fails_the_run() -> None:
    bench = executing()
    bench.new_leader()
    bench.fenced("d1")
    bench.fenced("b1", steps=[StepState(0, Outcome.FAILED, "jammed")])
    assert commanded(bench) == [] and bench.run().reason == "b1: set: jammed"


def test_a_lost_lock_fails_the_run() -> None:
    bench = executing()
    bench.new_leader()
    bench.fenced("b1")
    bench.fenced("d1", lost=["d1"])
    assert bench.run().reason == "lost the lock of d1" and commanded(bench) == []
    assert given_back(bench) == [("c2", 1, ("b1",)), ("c3", 1, ("d1",))]


def test_answers_to_another_fence_or_attempt_do_not_count() -> None:
    bench = executing()
    old = bench.serving.fence
    bench.new_leader()
    run = bench.run()
    for attempt, fence in ((1, old), (2, bench.serving.fence)):
        for held in run.held:
            device = FencedDevice(held.device, None, ())
            bench.hear(Fenced(run.run, attempt, fence, (device,), Era()), "c2")
    assert bench.run() == run and commanded(bench) == []


def test_a_leader_older_than_the_grant_cannot_deny_it_to_a_new_leader() -> None:
    bench = executing()
    bench.new_leader()
    denial = FencedDevice(DeviceId("b1"), None, ())
    body = Fenced(bench.run().run, 1, bench.serving.fence, (denial,), Era())
    bench.hear(body, "c2", by=Fence(0, Ballot(7, 0)))
    bench.fenced("d1")
    assert bench.run().reason == "" and commanded(bench) == []
    bench.hear(body, "c2")
    assert bench.run().reason == "lost the lock of b1"


def test_wounds_are_ignored_while_fencing() -> None:
    bench = executing()
    bench.new_leader()
    before = bench.run()
    bench.hear(Wound(before.run, 1, DeviceId("b1")), "c2")
    assert bench.run() == before


def test_releases_go_on() -> None:
    bench = executing()
    bench.outcome(0)
    bench.outcome(1)
    bench.release("b1")
    bench.new_leader()
    assert given_back(bench) == [("c3", 1, ("d1",))] and fences(bench) == []
    bench.release("d1")
    assert bench.stage is None and bench.ended == ""


def test_an_outcome_that_was_not_committed_is_found_out_again() -> None:
    bench = executing()
    bench.commits = False
    bench.outcome(0)
    assert commanded(bench) == [("b1", 0)]
    bench.new_leader()
    assert bench.run().progress == ()
    bench.fenced("d1")
    bench.fenced("b1", steps=[StepState(0, Outcome.DONE, "")])
    assert commanded(bench) == [("d1", 1)]


# -- an outage ---------------------------------------------------------------------------------------------


def test_executing_is_confirmed_after_an_outage() -> None:
    bench = executing()
    bench.outcome(0)
    bench.new_leader(lossy=True)
    assert bench.stage is Stage.ACQUIRING_LOCKS and bench.run().era < bench.serving.era
    assert [to for to, _, _ in fences(bench)] == ["c2", "c3"] and bench.take(LockRequest) == []
    bench.hear(Wound(bench.run().run, 1, DeviceId("b1")), "c2")
    assert bench.run().attempt == 1, "not woundable"
    held = bench.run().held
    bench.grant("b1")
    assert bench.run().held == held, "nor does a grant change what is to be confirmed"
    bench.hear(RunQuery(None, R, (DeviceId("b1"),), None), "c2")
    ((_, state),) = bench.take(RunState)
    assert [one.device for one in state.held] == ["b1"], "it answers while it asks"
    bench.fenced("b1")
    bench.new_leader()
    assert bench.stage is Stage.ACQUIRING_LOCKS, "the next leader confirms too"
    bench.fenced("b1")
    bench.fenced("d1")
    assert bench.stage is Stage.EXECUTING and bench.run().era == bench.serving.era
    assert commanded(bench) == [("d1", 1)]


def test_executing_fails_after_an_outage_if_a_lock_is_gone() -> None:
    bench = executing()
    bench.new_leader(lossy=True)
    bench.fenced("b1")
    bench.fenced("d1", lost=["d1"])
    assert bench.run().reason.startswith("outage") and commanded(bench) == []
    bench.release("b1")
    bench.release("d1")
    assert bench.ended == "outage: lost the lock of d1"


def test_a_lock_granted_anew_is_not_the_one_that_was_held() -> None:
    bench = executing()
    bench.new_leader(lossy=True)
    run = bench.run()
    bench.fenced("b1")
    other = FencedDevice(DeviceId("d1"), bench.stamp(), ())
    bench.hear(Fenced(run.run, 1, bench.serving.fence, (other,), Era()), "c3")
    assert bench.run().reason == "outage: lost the lock of d1"


def test_acquiring_fails_after_an_outage() -> None:
    bench = acquiring()
    bench.new_leader(lossy=True)
    assert bench.run().stage is Stage.RELEASING_LOCKS
    assert given_back(bench) == [("c2", 1, ("b1",)), ("c3", 1, ("d1",))], "whatever it can have asked for"
    bench.release("b1")
    bench.release("d1")
    assert bench.ended == "outage: how far it came is not known"


def test_releases_go_on_after_an_outage() -> None:
    bench = executing()
    bench.outcome(0, Outcome.FAILED, "jammed")
    bench.new_leader(lossy=True)
    assert fences(bench) == [] and len(given_back(bench)) == 2
    bench.release("b1")
    bench.release("d1")
    assert bench.ended == "b1: set: jammed"


def test_fenced_of_an_older_era_does_not_count() -> None:
    bench = executing()
    bench.new_leader()
    era = Era(4, bench.ballot)
    bench.hear(RunQuery(None, R, (DeviceId("d1"),), era), "c3")
    bench.fenced("b1")
    bench.fenced("d1")
    assert commanded(bench) == []
    bench.fenced("d1", era=era)
    assert commanded(bench) == [("b1", 0)]


# -- a newer version ---------------------------------------------------------------------------------------


def test_a_run_keeps_its_commands_under_a_newer_version() -> None:
    bench = executing()
    bench.new_leader(made=program(routine("a1"), version=2))
    assert [step.device for step in bench.run().steps] == ["b1", "d1"]
    assert isinstance(bench.run().steps[0], RoutineStep)
    bench.fenced("b1")
    bench.fenced("d1")
    assert commanded(bench) == [("b1", 0)]


def test_a_removed_routine_finishes_its_run_and_drops_waiting_firings() -> None:
    bench = executing()
    bench.hear(Fire(R, "again"))
    bench.new_leader(made=program(version=2))
    assert bench.told(Dropped) == [Dropped("the routine was removed")] and bench.routine().waiting == ()
    bench.fenced("b1")
    bench.fenced("d1")
    bench.outcome(0)
    bench.outcome(1)
    bench.release("b1")
    bench.release("d1")
    assert set(bench.records) == set(), "its record goes with its run"


def test_a_removed_routine_without_a_run_is_dropped() -> None:
    bench = Bench(program(routine(when=is_true("b1"))))
    bench.reads("b1", n=1, on=True)
    bench.new_leader(made=program(version=2))
    assert bench.records == {}


def test_an_unknown_routine_is_reported_after_a_commit() -> None:
    """Another leader may serve by now, with a version that has the routine."""
    bench = Bench(program(version=2))
    entries = len(bench.entries)
    bench.hear(Fire(R, "q"))
    ((_, answer),) = bench.take(Ordered)
    assert answer.why_not == "c1 has no routine r"
    assert len(bench.entries) == entries + 1


def test_a_routine_added_again_is_another_one() -> None:
    bench = Bench(program(routine(when=is_true("b1"))))
    bench.reads("b1", n=1, on=True)
    bench.hear(Fire(R, "q"))
    before = bench.routine()
    bench.new_leader(made=program(routine(when=is_true("b1"), birth=3), version=3))
    bench.reads("b1", n=1, on=True)
    assert len(bench.told(Fired)) == 3, "its clause was never known before"
    bench.hear(Fire(R, "q"))
    assert len(bench.told(Fired)) == 4
    assert bench.routine().birth == 3 and bench.routine().requests[0][1] > before.requests[0][1]


def test_a_routine_added_again_waits_for_the_old_run() -> None:
    bench = executing()
    bench.hear(Fire(R, "waits"))
    old = bench.run().run
    bench.new_leader(made=program(routine(birth=3, steps=(command("b2"),)), version=3))
    assert bench.told(Dropped) == [Dropped("the routine was removed")]
    bench.hear(Fire(R, "q"))
    assert bench.run().run == old and len(bench.routine().waiting) == 1
    bench.fenced("b1")
    bench.fenced("d1")
    bench.outcome(0)
    bench.outcome(1)
    bench.release("b1")
    bench.release("d1")
    assert bench.run().run.birth == 3 and bench.run().steps[0].device == "b2"
