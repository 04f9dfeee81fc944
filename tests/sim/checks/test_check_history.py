"""Tests of the checks of one history (promise 2) and inheritance (promise 3)."""

import pytest
from told_groups import Told, act, config, held, run, run_id

from comesh.core.group.config import Config
from comesh.core.group.ledger import Ledger
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.records import GroupRecord, HandoffRecord, Record, RoutineRecord, Stage
from comesh.core.stamps import FIRST_ERA, OPENING, Ballot, Era
from comesh.core.traces import LockGranted
from comesh.sim.checks import BrokenPromiseError, Checks, Promise
from comesh.sim.checks.checks import MAX_VIOLATIONS
from comesh.sim.checks.chronicle import LINES

ONE = held("d1", None)
R1, R2 = run_id("a"), run_id("b")
SECOND = Ballot(1, 1)
THIRD = Ballot(2, 2)


def twin(ledger: Ledger) -> Ledger:
    """Returns the state of another member with the same records."""
    return Ledger(ledger.records, ledger.number)


def served() -> Told:
    """Three entries committed by the first leader."""
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, ONE)
    told.commit(2.0, held("d1", R1), held("d2", R1))
    told.commit(3.0, held("d1", None))
    return told


def test_a_good_history_breaks_nothing() -> None:
    told = served()
    told.lead(10.0, "n2", ballot=SECOND)
    told.commit(11.0, held("d1", R2), node="n2")
    assert told.promises == []
    assert told.checks.histories.groups[GroupId("g")].number == 4


def test_a_commit_may_be_reported_twice() -> None:
    told = served()
    history = told.checks.histories.groups[GroupId("g")]
    told.lead(10.0, "n2", ballot=SECOND)
    told.ballots["g"] = OPENING
    told.tell(11.0, 2, (held("d1", R1), held("d2", R1)), history.digests[2])
    told.tell(11.0, 3, (held("d1", None),), -1)
    assert told.promises == []


def test_two_entries_under_one_number() -> None:
    told = served()
    told.tell(11.0, 2, (held("d1", R2),), -1)
    assert told.promises == [Promise.ONE_HISTORY]


def test_two_entries_under_one_number_show_by_their_digest() -> None:
    """This holds even if the entry itself is unknown: it was served, not reported."""
    told = served()
    del told.checks.histories.groups[GroupId("g")].entries[2]
    told.tell(11.0, 2, (held("d1", R2),), 77)
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_number_is_left_out() -> None:
    told = served()
    told.ledger("g").append((held("d3", None),))
    told.commit(5.0, held("d1", R2))
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_state_that_differs_from_the_history() -> None:
    told = served()
    entry = (held("d1", R2),)
    told.tell(5.0, 4, entry, told.ledger("g").digest)
    assert told.promises == [Promise.ONE_HISTORY]


def test_two_leaders_of_one_ballot() -> None:
    told = served()
    told.lead(10.0, "n2", ballot=OPENING)
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_commit_by_a_node_that_does_not_lead_the_ballot() -> None:
    told = served()
    told.commit(10.0, held("d1", R2), node="n3")
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_restarted_leader_goes_on_with_its_ballot() -> None:
    started_ms = 0.0
    told = Told(Checks([], runs_since=lambda node, since_ms: started_ms <= since_ms))
    told.lead(0.0, "n1")
    told.commit(1.0, ONE)
    told.commit(2.0, held("d1", R1))
    assert told.promises == []
    started_ms = 5.0
    told.lead(10.0, "n1")
    assert told.promises == [Promise.ONE_HISTORY]


def test_two_proposals_of_one_ballot() -> None:
    told = served()
    told.write(5.0, 4, (held("d1", R1),), node="n1")
    told.write(5.0, 4, (held("d1", R1),), node="n2")
    assert told.promises == []
    told.write(6.0, 4, (held("d1", R2),), node="n3")
    assert told.promises == [Promise.ONE_HISTORY]


