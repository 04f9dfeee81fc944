"""Schedules drawn from a seed: which kinds of faults, how often, and a quiet time at the end.

Every fault that is drawn is over when the quiet time begins: what crashed has restarted, what left has
come back, cuts are healed. Clocks are the exception: a clock that was set or drifts stays so, in the quiet
time too, as nothing sets real ones right either. So a run has a phase in which safety is tried and one in
which progress must show (TigerBeetle's habit). Each class draws from a stream of its own: adding one
does not move the others.
"""

from enum import StrEnum
from typing import Final, Literal, assert_never

import msgspec

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.sim.faults import (
    CopyCard,
    Crash,
    DeviceDown,
    DeviceSlow,
    DeviceUp,
    DeviceWrong,
    Drift,
    Duplicate,
    Fault,
    Leave,
    Loss,
    Partition,
    Pause,
    PowerBack,
    PowerLoss,
    Reorder,
    Restart,
    Schedule,
    Skew,
    Slow,
)
from comesh.sim.streams import stream
from comesh.sim.topology import Topology

LONGEST_FAULT_MS: Final = 30_000.0
SHORTEST_FAULT_MS: Final = 100.0
LEAVING_MS: Final = 1000.0
"""A node that was asked to leave runs on for half a second, and a restart of what runs is passed over."""


class FaultClass(StrEnum):
    CRASH = "crash"
    WIPE = "wipe"
    LEAVE = "leave"
    POWER = "power"
    PAUSE = "pause"
    SLOW = "slow"
    PARTITION = "partition"
    LOSS = "loss"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    SKEW = "skew"
    DRIFT = "drift"
    DEVICE = "device"
    COPY_CARD = "copy-card"


CLASS_MEANINGS: Final = {
    FaultClass.CRASH: "a node crashes and restarts from its disk",
    FaultClass.WIPE: "a node crashes and restarts from an empty disk",
    FaultClass.LEAVE: "a node leaves in good order and comes back",
    FaultClass.POWER: "a power domain goes out and comes back; a mesh without power domains has none",
    FaultClass.PAUSE: "a process stands still",
    FaultClass.SLOW: "each step of a process takes up to 200 ms",
    FaultClass.PARTITION: "one side of a plane, or some nodes, are cut off, one way or both",
    FaultClass.LOSS: "messages are lost at a rate of up to a half",
    FaultClass.DUPLICATE: "messages arrive twice at a rate of up to a half",
    FaultClass.REORDER: "messages are held up by up to 2 s, at a rate of up to a half",
    FaultClass.SKEW: "a clock is set by up to 5 s, forward or back",
    FaultClass.DRIFT: "a clock is fast or slow by up to 1 %",
    FaultClass.DEVICE: "a device is down, slow or wrong",
    FaultClass.COPY_CARD: "a second process of a node starts from a copy of its disk",
}
"""For people; docs/simulator.md has them too."""


class RandomFaults(msgspec.Struct, frozen=True, kw_only=True):
    """What to draw. The run lasts run_ms, and its last quiet_ms are free of faults."""

    run_ms: float
    quiet_ms: float = 60_000.0
    per_minute: dict[FaultClass, float]
    """How many of each class, per simulated minute of the whole mesh."""


def random_schedule(topology: Topology, wanted: RandomFaults, seed: int) -> Schedule:
    """The same for the same topology, wishes and seed."""
    span_ms = max(0.0, wanted.run_ms - wanted.quiet_ms)
    faults: list[Fault] = []
    for fault_class, per_minute in sorted(wanted.per_minute.items()):
        draws = stream(seed, f"faults {fault_class}")
        expected = per_minute * span_ms / 60_000.0
        count = int(expected) + draws.chance(expected % 1.0)
        for _ in range(count):
            at_ms = draws.between(0.0, span_ms)
            for_ms = min(draws.between(SHORTEST_FAULT_MS, LONGEST_FAULT_MS), span_ms - at_ms)
            if fault_class is FaultClass.LEAVE:
                if span_ms < LEAVING_MS:
                    break
                at_ms = min(at_ms, span_ms - LEAVING_MS)
                for_ms = max(for_ms, LEAVING_MS)
            faults += _draw(fault_class, topology, draws, round(at_ms, 3), round(for_ms, 3))
    return Schedule(tuple(faults))


