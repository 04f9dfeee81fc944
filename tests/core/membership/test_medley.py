"""Tests of Medley in the simulator: detection times and agreement."""

import pytest

from comesh.core.effects import Effect, Observe, Persist, Refused, Send, Stop
from comesh.core.events import MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import NEVER, Incarnation, NodeId
from comesh.core.journal import BootRaised
from comesh.core.membership import MembershipSettings
from comesh.core.membership.announcements import MAX_VALUE_BYTES
from comesh.core.membership.medley import GOSSIP, RIVAL
from comesh.core.messages import (
    Ack,
    Doubled,
    Gossip,
    GossipItems,
    MemberState,
    MemberUpdate,
    Message,
    Nack,
    Ping,
    PingRequest,
)
from comesh.core.node import Node
from comesh.sim.disk import Disk
from comesh.sim.topology import Shape
from mesh import Mesh


def test_a_mesh_starts_agrees_and_stays_quiet() -> None:
    mesh = Mesh(12, start_spread_ms=500.0)
    mesh.run_until(lambda: all(mesh.node(node).membership.joined for node in mesh.running()))
    mesh.run(5)
    assert len(mesh.running()) == 12
    assert mesh.agree()
    mesh.log.clear()
    mesh.run(60)
    assert mesh.log == []
    assert mesh.agree()


@pytest.mark.parametrize("seed", range(8))
def test_a_crash_is_known_to_all_within_four_periods(seed: int) -> None:
    mesh = Mesh(10, seed=seed)
    mesh.run(15)
    victim = mesh.ids[seed]
    mesh.crash(victim)
    took = mesh.run_until(lambda: mesh.all_believe(victim, MemberState.DEAD))
    assert took < 4
    assert mesh.false_deaths() and {subject for _, _, subject in mesh.false_deaths()} == {victim}


@pytest.mark.parametrize("seed", range(6))
def test_a_failed_power_domain_is_detected_with_its_first_node(seed: int) -> None:
    """A node that misses another one probes the others on its circuit at once."""
    mesh = Mesh(12, seed=seed, domains=4)
    mesh.run(15)
    lost = mesh.ids[seed % 4 :: 4]
    for node in lost:
        mesh.crash(node)
    took = mesh.run_until(lambda: all(mesh.all_believe(node, MemberState.DEAD) for node in lost))
    assert took < 6


@pytest.mark.parametrize(("loss", "doubts"), [(0.02, False), (0.1, True)])
def test_loss_alone_kills_nobody(loss: float, doubts: bool) -> None:
    mesh = Mesh(20, loss=loss, seed=3)
    mesh.run(300)
    assert any(mesh.changes(node, "suspect") for node in mesh.ids) == doubts
    assert mesh.false_deaths() == []


def test_a_restart_is_a_new_life() -> None:
    mesh = Mesh(8)
    mesh.run(10)
    victim = mesh.ids[2]
    mesh.crash(victim)
    mesh.run_until(lambda: mesh.all_believe(victim, MemberState.DEAD))
    mesh.start(victim)
    mesh.run_until(mesh.agree)
    table = mesh.node(mesh.ids[0]).membership.beliefs.table
    assert table.incarnation(2).boot == 2


def test_a_restart_before_anyone_noticed_is_seen_too() -> None:
    mesh = Mesh(8)
    mesh.run(10)
    victim = mesh.ids[2]
    mesh.crash(victim)
    mesh.start(victim)
    mesh.run_until(mesh.agree)
    assert mesh.false_deaths() == []
    assert mesh.changes(victim, "alive"), "the new life was told"


def test_a_wiped_node_takes_the_next_boot_number() -> None:
    """Its disk says boot 1; the mesh remembers a later life of it."""
    mesh = Mesh(8)
    mesh.run(5)
    victim = mesh.ids[2]
    for _ in range(3):
        mesh.crash(victim)
        mesh.start(victim)
        mesh.run(5)
    mesh.crash(victim)
    mesh.start(victim, wiped=True)
    mesh.run_until(lambda: mesh.node(victim).membership.joined, 5)
    mesh.run(5)
    assert mesh.agree()
    assert mesh.node(victim).membership.incarnation.boot == 5
    assert mesh.machine(victim).boots == 5, "the number is on the disk before it is used"
    assert mesh.stopped() == []