# -- leaders inherit -------------------------------------------------------------------------------------


def test_a_leader_that_lacks_a_committed_entry() -> None:
    told = served()
    behind = Ledger({}, 0)
    behind.append((ONE,))
    told.lead(10.0, "n2", ballot=SECOND, ledger=behind)
    assert told.promises == [Promise.INHERITANCE]


def test_a_leader_with_another_state_at_the_same_number() -> None:
    told = served()
    other = twin(told.ledger("g"))
    other.records["device/d1"] = held("d1", R2)
    told.lead(10.0, "n2", ballot=SECOND, ledger=Ledger(other.records, other.number))
    assert told.promises == [Promise.INHERITANCE]


def test_a_leader_whose_digest_is_not_that_of_its_state() -> None:
    told = served()
    told.ledger("g").records["device/d9"] = held("d9", R2)
    told.lead(10.0, "n2", ballot=SECOND)
    assert told.promises == [Promise.INHERITANCE]


def test_proposed_entries_are_committed_by_being_served() -> None:
    """The entries are of two ballots: the second leader built on the first one's proposals."""
    told = served()
    told.propose(4.0, held("d1", R1))
    told.propose(4.0, RoutineRecord(R1.routine, 1, truth=True), run(R1, Stage.EXECUTING))
    told.ballots["g"] = SECOND
    told.write(5.0, 4, (held("d1", R2),))
    told.ballots["g"] = THIRD
    told.propose(5.0, held("d3", None))
    told.lead(10.0, "n3", ballot=Ballot(3, 2))
    assert told.promises == []
    history = told.checks.histories.groups[GroupId("g")]
    assert history.number == 6
    assert R1 in told.checks.runs.live[GroupId("g")]


def test_a_longer_state_that_lacks_a_committed_entry() -> None:
    """Its number is high enough, but the last entry that was committed is not in it."""
    told = served()
    short = Ledger({}, 0)
    short.append((ONE,))
    short.append((held("d1", R1), held("d2", R1)))
    told.ballots["g"] = SECOND
    for number, device in ((3, "d8"), (4, "d9")):
        short.append((held(device, None),))
        told.write(5.0, number, (held(device, None),), node="n2")
    told.lead(10.0, "n2", ballot=SECOND, ledger=short)
    assert told.promises == [Promise.INHERITANCE]


def test_without_journals_a_longer_state_is_believed() -> None:
    told = served()
    told.ledger("g").append((held("d1", R1),))
    told.lead(10.0, "n2", ballot=SECOND)
    told.commit(11.0, held("d1", None), node="n2")
    assert told.promises == []


def test_a_paused_leader_may_begin_late() -> None:
    """It must have earlier commits, but cannot know later commits of a higher ballot."""
    told = served()
    paused = twin(told.ledger("g"))
    told.lead(10.0, "n3", ballot=THIRD)
    told.commit(11.0, held("d1", R2), node="n3")
    told.lead(12.0, "n2", ballot=SECOND, ledger=paused)
    assert told.promises == []
    assert told.checks.histories.groups[GroupId("g")].leader is not None
    assert told.checks.histories.groups[GroupId("g")].leader.node == "n3"


def test_a_paused_leader_with_another_state() -> None:
    told = served()
    other = twin(told.ledger("g"))
    other.append((held("d1", R1),))
    told.lead(10.0, "n3", ballot=THIRD)
    told.commit(11.0, held("d1", R2), node="n3")
    told.lead(12.0, "n2", ballot=SECOND, ledger=other)
    assert told.promises == [Promise.INHERITANCE]


def test_a_late_commit_that_later_leaders_lack() -> None:
    told = served()
    old = twin(told.ledger("g"))
    told.lead(10.0, "n2", ballot=SECOND)
    old.append((held("d1", R1),))
    told.ballots["g"] = OPENING
    told.tell(11.0, 4, (held("d1", R1),), old.digest)
    assert told.promises == [Promise.INHERITANCE]