def _draw(
    fault_class: FaultClass, topology: Topology, draws: Draws, at_ms: float, for_ms: float
) -> list[Fault]:
    """One fault of a class, with what ends it."""
    node = draws.choice(sorted(topology.nodes))
    end_ms = at_ms + for_ms
    match fault_class:
        case FaultClass.CRASH | FaultClass.WIPE:
            keep_disk = fault_class is FaultClass.CRASH
            return [Crash(at_ms=at_ms, node=node), Restart(at_ms=end_ms, node=node, keep_disk=keep_disk)]
        case FaultClass.LEAVE:
            return [Leave(at_ms=at_ms, node=node), Restart(at_ms=end_ms, node=node)]
        case FaultClass.POWER:
            if not topology.power_domains:
                return []
            domain = draws.choice(sorted(topology.power_domains))
            return [PowerLoss(at_ms=at_ms, domain=domain), PowerBack(at_ms=end_ms, domain=domain)]
        case FaultClass.COPY_CARD:
            return [CopyCard(at_ms=at_ms, node=node)]
        case FaultClass.PAUSE | FaultClass.SLOW | FaultClass.SKEW | FaultClass.DRIFT:
            return [_on_machine(fault_class, node, draws, at_ms, for_ms)]
        case FaultClass.PARTITION | FaultClass.LOSS | FaultClass.DUPLICATE | FaultClass.REORDER:
            return [_on_radio(fault_class, topology, draws, at_ms, for_ms)]
        case FaultClass.DEVICE:
            device = draws.choice(sorted(topology.devices))
            return _on_device(device, draws, at_ms, for_ms)
        case _:
            assert_never(fault_class)


def _on_machine(fault_class: FaultClass, node: NodeId, draws: Draws, at_ms: float, for_ms: float) -> Fault:
    if fault_class is FaultClass.PAUSE:
        return Pause(at_ms=at_ms, node=node, for_ms=for_ms)
    if fault_class is FaultClass.SLOW:
        return Slow(at_ms=at_ms, node=node, step_ms=round(draws.between(1.0, 200.0), 3), for_ms=for_ms)
    if fault_class is FaultClass.SKEW:
        return Skew(at_ms=at_ms, node=node, by_ms=round(draws.between(-5000.0, 5000.0), 3))
    return Drift(at_ms=at_ms, node=node, ppm=round(draws.between(-10_000.0, 10_000.0), 3))


def _on_radio(
    fault_class: FaultClass, topology: Topology, draws: Draws, at_ms: float, for_ms: float
) -> Fault:
    if fault_class is FaultClass.LOSS:
        rate = round(draws.between(0.01, 0.5), 3)
        per: Literal["hop", "message"] = "hop" if draws.chance(0.5) else "message"
        return Loss(at_ms=at_ms, rate=rate, per=per, for_ms=for_ms)
    if fault_class is FaultClass.DUPLICATE:
        return Duplicate(at_ms=at_ms, rate=round(draws.between(0.01, 0.5), 3), for_ms=for_ms)
    if fault_class is FaultClass.REORDER:
        rate = round(draws.between(0.01, 0.5), 3)
        return Reorder(at_ms=at_ms, rate=rate, up_to_ms=round(draws.between(1.0, 2000.0), 3), for_ms=for_ms)
    return Partition(at_ms=at_ms, sources=_one_side(topology, draws), both=draws.chance(0.5), for_ms=for_ms)


def _one_side(topology: Topology, draws: Draws) -> tuple[str, ...]:
    """All that stands on one side of a plane across one axis, or a random few of the nodes."""
    nodes = sorted(topology.nodes)
    if draws.chance(0.5):
        return tuple(sorted(draws.sample(nodes, 1 + draws.below(max(1, len(nodes) // 2)))))
    axis = draws.choice(("x_mm", "y_mm", "z_mm"))
    middle = getattr(topology.places[topology.nodes[draws.choice(nodes)]], axis)
    named = [*sorted(topology.nodes.items()), *sorted(topology.devices.items())]
    side = tuple(name for name, station in named if getattr(topology.places[station], axis) < middle)
    return side or (draws.choice(nodes),)


def _on_device(device: DeviceId, draws: Draws, at_ms: float, for_ms: float) -> list[Fault]:
    what = draws.below(3)
    if what == 0:
        return [DeviceDown(at_ms=at_ms, device=device), DeviceUp(at_ms=at_ms + for_ms, device=device)]
    if what == 1:
        extra_ms = round(draws.between(10.0, 5000.0), 3)
        return [DeviceSlow(at_ms=at_ms, device=device, extra_ms=extra_ms, for_ms=for_ms)]
    wrong = "?" if draws.chance(0.5) else -1e9
    return [DeviceWrong(at_ms=at_ms, device=device, value=wrong, for_ms=for_ms)]
