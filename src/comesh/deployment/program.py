"""Compiles a document to what nodes run: clauses, schedules as functions, durations added up.

Rules:
- the text of a document, its version and the program before give the same program on every node;
- a device answers within its declared types or not at all: whole numbers become floats where floats are due,
  and what is of another type or not finite is left out. What is out of its declared range stays: a sensor
  that shows too much shows something;
- a routine is born in the version that first had its id, and keeps that birth as long as each version has it
  and the same group looks after it (runs of two groups could not be put in order); so does a group.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from comesh.core.actions import Action, RoutineStep
from comesh.core.ids import DeviceId, RoutineId
from comesh.core.plan import Plan
from comesh.core.program import (
    DeviceProgram,
    Fit,
    Instants,
    Program,
    ProtocolSettings,
    RoutineProgram,
)
from comesh.core.strategies import strategy_named
from comesh.core.values import Value
from comesh.deployment.clauses.vocabulary import Readings
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Command, Deployment, Device, Routine, Step
from comesh.deployment.moments import moment_of
from comesh.deployment.planning import plan_of, readings_of, trigger_clause
from comesh.deployment.problems import did_you_mean
from comesh.deployment.schedules import Schedule, next_instant, schedule_of
from comesh.deployment.settings import Durability, Location, Settings, Timeouts
from comesh.deployment.values import ValueType

SELF_FENCED_FLIGHT_MS = 3000.0
"""Maximum time in the air of a command to a device that is virtual or part of a node: such devices refuse
commands with an old grant, so this only bounds how long its next command waits."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def load_program(text: str, version: int = 1, previous: Program | None = None) -> Program:
    """The program of a document's text. Raises ValueError that says everything wrong with it."""
    outcome = load_bytes(text.encode("utf-8", "surrogatepass"))
    if outcome.deployment is None:
        raise ValueError("\n".join(map(str, outcome.errors)))
    return program_of(outcome.deployment, version, previous, text=text)


def program_of(
    deployment: Deployment, version: int = 1, previous: Program | None = None, *, text: str = ""
) -> Program:
    """The program of a checked deployment. What the previous one had keeps its cluster and its birth."""
    settings = deployment.settings
    zone = ZoneInfo(settings.time_zone)
    readings = readings_of(deployment)
    first_versions = {} if previous is None else previous.first_versions
    plan = plan_of(deployment, version, None if previous is None else previous.plan)
    births = {} if previous is None else _births(plan, previous)
    if previous is not None:
        _check_change(deployment, plan, previous)
    routines = {
        name: _routine(deployment, name, readings, zone, births.get(name, version))
        for name in sorted(deployment.routines)
    }
    return Program(
        plan=plan,
        devices={
            name: _device(name, device, settings.command_timeout_ms)
            for name, device in sorted(deployment.devices.items())
        },
        routines=routines,
        settings=protocol_settings(settings),
        moment=moment_of(zone, settings.location),
        text=text,
        first_versions={group: first_versions.get(group, version) for group in plan.genesis},
        previous=previous,
    )


def _check_change(deployment: Deployment, plan: Plan, previous: Program) -> None:
    """ValueError for what cannot change while runs of the version before may hold locks."""
    for cluster in plan.clusters:
        for device in cluster.devices:
            home = previous.homes.get(device)
            if home is not None and home != cluster.group:
                raise ValueError(
                    f"devices.{device}: a device of this id was looked after by {home}, which may still hold "
                    f"its lock; here it would be in {cluster.group}: give it another id"
                )
    if deployment.settings.locks.order is not previous.settings.order:
        raise ValueError(
            "settings.locks.order cannot change in a running deployment: runs that wait in one order and "
            "runs that wait in another could wait for each other for ever"
        )


def _births(plan: Plan, previous: Program) -> dict[RoutineId, int]:
    groups = {routine: cluster.group for cluster in plan.clusters for routine in cluster.routines}
    return {
        name: routine.birth
        for name, routine in previous.routines.items()
        if groups.get(name) == previous.group_of_routine.get(name)
    }


def protocol_settings(settings: Settings) -> ProtocolSettings:
    return ProtocolSettings(
        lease_ms=settings.lease_ms,
        epoch_ms=settings.epoch_ms,
        monitoring_ms=float(settings.monitoring_ms),
        strict=settings.durability is Durability.STRICT,
        batch=settings.locks.batch,
        order=settings.locks.order,
        estimated_timeouts=settings.timeouts is Timeouts.ESTIMATED,
        flight_limit_ms=float(settings.flight_limit_ms),
    )