# -- configs ---------------------------------------------------------------------------------------------

NEXT = config(number=2, nodes=("n2", "n3", "n4"), epoch=1)
OTHER = config(number=2, nodes=("n1", "n3", "n5"), epoch=1)


def handed_off(successor: Config = NEXT) -> Told:
    told = served()
    told.lead(5.0, "n1", state="handing off")
    told.commit(6.0, HandoffRecord(successor))
    return told


@pytest.mark.parametrize("keeps", [True, False])
def test_a_config_follows_its_handoff(keeps: bool) -> None:
    """With the handoff entry in its state, or without."""
    told = handed_off()
    if not keeps:
        records = told.ledger("g").records
        del records["handoff"]
        told.ledgers["g"] = Ledger(records, told.ledger("g").number)
    told.lead(7.0, "n2", NEXT)
    told.commit(8.0, held("d1", R1), node="n2")
    told.lead(20.0, "n4", NEXT, SECOND)
    assert told.promises == []


def test_a_config_that_no_handoff_names() -> None:
    told = handed_off()
    told.lead(7.0, "n3", OTHER)
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_config_before_any_handoff() -> None:
    told = served()
    told.lead(7.0, "n2", NEXT)
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_second_successor() -> None:
    told = handed_off()
    told.commit(7.0, HandoffRecord(OTHER))
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_second_successor_by_another_leader() -> None:
    told = served()
    base = twin(told.ledger("g"))
    told.lead(5.0, "n1", state="handing off")
    told.commit(6.0, HandoffRecord(NEXT))
    base.append((HandoffRecord(OTHER),))
    told.ballots["g"] = SECOND
    told.tell(7.0, base.number, (HandoffRecord(OTHER),), base.digest, node="n2")
    assert told.promises == [Promise.ONE_HISTORY]


def test_an_entry_after_the_handoff() -> None:
    told = handed_off()
    told.commit(7.0, held("d1", R1))
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_config_that_was_handed_off_is_not_served() -> None:
    told = handed_off()
    told.lead(7.0, "n2", ballot=SECOND)
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_leader_that_inherited_a_handoff_entry_does_not_serve() -> None:
    told = served()
    told.propose(5.0, HandoffRecord(NEXT))
    told.lead(7.0, "n2", ballot=SECOND)
    assert told.promises == [Promise.ONE_HISTORY]


def test_the_handoff_is_finished_by_another_leader() -> None:
    told = handed_off()
    old = twin(told.ledger("g"))
    told.lead(7.0, "n2", NEXT)
    told.commit(8.0, held("d1", R1), node="n2")
    told.lead(9.0, "n3", ballot=SECOND, state="handing off", ledger=old)
    assert told.promises == []


def test_the_handoff_is_finished_from_another_state() -> None:
    told = handed_off()
    old = twin(told.ledger("g"))
    old.append((held("d1", R1),))
    told.lead(9.0, "n3", ballot=SECOND, state="handing off", ledger=old)
    assert told.promises == [Promise.INHERITANCE]


def test_an_inherited_handoff_names_the_successor() -> None:
    told = served()
    told.propose(5.0, HandoffRecord(NEXT))
    told.lead(7.0, "n2", ballot=SECOND, state="handing off")
    told.lead(8.0, "n3", NEXT)
    assert told.promises == []


# -- losses ----------------------------------------------------------------------------------------------


def cut(told: Told, back_to: tuple[Record, ...], number: int, *, reported: bool = True) -> None:
    """A lossy election goes on from an older state."""
    era = Era(1, SECOND)
    ledger = Ledger({record.key: record for record in back_to}, number)
    ledger.append((GroupRecord(era),))
    if reported:
        told.lead(40.0, "n2", ballot=SECOND, state="lossy", era=era, ledger=ledger)
    told.lead(41.0, "n2", ballot=SECOND, era=era, ledger=ledger)


