"""Tests of a new deployment version: kept nodes stay known, new ones join, removed ones are forgotten."""

import pytest

from comesh.core.draws import Draws
from comesh.core.effects import CancelTimer, MemberChanged, Observe, Refused, Send, SetTimer
from comesh.core.events import MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import NEVER, Incarnation, NodeId
from comesh.core.membership import Medley, MembershipSettings, Roster
from comesh.core.membership.former import MAX_FORMER, Former
from comesh.core.membership.medley import FORMER_EXCHANGES
from comesh.core.membership.probe_schedule import ProbeSchedule
from comesh.core.membership.table import Table
from comesh.core.messages import Gossip, GossipItems, MemberState, MemberUpdate, Ping
from comesh.core.plan import Place, PlannedNode
from comesh.core.step import Step
from mesh import Mesh

SETTINGS = MembershipSettings()
LIFE = Incarnation(3, 7, 1)


def named(*names: str) -> Roster:
    """Returns nodes on a line, each at a place derived from its name."""
    return Roster([PlannedNode(id=NodeId(name), place=Place(1000 * ord(name[0]), 0)) for name in names])


def medley(*names: str, own: str = "m") -> Medley:
    made = Medley(own=NodeId(own), roster=named(*names), settings=SETTINGS, draws=Draws(5))
    made.on_started(Started(boot=1, nonce=9), Step(0.0, 0.0))
    return made


def hear(made: Medley, sender: str, message: Ping | Gossip, at_ms: float = 1000.0) -> Step:
    step = Step(at_ms, at_ms)
    event = MessageReceived(sender=NodeId(sender), incarnation=LIFE, deployment=1, message=message)
    made.on_message(event, message, step)
    return step


def adopt(made: Medley, *names: str, at_ms: float = 2000.0) -> Step:
    step = Step(at_ms, at_ms)
    made.adopt(named(*names), step)
    return step


def gossip(node: str, state: MemberState, by: str | None = None) -> Gossip:
    return Gossip(GossipItems((MemberUpdate(NodeId(node), state, LIFE, NodeId(by) if by else None),)))


def refusals(step: Step) -> list[Refused]:
    return [
        effect.observation
        for effect in step.effects
        if isinstance(effect, Observe) and isinstance(effect.observation, Refused)
    ]


# -- in the simulator --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_mesh_grows_and_shrinks_and_agrees(seed: int) -> None:
    mesh = Mesh(14, seed=seed, later=4)
    mesh.run(20)
    assert mesh.agree()
    first, *_, last = mesh.ids
    stay = [node for node in mesh.ids if node not in (first, last)]
    mesh.adopt(*stay, *mesh.later)
    for node in mesh.later:
        mesh.arrive(node)
    mesh.run(20)
    assert {life.why for life in mesh.stopped()} == {"removed from the deployment"}
    assert mesh.running() == sorted([*stay, *mesh.later])
    assert mesh.agree()
    assert mesh.false_deaths() == []
    victim = mesh.later[1]
    mesh.crash(victim)
    assert mesh.run_until(lambda: mesh.all_believe(victim, MemberState.DEAD)) < 4


def test_half_a_mesh_without_the_new_version_disturbs_nobody() -> None:
    mesh = Mesh(12, later=3)
    mesh.run(15)
    mesh.log.clear()
    old = mesh.ids
    everyone = [*old, *mesh.later]
    mesh.adopt(*everyone, by=old[:5])
    mesh.run(30)
    for node in old:
        told = {what.node for _, by, what in mesh.log if by == node and isinstance(what, MemberChanged)}
        assert not told & set(old), "those in both are believed as before"
    mesh.rosters.pop()
    mesh.adopt(*everyone)
    for node in mesh.later:
        mesh.arrive(node)
    mesh.run_until(mesh.agree, within_seconds=120)


def test_an_equal_roster_changes_nothing() -> None:
    made = medley("a", "m", "z")
    before = made.version
    assert adopt(made, "z", "a", "m").effects == []
    assert made.version == before


# -- what carries over -------------------------------------------------------------------------------------


