"""Tests of handoffs: invitations, waiting, the last entry, and retirement."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from group_bench import LEASE_MS, NODES, SETTINGS, STORE, Member, make_config, record

from comesh.core.events import Timer
from comesh.core.group.config import Config, Seat
from comesh.core.group.deadlines import Deadlines
from comesh.core.group.handoff import LANDING_MS, Handoff
from comesh.core.group.ledger import Ledger
from comesh.core.group_messages import (
    Acked,
    Gap,
    Installed,
    Invite,
    Moved,
    Ready,
    Retire,
    Start,
    State,
    Sync,
    Update,
)
from comesh.core.journal import Appended, ConfigKept, Promised, StateTaken, Tombstone
from comesh.core.records import HandoffRecord
from comesh.core.stamps import FIRST_ERA, NO_BALLOT, OPENING
from comesh.core.step import Step

REPLACES = msgspec.structs.replace(SETTINGS, replace_after_ms=3000.0)


def without(rank: int) -> Member:
    """Returns a leader with a dead member, which has invited the members of the next config."""
    member = Member(settings=REPLACES).leads(0, 2)
    member.dies(rank)
    while not member.to(Invite):
        member.passes(LEASE_MS / 4, 2 - rank)
    return member


def invited(member: Member) -> Config:
    return member.last(Invite).successor


def ready(member: Member, *ranks: int, store: int = STORE) -> None:
    invite = member.last(Invite)
    for rank in ranks:
        member.hears(rank, Ready(invite.successor.mark, store, invite.number, invite.digest))


def others(member: Member) -> list[int]:
    """Returns the numbers of the invited nodes other than the leader."""
    return [NODES.index(node) for node in invited(member).nodes if node != NODES[member.rank]]


def handing_off() -> tuple[Member, Config]:
    """Returns a leader that has proposed the handoff entry and not committed it."""
    member = without(0)
    ready(member, *others(member))
    (handoff,) = member.written(Appended)[-1].entry
    assert isinstance(handoff, HandoffRecord)
    return member, handoff.successor


def started(successor: Config) -> list[int]:
    """Returns the numbers of the nodes that the old leader starts, in rank order."""
    return [NODES.index(seat.node) for seat in successor.seats if seat.node != NODES[1]]


# -- invitations -------------------------------------------------------------------------------------------


def test_a_member_that_is_gone_for_three_seconds_is_replaced() -> None:
    member = Member(settings=REPLACES).leads(0, 2)
    member.dies(0)
    member.passes(2900.0, 2)
    assert not member.to(Invite)
    member.passes(2 * LEASE_MS, 2)
    assert NODES[0] not in invited(member).nodes


def test_new_members_are_sent_the_state_and_others_a_digest() -> None:
    member = without(0)
    given = {to: body.records is None for to, body in member.sent if isinstance(body, Invite)}
    assert given == {to: NODES[to] in member.config.nodes for to in others(member)}


def test_a_member_that_lacks_the_digested_state_is_sent_it() -> None:
    member = without(0)
    first, mark = others(member)[0], invited(member).mark
    member.said(first)
    member.hears(first, Ready(mark, STORE, -1, 0))
    (again,) = member.said(first)
    assert isinstance(again, Invite)
    assert again.records is not None


def test_a_handoff_is_proposed_once_all_living_members_are_ready() -> None:
    member = without(0)
    first, *_ = others(member)
    ready(member, first)
    assert member.role == "serving"


def test_a_member_that_is_not_ready_in_time_is_replaced() -> None:
    member = without(0)
    late, *ready_ones = others(member)
    ready(member, *ready_ones)
    member.passes(10 * LEASE_MS, 2)
    assert NODES[late] not in invited(member).nodes
    assert not [one for one in member.written(Appended) if isinstance(one.entry[0], HandoffRecord)]


# -- silent members ----------------------------------------------------------------------------------------


def leading(*ranks: int, seats: int = 5) -> Member:
    """Returns a leader just elected by these, while the others are silent."""
    return Member(config=make_config(seats)).leads(*ranks)


def test_f_members_that_an_elected_leader_never_heard_are_replaced_after_a_lease() -> None:
    member = leading(2, 4)
    member.passes(0.9 * LEASE_MS, 2, 4)
    assert not member.to(Invite)
    member.passes(1.2 * LEASE_MS, 2, 4)
    assert not {NODES[0], NODES[3]} & set(invited(member).nodes)


def test_f_members_that_missed_two_touches_are_replaced() -> None:
    member = leading(0, 2, 3, 4)
    member.passes(2.4 * LEASE_MS, 2, 4)
    assert not member.to(Invite)
    member.passes(1.2 * LEASE_MS, 2, 4)
    assert not {NODES[0], NODES[3]} & set(invited(member).nodes)


def test_fewer_than_f_members_are_waited_for() -> None:
    member = leading(2, 3, 4)
    member.passes(5 * LEASE_MS, 2, 3, 4)
    assert not member.to(Invite)


@pytest.mark.parametrize("silent", [3, 4])
def test_a_leader_without_a_quorum_replaces_no_member(silent: int) -> None:
    """When a switch restarts, every leader hears nobody for some seconds."""
    member = leading(0, 2, 3, 4)
    member.passes(4 * LEASE_MS, *(0, 2, 3, 4)[silent:])
    assert not member.to(Invite)


def test_the_first_leader_waits_for_members_that_start_later() -> None:
    member = Member(rank=0, config=make_config(5, number=2), seated=False)
    start = Start(member.config, 9, Ledger({}, 9).digest, -1, (), ())
    member.hears(5, start, of=make_config(5))
    for rank in (1, 2):
        member.hears(rank, Installed(member.config.mark, 9))
    member.passes(4 * LEASE_MS, 1, 2)
    assert member.role == "serving"
    assert not member.to(Invite)


def test_with_f_one_a_restart_does_not_move_the_group() -> None:
    member = leading(2, seats=3)
    member.passes(5 * LEASE_MS, 2)
    assert not member.to(Invite)


def test_without_other_living_nodes_the_config_stays() -> None:
    member = leading(2, 4)
    member.dies(5)
    member.dies(6)
    member.passes(5 * LEASE_MS, 2, 4)
    assert not member.to(Invite)


@pytest.mark.parametrize(("lost", "waits_ms"), [([], LANDING_MS), (["n0", "n3"], LEASE_MS)])
def test_how_long_a_handoff_waits_for_commands_under_way(lost: list[str], waits_ms: float) -> None:
    deadlines = Deadlines(Timer("group", "due", 1))
    member = SimpleNamespace(config=make_config(5), lease_ms=LEASE_MS, deadlines=deadlines)
    serving = SimpleNamespace(in_flight=True, holds_back=False)
    leader = SimpleNamespace(member=member, serving=serving, peers=SimpleNamespace(lost=lambda _step: lost))
    handoff = Handoff(cast("Any", leader))
    assert not handoff._landed(Step(1.0, 1.0))
    assert serving.holds_back
    assert not handoff._landed(Step(waits_ms, 1.0))
    assert handoff._landed(Step(1.0 + waits_ms, 1.0))


# -- the entry ---------------------------------------------------------------------------------------------


def test_the_entry_binds_each_seat_to_the_store_that_was_ready() -> None:
    _, successor = handing_off()
    assert {seat.store for seat in successor.seats} == {STORE}
    assert successor.number == 2


def test_nothing_is_proposed_after_the_handoff() -> None:
    member, _ = handing_off()
    assert member.role == "handing off"
    member.forget()
    member.ordered("one")
    assert not member.written(Appended)


def test_the_handoff_entry_is_flushed_by_every_writer() -> None:
    member, _ = handing_off()
    assert isinstance(member.flushed(Appended)[-1].entry[0], HandoffRecord)


# -- start and retire --------------------------------------------------------------------------------------


def test_no_member_is_started_before_the_commit() -> None:
    member, successor = handing_off()
    assert not member.to(Start)
    member.acks(2)
    assert member.to(Start) == started(successor)


def test_starts_are_repeated_to_those_that_are_not_installed() -> None:
    member, successor = handing_off()
    member.acks(2)
    first, *rest = started(successor)
    member.hears(first, Installed(successor.mark, 1))
    member.forget()
    member.waits(SETTINGS.start_resend_ms)
    assert member.to(Start) == rest


def test_when_a_quorum_is_installed_the_old_members_retire() -> None:
    member, successor = handing_off()
    member.acks(2)
    member.forget()
    for rank in started(successor)[: successor.quorum]:
        assert not member.to(Retire)
        member.hears(rank, Installed(successor.mark, 1))
    assert member.to(Retire) == [0, 2]
    assert [one.newest for one in member.flushed(Tombstone)] == [successor]
    assert member.role == "gone"


def test_a_leader_of_an_ended_config_starts_its_successor() -> None:
    successor = Config(make_config().group, 2, 0, tuple(Seat(node, STORE) for node in NODES[2:5]), 1000, 1)
    member = Member(records=(HandoffRecord(successor),), number=4)
    member.claims(2)
    member.promises(2, number=4)
    member.acks(2)
    assert member.role == "handing off"
    assert member.told == ["handing off"]
    assert sorted(member.to(Start)) == [2, 3, 4]


# -- the other side ----------------------------------------------------------------------------------------


def test_an_invited_member_flushes_its_base_before_it_is_ready() -> None:
    member = Member(rank=4, config=make_config(5, number=2), seated=False)
    base = (record("lamp"),)
    digest = Ledger({one.key: one for one in base}, 3).digest
    member.hears(0, Invite(member.config, 3, digest, base), of=make_config(number=1))
    assert member.order == [ConfigKept, Ready]
    assert member.flushed(ConfigKept)
    (answer,) = member.said(0)
    assert isinstance(answer, Ready)
    assert (answer.store, answer.number) == (STORE, 3)


def test_a_start_that_does_not_build_on_its_base_is_answered_with_that() -> None:
    member = Member(rank=2, config=make_config(number=2), seated=False)
    member.hears(0, Start(member.config, 9, 1, 5, (), ()), of=make_config(number=1))
    (answer,) = member.said(0)
    assert isinstance(answer, Ready)
    assert answer.number == -1


def test_a_started_member_installs_and_reports_to_both_leaders() -> None:
    member = Member(rank=2, config=make_config(number=2), seated=False)
    empty = Ledger({}, 9).digest
    member.hears(5, Start(member.config, 9, empty, -1, (), ()), of=make_config(number=1))
    assert member.order == [ConfigKept, Promised, StateTaken, Installed, Installed]
    assert member.to(Installed) == [5, 0]


def test_an_unstarted_member_is_installed_by_the_state_of_a_leader() -> None:
    member = Member(rank=2, config=make_config(number=2), seated=False)
    digest = Ledger({}, 0).digest
    member.hears(0, Invite(member.config, 0, digest, ()), of=make_config(number=1))
    member.forget()
    member.hears(0, Sync(OPENING, 3, 0, FIRST_ERA, 0))
    assert member.said(0) == [Gap(OPENING, NO_BALLOT, 0, 0)]
    state = State(OPENING, OPENING, 3, Ledger({}, 3).digest, 3, -1, (), (), 0, member.config)
    member.hears(0, state)
    assert member.said(0) == [Acked(OPENING, 3, 0)]


def test_messages_of_an_ended_config_are_answered_with_the_newest() -> None:
    member = Member()
    successor = make_config(number=2)
    member.hears(0, Retire(successor))
    member.forget()
    member.hears(0, Update(OPENING, 1, (), 0, 0))
    assert member.said(0) == [Moved(successor)]