def test_leaving_is_not_dying() -> None:
    mesh = Mesh(10)
    mesh.run(10)
    leaver = mesh.ids[4]
    mesh.world.ask_to_leave(mesh.machine(leaver))
    took = mesh.run_until(lambda: leaver not in mesh.running() and mesh.all_believe(leaver, MemberState.LEFT))
    assert took < 3
    assert [life.why for life in mesh.stopped()] == ["left the mesh, as asked"]
    mesh.run(30)
    assert mesh.false_deaths() == []
    mesh.start(leaver)
    mesh.run_until(mesh.agree)


def test_sides_of_a_partition_bury_each_other_and_meet_again() -> None:
    mesh = Mesh(12)
    mesh.run(10)
    left, right = set(mesh.ids[:5]), set(mesh.ids[5:])
    stations = mesh.topology.nodes
    here, there = {stations[node] for node in left}, {stations[node] for node in right}
    mesh.world.radio.cut(1, here, there)
    mesh.world.radio.cut(2, there, here)
    mesh.run_until(lambda: all(set(mesh.node(n).membership.living) == left for n in left), 120)
    mesh.run_until(lambda: all(set(mesh.node(n).membership.living) == right for n in right), 120)
    mesh.world.radio.heal()
    took = mesh.run_until(mesh.agree, 120)
    assert took < 60


def test_a_node_that_is_heard_but_cannot_hear_doubts_itself() -> None:
    """A one-way cut: nothing reaches the deaf node. It must not bury the mesh one by one at full speed."""
    mesh = Mesh(12)
    mesh.run(10)
    deaf = mesh.ids[6]
    at = mesh.topology.nodes[deaf]
    mesh.world.radio.cut(1, set(mesh.topology.nodes.values()) - {at}, {at})
    mesh.run(10)
    assert mesh.node(deaf).membership.prober.health.score >= 3
    mesh.world.radio.heal()
    mesh.run_until(mesh.agree, 120)
    mesh.run(60)
    assert mesh.node(deaf).membership.prober.health.score == 0


def test_a_pause_longer_than_a_suspicion_is_forgiven() -> None:
    mesh = Mesh(10)
    mesh.run(10)
    sleeper = mesh.ids[3]
    mesh.world.pause(mesh.machine(sleeper), 15_000.0)
    mesh.run_until(lambda: mesh.all_believe(sleeper, MemberState.DEAD))
    mesh.run_until(mesh.agree, 60)
    assert mesh.stopped() == []


@pytest.mark.parametrize("card_age_boots", [0, 1, 3])
def test_the_younger_of_two_processes_with_one_name_stays(card_age_boots: int) -> None:
    """The copied SD card: however old the copy is, whoever started last goes on; the other says why not."""
    mesh = Mesh(10)
    mesh.run(5)
    name = mesh.ids[3]
    for _ in range(3):
        mesh.crash(name)
        mesh.start(name)
        mesh.run(5)
    first = mesh.machine(name)
    elsewhere = mesh.topology.nodes[mesh.ids[8]]
    card = Disk(store=1, initialised=False, flush_ms=50.0)
    card.write(BootRaised(first.boots - card_age_boots), flush=True, now_ms=0.0)
    copy = mesh.world.add_machine(f"{name}.copy1", name, elsewhere, disk=card)
    mesh.world.start(copy)
    mesh.run_until(lambda: bool(mesh.stopped()))
    mesh.run(60)
    (stopped,) = mesh.stopped()
    assert stopped.machine == name
    reason = stopped.why
    assert f"another process runs as node '{name}'" in reason
    assert "copied" in reason
    assert copy.process is not None
    assert all(mesh.believes(node, name) == MemberState.ALIVE for node in mesh.running())


