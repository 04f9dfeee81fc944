"""Sets a scenario up and plays it: a small mesh of real nodes in the simulator, with faults at exact
steps.

A node is heard through a thin `Actor` around it, which sees every effect before the world performs it. A
*cue* waits for one of them: the node may die right after it or in its place, a message may be lost or
held up, or something may happen elsewhere in the same instant. So a fault hits the same step whenever it
is played.

The cast is small enough to be remembered. Two clusters, `kitchen` (n1 n2 n3) and `hall` (n4 n5 n6), are
written into the plan by hand, so that ranks follow names; all later configs are selected as always. A third
one, `porch` (n7 n8 n9), is there only where a scenario asks for it. Every hop takes 10 ms whatever the size
of a message, so that times only change when the protocol does.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

import msgspec
from telling import Telling

from comesh.core.actions import Action, RoutineStep
from comesh.core.effects import CommandDevice, Committed, Effect, Observe, Send
from comesh.core.events import MessageReceived
from comesh.core.group.handoff import clock_epoch
from comesh.core.group_messages import Body, InConfig, Update
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.membership import MembershipSettings
from comesh.core.node import AnyEvent
from comesh.core.plan import Cluster, Place, PlannedRoutine, SelectionSettings
from comesh.core.program import DeviceProgram, Program, ProtocolSettings, RoutineProgram
from comesh.core.records import Record
from comesh.core.selection import make_plan
from comesh.core.strategies import Strategy
from comesh.core.work_messages import GroupMessage, Work
from comesh.drivers.virtual.devices import CommandSpec, DeviceSpec
from comesh.drivers.virtual.sources import Constant, Script, Source
from comesh.sim.checks import Checks
from comesh.sim.engine import Priority
from comesh.sim.machine import Steppable
from comesh.sim.members import members
from comesh.sim.predicates import Comparison
from comesh.sim.radio import RadioSettings
from comesh.sim.topology import Topology
from comesh.sim.world import World
from comesh.sim.world_settings import WorldSettings

HOP_MS: Final = 10.0
WARM_UP_MS: Final = 5000.0
"""Before a transcript begins: every group is served and every device was read by then."""
PROGRESS_MS: Final = 60_000.0
NODES: Final = tuple(NodeId(f"n{number}") for number in range(1, 7))
KITCHEN: Final = GroupId("kitchen")
HALL: Final = GroupId("hall")
PORCH: Final = GroupId("porch")


class Room(NamedTuple):
    """A cluster: its first members in rank order, and its devices."""

    nodes: tuple[NodeId, ...]
    devices: tuple[str, ...]


ROOMS: Final = {KITCHEN: Room(NODES[:3], ("door", "kettle")), HALL: Room(NODES[3:], ("fan", "lamp"))}
WITH_PORCH: Final = {**ROOMS, PORCH: Room((NodeId("n7"), NodeId("n8"), NodeId("n9")), ("lantern",))}
Rooms = Mapping[GroupId, Room]
FLIGHT_MS: Final = 500.0
FADE_MS: Final = 2500.0
CALM: Final = ProtocolSettings(epoch_ms=3_600_000, replace_after_ms=120_000.0)
"""No epoch ends and nobody is replaced by itself, so that a transcript has one subject."""

Wanted = Callable[[str, Effect], bool]
Deed = Callable[[], None]


# -- what cues wait for ------------------------------------------------------------------------------------


def sends(
    kind: type[Body] | type[Work], *, by: str | None = None, to: str | None = None, of: str = ""
) -> Wanted:
    """A message of this kind, of a group."""

    def wanted(machine: str, effect: Effect) -> bool:
        if not isinstance(effect, Send) or by not in (None, machine) or to not in (None, effect.to):
            return False
        message = effect.message
        if isinstance(message, InConfig):
            return isinstance(message.body, kind) and of in ("", message.group)
        return isinstance(message, GroupMessage) and isinstance(message.body, kind) and of in ("", message.to)

    return wanted


def proposes(is_it: Callable[[Record], bool], *, of: str, by: str | None = None) -> Wanted:
    """An Update with such a record."""

    def wanted(machine: str, effect: Effect) -> bool:
        if (
            not isinstance(effect, Send)
            or not isinstance(effect.message, InConfig)
            or by not in (None, machine)
        ):
            return False
        entries = getattr(effect.message.body, "entries", ())
        return effect.message.group == of and any(is_it(record) for entry in entries for record in entry)

    return wanted


def commits(is_it: Callable[[Record], bool], *, of: str) -> Wanted:
    """The leader counts an entry with such a record as committed."""

    def wanted(machine: str, effect: Effect) -> bool:
        if not isinstance(effect, Observe) or not isinstance(effect.observation, Committed):
            return False
        return effect.observation.group == of and any(map(is_it, effect.observation.entry))

    return wanted


def commands(device: str) -> Wanted:
    """A command leaves for this device."""
    return lambda machine, effect: isinstance(effect, CommandDevice) and effect.device == device


class _Cue:
    def __init__(
        self, wanted: Wanted, deed: Deed | None, fate: str, times: int, held_ms: float = 0.0
    ) -> None:
        self.wanted = wanted
        self.deed = deed
        self.fate = fate
        """after: go on; dies: end the step there; instead: and without it; lost, held: of a message."""
        self.times = times
        self.held_ms = held_ms


class Actor:
    """A real node, overheard."""

    def __init__(self, node: Steppable, stage: "Stage", node_id: NodeId) -> None:
        self.node = node
        self._stage = stage
        self._node_id = node_id
        self._name: str | None = None

    @property
    def deployment(self) -> int:
        return self.node.deployment

    @property
    def name(self) -> str:
        """Of the machine: two copies of a card have one node id."""
        if self._name is None:
            machines = self._stage.world.machines.values()
            found = [one.name for one in machines if one.process is not None and one.process.node is self]
            self._name = found[0] if found else str(self._node_id)
        return self._name

    def step(self, event: AnyEvent, now_ms: float, wall_ms: float) -> list[Effect]:
        return self.steps((event,), now_ms, wall_ms)

    def steps(self, events: Sequence[AnyEvent], now_ms: float, wall_ms: float) -> list[Effect]:
        effects = self.node.steps(events, now_ms, wall_ms)
        return self._stage.overhear(self.name, effects)


# -- the cast ----------------------------------------------------------------------------------------------


def lights(
    name: str, *devices: str, strategy: Strategy = Strategy.SEQUENTIAL, fades: bool = False
) -> RoutineProgram:
    """A routine that switches these devices on, at once or slowly, one after the other; it is anchored at the
    door."""
    takes_ms = FADE_MS if fades else 20.0
    steps = tuple(
        RoutineStep(
            DeviceId(device),
            Action("fade" if fades else "set", True, takes_ms + 1000.0, expects={"on": True}),
        )
        for device in devices
    )
    return RoutineProgram(
        id=RoutineId(name), when=Comparison(("door", "open"), "==", True), strategy=strategy, steps=steps
    )


def _topology(rooms: Rooms, power_domains: Mapping[str, tuple[NodeId, ...]]) -> Topology:
    """Everybody hears everybody."""
    nodes = [node for room in rooms.values() for node in room.nodes]
    places = {node: Place(1000 * number, 0) for number, node in enumerate(nodes)}
    names = [device for room in rooms.values() for device in room.devices]
    device_places = {DeviceId(name): Place(1500 * number, 1000) for number, name in enumerate(names)}
    stations = len(places) + len(device_places)
    return Topology(
        name="rooms",
        places=(*places.values(), *device_places.values()),
        reach_mm=100_000,
        nodes={node: station for station, node in enumerate(places)},
        devices={device: len(places) + number for number, device in enumerate(device_places)},
        relays=(True,) * stations,
        power_domains=dict(power_domains),
    )


def _program(
    rooms: Rooms,
    topology: Topology,
    routines: Sequence[RoutineProgram],
    settings: ProtocolSettings,
    seed: int,
) -> Program:
    planned = [
        PlannedRoutine(id=routine.id, touches=tuple(sorted({*routine.commands, DeviceId("door")})))
        for routine in routines
    ]
    selection = SelectionSettings(f=1, seed=seed, cluster_size=2)
    plan = make_plan(1, selection, topology.planned_nodes(), topology.planned_devices(), planned)
    clusters = tuple(
        Cluster(
            group=group,
            devices=tuple(map(DeviceId, rooms[group].devices)),
            routines=tuple(sorted(routine.id for routine in routines)) if group == KITCHEN else (),
        )
        for group in sorted(rooms)
    )
    anchors = {routine.id: DeviceId("door") for routine in routines}
    genesis = {group: room.nodes for group, room in rooms.items()}
    genesis |= {group: nodes for group, nodes in plan.genesis.items() if group == "deployment"}
    plan = msgspec.structs.replace(plan, clusters=clusters, anchors=anchors, genesis=genesis)
    return Program(
        plan=plan,
        devices={device: DeviceProgram(id=device, flight_ms=FLIGHT_MS) for device in topology.devices},
        routines={routine.id: routine for routine in routines},
        settings=settings,
    )


def _specs(rooms: Rooms, door_opens_ms: float | None) -> dict[DeviceId, DeviceSpec]:
    door: Source = Constant(False)
    if door_opens_ms is not None:
        door = Script(((0.0, False), (WARM_UP_MS + door_opens_ms, True)))
    sets = CommandSpec(sets="on", takes_ms=20.0)
    fade = CommandSpec(sets="on", takes_ms=FADE_MS)
    switch = DeviceSpec(sources={"on": Constant(False)}, commands={"set": sets, "fade": fade})
    names = [DeviceId(device) for room in rooms.values() for device in room.devices if device != "door"]
    return {DeviceId("door"): DeviceSpec(sources={"open": door}), **dict.fromkeys(names, switch)}


class Stage:
    """A mesh at rest after its warm-up; from then on everything that matters is told."""

    def __init__(
        self,
        *routines: RoutineProgram,
        rooms: Rooms = ROOMS,
        settings: ProtocolSettings | None = None,
        door_opens_ms: float | None = None,
        power_domains: Mapping[str, tuple[NodeId, ...]] | None = None,
        seed: int = 1,
        journal: bool = False,
    ) -> None:
        self.settings = settings or CALM
        self.topology = _topology(rooms, power_domains or {})
        self.program = _program(rooms, self.topology, routines, self.settings, seed)
        make_node = members(self.topology, MembershipSettings(), seed=seed, joined=True, program=self.program)
        self._cues: list[_Cue] = []
        radio = RadioSettings(hop_ms=HOP_MS, bandwidth_bytes_per_s=inf)
        self.world = World(
            self.topology,
            lambda node: Actor(make_node(node), self, node),
            seed=seed,
            settings=WorldSettings(radio=radio, start_spread_ms=0.0, strict=self.settings.strict),
            devices=_specs(rooms, door_opens_ms),
        )
        self.checks = Checks.attach(self.world, self.program)
        self.telling = Telling(lambda: self.world.now_ms, self._arrives)
        self._acts = 0
        self._cuts = 0
        self.world.run_until(WARM_UP_MS)
        self.telling.journal = journal
        self.telling.begin()

    # -- listening ---------------------------------------------------------------------------------------

    def _arrives(self, machine: str, to: NodeId) -> bool:
        source = self.world.machines[machine].station
        reached = self.world.radio.reaches(source, self.topology.nodes[to])
        return reached and self.world.runs(to)

    def _whole(self, machine: str, effect: Effect) -> Effect:
        """With whole records in the place of what changed in them, as the sender has them."""
        if not isinstance(effect, Send) or not isinstance(effect.message, InConfig):
            return effect
        body = effect.message.body
        process = self.world.machines[machine].process
        replica = process and process.node.node.groups.addressed.get(effect.message.address)
        if not isinstance(body, Update) or not replica:
            return effect
        entries = replica.ledger.since(body.first - 1)
        assert entries is not None
        whole = msgspec.structs.replace(body, entries=entries[: len(body.entries)])
        return msgspec.structs.replace(effect, message=msgspec.structs.replace(effect.message, body=whole))

    def overhear(self, machine: str, effects: list[Effect]) -> list[Effect]:
        """Tell the effects of a step, and give back those that happen."""
        self._tell_acts()
        happen: list[Effect] = []
        heard = [self._whole(machine, effect) for effect in effects]
        for number, (effect, told) in enumerate(zip(effects, heard, strict=True)):
            cue = next((cue for cue in self._cues if cue.times and cue.wanted(machine, told)), None)
            if cue is not None:
                cue.times -= 1
                if cue.deed is not None:
                    self.world.engine.at(self.world.now_ms, Priority.FAULT, cue.deed)
                if cue.fate == "instead":
                    for other in heard[number:]:
                        if cue.wanted(machine, other):
                            self.telling.effect(machine, other, lost=True)
                    break
                if cue.fate in ("lost", "held"):
                    self.telling.effect(machine, told, lost=cue.fate == "lost", held_ms=cue.held_ms)
                    self._take(cue, machine, effect)
                    continue
            self.telling.effect(machine, told)
            happen.append(effect)
            if cue is not None and cue.fate == "dies":
                break
        return happen

    def _take(self, cue: _Cue, machine: str, effect: Effect) -> None:
        """A message is lost, or comes later."""
        if cue.fate == "held":
            assert isinstance(effect, Send)
            at_ms = self.world.now_ms + cue.held_ms
            self.world.engine.at(at_ms, Priority.ARRIVAL, self._deliver, NodeId(machine), effect)

    def _deliver(self, sender: NodeId, send: Send) -> None:
        process = self.world.machines[send.to].process
        if process is not None:
            self.telling.line(f"{send.to} gets what {sender} sent long ago")
            event = MessageReceived(
                sender=sender,
                incarnation=send.incarnation,
                deployment=self.program.version,
                message=send.message,
            )
            self.world.give(process, event)

    def _tell_acts(self) -> None:
        log = self.world.devices.log
        while self._acts < len(log):
            self.telling.acted(log[self._acts])
            self._acts += 1

    # -- cues --------------------------------------------------------------------------------------------

    def after(self, wanted: Wanted, deed: Deed) -> None:
        """In the instant of that effect, once its step is over."""
        self._cues.append(_Cue(wanted, deed, "after", 1))

    def dies_after(self, wanted: Wanted, *nodes: str) -> None:
        """These nodes lose power right after that effect, before whatever else the step wanted."""
        self._cues.append(_Cue(wanted, lambda: self.crash(*nodes), "dies", 1))

    def dies_instead(self, wanted: Wanted, node: str, *, power: bool = True) -> None:
        """This node loses power (or its process ends) where it was about to do that."""
        end = self.crash if power else self.kill
        self._cues.append(_Cue(wanted, lambda: end(node), "instead", 1))

    def lose(self, wanted: Wanted, times: int = 1) -> None:
        self._cues.append(_Cue(wanted, None, "lost", times))

    def hold(self, wanted: Wanted, for_ms: float) -> None:
        """A copy of the message comes so much later, and nothing before."""
        self._cues.append(_Cue(wanted, None, "held", 1, for_ms))

    # -- what happens ------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        self._tell_acts()
        self.telling.line(text)

    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ms + 1000.0 * seconds)
        self._tell_acts()

    def fire(self, routine: str, request: str = "one", node: str = "n3") -> None:
        self.say(f"-- a person asks {node} to fire {routine}")
        self.world.fire(RoutineId(routine), request, NodeId(node))

    def crash(self, *nodes: str) -> None:
        """Power is lost; the mesh does not hear from these nodes again unless they start."""
        unflushed = [f"{node} {self.world.machines[node].disk.unflushed}" for node in nodes]
        lost = f"; records not flushed: {', '.join(unflushed)}" if self.telling.journal else ""
        self.say(f"** power is lost at {' '.join(nodes)}{lost}")
        for node in nodes:
            self.world.crash(self.world.machines[node])

    def kill(self, node: str) -> None:
        """The process ends; its machine stays up, and its journal is whole."""
        self.say(f"** the process of {node} ends")
        self.world.kill(self.world.machines[node])

    def pause(self, node: str, for_ms: float) -> None:
        self.say(f"** {node} stands still for {for_ms:.0f} ms")
        self.world.pause(self.world.machines[node], for_ms)

    def start(self, *nodes: str) -> None:
        self.say(f"** {' '.join(nodes)} start{'s' * (len(nodes) == 1)} again")
        for node in nodes:
            self.world.start(self.world.machines[node])

    def cut(self, *nodes: str) -> None:
        """These on one side, everybody else on the other."""
        self.say(f"** a partition: {' '.join(nodes)} on one side, all others on the other")
        here = {self.topology.station(node) for node in nodes}
        there = set(range(self.world.radio.routes.stations)) - here
        self._cuts += 2
        self.world.radio.cut(self._cuts, here, there)
        self.world.radio.cut(self._cuts + 1, there, here)

    def heal(self) -> None:
        self.say("** the partition heals")
        self.world.radio.heal()

    def until_epoch_ends(self, group: GroupId, before_ms: float = 0.0) -> None:
        """Pass time, untold, until the group's clock is about to cross into its next epoch."""
        epoch_ms = self.settings.epoch_ms
        at_ms = self.world.now_ms
        epoch = clock_epoch(group, at_ms, epoch_ms)
        while clock_epoch(group, at_ms + before_ms, epoch_ms) == epoch:
            at_ms += 10.0
        self.world.run_until(at_ms)
        self.telling.lines.clear()
        self.telling.begin()

    # -- the end -----------------------------------------------------------------------------------------

    def cast(self) -> list[str]:
        rows = []
        for cluster in self.program.plan.clusters[::-1]:
            seats = " ".join(self.program.plan.genesis[cluster.group])
            rows.append((str(cluster.group), f"{seats}; looks after {', '.join(cluster.devices)}"))
        for routine in self.program.routines.values():
            steps = ", ".join(f"{one.device} {one.action}" for one in routine.steps)
            rows.append((str(routine.id), f"{routine.strategy}: {steps}; anchored in kitchen"))
        for domain, nodes in sorted(self.topology.power_domains.items()):
            rows.append((domain, f"power domain of {' '.join(nodes)}"))
        told = [f"hop {HOP_MS:.0f} ms", f"lease {self.settings.lease_ms} ms", f"batch {self.settings.batch}"]
        told.append("strict" if self.settings.strict else "batched")
        rows.append(("settings", ", ".join(told)))
        return [f"{name:<9} {text}" for name, text in rows]

    def finish(self) -> list[str]:
        """What came of it; every violation of a promise is among it."""
        self._tell_acts()
        self.telling.end_line()
        progress = self.checks.progress(PROGRESS_MS)
        progress.judge(self.world.now_ms)
        self.checks.finish()
        told = [f"run {run}" for run in self.telling.ended]
        told += [
            f"run {self.telling.runs(live.run)} is not over"
            for of_group in self.checks.runs.live.values()
            for live in of_group.values()
            if live.stage is not None
        ]
        for device in sorted(self.topology.devices):
            acts = sum(act.device == device and act.refused is None for act in self.world.devices.log)
            if acts:
                on = self.world.devices[device].readings()["on"]
                told.append(f"{device} acted {acts} time{'s' * (acts > 1)}, and is {'on' if on else 'off'}")
        told += [
            f"{loss.group} reports a lossy election: {loss.entries} committed entries are gone"
            + "".join(f", with {self.telling.runs(run)}" for run in loss.runs)
            for loss in self.checks.losses
        ]
        told += [f"BROKEN {violation.promise}: {violation.what}" for violation in self.checks.violations]
        if not self.checks.violations:
            told.append("promises hold")
        return told
