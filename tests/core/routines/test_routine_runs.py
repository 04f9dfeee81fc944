"""The life of a run: locks by each strategy, wounds, refusals, commands, releases, late letters."""

import pytest
from routine_bench import OWN, START_MS, Bench, command, is_true, program, routine

from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.program import ProtocolSettings, RoutineProgram
from comesh.core.records import GroupRecord, Outcome, Stage
from comesh.core.routines.answers import MAX_OVERTAKEN
from comesh.core.routines.locks import onward
from comesh.core.routines.runs import MAX_REST_MS
from comesh.core.stamps import Ballot, Era, Fence, RunId, Stamp
from comesh.core.strategies import Batch, LockOrder, Strategy
from comesh.core.traces import Failed, Finished, LockGranted, LockQueued, what_of
from comesh.core.work_messages import (
    Command,
    CommandState,
    Fire,
    LockAnswer,
    LockRequest,
    LockState,
    Release,
    Released,
    RunQuery,
    RunState,
    StepState,
    Work,
    Wound,
)

R = RoutineId("r")
C2 = GroupId("c2")


def fired(*devices: str, strategy: Strategy = Strategy.SEQUENTIAL, **settings: object) -> Bench:
    return fire(Bench(program(routine(*devices, strategy=strategy), **settings)))


def fire(bench: Bench) -> Bench:
    bench.hear(Fire(R, f"q{bench.now_ms}"))
    return bench


def asked(bench: Bench) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(to, body.attempt, body.devices) for to, body in bench.take(LockRequest)]


def given_back(bench: Bench) -> list[tuple[str, int, tuple[str, ...]]]:
    return [(to, body.attempt, body.devices) for to, body in bench.take(Release)]


def commanded(bench: Bench) -> list[tuple[str, int]]:
    return [(body.device, body.origin.step) for _, body in bench.take(Command)]


def executing(*devices: str, made: RoutineProgram | None = None) -> Bench:
    """A run that has its locks, of devices of one other group."""
    bench = fire(Bench(program(made or routine(*devices))))
    bench.grant(*dict.fromkeys(step.device for step in bench.run().steps))
    assert bench.stage is Stage.EXECUTING
    bench.said.clear()
    return bench


# -- getting the locks -------------------------------------------------------------------------------------


def test_sequential_asks_one_group_after_the_other() -> None:
    bench = fired("d1", "b2", "b1", "a1", "b2")
    assert asked(bench) == [("c1", 1, ("a1",))]
    bench.grant("a1")
    assert asked(bench) == [("c2", 1, ("b1", "b2"))]
    bench.grant("b1")
    bench.queue("b2")
    assert asked(bench) == [] and bench.told(LockQueued) == [LockQueued(DeviceId("b2"))]
    bench.queue("b2")
    assert bench.told(LockQueued) == [LockQueued(DeviceId("b2"))], "told once"
    bench.grant("b2")
    assert asked(bench) == [("c3", 1, ("d1",))]
    assert commanded(bench) == []
    bench.grant("d1")
    assert bench.stage is Stage.EXECUTING
    assert commanded(bench) == [("d1", 0)], "in the order of the steps"


def test_a_request_carries_the_requests_that_follow() -> None:
    bench = fired("b1", "d1", "b2")
    ((to, request),) = bench.take(LockRequest)
    assert (to, request.devices, request.onward) == ("c2", ("b1", "b2"), (("c3", ("d1",)),))
    assert request.home is None, "who sends it"


def test_the_next_group_is_not_asked_twice_where_the_request_was_passed_on() -> None:
    bench = fired("b1", "d1")
    bench.said.clear()
    bench.grant("b1", passed_on="c3")
    assert asked(bench) == []
    bench.wait(1200)
    assert asked(bench) == [("c3", 1, ("d1",))], "but repeated as if it had been asked"
    bench.grant("d1")
    assert bench.stage is Stage.EXECUTING


def test_an_answer_to_a_passed_on_request_may_come_first() -> None:
    bench = fired("b1", "d1")
    bench.said.clear()
    bench.grant("d1")
    assert bench.stage is Stage.ACQUIRING_LOCKS and asked(bench) == []
    bench.grant("b1", passed_on="c3")
    assert bench.stage is Stage.EXECUTING


