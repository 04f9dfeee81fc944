"""Schedules of faults: drawn from a seed, injected into a world, written as YAML or JSON.

A run has a phase in which safety is tried and a quiet one in which progress must show (TigerBeetle's habit).
Every fault that is drawn is over when the quiet phase begins: what crashed has restarted, what left has come
back, partitions are healed. Clocks are the exception: a clock that was set or drifts stays so, as nothing
sets real ones right either. Messages that were held up may still arrive. Disks are wiped at least
WIPE_APART_MS apart, so that no group loses a quorum for good.

Each class of faults draws from a stream of its own: adding one does not move the others.
"""

import io
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final

import msgspec
from ruamel.yaml import YAML

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.core.streams import stream
from comesh.sim.engine import Priority
from comesh.sim.fault_model import DRAWN, Fault, Occasion, Targets
from comesh.sim.faults import CopyCard, Crash
from comesh.sim.topology import Topology
from comesh.sim.world import World

MAX_DRAWN_MS: Final = 30_000.0
MIN_DRAWN_MS: Final = 100.0
"""Minimum duration of a drawn fault."""
WIPE_APART_MS: Final = 60_000.0
"""Minimum time between two wiped disks of a mesh: its groups replace the member meanwhile."""


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults in order of time; those of one instant in the given order."""

    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        in_order = tuple(sorted(self.faults, key=lambda fault: fault.at_ms))
        msgspec.structs.force_setattr(self, "faults", in_order)

    def __add__(self, other: "Schedule") -> "Schedule":
        return Schedule(self.faults + other.faults)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    def to_yaml(self) -> str:
        text = io.StringIO()
        yaml_format().dump(msgspec.to_builtins(self), text)
        return text.getvalue()

    def describe(self) -> list[str]:
        """Returns one readable line per fault."""
        return [fault.describe() for fault in self.faults]


def yaml_format() -> YAML:
    """Returns the YAML reader and writer of schedules: plain values, one line per fault."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # it is annotated as None
    yaml.width = 1 << 30  # some quoted texts would change if they were folded
    yaml.allow_unicode = False
    return yaml


def inject(world: World, schedule: Schedule) -> None:
    """Schedule these faults, each before everything else of its instant.

    Raises ScheduleError if one of them makes no sense in this world.
    """
    for fault in schedule.faults:
        fault.check(world)
    latest: dict[Hashable, Fault] = {}

    def begin(fault: Fault) -> None:
        if world.trace is not None:
            world.trace.record(world.now_ms, "", fault)
        undo = fault.begin(world)
        if undo is None:
            return
        if undo.setting is not None:
            latest[undo.setting] = fault

        def end() -> None:
            if undo.setting is None or latest[undo.setting] is fault:
                undo.call()

        if undo.after_ms is not None:
            world.engine.at(world.now_ms + undo.after_ms, Priority.FAULT, end)

    for fault in schedule.faults:
        world.engine.at(fault.at_ms, Priority.FAULT, begin, fault)


def crashes(nodes: Iterable[NodeId], *, first_ms: float, every_ms: float) -> Schedule:
    """Returns a schedule in which these nodes crash for good, one after the other."""
    return Schedule(
        tuple(Crash(at_ms=first_ms + every_ms * number, node=node) for number, node in enumerate(nodes))
    )


# -- drawn schedules ---------------------------------------------------------------------------------------


class RandomFaults(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of drawn faults. The run lasts run_ms, and its last quiet_ms are free of faults."""

    run_ms: float
    quiet_ms: float = 60_000.0
    per_minute: dict[str, float]
    """Number of faults of each class of `DRAWN`, per simulated minute of the whole mesh."""


def random_schedule(
    topology: Topology, wanted: RandomFaults, seed: int, event_devices: Sequence[DeviceId] = ()
) -> Schedule:
    """Returns the schedule for a topology, settings, seed and event devices; equal arguments give an equal
    one."""
    targets = Targets(topology, tuple(event_devices))
    span_ms = max(0.0, wanted.run_ms - wanted.quiet_ms)
    faults: list[Fault] = []
    for name, per_minute in sorted(wanted.per_minute.items()):
        drawn = DRAWN[name]
        candidates = drawn.among(targets)
        draws = stream(seed, f"faults {name}")
        expected = per_minute * span_ms / 60_000.0
        count = int(expected) + draws.chance(expected % 1.0)
        if not candidates or span_ms < drawn.min_ms:
            continue
        for _ in range(count):
            at_ms = draws.between(0.0, span_ms)
            for_ms = min(draws.between(MIN_DRAWN_MS, MAX_DRAWN_MS), span_ms - at_ms)
            at_ms = round(min(at_ms, span_ms - drawn.min_ms), 3)
            for_ms = round(max(for_ms, drawn.min_ms), 3)
            faults.append(drawn.draw(Occasion(at_ms, for_ms, draws.choice(candidates), topology, draws)))
    return Schedule(_wipes_apart(faults))


def _wipes_apart(faults: list[Fault]) -> tuple[Fault, ...]:
    """Replace a wipe too soon after another one by a crash that keeps the disk."""
    wipes = [one for one in faults if isinstance(one, Crash) and one.wipes_at_ms is not None]
    too_soon: set[int] = set()
    last_ms = -math.inf
    for wipe in sorted(wipes, key=lambda one: one.wipes_at_ms or 0.0):
        assert wipe.wipes_at_ms is not None
        if wipe.wipes_at_ms < last_ms + WIPE_APART_MS:
            too_soon.add(id(wipe))
        else:
            last_ms = wipe.wipes_at_ms
    return tuple(
        msgspec.structs.replace(one, keep_disk=True) if id(one) in too_soon else one for one in faults
    )


def without_copies(faults: Schedule, most: int) -> Schedule:
    """Returns the schedule with at most this many copied cards, the first ones."""
    copies = [fault for fault in faults.faults if isinstance(fault, CopyCard)]
    too_many = {id(fault) for fault in copies[most:]}
    return Schedule(tuple(fault for fault in faults.faults if id(fault) not in too_many))


# -- rates for swarms --------------------------------------------------------------------------------------

_FIRST_CLASSES: Final = (
    "crash",
    "wipe",
    "leave",
    "power",
    "pause",
    "slow",
    "partition",
    "loss",
    "duplicate",
    "reorder",
    "skew",
    "drift",
    "device",
    "copy-card",
    "kill",
    "outage",
    "disk",
    "late",
    "device-late",
    "press",
)
"""Classes whose rates are drawn from one stream, in this order, on which recorded seeds depend. Every newer
class has a stream of its own, so that adding it does not change the draws of the others."""


def draw_rates(draws: Draws, seed: int, choices: Callable[[str], Sequence[float]]) -> dict[str, float]:
    """Draw the number of faults per minute for each class, each from the choices for its class."""
    rates = {name: draws.choice(choices(name)) for name in _FIRST_CLASSES}
    newer = [name for name in DRAWN if name not in rates]
    return rates | {name: stream(seed, f"rate of {name}").choice(choices(name)) for name in newer}
