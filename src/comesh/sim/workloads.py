"""Workloads for simulations without a document: routines drawn from a seed, on the devices of a topology.

- `paper_workload`: what the paper's simulations run (section 5): routines that touch five devices on average,
  drawn uniformly, each fired by one device's signal;
- `contention_workload`: many routines that want the same few devices, for ever.

Every device is a switch: `on`, set by `set` (which can be read back and repeated) and turned over by `toggle`
(which cannot). What fires routines are readings of their own, that no command changes. Each routine draws
from a stream of its own, so that with one more of them the others stay what they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from comesh.core.actions import Action, RoutineStep
from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.plan import PlannedRoutine, SelectionSettings
from comesh.core.program import DeviceProgram, Fit, Program, ProtocolSettings, RoutineProgram
from comesh.core.selection.planning import make_plan
from comesh.core.strategies import Strategy, StrategyName
from comesh.core.streams import stream
from comesh.core.values import Value
from comesh.drivers.virtual.devices import CommandSpec, DeviceSpec
from comesh.drivers.virtual.sources import Constant, Script, Source, SquareWave
from comesh.sim.predicates import Comparison
from comesh.sim.topology import Topology

QUICK_MS: Final = 20.0
"""Duration of `set` and `toggle`."""
COMMAND_TIMEOUT_MS: Final = 5000.0
"""Timeout of a command beyond its duration."""
FLIGHT_MS: Final = 3000.0
"""Maximum time that a command to a virtual device may stay in the air."""

MIN_COMMANDS, MAX_COMMANDS = 3, 5
"""Number of commands of a routine in the paper's simulations: with its trigger it touches five devices on
average."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    program: Program
    devices: dict[DeviceId, DeviceSpec]
    fires_ms: tuple[tuple[float, RoutineId], ...] = ()
    """When each routine's clause becomes true, in order of time, if that is known beforehand."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When the routines of the paper's workload fire: once in each window, in its first half."""

    first_ms: float = 10_000.0
    """Start of the first window; groups come up before it."""
    window_ms: float = 20_000.0
    """Length of a window. alone: each firing has its own window, which has to be longer than a run."""
    firings: int = 1
    """Number of firings of each routine."""


class _Drawn:
    """Collects drawn routines and the sources that fire them."""

    def __init__(self, topology: Topology) -> None:
        if len(topology.devices) < 2:
            raise ValueError("a workload needs at least two devices: one that fires, one that acts")
        self.names = tuple(sorted(topology.devices))
        self.routines: dict[RoutineId, RoutineProgram] = {}
        self.sources: dict[DeviceId, dict[str, Source]] = {name: {} for name in self.names}
        self._topology = topology

    def workload(
        self,
        selection: SelectionSettings,
        settings: ProtocolSettings,
        fires_ms: Sequence[tuple[float, RoutineId]] = (),
    ) -> Workload:
        planned = [
            PlannedRoutine(id=name, touches=_touches(routine)) for name, routine in self.routines.items()
        ]
        topology = self._topology
        nodes, devices = topology.planned_nodes(), topology.planned_devices()
        specs = {name: _switch(self.sources[name]) for name in self.names}
        program = Program(
            plan=make_plan(1, selection, nodes, devices, planned),
            devices={name: _device(name, spec) for name, spec in specs.items()},
            routines=self.routines,
            settings=settings,
        )
        return Workload(program=program, devices=specs, fires_ms=tuple(sorted(fires_ms)))


def paper_workload(
    topology: Topology,
    selection: SelectionSettings,
    settings: ProtocolSettings,
    *,
    routines: int,
    seed: int,
    strategies: Sequence[StrategyName] = (Strategy.SEQUENTIAL,),
    alone: bool = True,
    timing: Timing | None = None,
    toggles: float = 0.0,
    among: Sequence[DeviceId] | None = None,
) -> Workload:
    """Draw routines as in the paper's simulations, taking turns in their strategies. alone: never two at
    once. among: they touch only these devices; left out: any."""
    timing = timing or Timing()
    if timing.window_ms < 4 * settings.monitoring_ms:
        raise ValueError(
            f"a window of {timing.window_ms:g} ms is too short to see a signal in: 4 monitorings"
        )
    drawn = _Drawn(topology)
    touchable = drawn.names if among is None else tuple(among)
    windows = _windows(routines, timing.firings, seed, alone=alone)
    fires_ms: list[tuple[float, RoutineId]] = []
    for number in range(routines):
        name = routine_name(number)
        draws = stream(seed, f"paper routine {number}")
        wanted = MIN_COMMANDS + draws.below(MAX_COMMANDS - MIN_COMMANDS + 1)
        trigger, *commanded = draws.sample(touchable, 1 + wanted)
        begins_ms = [
            timing.first_ms + timing.window_ms * (window + draws.between(0.0, 0.5))
            for window in windows[number]
        ]
        fires_ms += [(at_ms, name) for at_ms in begins_ms]
        drawn.sources[trigger][signal_of(name)] = _pulses(begins_ms, timing.window_ms / 4)
        drawn.routines[name] = RoutineProgram(
            id=name,
            when=Comparison((trigger, signal_of(name)), "==", True),
            strategy=strategies[number % len(strategies)],
            steps=tuple(_step(device, draws, toggles=toggles) for device in commanded),
        )
    return drawn.workload(selection, settings, fires_ms)