def test_beliefs_follow_the_names_not_the_numbers() -> None:
    made = medley("c", "m", "x", "z")
    hear(made, "c", gossip("x", MemberState.DEAD))
    hear(made, "z", Ping(1, GossipItems()))
    made.prober.round_trips.sample(3, 40.0)
    version = made.version
    adopt(made, "a", "b", "m", "x", "z")
    table = made.beliefs.table
    index = table.roster.index
    assert table.state(index[NodeId("x")]) == MemberState.DEAD
    assert table.incarnation(index[NodeId("z")]) == LIFE
    assert table.heard_ms[index[NodeId("z")]] == 1000.0
    assert table.incarnation(index[NodeId("a")]) == NEVER
    assert made.living == ("a", "b", "m", "z")
    assert made.version > version
    assert made.round_trip_ms(NodeId("z")) == 40.0
    assert made.round_trip_ms(NodeId("a")) is None
    assert made.round_trip_ms(NodeId("c")) is None
    assert [made.is_dead(NodeId(name)) for name in ("x", "c", "z", "a", "stranger")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_the_digest_is_that_of_a_table_that_never_had_other_nodes() -> None:
    table, plain = Table(named("b", "m", "x")), Table(named("m", "x", "y"))
    for name, each in (("x", table), ("x", plain), ("b", table)):
        each.set(each.roster.index[NodeId(name)], LIFE, MemberState.DEAD)
    table.adopt(plain.roster)
    assert (table.digest, table.living, table.living_numbers()) == (
        plain.digest,
        plain.living,
        plain.living_numbers(),
    )


def test_suspicions_of_remaining_nodes_go_on_and_of_removed_ones_end() -> None:
    made = medley("b", "m", "x", "z")
    hear(made, "z", gossip("x", MemberState.SUSPECT, by="z"))
    hear(made, "z", gossip("b", MemberState.SUSPECT, by="z"))
    step = adopt(made, "a", "m", "x", "z")
    assert CancelTimer(Timer("membership", "suspicion", "b")) in step.effects
    assert CancelTimer(Timer("membership", "suspicion", "x")) not in step.effects
    late = Step(9000.0, 9000.0)
    made.on_timer(Timer("membership", "suspicion", "b"), late)
    assert late.effects == [], "a timer of the removed that was under way"
    made.on_timer(Timer("membership", "suspicion", "x"), late)
    probed = [effect.to for effect in late.effects if isinstance(effect, Send)]
    assert probed == ["x"], "hearsay: this node looks for itself"


def test_updates_about_removed_nodes_are_dropped() -> None:
    made = medley("b", "m", "x", "z")
    hear(made, "z", gossip("x", MemberState.DEAD))
    hear(made, "z", gossip("b", MemberState.DEAD))
    adopt(made, "m", "x", "z")
    step = hear(made, "z", Ping(1, GossipItems()), 3000.0)
    (answer,) = [effect.message for effect in step.effects if isinstance(effect, Send)]
    assert [update.node for update in answer.gossip.members] == ["x"]


def test_probes_of_the_removed_end_and_others_are_answered_under_new_numbers() -> None:
    made = medley("b", "m", "z")
    step = Step(1000.0, 1000.0)
    for target in (0, 2):
        made.prober.probe(target, made.incarnation, step)
    pings = {
        effect.to: effect.message.number
        for effect in step.effects
        if isinstance(effect, Send) and isinstance(effect.message, Ping)
    }
    changed = adopt(made, "a", "m", "y", "z", at_ms=1010.0)
    assert CancelTimer(Timer("membership", "no_answer", pings[NodeId("b")])) in changed.effects
    silent = Step(2000.0, 2000.0)
    made.on_timer(Timer("membership", "no_answer", pings[NodeId("b")]), silent)
    assert silent.effects == []
    made.on_timer(Timer("membership", "no_answer", pings[NodeId("z")]), silent)
    assert "z" in [effect.to for effect in silent.effects if isinstance(effect, Send)]


def test_new_nodes_come_first_in_the_probe_schedule() -> None:
    before, after = named("b", "c", "d", "m", "x"), named("a", "c", "d", "m", "x", "y")
    schedule = ProbeSchedule(before, before.index[NodeId("m")], MembershipSettings(spatial=False), Draws(1))
    table = Table(before)
    probed = [before.ids[schedule.next_target(table) or 0]]
    other = schedule.renumbered(after, after.index[NodeId("m")], MembershipSettings(spatial=False))
    table.adopt(after)
    left = {"b", "c", "d", "x"} - set(probed) - {"b"}
    drawn = [after.ids[other.next_target(table) or 0] for _ in range(2 + len(left))]
    assert set(drawn[:2]) == {"a", "y"}
    assert set(drawn[2:]) == left


# -- the removed -------------------------------------------------------------------------------------------


def test_a_removed_node_reports_it_and_stops() -> None:
    mesh = Mesh(6)
    mesh.run(15)
    victim = mesh.ids[2]
    mesh.adopt(*(node for node in mesh.ids if node != victim), by=[victim])
    mesh.run(5)
    assert [(life.machine, life.why) for life in mesh.stopped()] == [(victim, "removed from the deployment")]
    assert {node for _, node in mesh.changes(victim, "left")} == set(mesh.ids), "those who had not heard"


def test_a_removed_node_with_a_seat_accepts_nodes_of_the_newer_version() -> None:
    made = medley("b", "m", "z")
    step = Step(2000.0, 2000.0)
    made.stay(named("b", "y"), step)
    made.stay(named("x", "y"), step)
    assert not [effect for effect in step.effects if isinstance(effect, Send)], "it stays"
    for known in ("x", "y"):
        assert refusals(hear(made, known, Ping(1, GossipItems()), 3000.0)) == []
    assert made.living == ("m", "x", "y")
    assert made.is_former(NodeId("b")), "of the version before"
    assert made.is_former(NodeId("z"))


def test_a_node_that_is_added_again_is_listed_once() -> None:
    made = medley("b", "m", "z")
    step = Step(2000.0, 2000.0)
    made.stay(named("b", "z"), step)
    made.stay(named("b", "m", "x"), step)
    assert made.living == ("b", "m", "x")


def test_messages_of_removed_nodes_are_not_reported_for_a_while() -> None:
    made = medley("b", "m", "z")
    adopt(made, "m", "z")
    soon_ms = 60_000.0
    assert refusals(hear(made, "b", Ping(1, GossipItems()), soon_ms)) == []
    assert refusals(hear(made, "z", gossip("b", MemberState.DEAD), soon_ms)) == []
    assert len(refusals(hear(made, "q", Ping(1, GossipItems()), soon_ms))) == 1
    late_ms = 2000.0 + FORMER_EXCHANGES * SETTINGS.exchange_ms
    assert len(refusals(hear(made, "b", Ping(1, GossipItems()), late_ms))) == 1
    assert len(refusals(hear(made, "z", gossip("b", MemberState.DEAD), late_ms))) == 1


def test_a_node_that_is_added_again_is_no_stranger() -> None:
    made = medley("b", "m", "z")
    hear(made, "z", gossip("b", MemberState.DEAD))
    adopt(made, "m", "z")
    assert made.is_dead(NodeId("b"))
    adopt(made, "b", "m", "z", at_ms=3000.0)
    assert not made.is_dead(NodeId("b"))
    assert made.living == ("b", "m", "z")


def test_the_memory_of_the_removed_is_bounded() -> None:
    former = Former(1000.0)
    former.adopt([NodeId(f"n{number}") for number in range(MAX_FORMER + 10)], (), 0.0)
    assert NodeId("n9") not in former
    assert NodeId("n10") in former


def test_a_lone_node_that_gets_company_compares_tables_soon() -> None:
    made = medley("m")
    assert made.joined
    step = adopt(made, "a", "m")
    waits = [effect.after_ms for effect in step.effects if isinstance(effect, SetTimer)]
    assert waits and max(waits) < SETTINGS.exchange_ms / 2


# -- voices of other parts ---------------------------------------------------------------------------------


def test_other_messages_are_judged_like_those_of_membership() -> None:
    made = medley("a", "m", "z")
    younger, older = Incarnation(4, 1), Incarnation(2, 1)
    assert made.hears(NodeId("a"), LIFE, Step(500.0, 0.0)), "the first voice of a presumed member"
    step = Step(900.0, 0.0)
    assert made.hears(NodeId("a"), LIFE, step)
    assert step.effects == []
    assert made.beliefs.table.heard_ms[0] == 900.0
    assert made.hears(NodeId("a"), younger, step)
    assert made.beliefs.table.incarnation(0) == younger
    assert any(isinstance(effect, SetTimer) for effect in step.effects), "news to be told"
    silent = Step(950.0, 0.0)
    assert not made.hears(NodeId("a"), older, silent)
    assert not made.hears(NodeId("a"), LIFE, silent)
    assert silent.effects == [], "a ghost gets no answer"
    stranger = Step(960.0, 0.0)
    assert not made.hears(NodeId("q"), LIFE, stranger)
    assert len(refusals(stranger)) == 1


def test_a_message_without_a_contradiction_does_not_revive_a_dead_node() -> None:
    made = medley("a", "m", "z")
    hear(made, "z", gossip("a", MemberState.DEAD))
    assert made.hears(NodeId("a"), LIFE, Step(2000.0, 0.0))
    assert made.is_dead(NodeId("a"))
    assert made.hears(NodeId("a"), Incarnation(LIFE.boot, LIFE.nonce, LIFE.refutation + 1), Step(2100.0, 0.0))
    assert not made.is_dead(NodeId("a"))


def test_messages_of_a_younger_process_of_the_own_name_are_ignored() -> None:
    made = medley("a", "m", "z")
    step = Step(2000.0, 0.0)
    assert not made.hears(NodeId("m"), Incarnation(9, 9), step)
    assert made.incarnation.boot == 10, "still joining: it takes the next boot above"


def test_a_timer_for_a_removed_node_does_nothing() -> None:
    mesh = Mesh(5)
    mesh.run(10)
    keep = mesh.ids[1:]
    node = mesh.node(keep[0])
    mesh.adopt(*keep, by=keep)
    stale = TimerFired(timer=Timer("membership", "suspicion", mesh.nodes[0].id))
    assert node.step(stale, mesh.now_ms) == []
