"""Tests of a leader: opening its ballot, sending entries, its lease, and stepping down."""

from group_bench import ELECTED, LEASE_MS, Member, make_config, record

from comesh.core.effects import Committed, Observe
from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import (
    Acked,
    Answer,
    Ask,
    Claim,
    Gap,
    GiveUp,
    Installed,
    Promise,
    Recover,
    Refuse,
    Start,
    State,
    Sync,
    Update,
)
from comesh.core.journal import Appended, ConfigKept, Promised, StateTaken
from comesh.core.stamps import FIRST_ERA, NO_BALLOT, OPENING, Ballot


def committed(member: Member) -> list[int]:
    found = [one.observation for one in member.effects if isinstance(one, Observe)]
    return [one.number for one in found if isinstance(one, Committed)]


def updates(member: Member, rank: int) -> list[Update]:
    return [body for to, body in member.sent if to == rank and isinstance(body, Update)]


# -- opening -----------------------------------------------------------------------------------------------


def test_a_leader_serves_once_a_quorum_has_its_opening_state() -> None:
    member = Member(config=make_config(5), records=(record("lamp"),), number=3)
    member.claims(2, 3)
    member.promises(2)
    member.promises(3)
    member.hears(2, Acked(ELECTED, 3, 0))
    assert member.role == "syncing"
    member.hears(3, Acked(ELECTED, 3, 0))
    assert member.role == "serving"
    assert "serving" in member.told


def test_a_member_that_lacks_the_state_is_sent_it() -> None:
    member = Member(records=(record("lamp"),), number=3)
    member.claims(2)
    member.promises(2)
    member.hears(2, Gap(ELECTED, NO_BALLOT, 0, 0))
    state = member.last(State)
    assert (state.number, state.records) == (3, (record("lamp"),))


def test_a_sync_is_repeated_until_it_is_acknowledged() -> None:
    member = Member()
    member.claims(2)
    member.promises(2)
    member.forget()
    member.waits(LEASE_MS)
    assert len([1 for rank in member.to(Sync) if rank == 0]) > 2


def test_an_elected_leader_repeats_its_sync_until_a_member_is_silent() -> None:
    member = Member().leads(2)
    member.waits(LEASE_MS)
    assert 0 in member.to(Sync)
    assert 2 not in member.to(Sync)
    member.waits(LEASE_MS)
    member.forget()
    member.waits(2 * LEASE_MS)
    assert len(member.to(Sync)) <= 2, "a touch is all"


# -- entries -----------------------------------------------------------------------------------------------


def test_an_entry_is_sent_before_it_is_written_and_committed_by_a_quorum() -> None:
    member = Member().leads(2)
    member.ordered("one")
    assert member.order == [Update, Appended]
    assert committed(member) == []
    member.acks(2)
    assert committed(member) == [1]


def test_an_entry_goes_to_the_nearest_member_first() -> None:
    member = Member(config=make_config(5)).leads(2, 3)
    member.ordered("one")
    assert sorted(member.to(Update)) == [2, 3]


def test_a_commit_reaches_all_members_within_a_tenth_of_a_lease() -> None:
    member = Member(config=make_config(3)).leads(0, 2)
    member.ordered("one")
    (near,) = member.to(Update)
    member.acks(near)
    far = 2 - near
    member.waits(LEASE_MS / 10 + 1)
    (update,) = updates(member, far)
    assert update.committed == 1


def test_a_silent_member_is_not_asked_first() -> None:
    member = Member().leads(0, 2)
    member.ordered("one")
    (silent,) = member.to(Update)
    other = 2 - silent
    member.passes(2 * LEASE_MS, other)
    member.forget()
    member.ordered("two")
    assert member.to(Update) == [other]


def test_four_entries_are_under_way_to_a_member_and_further_ones_leave_together() -> None:
    member = Member().leads(2)
    for number in range(7):
        member.ordered(f"order {number}")
    assert [len(one.entries) for one in updates(member, 2)] == [1, 1, 1, 1]
    member.hears(2, Acked(ELECTED, 1, 0))
    assert len(updates(member, 2)[-1].entries) == 3


def test_unacknowledged_entries_are_sent_again() -> None:
    member = Member().leads(2)
    member.ordered("one")
    member.forget()
    member.waits(LEASE_MS / 4)
    again = updates(member, 2)
    assert len(again) > 1
    assert {(one.first, len(one.entries)) for one in again} == {(1, 1)}


def test_a_member_gets_missed_entries_or_the_whole_state() -> None:
    member = Member().leads(2)
    member.ordered("one")
    member.acks(2)
    member.hears(0, Gap(ELECTED, ELECTED, 0, 0))
    few = member.last(State)
    assert (few.base, len(few.entries), few.records) == (0, 1, ())
    member.hears(0, Gap(ELECTED, Ballot(0, 5), 1, 0))
    everything = member.last(State)
    assert everything.base == -1
    assert everything.records


