"""The faults: of machines and their processes, of power, of the radio, of devices.

`fault_model.py` says what a fault is; docs/simulator.md shows how to add one.
"""

from typing import Annotated, Any, Final, Literal, Self

import msgspec
from msgspec import Meta

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.core.values import Value
from comesh.sim.fault_model import Fault, Milliseconds, Occasion, Targets, Undo, drawn, kind
from comesh.sim.machine import Machine
from comesh.sim.topology import Topology
from comesh.sim.world import World

EVERYWHERE: Final = "*"
"""The power domain of all nodes."""
LEAVING_MS: Final = 1000.0
"""Minimum absence of a node that leaves: it runs on for half a second, and a running node is not
restarted."""
MAX_LATE_MS: Final = 30_000.0
"""Maximum delay of messages and commands that are drawn to be very late."""

Rate = Annotated[float, Meta(ge=0, le=1, title="number from 0 to 1", description="the share of messages")]
_FOR: Final = Meta(
    title="duration", description="for how long; left out: until its opposite or the end of the run"
)
Lasting = Annotated[Milliseconds | None, _FOR]
NodeName = Annotated[NodeId, Meta(title="node", description="which node")]
DeviceName = Annotated[DeviceId, Meta(title="device", description="which device")]
Domain = Annotated[str, Meta(title="text", description="which power domain; `*`: all nodes")]


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
        """Begin the fault on the machine that has the name now."""
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
@drawn("crash", "a node crashes and restarts from its disk")
class Crash(MachineFault, frozen=True):
    """The machine loses power: its process ends, what its disk had not flushed may be gone, and nothing at
    its station relays or answers. At the end of the fault it starts, from its disk or from an empty one."""

    for_ms: Lasting = None
    keep_disk: Annotated[
        bool, Meta(title="true or false", description="false: it starts from an empty disk")
    ] = True

    @property
    def wipes_at_ms(self) -> float | None:
        """Time at which the disk is wiped; None: the disk is kept."""
        return None if self.keep_disk or self.for_ms is None else self.at_ms + self.for_ms

    def check(self, world: World) -> None:
        super().check(world)
        if not self.keep_disk and self.for_ms is None:
            raise self.error("keep_disk: false says how it restarts; say when, such as for: 10s")

    def strike(self, world: World, machine: Machine) -> Undo:
        world.crash(machine)
        return self.restart_after(world, self.for_ms, keep_disk=self.keep_disk)


@drawn("wipe", "a node crashes and restarts from an empty disk; not two within a minute")
def draw_wipe(at: Occasion) -> "Crash":
    return at.make(Crash, keep_disk=False)


@kind
@drawn("kill", "a process ends and starts again; its machine stays up")
class Kill(MachineFault, frozen=True):
    """The process ends, and starts again at the end of the fault; its machine stays up and relays, and its
    journal is whole."""

    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        world.kill(machine)
        return self.restart_after(world, self.for_ms)


@kind
class Restart(MachineFault, frozen=True):
    """The machine of a node that does not run starts, from its disk or from an empty one."""

    keep_disk: Annotated[
        bool, Meta(title="true or false", description="false: it starts from an empty disk")
    ] = True

    def strike(self, world: World, machine: Machine) -> None:
        _restart(world, machine.name, keep_disk=self.keep_disk)


@kind
@drawn("leave", "a node leaves in good order and comes back", min_ms=LEAVING_MS)
class Leave(MachineFault, frozen=True):
    """The node is asked to leave in good order, and starts again at the end of the fault."""

    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        world.ask_to_leave(machine)
        return self.restart_after(world, self.for_ms)


@kind
@drawn("disk", "the disk of a node is full for a while")
class DiskFull(MachineFault, frozen=True):
    """The disk takes no more records; then it has room again."""

    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        world.set_full(machine, True)
        return Undo(self.for_ms, lambda: world.set_full(machine, False), ("full", machine.name))


@kind
@drawn("pause", "a process stands still")
class Pause(MachineFault, frozen=True):
    """The process stands still; its messages and timers wait. Its station goes on relaying."""

    for_ms: Annotated[Milliseconds, _FOR]

    def strike(self, world: World, machine: Machine) -> None:
        world.pause(machine, self.for_ms)


