"""Tests of a follower: accepting, acknowledging, promising, and recovering."""

import pytest
from group_bench import LEASE_MS, SETTINGS, Member, make_config, record, touch, update

from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import (
    Acked,
    Answer,
    Ask,
    Body,
    Claim,
    Gap,
    GiveUp,
    Promise,
    Pull,
    Recover,
    Refuse,
    Retire,
    State,
    Sync,
    Update,
)
from comesh.core.journal import Appended, ConfigDropped, Promised, StateTaken, Tombstone
from comesh.core.stamps import FIRST_ERA, NO_BALLOT, OPENING, Ballot

LATER = Ballot(2, 2)
AFTER_RESTART_MS = 1.1 * LEASE_MS
"""Time after a restart before which nothing is promised."""


def state(ballot: Ballot, number: int, *, nonce: int = 0, base: int = -1) -> State:
    ledger = Ledger({}, number)
    return State(
        ballot=ballot,
        accepted=ballot,
        number=number,
        digest=ledger.digest,
        committed=0,
        base=base,
        records=(),
        entries=(),
        nonce=nonce,
        config=make_config(),
    )


# -- updates -----------------------------------------------------------------------------------------------


def test_an_update_in_order_is_written_and_then_acknowledged() -> None:
    member = Member()
    member.hears(0, update(1, (record("lamp"),), sent_ms=40))
    assert [one.number for one in member.written(Appended)] == [1]
    assert member.order == [Appended, Acked]
    assert member.said(0) == [Acked(OPENING, 1, 40)]


def test_a_repeated_update_is_acknowledged_and_not_written() -> None:
    member = Member()
    for _ in range(2):
        member.hears(0, update(1, (record("lamp"),)))
    assert len(member.written(Appended)) == 1
    assert member.said(0) == [Acked(OPENING, 1, 0)] * 2


def test_an_update_with_a_gap_is_answered_with_the_members_state() -> None:
    member = Member()
    member.hears(0, update(2, (record("lamp"),)))
    (gap,) = member.said(0)
    assert isinstance(gap, Gap)
    assert (gap.accepted, gap.number) == (OPENING, 0)
    assert not member.written(Appended)


def test_an_update_of_an_unopened_ballot_is_ignored() -> None:
    member = Member()
    member.hears(2, update(1, (record("lamp"),), ballot=LATER))
    assert [type(body) for body in member.said(2)] == [Gap]


@pytest.mark.parametrize(
    "late", [update(1, (record("lamp"),), ballot=OPENING), Sync(OPENING, 0, 0, FIRST_ERA, 0)]
)
def test_updates_and_syncs_below_the_promise_are_refused(late: Body) -> None:
    member = Member(promised=LATER)
    member.hears(0, late)
    assert member.said(0) == [Refuse(OPENING, LATER, 0.0)]


def test_a_state_below_the_promise_is_dropped() -> None:
    member = Member(promised=LATER)
    member.hears(0, state(OPENING, 3))
    assert member.said(0) == []


def test_a_new_ballot_is_flushed_with_the_state_that_it_opens_with() -> None:
    member = Member()
    member.hears(2, Sync(LATER, 0, 0, FIRST_ERA, 5))
    assert [one.ballot for one in member.flushed(Promised)] == [LATER]
    assert [(one.ballot, one.records) for one in member.written(StateTaken)] == [(LATER, None)]
    assert member.said(2) == [Acked(LATER, 0, 5)]


def test_a_sync_with_another_state_is_answered_with_the_members_state() -> None:
    member = Member()
    member.hears(2, Sync(LATER, 4, 99, FIRST_ERA, 5))
    (gap,) = member.said(2)
    assert isinstance(gap, Gap)
    member.hears(2, state(LATER, 4))
    assert member.said(2) == [Acked(LATER, 4, 0)]


def test_a_state_counts_only_from_the_leader_of_its_ballot() -> None:
    member = Member()
    member.hears(0, state(LATER, 4))
    assert member.said(0) == []


# -- promises ----------------------------------------------------------------------------------------------


def test_a_claim_is_promised_once_the_promise_is_flushed() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(2, Claim(LATER))
    assert [one.ballot for one in member.flushed(Promised)] == [LATER]
    (promise,) = member.said(2)
    assert isinstance(promise, Promise)
    assert (promise.accepted, promise.number, promise.whole) == (OPENING, 0, True)


def test_the_same_claim_is_promised_again_and_a_lower_or_equal_one_of_another_is_not() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(2, Claim(LATER))
    member.hears(2, Claim(LATER))
    assert [type(body) for body in member.said(2)] == [Promise, Promise]
    member.hears(0, Claim(Ballot(1, 0)))
    assert member.said(0) == [Refuse(Ballot(1, 0), LATER, 0.0)]


def test_a_claim_for_another_rank_is_refused() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, Claim(LATER))
    assert [type(body) for body in member.said(0)] == [Refuse]


