"""Faults as data: what goes wrong, and when. A schedule can be written, read by a person, and replayed.

    faults:
    - {fault: crash, at_ms: 10000.0, node: n03}
    - {fault: partition, at_ms: 20000.0, from: [n01, n02], for_ms: 5000.0}

A fault with `for_ms` ends by itself; without it, it lasts until its opposite or the end of the run. Of
two that overlap and set the same thing, the later one counts, and its end restores what the run began
with. `fault_files.py` reads schedules that people wrote, `injection.py` carries them out.
"""

import io
from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from ruamel.yaml import YAML

from comesh.core.ids import DeviceId, NodeId
from comesh.core.values import Value

Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Rate = Annotated[float, msgspec.Meta(ge=0, le=1)]


def _tag(name: str) -> str:
    """PowerLoss -> power-loss"""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]


class _Fault(
    msgspec.Struct, frozen=True, kw_only=True, tag=_tag, tag_field="fault", forbid_unknown_fields=True
):
    at_ms: Milliseconds


class Crash(_Fault, frozen=True):
    """The machine loses power: its process ends, what its disk had not flushed may be gone, and nothing at
    its station relays or answers."""

    node: NodeId


class Kill(_Fault, frozen=True):
    """The process ends; its machine stays up and relays, and its journal is whole."""

    node: NodeId


class Restart(_Fault, frozen=True):
    """The machine of a node that does not run starts, from its disk or from an empty one."""

    node: NodeId
    keep_disk: bool = True


class Leave(_Fault, frozen=True):
    """The node is asked to leave in good order."""

    node: NodeId


class DiskFull(_Fault, frozen=True):
    """The disk takes no more records; then it has room again."""

    node: NodeId
    for_ms: Milliseconds | None = None


EVERYWHERE: Final = "*"
"""The power domain of all nodes."""


class PowerLoss(_Fault, frozen=True):
    """All nodes of a power domain, or with `*` of the mesh, crash at once."""

    domain: str


class PowerBack(_Fault, frozen=True):
    """The nodes of the domain, or with `*` of the mesh, that do not run start from their disks."""

    domain: str


class Pause(_Fault, frozen=True):
    """The process stands still; its messages and timers wait. Its station goes on relaying."""

    node: NodeId
    for_ms: Milliseconds


class Slow(_Fault, frozen=True):
    """Every step of the process takes time; what a step does happens at its end."""

    node: NodeId
    step_ms: Milliseconds
    for_ms: Milliseconds | None = None


class Partition(_Fault, frozen=True):
    """Nothing gets from some stations to others (named by node or device; none named: all others)."""

    sources: tuple[str, ...] = msgspec.field(name="from")
    destinations: tuple[str, ...] = msgspec.field(name="to", default=())
    both: bool = True
    """False: only this way; the other direction stays open."""
    for_ms: Milliseconds | None = None


class Heal(_Fault, frozen=True):
    """All partitions end."""


class Loss(_Fault, frozen=True):
    """Messages are lost at this rate, on each hop or once on the whole way."""

    rate: Rate
    per: Literal["hop", "message"] = "hop"
    for_ms: Milliseconds | None = None


class Duplicate(_Fault, frozen=True):
    """Messages arrive twice at this rate."""

    rate: Rate
    for_ms: Milliseconds | None = None


class Reorder(_Fault, frozen=True):
    """Messages are held up at this rate, for a random time, which may be long."""

    rate: Rate
    up_to_ms: Milliseconds
    for_ms: Milliseconds | None = None


class Skew(_Fault, frozen=True):
    """The wall clock is set forward; set back, it stands until it has caught up."""

    node: NodeId
    by_ms: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class Drift(_Fault, frozen=True):
    """Both clocks, and timers, gain (or lose) this many microseconds per second from now on."""

    node: NodeId
    ppm: Annotated[float, msgspec.Meta(ge=-900_000, le=900_000)]


class DeviceDown(_Fault, frozen=True):
    """The device neither answers nor relays (others at the same station go on, and relay)."""

    device: DeviceId


class DeviceUp(_Fault, frozen=True):
    """The device answers and relays again."""

    device: DeviceId


class DeviceSlow(_Fault, frozen=True):
    """The device takes longer for everything."""

    device: DeviceId
    extra_ms: Milliseconds
    for_ms: Milliseconds | None = None


class DeviceLate(_Fault, frozen=True):
    """Commands reach the device this much later, whoever holds its lock by then, and are not answered."""

    device: DeviceId
    by_ms: Milliseconds
    for_ms: Milliseconds | None = None


class DeviceWrong(_Fault, frozen=True):
    """The device answers this value of one reading (none named: the first), whatever is so."""

    device: DeviceId
    value: Value
    reading: str | None = None
    for_ms: Milliseconds | None = None


class Press(_Fault, frozen=True):
    """An event device has an event, with these values or (none given) what its readings show."""

    device: DeviceId
    values: dict[str, Value] = {}


class CopyCard(_Fault, frozen=True):
    """A second process of the node starts at another station, from a copy of its disk as it is now.

    On the new machine the journal is a stranger's: it holds no seat in any group.

    The new machine is called `<node>.copy1`, and so on: other faults may name it. Without a station
    (the name of a device or node there), one is drawn.
    """

    node: NodeId
    station: str | None = None


Fault = (
    Crash
    | Kill
    | Restart
    | Leave
    | PowerLoss
    | PowerBack
    | DiskFull
    | Pause
    | Slow
    | Partition
    | Heal
    | Loss
    | Duplicate
    | Reorder
    | Skew
    | Drift
    | DeviceDown
    | DeviceUp
    | DeviceSlow
    | DeviceLate
    | DeviceWrong
    | Press
    | CopyCard
)


class ScheduleError(ValueError):
    """A text that is no schedule, or names what does not exist; str() says where and what.

    line counts from 1 in the text that was read, 0 where there is none; fault is the one that is meant.
    """

    def __init__(self, what: str, *, line: int = 0, fault: Fault | None = None) -> None:
        super().__init__(what)
        self.line = line
        self.fault = fault


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults in order of time; those of one instant in the order given."""

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
        """One readable line per fault."""
        return [describe(fault) for fault in self.faults]


def describe(fault: Fault) -> str:
    """`  12.000 s  pause node=n03 for_ms=500`"""
    told = msgspec.to_builtins(fault)
    kind = told.pop("fault")
    at_ms = told.pop("at_ms")
    details = [f"{name}={_shown(value)}" for name, value in told.items() if value is not None]
    return " ".join([f"{at_ms / 1000:10.3f} s ", kind, *details])


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{one}" for name, one in value.items()) or "what-it-shows"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "all-others"
    return f"{value:g}" if isinstance(value, float) else str(value)


def yaml_format() -> YAML:
    """How schedules are read and written: plain values, one line per fault."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # it is annotated as None
    yaml.width = 1 << 30  # folded, some quoted texts would not read back the same
    yaml.allow_unicode = False
    return yaml


def crashes(nodes: Iterable[NodeId], *, first_ms: float, every_ms: float) -> Schedule:
    """These nodes crash, one after the other."""
    return Schedule(
        tuple(Crash(at_ms=first_ms + every_ms * number, node=node) for number, node in enumerate(nodes))
    )
