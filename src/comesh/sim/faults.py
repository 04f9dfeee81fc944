"""Faults: what can go wrong in a simulated mesh. A fault is one class, which holds everything about it.

    {fault: crash, at_ms: 10000.0, node: n03, for_ms: 5000.0}

- its fields, with what each takes and means: files, error messages and docs/simulator.md are made from them;
- `check` refuses names and times that make no sense in a world;
- `begin` makes it happen and returns how to undo it;
- `@drawn` marks the function that draws it, and gives the name that `comesh sim --random` takes.

Rules:
- a fault with `for_ms` ends by itself; without it, it lasts until its opposite or the end of the run;
- of two that overlap and set the same thing the later one counts; its end restores what the run began with;
- a fault that changes nothing, such as a crash of a dark machine, is passed over: whatever was drawn runs.

`fault_schedules.py` draws schedules and injects them; `fault_files.py` reads those that people wrote.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.core.values import Value
from comesh.deployment.problems import did_you_mean
from comesh.sim.machine import Machine
from comesh.sim.topology import Topology
from comesh.sim.world import World

EVERYWHERE: Final = "*"
"""The power domain of all nodes."""
LEAVING_MS: Final = 1000.0
"""Minimum absence of a node that leaves: it runs on for half a second, and what runs is not restarted."""
MAX_LATE_MS: Final = 30_000.0
"""Maximum delay of messages and commands that are drawn to be very late."""
MAX_LISTED: Final = 12
"""Maximum number of known names that an error message lists."""

Milliseconds = Annotated[float, Meta(ge=0, le=1e12)]
Rate = Annotated[float, Meta(ge=0, le=1, title="number from 0 to 1", description="the share of messages")]
_FOR: Final = Meta(
    title="duration", description="for how long; left out: until its opposite or the end of the run"
)
Lasting = Annotated[Milliseconds | None, _FOR]
NodeName = Annotated[NodeId, Meta(title="node", description="which node")]
DeviceName = Annotated[DeviceId, Meta(title="device", description="which device")]
Domain = Annotated[str, Meta(title="text", description="which power domain; `*`: all nodes")]


class ScheduleError(ValueError):
    """A text that is no schedule, or a fault that makes no sense; str() says where and what.

    line counts from 1 in the text that was read, 0 where there is none; fault is the one that is meant.
    """

    def __init__(self, what: str, *, line: int = 0, fault: "Fault | None" = None) -> None:
        super().__init__(what)
        self.line = line
        self.fault = fault


class Undo(NamedTuple):
    """The end of a fault that has begun."""

    after_ms: float | None
    """None: the fault lasts."""
    call: Callable[[], None]
    setting: Hashable = None
    """What the fault has set: this undoes nothing once a later fault has set the same."""


def _tag(class_name: str) -> str:
    """PowerLoss -> power-loss"""
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
    """Something that goes wrong, and when."""

    at_ms: Annotated[Milliseconds, Meta(title="duration", description="when, from the start of the run")]

    def check(self, world: World) -> None:
        """Raise ScheduleError if the fault makes no sense in this world."""

    def begin(self, world: World) -> Undo | None:
        """Make it happen. None: there is nothing to undo."""
        raise NotImplementedError

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
        """`  12.000 s  pause node=n03 for_ms=500`"""
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
    """Makes a class a kind of fault that files may name."""
    KINDS[str(fault.__struct_config__.tag)] = fault
    return fault


class Targets(NamedTuple):
    """Whom drawn faults can strike."""

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


class Occasion(NamedTuple):
    """What is drawn for every fault: when it happens, for how long, and to whom. The rest it draws itself."""

    at_ms: float
    for_ms: float
    name: str
    """A node, or a device for the faults of devices."""
    topology: Topology
    draws: Draws

    def between(self, low: float, high: float) -> float:
        return round(self.draws.between(low, high), 3)

    @property
    def node(self) -> NodeId:
        return NodeId(self.name)

    @property
    def device(self) -> DeviceId:
        return DeviceId(self.name)


Draw = Callable[[Occasion], Fault]


class Drawn(NamedTuple):
    """A class of faults that can be drawn at random."""

    meaning: str
    draw: Draw
    among: Callable[[Targets], Sequence[str]]
    """Whom it can strike; where there is nobody, none is drawn."""
    needs: str
    """What a mesh without anybody to strike lacks."""
    min_ms: float


DRAWN: Final[dict[str, Drawn]] = {}
"""Every class of random faults by the name that `--random` takes."""
_D = TypeVar("_D", bound=Draw)


def drawn(
    name: str,
    meaning: str,
    *,
    among: Callable[[Targets], Sequence[str]] = Targets.nodes,
    needs: str = "nodes",
    min_ms: float = 0.0,
) -> Callable[[_D], _D]:
    """Registers a function that draws a fault under this name."""

    def register(draw: _D) -> _D:
        DRAWN[name] = Drawn(meaning, draw, among, needs, min_ms)
        return draw

    return register


# -- machines ----------------------------------------------------------------------------------------------


class MachineFault(Fault, frozen=True):
    """A fault of one machine; `n03.copy1` is the machine of a copied card."""

    node: NodeName

    def check(self, world: World) -> None:
        self.check_name("node", self.node.split(".copy")[0], world.topology.nodes)

    def begin(self, world: World) -> Undo | None:
        machine = world.machines.get(self.node)
        return None if machine is None else self.strike(world, machine)

    def strike(self, world: World, machine: Machine) -> Undo | None:
        """`begin`, of the machine that has the name now."""
        raise NotImplementedError

    def restart_after(self, world: World, for_ms: float | None, *, keep_disk: bool = True) -> Undo:
        return Undo(for_ms, lambda: _restart(world, self.node, keep_disk=keep_disk))


def _restart(world: World, name: str, *, keep_disk: bool) -> None:
    machine = world.machines.get(name)
    if machine is None or machine.process is not None:
        return
    if not (keep_disk or machine.keeps_disk):
        world.wipe(machine)
    world.start(machine)


@kind
class Crash(MachineFault, frozen=True):
    """The machine loses power: its process ends, what its disk had not flushed may be gone, and nothing at
    its station relays or answers. At the end of the fault it starts, from its disk or from an empty one."""

    for_ms: Lasting = None
    keep_disk: Annotated[
        bool, Meta(title="true or false", description="false: it starts from an empty disk")
    ] = True

    @property
    def wipes_at_ms(self) -> float | None:
        """When the empty disk is there; None: the disk is kept."""
        return None if self.keep_disk or self.for_ms is None else self.at_ms + self.for_ms

    def check(self, world: World) -> None:
        super().check(world)
        if not self.keep_disk and self.for_ms is None:
            raise self.error("keep_disk: false says how it restarts; say when, such as for: 10s")

    def strike(self, world: World, machine: Machine) -> Undo:
        world.crash(machine)
        return self.restart_after(world, self.for_ms, keep_disk=self.keep_disk)

    @staticmethod
    @drawn("crash", "a node crashes and restarts from its disk")
    def draw(at: Occasion) -> "Crash":
        return Crash(at_ms=at.at_ms, node=at.node, for_ms=at.for_ms)

    @staticmethod
    @drawn("wipe", "a node crashes and restarts from an empty disk; not two within a minute")
    def draw_wipe(at: Occasion) -> "Crash":
        return Crash(at_ms=at.at_ms, node=at.node, for_ms=at.for_ms, keep_disk=False)


@kind
class Kill(MachineFault, frozen=True):
    """The process ends, and starts again at the end of the fault; its machine stays up and relays, and its
    journal is whole."""

    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        world.kill(machine)
        return self.restart_after(world, self.for_ms)

    @staticmethod
    @drawn("kill", "a process ends and starts again; its machine stays up")
    def draw(at: Occasion) -> "Kill":
        return Kill(at_ms=at.at_ms, node=at.node, for_ms=at.for_ms)


@kind
class Restart(MachineFault, frozen=True):
    """The machine of a node that does not run starts, from its disk or from an empty one."""

    keep_disk: Annotated[
        bool, Meta(title="true or false", description="false: it starts from an empty disk")
    ] = True

    def strike(self, world: World, machine: Machine) -> None:
        _restart(world, machine.name, keep_disk=self.keep_disk)


@kind
class Leave(MachineFault, frozen=True):
    """The node is asked to leave in good order, and starts again at the end of the fault."""

    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        world.ask_to_leave(machine)
        return self.restart_after(world, self.for_ms)

    @staticmethod
    @drawn("leave", "a node leaves in good order and comes back", min_ms=LEAVING_MS)
    def draw(at: Occasion) -> "Leave":
        return Leave(at_ms=at.at_ms, node=at.node, for_ms=at.for_ms)


@kind
class DiskFull(MachineFault, frozen=True):
    """The disk takes no more records; then it has room again."""

    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        world.set_full(machine, True)
        return Undo(self.for_ms, lambda: world.set_full(machine, False), ("full", machine.name))

    @staticmethod
    @drawn("disk", "the disk of a node is full for a while")
    def draw(at: Occasion) -> "DiskFull":
        return DiskFull(at_ms=at.at_ms, node=at.node, for_ms=at.for_ms)


@kind
class Pause(MachineFault, frozen=True):
    """The process stands still; its messages and timers wait. Its station goes on relaying."""

    for_ms: Annotated[Milliseconds, _FOR]

    def strike(self, world: World, machine: Machine) -> None:
        world.pause(machine, self.for_ms)

    @staticmethod
    @drawn("pause", "a process stands still")
    def draw(at: Occasion) -> "Pause":
        return Pause(at_ms=at.at_ms, node=at.node, for_ms=at.for_ms)


@kind
class Slow(MachineFault, frozen=True):
    """Every step of the process takes time; what a step does happens at its end."""

    step_ms: Annotated[
        Milliseconds, Meta(title="duration", description="what each step of the process takes")
    ]
    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        machine.step_ms = self.step_ms
        return Undo(self.for_ms, lambda: setattr(machine, "step_ms", 0.0), ("slow", machine.name))

    @staticmethod
    @drawn("slow", "each step of a process takes up to 200 ms")
    def draw(at: Occasion) -> "Slow":
        return Slow(at_ms=at.at_ms, node=at.node, step_ms=at.between(1.0, 200.0), for_ms=at.for_ms)


@kind
class Skew(MachineFault, frozen=True):
    """The wall clock is set forward; set back, it stands until it has caught up."""

    by_ms: Annotated[
        float,
        Meta(
            ge=-1e12, le=1e12, title="duration, also negative", description="how far the clock is set forward"
        ),
    ]

    def strike(self, world: World, machine: Machine) -> None:
        machine.clock.skew(world.now_ms, self.by_ms)

    @staticmethod
    @drawn("skew", "a clock is set by up to 5 s, forward or back")
    def draw(at: Occasion) -> "Skew":
        return Skew(at_ms=at.at_ms, node=at.node, by_ms=at.between(-5000.0, 5000.0))


@kind
class Drift(MachineFault, frozen=True):
    """Both clocks, and timers, gain (or lose) this many microseconds per second from now on."""

    ppm: Annotated[
        float,
        Meta(
            ge=-900_000,
            le=900_000,
            title="number from -900000 to 900000",
            description="microseconds gained per second",
        ),
    ]

    def strike(self, world: World, machine: Machine) -> None:
        world.set_drift(machine, self.ppm)

    @staticmethod
    @drawn("drift", "a clock is fast or slow by up to 1 %")
    def draw(at: Occasion) -> "Drift":
        return Drift(at_ms=at.at_ms, node=at.node, ppm=at.between(-10_000.0, 10_000.0))


@kind
class CopyCard(MachineFault, frozen=True):
    """A second process of the node starts at another station, from a copy of its disk as it is now.

    On the new machine the journal is a stranger's: it holds no seat in any group.

    The new machine is called `<node>.copy1`, and so on: other faults may name it. Without a station
    (the name of a device or node there), one is drawn.
    """

    station: Annotated[
        str | None, Meta(title="node or device", description="where the copy starts; left out: drawn")
    ] = None

    def check(self, world: World) -> None:
        topology = world.topology
        self.check_name("node", self.node, topology.nodes)
        if self.station is not None:
            self.check_name("station", self.station, [*topology.nodes, *topology.devices])
            if topology.station(self.station) == topology.nodes[self.node]:
                raise self.error("the copy needs another station than its own")

    def strike(self, world: World, machine: Machine) -> None:
        station = None if self.station is None else world.topology.station(self.station)
        world.copy_card(self.node, station)

    @staticmethod
    @drawn("copy-card", "a second process of a node starts from a copy of its disk")
    def draw(at: Occasion) -> "CopyCard":
        return CopyCard(at_ms=at.at_ms, node=at.node)


# -- power -------------------------------------------------------------------------------------------------


class PowerFault(Fault, frozen=True):
    """A fault of all machines of a power domain."""

    domain: Domain

    def check(self, world: World) -> None:
        self.check_name("power domain", self.domain, [EVERYWHERE, *world.topology.power_domains])

    def machines(self, world: World) -> list[Machine]:
        if self.domain == EVERYWHERE:
            return list(world.machines.values())
        return [world.machines[node] for node in world.topology.power_domains[self.domain]]

    def start_all(self, world: World) -> None:
        for machine in self.machines(world):
            world.start(machine)


@kind
class PowerLoss(PowerFault, frozen=True):
    """All nodes of a power domain, or with `*` of the mesh, crash at once, and start from their disks
    at the end of the fault."""

    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        for machine in self.machines(world):
            world.crash(machine)
        return Undo(self.for_ms, lambda: self.start_all(world))

    @staticmethod
    @drawn(
        "power",
        "a power domain goes out and comes back; a mesh without power domains has none",
        among=Targets.nodes_with_domains,
        needs="power domains",
    )
    def draw(at: Occasion) -> "PowerLoss":
        domain = at.draws.choice(sorted(at.topology.power_domains))
        return PowerLoss(at_ms=at.at_ms, domain=domain, for_ms=at.for_ms)

    @staticmethod
    @drawn("outage", "the whole mesh loses power and comes back")
    def draw_outage(at: Occasion) -> "PowerLoss":
        domain = at.draws.choice([EVERYWHERE])
        return PowerLoss(at_ms=at.at_ms, domain=domain, for_ms=at.for_ms)


@kind
class PowerBack(PowerFault, frozen=True):
    """The nodes of the domain, or with `*` of the mesh, that do not run start from their disks."""

    def begin(self, world: World) -> None:
        self.start_all(world)


# -- the radio ---------------------------------------------------------------------------------------------


@kind
class Partition(Fault, frozen=True):
    """Nothing gets from some stations to others (named by node or device; none named: all others)."""

    sources: Annotated[
        tuple[str, ...],
        Meta(title="list of nodes and devices", description="whose messages do not get through"),
    ] = msgspec.field(name="from")
    destinations: Annotated[
        tuple[str, ...],
        Meta(title="list of nodes and devices", description="to whom; left out: to all others"),
    ] = msgspec.field(name="to", default=())
    both: Annotated[bool, Meta(title="true or false", description="false: the way back stays open")] = True
    for_ms: Lasting = None

    def check(self, world: World) -> None:
        for name in self.sources + self.destinations:
            self.check_name("station", name, [*world.topology.nodes, *world.topology.devices])

    def begin(self, world: World) -> Undo:
        radio = world.radio
        everywhere = set(range(radio.routes.stations))
        sources = set(map(world.topology.station, self.sources))
        destinations = set(map(world.topology.station, self.destinations)) or everywhere - sources
        radio.cut((self, "there"), sources, destinations)
        if self.both:
            radio.cut((self, "back"), destinations, sources)

        def heal() -> None:
            radio.heal((self, "there"))
            radio.heal((self, "back"))

        return Undo(self.for_ms, heal)

    @staticmethod
    @drawn("partition", "one side of a plane, or some nodes, are cut off, one way or both")
    def draw(at: Occasion) -> "Partition":
        sources = _one_side(at.topology, at.draws)
        return Partition(at_ms=at.at_ms, sources=sources, both=at.draws.chance(0.5), for_ms=at.for_ms)


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


@kind
class Heal(Fault, frozen=True):
    """All partitions end."""

    def begin(self, world: World) -> None:
        world.radio.heal()


def _set_radio(world: World, for_ms: float | None, **settings: Any) -> Undo:
    """Change these settings of the radio; the end restores those that the run began with."""
    radio = world.radio
    before = {name: getattr(world.settings.radio, name) for name in settings}
    radio.settings = msgspec.structs.replace(radio.settings, **settings)

    def restore() -> None:
        radio.settings = msgspec.structs.replace(radio.settings, **before)

    return Undo(for_ms, restore, tuple(settings))


@kind
class Loss(Fault, frozen=True):
    """Messages are lost at this rate, on each hop or once on the whole way."""

    rate: Rate
    per: Annotated[
        Literal["hop", "message"],
        Meta(title="hop or message", description="lost on each hop, or once on the whole way"),
    ] = "hop"
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _set_radio(world, self.for_ms, **{f"loss_per_{self.per}": self.rate})

    @staticmethod
    @drawn("loss", "messages are lost at a rate of up to a half")
    def draw(at: Occasion) -> "Loss":
        rate = at.between(0.01, 0.5)
        return Loss(
            at_ms=at.at_ms, rate=rate, per="hop" if at.draws.chance(0.5) else "message", for_ms=at.for_ms
        )


@kind
class Duplicate(Fault, frozen=True):
    """Messages arrive twice at this rate."""

    rate: Rate
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _set_radio(world, self.for_ms, duplicate=self.rate)

    @staticmethod
    @drawn("duplicate", "messages arrive twice at a rate of up to a half")
    def draw(at: Occasion) -> "Duplicate":
        return Duplicate(at_ms=at.at_ms, rate=at.between(0.01, 0.5), for_ms=at.for_ms)


@kind
class Reorder(Fault, frozen=True):
    """Messages are held up at this rate, for a random time, which may be long."""

    rate: Rate
    up_to_ms: Annotated[
        Milliseconds, Meta(title="duration", description="how long messages are held up at most")
    ]
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _set_radio(world, self.for_ms, reorder=self.rate, reorder_ms=self.up_to_ms)

    @staticmethod
    @drawn("reorder", "messages are held up by up to 2 s, at a rate of up to a half")
    def draw(at: Occasion) -> "Reorder":
        rate = at.between(0.01, 0.5)
        return Reorder(at_ms=at.at_ms, rate=rate, up_to_ms=at.between(1.0, 2000.0), for_ms=at.for_ms)

    @staticmethod
    @drawn("late", "messages are held up by up to 30 s, at a rate of up to a tenth")
    def draw_late(at: Occasion) -> "Reorder":
        rate = at.between(0.001, 0.1)
        return Reorder(at_ms=at.at_ms, rate=rate, up_to_ms=at.between(1000.0, MAX_LATE_MS), for_ms=at.for_ms)


# -- devices -----------------------------------------------------------------------------------------------


class DeviceFault(Fault, frozen=True):
    """A fault of one device."""

    device: DeviceName

    def check(self, world: World) -> None:
        self.check_name("device", self.device, world.topology.devices)


@kind
class DeviceDown(DeviceFault, frozen=True):
    """The device neither answers nor relays (others at the same station go on, and relay)."""

    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        _set_device_up(world, self.device, False)
        return Undo(self.for_ms, lambda: _set_device_up(world, self.device, True))

    @staticmethod
    def draw(at: Occasion) -> "DeviceDown":
        return DeviceDown(at_ms=at.at_ms, device=at.device, for_ms=at.for_ms)


@kind
class DeviceUp(DeviceFault, frozen=True):
    """The device answers and relays again."""

    def begin(self, world: World) -> None:
        _set_device_up(world, self.device, True)


def _set_device_up(world: World, device: DeviceId, up: bool) -> None:
    """A station without a machine relays as long as one of its devices is up."""
    world.devices.set_down(device, not up)
    station = world.topology.devices[device]
    if not world.has_machine(station):
        here = [other for other, where in world.topology.devices.items() if where == station]
        world.radio.set_up(station, not all(map(world.devices.is_down, here)))


@kind
class DeviceSlow(DeviceFault, frozen=True):
    """The device takes longer for everything."""

    extra_ms: Annotated[Milliseconds, Meta(title="duration", description="how much longer everything takes")]
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        world.devices.set_slow(self.device, self.extra_ms)
        return Undo(
            self.for_ms, lambda: world.devices.set_slow(self.device, 0.0), ("device slow", self.device)
        )

    @staticmethod
    def draw(at: Occasion) -> "DeviceSlow":
        return DeviceSlow(
            at_ms=at.at_ms, device=at.device, extra_ms=at.between(10.0, 5000.0), for_ms=at.for_ms
        )


@kind
class DeviceLate(DeviceFault, frozen=True):
    """Commands reach the device this much later, whoever holds its lock by then, and are not answered."""

    by_ms: Annotated[Milliseconds, Meta(title="duration", description="how late commands are")]
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        world.devices.set_late(self.device, self.by_ms)
        return Undo(
            self.for_ms, lambda: world.devices.set_late(self.device, 0.0), ("device late", self.device)
        )

    @staticmethod
    @drawn("device-late", "commands reach a device up to 30 s later", among=Targets.devices, needs="devices")
    def draw(at: Occasion) -> "DeviceLate":
        return DeviceLate(
            at_ms=at.at_ms, device=at.device, by_ms=at.between(1.0, MAX_LATE_MS), for_ms=at.for_ms
        )


@kind
class DeviceWrong(DeviceFault, frozen=True):
    """The device answers this value of one reading (none named: the first), whatever is so."""

    value: Annotated[Value, Meta(title="number, text, true or false", description="what it answers")]
    reading: Annotated[str | None, Meta(title="text", description="which reading; left out: the first")] = (
        None
    )
    for_ms: Lasting = None

    def check(self, world: World) -> None:
        super().check(world)
        if self.reading is not None:
            self.check_name("reading", self.reading, world.devices.reading_names(self.device))

    def begin(self, world: World) -> Undo | None:
        names = world.devices.reading_names(self.device)
        if not names:
            return None
        reading = names[0] if self.reading is None else self.reading
        world.devices.set_wrong(self.device, reading, self.value)
        return Undo(
            self.for_ms,
            lambda: world.devices.set_wrong(self.device, reading, None),
            ("device wrong", self.device, reading),
        )

    @staticmethod
    def draw(at: Occasion) -> "DeviceWrong":
        value: Value = "?" if at.draws.chance(0.5) else -1e9
        return DeviceWrong(at_ms=at.at_ms, device=at.device, value=value, for_ms=at.for_ms)


@drawn("device", "a device is down, slow or wrong", among=Targets.devices, needs="devices")
def draw_device_trouble(at: Occasion) -> Fault:
    drawing: tuple[Draw, ...] = (DeviceDown.draw, DeviceSlow.draw, DeviceWrong.draw)
    return at.draws.choice(drawing)(at)


@kind
class Press(DeviceFault, frozen=True):
    """An event device has an event, with these values or (none given) what its readings show."""

    values: Annotated[
        dict[str, Value],
        Meta(
            title="mapping of readings to values",
            description="what the event says; left out: what its readings show",
        ),
    ] = {}

    def check(self, world: World) -> None:
        super().check(world)
        if not world.devices.spec(self.device).event:
            raise self.error(f"{self.device!r} is no event device")
        for reading in self.values:
            self.check_name("reading", reading, world.devices.reading_names(self.device))

    def begin(self, world: World) -> None:
        world.device_events.press(self.device, self.values)

    @staticmethod
    @drawn(
        "press",
        "an event device has an event; a mesh without event devices has none",
        among=Targets.buttons,
        needs="event devices",
    )
    def draw(at: Occasion) -> "Press":
        return Press(at_ms=at.at_ms, device=at.device)