def test_locks_passed_on_in_an_earlier_attempt_are_requested_again() -> None:
    bench = fired("b1", "d1")
    bench.grant("b1", passed_on="c3")
    bench.hear(Wound(bench.run().run, 1, DeviceId("b1")), "c2")
    bench.release("b1", attempt=1)
    bench.release("d1", attempt=1)
    bench.said.clear()
    bench.grant("b1", attempt=2)
    assert asked(bench) == [("c3", 2, ("d1",))]


def test_a_request_is_not_passed_on_to_unreleased_devices() -> None:
    bench = fired("b1", "d1")
    bench.hear(Wound(bench.run().run, 1, DeviceId("b1")), "c2")
    bench.said.clear()
    bench.release("b1", attempt=1)
    ((_, request),) = bench.take(LockRequest)
    assert (request.attempt, request.onward) == (2, ()), "the release of d1 could be overtaken"


@pytest.mark.parametrize("strategy", [Strategy.OPTIMISTIC, Strategy.PRIORITY])
def test_requests_for_all_locks_at_once_are_not_passed_on(strategy: Strategy) -> None:
    bench = fired("b1", "d1", strategy=strategy)
    assert [request.onward for _, request in bench.take(LockRequest)] == [(), ()]


def test_requests_are_repeated_until_all_is_held() -> None:
    bench = fired("b1", "b2")
    asked(bench)
    bench.grant("b2")
    bench.wait(1200)
    assert asked(bench) == [("c2", 1, ("b1",))]
    bench.wait(60_000)
    assert 5 <= len(asked(bench)) <= 10, "the pause doubles to 10 s"


def test_requests_are_repeated_at_once_when_a_group_is_reached() -> None:
    bench = fired("b1", "d1", strategy=Strategy.PRIORITY)
    bench.wait(30_000)
    asked(bench)
    bench.reach("c2")
    assert asked(bench) == [("c2", 1, ("b1",))], "of this group alone"
    bench.wait(1200)
    assert ("c2", 1, ("b1",)) in asked(bench)


def test_a_request_just_sent_is_not_repeated() -> None:
    bench = fired("b1")
    asked(bench)
    bench.wait(500)
    bench.reach("c2")
    bench.reach("c2")
    assert asked(bench) == []


def test_one_by_one() -> None:
    bench = fired("b2", "b1", "a1", batch=Batch.NONE)
    for device in ("a1", "b1", "b2"):
        assert [devices for _, _, devices in asked(bench)] == [(device,)]
        bench.grant(device)
    assert bench.stage is Stage.EXECUTING


@pytest.mark.parametrize("batch", Batch)
def test_by_device_it_is_one_by_one_too(batch: Batch) -> None:
    bench = fired("d1", "b2", "b1", "a1", batch=batch, order=LockOrder.DEVICE)
    for device in ("a1", "b1", "b2", "d1"):
        assert [devices for _, _, devices in asked(bench)] == [(device,)]
        bench.grant(device)
    assert bench.stage is Stage.EXECUTING


@pytest.mark.parametrize("strategy", [Strategy.OPTIMISTIC, Strategy.PRIORITY])
def test_other_strategies_ask_for_all_at_once(strategy: Strategy) -> None:
    bench = fired("d1", "b2", "b1", strategy=strategy)
    assert asked(bench) == [("c2", 1, ("b1", "b2")), ("c3", 1, ("d1",))]
    bench.grant("d1")
    bench.grant("b1", "b2")
    assert bench.stage is Stage.EXECUTING and len(bench.run().held) == 3


def test_an_answer_that_comes_twice_counts_once() -> None:
    bench = fired("b1", "b2")
    body = LockState(bench.run().run, 1, (LockAnswer(DeviceId("b1"), bench.stamp(), Era()),))
    bench.hear(body, "c2")
    entries = len(bench.entries)
    bench.hear(body, "c2")
    assert len(bench.entries) == entries and bench.told(LockGranted) == [
        LockGranted(DeviceId("b1"), "1:0.0:1")
    ]


