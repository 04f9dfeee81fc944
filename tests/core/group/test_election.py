"""Tests of elections: pre-votes, order, claims, and the choice of the state."""

from group_bench import LEASE_MS, SETTINGS, STORE, Member, make_config, record

from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import (
    Acked,
    Answer,
    Ask,
    Claim,
    Promise,
    Pull,
    Recover,
    Refuse,
    SeatGiven,
    State,
    Stranger,
    Sync,
)
from comesh.core.journal import Promised, StateTaken
from comesh.core.records import GroupRecord
from comesh.core.stamps import FIRST_ERA, OPENING, Ballot, Era

OWN = Ballot(1, 1)
COLD_MS = SETTINGS.cold_wait_ms


def given(ballot: Ballot, number: int, nonce: int) -> State:
    """A state without records, as its member accepted it."""
    digest = Ledger({}, number).digest
    return State(ballot, ballot, number, digest, 0, -1, (), (), nonce, make_config())


# -- the pre-vote ------------------------------------------------------------------------------------------


def test_a_member_without_a_leader_asks_before_it_claims() -> None:
    member = Member()
    member.asks()
    assert member.to(Ask) == [0, 2]
    assert not member.written(Promised)


def test_a_member_that_is_cut_off_keeps_asking_without_disturbance() -> None:
    member = Member()
    member.waits(20 * LEASE_MS)
    assert member.role == "asking"
    assert not member.to(Claim)


def test_a_claim_needs_a_willing_quorum_and_is_flushed_before_it_is_sent() -> None:
    member = Member()
    member.asks()
    member.would(2)
    assert member.to(Claim) == [0, 2]
    assert [one.ballot for one in member.flushed(Promised)] == [OWN]
    assert member.order[-3:] == [Promised, Claim, Claim]


def test_one_willing_member_of_five_is_not_enough() -> None:
    member = Member(config=make_config(5))
    member.asks()
    member.would(3)
    assert not member.to(Claim)
    member.would(4)
    assert member.to(Claim) == [0, 2, 3, 4]


def test_an_able_lower_rank_goes_first_once() -> None:
    member = Member()
    member.asks()
    member.would(0, able=True)
    assert not member.to(Claim)
    member.waits(150.0)
    assert member.to(Claim) == [0, 2]


def test_an_unable_lower_rank_is_not_waited_for() -> None:
    member = Member()
    member.asks()
    member.would(0, able=False)
    assert member.to(Claim) == [0, 2]


def test_a_member_follows_a_living_leader() -> None:
    member = Member()
    member.asks()
    member.hears(2, Answer(member.asked, False, False, True, 0, OPENING))
    assert member.role == "follower"


def test_a_leader_believed_dead_is_not_followed() -> None:
    member = Member()
    member.asks()
    member.dies(0)
    member.hears(2, Answer(member.asked, False, False, True, 0, OPENING))
    assert member.role == "asking"


def test_an_answer_to_an_earlier_question_does_not_count() -> None:
    member = Member()
    member.asks()
    member.hears(2, Answer(Ballot(9, 1), True, False, True, None, OPENING))
    assert not member.to(Claim)


def test_an_able_lower_member_starts_its_own_election() -> None:
    member = Member(waits_ms=1.1 * LEASE_MS)
    member.hears(2, Ask(Ballot(1, 2)))
    assert [type(body) for body in member.said(2)] == [Answer, Ask]


# -- the claim ---------------------------------------------------------------------------------------------


def test_a_winner_with_the_newest_state_opens_its_ballot() -> None:
    member = Member(records=(record("lamp"),), number=3)
    member.claims(2)
    member.promises(2, number=2)
    assert [(one.ballot, one.number) for one in member.written(StateTaken)] == [(OWN, 3)]
    assert member.to(Sync) == [0, 2]
    assert member.role == "syncing"


def test_the_highest_accepted_ballot_beats_the_longest_history() -> None:
    member = Member(records=(record("lamp"),), number=9)
    member.claims(2)
    member.promises(2, accepted=Ballot(1, 0), number=2)
    assert member.to(Pull) == [2]
    member.hears(2, given(Ballot(1, 0), 2, member.last(Pull).nonce))
    assert member.last(Sync).number == 2


def test_a_pulled_state_is_written_with_the_ballot_that_it_opens() -> None:
    member = Member()
    member.claims(2)
    member.promises(2, number=4)
    member.hears(2, given(OPENING, 4, member.last(Pull).nonce))
    (taken,) = member.written(StateTaken)
    assert (taken.ballot, taken.number, taken.records) == (OWN, 4, ())