def _device(name: DeviceId, device: Device, command_timeout_ms: int) -> DeviceProgram:
    longest_ms = max((command.takes_ms for command in device.commands.values()), default=None)
    fences_itself = device.driver.type == "virtual" or device.on is not None
    return DeviceProgram(
        id=name,
        event=device.event,
        flight_ms=SELF_FENCED_FLIGHT_MS if fences_itself else None,
        fit=_fit(device.readings),
        fences=device.driver.type == "virtual",
        by_hand_ms=0.0 if longest_ms is None else float(longest_ms + command_timeout_ms),
    )


def _fit(readings: Mapping[str, ValueType]) -> Fit:
    types = {name: _without_range(type_) for name, type_ in readings.items()}

    def fit(answer: Mapping[str, Value]) -> dict[str, Value]:
        fitted = {name: type_.fit(answer.get(name)) for name, type_ in types.items()}
        return {name: value for name, value in fitted.items() if value is not None}

    return fit


def _without_range(type_: ValueType) -> ValueType:
    return type_.model_copy(update={"range": None})


def _routine(
    deployment: Deployment, name: RoutineId, readings: Readings, zone: ZoneInfo, birth: int
) -> RoutineProgram:
    routine = deployment.routines[name]
    settings = deployment.settings
    clause = trigger_clause(routine, readings)
    return RoutineProgram(
        id=name,
        birth=birth,
        when=clause if routine.when is not None else None,
        for_ms=float(routine.for_ms or 0),
        on_event=clause if routine.on_event is not None else None,
        schedule=_instants(routine, zone, settings.location),
        cooldown_ms=float(routine.cooldown_ms),
        strategy=strategy_named(routine.strategy or settings.locks.strategy),
        steps=tuple(
            _step(step, deployment.devices[DeviceId(step.device)], settings.command_timeout_ms)
            for step in routine.do
        ),
    )


def step_by_hand(
    deployment: Deployment, device: DeviceId, command: str, argument: Value | None
) -> RoutineStep:
    """Returns the step of a command that a person gives. ValueError: the document has none such, or the
    argument does not fit."""
    known = deployment.devices[device]
    if command not in known.commands:
        hint = did_you_mean(command, known.commands)
        able = hint or f"its commands are {', '.join(sorted(known.commands))}"
        if not known.commands:
            able = "it is a sensor"
        raise ValueError(f"{device} has no command {command}; {able}")
    takes = known.commands[command].argument
    if takes is None and argument is not None:
        raise ValueError(f"{device} {command} takes no argument")
    if takes is not None and argument is None:
        raise ValueError(f"{device} {command} needs an argument: {takes.describe()}")
    if takes is not None and takes.fit(argument) is None:
        raise ValueError(f"{device} {command} takes {takes.describe()}, not {argument!r}")
    step = Step(device=device, command=command, argument=argument)
    return _step(step, known, deployment.settings.command_timeout_ms)


def _step(step: Step, device: Device, command_timeout_ms: int) -> RoutineStep:
    command = device.commands[step.command]
    argument = None if command.argument is None else command.argument.fit(step.argument)
    # The document's timeout of a step covers what the step takes; that of the settings comes on top.
    timeout_ms = step.timeout_ms
    if timeout_ms is None:
        timeout_ms = step.lasts_ms(command) + command_timeout_ms
    action = Action(
        command=step.command,
        argument=argument,
        timeout_ms=float(timeout_ms),
        idempotent=command.idempotent,
        expects=_expects(command, argument, device.readings),
    )
    return RoutineStep(DeviceId(step.device), action, step.best_effort, step.together)


def _expects(
    command: Command, argument: Value | None, readings: Mapping[str, ValueType]
) -> dict[str, Value] | None:
    """Returns the readings that show that a command is done, as the device's answers will have them."""
    match command.sets:
        case str() as reading if argument is not None:
            shown: dict[str, Value] = {reading: argument}
        case dict() as values:
            shown = values
        case _:
            return None
    return _fit(readings)(shown)


def _instants(routine: Routine, zone: ZoneInfo, location: Location | None) -> Instants | None:
    schedule = schedule_of(routine)
    return None if schedule is None else _wall_instants(schedule, zone, location)


def _wall_instants(schedule: Schedule, zone: ZoneInfo, location: Location | None) -> Instants:
    def next_ms(wall_ms: float) -> float | None:
        try:
            instant = next_instant(schedule, _EPOCH + timedelta(milliseconds=wall_ms), zone, location)
        except OverflowError:
            return None  # beyond the calendar
        # Whole milliseconds, never before the instant: asked again with the answer, the next one is another.
        return None if instant is None else float(math.ceil((instant - _EPOCH) / _MS))

    return next_ms
