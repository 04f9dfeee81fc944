"""The world: effects performed, processes paused, slow, dead, copied; clocks that are off."""

import pytest
from toys import GOSSIP, LIFE, PING, TICK, Toys, acking, line, once, silent, ticking

from comesh.core.effects import (
    CancelTimer,
    Effect,
    MemberChanged,
    Observation,
    Observe,
    Persist,
    Refused,
    Send,
    SetTimer,
    Stop,
)
from comesh.core.events import ApplyAsked, FireAsked, LeaveAsked, MessageReceived, Started, Timer, TimerFired
from comesh.core.ids import NodeId, RoutineId
from comesh.core.journal import BootRaised
from comesh.core.messages import (
    MAX_DATAGRAM_BYTES,
    Ack,
    Announcement,
    Datagram,
    Gossip,
    GossipItems,
    Ping,
    encode,
)
from comesh.core.node import AnyEvent
from comesh.sim.radio import RadioSettings
from comesh.sim.traffic import Lost, Parcel
from comesh.sim.world import LifeChange, WorldSettings

N0, N1, N2 = NodeId("n0"), NodeId("n1"), NodeId("n2")
PING_BYTES = len(encode(Datagram(LIFE, 1, PING)))
ACK_BYTES = len(encode(Datagram(LIFE, 1, Ack(1, GossipItems()))))
HOP_MS = 10 + PING_BYTES / 625
"""One hop of a ping from an end of the line."""


def test_a_message_arrives_after_its_way_with_its_real_size() -> None:
    toys = Toys(line(2), {"n0": once(Send(N1, LIFE, PING)), "n1": acking})
    toys.world.run_until(100.0)
    assert toys["n1"].times(MessageReceived) == [pytest.approx(HOP_MS)]
    _, event = toys["n1"].seen[-1]
    assert event == MessageReceived(sender=N0, incarnation=LIFE, deployment=1, message=PING)
    assert toys["n0"].times(MessageReceived) == [pytest.approx(HOP_MS + 10 + ACK_BYTES / 625)]
    assert toys.world.traffic.total(kind="Ping").sent.size_bytes == PING_BYTES
    assert toys.world.traffic.total(kind="Ack").received.messages == 1


def test_through_the_wire_is_the_same() -> None:
    def seen(through_wire: bool) -> list[tuple[float, AnyEvent]]:
        settings = WorldSettings(
            radio=RadioSettings(loss_per_hop=0.2, duplicate=0.2, reorder=0.2), through_wire=through_wire
        )
        toys = Toys(line(3), {"n0": ticking(50.0, to=N2), "n2": acking}, settings=settings)
        toys.world.run_until(5000.0)
        return toys["n0"].seen[1:] + toys["n2"].seen[1:]

    assert seen(False) == seen(True)
    assert len(seen(True)) > 100


def test_boots_rise_with_the_disk_and_nonces_differ() -> None:
    toys = Toys(line(2), {"n0": once(Persist(BootRaised(7)))})
    world = toys.world
    world.run_until(1.0)
    machine = world.machines["n0"]
    for wiped in (False, True):
        world.crash(machine)
        if wiped:
            world.wipe(machine)
        world.start(machine)
    started = [event for life in toys.lives["n0"] for _, event in life.seen]
    assert [event.boot for event in started if isinstance(event, Started)] == [1, 8, 1]
    nonces = [event.nonce for event in started if isinstance(event, Started)]
    assert len(set(nonces)) == 3
    changes = [life.change for life in world.lives if life.machine == "n0"]
    assert changes == [LifeChange.STARTED, LifeChange.CRASHED] * 2 + [LifeChange.STARTED]


def test_timers_are_replaced_cancelled_and_kept_apart() -> None:
    other = Timer("toy", "other", 1)

    def script(event: AnyEvent, now_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(TICK, 10.0), SetTimer(other, 20.0), SetTimer(Timer("toy", "other", 2), 5.0)]
            case TimerFired(timer=Timer(of=2)):
                return [SetTimer(TICK, 30.0), CancelTimer(other), CancelTimer(Timer("toy", "never set"))]
            case _:
                return []

    toys = Toys(line(1), {"n0": script})
    toys.world.run_until(1000.0)
    assert [(at_ms, event.timer.what) for at_ms, event in toys["n0"].seen[1:]] == [
        (5.0, "other"),
        (35.0, "tick"),
    ]


def test_observations_reach_the_observers_and_stop_ends_the_process() -> None:
    observation = MemberChanged(N1, "dead", LIFE, "test")
    effects = (
        Observe(observation),
        SetTimer(TICK, 5.0),
        Stop("had enough"),
        Observe(Refused(N1, "after the end")),
    )
    toys = Toys(line(2), {"n0": once(*effects)})
    told: list[tuple[float, NodeId, Observation]] = []
    toys.world.observers.append(lambda *what: told.append(what))
    toys.world.run_until(100.0)
    assert told == [(0.0, N0, observation)]
    assert [life.why for life in toys.world.lives if life.change is LifeChange.STOPPED] == ["had enough"]
    assert len(toys["n0"].seen) == 1, "no timer after the end"
    assert toys.world.radio.up[0], "the machine of a process that stopped still relays"