def test_a_member_that_lost_its_promised_state_is_not_chosen() -> None:
    member = Member(config=make_config(5))
    member.claims(3, 4)
    member.promises(3, number=4)
    member.promises(4)
    assert member.to(Pull) == [3]
    member.hears(3, given(OPENING, 1, member.last(Pull).nonce))
    assert not member.to(Sync)
    member.promises(2)
    assert member.to(Sync) == [0, 2, 3, 4]


def test_a_promise_of_a_member_that_is_not_whole_does_not_count() -> None:
    member = Member()
    member.claims(2)
    member.promises(2, whole=False)
    assert not member.to(Sync)
    member.promises(0)
    assert member.to(Sync) == [0, 2]


def test_a_higher_promise_ends_the_claim_and_the_next_is_above_it() -> None:
    member = Member()
    member.claims(2)
    member.hears(2, Refuse(OWN, Ballot(5, 2), 0.0))
    assert member.role == "follower"
    member.forget()
    member.asks()
    assert member.asked == Ballot(2, 1), "what another promised is heard of, and not taken over"
    member.would(2)
    assert member.claimed == Ballot(2, 1)


def test_a_claim_that_is_not_won_in_time_is_given_up() -> None:
    member = Member()
    member.claims(2)
    member.waits(1.2 * LEASE_MS)
    assert member.role == "follower"


def test_a_claim_is_repeated_until_it_is_won_or_given_up() -> None:
    member = Member()
    member.claims(2)
    member.forget()
    member.waits(LEASE_MS / 2)
    assert member.to(Claim)[:2] == [0, 2]


# -- after an outage ---------------------------------------------------------------------------------------


def lossy() -> Member:
    """Returns a claimant in a config in which it and another member are not whole."""
    member = Member(power_lost=True)
    member.asks()
    member.would(2, whole=False)
    return member


def test_with_too_few_whole_members_claims_wait_for_the_cold_wait() -> None:
    member = lossy()
    assert not member.to(Claim)
    for _ in range(40):
        member.waits(LEASE_MS)
        member.would(2, whole=False)
        member.would(0, whole=False)
        if member.to(Claim):
            break
    assert member.now_ms >= COLD_MS


def test_after_the_cold_wait_a_lossy_election_opens_an_era() -> None:
    member = lossy()
    while not member.to(Claim):
        member.waits(LEASE_MS)
        member.would(0, whole=False)
        member.would(2, whole=False)
    member.promises(0, whole=False)
    assert not member.to(Sync), "another one lives that may have what these lost"
    member.promises(2, whole=False)
    (taken,) = member.flushed(StateTaken)
    era = Era(1, member.claimed)
    assert taken.records == (GroupRecord(era=era),)
    assert member.last(Sync).era == era
    assert "lossy" in member.told


def test_an_empty_seat_counts_as_lost() -> None:
    member = Member(config=make_config(3, unbound=(0, 2)))
    member.waits(COLD_MS + 10 * LEASE_MS)
    assert not member.to(Claim), "alone it is no quorum"


def test_a_stranger_has_no_state_and_is_not_waited_for() -> None:
    member = Member(power_lost=True)
    member.asks()
    while not member.to(Claim):
        member.waits(LEASE_MS)
        member.hears(2, Stranger(), store=STORE + 1)
        member.would(0, whole=False)
    member.promises(0, whole=False)
    assert member.to(Sync) == [0, 2]


def test_a_ready_member_that_was_never_started_gets_its_seat() -> None:
    member = Member()
    member.hears(2, Stranger(), store=STORE)
    assert member.said(2) == [SeatGiven(member.config)]


def test_a_forced_leader_leads_alone_in_a_new_era_without_a_lease() -> None:
    member = Member()
    member.forced()
    assert member.role == "serving"
    assert member.told == ["lossy", "serving"]
    assert [one.records for one in member.flushed(StateTaken)] == [(GroupRecord(era=Era(1, OWN)),)]


# -- other members' messages meanwhile ---------------------------------------------------------------------


def test_an_asking_member_follows_a_leader() -> None:
    member = Member()
    member.asks()
    member.hears(2, Sync(Ballot(1, 2), 0, 0, FIRST_ERA, 0))
    assert member.role == "follower"
    assert member.said(2)[-1] == Acked(Ballot(1, 2), 0, 0)


def test_a_claimant_promises_a_higher_claim() -> None:
    member = Member()
    member.claims(2)
    member.hears(0, Claim(Ballot(4, 0)))
    assert member.role == "follower"
    assert [type(body) for body in member.said(0)][-1] is Promise


def test_a_member_that_lost_power_returns_to_recovery() -> None:
    member = lossy()
    member.hears(0, Claim(Ballot(4, 0)))
    assert member.role == "recovering"
    member.forget()
    member.waits(LEASE_MS)
    assert Recover in [type(body) for _, body in member.sent]