def test_a_refusal_gives_all_back_and_rests() -> None:
    bench = fired("b1", "d1", strategy=Strategy.OPTIMISTIC)
    asked(bench)
    bench.grant("b1")
    bench.refuse("d1")
    assert bench.run().attempt == 2 and bench.run().held == ()
    assert given_back(bench) == [("c2", 1, ("b1",)), ("c3", 1, ("d1",))]
    assert asked(bench) == []
    bench.release("b1", attempt=1)
    bench.release("d1", attempt=1)
    assert asked(bench) == [], "not before the rest is over"
    bench.wait(450)
    assert asked(bench) == [("c2", 2, ("b1",)), ("c3", 2, ("d1",))]
    bench.refuse("d1", attempt=1)
    assert bench.run().attempt == 2, "a late refusal of an older attempt"


def test_rests_grow_up_to_a_bound() -> None:
    bench = fired("b1", strategy=Strategy.OPTIMISTIC)
    rests = []
    for attempt in range(1, 12):
        bench.refuse("b1")
        bench.release("b1", attempt=attempt)
        asked(bench)
        began = bench.now_ms
        while not asked(bench):
            bench.wait(10)
        rests.append(bench.now_ms - began)
    assert rests[0] <= 460 and 2 * rests[0] < rests[4]
    assert max(rests) <= 1.5 * MAX_REST_MS + 10


def test_a_new_attempt_waits_for_the_release_of_the_one_before() -> None:
    bench = fired("b1", "d1", strategy=Strategy.PRIORITY)
    asked(bench)
    bench.hear(Wound(bench.run().run, 1, DeviceId("b1")), "c2")
    assert asked(bench) == []
    bench.release("d1", attempt=1)
    assert asked(bench) == [("c3", 2, ("d1",))], "the other device needs no waiting"
    bench.wait(1200)
    assert ("c2", 1, ("b1",)) in given_back(bench), "repeated until acknowledged"
    bench.release("b1", attempt=1)
    bench.release("b1", attempt=1)
    assert [one for one in asked(bench) if one[0] == "c2"] == [("c2", 2, ("b1",))]
    bench.grant("b1")
    bench.grant("d1")
    assert bench.stage is Stage.EXECUTING


def test_an_older_acknowledgement_does_not_end_a_newer_release() -> None:
    bench = fired("b1", strategy=Strategy.PRIORITY)
    run = bench.run().run
    bench.hear(Wound(run, 1, DeviceId("b1")), "c2")
    bench.hear(Wound(run, 2, DeviceId("b1")), "c2")
    assert bench.run().to_release == (("b1", "c2", 2),) and bench.run().attempt == 3
    bench.release("b1", attempt=1)
    assert bench.run().to_release == (("b1", "c2", 2),)
    bench.release("b1", attempt=2)
    assert bench.run().to_release == ()


def test_an_unknown_device_fails_the_run() -> None:
    bench = fired("a1", "b1", "b2")
    bench.grant("a1")
    bench.said.clear()
    bench.refuse("b1", "unknown")
    assert bench.stage is Stage.RELEASING_LOCKS
    assert given_back(bench) == [("c1", 1, ("a1",)), ("c2", 1, ("b2",))]
    bench.release("a1")
    bench.release("b2")
    assert bench.ended == "b1: no such device" and bench.told(Failed) == [Failed(bench.ended)]


def test_attempts_behind_a_mark_go_beyond_it_but_not_for_ever() -> None:
    bench = fired("b1")
    bench.refuse("b1", "released")
    assert bench.run().attempt == 2 and bench.stage is Stage.ACQUIRING_LOCKS
    for _ in range(MAX_OVERTAKEN):
        bench.release("b1")
        bench.refuse("b1", "released")
    assert bench.stage is Stage.RELEASING_LOCKS
    bench.release("b1")
    assert bench.ended == "outage: b1 has released a later run"


def test_grants_of_an_attempt_that_an_outage_lost() -> None:
    bench = fired("b1")
    bench.grant("b1", attempt=4)
    assert bench.run().attempt == 5 and bench.stage is Stage.ACQUIRING_LOCKS
    assert given_back(bench) == [("c2", 4, ("b1",))]