def test_a_reported_loss_is_no_violation() -> None:
    told = served()
    cut(told, (ONE,), 1)
    told.commit(42.0, held("d1", R2), node="n2")
    assert told.promises == []
    assert [(loss.entries, loss.group) for loss in told.checks.losses] == [(2, "g")]


def test_a_new_era_may_have_lost_nothing() -> None:
    told = served()
    cut(told, told.ledger("g").snapshot(), 3)
    assert told.promises == []
    assert [loss.entries for loss in told.checks.losses] == [0]


def test_a_loss_that_nobody_reported() -> None:
    told = served()
    cut(told, (ONE,), 1, reported=False)
    assert told.promises == [Promise.INHERITANCE]


def test_late_reports_of_an_old_era_are_ignored() -> None:
    told = served()
    cut(told, (ONE,), 1)
    told.commit(42.0, held("d1", R2), node="n2")
    told.ballots["g"] = OPENING
    told.tell(50.0, 3, (held("d1", None),), 5)
    assert told.promises == []


def test_a_loss_does_not_excuse_two_entries_under_one_number() -> None:
    told = served()
    cut(told, (ONE,), 1)
    told.commit(42.0, held("d1", R2), node="n2")
    told.tell(43.0, 3, (held("d1", R1),), -1, node="n2")
    assert told.promises == [Promise.ONE_HISTORY]


def test_a_handoff_is_not_lost() -> None:
    """Its entry is flushed: no power loss excuses going on without it."""
    told = handed_off()
    cut(told, (ONE,), 1)
    assert told.promises == [Promise.ONE_HISTORY]


# -- what is committed is written ------------------------------------------------------------------------


def test_an_entry_written_by_too_few_is_not_committed() -> None:
    lacking: list[NodeId] = []
    told = Told(Checks([], lacking=lambda of, mark, ballot, number: lacking))
    told.lead(0.0, "n1")
    told.commit(1.0, ONE)
    assert told.promises == []
    lacking.extend([NodeId("n2"), NodeId("n3")])
    told.commit(2.0, held("d1", R1))
    assert told.promises == [Promise.QUORUM]
    assert "n2, n3" in told.checks.violations[0].what


# -- how it is told --------------------------------------------------------------------------------------


def test_a_violation_has_only_its_own_history() -> None:
    told = served()
    told.lead(0.0, "n7", config("other", nodes=("n7", "n8", "n9")))
    for number in range(100):
        told.commit(5.0 + number, held("d7", run_id("c", number)), node="n7", group="other")
    told.commit(200.0, held("d1", R2), node="n3")
    (violation,) = told.checks.violations
    assert len(violation.history) == 5
    assert all("other" not in line for line in violation.history)
    assert violation.history[0].startswith("0.000 s n1 g config 1 ballot 0.0 is serving at 0")
    assert violation.history[-1].startswith("0.200 s n3 g config 1 ballot 0.0 committed 4")
    assert "held by b#" in violation.history[-1]
    assert "2 one history, at 0.200 s: n3 leads with ballot 0.0" in str(violation)


def test_histories_and_violations_are_bounded() -> None:
    told = served()
    for number in range(MAX_VIOLATIONS + 20):
        told.tell(10.0 + number, 2, (held("d1", run_id("x", number)),), -1)
    assert len(told.checks.violations) == MAX_VIOLATIONS
    assert told.checks.more_violations == 20
    assert max(len(violation.history) for violation in told.checks.violations) == LINES


def test_the_first_violation_can_end_the_run() -> None:
    told = Told(Checks([], raises=True))
    told.lead(0.0, "n1")
    with pytest.raises(BrokenPromiseError, match="2 one history"):
        told.lead(10.0, "n2", era=FIRST_ERA)


def test_observations_of_other_kinds_are_ignored() -> None:
    told = served()
    told.log.append(act("d1", R1, 0.0, 1.0, refused="fenced"))
    told.trace(5.0, R1, LockGranted(DeviceId("d1"), "1:0.0:1"))
    assert told.promises == []
