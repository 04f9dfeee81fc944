"""Tests of the check for stray commands (promise 6), which reads the devices' own log."""

import pytest
from told_groups import Told, act, call, held, run_id

from comesh.core.group.ledger import Ledger
from comesh.core.records import DeviceRecord, Gone, GroupRecord
from comesh.core.stamps import Ballot, Era
from comesh.drivers.virtual.devices import Acted
from comesh.sim.checks import Promise

A, B = run_id("a"), run_id("b")
ONCE = call(A, idempotent=False).action
SECOND = Ballot(1, 1)


def sent(*, idempotent: bool = True) -> Told:
    """Run a holds d1 from 10 ms on, and its command is committed at 20 ms."""
    told = Told()
    told.lead(0.0, "n1")
    told.commit(1.0, held("d1", None))
    told.commit(10.0, held("d1", A))
    told.commit(20.0, held("d1", A, call(A, idempotent=idempotent)))
    return told


def test_a_device_acts_for_its_holder() -> None:
    told = sent()
    told.log.append(act("d1", A, 20.0, 50.0))
    told.commit(60.0, held("d1", None))
    told.commit(70.0, held("d1", B))
    assert told.promises == []
    assert told.checks.locks.acts == 1


def test_a_command_may_land_when_nobody_holds_the_device() -> None:
    """The run failed and gave it back; nobody has it until the command's time is over."""
    told = sent()
    told.commit(60.0, held("d1", None, call(A)))
    told.log.append(act("d1", A, 20.0, 80.0))
    assert told.promises == []


def test_a_device_acts_while_another_run_holds_it() -> None:
    told = sent()
    told.commit(60.0, held("d1", B))
    told.log.append(act("d1", A, 20.0, 80.0))
    told.commit(90.0, held("d1", None))
    assert told.promises == [Promise.NO_STRAY]
    (violation,) = told.checks.violations
    assert violation.at_ms == 80.0
    assert "d1 acted for a#1:0.0:1 while b#1:0.0:1 held it" in violation.what
    assert violation.history[-1] == ("0.080 s n1 d1 acted: on of a#1:0.0:1 step 0, sent 0.020 s by n1")


def test_acts_are_judged_in_their_place_among_commits() -> None:
    """Acts that are read from the log after the next commit happened before it."""
    told = sent()
    told.log.append(act("d1", A, 20.0, 50.0))
    told.commit(60.0, held("d1", B))
    assert told.promises == []


@pytest.mark.parametrize("sent_ms", [5.0, 65.0])
def test_a_command_sent_before_the_grant_or_after_the_release(sent_ms: float) -> None:
    told = sent()
    told.commit(60.0, held("d1", None, call(A)))
    told.log.append(act("d1", A, sent_ms, 80.0))
    assert told.promises == [Promise.NO_STRAY]


def test_a_command_sent_before_its_intent() -> None:
    told = sent()
    told.log.append(act("d1", A, 15.0, 50.0))
    assert told.promises == [Promise.NO_STRAY]


def test_a_command_without_an_intent() -> None:
    told = sent()
    told.log.append(act("d1", A, 20.0, 50.0, step=1))
    assert told.promises == [Promise.NO_STRAY]


def test_a_command_of_no_run() -> None:
    told = sent()
    told.log.append(act("d1", None, 20.0, 50.0))
    assert told.promises == [Promise.NO_STRAY]


def test_a_device_that_no_group_knows() -> None:
    told = sent()
    told.log.append(act("d9", A, 20.0, 50.0))
    assert told.promises == [Promise.NO_STRAY]


def test_refused_commands_are_not_judged() -> None:
    told = sent()
    told.commit(60.0, held("d1", B))
    told.log.append(act("d1", A, 20.0, 80.0, refused="fenced"))
    assert told.promises == []
    assert told.checks.locks.acts == 0


def test_a_command_that_lands_beyond_its_flight_is_counted() -> None:
    """The documented window: the intent allows 3 s."""
    told = sent()
    told.commit(60.0, held("d1", B))
    told.log.append(act("d1", A, 20.0, 3030.0))
    assert told.promises == []
    assert told.checks.locks.late_acts == 1


def test_a_late_command_must_still_have_been_sent_by_the_holder() -> None:
    told = sent()
    told.commit(60.0, held("d1", B))
    told.log.append(act("d1", A, 70.0, 5000.0))
    assert told.promises == [Promise.NO_STRAY]


def test_a_newer_attempt_of_the_holder_keeps_the_lock() -> None:
    told = sent()
    told.commit(30.0, held("d1", A, call(A)))
    told.log.append(act("d1", A, 20.0, 50.0))
    assert told.promises == []


def test_an_idempotent_step_may_be_repeated() -> None:
    told = sent()
    told.log.extend([act("d1", A, 20.0, 50.0), act("d1", A, 60.0, 90.0)])
    assert told.promises == []


def test_a_step_that_is_not_idempotent_is_done_once() -> None:
    told = sent(idempotent=False)
    told.log.extend([act("d1", A, 20.0, 50.0, action=ONCE), act("d1", A, 60.0, 90.0, action=ONCE)])
    assert told.promises == [Promise.NO_STRAY]


def test_a_removed_device_is_held_by_nobody() -> None:
    told = sent()
    told.commit(30.0, Gone("device/d1"))
    told.log.append(act("d1", A, 40.0, 50.0))
    assert told.promises == [Promise.NO_STRAY]


# -- after a loss ----------------------------------------------------------------------------------------


def lose(told: Told, left: DeviceRecord) -> None:
    era = Era(1, SECOND)
    ledger = Ledger({left.key: left}, 1)
    ledger.append((GroupRecord(era),))
    told.lead(30.0, "n2", ballot=SECOND, state="lossy", era=era, ledger=ledger)
    told.lead(31.0, "n2", ballot=SECOND, era=era, ledger=ledger)


def test_a_command_sent_before_a_loss_may_land_after_it() -> None:
    told = sent()
    lose(told, held("d1", None))
    told.log.append(act("d1", A, 20.0, 50.0))
    assert told.promises == []


def test_a_loss_does_not_excuse_a_stray_command() -> None:
    told = sent()
    lose(told, held("d1", None))
    told.commit(40.0, held("d1", B), node="n2")
    told.log.append(act("d1", A, 20.0, 50.0))
    assert told.promises == [Promise.NO_STRAY]


def test_a_lost_lock_is_not_held_when_the_next_command_is_sent() -> None:
    told = sent()
    lose(told, held("d1", None))
    told.log.append(act("d1", A, 40.0, 50.0))
    assert told.promises == [Promise.NO_STRAY]


def test_a_step_may_be_repeated_if_its_result_was_lost() -> None:
    told = sent(idempotent=False)
    told.log.append(act("d1", A, 20.0, 25.0, action=ONCE))
    lose(told, held("d1", A, call(A, idempotent=False)))
    told.log.append(act("d1", A, 40.0, 50.0, action=ONCE))
    assert told.promises == []


def test_acts_before_the_checks_began_are_not_judged() -> None:
    log: list[Acted] = [act("d1", A, 0.0, 1.0)]
    told = Told(log=log)
    assert told.promises == []