# -- wounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", Strategy)
def test_a_wounded_run_gives_its_attempt_back(strategy: Strategy) -> None:
    bench = fired("b1", "d1", strategy=strategy)
    bench.grant("b1")
    bench.said.clear()
    bench.hear(Wound(bench.run().run, 1, DeviceId("b1")), "c2")
    run = bench.run()
    assert (run.stage, run.attempt, run.held) == (Stage.ACQUIRING_LOCKS, 2, ())
    assert given_back(bench) == [("c2", 1, ("b1",)), ("c3", 1, ("d1",))]
    bench.hear(Wound(run.run, 1, DeviceId("b1")), "c2")
    assert bench.run().attempt == 2, "the same wound again"
    bench.release("b1", attempt=1)
    bench.release("d1", attempt=1)
    assert bool(asked(bench)) is (strategy is not Strategy.OPTIMISTIC), "optimistic ones rest"


def test_locks_requested_one_by_one_are_released_up_to_the_last() -> None:
    bench = fired("a1", "b1", "d1", batch=Batch.NONE)
    bench.grant("a1")
    bench.said.clear()
    bench.hear(Wound(bench.run().run, 1, DeviceId("a1")), OWN)
    assert given_back(bench) == [("c1", 1, ("a1",)), ("c2", 1, ("b1",))]


def test_locks_that_may_have_been_passed_on_are_released_too() -> None:
    bench = fired("a1", "b1", "d1")
    bench.said.clear()
    bench.hear(Wound(bench.run().run, 1, DeviceId("a1")), OWN)
    assert given_back(bench) == [("c1", 1, ("a1",)), ("c2", 1, ("b1",)), ("c3", 1, ("d1",))]


@pytest.mark.parametrize("answered", [(), ("d1",)])
def test_a_run_past_a_group_that_lost_updates_gives_back(answered: tuple[str, ...]) -> None:
    """Its grant may be lost, and with it that the run came first: it must not hold a later lock and wait."""
    bench = fired("b1", "d1")
    for device in answered:
        bench.grant(device)
    era = Era(1, Ballot(1, 1))
    for _ in range(2):
        bench.hear(RunQuery(None, R, (DeviceId("b1"),), era), "c2")
    assert bench.run().attempt == 2, "once"
    assert [(to, body.devices) for to, body in bench.take(Release)] == [("c2", ("b1",)), ("c3", ("d1",))]
    states = [body for _, body in bench.take(RunState)]
    assert [(state.attempt, state.held, state.era) for state in states] == [(2, (), era)] * 2


def test_an_outage_of_the_last_or_a_held_group_changes_nothing() -> None:
    bench = fired("b1", "d1")
    bench.hear(RunQuery(None, R, (DeviceId("d1"),), Era(1, Ballot(1, 1))), "c3")
    bench.grant("b1")
    bench.hear(RunQuery(None, R, (DeviceId("b1"),), Era(1, Ballot(1, 1))), "c2")
    assert bench.run().attempt == 1


def test_an_outage_of_the_own_group_leaves_runs_alone() -> None:
    """Earlier runs are taken up by another rule, and the group passes nothing on."""
    bench = fired("a1", "b1")
    bench.hear(RunQuery(None, R, (DeviceId("a1"),), Era(1, Ballot(1, 1))), OWN)
    assert bench.run().attempt == 1


@pytest.mark.parametrize(
    ("home", "passed_on"),
    [("c1", []), ("c2", []), ("c3", ["b1"]), ("c4", ["b1", "d1"])],
)
def test_a_request_is_passed_on_up_to_the_group_of_the_run(home: str, passed_on: list[str]) -> None:
    """That stages its own grants, in the same step as what follows from them."""
    run, settings = fired("a1", "b1", "d1").run(), ProtocolSettings()
    following = onward(run, settings, GroupId(home))
    assert [device for _, devices in following for device in devices] == passed_on


def test_executing_and_releasing_ignore_wounds() -> None:
    bench = executing("b1")
    wound = Wound(bench.run().run, 1, DeviceId("b1"))
    before = bench.run()
    bench.hear(wound, "c2")
    assert bench.run() == before and bench.said == []
    bench.outcome(0)
    before = bench.run()
    given_back(bench)
    bench.hear(wound, "c2")
    assert bench.run() == before and given_back(bench) == []


