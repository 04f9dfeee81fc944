"""Tests that change each part of a document while routines run in virtual time, with all promises checked."""

import pytest
from msgspec.structs import replace

from comesh.core.effects import Answered, Observation, RunTraced
from comesh.core.events import ApplyAsked, FireAsked
from comesh.core.ids import NodeId, RoutineId
from comesh.core.membership import MembershipSettings
from comesh.core.node import Node
from comesh.core.traces import Failed, Fired
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.program import load_program
from comesh.drivers.virtual.document_devices import device_specs
from comesh.sim.building import Compiler
from comesh.sim.checks import Checks
from comesh.sim.radio import RadioSettings
from comesh.sim.simulation import Simulation
from comesh.sim.topology import topology_of_plan
from comesh.sim.world_settings import WorldSettings

BEFORE = """
settings:
  {f: 1, epoch: 20s, lease: 1s, hop: 2ms, command_timeout: 2s, selection: {cluster_size: 2}}
x-lamp: &lamp
  readings: {on: bool}
  commands: {set: {argument: bool, sets: on, takes: 800ms}, blink: {idempotent: false, takes: 800ms}}
nodes:
  n1: {place: [0m, 0m]}
  n2: {place: [10m, 0m]}
  n3: {place: [20m, 0m]}
  n4: {place: [30m, 0m]}
  n5: {place: [40m, 0m]}
devices:
  west1: {place: [0m, 1m], <<: *lamp}
  west2: {place: [0m, 2m], <<: *lamp}
  east1: {place: [40m, 1m], <<: *lamp}
  east2: {place: [40m, 2m], <<: *lamp}
routines:
  across: {every: 5s, do: [{device: west1, command: blink}, {device: east1, command: blink}]}
  here: {every: 3s, do: [{device: west1, command: set, argument: true}, {device: west2, command: blink}]}
  there: {every: 4s, do: [{device: east2, command: set, argument: true}]}
"""
CHANGES = {
    "a device is moved": (("west2: {place: [0m, 2m]", "west2: {place: [35m, 2m]"),),
    "a device is added": (
        (
            "routines:\n",
            "  bell: {place: [20m, 1m], <<: *lamp}\nroutines:\n"
            "  ring: {every: 2s, do: [{device: bell, command: blink}]}\n",
        ),
    ),
    "a device that runs hold is removed": (
        ("  west1: {place: [0m, 1m], <<: *lamp}\n", ""),
        ("{device: west1, command: blink}, ", ""),
        ("{device: west1, command: set, argument: true}, ", ""),
    ),
    "a device is renamed": (("west1", "door1"),),
    "a routine is added": (
        ("routines:\n", "routines:\n  more: {every: 1s, do: [{device: east2, command: blink}]}\n"),
    ),
    "a routine that runs is changed": (
        ("{device: east1, command: blink}", "{device: east2, command: blink}"),
    ),
    "a routine that runs is removed": (
        (
            "  across: {every: 5s, do: [{device: west1, command: blink}, {device: east1, command: blink}]}\n",
            "",
        ),
    ),
    "a routine moves to another cluster": (
        ("there: {every: 4s, do: [{device: east2,", "there: {every: 4s, do: [{device: west2,"),
    ),
    "a group vanishes": (
        ("  east1: {place: [40m, 1m], <<: *lamp}\n  east2: {place: [40m, 2m], <<: *lamp}\n", ""),
        (", {device: east1, command: blink}", ""),
        ("  there: {every: 4s, do: [{device: east2, command: set, argument: true}]}\n", ""),
    ),
    "groups become larger": (("f: 1", "f: 2"),),
    "groups become smaller": (("f: 1", "f: 0"),),
    "a node is removed": (("  n2: {place: [10m, 0m]}\n", ""),),
    "times change": (("epoch: 20s, lease: 1s", "epoch: 7s, lease: 500ms, monitoring: 300ms"),),
    "everything is flushed": (("f: 1", "f: 1, durability: strict"),),
    "other clusters are wanted": (("cluster_size: 2", "cluster_size: 4, clusters: random, members: random"),),
    "the strategy changes": (("hop: 2ms", "hop: 2ms, locks: {strategy: priority}"),),
}


def deployment(text: str) -> Deployment:
    outcome = load_bytes(text.encode())
    assert outcome.deployment is not None, outcome.errors
    return outcome.deployment


@pytest.mark.parametrize("change", CHANGES)
def test_a_mesh_continues_with_the_new_document(change: str) -> None:
    after = BEFORE
    for old, new in CHANGES[change]:
        assert old in after, old
        after = after.replace(old, new)
    first = load_program(BEFORE)
    second = load_program(after, 2, first)
    both = {one.id: one for one in (*second.plan.devices, *first.plan.devices)}
    simulation = Simulation(
        topology_of_plan(replace(first.plan, devices=tuple(both[name] for name in sorted(both)))),
        seed=3,
        settings=WorldSettings(radio=RadioSettings(hop_ms=2)),
        membership=MembershipSettings(),
        devices={**device_specs(deployment(BEFORE), 1), **device_specs(deployment(after), 1)},
        program=first,
        compile_text=Compiler(),
    )
    world = simulation.world
    checks = Checks.attach(world, first, second)
    told: list[Observation] = []
    world.observers.append(lambda _now_ms, _node, what: told.append(what))
    simulation.run(seconds=12)
    process = world.machines["n1"].process
    assert process is not None
    for number in range(3):
        world.give(process, FireAsked(routine=RoutineId("across"), request=f"fire {number}"))
    simulation.run(seconds=0.5)
    world.give(process, ApplyAsked(base=1, text=after, request="apply"))
    simulation.run(seconds=15)
    answers = [one for one in told if isinstance(one, Answered) and one.request == "apply"]
    assert [(one.version, one.why_not) for one in answers] == [(2, "")]
    for name in second.node_since:
        assert version_of(simulation, name) == 2
    for group in second.plan.genesis:
        assert served_by(simulation, group) == [2], group
    fired_before = len([one for one in told if isinstance(one, RunTraced) and isinstance(one.trace, Fired)])
    simulation.run(seconds=25)
    checks.finish()
    assert checks.violations == [], "\n".join(map(str, checks.violations))
    runs = [one for one in told if isinstance(one, RunTraced)]
    later = [one for one in runs if isinstance(one.trace, Fired)][fired_before:]
    assert {one.run.routine for one in later} == set(second.routines)
    left = [one for one in runs if isinstance(one.trace, Failed) and "leader changed" in one.trace.reason]
    assert left == [], "no command was under way when a group was handed off"


def node_of(simulation: Simulation, name: str) -> Node:
    process = simulation.world.machines[NodeId(name)].process
    assert process is not None
    node = process.node
    return getattr(node, "node", node)


def version_of(simulation: Simulation, name: str) -> int:
    return node_of(simulation, name).deployment


def served_by(simulation: Simulation, group: str) -> list[int]:
    """Returns the versions that the group's leaders work by; usually one."""
    found = []
    for name, machine in simulation.world.machines.items():
        if machine.process is not None:
            groups = node_of(simulation, name).groups
            serving = None if groups is None else groups.serving(group)
            if serving is not None:
                found.append(serving.config.version)
    return found
