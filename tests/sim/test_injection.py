"""Faults carried out: each does what its docstring says, ends when it should, and refuses wrong names."""

import dataclasses

import pytest
from toys import Toys, line, ticking

from comesh.core.actions import Action
from comesh.core.effects import CommandDevice, Effect, ReadDevice, SetTimer
from comesh.core.events import (
    DeviceAnswered,
    JournalMended,
    LeaveAsked,
    MessageReceived,
    Started,
    Timer,
    TimerFired,
)
from comesh.core.ids import DeviceId, NodeId
from comesh.core.node import AnyEvent
from comesh.core.values import Value
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.drivers.virtual.misbehaviour import FINE, Misbehaviour
from comesh.drivers.virtual.sources import Constant
from comesh.sim.fault_model import DRAWN, Fault, ScheduleError
from comesh.sim.fault_schedules import RandomFaults, Schedule, inject, random_schedule
from comesh.sim.faults import (
    LEAVING_MS,
    CopyCard,
    Crash,
    DeviceDown,
    DeviceLate,
    DeviceSlow,
    DeviceUp,
    DeviceWrong,
    DiskFull,
    Drift,
    Duplicate,
    Heal,
    Kill,
    Leave,
    Loss,
    Partition,
    Pause,
    PowerBack,
    PowerLoss,
    Press,
    Reorder,
    Restart,
    Skew,
    Slow,
)
from comesh.sim.lives import LifeChange

N0, N1, N2 = NodeId("n0"), NodeId("n1"), NodeId("n2")
D0, D1 = DeviceId("d0"), DeviceId("d1")
BUTTON = D1


def run(*faults: Fault, until_ms: float = 1050.0, devices: int = 0) -> Toys:
    """n0 sends to n2, over n1, every 100 ms."""
    toys = Toys(line(3, devices=devices), {"n0": ticking(100.0, to=N2)})
    inject(toys.world, Schedule(faults))
    toys.world.run_until(until_ms)
    return toys