def test_a_wound_of_an_ended_run_frees_the_lock() -> None:
    bench = executing("b1")
    run = bench.run().run
    bench.outcome(0)
    bench.release("b1")
    given_back(bench)
    bench.hear(Wound(run, 1, DeviceId("b1")), "c2")
    assert given_back(bench) == [("c2", 1, ("b1",))]


# -- late grants -------------------------------------------------------------------------------------------


def test_a_late_grant_of_an_older_attempt_is_given_back() -> None:
    bench = fired("b1", strategy=Strategy.OPTIMISTIC)
    bench.refuse("b1")
    given_back(bench)
    bench.grant("b1", attempt=1)
    assert given_back(bench) == [], "its release is under way"
    bench.release("b1", attempt=1)
    bench.grant("b1", attempt=1)
    assert given_back(bench) == [("c2", 1, ("b1",))] and bench.run().held == ()


def test_a_late_grant_of_an_ended_run_is_given_back() -> None:
    bench = executing("b1")
    run = bench.run().run
    bench.outcome(0)
    bench.grant("b1", run=run, attempt=1)
    assert len(given_back(bench)) == 1, "the one of its end only"
    bench.release("b1")
    bench.grant("b1", run=run, attempt=1)
    assert given_back(bench) == [("c2", 1, ("b1",))]


def test_a_deposed_leader_frees_no_lock_of_a_later_run() -> None:
    bench = Bench(program(routine("b1")))
    later = RunId(R, 1, Stamp(1, Ballot(5, 1), 1))
    bench.grant("b1", run=later, attempt=1)
    bench.hear(Wound(later, 1, DeviceId("b1")), "c2")
    assert bench.said == []


def test_a_waiting_run_is_not_an_ended_one() -> None:
    bench = fired("b1")
    bench.hear(Fire(R, "again"))
    (firing,) = bench.routine().waiting
    given_back(bench)
    bench.grant("b1", run=firing.run, attempt=1)
    assert given_back(bench) == []


# -- eras of other groups ----------------------------------------------------------------------------------


def test_grants_of_an_older_era_are_ignored_once_a_newer_one_was_asked_with() -> None:
    bench = fired("b1")
    era = Era(3, Ballot(2, 0))
    bench.hear(RunQuery(None, R, (DeviceId("b1"),), era), "c2")
    group = bench.records["group"]
    assert isinstance(group, GroupRecord) and group.eras == {"c2": era}
    ((to, state),) = bench.take(RunState)
    assert to == "c2" and state.held == () and state.era == era and state.run == bench.run().run
    bench.grant("b1")
    assert bench.run().held == () and bench.stage is Stage.ACQUIRING_LOCKS
    bench.grant("b1", era=era)
    assert bench.stage is Stage.EXECUTING


def test_a_query_is_answered_after_the_commit_and_under_a_lease() -> None:
    bench = fired("b1")
    query = RunQuery(None, R, (DeviceId("b1"),), Era(3, Ballot(2, 0)))
    bench.commits = False
    bench.hear(query, "c2")
    assert bench.take(RunState) == []
    bench.commits = True
    bench.step(lambda step: None)
    assert len(bench.take(RunState)) == 1
    bench.serving.lease_until_ms = bench.now_ms
    bench.hear(query, "c2")
    assert bench.take(RunState) == []


def test_queries_tell_live_waiting_and_ended_runs_apart() -> None:
    bench = executing("b1", "b2")
    run = bench.run().run
    bench.hear(Fire(R, "again"))
    (firing,) = bench.routine().waiting

    def state(of: RunId | None, era: Era | None = None) -> RunState:
        bench.hear(RunQuery(of, R, (DeviceId("b2"),), era), "c2")
        ((_, found),) = bench.take(RunState)
        return found

    live = state(run)
    assert (live.run, live.stage, live.attempt) == (run, Stage.EXECUTING, 1)
    assert [one.device for one in live.held] == ["b2"] and live.fired_ms == START_MS
    assert state(None) == live
    assert state(firing.run).stage is Stage.ACQUIRING_LOCKS and state(firing.run).held == ()
    ended = RunId(R, 1, Stamp(0, Ballot(0, 0), 1))
    assert (state(ended).run, state(ended).stage) == (ended, None)
    assert state(ended, Era(1, Ballot(1, 0))).run == run, "who reconciles wants to know what is live"
    bench.outcome(0)
    bench.outcome(1)
    assert (state(run).stage, state(run).held) == (Stage.RELEASING_LOCKS, ()), (
        "what is given back is not held"
    )