@pytest.mark.parametrize("shape", [Shape.GRID, Shape.LINE])
def test_announcements_reach_everyone_once_and_the_newest_stays(shape: Shape) -> None:
    mesh = Mesh(20, loss=0.05, shape=shape)
    mesh.run(10)
    mesh.route(mesh.ids[0], "config/c1", 7, b"seven")
    mesh.run_until(lambda: len(mesh.learned("config/c1")) == 19)
    mesh.route(mesh.ids[5], "config/c1", 6, b"six")
    mesh.route(mesh.ids[9], "config/c1", 8, b"eight")
    mesh.run_until(lambda: all(mesh.posted(node, "config/c1") == b"eight" for node in mesh.ids))
    mesh.run(60)
    for node, values in mesh.learned("config/c1").items():
        told = [b"seven"] if node == mesh.ids[9] else [b"seven", b"eight"]
        assert values in (told, [b"eight"]), f"{node} learned {values}"


def test_a_returning_node_catches_up_by_exchange() -> None:
    mesh = Mesh(8)
    mesh.run(10)
    away = mesh.ids[1]
    mesh.crash(away)
    mesh.run(20)
    mesh.route(mesh.ids[0], "device/lamp", 1, b"down")
    mesh.run(30)
    mesh.start(away)
    mesh.run_until(lambda: away in mesh.learned("device/lamp"), 10)


def test_a_board_larger_than_a_datagram_is_exchanged_in_pages() -> None:
    mesh = Mesh(3)
    mesh.run(5)
    away = mesh.ids[2]
    mesh.crash(away)
    mesh.run(10)
    for number in range(1200):
        mesh.route(mesh.ids[0], f"device/{number}", 1, bytes(1000))
    mesh.run_until(lambda: all(mesh.posted(mesh.ids[1], f"device/{n}") for n in (0, 600, 1199)), 300)
    mesh.start(away)
    mesh.run_until(
        lambda: all(mesh.posted(away, f"device/{number}") is not None for number in range(1200)), 120
    )


def test_all_nodes_keep_the_same_announcement_of_one_version() -> None:
    mesh = Mesh(6)
    mesh.run(5)
    mesh.route(mesh.ids[0], "config/c1", 5, b"one")
    mesh.route(mesh.ids[5], "config/c1", 5, b"two")
    mesh.run_until(lambda: {mesh.posted(node, "config/c1") for node in mesh.ids} == {b"two"})
    mesh.log.clear()
    mesh.route(mesh.ids[0], "config/c1", 3, b"stale")
    (refused,) = [what for _, _, what in mesh.log if isinstance(what, Refused)]
    assert "is there at version 5" in refused.why


@pytest.mark.parametrize("version", [-1, 1 << 63])
def test_a_version_that_the_wire_cannot_carry_is_refused(version: int) -> None:
    mesh = Mesh(3)
    mesh.run(5)
    mesh.route(mesh.ids[0], "config/c1", version, b"")
    assert mesh.posted(mesh.ids[0], "config/c1") is None
    assert any(isinstance(what, Refused) for _, _, what in mesh.log)


@pytest.mark.parametrize("claim", [Incarnation(2**63 - 1, 1), Incarnation(1, 2**63 - 1, 2**63 - 1)])
def test_an_absurd_incarnation_is_not_exceeded(claim: Incarnation) -> None:
    mesh = Mesh(3)
    mesh.run(5)
    node, other = mesh.node(mesh.ids[0]), mesh.node(mesh.ids[1]).membership.incarnation
    gossip = Gossip(GossipItems((MemberUpdate(mesh.ids[0], MemberState.DEAD, claim),)))
    effects = node.step(
        MessageReceived(sender=mesh.ids[1], incarnation=other, deployment=1, message=gossip), 5000.0
    )
    assert any(isinstance(effect, Observe) and isinstance(effect.observation, Refused) for effect in effects)
    assert node.membership.incarnation.boot == 1


