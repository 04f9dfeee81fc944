"""The fault model: one class per thing that goes wrong in a simulated mesh, with everything about it.

    {fault: crash, at_ms: 10000.0, node: n03, for_ms: 5000.0}

- its fields, with what each takes and means: files, error messages and docs/simulator.md are made from them;
- `check` refuses names and times that make no sense in a world;
- `begin` makes it happen and returns how to undo it;
- `draw` makes one at random; `@drawn` gives the name under which `--random` and the swarms draw it.

Rules:
- a fault with `for_ms` ends by itself; without it, it lasts until its opposite or the end of the run;
- of two that overlap and set the same thing the later one counts; its end restores what the run began with;
- a fault that changes nothing, such as a crash of a dark machine, is passed over: whatever was drawn runs.

`faults.py` has the faults, `fault_schedules.py` draws and injects schedules, `fault_files.py` reads them.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Annotated, Any, Final, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Meta

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId
from comesh.deployment.problems import did_you_mean
from comesh.sim.topology import Topology
from comesh.sim.world import World

MAX_LISTED: Final = 12
"""Maximum number of known names that an error message lists."""

Milliseconds = Annotated[float, Meta(ge=0, le=1e12)]


class ScheduleError(ValueError):
    """A text that is no schedule, or an invalid fault; str() says where and what.

    line counts from 1 in the text that was read, 0 where there is none; fault is the one that is meant.
    """

    def __init__(self, what: str, *, line: int = 0, fault: "Fault | None" = None) -> None:
        super().__init__(what)
        self.line = line
        self.fault = fault


class Undo(NamedTuple):
    """Ends a fault that has begun."""

    after_ms: float | None
    """Duration until the undo; None: the fault lasts."""
    call: Callable[[], None]
    setting: Hashable = None
    """The setting that the fault changed: the undo does nothing once a later fault has changed it."""


def _tag(class_name: str) -> str:
    """Convert PowerLoss to power-loss."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in class_name)[1:]


class Fault(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag=_tag,
    tag_field="fault",
):
    """A fault and its time."""

    at_ms: Annotated[Milliseconds, Meta(title="duration", description="when, from the start of the run")]

    def check(self, world: World) -> None:
        """Raise ScheduleError if the fault makes no sense in this world."""

    def begin(self, world: World) -> Undo | None:
        """Make the fault happen. None: there is nothing to undo."""
        raise NotImplementedError

    @classmethod
    def draw(cls, at: "Occasion") -> Self:
        """Draw a fault; fields besides its time, duration and target are drawn here."""
        return at.make(cls)

    def error(self, what: str) -> ScheduleError:
        kind = type(self).__struct_config__.tag
        return ScheduleError(f"{kind} at {self.at_ms / 1000:g} s: {what}", fault=self)

    def check_name(self, what: str, name: str, known: Iterable[str]) -> None:
        """Raise ScheduleError unless the name is a known one."""
        names = sorted(known)
        if name in names:
            return
        fix = did_you_mean(name, names)
        if not fix and names:
            fix = f"known: {', '.join(names[:MAX_LISTED])} and {len(names) - MAX_LISTED} more"
        raise self.error(f"unknown {what} {name!r}" + (f"; {fix}" if fix else ""))

    def describe(self) -> str:
        """Returns a readable line: `  12.000 s  pause node=n03 for_ms=500`."""
        fields = msgspec.to_builtins(self)
        kind, at_ms = fields.pop("fault"), fields.pop("at_ms")
        details = [f"{name}={_show(value)}" for name, value in fields.items()]
        return " ".join([f"{at_ms / 1000:10.3f} s ", kind, *details])


def _show(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{one}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- what is known of all faults ---------------------------------------------------------------------------

KINDS: Final[dict[str, type[Fault]]] = {}
"""Every kind of fault by its name in files."""
_F = TypeVar("_F", bound=type[Fault])


def kind(fault: _F) -> _F:
    """Registers a class as a kind of fault that files may name."""
    KINDS[str(fault.__struct_config__.tag)] = fault
    return fault


class Targets(NamedTuple):
    """The possible targets of drawn faults."""

    topology: Topology
    event_devices: tuple[DeviceId, ...] = ()

    def nodes(self) -> Sequence[str]:
        return sorted(self.topology.nodes)

    def nodes_with_domains(self) -> Sequence[str]:
        return self.nodes() if self.topology.power_domains else ()

    def devices(self) -> Sequence[str]:
        return sorted(self.topology.devices)

    def buttons(self) -> Sequence[str]:
        return sorted(self.event_devices)


_K = TypeVar("_K", bound=Fault)


class Occasion(NamedTuple):
    """The drawn time, duration and target of a fault; the fault draws its other fields itself."""

    at_ms: float
    for_ms: float
    name: str
    """The target: a node, or a device for the faults of devices."""
    topology: Topology
    draws: Draws

    def between(self, low: float, high: float) -> float:
        return round(self.draws.between(low, high), 3)

    def make(self, kind: type[_K], **drawn: Any) -> _K:
        """Make a fault of this kind with these values."""
        known: dict[str, Any] = {
            "at_ms": self.at_ms,
            "for_ms": self.for_ms,
            "node": self.name,
            "device": self.name,
        }
        return kind(**{name: one for name, one in known.items() if name in kind.__struct_fields__}, **drawn)


Draw = Callable[[Occasion], Fault]


class Drawn(NamedTuple):
    """A class of faults that can be drawn at random."""

    meaning: str
    draw: Draw
    among: Callable[[Targets], Sequence[str]]
    """Returns the possible targets; with none, no fault is drawn."""
    needs: str
    """What a mesh without targets lacks."""
    min_ms: float


DRAWN: Final[dict[str, Drawn]] = {}
"""Every class of random faults by the name that `--random` takes."""
_D = TypeVar("_D", bound=Draw | type[Fault])


def drawn(
    name: str,
    meaning: str,
    *,
    among: Callable[[Targets], Sequence[str]] = Targets.nodes,
    needs: str = "nodes",
    min_ms: float = 0.0,
) -> Callable[[_D], _D]:
    """Registers a kind of fault, or a function that draws one, under this name."""

    def register(what: _D) -> _D:
        draw: Draw = getattr(what, "draw", what)
        DRAWN[name] = Drawn(meaning, draw, among, needs, min_ms)
        return what

    return register