def contention_workload(
    topology: Topology,
    selection: SelectionSettings,
    settings: ProtocolSettings,
    *,
    seed: int,
    routines: int = 20,
    contended: int = 4,
    strategies: Sequence[StrategyName] = tuple(Strategy),
    period_ms: float = 4000.0,
    toggles: float = 0.25,
) -> Workload:
    """Draw routines that each want two or more of a few devices, and fire about every period_ms, for ever."""
    drawn = _Drawn(topology)
    few = stream(seed, "contended devices").sample(drawn.names, contended)
    if len(few) < 2:
        raise ValueError("routines contend for at least two devices")
    for number in range(routines):
        name = routine_name(number)
        draws = stream(seed, f"contending routine {number}")
        wanted = draws.sample(few, 2 + draws.below(len(few) - 1))
        trigger = draws.choice(drawn.names)
        wave = SquareWave(period_ms=period_ms * draws.between(0.75, 1.25))
        drawn.sources[trigger][signal_of(name)] = wave
        drawn.routines[name] = RoutineProgram(
            id=name,
            when=Comparison((trigger, signal_of(name)), "==", True),
            strategy=strategies[number % len(strategies)],
            steps=tuple(_step(device, draws, toggles=toggles) for device in wanted),
        )
    return drawn.workload(selection, settings)


def routine_name(number: int) -> RoutineId:
    return RoutineId(f"r{number:03}")


def signal_of(routine: RoutineId) -> str:
    """Returns the reading of the trigger device that fires a routine."""
    return f"signal_{routine}"


# -- devices -----------------------------------------------------------------------------------------------


def _switch(sources: Mapping[str, Source]) -> DeviceSpec:
    return DeviceSpec(
        sources={"on": Constant(False), **sources},
        commands={
            "set": CommandSpec(sets="on", takes_ms=QUICK_MS),
            "toggle": CommandSpec(toggles="on", takes_ms=QUICK_MS),
        },
        fences=True,
    )


def _device(name: DeviceId, spec: DeviceSpec) -> DeviceProgram:
    return DeviceProgram(id=name, flight_ms=FLIGHT_MS, fit=_fit(spec.sources))


def _fit(readings: Iterable[str]) -> Fit:
    """Returns a function that keeps these readings of an answer if they are true or false."""

    def fit(answer: Mapping[str, Value]) -> dict[str, Value]:
        return {name: answer[name] for name in readings if type(answer.get(name)) is bool}

    return fit


def _step(device: DeviceId, draws: Draws, *, toggles: float) -> RoutineStep:
    """Returns a command to a device: `toggle` with this probability, otherwise `set`."""
    argument = None if draws.chance(toggles) else draws.chance(0.5)
    action = Action(
        command="toggle" if argument is None else "set",
        argument=argument,
        timeout_ms=QUICK_MS + COMMAND_TIMEOUT_MS,
        idempotent=argument is not None,
        expects=None if argument is None else {"on": argument},
    )
    return RoutineStep(device, action)


def _touches(routine: RoutineProgram) -> tuple[DeviceId, ...]:
    read = set() if routine.when is None else {DeviceId(device) for device, _ in routine.when.reads}
    return tuple(sorted(read | routine.commands))


# -- the paper's simulations -------------------------------------------------------------------------------


def _windows(routines: int, firings: int, seed: int, *, alone: bool) -> list[list[int]]:
    """Returns, by routine, the windows in which it fires: one per round; alone, each in a different one."""
    if not alone:
        return [list(range(firings)) for _ in range(routines)]
    windows: list[list[int]] = [[] for _ in range(routines)]
    order = list(range(routines))
    draws = stream(seed, "paper windows")
    for firing in range(firings):
        draws.shuffle(order)
        for turn, number in enumerate(order):
            windows[number].append(firing * routines + turn)
    return windows


def _pulses(begins_ms: Sequence[float], lasts_ms: float) -> Script:
    """Returns a source that is true for a while from each of these times on."""
    points: list[tuple[float, Value]] = [(0.0, False)]
    for at_ms in begins_ms:
        points += [(at_ms, True), (at_ms + lasts_ms, False)]
    return Script(tuple(points))