def test_a_raised_boot_is_on_disk_before_it_is_sent() -> None:
    mesh = Mesh(3)
    mesh.run(5)
    node, other = mesh.node(mesh.ids[0]), mesh.node(mesh.ids[1]).membership.incarnation
    gossip = Gossip(GossipItems((MemberUpdate(mesh.ids[0], MemberState.DEAD, Incarnation(7, 1)),)))
    effects = node.step(
        MessageReceived(sender=mesh.ids[1], incarnation=other, deployment=1, message=gossip), 5000.0
    )
    effects += node.step(TimerFired(timer=GOSSIP), 5001.0)
    spoken = [
        at for at, effect in enumerate(effects) if isinstance(effect, Send) and effect.incarnation.boot == 8
    ]
    persisted = [at for at, effect in enumerate(effects) if effect == Persist(BootRaised(8))]
    assert spoken and persisted
    assert persisted[0] < spoken[0]


def test_a_rival_known_only_by_gossip_stops_no_process() -> None:
    """A single report, or two that are far apart, do not prove that a process lives."""
    mesh = Mesh(4)
    mesh.run(5)
    node, witness = mesh.node(mesh.ids[0]), mesh.node(mesh.ids[1]).membership.incarnation

    def hear(message: Message, now_ms: float) -> list[Effect]:
        return node.step(
            MessageReceived(sender=mesh.ids[1], incarnation=witness, deployment=1, message=message), now_ms
        )

    younger = Incarnation(9, 9)
    for at_ms in (10_000.0, 12_100.0):
        assert not any(isinstance(effect, Stop) for effect in hear(Doubled(younger, 3_600_000.0), at_ms))
    hear(Doubled(younger, 100.0), 20_000.0)
    node.step(TimerFired(timer=RIVAL), 28_000.0)
    assert node.membership.incarnation.boot == 10, "nobody heard it again: the node speaks above it"
    later = Incarnation(11, 9)
    hear(Gossip(GossipItems((MemberUpdate(mesh.ids[0], MemberState.ALIVE, later),))), 90_000.0)
    assert not any(isinstance(effect, Stop) for effect in hear(Doubled(later, 100.0), 91_000.0))
    assert any(isinstance(effect, Stop) for effect in hear(Doubled(later, 100.0), 93_000.0))


def test_a_helper_passes_on_only_what_it_heard_from_the_target() -> None:
    mesh = Mesh(4)
    mesh.run(5)
    helper = mesh.node(mesh.ids[0])
    lives = [mesh.node(node).membership.incarnation for node in mesh.ids]
    request = PingRequest(5, mesh.ids[2], 100.0, GossipItems())
    effects = helper.step(
        MessageReceived(sender=mesh.ids[1], incarnation=lives[1], deployment=1, message=request), 5000.0
    )
    (ping,) = [effect.message for effect in effects if isinstance(effect, Send)]
    assert isinstance(ping, Ping)
    forged = Ack(ping.number, GossipItems(), mesh.ids[2], lives[2])
    effects = helper.step(
        MessageReceived(sender=mesh.ids[3], incarnation=lives[3], deployment=1, message=forged), 5010.0
    )
    assert [effect for effect in effects if isinstance(effect, Send)] == []


def test_seeds_are_asked_and_others_too() -> None:
    mesh = Mesh(12)
    node = Node(
        own=mesh.ids[0],
        roster=mesh.roster,
        membership=mesh.settings,
        seed=1,
        seeds=(mesh.ids[7], NodeId("gone")),
    )
    asked = [effect.to for effect in node.step(Started(boot=1, nonce=1), 0.0) if isinstance(effect, Send)]
    assert mesh.ids[7] in asked
    assert len(set(asked)) == 6


def test_an_announcement_that_is_too_large_is_refused() -> None:
    mesh = Mesh(3)
    mesh.run(5)
    mesh.route(mesh.ids[0], "config/c1", 1, bytes(MAX_VALUE_BYTES + 1))
    mesh.run(5)
    refused = [what for _, _, what in mesh.log if isinstance(what, Refused)]
    assert len(refused) == 1
    assert mesh.learned("config/c1") == {}