@kind
@drawn("slow", "each step of a process takes up to 200 ms")
class Slow(MachineFault, frozen=True):
    """Every step of the process takes time; what a step does happens at its end."""

    step_ms: Annotated[
        Milliseconds, Meta(title="duration", description="what each step of the process takes")
    ]
    for_ms: Lasting = None

    def strike(self, world: World, machine: Machine) -> Undo:
        machine.step_ms = self.step_ms
        return Undo(self.for_ms, lambda: setattr(machine, "step_ms", 0.0), ("slow", machine.name))

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        return at.make(cls, step_ms=at.between(1.0, 200.0))


@kind
@drawn("skew", "a clock is set by up to 5 s, forward or back")
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

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        return at.make(cls, by_ms=at.between(-5000.0, 5000.0))


@kind
@drawn("drift", "a clock is fast or slow by up to 1 %")
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

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        return at.make(cls, ppm=at.between(-10_000.0, 10_000.0))


@kind
@drawn("copy-card", "a second process of a node starts from a copy of its disk")
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
@drawn(
    "power",
    "a power domain goes out and comes back; a mesh without power domains has none",
    among=Targets.nodes_with_domains,
    needs="power domains",
)
class PowerLoss(PowerFault, frozen=True):
    """All nodes of a power domain, or with `*` of the mesh, crash at once, and start from their disks
    at the end of the fault."""

    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        for machine in self.machines(world):
            world.crash(machine)
        return Undo(self.for_ms, lambda: self.start_all(world))

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        domain = at.draws.choice(sorted(at.topology.power_domains))
        return at.make(cls, domain=domain)


@drawn("outage", "the whole mesh loses power and comes back")
def draw_outage(at: Occasion) -> "PowerLoss":
    domain = at.draws.choice([EVERYWHERE])
    return at.make(PowerLoss, domain=domain)


@kind
class PowerBack(PowerFault, frozen=True):
    """The nodes of the domain, or with `*` of the mesh, that do not run start from their disks."""

    def begin(self, world: World) -> None:
        self.start_all(world)


# -- the radio ---------------------------------------------------------------------------------------------


@kind
@drawn("partition", "one side of a plane, or some nodes, are cut off, one way or both")
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

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        sources = _one_side(at.topology, at.draws)
        return at.make(cls, sources=sources, both=at.draws.chance(0.5))


def _one_side(topology: Topology, draws: Draws) -> tuple[str, ...]:
    """Returns the nodes on one side of a plane across one axis, or a few random nodes."""
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
    """Change these settings of the radio; the undo restores those that the run began with."""
    radio = world.radio
    before = {name: getattr(world.settings.radio, name) for name in settings}
    radio.settings = msgspec.structs.replace(radio.settings, **settings)

    def restore() -> None:
        radio.settings = msgspec.structs.replace(radio.settings, **before)

    return Undo(for_ms, restore, tuple(settings))


@kind
@drawn("loss", "messages are lost at a rate of up to a half")
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

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        rate = at.between(0.01, 0.5)
        return at.make(cls, rate=rate, per="hop" if at.draws.chance(0.5) else "message")


@kind
@drawn("duplicate", "messages arrive twice at a rate of up to a half")
class Duplicate(Fault, frozen=True):
    """Messages arrive twice at this rate."""

    rate: Rate
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _set_radio(world, self.for_ms, duplicate=self.rate)

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        return at.make(cls, rate=at.between(0.01, 0.5))


@kind
@drawn("reorder", "messages are held up by up to 2 s, at a rate of up to a half")
class Reorder(Fault, frozen=True):
    """Messages are held up at this rate, for a random time, which may be long."""

    rate: Rate
    up_to_ms: Annotated[
        Milliseconds, Meta(title="duration", description="how long messages are held up at most")
    ]
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _set_radio(world, self.for_ms, reorder=self.rate, reorder_ms=self.up_to_ms)

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        rate = at.between(0.01, 0.5)
        return at.make(cls, rate=rate, up_to_ms=at.between(1.0, 2000.0))


