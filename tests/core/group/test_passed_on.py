"""Tests of lock requests that one group passes on to the next: the answer, and the number of hops."""

from types import SimpleNamespace
from typing import Any

import pytest

from comesh.core.events import MessageReceived
from comesh.core.group.router import Router
from comesh.core.ids import DeviceId, GroupId, Incarnation, NodeId, RoutineId
from comesh.core.membership.announcements import Board
from comesh.core.program import Program, ProtocolSettings
from comesh.core.stamps import OPENING, Ballot, Fence, RunId, Stamp
from comesh.core.step import Step
from comesh.core.strategies import Batch, Strategy
from comesh.core.traces import Executing
from comesh.core.work_messages import GroupMessage, Home, LockRequest
from comesh.experiments.measures.mesh import FOR_EVER_MS, HOP_MS, Mesh, by_hand, switches
from comesh.experiments.measures.presets import setup
from comesh.sim.topology import Shape, make_topology

R = RoutineId("r")
HALL, CELLAR, ROOF = GroupId("hall"), GroupId("cellar"), GroupId("roof")
LATER = Fence(4, Ballot(1, 1))


def test_a_passed_on_request_names_the_group_to_answer() -> None:
    """The leader of the run's group may be too new for others to know it."""
    around: Any = SimpleNamespace(
        own=NodeId("n3"),
        serving=lambda group: None,
        membership=SimpleNamespace(incarnation=Incarnation(1, 0, 0), beliefs=SimpleNamespace(board=Board())),
        versions=SimpleNamespace(newest=SimpleNamespace(settings=ProtocolSettings())),
    )
    router = Router(around)
    run = RunId(R, 1, Stamp(4, LATER.ballot, 1))
    request = LockRequest(
        run, 1, (DeviceId("lamp"),), 0.0, Strategy.SEQUENTIAL, LATER, Home(ROOF, NodeId("n9"))
    )
    message = GroupMessage(HALL, CELLAR, Fence(1, OPENING), 1, request)
    life = Incarnation(1, 0, 0)
    event = MessageReceived(sender=NodeId("n2"), incarnation=life, deployment=1, message=message)
    router.on_message(event, message, Step(0.0, 0.0))
    assert router.finder.leader(ROOF) == (LATER, "n9")
    assert router.finder.leader(CELLAR) == (Fence(1, OPENING), "n2")


@pytest.mark.parametrize("batch", Batch)
def test_a_run_waits_for_one_round_of_the_groups(batch: Batch) -> None:
    topology = make_topology(Shape.GRID, devices=100, seed=4)
    made = setup("default", seed=4, locks={"batch": str(batch)}, epoch=f"{FOR_EVER_MS // 1000}s")

    def program(devices: list[DeviceId]) -> Program:
        return by_hand(topology, made.selection, made.protocol, {R: devices}, Strategy.SEQUENTIAL)

    groups = program([DeviceId(sorted(topology.devices)[0])]).group_of_device
    one_of_each = {group: device for device, group in sorted(groups.items(), reverse=True)}
    touched = program([one_of_each[group] for group in sorted(one_of_each)[:3]])
    home = touched.group_of_routine[R]
    one, other = (group for group in sorted(one_of_each)[:3] if group != home)
    assert not one < home < other, "its own locks would be asked for in between"
    mesh = Mesh(topology, touched, switches(topology), seed=4)
    mesh.run(5)
    mesh.sent.clear()
    began_ms = mesh.now_ms
    mesh.fire(R)
    mesh.run(3)
    asking = [sent.by for sent in mesh.sent if isinstance(sent.work, LockRequest)]
    first, second, own = mesh.leader(one), mesh.leader(other), mesh.leader(home)
    if batch is Batch.NONE:
        assert asking == [own, own]
        return
    assert asking == [own, first]
    commits = mesh.commit_hops(one) + mesh.commit_hops(other) + 2 * mesh.commit_hops(home)
    ways = mesh.hops(own, first) + mesh.hops(first, second) + mesh.hops(second, own)
    executing = next(trace for trace in mesh.traces if isinstance(trace.trace, Executing))
    assert executing.at_ms - began_ms == pytest.approx((ways + commits) * HOP_MS)