def test_the_dead_hear_nothing_and_do_not_relay() -> None:
    toys = Toys(line(3), {"n0": ticking(100.0, to=N2)})
    world = toys.world
    world.engine.at(250.0, 0, world.crash, world.machines["n1"])
    world.engine.at(450.0, 0, world.start, world.machines["n1"])
    world.engine.at(650.0, 0, world.crash, world.machines["n2"])
    world.run_until(850.0)
    sent_at = [round(at_ms, -2) for at_ms in toys.lives["n2"][0].times(MessageReceived)]
    assert sent_at == [100, 200, 500, 600]
    assert world.traffic.losses() == {("Ping", Lost.NO_ROUTE): 2, ("Ping", Lost.STATION_DOWN): 2}
    total = world.traffic.total()
    assert total.sent.messages == total.received.messages + 2


def test_timers_of_a_process_do_not_reach_its_successor() -> None:
    toys = Toys(line(1), {"n0": ticking(100.0)})
    world = toys.world
    world.engine.at(50.0, 0, world.crash, world.machines["n0"])
    world.engine.at(60.0, 0, world.start, world.machines["n0"])
    world.run_until(200.0)
    assert toys["n0"].times(TimerFired) == [160.0]


def test_a_paused_process_gets_everything_late_and_in_order() -> None:
    toys = Toys(line(2), {"n0": ticking(100.0, to=N1), "n1": ticking(130.0)})
    world = toys.world
    world.engine.at(50.0, 0, world.pause, world.machines["n1"], 400.0)
    world.run_until(600.0)
    kinds = [(round(at_ms), type(event).__name__) for at_ms, event in toys["n1"].seen]
    assert kinds == [
        (0, "Started"),
        (450, "MessageReceived"),
        (450, "TimerFired"),
        (450, "MessageReceived"),
        (450, "MessageReceived"),
        (450, "MessageReceived"),
        (510, "MessageReceived"),
        (580, "TimerFired"),
    ]


def test_a_timer_that_was_due_in_a_pause_can_still_be_cancelled() -> None:
    def script(event: AnyEvent, now_ms: float) -> list[Effect]:
        match event:
            case Started():
                return [SetTimer(TICK, 100.0)]
            case MessageReceived():
                return [CancelTimer(TICK)]
            case _:
                return []

    toys = Toys(line(2), {"n0": once(Send(N1, LIFE, PING)), "n1": script})
    toys.world.engine.at(5.0, 0, toys.world.pause, toys.world.machines["n1"], 200.0)
    toys.world.run_until(1000.0)
    assert toys["n1"].times(MessageReceived) == [205.0]
    assert toys["n1"].times(TimerFired) == []


def test_a_paused_process_that_is_restarted_is_not_paused() -> None:
    toys = Toys(line(1), {"n0": ticking(100.0)})
    world = toys.world
    world.run_until(10.0)
    world.pause(world.machines["n0"], 1e6)
    world.crash(world.machines["n0"])
    world.start(world.machines["n0"])
    world.run_until(150.0)
    assert toys["n0"].times(TimerFired) == [110.0]


def test_a_slow_process_takes_its_time_per_step() -> None:
    """Three pings within a moment, 100 ms each: seen one after the other, answered at the end of each."""
    toys = Toys(
        line(2), {"n0": once(*[Send(N1, LIFE, Ping(n, PING.gossip)) for n in range(3)]), "n1": acking}
    )
    toys.world.machines["n1"].step_ms = 100.0
    toys.world.run_until(1000.0)
    assert toys["n1"].times(MessageReceived) == [100.0, 200.0, 300.0], "its start took 100 ms as well"
    answers = [
        (round(at_ms), event.message.number)
        for at_ms, event in toys["n0"].seen
        if isinstance(event, MessageReceived) and isinstance(event.message, Ack)
    ]
    assert answers == [(210, 0), (310, 1), (410, 2)]


def test_drift_makes_timers_early_and_the_clock_fast() -> None:
    toys = Toys(line(1), {"n0": ticking(100.0)})
    world = toys.world
    world.run_until(50.0)
    world.set_drift(world.machines["n0"], 250_000.0)
    world.run_until(50.0 + 40.0 + 3 * 80.0)
    assert len(toys["n0"].times(TimerFired)) == 4, "50 ms left took 40, then 100 ms take 80"
    assert toys["n0"].times(TimerFired) == pytest.approx([100.0, 200.0, 300.0, 400.0])
    world.set_drift(world.machines["n0"], 0.0)
    world.run_until(world.now_ms + 100.0)
    assert toys["n0"].times(TimerFired)[-1] == pytest.approx(500.0)


