"""Small swarms with an adversary: three or four nodes, much contention, and faults at the worst moments.

The swarm draws faults at random times, and so meets rarely what takes several of them within milliseconds:
power that fails right after a promise is written, a leader that stands still between an intent and its commit.
Here a `Hunter` watches what is written and who leads, and strikes then, by chance; all else is drawn as there.
Everything is a function of the seed. No disk is ever wiped, so that no operator is needed, nor there.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from comesh.core.effects import LeaderChanged, Observation
from comesh.core.ids import NodeId
from comesh.core.journal import Appended, JournalRecord, Promised
from comesh.core.membership import MembershipSettings
from comesh.core.plan import Locality, SelectionSettings
from comesh.core.program import ProtocolSettings
from comesh.core.records import DeviceRecord, RunRecord
from comesh.sim.engine import Priority
from comesh.sim.machine import Machine
from comesh.sim.radio import RadioSettings
from comesh.sim.random_faults import FaultClass, RandomFaults, random_schedule
from comesh.sim.streams import stream
from comesh.sim.swarm import Swarm
from comesh.sim.swarm_case import BREAKING_MS, FLIGHT_MS, QUIET_MS, Asking, Case, Drawn, first_program
from comesh.sim.topology import Shape, make_topology
from comesh.sim.world import WorldSettings

LAST_STRIKE_MS: Final = BREAKING_MS - 12_000.0
"""Strikes are over when the quiet phase begins."""
LONGEST_MS: Final = 10_000.0
FIRST_CUT: Final = 1_000_000
"""Cuts of the radio are numbered; schedules count from one."""


class Strike(StrEnum):
    DARK = "whoever wrote it loses power"
    DARK_AND_STILL = "whoever wrote it loses power, and another stands still"
    STILL = "the leader that wrote it stands still"
    CUT = "the leader is cut off"
    OUTAGE = "everything loses power"


class Hunt(msgspec.Struct, frozen=True):
    """When to strike. chance: of each occasion; within_ms: of it."""

    strike: Strike
    chance: float
    within_ms: float


class Focus(msgspec.Struct, frozen=True, kw_only=True):
    """What a focused swarm is after."""

    name: str
    hunts: tuple[Hunt, ...] = ()
    per_minute: dict[FaultClass, float] = {}
    epochs_ms: tuple[int, ...] = (60_000,)
    strict: tuple[bool, ...] = (False, True)
    askings: int = 0
    """Firings by hand."""


class Hunter:
    """Watches a world and strikes."""

    def __init__(self, swarm: Swarm, focus: Focus) -> None:
        self._world = swarm.world
        self._focus = focus
        self._draws = stream(swarm.case.seed, f"hunter {focus.name}")
        self._leaders: dict[int, NodeId] = {}
        self._rests_until_ms = 0.0
        self._cuts = FIRST_CUT
        self.strikes = 0
        self._world.observers.append(self._on_observation)
        self._world.writers.append(self._on_written)

    def _on_observation(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        if isinstance(observation, LeaderChanged) and observation.state == "serving":
            self._leaders[observation.config.mark] = node
            self._consider(now_ms, node, (Strike.CUT,))

    def _on_written(self, now_ms: float, node: NodeId, record: JournalRecord) -> None:
        match record:
            case Promised():
                self._consider(now_ms, node, (Strike.DARK,))
            case Appended():
                strikes = [Strike.DARK_AND_STILL]
                if any(isinstance(one, RunRecord | DeviceRecord) for one in record.entry):
                    strikes.append(Strike.OUTAGE)
                if self._leaders.get(record.mark) == node and any(map(_is_intent, record.entry)):
                    strikes.append(Strike.STILL)
                self._consider(now_ms, node, tuple(strikes))
            case _:
                pass

    def _consider(self, now_ms: float, node: NodeId, strikes: tuple[Strike, ...]) -> None:
        for hunt in self._focus.hunts:
            if hunt.strike not in strikes or not self._draws.chance(hunt.chance):
                continue
            if self._rests_until_ms <= now_ms <= LAST_STRIKE_MS:
                self._rests_until_ms = now_ms + hunt.within_ms + self._draws.between(200.0, 5000.0)
                at_ms = now_ms + self._draws.between(0.0, hunt.within_ms)
                self._world.engine.at(at_ms, Priority.FAULT, self._strike, hunt.strike, node)

    def _strike(self, strike: Strike, node: NodeId) -> None:
        self.strikes += 1
        world, machine = self._world, self._world.machines[node]
        for_ms = self._draws.between(200.0, LONGEST_MS)
        match strike:
            case Strike.DARK | Strike.DARK_AND_STILL:
                self._dark(machine, self._draws.between(50.0, 3000.0))
                others = [name for name in sorted(world.machines) if name != node]
                if strike is Strike.DARK_AND_STILL and others:
                    world.pause(world.machines[self._draws.choice(others)], for_ms)
            case Strike.STILL:
                world.pause(machine, for_ms)
            case Strike.OUTAGE:
                for one in world.machines.values():
                    self._dark(one, self._draws.between(500.0, 2000.0))
            case Strike.CUT:
                self._cut(machine, for_ms)

    def _dark(self, machine: Machine, for_ms: float) -> None:
        self._world.crash(machine)
        self._world.engine.at(self._world.now_ms + for_ms, Priority.FAULT, self._world.start, machine)

    def _cut(self, machine: Machine, for_ms: float) -> None:
        world = self._world
        here = {machine.station}
        there = set(range(world.radio.routes.stations)) - here
        both = self._draws.chance(0.5)
        cuts = [(here, there), (there, here)] if both else [self._draws.choice([(here, there), (there, here)])]
        for sources, destinations in cuts:
            self._cuts += 1
            world.radio.cut(self._cuts, sources, destinations)
            world.engine.at(world.now_ms + for_ms, Priority.FAULT, world.radio.heal, self._cuts)


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
    topology = make_topology(shape, devices=3 + draws.below(2), smart=1.0, seed=seed)
    strict = draws.choice(focus.strict)
    protocol = ProtocolSettings(
        lease_ms=500,
        epoch_ms=draws.choice(focus.epochs_ms),
        monitoring_ms=500.0,
        strict=strict,
        flight_limit_ms=FLIGHT_MS,
        cold_wait_ms=1000.0,
        replace_after_ms=2000.0,
        ready_wait_ms=1000.0,
        probe_after_ms=3000.0,
    )
    selection = SelectionSettings(
        f=1,
        seed=seed & 0xFFFF,
        cluster_size=draws.choice([1, 2, 25]),
        clusters=Locality.LOCALITY,
        members=Locality.RANDOM,
        leaders=Locality.RANDOM,
    )
    program, specs = first_program(seed, topology, selection, protocol)
    events = tuple(sorted(name for name, device in program.devices.items() if device.event))
    wanted = RandomFaults(
        run_ms=BREAKING_MS + QUIET_MS, quiet_ms=QUIET_MS, per_minute=dict(focus.per_minute)
    )
    case = Case(
        seed=seed,
        settings=WorldSettings(
            radio=RadioSettings(hop_ms=draws.choice([1.0, 5.0, 20.0])),
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


PROMISES: Final = Focus(name="promises", hunts=(Hunt(Strike.DARK, 0.5, 60.0), Hunt(Strike.CUT, 0.5, 2000.0)))
"""Power fails right after a promise, while leaders are cut off."""
TAILS: Final = Focus(name="tails", hunts=(Hunt(Strike.DARK_AND_STILL, 0.1, 40.0),), strict=(False,))
"""Members lose what they acknowledged and did not flush, and others cannot say it."""
CUTS: Final = Focus(
    name="cuts",
    hunts=(Hunt(Strike.CUT, 0.7, 2000.0), Hunt(Strike.DARK_AND_STILL, 0.01, 500.0)),
    per_minute={FaultClass.KILL: 6.0, FaultClass.LATE: 2.0, FaultClass.REORDER: 2.0},
)
"""Leaders are cut off, go on alone for a while, and come back."""
STALLS: Final = Focus(
    name="stalls",
    hunts=(Hunt(Strike.STILL, 0.4, 10.0),),
    per_minute={FaultClass.KILL: 1.0, FaultClass.DEVICE_LATE: 2.0},
    askings=10,
)
"""Leaders stand still between an intent and its commit."""
OUTAGES: Final = Focus(
    name="outages",
    hunts=(Hunt(Strike.OUTAGE, 0.05, 40.0),),
    strict=(False,),
    per_minute={FaultClass.LATE: 2.0},
    askings=10,
)
"""Everything loses power while locks change hands."""
LATE: Final = Focus(
    name="late",
    per_minute={FaultClass.REORDER: 8.0, FaultClass.LATE: 8.0, FaultClass.DUPLICATE: 8.0, FaultClass.KILL: 3.0},
    epochs_ms=(8000, 60_000),
    askings=20,
)
"""Messages come late and twice."""
SUCCESSORS: Final = Focus(
    name="successors",
    hunts=(Hunt(Strike.DARK_AND_STILL, 0.01, 2000.0),),
    per_minute={FaultClass.CRASH: 6.0, FaultClass.KILL: 6.0, FaultClass.PARTITION: 3.0},
    epochs_ms=(6000, 8000),
)
"""Configs follow each other while nodes go."""
EVENTS: Final = Focus(
    name="events",
    per_minute={
        FaultClass.PRESS: 40.0,
        FaultClass.LOSS: 4.0,
        FaultClass.DUPLICATE: 4.0,
        FaultClass.LATE: 4.0,
        FaultClass.KILL: 4.0,
    },
    epochs_ms=(8000, 60_000),
)
"""Buttons are pressed while messages are lost and leaders change."""
