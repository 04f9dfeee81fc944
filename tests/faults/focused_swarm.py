"""Small swarms with an adversary: three or four nodes, much contention, and faults at the worst moments.

The swarm draws faults at random times, and so meets rarely what takes several of them within milliseconds:
power that fails right after a promise is written, a leader that stands still between an intent and its
commit. Here a `Hunter` watches what is written and who leads, and strikes then, by chance; all else is drawn
as there. Everything is a function of the seed. No disk is ever wiped: no operator is needed, and none comes.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from comesh.core.effects import LeaderChanged, Observation
from comesh.core.group.config import Config
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended, JournalRecord, Promised
from comesh.core.membership import MembershipSettings
from comesh.core.plan import Locality, SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.records import DeviceRecord
from comesh.core.stamps import Ballot
from comesh.core.streams import stream
from comesh.sim.engine import Priority
from comesh.sim.fault_schedules import RandomFaults, random_schedule
from comesh.sim.machine import Machine
from comesh.sim.radio import RadioSettings
from comesh.sim.swarm import Swarm
from comesh.sim.swarm_case import BREAKING_MS, FLIGHT_MS, QUIET_MS, Asking, Case, Drawn, first_program
from comesh.sim.topology import Shape, make_topology
from comesh.sim.world_settings import WorldSettings

LAST_STRIKE_MS: Final = BREAKING_MS - 12_000.0
"""Strikes are over when the quiet phase begins."""
FIRST_CUT: Final = 1_000_000
"""Cuts of the radio are numbered; schedules count from one."""


class Strike(StrEnum):
    """What happens, and on which occasion."""

    DARK = "whoever promised another loses power, and who claimed stands still"
    DARK_AND_STILL = "whoever wrote an entry loses power, and another stands still"
    GROUP_DARK = "a device is granted, and all members of its group lose power"
    STILL = "a leader stands still while it waits for the commit of a command"
    CUT = "a new leader is cut off"
    FEUD = "a new leader and another member do not hear each other"


class Hunt(msgspec.Struct, frozen=True):
    """When to strike. chance: of each occasion; within_ms: after it; for_ms: how long, at least and most."""

    strike: Strike
    chance: float
    within_ms: float
    for_ms: tuple[float, float] = (200.0, 10_000.0)


class Focus(msgspec.Struct, frozen=True, kw_only=True):
    """What a focused swarm is after."""

    name: str
    hunts: tuple[Hunt, ...] = ()
    per_minute: dict[str, float] = {}
    radio: RadioSettings = RadioSettings()
    nodes: tuple[int, ...] = (3, 4)
    cluster_sizes: tuple[int, ...] = (1, 2, 25)
    epochs_ms: tuple[int, ...] = (60_000,)
    strict: tuple[bool, ...] = (False, True)
    replace_after_ms: float = 2000.0
    askings: int = 0
    """Firings by hand."""


class Hunter:
    """Watches a world and strikes."""

    def __init__(self, swarm: Swarm, focus: Focus) -> None:
        self._world = swarm.world
        self._focus = focus
        self._draws = stream(swarm.case.seed, f"hunter {focus.name}")
        self._leaders: dict[int, tuple[NodeId, Config]] = {}
        """By the mark of their config."""
        self._rests_until_ms: dict[Hunt, float] = {}
        self._cuts = FIRST_CUT
        self.strikes = 0
        self._world.observers.append(self._on_observation)
        self._world.writers.append(self._on_written)

    def _on_observation(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        if isinstance(observation, LeaderChanged) and observation.state == "serving":
            self._leaders[observation.config.mark] = (node, observation.config)
            self._consider(now_ms, node, observation.config.nodes, (Strike.CUT, Strike.FEUD))

    def _on_written(self, now_ms: float, node: NodeId, record: JournalRecord) -> None:
        match record:
            case Promised():
                _, config = self._leaders.get(record.mark, (None, None))
                if config is not None and config.rank_of(node) != record.ballot.rank:
                    self._consider(now_ms, node, (config.nodes[record.ballot.rank],), (Strike.DARK,))
            case Appended():
                strikes = [Strike.DARK_AND_STILL]
                leader, config = self._leaders.get(record.mark, (None, None))
                if leader == node and any(map(_is_intent, record.entry)):
                    strikes.append(Strike.STILL)
                if leader == node and any(map(_is_grant, record.entry)):
                    strikes.append(Strike.GROUP_DARK)
                self._consider(now_ms, node, () if config is None else config.nodes, tuple(strikes))
            case _:
                pass

    def _consider(
        self, now_ms: float, node: NodeId, members: tuple[NodeId, ...], strikes: tuple[Strike, ...]
    ) -> None:
        for hunt in self._focus.hunts:
            if hunt.strike not in strikes or not self._draws.chance(hunt.chance):
                continue
            if self._rests_until_ms.get(hunt, 0.0) <= now_ms <= LAST_STRIKE_MS:
                rest_ms = self._draws.between(200.0, 5000.0)
                self._rests_until_ms[hunt] = now_ms + hunt.within_ms + rest_ms
                at_ms = now_ms + self._draws.between(0.0, hunt.within_ms)
                self._world.engine.at(at_ms, Priority.FAULT, self._strike, hunt, node, members)

    def _strike(self, hunt: Hunt, node: NodeId, members: tuple[NodeId, ...]) -> None:
        self.strikes += 1
        world, machine = self._world, self._world.machines[node]
        for_ms = self._draws.between(*hunt.for_ms)
        others = [name for name in sorted(members or world.topology.nodes) if name != node]
        match hunt.strike:
            case Strike.DARK:
                self._dark(machine, for_ms)
                world.pause(world.machines[members[0]], self._draws.between(500.0, 4000.0))
            case Strike.DARK_AND_STILL:
                self._dark(machine, self._draws.between(50.0, 3000.0))
                if others:
                    world.pause(world.machines[self._draws.choice(others)], for_ms)
            case Strike.GROUP_DARK:
                for name in members:
                    self._dark(world.machines[name], self._draws.between(*hunt.for_ms))
            case Strike.STILL:
                world.pause(machine, for_ms)
            case Strike.CUT:
                others = [self._draws.choice(others)] if others and self._draws.chance(0.3) else []
                self._cut(machine, others, for_ms, both=self._draws.chance(0.5))
            case Strike.FEUD if others:
                self._cut(machine, [self._draws.choice(others)], for_ms, both=True)
            case Strike.FEUD:
                pass

    def _dark(self, machine: Machine, for_ms: float) -> None:
        self._world.crash(machine)
        self._world.engine.at(self._world.now_ms + for_ms, Priority.FAULT, self._world.start, machine)

    def _cut(self, machine: Machine, others: list[NodeId], for_ms: float, *, both: bool) -> None:
        """From those others, or from everything."""
        world = self._world
        here = {machine.station}
        there = {world.machines[name].station for name in others}
        there = there or set(range(world.radio.routes.stations)) - here
        cuts = [(here, there), (there, here)]
        for sources, destinations in cuts if both else [self._draws.choice(cuts)]:
            self._cuts += 1
            world.radio.cut(self._cuts, sources, destinations)
            world.engine.at(world.now_ms + for_ms, Priority.FAULT, world.radio.heal, self._cuts)


def _is_grant(record: object) -> bool:
    return isinstance(record, DeviceRecord) and record.hold is not None and not record.calls


def _is_intent(record: object) -> bool:
    return isinstance(record, DeviceRecord) and any(
        call.outcome is None and not call.landed for call in record.calls
    )


class FocusedSwarm(Swarm):
    """One seed of a focus, ready to run."""

    def __init__(self, seed: int, focus: Focus) -> None:
        super().__init__(seed, drawing=drawing(focus))
        self.hunter = Hunter(self, focus)

    def _recover_lost(self) -> None:
        """No disk is lost, so that there is nothing for an operator to do."""


def drawing(focus: Focus) -> Callable[[int], Drawn]:
    return lambda seed: _draw(seed, focus)


def _draw(seed: int, focus: Focus) -> Drawn:
    draws = stream(seed, f"focus {focus.name}")
    shape = draws.choice([Shape.GRID, Shape.LINE])
    topology = make_topology(shape, devices=draws.choice(focus.nodes), smart=1.0, seed=seed)
    strict = draws.choice(focus.strict)
    protocol = ProtocolSettings(
        lease_ms=500,
        epoch_ms=draws.choice(focus.epochs_ms),
        monitoring_ms=500.0,
        strict=strict,
        flight_limit_ms=FLIGHT_MS,
        cold_wait_ms=1000.0,
        replace_after_ms=focus.replace_after_ms,
        ready_wait_ms=1000.0,
        probe_after_ms=3000.0,
    )
    selection = SelectionSettings(
        f=1,
        seed=seed & 0xFFFF,
        cluster_size=draws.choice(focus.cluster_sizes),
        clusters=Locality.LOCALITY,
        members=Locality.RANDOM,
        leaders=Locality.RANDOM,
    )
    program, specs = first_program(seed, topology, selection, protocol)
    events = tuple(sorted(name for name, device in program.devices.items() if device.event))
    wanted = RandomFaults(run_ms=BREAKING_MS + QUIET_MS, quiet_ms=QUIET_MS, per_minute=dict(focus.per_minute))
    case = Case(
        seed=seed,
        settings=WorldSettings(
            radio=msgspec.structs.replace(focus.radio, hop_ms=draws.choice([1.0, 5.0, 20.0])),
            drift_ppm=draws.choice([0.0, 100.0, 10_000.0]),
            strict=strict,
        ),
        membership=MembershipSettings(),
        protocol=protocol,
        selection=selection,
        faults=random_schedule(topology, wanted, seed, events),
        askings=tuple(
            Asking(
                draws.between(3000.0, BREAKING_MS - 5000.0),
                draws.choice(sorted(topology.nodes)),
                draws.choice(sorted(program.routines)),
                f"fire {number}",
            )
            for number in range(focus.askings)
        ),
        event_devices=events,
    )
    return case, topology, program, specs


PROMISES: Final = Focus(
    name="promises",
    hunts=(
        Hunt(Strike.FEUD, 0.8, 500.0, (5000.0, 12_000.0)),
        Hunt(Strike.STILL, 0.5, 30.0, (500.0, 2000.0)),
        Hunt(Strike.DARK, 0.9, 20.0, (20.0, 300.0)),
    ),
    nodes=(3,),
    cluster_sizes=(2, 25),
    askings=20,
)
"""Power fails right after a promise, while a leader and who claims against it do not hear each other."""
TAILS: Final = Focus(name="tails", hunts=(Hunt(Strike.DARK_AND_STILL, 0.1, 40.0),), strict=(False,))
"""Members lose what they acknowledged and did not flush, and others cannot say it."""
CUTS: Final = Focus(
    name="cuts",
    hunts=(Hunt(Strike.CUT, 0.7, 2000.0), Hunt(Strike.DARK_AND_STILL, 0.01, 500.0)),
    per_minute={"kill": 6.0, "late": 2.0, "reorder": 2.0},
)
"""Leaders are cut off, go on alone for a while, and come back."""
STALLS: Final = Focus(
    name="stalls",
    hunts=(Hunt(Strike.STILL, 0.4, 10.0),),
    per_minute={"kill": 1.0, "device-late": 2.0},
    askings=10,
)
"""Leaders stand still between an intent and its commit."""
GRANTS: Final = Focus(
    name="grants",
    hunts=(Hunt(Strike.GROUP_DARK, 0.2, 60.0, (100.0, 1000.0)),),
    nodes=(6, 7),
    cluster_sizes=(1, 2),
    strict=(False,),
    askings=20,
)
"""A group loses power, and a grant, while whoever got it goes on."""
LATE: Final = Focus(
    name="late",
    radio=RadioSettings(duplicate=0.3, reorder=0.2, reorder_ms=2500.0),
    cluster_sizes=(1,),
    askings=30,
)
"""Messages come late and twice."""
SUCCESSORS: Final = Focus(
    name="successors",
    hunts=(Hunt(Strike.DARK_AND_STILL, 0.01, 2000.0),),
    per_minute={"crash": 6.0, "kill": 6.0, "partition": 3.0},
    epochs_ms=(6000, 8000),
)
"""Configs follow each other while nodes go."""
EVENTS: Final = Focus(
    name="events",
    per_minute={
        "press": 40.0,
        "loss": 4.0,
        "duplicate": 4.0,
        "late": 4.0,
        "kill": 4.0,
    },
    epochs_ms=(8000, 60_000),
)
"""Buttons are pressed while messages are lost and leaders change."""
FLAPS: Final = Focus(name="flaps", epochs_ms=(600_000,), replace_after_ms=600_000.0)
"""Members keep their seats, whatever becomes of them."""


class Flapping(FocusedSwarm):
    """One member, and nothing else, is cut off again and again: leaders that it does not touch must stay."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, FLAPS)
        draws = stream(seed, "flapping")
        nodes = sorted(self.topology.nodes)
        self._victim = draws.choice([node for node in nodes if self._can_miss(node)])
        self._serves: dict[tuple[GroupId, int], tuple[NodeId, Ballot]] = {}
        self.disturbed: list[str] = []
        station = self.world.machines[self._victim].station
        others = set(range(self.world.radio.routes.stations)) - {station}
        at_ms, number = 5000.0, FIRST_CUT
        while at_ms < LAST_STRIKE_MS:
            end_ms = at_ms + draws.between(500.0, 4000.0)
            for sources, destinations in (({station}, others), (others, {station})):
                number += 1
                self.world.engine.at(
                    at_ms, Priority.FAULT, self.world.radio.cut, number, sources, destinations
                )
                self.world.engine.at(end_ms, Priority.FAULT, self.world.radio.heal, number)
            at_ms = end_ms + draws.between(500.0, 4000.0)
        self.world.observers.append(self._on_leader)

    def _can_miss(self, victim: NodeId) -> bool:
        """Whether all others reach each other without it."""
        stations = {station for node, station in self.topology.nodes.items() if node != victim}
        routes = self.world.radio.routes
        reached: set[int] = set()
        fresh = {min(stations)}
        while fresh:
            reached |= fresh
            fresh = {
                to
                for to in stations - reached
                if any(len(routes.path(one, to) or ()) == 2 for one in reached)
            }
        return reached == stations

    def _on_leader(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        if not isinstance(observation, LeaderChanged) or observation.state != "serving":
            return
        config, ballot = observation.config, observation.ballot
        before = self._serves.get((config.group, config.number))
        self._serves[config.group, config.number] = (node, ballot)
        if before is not None and before[0] != self._victim:
            self.disturbed.append(
                f"at {now_ms / 1000:.3f} s {node} leads {config.group} with ballot {ballot} instead of "
                f"{before[0]} with {before[1]}, though only {self._victim} was cut off"
            )