def heard(toys: Toys, node: str = "n2") -> list[int]:
    """Returns when a node, in any of its lives, got a message, in hundreds of milliseconds."""
    lives = toys.lives[node]
    return [int(at_ms // 100) for life in lives for at_ms in life.times(MessageReceived)]


def test_crash_and_restart() -> None:
    toys = run(Crash(at_ms=250.0, node=N1), Crash(at_ms=260.0, node=N1), Restart(at_ms=550.0, node=N1))
    assert heard(toys) == [1, 2, 6, 7, 8, 9, 10]
    assert [life.change for life in toys.world.lives if life.machine == "n1"] == [
        LifeChange.STARTED,
        LifeChange.CRASHED,
        LifeChange.STARTED,
    ]


@pytest.mark.parametrize(("keep_disk", "boot"), [(True, 2), (False, 1)])
def test_restart_from_the_disk_or_from_an_empty_one(keep_disk: bool, boot: int) -> None:
    toys = run(Crash(at_ms=10.0, node=N1), Restart(at_ms=20.0, node=N1, keep_disk=keep_disk))
    event = toys["n1"].seen[0][1]
    assert isinstance(event, Started)
    assert event.boot == boot


def test_a_crash_that_ends_by_itself() -> None:
    toys = run(Crash(at_ms=250.0, node=N1, for_ms=300.0), Kill(at_ms=260.0, node=N2, for_ms=10.0))
    assert heard(toys) == [1, 2, 6, 7, 8, 9, 10]
    assert [len(toys.lives[node]) for node in ("n0", "n1", "n2")] == [1, 2, 2]
    wiped = run(Crash(at_ms=10.0, node=N1, for_ms=10.0, keep_disk=False))["n1"].seen[0][1]
    assert isinstance(wiped, Started)
    assert wiped.boot == 1


def test_a_device_that_is_down_for_a_while() -> None:
    toys = run(DeviceDown(at_ms=100.0, device=D0, for_ms=200.0), until_ms=200.0, devices=1)
    assert toys.world.devices[D0].misbehaviour.silent
    toys.world.run_until(400.0)
    assert not toys.world.devices[D0].misbehaviour.silent


def test_a_kill_leaves_the_machine_relaying_and_its_journal_whole() -> None:
    toys = run(Kill(at_ms=250.0, node=N1), Restart(at_ms=550.0, node=N1))
    assert heard(toys) == list(range(1, 11)), "over n1 all the time"
    (started,) = toys["n1"].given(Started)
    assert (started.boot, started.power_lost) == (2, False)
    changes = [life.change for life in toys.world.lives if life.machine == "n1"]
    assert changes == [LifeChange.STARTED, LifeChange.KILLED, LifeChange.STARTED]
    crashed = run(Crash(at_ms=250.0, node=N1), Restart(at_ms=550.0, node=N1))
    assert crashed["n1"].given(Started)[0].power_lost


def test_restarting_a_running_node_keeps_its_disk() -> None:
    toys = run(Restart(at_ms=50.0, node=N1, keep_disk=False))
    assert toys.world.machines["n1"].disk.initialised
    assert len(toys.lives["n1"]) == 1


def test_power_goes_and_comes_everywhere() -> None:
    toys = run(
        CopyCard(at_ms=50.0, node=N0, station="d0"),
        PowerLoss(at_ms=250.0, domain="*"),
        PowerBack(at_ms=500.0, domain="*"),
        devices=1,
    )
    assert [len(toys.lives[node]) for node in ("n0", "n1", "n2")] == [4, 2, 2], "copies too"
    assert all(toys[node].given(Started)[0].power_lost for node in ("n0", "n1", "n2"))
    assert max(toys.lives["n0"][0].times(TimerFired)) == 200.0


def test_a_disk_is_full_for_a_while() -> None:
    toys = run(
        DiskFull(at_ms=100.0, node=N1, for_ms=100.0),
        DiskFull(at_ms=150.0, node=N1, for_ms=100.0),
        DiskFull(at_ms=100.0, node=N2),
    )
    assert toys["n1"].times(JournalMended) == [250.0], "of two that overlap the later one counts"
    assert [toys.world.machines[node].disk.full for node in ("n0", "n1", "n2")] == [False, False, True]


def test_leave_asks_the_node() -> None:
    toys = run(Leave(at_ms=50.0, node=N1))
    assert toys["n1"].times(LeaveAsked) == [50.0]


def test_power_goes_and_comes_for_a_domain() -> None:
    toys = run(PowerLoss(at_ms=250.0, domain="west"), PowerBack(at_ms=500.0, domain="west"))
    assert len(toys.lives["n0"]) == len(toys.lives["n1"]) == 2
    assert len(toys.lives["n2"]) == 1
    assert heard(toys) == [1, 2, 6, 7, 8, 9, 10]


def test_pause() -> None:
    toys = run(Pause(at_ms=150.0, node=N2, for_ms=300.0))
    assert heard(toys) == [1, 4, 4, 4, 5, 6, 7, 8, 9, 10]
    relay = run(Pause(at_ms=150.0, node=N1, for_ms=300.0))
    assert heard(relay) == list(range(1, 11)), "a paused node still relays"


def test_slow_for_a_while() -> None:
    toys = run(Slow(at_ms=150.0, node=N0, step_ms=30.0, for_ms=400.0))
    ticks = [round(at_ms) for at_ms in toys["n0"].times(TimerFired)]
    assert ticks == [100, 200, 330, 460, 590, 690, 790, 890, 990]


@pytest.mark.parametrize("both", [True, False])
def test_partition_one_way_or_both(both: bool) -> None:
    toys = Toys(line(3), {"n0": ticking(100.0, to=N2), "n2": ticking(100.0, to=N0)})
    cut = Partition(at_ms=150.0, sources=("n0",), destinations=("n2",), both=both, for_ms=300.0)
    inject(toys.world, Schedule((cut,)))
    toys.world.run_until(750.0)
    assert heard(toys, "n2") == [1, 5, 6, 7]
    assert heard(toys, "n0") == ([1, 5, 6, 7] if both else [1, 2, 3, 4, 5, 6, 7])


def test_partition_from_all_others_and_heal() -> None:
    toys = run(Partition(at_ms=150.0, sources=("n0",)), Heal(at_ms=450.0))
    assert heard(toys) == [1, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("per", ["hop", "message"])
def test_loss_for_a_while(per: str) -> None:
    loss = Loss(at_ms=150.0, rate=1.0, per="hop" if per == "hop" else "message", for_ms=300.0)
    assert heard(run(loss)) == [1, 5, 6, 7, 8, 9, 10]


def test_the_later_of_two_overlapping_faults_counts() -> None:
    first = Loss(at_ms=150.0, rate=1.0, for_ms=300.0)
    second = Loss(at_ms=250.0, rate=0.0, for_ms=500.0)
    third = Loss(at_ms=650.0, rate=1.0)
    assert heard(run(first, second, third)) == [1, 3, 4, 5, 6]


def test_duplicates_and_reordering() -> None:
    assert len(heard(run(Duplicate(at_ms=0.0, rate=1.0)))) >= 19
    late = heard(run(Reorder(at_ms=0.0, rate=1.0, up_to_ms=1000.0, for_ms=500.0), until_ms=2000.0))
    assert sorted(late) != list(range(1, 20))
    assert len(late) >= 17


def test_messages_can_be_very_late() -> None:
    """Ten messages are all delayed by a random time, and each arrives within 30 s."""
    late = Reorder(at_ms=0.0, rate=1.0, up_to_ms=30_000.0, for_ms=1050.0)
    toys = run(late, Crash(at_ms=1060.0, node=N0), until_ms=40_000.0)
    arrived = toys["n2"].times(MessageReceived)
    assert len(arrived) == 10
    assert 20_000 < max(arrived) < 31_100


def test_skew_and_drift() -> None:
    toys = run(Skew(at_ms=50.0, node=N0, by_ms=1e6), Drift(at_ms=100.0, node=N0, ppm=-500_000.0))
    ticks = toys["n0"].times(TimerFired)
    assert [round(at_ms) for at_ms in ticks] == [100, 200, 300, 400, 500], "half as many at half the speed"
    assert [round(wall_ms) for wall_ms in toys["n0"].walls[1:]] == [1_000_000 + round(tick) for tick in ticks]


def test_device_faults() -> None:
    toys = run(
        DeviceDown(at_ms=100.0, device=D0),
        DeviceUp(at_ms=300.0, device=D0),
        DeviceSlow(at_ms=100.0, device=D1, extra_ms=70.0, for_ms=100.0),
        DeviceWrong(at_ms=100.0, device=D1, value="?", for_ms=100.0),
        until_ms=150.0,
        devices=2,
    )
    world = toys.world
    assert world.radio.up == [True, True, True, False, True], "a device that is down does not relay"
    assert world.devices[D0].misbehaviour.silent
    other = world.devices[D1]
    assert other.misbehaviour == Misbehaviour(slow_ms=70.0, wrong={"on": "?"})
    world.run_until(400.0)
    assert all(world.radio.up)
    assert not world.devices[D0].misbehaviour.silent
    assert other.misbehaviour is FINE


def test_commands_land_late() -> None:
    """Two commands: the first, sent while the device is late, lands after the second and is not answered."""
    plan = {
        100.0: CommandDevice(D0, 1, Action("on", timeout_ms=500.0)),
        1100.0: CommandDevice(D0, 2, Action("off")),
    }

    def script(event: AnyEvent, now_ms: float) -> list[Effect]:
        if isinstance(event, Started):
            return [SetTimer(Timer("toy", "ask", round(at_ms)), at_ms) for at_ms in plan]
        return [plan[now_ms]] if isinstance(event, TimerFired) else []

    toys = Toys(line(1, devices=1), {"n0": script})
    inject(toys.world, Schedule((DeviceLate(at_ms=50.0, device=D0, by_ms=30_000.0, for_ms=1000.0),)))
    toys.world.run_until(60_000.0)
    acted = [
        (round(act.at_ms), act.call, act.command.sent_ms, round(act.began_ms))
        for act in toys.world.devices.log
    ]
    assert acted == [(1135, 2, 1100.0, 1110), (30_135, 1, 100.0, 30_110)]
    answers = [
        (round(at_ms), event.call, event.error)
        for at_ms, event in toys["n0"].seen
        if isinstance(event, DeviceAnswered)
    ]
    assert answers == [(600, 1, "no answer"), (1145, 2, None)]
    assert toys.world.devices[D0].readings() == {"on": True}


def test_a_button_is_pressed() -> None:
    button = DeviceSpec(sources={"press": Constant("short")}, event=True)
    toys = Toys(line(1, devices=2), {}, devices={BUTTON: button})
    presses = (Press(at_ms=10.0, device=BUTTON, values={"press": "long"}), Press(at_ms=20.0, device=BUTTON))
    inject(toys.world, Schedule(presses))
    toys.world.run_until(100.0)
    events = [(event.at_ms, event.values) for event in toys.world.devices.events]
    assert events == [(10.0, {"press": "long"}), (20.0, {"press": "short"})]


def test_wrong_answers_of_one_reading() -> None:
    lamp = DeviceSpec(sources={"on": Constant(False), "level": Constant(40)})
    toys = Toys(line(3, devices=2), {}, devices={D0: lamp, D1: DeviceSpec()})
    faults = (
        DeviceWrong(at_ms=0.0, device=D0, reading="level", value="?", for_ms=100.0),
        DeviceWrong(at_ms=0.0, device=D0, value=7, for_ms=200.0),
        DeviceWrong(at_ms=0.0, device=D0, reading="on", value=8, for_ms=300.0),
        DeviceWrong(at_ms=0.0, device=D1, value=9, for_ms=100.0),
    )
    inject(toys.world, Schedule(faults))

    def answered(device: DeviceId) -> dict[str, Value]:
        readings = toys.world.devices[device].read()
        assert readings is not None
        return readings

    toys.world.run_until(50.0)
    assert answered(D0) == {"on": 8, "level": "?"}
    assert answered(D1) == {}, "where there is no reading, nothing happens"
    toys.world.run_until(250.0)
    assert answered(D0) == {"on": 8, "level": 40}, "of two for one reading the later one counts"
    toys.world.run_until(350.0)
    assert answered(D0) == {"on": False, "level": 40}


def test_a_card_is_copied_and_the_copy_can_be_named() -> None:
    toys = run(
        CopyCard(at_ms=50.0, node=N0, station="d0"),
        CopyCard(at_ms=60.0, node=N0),
        Crash(at_ms=450.0, node=NodeId("n0.copy1")),
        devices=1,
    )
    machines = toys.world.machines
    assert machines["n0.copy1"].station == 3
    assert machines["n0.copy1"].process is None
    assert machines["n0.copy2"].station != 0
    assert machines["n0.copy2"].process is not None
    assert len(toys.lives["n0"]) == 3


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (Crash(at_ms=5.0, node=NodeId("n22")), "crash at 0.005 s: unknown node 'n22'; did you mean 'n2'"),
        (Crash(at_ms=5.0, node=N0, keep_disk=False), "crash at 0.005 s: keep_disk: false says how"),
        (PowerLoss(at_ms=5.0, domain="east"), "unknown power domain 'east'"),
        (Partition(at_ms=5.0, sources=("n0", "lamp")), "unknown station 'lamp'"),
        (DeviceDown(at_ms=5.0, device=DeviceId("n0")), "unknown device 'n0'"),
        (
            DeviceWrong(at_ms=5.0, device=D0, reading="onn", value=1),
            "unknown reading 'onn'; did you mean 'on'",
        ),
        (CopyCard(at_ms=5.0, node=N0, station="n0"), "another station than its own"),
        (CopyCard(at_ms=5.0, node=N0, station="zz"), "unknown station"),
        (Kill(at_ms=5.0, node=NodeId("n9")), "unknown node 'n9'"),
        (DiskFull(at_ms=5.0, node=NodeId("n9")), "unknown node 'n9'"),
        (DeviceLate(at_ms=5.0, device=DeviceId("d9"), by_ms=1.0), "unknown device 'd9'"),
        (Press(at_ms=5.0, device=D0), "'d0' is no event device"),
        (Press(at_ms=5.0, device=BUTTON, values={"pres": 1}), "unknown reading 'pres'; did you mean 'press'"),
    ],
)
def test_wrong_names_are_refused_before_the_run(fault: Fault, complaint: str) -> None:
    button = DeviceSpec(sources={"press": Constant("short")}, event=True)
    toys = Toys(line(3, devices=2), {}, devices={BUTTON: button})
    with pytest.raises(ScheduleError, match=complaint):
        inject(toys.world, Schedule((fault,)))


@pytest.mark.parametrize("seed", range(5))
def test_every_drawn_fault_can_be_injected(seed: int) -> None:
    topology = line(6, devices=4)
    scripts = {f"n{index}": ticking(200.0, to=N0) for index in range(1, 6)}
    button = DeviceSpec(sources={"press": Constant("short")}, event=True)
    toys = Toys(topology, scripts, seed=seed, devices={D0: button})
    wanted = RandomFaults(run_ms=120_000.0, quiet_ms=30_000.0, per_minute=dict.fromkeys(DRAWN, 4.0))
    inject(toys.world, random_schedule(topology, wanted, seed, [D0]))
    toys.world.run_until(120_000.0)
    assert all(toys.world.radio.up)
    assert all(machine.process is not None for machine in toys.world.machines.values())
    last_ms = max(at_ms for life in toys.lives["n0"] for at_ms in life.times(MessageReceived))
    assert last_ms > 110_000, "by the clock of the machine, which may be off by 1 %"


def test_a_device_that_is_down_leaves_its_neighbour_at_the_same_place_up() -> None:
    topology = line(3, devices=1)
    topology = dataclasses.replace(topology, devices=topology.devices | {D1: topology.devices[D0]})
    ask = ReadDevice(device=D1, call=1)
    toys = Toys(topology, {"n0": lambda event, now_ms: [ask] if isinstance(event, LeaveAsked) else []})
    world = toys.world
    inject(
        world,
        Schedule(
            (
                DeviceDown(at_ms=100.0, device=D0),
                Leave(at_ms=150.0, node=N0),
                DeviceDown(at_ms=3000.0, device=D1),
                DeviceUp(at_ms=4000.0, device=D0),
            )
        ),
    )
    world.run_until(2900.0)
    assert world.radio.up[3]
    assert [event.error for _, event in toys["n0"].seen if isinstance(event, DeviceAnswered)] == [None]
    world.run_until(3500.0)
    assert not world.radio.up[3], "all that stands there is down"
    world.run_until(4500.0)
    assert world.radio.up[3]


@pytest.mark.parametrize("run_ms", [500.0, 1000.0, 1400.0, 60_000.0])
def test_a_node_that_leaves_has_stopped_before_it_restarts(run_ms: float) -> None:
    wanted = RandomFaults(run_ms=run_ms, quiet_ms=0.0, per_minute={"leave": 200.0})
    faults = random_schedule(line(40), wanted, 1).faults
    left = {fault.node: fault.at_ms for fault in faults if isinstance(fault, Leave)}
    back = {fault.node: fault.at_ms + (fault.for_ms or 0.0) for fault in faults if isinstance(fault, Leave)}
    assert bool(left) == (run_ms >= LEAVING_MS)
    assert all(0 <= at_ms <= run_ms - LEAVING_MS for at_ms in left.values())
    assert all(back[node] >= left[node] + LEAVING_MS for node in left)
    assert all(at_ms <= run_ms + 0.001 for at_ms in back.values()), "not into the quiet time"