# -- the lease and touches ---------------------------------------------------------------------------------


def test_members_are_touched_once_per_lease() -> None:
    member = Member().leads(0, 2)
    member.passes(2 * LEASE_MS, 0, 2)
    assert 2 <= len(updates(member, 0)) <= 3
    assert all(not one.entries for one in updates(member, 0))


def test_a_doubting_member_is_touched_at_once() -> None:
    member = Member().leads(0, 2)
    member.hears(0, Ask(NO_BALLOT))
    (touched,) = member.said(0)
    assert isinstance(touched, Update)


def test_an_asking_member_is_touched_and_learns_the_leader() -> None:
    member = Member().leads(0, 2)
    member.hears(2, Ask(Ballot(2, 2)))
    touched, answer = member.said(2)
    assert isinstance(touched, Update)
    assert isinstance(answer, Answer)
    assert (answer.would, answer.leader) == (False, 1)


def test_without_acknowledgements_it_gives_up_after_five_leases() -> None:
    member = Member().leads(0, 2)
    member.waits(4.9 * LEASE_MS)
    assert member.role == "serving"
    member.waits(1.2 * LEASE_MS)
    assert set(member.to(GiveUp)) == {0, 2}
    assert "following" in member.told


def test_without_a_commit_it_gives_up_after_five_leases() -> None:
    member = Member().leads(0, 2)
    member.ordered("one")
    member.waits(5.1 * LEASE_MS)
    assert set(member.to(GiveUp)) == {0, 2}


def test_a_leaving_leader_gives_up() -> None:
    member = Member().leads(0, 2)
    member.leaves()
    assert member.to(GiveUp) == [0, 2]


# -- other leaders -----------------------------------------------------------------------------------------


def test_a_leader_with_a_lease_makes_no_promise() -> None:
    member = Member().leads(0, 2)
    member.hears(2, Claim(Ballot(4, 2)))
    (refuse,) = member.said(2)
    assert isinstance(refuse, Refuse)
    assert refuse.lease_left_ms > 0
    assert member.role == "serving"


def test_a_leader_without_a_lease_promises_and_follows() -> None:
    member = Member().leads(0, 2)
    member.waits(1.5 * LEASE_MS)
    member.forget()
    member.hears(2, Claim(Ballot(4, 2)))
    assert [type(body) for body in member.said(2)] == [Promise]
    assert member.told == ["following"]


def test_an_open_higher_ballot_is_followed() -> None:
    member = Member().leads(0, 2)
    member.hears(2, Sync(Ballot(4, 2), 0, 0, FIRST_ERA, 0))
    assert member.role == "follower"
    assert member.said(2) == [Acked(Ballot(4, 2), 0, 0)]


def test_a_leader_refused_for_a_higher_promise_claims_above_it() -> None:
    member = Member().leads(0, 2)
    member.waits(1.5 * LEASE_MS)
    member.hears(2, Refuse(ELECTED, Ballot(4, 2), 0.0))
    assert member.told[-1] == "following"
    assert member.role == "asking"


def test_a_member_that_lost_power_gets_the_state_for_its_nonce() -> None:
    member = Member().leads(2)
    member.hears(0, Recover(77, OPENING))
    assert member.last(State).nonce == 77


def test_a_member_that_promised_higher_is_not_made_whole_by_this_leader() -> None:
    member = Member().leads(2)
    member.hears(0, Recover(77, Ballot(8, 0)))
    assert not [body for _, body in member.sent if isinstance(body, State)]
    assert member.told == ["following"]


def test_acknowledgements_of_another_ballot_do_not_count() -> None:
    member = Member().leads(2)
    member.ordered("one")
    member.hears(2, Acked(OPENING, 1, 0))
    assert committed(member) == []


# -- the first leader --------------------------------------------------------------------------------------


def test_rank_0_opens_a_new_config_without_an_election() -> None:
    member = Member(rank=0, config=make_config(number=2), seated=False)
    empty = Ledger({}, 9).digest
    member.hears(4, Start(member.config, 9, empty, -1, (), ()), of=make_config(number=1))
    assert member.order[:3] == [ConfigKept, Promised, StateTaken]
    assert member.role == "syncing"
    assert not member.to(Ask)
    member.hears(1, Installed(member.config.mark, 9))
    assert member.role == "serving"


def test_a_first_leader_repeats_no_sync_once_it_serves() -> None:
    member = Member(rank=0, config=make_config(number=2), seated=False)
    member.hears(4, Start(member.config, 9, Ledger({}, 9).digest, -1, (), ()), of=make_config(number=1))
    member.hears(1, Installed(member.config.mark, 9))
    member.forget()
    member.waits(0.9 * LEASE_MS)
    assert not member.to(Sync)