def test_messages_from_and_about_strangers_are_refused_and_reported() -> None:
    mesh = Mesh(4)
    mesh.run(5)
    node = mesh.node(mesh.ids[0])
    stranger = MessageReceived(
        sender=NodeId("stranger"), incarnation=Incarnation(1, 1), deployment=1, message=Nack(1)
    )
    (effect,) = node.step(stranger, 5000.0)
    assert "not a node of this deployment" in effect.observation.why
    about = Gossip(GossipItems((MemberUpdate(NodeId("stranger"), MemberState.ALIVE, Incarnation(1, 1)),)))
    known = mesh.node(mesh.ids[1]).membership.incarnation
    effects = node.step(
        MessageReceived(sender=mesh.ids[1], incarnation=known, deployment=1, message=about), 5000.0
    )
    assert [type(effect.observation) for effect in effects if hasattr(effect, "observation")] == [Refused]
    assert "stranger" not in node.membership.living


def test_a_node_asked_to_try_itself_answers() -> None:
    mesh = Mesh(3)
    mesh.run(5)
    node, asker = mesh.node(mesh.ids[0]), mesh.node(mesh.ids[1])
    request = PingRequest(7, mesh.ids[0], 100.0, GossipItems())
    (answer,) = node.step(
        MessageReceived(
            sender=mesh.ids[1], incarnation=asker.membership.incarnation, deployment=1, message=request
        ),
        5000.0,
    )
    assert isinstance(answer, Send)
    assert answer.message == Ack(7, GossipItems(), mesh.ids[0], node.membership.incarnation)


def test_a_second_request_to_leave_does_not_delay_it() -> None:
    mesh = Mesh(4)
    mesh.run(5)
    leaver = mesh.ids[2]
    for _ in range(12):
        mesh.world.ask_to_leave(mesh.machine(leaver))
        mesh.run(0.1)
    assert leaver not in mesh.running()


def test_a_node_probes_once_more_before_it_declares_a_death() -> None:
    """A reported suspicion is not enough: the node probes the suspect itself when the time is over."""
    mesh = Mesh(6)
    mesh.run(10)
    node, suspect = mesh.node(mesh.ids[0]), mesh.node(mesh.ids[3])
    other = mesh.node(mesh.ids[1]).membership.incarnation
    gossip = Gossip(
        GossipItems(
            (MemberUpdate(mesh.ids[3], MemberState.SUSPECT, suspect.membership.incarnation, mesh.ids[5]),)
        )
    )
    node.step(MessageReceived(sender=mesh.ids[1], incarnation=other, deployment=1, message=gossip), 10_000.0)
    effects = node.step(TimerFired(timer=Timer("membership", "suspicion", mesh.ids[3])), 16_000.0)
    assert node.membership.beliefs.table.state(3) == MemberState.SUSPECT
    (ping,) = [effect for effect in effects if isinstance(effect, Send)]
    assert ping.to == mesh.ids[3]
    assert isinstance(ping.message, Ping)
    assert ping.message.gossip.members[0].state == MemberState.SUSPECT, "so that it can contradict"


def test_giant_gossip_is_bounded_and_reported_once() -> None:
    mesh = Mesh(3)
    mesh.run(5)
    node, other = mesh.node(mesh.ids[0]), mesh.node(mesh.ids[1]).membership.incarnation
    strangers = tuple(
        MemberUpdate(NodeId(f"x{n}"), MemberState.ALIVE, Incarnation(1, 1)) for n in range(9000)
    )
    effects = node.step(
        MessageReceived(
            sender=mesh.ids[1], incarnation=other, deployment=1, message=Gossip(GossipItems(strangers))
        ),
        5000.0,
    )
    (told,) = [effect.observation for effect in effects if isinstance(effect, Observe)]
    assert isinstance(told, Refused)
    assert "4096 updates" in told.why