def test_skew_moves_the_clock_but_no_timer_and_never_back() -> None:
    toys = Toys(line(1), {"n0": ticking(100.0)})
    world = toys.world
    clock = world.machines["n0"].clock
    world.run_until(150.0)
    clock.skew(world.now_ms, 1000.0)
    world.run_until(250.0)
    clock.skew(world.now_ms, -1130.0)
    world.run_until(1550.0)
    assert len(toys["n0"].times(TimerFired)) == 15
    times = toys["n0"].walls[1:]
    assert times[:4] == [100.0, 1200.0, 1200.0, 1200.0]
    assert times == sorted(times)
    assert times[-1] == 1500.0 - 130.0
    assert toys["n0"].times(TimerFired) == [100.0 * tick for tick in range(1, 16)], (
        "the other clock is not set"
    )


def test_clocks_are_drawn_within_the_settings() -> None:
    toys = Toys(line(9), {}, settings=WorldSettings(skew_ms=500.0, drift_ppm=100.0, start_spread_ms=0.0))
    toys.world.run_until(0.0)
    starts = [toys[f"n{index}"].walls[0] for index in range(9)]
    assert {toys[f"n{index}"].seen[0][0] for index in range(9)} == {0.0}
    assert all(-500 <= start <= 500 for start in starts)
    assert len(set(starts)) == 9
    rates = {machine.clock.rate for machine in toys.world.machines.values()}
    assert len(rates) == 9
    assert all(abs(rate - 1) <= 1e-4 for rate in rates)


def test_starts_are_spread() -> None:
    toys = Toys(line(20), {}, settings=WorldSettings(start_spread_ms=1000.0))
    toys.world.run_until(1000.0)
    starts = [toys[f"n{index}"].seen[0][0] for index in range(20)]
    assert len(set(starts)) == 20
    assert 0 <= min(starts) < 200
    assert 800 < max(starts) <= 1000


def test_leaving_is_asked_for() -> None:
    toys = Toys(line(1), {"n0": lambda event, now_ms: [Stop("left")] if event == LeaveAsked() else []})
    toys.world.run_until(1.0)
    toys.world.ask_to_leave(toys.world.machines["n0"])
    assert toys.world.lives[-1].why == "left"
    toys.world.ask_to_leave(toys.world.machines["n0"])


def test_peers_follow_a_copied_card_to_its_address() -> None:
    """n2 answers the n0 that sent last; the copy boots above the disk it was copied from."""

    def script(event: AnyEvent, now_ms: float) -> list[Effect]:
        if isinstance(event, Started) and event.boot == 2:
            return [Send(N2, LIFE, PING)]
        return acking(event, now_ms)

    toys = Toys(line(4), {"n0": script, "n2": acking})
    world = toys.world
    world.run_until(10.0)
    copy = world.copy_card(N0, station=3)
    assert copy is not None
    assert world.copy_card(N0, station=3) is world.copy_card(N0, station=0) is None
    original = toys.lives["n0"][0]
    assert copy.name == "n0.copy1"
    assert copy.boots == 2
    world.run_until(100.0)
    twin = toys.lives["n0"][1]
    assert len(twin.times(MessageReceived)) == 1
    assert original.times(MessageReceived) == []
    there = world.machines["n2"].process
    assert there is not None
    assert there.addresses == {"n0": 3}
    here = world.machines["n0"].process
    assert here is not None
    world._perform(here, [Send(N2, LIFE, GOSSIP)])
    world.run_until(200.0)
    assert there.addresses == {}
    assert world.runs(N0)
    world.crash(world.machines["n0"])
    assert world.runs(N0)
    world.crash(copy)
    assert not world.runs(N0)
    assert world.radio.up == [False, True, True, True], "n3 still runs where the copy was"


def test_a_revoked_machine_is_cut_off_and_replaced() -> None:
    toys = Toys(line(2), {"n0": ticking(50.0, to=N1), "n1": ticking(50.0, to=N0)})
    world = toys.world
    world.run_until(1000.0)
    old, process = world.machines["n1"], world.machines["n1"].process
    assert process is not None
    heard = len(toys["n0"].times(MessageReceived)), len(toys["n1"].times(MessageReceived))
    assert min(heard) > 10
    new = world.revoke(N1)
    assert world.machines["n1"] is new
    assert old.process is process, "it runs on"
    world.start(new)
    assert new.process is None, "nobody put it there yet"
    world.run_until(2000.0)
    assert (len(toys["n0"].times(MessageReceived)), len(toys["n1"].times(MessageReceived))) == heard
    new.away = False
    world.start(new)
    world.run_until(3000.0)
    assert len(toys["n0"].times(MessageReceived)) > heard[0]
    assert (new.disk.initialised, new.disk.store == old.disk.store) == (False, False)
    assert world.runs(N1)
    world.kill(old)
    assert world.lives[-1].change is LifeChange.KILLED
    assert world.machines["n1"].process is not None