# -- commands ----------------------------------------------------------------------------------------------


def test_commands_go_one_at_a_time_and_are_repeated() -> None:
    bench = fired("b1", "b2")
    bench.grant("b1", "b2")
    ((to, body),) = bench.take(Command)
    assert to == "c2" and body.fence == bench.serving.fence and (body.device, body.origin.step) == ("b1", 0)
    bench.outcome(0, None)
    bench.wait(1200)
    assert commanded(bench) == [("b1", 0)]
    bench.outcome(0)
    assert commanded(bench) == [("b2", 1)]
    bench.outcome(0)
    assert commanded(bench) == [] and len(bench.run().progress) == 1
    bench.outcome(1)
    assert bench.stage is Stage.RELEASING_LOCKS
    assert given_back(bench) == [("c2", 1, ("b1", "b2"))]
    bench.release("b1", "b2")
    assert bench.stage is None and bench.ended == "" and not bench.part.busy
    assert len(bench.told(Finished)) == 1
    bench.wait(60_000)
    assert bench.take(Release) == bench.take(Command) == [], "nothing is repeated"


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.UNKNOWN, Outcome.REFUSED])
def test_must_fails_and_best_effort_goes_on(outcome: Outcome) -> None:
    made = routine(steps=(command("b1", best_effort=True), command("b2"), command("b1")))
    bench = executing(made=made)
    bench.outcome(0, outcome, "no answer")
    assert commanded(bench) == [("b2", 1)]
    bench.outcome(1, outcome, "no answer")
    assert commanded(bench) == [] and bench.run().reason == "b2: set: no answer"
    assert given_back(bench) == [("c2", 1, ("b1", "b2"))]
    bench.release("b1", "b2")
    assert bench.ended == "b2: set: no answer"


def _together(*, best_effort: bool = False) -> RoutineProgram:
    """b1 and b2 at once, then d1, with which a second command to b2 goes."""
    return routine(
        steps=(
            command("b1"),
            command("b2", together=True, best_effort=best_effort),
            command("d1"),
            command("b2", together=True),
        )
    )


def test_commands_together_go_at_once_and_the_next_waits_for_all_of_them() -> None:
    bench = executing_together(_together())
    assert commanded(bench) == [("b1", 0), ("b2", 1)]
    bench.outcome(1)
    assert bench.run().progress == () and commanded(bench) == []
    bench.outcome(1)
    bench.outcome(0)
    assert len(bench.run().progress) == 2
    assert commanded(bench) == [("d1", 2), ("b2", 3)]
    bench.outcome(3)
    bench.outcome(2)
    assert bench.stage is Stage.RELEASING_LOCKS and bench.run().reason == ""


def test_an_early_result_is_not_committed_and_is_sent_again() -> None:
    bench = executing_together(_together())
    bench.outcome(1)
    bench.wait(1200)
    assert sorted(commanded(bench)) == [("b1", 0), ("b1", 0), ("b2", 1), ("b2", 1)]


@pytest.mark.parametrize("best_effort", [True, False])
def test_one_of_several_together_fails(best_effort: bool) -> None:
    bench = executing_together(_together(best_effort=best_effort))
    bench.outcome(1, Outcome.FAILED, "jammed")
    assert bench.stage is Stage.EXECUTING
    bench.outcome(0)
    assert (bench.run().reason == "") == best_effort


def test_a_device_that_is_named_twice_is_commanded_once_at_a_time() -> None:
    made = routine(steps=(command("b1"), command("b1", together=True)))
    bench = executing_together(made)
    assert commanded(bench) == [("b1", 0)]


