"""Tests of the small parts of membership."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comesh.core.draws import Draws
from comesh.core.ids import NEVER, Incarnation, NodeId
from comesh.core.membership.announcements import MAX_VALUE_BYTES, Board
from comesh.core.membership.gossip_queue import MAX_WAITING, GossipQueue, Waiting
from comesh.core.membership.health import MAX_SCORE, Health
from comesh.core.membership.probe_schedule import MAX_SHARE, ProbeSchedule
from comesh.core.membership.roster import Roster
from comesh.core.membership.round_trips import RoundTrips
from comesh.core.membership.settings import SWIM, MembershipSettings
from comesh.core.membership.suspicion import Suspicion
from comesh.core.membership.table import Table
from comesh.core.messages import Announcement, MemberState, MemberUpdate
from comesh.core.plan import Place, PlannedNode


def line(count: int) -> Roster:
    """Nodes a metre apart."""
    return Roster(
        [PlannedNode(id=NodeId(f"n{number:03}"), place=Place(1000 * number, 0)) for number in range(count)]
    )


# -- table ---------------------------------------------------------------------------------------------

small = st.integers(0, 2)
updates_of_two = st.lists(
    st.tuples(st.integers(0, 1), st.builds(Incarnation, small, small, small), st.sampled_from(MemberState)),
    max_size=12,
)


def believing(updates: list[tuple[int, Incarnation, MemberState]]) -> Table:
    table = Table(line(2))
    for number, incarnation, state in updates:
        if table.compare(number, incarnation, state) > 0:
            table.set(number, incarnation, state)
    return table


@given(updates_of_two, st.randoms(use_true_random=False))
def test_nodes_with_the_same_updates_believe_the_same(
    updates: list[tuple[int, Incarnation, MemberState]], shuffler: Random
) -> None:
    table = believing(updates)
    shuffled = list(updates)
    shuffler.shuffle(shuffled)
    other = believing(shuffled)
    assert list(table.updates()) == list(other.updates())
    assert table.digest == other.digest
    assert table.living == other.living == len(table.living_numbers())


def test_digests_cover_gone_nodes_and_their_incarnations() -> None:
    life = Incarnation(1, 5)
    digest = {state: believing([(0, life, state)]).digest for state in MemberState}
    assert digest[MemberState.ALIVE] == digest[MemberState.SUSPECT] == Table(line(2)).digest
    others = {
        believing([(1, life, MemberState.DEAD)]).digest,
        believing([(0, Incarnation(1, 5, 1), MemberState.DEAD)]).digest,
    }
    assert len({digest[MemberState.ALIVE], digest[MemberState.DEAD], digest[MemberState.LEFT], *others}) == 5


def test_a_copy_is_independent() -> None:
    table = believing([(0, Incarnation(1, 5), MemberState.ALIVE)])
    copy = table.copy()
    copy.set(0, Incarnation(1, 5), MemberState.DEAD)
    assert table.is_living(0)
    assert not copy.is_living(0)
    assert (table.living, copy.living) == (2, 1)


def test_a_new_life_has_not_been_heard() -> None:
    table = believing([(0, Incarnation(1, 5), MemberState.ALIVE)])
    table.heard_ms[0] = 77.0
    table.set(0, Incarnation(1, 5, 1), MemberState.ALIVE)
    assert table.heard_ms[0] == 77.0
    table.set(0, Incarnation(2, 9), MemberState.ALIVE)
    assert table.heard_ms[0] == float("-inf")


# -- schedule -----------------------------------------------------------------------------------------------


@given(st.integers(2, 40), st.integers(0, 2**32), st.booleans())
def test_every_node_is_probed_once_per_schedule(count: int, seed: int, spatial: bool) -> None:
    roster = line(count)
    settings = MembershipSettings(spatial=spatial)
    schedule = ProbeSchedule(roster, 0, settings, Draws(seed))
    table = Table(roster)
    turns = 2 * schedule.size if spatial else schedule.size
    probed = {schedule.next_target(table) for _ in range(turns)}
    assert probed == set(range(1, count))
    assert schedule.size <= 2 * (count - 1) + count


def test_near_nodes_are_probed_more_often() -> None:
    roster = line(30)
    schedule = ProbeSchedule(roster, 10, MembershipSettings(), Draws(1))
    table = Table(roster)
    times = Counter(schedule.next_target(table) for _ in range(40 * schedule.size))
    assert times[9] > 3 * times[8] > 3 * times[29]
    assert max(times[9], times[12]) <= 40 * schedule.size / MAX_SHARE


def test_plain_swim_probes_evenly() -> None:
    roster = line(30)
    schedule = ProbeSchedule(roster, 10, SWIM, Draws(1))
    times = Counter(schedule.next_target(Table(roster)) for _ in range(10 * schedule.size))
    assert set(times.values()) == {10}


def test_every_second_probe_goes_to_the_next_living_node_in_the_ring() -> None:
    roster = line(8)
    table = Table(roster)
    schedule = ProbeSchedule(roster, 2, MembershipSettings(), Draws(4))
    ward = roster.ring[(roster.ring_position[2] + 1) % 8]
    targets = [schedule.next_target(table) for _ in range(20)]
    assert ward in (set(targets[::2]) if len(set(targets[::2])) == 1 else set(targets[1::2]))
    table.set(ward, NEVER, MemberState.DEAD)
    assert schedule.ward(table) == roster.ring[(roster.ring_position[2] + 2) % 8]


def test_the_dead_are_not_probed_and_a_lonely_node_rests() -> None:
    roster = line(3)
    table = Table(roster)
    schedule = ProbeSchedule(roster, 0, MembershipSettings(), Draws(1))
    table.set(1, NEVER, MemberState.DEAD)
    assert {schedule.next_target(table) for _ in range(20)} == {2}
    table.set(2, NEVER, MemberState.LEFT)
    assert {schedule.next_target(table) for _ in range(20)} == {None}
    alone = line(1)
    assert ProbeSchedule(alone, 0, MembershipSettings(), Draws(1)).next_target(Table(alone)) is None


def test_helpers_are_living_distinct_and_not_the_target() -> None:
    roster = line(12)
    table = Table(roster)
    table.set(3, NEVER, MemberState.DEAD)
    schedule = ProbeSchedule(roster, 0, MembershipSettings(), Draws(2))
    for _ in range(50):
        for helpers in (schedule.some(3, table, but=1), schedule.helpers(3, table, target=1)):
            assert len(set(helpers)) == len(helpers) == 3
            assert not {0, 1, 3} & set(helpers)


def test_helpers_are_near() -> None:
    """A far helper answers when the time is over."""
    roster = line(200)
    schedule = ProbeSchedule(roster, 100, MembershipSettings(), Draws(2))
    helpers = [number for _ in range(50) for number in schedule.helpers(3, Table(roster), target=101)]
    assert sum(abs(number - 100) <= 6 for number in helpers) > 0.9 * len(helpers)
    assert (
        ProbeSchedule(line(2), 0, MembershipSettings(), Draws(1)).helpers(3, Table(line(2)), target=1) == []
    )


# -- roster --------------------------------------------------------------------------------------------


def test_ring_neighbours_are_near() -> None:
    grid = [
        PlannedNode(id=NodeId(f"n{x}_{y}"), place=Place(1000 * x, 1000 * y))
        for x in range(8)
        for y in range(8)
    ]
    roster = Roster(grid)
    place = {node.id: node.place for node in grid}
    steps = [
        abs(place[roster.ids[a]].x_mm - place[roster.ids[b]].x_mm)
        + abs(place[roster.ids[a]].y_mm - place[roster.ids[b]].y_mm)
        for a, b in pairwise(roster.ring)
    ]
    assert sorted(roster.ring) == list(range(64))
    assert sum(steps) / len(steps) < 2000


def test_nodes_in_one_place_have_finite_weights() -> None:
    roster = Roster([PlannedNode(id=NodeId(name), place=Place(0, 0)) for name in "abc"])
    weights = roster.weights(0, 3)
    assert weights[0] == 0
    assert weights[1] == weights[2] > 0


# -- suspicion, health, round trips ---------------------------------------------------------------------


def suspicion(needed: int) -> Suspicion:
    return Suspicion(
        own=NodeId("a"),
        incarnation=Incarnation(1, 1),
        began_ms=100.0,
        shortest_ms=1000.0,
        longest_ms=3000.0,
        needed=needed,
    )


def test_confirmations_shorten_a_suspicion() -> None:
    doubt = suspicion(needed=2)
    assert doubt.confirm(NodeId("a"))
    assert doubt.left_ms(100.0) == 3000.0
    assert doubt.confirm(NodeId("b"))
    assert 1000.0 < doubt.left_ms(100.0) < 3000.0
    assert not doubt.confirm(NodeId("b")), "the same witness counts once"
    assert doubt.confirm(NodeId("c"))
    assert doubt.left_ms(100.0) == 1000.0
    assert not doubt.confirm(NodeId("d")), "enough is enough"
    assert doubt.left_ms(600.0) == 500.0
    assert doubt.left_ms(5000.0) == 0.0


def test_where_nobody_could_confirm_the_shortest_time_holds() -> None:
    alone = suspicion(needed=0)
    assert alone.confirm(NodeId("a"))
    assert alone.left_ms(100.0) == 1000.0


def test_a_reported_suspicion_waits_twice_as_long_as_a_direct_one() -> None:
    doubt = suspicion(needed=2)
    for witness in "bcd":
        doubt.confirm(NodeId(witness))
    assert not doubt.is_witnessed
    assert doubt.left_ms(100.0) == 2000.0
    assert doubt.confirm(NodeId("a")), "its own look counts however many others looked"
    assert doubt.is_witnessed
    assert doubt.left_ms(100.0) == 1000.0


def test_self_doubt_is_bounded_and_passes() -> None:
    health = Health()
    health.worse(100)
    assert health.score == MAX_SCORE
    assert health.stretch(10.0) == 10.0 * (1 + MAX_SCORE)
    for _ in range(20):
        health.better()
    assert health.stretch(10.0) == 10.0


def test_round_trips_settle_on_what_is_measured() -> None:
    trips = RoundTrips(2)
    assert trips.estimate_ms(0) is None
    assert trips.timeout_ms(0, 1.0, 500.0) == 500.0
    for _ in range(50):
        trips.sample(0, 20.0)
    assert trips.estimate_ms(0) == pytest.approx(20.0)
    assert trips.timeout_ms(0, 1.0, 500.0) == pytest.approx(20.0, abs=0.5)
    assert trips.timeout_ms(0, 100.0, 500.0) == 100.0
    trips.sample(0, 200.0)
    assert trips.timeout_ms(0, 1.0, 500.0) > 200.0


@pytest.mark.parametrize(("size", "sends"), [(1, 5), (9, 8), (10, 8), (100, 10), (1000, 12)])
def test_the_number_of_sends_grows_with_the_logarithm(size: int, sends: int) -> None:
    assert MembershipSettings().sends(size) == sends


# -- gossip --------------------------------------------------------------------------------------------


def test_gossip_goes_least_sent_first_and_a_bounded_number_of_times() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.put("a", "a1")
    assert waiting.take(1, sends=3) == ("a1",)
    waiting.put("b", "b1")
    assert waiting.take(1, sends=3) == ("b1",), "the newcomer was sent less often"
    sent = Counter(item for _ in range(10) for item in waiting.take(1, sends=3))
    assert sent == {"a1": 2, "b1": 2}
    assert waiting.take(5, sends=3) == ()
    assert len(waiting) == 0


def test_a_newer_item_replaces_the_older() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.put("a", "old")
    waiting.take(1, sends=3)
    waiting.put("a", "new")
    assert Counter(item for _ in range(10) for item in waiting.take(4, sends=3)) == {"new": 3}


def test_a_changed_detail_does_not_restart_the_count() -> None:
    waiting: Waiting[str] = Waiting()
    waiting.put("a", "first witness")
    waiting.take(1, sends=3)
    waiting.amend("a", "second witness")
    assert Counter(item for _ in range(10) for item in waiting.take(4, sends=3)) == {"second witness": 2}
    waiting.amend("b", "news after all")
    assert len(waiting) == 1


def test_the_queue_is_bounded() -> None:
    waiting: Waiting[int] = Waiting()
    for number in range(MAX_WAITING + 10):
        waiting.put(str(number), number)
    assert len(waiting) == MAX_WAITING


def test_updates_about_the_receiver_come_first_and_once() -> None:
    queue = GossipQueue()
    update = MemberUpdate(NodeId("a"), MemberState.SUSPECT, Incarnation(1, 1))
    assert queue.take(8, update).members == (update,)
    queue.members.put("a", update)
    assert queue.take(8, update).members == (update,)


# -- announcements -------------------------------------------------------------------------------------------


def test_the_higher_version_of_an_announcement_is_kept() -> None:
    board = Board()
    board.put(Announcement("config/c1", 2, b"two"))
    assert not board.is_news(Announcement("config/c1", 2, b"other"))
    assert not board.is_news(Announcement("config/c1", 1, b"one"))
    before = board.digest
    board.put(Announcement("config/c1", 3, b"three"))
    assert board.digest != before
    known = board.get("config/c1")
    assert known is not None
    assert known.value == b"three"


def test_an_announcement_that_is_too_large_is_refused_with_its_size() -> None:
    why_not = Board().why_not(Announcement("k", 1, bytes(MAX_VALUE_BYTES + 1)))
    assert why_not is not None
    assert "1025 bytes" in why_not