def test_an_absent_machine_is_never_started_and_its_station_stays_up() -> None:
    toys = Toys(line(2), {})
    world = toys.world
    world.run_until(1000.0)
    machine = world.machines["n1"]
    world.take_away(machine)
    world.crash(machine)
    world.start(machine)
    assert machine.process is None
    assert world.radio.up[machine.station]
    assert world.copy_card(N1) is None


def test_an_unknown_effect_is_an_error() -> None:
    class Odd(Effect, frozen=True):
        pass

    toys = Toys(line(1), {"n0": once(Odd())})
    with pytest.raises(TypeError, match="n0 wants an effect that is not known here"):
        toys.world.run_until(1.0)


def test_messages_to_a_process_that_is_not_there_are_lost() -> None:
    toys = Toys(line(2), {"n0": once(Send(N1, LIFE, PING)), "n1": once(Stop("no"))})
    toys.world.run_until(100.0)
    assert toys.world.traffic.losses() == {("Ping", Lost.NOBODY_THERE): 1}


def test_the_inbox_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comesh.sim.world.INBOX_EVENTS", 5)
    toys = Toys(line(2), {"n0": once(*[Send(N1, LIFE, PING)] * 9), "n1": silent})
    toys.world.run_until(1.0)
    toys.world.pause(toys.world.machines["n1"], 100.0)
    toys.world.run_until(200.0)
    assert len(toys["n1"].times(MessageReceived)) == 5
    assert toys.world.traffic.losses() == {("Ping", Lost.INBOX_FULL): 4}


@pytest.mark.parametrize("through_wire", [False, True])
@pytest.mark.parametrize("to", [N0, N1])
def test_messages_too_big_for_the_wire_are_dropped_and_counted(through_wire: bool, to: NodeId) -> None:
    huge = Gossip(GossipItems(announcements=(Announcement("key", 1, bytes(MAX_DATAGRAM_BYTES)),)))
    settings = WorldSettings(start_spread_ms=0.0, through_wire=through_wire)
    toys = Toys(line(2), {"n0": once(Send(to, LIFE, huge), Send(to, LIFE, PING))}, settings=settings)
    toys.world.run_until(10_000.0)
    assert [type(event.message) for _, event in toys[to].seen if isinstance(event, MessageReceived)] == [Ping]
    assert toys.world.traffic.losses() == {("Gossip", Lost.TOO_BIG): 1}
    assert toys.world.traffic.total(kind="Gossip").sent.messages == 0


def test_the_biggest_message_is_counted_to_the_byte() -> None:
    spare = MAX_DATAGRAM_BYTES - len(
        encode(
            Datagram(LIFE, 1, Gossip(GossipItems(announcements=(Announcement("key", 1, bytes(1 << 19)),))))
        )
    )
    big = Gossip(GossipItems(announcements=(Announcement("key", 1, bytes((1 << 19) + spare)),)))
    settings = WorldSettings(start_spread_ms=0.0, through_wire=True)
    toys = Toys(line(3), {"n0": once(Send(N2, LIFE, big))}, settings=settings)
    toys.world.run_until(60_000.0)
    totals = toys.world.traffic.total(kind="Gossip")
    assert [amount.size_bytes for amount in (totals.sent, totals.received, totals.relayed)] == [1 << 20] * 3
    parcel = Parcel(0, 0, 1, MAX_DATAGRAM_BYTES + 1)
    with pytest.raises(ValueError, match="the radio sends no such parcel"):
        toys.world.traffic.sent(parcel)


def test_datagrams_carry_the_version_that_their_sender_works_by() -> None:
    toys = Toys(line(2), {"n0": ticking(100.0, to=N1)})
    toys.world.run_until(150.0)
    toys["n0"].deployment = 2
    toys.world.run_until(250.0)
    assert [event.deployment for event in toys["n1"].given(MessageReceived)] == [1, 2]


def test_requests_of_people_need_a_running_node() -> None:
    toys = Toys(line(2), {})
    world = toys.world
    world.run_until(10.0)
    assert world.fire(RoutineId("dusk"), "r1", N0)
    assert world.apply("devices: {}", 3, "r2", N0)
    assert [event for _, event in toys["n0"].seen[1:]] == [
        FireAsked(routine=RoutineId("dusk"), request="r1"),
        ApplyAsked(base=3, text="devices: {}", request="r2"),
    ]
    world.kill(world.machines["n0"])
    assert not world.fire(RoutineId("dusk"), "r1", N0)