def executing_together(made: RoutineProgram) -> Bench:
    """A run that has its locks and has just sent its first commands."""
    bench = fire(Bench(program(made)))
    bench.grant(*dict.fromkeys(step.device for step in bench.run().steps))
    assert bench.stage is Stage.EXECUTING
    return bench


def test_a_refusal_to_an_earlier_leader_is_ignored() -> None:
    bench = executing("b1")
    old = bench.serving.fence
    bench.new_leader()
    bench.fenced("b1")
    bench.outcome(0, Outcome.REFUSED, "old fence", fence=old)
    assert bench.stage is Stage.EXECUTING and bench.run().progress == ()
    bench.outcome(0, Outcome.DONE, fence=old)
    assert bench.stage is Stage.RELEASING_LOCKS, "but what it got done is done"


def test_a_leader_older_than_the_grant_cannot_deny_it() -> None:
    bench = executing("b1")
    state = StepState(0, Outcome.REFUSED, "the run does not hold the lock")
    body = CommandState(bench.run().run, 1, DeviceId("b1"), bench.serving.fence, state)
    bench.hear(body, "c2", by=Fence(0, Ballot(7, 0)))
    assert bench.run().progress == ()
    bench.hear(body, "c2", by=Fence(1, Ballot(0, 0)))
    assert bench.run().reason == "b1: set: the run does not hold the lock"


def test_a_group_with_an_older_version_may_not_know_the_device() -> None:
    bench = Bench(program(routine("b1"), version=4))
    fire(bench)
    answer = LockAnswer(DeviceId("b1"), None, Era(), "unknown")
    bench.hear(LockState(bench.run().run, 1, (answer,)), "c2", version=3)
    assert bench.stage is Stage.ACQUIRING_LOCKS
    bench.hear(LockState(bench.run().run, 1, (answer,)), "c2", version=4)
    assert bench.stage is None and bench.ended == "b1: no such device"


def test_outcomes_of_another_attempt_are_ignored() -> None:
    bench = executing("b1")
    bench.outcome(0, attempt=2)
    assert bench.run().progress == ()


def test_a_routine_without_steps_ends_at_once() -> None:
    bench = fired()
    assert bench.stage is None and bench.ended == "" and len(bench.entries) == 1


def test_locks_are_released_group_by_group() -> None:
    bench = fired("b1", "d1")
    bench.grant("b1")
    bench.grant("d1")
    bench.outcome(0)
    bench.outcome(1)
    assert given_back(bench) == [("c2", 1, ("b1",)), ("c3", 1, ("d1",))]
    bench.release("b1")
    bench.release("b1")
    assert bench.stage is Stage.RELEASING_LOCKS
    bench.wait(1200)
    assert given_back(bench) == [("c3", 1, ("d1",))]
    bench.release("d1")
    assert bench.stage is None


# -- one cluster, two commits ------------------------------------------------------------------------------


def test_a_run_within_one_cluster_costs_two_commits() -> None:
    bench = Bench(program(routine("a1", when=is_true("b1"))))

    def at_home(body: Work) -> list[Work]:
        match body:
            case LockRequest():
                answers = tuple(LockAnswer(device, bench.stamp(), Era()) for device in body.devices)
                return [LockState(body.run, body.attempt, answers)]
            case Release():
                return [Released(body.run, body.attempt, body.devices)]
            case Command():
                return [CommandState(body.origin.run, 1, body.device, body.fence, StepState(0, None, ""))]
            case _:
                return []

    bench.at_home = at_home
    bench.reads("b1", n=1, on=True)
    assert len(bench.entries) == 1 and bench.stage is Stage.EXECUTING
    assert commanded(bench) == [("a1", 0)]
    bench.outcome(0)
    assert len(bench.entries) == 2 and bench.stage is None and bench.ended == ""
    assert [what_of(one.trace) for one in bench.traces] == [
        *("fired", "attempt_began", "lock_asked", "lock_granted", "executing", "command_sent"),
        *("command_answered", "releasing", "finished"),
    ]
    assert all(timer.what != "resend" or timer.of == "" for timer in bench.timers), (
        "nothing is left to repeat"
    )
