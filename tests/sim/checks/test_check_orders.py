"""Tests of the checks of orders and of answers to people."""

from told_groups import Told, call, config, ended, gone, held, run, run_id

from comesh.core.actions import Action, Origin
from comesh.core.effects import Answered
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.journal import DocumentKept
from comesh.core.plan import DEPLOYMENT
from comesh.core.records import AuditRecord, DocumentRecord, Firing, Kind, RoutineRecord, Stage, Standing
from comesh.core.stamps import OPENING, Ballot, Fence, RunId
from comesh.core.traces import ByHand
from comesh.core.work_messages import Command, GroupMessage
from comesh.sim.checks import Promise
from comesh.sim.checks.answers import Answers
from comesh.sim.checks.paused import PausedCommands

A, B, SECOND = run_id("a"), run_id("a", 2), Ballot(1, 1)


def paused(of: str = "") -> Standing:
    return Standing(Kind.PAUSED, of, "ann", 1.0)


def fired(one: RunId, *waiting: RunId) -> RoutineRecord:
    firings = tuple(Firing(late, 0.0, ByHand("ann")) for late in waiting)
    asked = tuple((f"q{late}", late) for late in (one, *waiting))
    return RoutineRecord(one.routine, 1, requests=asked, waiting=firings)


def led() -> Told:
    told = Told()
    told.lead(0.0, "n1")
    return told


# -- pauses ------------------------------------------------------------------------------------------------


def test_a_paused_routine_commands_nothing_of_its_own_group() -> None:
    told = led()
    told.commit(1.0, fired(A), run(A, Stage.EXECUTING), held("d1", A))
    told.commit(2.0, run(A, Stage.RELEASING_LOCKS), paused("a"))
    assert not told.checks.violations
    told.commit(3.0, held("d1", A, call(A)))
    assert told.promises == [Promise.ORDERS]
    assert "commands d1, but its routine was paused by ann" in told.checks.violations[0].what


def test_a_command_in_the_entry_of_the_pause_came_first() -> None:
    told = led()
    told.commit(1.0, fired(A), run(A, Stage.EXECUTING), held("d1", A))
    told.commit(2.0, held("d1", A, call(A)), run(A, Stage.RELEASING_LOCKS), paused())
    told.commit(3.0, held("d1", None), gone(A), ended(A, reason="paused by ann"))
    assert told.promises == []


def test_a_run_that_begins_and_ends_in_the_entry_of_the_pause_came_first() -> None:
    told = led()
    told.commit(1.0, fired(A), run(A, Stage.RELEASING_LOCKS), paused("a"))
    assert told.promises == []
    told = led()
    told.commit(1.0, paused("a"))
    told.commit(2.0, fired(A), run(A, Stage.RELEASING_LOCKS))
    assert told.promises == [Promise.ORDERS]


def command(one: RunId, ballot: Ballot = OPENING) -> GroupMessage:
    body = Command(Origin(one, 1), DeviceId("d9"), Action("on"), Fence(1, ballot))
    return GroupMessage(GroupId("other"), GroupId("g"), Fence(1, ballot), 1, body)


def test_the_leader_of_a_paused_routine_sends_no_command_for_it() -> None:
    told = led()
    judge = PausedCommands(told.checks, told.checks.histories)
    told.commit(1.0, fired(A), run(A, Stage.EXECUTING))
    judge.on_sent(1.5, NodeId("n1"), NodeId("n4"), command(A), 100)
    told.commit(2.0, run(A, Stage.RELEASING_LOCKS), paused("a"))
    judge.on_sent(2.5, NodeId("n3"), NodeId("n4"), command(A, SECOND), 100)
    assert not told.checks.violations, "one that was deposed is fenced off"
    judge.on_sent(3.0, NodeId("n1"), NodeId("n4"), command(A), 100)
    assert told.promises == [Promise.ORDERS]


def test_firings_dropped_by_a_pause_need_no_trace_if_their_leader_died() -> None:
    told = led()
    told.commit(1.0, fired(A, B), run(A, Stage.ACQUIRING_LOCKS))
    told.propose(2.0, ended(A, reason="paused by ann"), gone(A), paused("a"))
    told.lead(3.0, "n2", ballot=SECOND)
    assert told.promises == []
    assert told.checks.runs.untold == 1


def test_a_run_followed_by_a_later_one_needs_no_trace_if_its_leader_died() -> None:
    told = led()
    told.commit(1.0, fired(A, B), run(A, Stage.ACQUIRING_LOCKS))
    told.propose(2.0, ended(B, reason="in maintenance by ann"), gone(A))
    told.lead(3.0, "n2", ballot=SECOND)
    assert told.promises == []
    assert told.checks.runs.untold == 1


def test_firings_that_nothing_dropped_are_lost() -> None:
    told = led()
    told.commit(1.0, fired(A, B), run(A, Stage.ACQUIRING_LOCKS))
    told.propose(2.0, ended(A), gone(A))
    told.lead(3.0, "n2", ballot=SECOND)
    assert told.promises == [Promise.NO_LOSS]


# -- answers -----------------------------------------------------------------------------------------------


def judged() -> tuple[Told, Answers]:
    told = Told()
    answers = Answers(told.checks)
    told.checks.histories.follow(answers)
    told.lead(0.0, "n1")
    told.lead(0.0, "n1", config(DEPLOYMENT))
    return told, answers


def answer(answers: Answers, request: str, why_not: str = "") -> None:
    answers.observe(5.0, NodeId("n2"), Answered(request, None, None, why_not))


def test_an_answer_done_needs_a_committed_entry() -> None:
    told, answers = judged()
    told.commit(1.0, AuditRecord(1, 1, 1.0, "ann", "a thing", "one"))
    answer(answers, "one")
    answer(answers, "two", why_not="no such device")
    assert told.promises == []
    assert (answers.done, set(answers.refused)) == ({"one"}, {"two"})
    answer(answers, "three")
    assert told.promises == [Promise.ORDERS]
    assert "'three' is done, but nobody committed it" in told.checks.violations[0].what


def test_a_group_that_was_reached_works_by_that_version() -> None:
    told, answers = judged()
    answers.reaching = {"reach g": (GroupId("g"), 2)}
    answer(answers, "reach g")
    assert told.promises == [Promise.ORDERS]


def test_versions_build_on_each_other_and_are_applied_once() -> None:
    told, _ = judged()
    told.commit(1.0, DocumentRecord(2, "b", "one"), group=DEPLOYMENT)
    told.commit(2.0, DocumentRecord(3, "c", "two"), group=DEPLOYMENT)
    assert told.promises == []
    told.commit(3.0, DocumentRecord(5, "d", "three"), group=DEPLOYMENT)
    assert told.promises == [Promise.ONE_HISTORY]
    told.commit(4.0, DocumentRecord(6, "d", "three"), group=DEPLOYMENT)
    assert told.promises == [Promise.ONE_HISTORY, Promise.ORDERS]


def test_all_nodes_keep_the_same_text_of_a_version() -> None:
    told, answers = judged()
    answers.on_written(1.0, NodeId("n1"), DocumentKept(2, "b"))
    answers.on_written(2.0, NodeId("n2"), DocumentKept(2, "b"))
    assert told.promises == []
    answers.on_written(3.0, NodeId("n3"), DocumentKept(2, "other"))
    assert told.promises == [Promise.ONE_HISTORY]