def test_no_promise_is_made_for_a_lease_after_a_restart() -> None:
    member = Member()
    member.hears(2, Claim(LATER))
    (refuse,) = member.said(2)
    assert isinstance(refuse, Refuse)
    assert refuse.lease_left_ms == pytest.approx(LEASE_MS * (1 + SETTINGS.drift))


def test_no_promise_is_made_during_the_lease_of_another_leader() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.waits(LEASE_MS)
    member.hears(2, Ask(LATER))
    member.hears(2, Claim(LATER))
    answer, refuse = member.said(2)
    assert isinstance(answer, Answer)
    assert (answer.would, answer.leader) == (False, 0)
    assert isinstance(refuse, Refuse)
    assert refuse.lease_left_ms == pytest.approx(LEASE_MS * SETTINGS.drift)
    member.waits(LEASE_MS * SETTINGS.drift + 1)
    member.hears(2, Claim(LATER))
    assert [type(body) for body in member.said(2)] == [Promise]


def test_the_leader_is_promised_during_its_own_lease() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.hears(0, Claim(Ballot(3, 0)))
    assert Promise in map(type, member.said(0))


def test_a_pre_vote_promises_nothing() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(2, Ask(LATER))
    answer, *_ = member.said(2)
    assert isinstance(answer, Answer)
    assert answer.would
    assert not member.written(Promised)


def test_a_state_is_sent_to_any_member_that_pulls_it() -> None:
    member = Member(records=(record("lamp"),), number=3)
    member.hears(2, Pull(NO_BALLOT, 0, 0, 8))
    (given,) = member.said(2)
    assert isinstance(given, State)
    assert (given.number, given.records, given.nonce) == (3, (record("lamp"),), 8)


# -- a leader that is missed -------------------------------------------------------------------------------


def test_a_leader_that_missed_a_touch_is_asked_and_then_suspected() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.forget()
    member.waits(1.25 * LEASE_MS)
    assert member.sent == [(0, Ask(NO_BALLOT))]
    member.waits(0.25 * LEASE_MS)
    assert member.role == "asking"


def test_a_leader_that_answers_the_question_stays() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.waits(1.25 * LEASE_MS)
    member.hears(0, touch())
    member.waits(1.2 * LEASE_MS)
    assert member.role == "follower"


def test_a_leader_that_gives_up_is_followed_by_an_election_at_once() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.hears(0, GiveUp(OPENING))
    assert member.role == "asking"


def test_giving_up_an_unfollowed_ballot_changes_nothing() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.hears(0, GiveUp(LATER))
    member.hears(2, GiveUp(OPENING))
    assert member.role == "follower"


def test_a_leader_that_is_believed_dead_is_suspected_when_its_lease_is_over() -> None:
    member = Member(waits_ms=AFTER_RESTART_MS)
    member.hears(0, touch())
    member.dies(0)
    assert member.role == "follower"
    member.waits(1.02 * LEASE_MS)
    assert member.role == "asking"


# -- power -------------------------------------------------------------------------------------------------


def test_a_member_that_lost_power_acknowledges_nothing_and_asks_for_the_state() -> None:
    member = Member(power_lost=True)
    assert member.role == "recovering"
    assert member.to(Recover) == [0, 2]
    member.forget()
    member.hears(0, update(1, (record("lamp"),)))
    assert member.said(0) == []


def test_a_recovering_member_promises_as_not_whole() -> None:
    member = Member(power_lost=True, waits_ms=AFTER_RESTART_MS)
    member.hears(2, Claim(LATER))
    (promise,) = [body for body in member.said(2) if isinstance(body, Promise)]
    assert not promise.whole


@pytest.mark.parametrize("own", [True, False])
def test_only_an_answer_with_its_nonce_makes_a_member_whole(own: bool) -> None:
    member = Member(power_lost=True)
    nonce = member.last(Recover).nonce
    member.forget()
    member.hears(0, state(OPENING, 3, nonce=nonce if own else nonce + 1))
    assert member.role == ("follower" if own else "recovering")
    assert member.said(0) == ([Acked(OPENING, 3, 0)] if own else [])


def test_a_process_that_ended_is_a_member_again_at_once() -> None:
    member = Member()
    member.hears(0, update(1, (record("lamp"),)))
    member.restart()
    member.forget()
    member.hears(0, update(2, (record("fan"),)))
    assert member.said(0) == [Acked(OPENING, 2, 0)]


# -- the end -----------------------------------------------------------------------------------------------


def test_a_retired_member_keeps_only_the_tombstone() -> None:
    member = Member()
    successor = make_config(number=2)
    member.hears(0, Retire(successor))
    assert [one.newest for one in member.flushed(Tombstone)] == [successor]
    assert [one.mark for one in member.flushed(ConfigDropped)] == [member.config.mark]
    assert member.role == "gone"
    member.forget()
    member.hears(0, Update(OPENING, 1, (), 0, 0))
    assert [type(body).__name__ for body in member.said(0)] == ["Moved"]
