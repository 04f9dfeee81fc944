"""Converts the document to the types that selection works with, and makes the plan of them."""

from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.plan import (
    Lsh,
    Plan,
    PlannedDevice,
    PlannedNode,
    PlannedRoutine,
    SelectionSettings,
)
from comesh.core.selection.planning import make_plan
from comesh.deployment.clauses.compiler import Clause, compile_clause, compile_event_clause
from comesh.deployment.clauses.vocabulary import Readings, vocabulary
from comesh.deployment.model import Deployment, Routine
from comesh.deployment.settings import Settings


def plan_of(deployment: Deployment, version: int = 1, previous: Plan | None = None) -> Plan:
    """The plan of a deployment. Given the previous plan, what exists keeps its cluster."""
    return make_plan(
        version,
        selection_settings(deployment.settings),
        planned_nodes(deployment),
        planned_devices(deployment),
        planned_routines(deployment),
        previous=previous,
    )


def selection_settings(settings: Settings) -> SelectionSettings:
    selection = settings.selection
    return SelectionSettings(
        f=settings.f,
        seed=settings.seed,
        cluster_size=selection.cluster_size,
        clusters=selection.clusters,
        members=selection.members,
        leaders=selection.leaders,
        power_domain_rule=selection.power_domain_rule,
        lsh=Lsh(
            m=selection.lsh.m,
            l=selection.lsh.l,
            r_milli=round(selection.lsh.r * 1000),
            jitter_milli=round(selection.lsh.jitter * 1000),
        ),
    )


def planned_nodes(deployment: Deployment) -> list[PlannedNode]:
    return [
        PlannedNode(id=NodeId(name), place=node.place, power_domain=node.power_domain)
        for name, node in sorted(deployment.nodes.items())
    ]


def planned_devices(deployment: Deployment) -> list[PlannedDevice]:
    return [
        PlannedDevice(id=DeviceId(name), place=deployment.place_of(name))
        for name in sorted(deployment.devices)
    ]


def planned_routines(deployment: Deployment) -> list[PlannedRoutine]:
    readings = readings_of(deployment)
    planned = []
    for name, routine in sorted(deployment.routines.items()):
        touched = {step.device for step in routine.do}
        clause = trigger_clause(routine, readings)
        if clause is not None:
            touched |= clause.devices
        planned.append(PlannedRoutine(id=RoutineId(name), touches=tuple(map(DeviceId, sorted(touched)))))
    return planned


def readings_of(deployment: Deployment) -> Readings:
    """Returns all readings that the clauses of a deployment can name."""
    devices = {str(name): dict(device.readings) for name, device in deployment.devices.items()}
    return vocabulary(devices, sun=deployment.settings.location is not None)


def trigger_clause(routine: Routine, readings: Readings) -> Clause | None:
    """The compiled `when` or `on_event` of a routine; None for a schedule or a routine fired by hand."""
    if routine.when is not None:
        return compile_clause(routine.when, readings)
    if routine.on_event is not None:
        return compile_event_clause(routine.on_event, readings)
    return None
