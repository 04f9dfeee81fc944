"""Schedules drawn from a seed: which kinds of faults, how often, and a quiet time at the end.

Every fault that is drawn is over when the quiet time begins: what crashed has restarted, what left has
come back, cuts are healed. Clocks are the exception: a clock that was set or drifts stays so, in the quiet
time too, as nothing sets real ones right either. What was held up may still arrive in the quiet time. Disks
are wiped at least WIPE_APART_MS apart, so that no group loses a quorum for good. So a run has a phase in
which safety is tried and one in which progress must show (TigerBeetle's habit). Each class draws from a
stream of its own: adding one does not move the others.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Literal

import msgspec

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.core.streams import stream
from comesh.sim.faults import (
    EVERYWHERE,
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
    Fault,
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
    Schedule,
    Skew,
    Slow,
)
from comesh.sim.topology import Topology

LONGEST_FAULT_MS: Final = 30_000.0
SHORTEST_FAULT_MS: Final = 100.0
LEAVING_MS: Final = 1000.0
"""A node that was asked to leave runs on for half a second, and a restart of what runs is passed over."""

WIPE_APART_MS: Final = 60_000.0
"""Between one wiped disk and the next, of the whole mesh: time for its groups to replace the member."""
LATEST_MS: Final = 30_000.0
"""How long very late messages are held up at most."""


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
    KILL = "kill"
    OUTAGE = "outage"
    DISK = "disk"
    LATE = "late"
    DEVICE_LATE = "device-late"
    PRESS = "press"


CLASS_MEANINGS: Final = {
    FaultClass.CRASH: "a node crashes and restarts from its disk",
    FaultClass.WIPE: "a node crashes and restarts from an empty disk; not two within a minute",
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
    FaultClass.KILL: "a process ends and starts again; its machine stays up",
    FaultClass.OUTAGE: "the whole mesh loses power and comes back",
    FaultClass.DISK: "the disk of a node is full for a while",
    FaultClass.LATE: "messages are held up by up to 30 s, at a rate of up to a tenth",
    FaultClass.DEVICE_LATE: "commands reach a device up to 30 s later",
    FaultClass.PRESS: "an event device has an event; a mesh without event devices has none",
}
"""For people; docs/simulator.md has them too."""


class RandomFaults(msgspec.Struct, frozen=True, kw_only=True):
    """What to draw. The run lasts run_ms, and its last quiet_ms are free of faults."""

    run_ms: float
    quiet_ms: float = 60_000.0
    per_minute: dict[FaultClass, float]
    """How many of each class, per simulated minute of the whole mesh."""


def random_schedule(
    topology: Topology, wanted: RandomFaults, seed: int, event_devices: Sequence[DeviceId] = ()
) -> Schedule:
    """The same for the same topology, wishes, seed and event devices."""
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
            at_ms, for_ms = round(at_ms, 3), round(for_ms, 3)
            if fault_class in _OF_DEVICES:
                presses = sorted(event_devices)
                faults += _on_device(fault_class, topology, draws, at_ms, for_ms, event_devices=presses)
            else:
                faults += _draw(fault_class, topology, draws, at_ms, for_ms)
    return Schedule(_wipes_apart(faults))


def _wipes_apart(faults: list[Fault]) -> tuple[Fault, ...]:
    """A wipe that would come too soon after another keeps its disk: it is a crash."""
    kept: list[Fault] = []
    last_ms = -math.inf
    for fault in sorted(faults, key=lambda fault: fault.at_ms):
        one = fault
        if isinstance(fault, Restart) and not fault.keep_disk:
            if fault.at_ms < last_ms + WIPE_APART_MS:
                one = msgspec.structs.replace(fault, keep_disk=True)
            else:
                last_ms = fault.at_ms
        kept.append(one)
    return tuple(kept)


_OF_DEVICES: Final = (FaultClass.DEVICE, FaultClass.DEVICE_LATE, FaultClass.PRESS)
_OF_THE_RADIO: Final = (
    FaultClass.PARTITION,
    FaultClass.LOSS,
    FaultClass.DUPLICATE,
    FaultClass.REORDER,
    FaultClass.LATE,
)


def _draw(
    fault_class: FaultClass, topology: Topology, draws: Draws, at_ms: float, for_ms: float
) -> list[Fault]:
    """One fault of nodes or the radio, with what ends it."""
    node = draws.choice(sorted(topology.nodes))
    if fault_class in _OF_THE_RADIO:
        return [_on_radio(fault_class, topology, draws, at_ms, for_ms)]
    end_ms = at_ms + for_ms
    match fault_class:
        case FaultClass.CRASH | FaultClass.WIPE:
            keep_disk = fault_class is FaultClass.CRASH
            return [Crash(at_ms=at_ms, node=node), Restart(at_ms=end_ms, node=node, keep_disk=keep_disk)]
        case FaultClass.KILL:
            return [Kill(at_ms=at_ms, node=node), Restart(at_ms=end_ms, node=node)]
        case FaultClass.LEAVE:
            return [Leave(at_ms=at_ms, node=node), Restart(at_ms=end_ms, node=node)]
        case FaultClass.POWER | FaultClass.OUTAGE:
            domains = sorted(topology.power_domains) if fault_class is FaultClass.POWER else [EVERYWHERE]
            if not domains:
                return []
            domain = draws.choice(domains)
            return [PowerLoss(at_ms=at_ms, domain=domain), PowerBack(at_ms=end_ms, domain=domain)]
        case FaultClass.COPY_CARD:
            return [CopyCard(at_ms=at_ms, node=node)]
        case _:
            return [_on_machine(fault_class, node, draws, at_ms, for_ms)]


def _on_machine(fault_class: FaultClass, node: NodeId, draws: Draws, at_ms: float, for_ms: float) -> Fault:
    match fault_class:
        case FaultClass.PAUSE:
            return Pause(at_ms=at_ms, node=node, for_ms=for_ms)
        case FaultClass.SLOW:
            return Slow(at_ms=at_ms, node=node, step_ms=round(draws.between(1.0, 200.0), 3), for_ms=for_ms)
        case FaultClass.SKEW:
            return Skew(at_ms=at_ms, node=node, by_ms=round(draws.between(-5000.0, 5000.0), 3))
        case FaultClass.DRIFT:
            return Drift(at_ms=at_ms, node=node, ppm=round(draws.between(-10_000.0, 10_000.0), 3))
        case FaultClass.DISK:
            return DiskFull(at_ms=at_ms, node=node, for_ms=for_ms)
        case _:
            raise ValueError(f"{fault_class} is no fault of a machine")


def _on_radio(
    fault_class: FaultClass, topology: Topology, draws: Draws, at_ms: float, for_ms: float
) -> Fault:
    match fault_class:
        case FaultClass.LOSS:
            rate = round(draws.between(0.01, 0.5), 3)
            per: Literal["hop", "message"] = "hop" if draws.chance(0.5) else "message"
            return Loss(at_ms=at_ms, rate=rate, per=per, for_ms=for_ms)
        case FaultClass.DUPLICATE:
            return Duplicate(at_ms=at_ms, rate=round(draws.between(0.01, 0.5), 3), for_ms=for_ms)
        case FaultClass.REORDER:
            rate, up_to_ms = round(draws.between(0.01, 0.5), 3), round(draws.between(1.0, 2000.0), 3)
            return Reorder(at_ms=at_ms, rate=rate, up_to_ms=up_to_ms, for_ms=for_ms)
        case FaultClass.LATE:
            rate, up_to_ms = round(draws.between(0.001, 0.1), 3), round(draws.between(1000.0, LATEST_MS), 3)
            return Reorder(at_ms=at_ms, rate=rate, up_to_ms=up_to_ms, for_ms=for_ms)
        case FaultClass.PARTITION:
            side = _one_side(topology, draws)
            return Partition(at_ms=at_ms, sources=side, both=draws.chance(0.5), for_ms=for_ms)
        case _:
            raise ValueError(f"{fault_class} is no fault of the radio")


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


def _on_device(
    fault_class: FaultClass,
    topology: Topology,
    draws: Draws,
    at_ms: float,
    for_ms: float,
    *,
    event_devices: Sequence[DeviceId],
) -> list[Fault]:
    if fault_class is FaultClass.PRESS:
        return [Press(at_ms=at_ms, device=draws.choice(event_devices))] if event_devices else []
    device = draws.choice(sorted(topology.devices))
    if fault_class is FaultClass.DEVICE_LATE:
        by_ms = round(draws.between(1.0, LATEST_MS), 3)
        return [DeviceLate(at_ms=at_ms, device=device, by_ms=by_ms, for_ms=for_ms)]
    what = draws.below(3)
    if what == 0:
        return [DeviceDown(at_ms=at_ms, device=device), DeviceUp(at_ms=at_ms + for_ms, device=device)]
    if what == 1:
        extra_ms = round(draws.between(10.0, 5000.0), 3)
        return [DeviceSlow(at_ms=at_ms, device=device, extra_ms=extra_ms, for_ms=for_ms)]
    wrong = "?" if draws.chance(0.5) else -1e9
    return [DeviceWrong(at_ms=at_ms, device=device, value=wrong, for_ms=for_ms)]
