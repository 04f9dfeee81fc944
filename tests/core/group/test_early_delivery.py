"""Tests that a member acts at once on a message that comes with its committed update."""

import pytest
from group_bench import Member, make_config, record

from comesh.core.effects import Answered, CommitKnown, Observe
from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import State, UpdateWithMessages
from comesh.core.stamps import OPENING
from comesh.core.work_messages import GroupMessage, Ordered

REQUEST = "a request of a person at this member"
ANSWER = GroupMessage(None, None, None, 1, Ordered(REQUEST, None))
ENTRIES = ((record("lamp"),), (record("fan"),))


def observed(member: Member, kind: type) -> list[object]:
    found = [one.observation for one in member.effects if isinstance(one, Observe)]
    return [one for one in found if isinstance(one, kind)]


def waiting(seats: int = 3) -> Member:
    """Returns a member with two entries and a request that the leader has to answer."""
    member = Member(number=2, config=make_config(seats))
    member.hears(0, UpdateWithMessages(OPENING, 3, (), 2, 0))
    member.ordered(REQUEST)
    return member


def test_a_member_acts_on_an_early_message_with_its_update() -> None:
    member = waiting()
    member.hears(0, UpdateWithMessages(OPENING, 3, ENTRIES, 2, 0, False, (ANSWER,)))
    (known,) = observed(member, CommitKnown)
    assert isinstance(known, CommitKnown)
    assert (known.first, known.entries) == (3, ENTRIES)
    assert observed(member, Answered)


def test_without_a_quorum_of_two_a_member_waits_for_the_commit() -> None:
    member = waiting(seats=5)
    member.hears(0, UpdateWithMessages(OPENING, 3, ENTRIES, 2, 0, False, (ANSWER,)))
    assert not observed(member, CommitKnown)
    assert not observed(member, Answered)


@pytest.mark.parametrize("given_whole", [False, True])
def test_a_member_with_a_newer_state_ignores_the_early_message(given_whole: bool) -> None:
    """Entries 3 and 4 are committed with its acknowledgement, but it may know only the state after entry
    3."""
    member = waiting()
    if given_whole:
        digest = Ledger({}, 3).digest
        member.hears(0, State(OPENING, OPENING, 3, digest, 2, -1, (), (), 0, member.config))
        member.hears(0, UpdateWithMessages(OPENING, 4, ENTRIES[1:], 2, 0, False, (ANSWER,)))
    else:
        member.hears(0, UpdateWithMessages(OPENING, 3, ENTRIES, 2, 0, False, (ANSWER,)))
    assert len(observed(member, Answered)) == (0 if given_whole else 1)
    assert len(observed(member, CommitKnown)) == (0 if given_whole else 1)