@drawn("late", "messages are held up by up to 30 s, at a rate of up to a tenth")
def draw_late(at: Occasion) -> "Reorder":
    rate = at.between(0.001, 0.1)
    return at.make(Reorder, rate=rate, up_to_ms=at.between(1000.0, MAX_LATE_MS))


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


@kind
class DeviceUp(DeviceFault, frozen=True):
    """The device answers and relays again."""

    def begin(self, world: World) -> None:
        _set_device_up(world, self.device, True)


def _set_device_up(world: World, device: DeviceId, up: bool) -> None:
    """Update the station: without a machine, it relays as long as one of its devices is up."""
    world.devices[device].misbehave(silent=not up)
    station = world.topology.devices[device]
    if not world.has_machine(station):
        here = [other for other, where in world.topology.devices.items() if where == station]
        world.radio.set_up(station, any(world.devices[other].misbehaviour.hears for other in here))


def _misbehave(world: World, name: DeviceId, for_ms: float | None, field: str, by_ms: float) -> Undo:
    device = world.devices[name]
    device.misbehave(**{field: by_ms})
    return Undo(for_ms, lambda: device.misbehave(**{field: 0.0}), (field, name))


@kind
class DeviceSlow(DeviceFault, frozen=True):
    """The device takes longer for everything."""

    extra_ms: Annotated[Milliseconds, Meta(title="duration", description="how much longer everything takes")]
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _misbehave(world, self.device, self.for_ms, "slow_ms", self.extra_ms)

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        return at.make(cls, extra_ms=at.between(10.0, 5000.0))


@kind
@drawn("device-late", "commands reach a device up to 30 s later", among=Targets.devices, needs="devices")
class DeviceLate(DeviceFault, frozen=True):
    """Commands reach the device this much later, whoever holds its lock by then, and are not answered."""

    by_ms: Annotated[Milliseconds, Meta(title="duration", description="how late commands are")]
    for_ms: Lasting = None

    def begin(self, world: World) -> Undo:
        return _misbehave(world, self.device, self.for_ms, "late_ms", self.by_ms)

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        return at.make(cls, by_ms=at.between(1.0, MAX_LATE_MS))


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
            self.check_name("reading", self.reading, world.devices[self.device].spec.sources)

    def begin(self, world: World) -> Undo | None:
        device = world.devices[self.device]
        if not device.spec.sources:
            return None
        reading = next(iter(device.spec.sources)) if self.reading is None else self.reading
        device.misbehave(wrong=device.misbehaviour.wrong | {reading: self.value})

        def right() -> None:
            wrong = {name: one for name, one in device.misbehaviour.wrong.items() if name != reading}
            device.misbehave(wrong=wrong)

        return Undo(self.for_ms, right, ("device wrong", self.device, reading))

    @classmethod
    def draw(cls, at: Occasion) -> Self:
        value: Value = "?" if at.draws.chance(0.5) else -1e9
        return at.make(cls, value=value)


@drawn("device", "a device is down, slow or wrong", among=Targets.devices, needs="devices")
def draw_device_trouble(at: Occasion) -> Fault:
    kinds: list[type[Fault]] = [DeviceDown, DeviceSlow, DeviceWrong]
    return at.draws.choice(kinds).draw(at)


@kind
@drawn(
    "press",
    "an event device has an event; a mesh without event devices has none",
    among=Targets.buttons,
    needs="event devices",
)
class Press(DeviceFault, frozen=True):
    """An event device has an event, with these values or (none given) what its readings show."""

    values: Annotated[
        dict[str, Value],
        Meta(
            title="mapping of readings to values",
            description="what the event says; left out: what its readings show",
        ),
    ] = msgspec.field(default_factory=dict)

    def check(self, world: World) -> None:
        super().check(world)
        if not world.devices[self.device].spec.event:
            raise self.error(f"{self.device!r} is no event device")
        for reading in self.values:
            self.check_name("reading", reading, world.devices[self.device].spec.sources)

    def begin(self, world: World) -> None:
        world.devices[self.device].press(self.values)