def test_a_lonely_node_and_a_mesh_of_two_work() -> None:
    alone = Mesh(1)
    alone.run(60)
    assert alone.node(alone.ids[0]).membership.living == alone.ids
    two = Mesh(2)
    two.run_until(two.agree)
    two.crash(two.ids[1])
    two.run_until(lambda: two.all_believe(two.ids[1], MemberState.DEAD))
    two.start(two.ids[1])
    two.run_until(two.agree, 90)


@pytest.mark.parametrize(
    "message",
    [
        Gossip(GossipItems()),
        Nack(1),
        Ack(1, GossipItems()),
        Doubled(Incarnation(9, 9), 1.0),
    ],
)
def test_a_dead_life_that_asks_nothing_gets_no_answer(message: Message) -> None:
    """Swarm seed 447: two nodes, each taking the other for a ghost, answered each other for ever."""
    mesh = Mesh(4)
    mesh.run(10)
    node = mesh.node(mesh.ids[0])
    ghost = MessageReceived(sender=mesh.ids[1], incarnation=Incarnation(0, 1), deployment=1, message=message)
    assert [effect for effect in node.step(ghost, 10_000.0) if isinstance(effect, Send)] == []
    asking = MessageReceived(
        sender=mesh.ids[1], incarnation=Incarnation(0, 1), deployment=1, message=Ping(1, GossipItems())
    )
    (answer,) = [effect for effect in node.step(asking, 10_000.0) if isinstance(effect, Send)]
    assert isinstance(answer.message, Doubled)


def test_a_node_that_believes_all_gone_goes_on_trying() -> None:
    """Swarm seeds 36, 43, 86: a copy that was cut off, or knew the others as left, was alone for ever."""
    mesh = Mesh(6)
    mesh.run(10)
    lonely = mesh.ids[2]
    at = mesh.topology.nodes[lonely]
    others = set(mesh.topology.nodes.values()) - {at}
    mesh.world.radio.cut(1, others, {at})
    mesh.world.radio.cut(2, {at}, others)
    mesh.run_until(lambda: mesh.node(lonely).membership.living == (lonely,), 120)
    mesh.run_until(lambda: mesh.all_believe(lonely, MemberState.DEAD))
    mesh.world.radio.heal()
    assert mesh.run_until(mesh.agree, 60) < 20


def test_a_suspicion_of_a_presumed_member_is_contradicted() -> None:
    """Swarm: a member suspected at an incarnation older than its own has to speak up, too."""
    mesh = Mesh(5)
    mesh.run(10)
    node = mesh.node(mesh.ids[0])
    before = node.membership.incarnation
    gossip = Gossip(GossipItems((MemberUpdate(mesh.ids[0], MemberState.SUSPECT, NEVER, mesh.ids[3]),)))
    known = mesh.node(mesh.ids[1]).membership.incarnation
    node.step(MessageReceived(sender=mesh.ids[1], incarnation=known, deployment=1, message=gossip), 10_000.0)
    assert node.membership.incarnation > before
    assert node.membership.incarnation.life == before.life


def test_a_mesh_of_two_forgives_a_lost_message() -> None:
    mesh = Mesh(2, loss=0.05, seed=4)
    mesh.run(600)
    assert mesh.false_deaths() == []
    assert len(mesh.changes(mesh.ids[0], "suspect")) + len(mesh.changes(mesh.ids[1], "suspect")) < 30


def test_round_trips_are_estimated_for_probed_nodes() -> None:
    mesh = Mesh(6, shape=Shape.LINE)
    mesh.run(60)
    membership = mesh.node(mesh.ids[0]).membership
    near, far = membership.round_trip_ms(mesh.ids[1]), membership.round_trip_ms(mesh.ids[5])
    assert near is not None
    assert far is not None
    assert 20 <= near < 25
    assert 100 <= far < 110


def test_plain_swim_is_the_same_but_for_its_targets() -> None:
    mesh = Mesh(10, settings=MembershipSettings(spatial=False))
    mesh.run(15)
    mesh.crash(mesh.ids[4])
    mesh.run_until(lambda: mesh.all_believe(mesh.ids[4], MemberState.DEAD))
