"""What people order of a mesh: pause, maintenance, commands by hand, broken locks, and who is told of it.

Whole meshes in the simulator, with all checkers on: `orders are kept` is one of them.
"""

from typing import Any, TypeVar

import pytest
from staging import HALL, HOP_MS, KITCHEN, NODES, commands, lights
from staging import Stage as Mesh

from comesh.core.actions import Action, Origin
from comesh.core.effects import Answered, Observation, RunTraced
from comesh.core.group.finder import Sent
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.messages import Announcement
from comesh.core.node import Node
from comesh.core.orders.audit import SLOTS
from comesh.core.orders.part import PAUSED
from comesh.core.orders.standing import by_hand
from comesh.core.records import AuditRecord, DeviceRecord, Kind, Record, RunRecord, Stage, Standing
from comesh.core.stamps import RunId
from comesh.core.step import Step
from comesh.core.traces import CommandSent, Dropped, Failed, Finished, Fired, Ignored, LockQueued, Trace
from comesh.core.work_messages import (
    BreakLock,
    Command,
    GroupMessage,
    Maintain,
    Pause,
    Remember,
    Restore,
    Resume,
    SetDevice,
    Wish,
)

EVENING = RoutineId("evening")
EVERYTHING = "all routines of kitchen are paused: resume all (comesh resume --all)"
LAMP, KETTLE, DOOR = DeviceId("lamp"), DeviceId("kettle"), DeviceId("door")

T = TypeVar("T")


class Orders:
    """A stage that is ordered about, and what was heard."""

    def __init__(self, *routines: Any, **more: Any) -> None:
        self.stage = Mesh(*routines, **more)
        self.answers: dict[str, Answered] = {}
        self.traces: list[RunTraced] = []
        self.stage.world.observers.append(self._observe)
        self._asked = 0

    def _observe(self, _: float, __: NodeId, told: Observation) -> None:
        if isinstance(told, Answered):
            self.answers[told.request] = told
        elif isinstance(told, RunTraced):
            self.traces.append(told)

    def order(self, group: GroupId, wish: Wish, *, request: str = "", node: str = "n2") -> str:
        self._asked += 1
        request = request or f"order {self._asked}"
        self.stage.world.order(group, wish, request, NodeId(node))
        return request

    def ordered(self, group: GroupId, wish: Wish, *, request: str = "", node: str = "n2") -> Answered:
        request = self.order(group, wish, request=request, node=node)
        self.stage.run(2)
        return self.answers[request]

    def records(self, group: GroupId) -> dict[str, Record]:
        """Of whoever serves the group."""
        for name in NODES:
            process = self.stage.world.machines[name].process
            node = None if process is None else process.node.node
            if isinstance(node, Node) and node.groups is not None:
                serving = node.groups.serving(group)
                if serving is not None:
                    return dict(serving._records)
        raise AssertionError(f"nobody serves {group}")

    def audit(self, group: GroupId) -> list[AuditRecord]:
        found = [one for one in self.records(group).values() if isinstance(one, AuditRecord)]
        return sorted(found, key=lambda one: one.number)

    def heard(self, kind: type[T]) -> list[T]:
        return [one.trace for one in self.traces if isinstance(one.trace, kind)]

    def of_hand(self, device: DeviceId) -> list[Trace]:
        """What runs by hand of this device did."""
        return [one.trace for one in self.traces if one.run.routine == by_hand(device)]

    def reading(self, device: DeviceId) -> object:
        return self.stage.world.devices[device].read()["on"]

    def end(self) -> None:
        self.stage.checks.finish()
        assert self.stage.checks.violations == []


def set_on(device: DeviceId, on: bool = True) -> SetDevice:
    return SetDevice(device, Action("set", on, 3000.0, expects={"on": on}))


def leader_of(mesh: Orders, group: GroupId) -> str:
    for name in NODES:
        process = mesh.stage.world.machines[name].process
        node = None if process is None else process.node.node
        if isinstance(node, Node) and node.groups is not None and node.groups.serving(group) is not None:
            return name
    raise AssertionError(f"nobody serves {group}")


def announcement_of(mesh: Orders, name: str) -> Announcement | None:
    """What a node has heard of a pause of all."""
    process = mesh.stage.world.machines[name].process
    assert process is not None
    found: Announcement | None = process.node.node.groups.announcement(PAUSED)
    return found


# -- pause -------------------------------------------------------------------------------------------------


def test_a_paused_routine_fires_for_nobody_until_it_is_resumed() -> None:
    mesh = Orders(lights("evening", "lamp"), door_opens_ms=6000)
    assert mesh.ordered(KITCHEN, Pause(EVENING)).why_not == ""
    mesh.stage.fire("evening", "now")
    mesh.stage.run(8)
    assert mesh.answers["now"].run is None
    assert mesh.answers["now"].why_not == "paused by ann"
    assert any(one.paused_by == "ann" for one in mesh.heard(Ignored)), "the door opened meanwhile"
    assert mesh.reading(LAMP) is False
    assert mesh.ordered(KITCHEN, Resume(EVENING)).why_not == ""
    mesh.stage.fire("evening", "later")
    mesh.stage.run(3)
    assert mesh.reading(LAMP) is True
    mesh.end()


def test_a_pause_stops_what_runs_before_its_next_command_and_drops_what_waits() -> None:
    mesh = Orders(lights("evening", "lamp", "fan", "kettle", fades=True))
    for request in ("one", "two", "three"):
        mesh.stage.fire("evening", request)
    mesh.stage.run(1)
    assert mesh.ordered(KITCHEN, Pause(EVENING)).why_not == ""
    mesh.stage.run(20)
    assert mesh.heard(Failed) == [Failed("paused by ann")]
    assert mesh.heard(Dropped) == [Dropped("paused by ann")] * 2
    assert mesh.reading(LAMP) is True, "that command was under way"
    assert mesh.reading(DeviceId("fan")) is False
    assert mesh.reading(KETTLE) is False
    assert mesh.records(HALL)["device/lamp"].hold is None
    mesh.end()


def test_a_command_that_went_to_the_wrong_node_is_not_sent_on_after_the_pause() -> None:
    mesh = Orders(lights("evening", "lamp", "fan", fades=True))
    mesh.stage.fire("evening", "one")
    mesh.stage.run(1)
    process = mesh.stage.world.machines[leader_of(mesh, KITCHEN)].process
    assert process is not None
    groups = process.node.node.groups
    run = mesh.records(KITCHEN)["run/evening"]
    assert isinstance(run, RunRecord)
    assert run.stage is Stage.EXECUTING
    fence = groups.serving(KITCHEN).fence
    command = Command(Origin(run.run, run.attempt), LAMP, Action("fade", True, 4000.0), fence)
    again = [Sent(0.0, GroupMessage(HALL, KITCHEN, fence, 1, command), 0)]
    step = Step(mesh.stage.world.now_ms, mesh.stage.world.now_ms)
    groups.router._send_again(again, step)
    assert len(step.effects) + len(groups.router.inside) == 1
    groups.router.inside.clear()
    assert mesh.ordered(KITCHEN, Pause(EVENING)).why_not == ""
    step = Step(mesh.stage.world.now_ms, mesh.stage.world.now_ms)
    groups.router._send_again(again, step)
    assert not step.effects
    assert not groups.router.inside
    mesh.end()


def test_all_routines_of_a_group_are_paused_and_resumed_together() -> None:
    mesh = Orders(lights("evening", "lamp"), lights("tea", "kettle"))
    mesh.ordered(KITCHEN, Pause(RoutineId("tea")))
    mesh.ordered(KITCHEN, Pause(None))
    for routine in ("evening", "tea"):
        mesh.stage.fire(routine, routine)
    mesh.stage.run(3)
    assert {mesh.answers[name].why_not for name in ("evening", "tea")} == {"paused by ann"}
    assert mesh.ordered(KITCHEN, Resume(EVENING)).why_not == EVERYTHING
    mesh.ordered(KITCHEN, Resume(None))
    for routine in ("evening", "tea"):
        mesh.stage.fire(routine, routine + " again")
    mesh.stage.run(3)
    assert mesh.reading(LAMP) is True
    assert mesh.reading(KETTLE) is True, "a pause of its own is lifted, too"
    mesh.end()


def test_a_pause_outlives_its_leader() -> None:
    mesh = Orders(lights("evening", "lamp"))
    mesh.ordered(KITCHEN, Pause(EVENING))
    mesh.stage.crash(leader_of(mesh, KITCHEN))
    mesh.stage.run(10)
    mesh.stage.fire("evening", "after", node="n6")
    mesh.stage.run(5)
    assert mesh.answers["after"].why_not == "paused by ann"
    mesh.end()


def test_that_all_is_paused_is_known_after_an_outage_of_all_nodes() -> None:
    """A group that a later version adds begins paused: it looks at the announcement, which no disk holds."""
    mesh = Orders(lights("evening", "lamp"))
    mesh.ordered(KITCHEN, Pause(None))
    mesh.ordered(HALL, Pause(None))
    before = announcement_of(mesh, "n1")
    assert before is not None
    for node in NODES:
        mesh.stage.kill(node)
    mesh.stage.start(*NODES)
    mesh.stage.run(20)
    assert announcement_of(mesh, "n1") == before
    mesh.ordered(KITCHEN, Resume(None))
    mesh.ordered(HALL, Resume(None))
    mesh.stage.kill(leader_of(mesh, KITCHEN))
    mesh.stage.run(20)
    assert getattr(announcement_of(mesh, "n6"), "value", None) == b"", "it is not paused for who begins now"
    mesh.end()


def test_who_is_not_there_cannot_be_paused() -> None:
    mesh = Orders(lights("evening", "lamp"))
    assert mesh.ordered(HALL, Pause(EVENING)).why_not == "hall has no routine evening"
    assert mesh.audit(HALL) == [], "what is refused is not in the log"
    mesh.end()


# -- maintenance -------------------------------------------------------------------------------------------


def test_a_device_in_maintenance_is_commanded_by_people_only() -> None:
    mesh = Orders(lights("evening", "lamp"))
    assert mesh.ordered(HALL, Maintain(LAMP)).why_not == ""
    mesh.stage.fire("evening", "one")
    mesh.stage.run(3)
    assert mesh.heard(Failed) == [Failed("lamp: set: in maintenance by ann")]
    assert mesh.reading(LAMP) is False
    by_hand = mesh.ordered(HALL, set_on(LAMP))
    assert by_hand.run is not None
    assert mesh.reading(LAMP) is True
    assert mesh.ordered(HALL, Restore(LAMP)).why_not == ""
    mesh.ordered(HALL, set_on(LAMP, False))
    mesh.stage.fire("evening", "two")
    mesh.stage.run(3)
    assert mesh.reading(LAMP) is True
    assert mesh.ordered(HALL, Restore(LAMP)).why_not == "lamp is not in maintenance"
    mesh.end()


def test_a_new_leader_does_not_command_a_device_in_maintenance_again() -> None:
    """The command was lost on its way, and its leader dies after the maintenance has begun."""
    mesh = Orders(lights("evening", "lamp", fades=True))
    mesh.stage.lose(commands("lamp"))
    mesh.stage.fire("evening", "one")
    mesh.stage.run(0.5)
    assert mesh.ordered(HALL, Maintain(LAMP)).why_not == ""
    mesh.stage.kill(leader_of(mesh, HALL))
    mesh.stage.run(20)
    assert mesh.reading(LAMP) is False
    assert mesh.heard(Failed) == [Failed("lamp: fade: in maintenance by ann")]
    assert mesh.ordered(HALL, set_on(LAMP)).run is not None
    assert mesh.reading(LAMP) is True, "the lock was given back"
    mesh.end()


def test_what_a_device_in_maintenance_senses_reaches_no_routine_until_it_is_over() -> None:
    mesh = Orders(lights("evening", "lamp"), door_opens_ms=6000)
    mesh.ordered(KITCHEN, Maintain(DOOR))
    mesh.stage.run(10)
    assert mesh.heard(Fired) == []
    mesh.ordered(KITCHEN, Restore(DOOR))
    mesh.stage.run(3)
    assert len(mesh.heard(Fired)) == 1
    assert mesh.reading(LAMP) is True
    mesh.end()


# -- by hand -----------------------------------------------------------------------------------------------


def test_a_command_by_hand_waits_for_the_lock() -> None:
    mesh = Orders(lights("evening", "lamp", "fan", fades=True))
    mesh.stage.fire("evening", "one")
    mesh.stage.run(1)
    request = mesh.order(HALL, set_on(LAMP, False))
    mesh.stage.run(1)
    assert mesh.answers[request].run is not None
    assert LockQueued(LAMP) in mesh.of_hand(LAMP)
    assert mesh.of_hand(LAMP)[-1] != Finished()
    mesh.stage.run(6)
    assert mesh.of_hand(LAMP)[-1] == Finished()
    assert mesh.reading(LAMP) is False
    assert mesh.records(HALL).keys().isdisjoint({"run/set.lamp", "routine/set.lamp"}), "it leaves nothing"
    mesh.end()


def test_a_request_is_carried_out_once() -> None:
    mesh = Orders(lights("evening", "lamp"))
    first = mesh.ordered(HALL, set_on(LAMP), request="mine")
    again = mesh.ordered(HALL, set_on(LAMP), request="mine", node="n5")
    assert first.run == again.run
    assert len(mesh.heard(CommandSent)) == 1
    assert [one.what for one in mesh.audit(HALL)] == ["set lamp: set true"]
    mesh.end()


def test_another_order_with_the_same_request_is_refused() -> None:
    """Else who orders it would be told that it is done."""
    mesh = Orders(lights("evening", "lamp"))
    assert mesh.ordered(KITCHEN, Pause(RoutineId("evening")), request="mine").why_not == ""
    refused = mesh.ordered(KITCHEN, Resume(RoutineId("evening")), request="mine", node="n5").why_not
    assert "take another one. It was: pause evening" in refused
    assert [one.what for one in mesh.audit(KITCHEN)] == ["pause evening"]
    mesh.end()


def test_one_command_by_hand_at_a_time() -> None:
    mesh = Orders(lights("evening", "lamp"))
    slow = SetDevice(LAMP, Action("fade", True, 4000.0, expects={"on": True}))
    mesh.order(HALL, slow)
    mesh.stage.run(0.5)
    assert "by hand already" in mesh.ordered(HALL, set_on(LAMP)).why_not
    mesh.end()


def test_a_command_by_hand_survives_its_leader() -> None:
    mesh = Orders(lights("evening", "lamp"))
    mesh.order(HALL, SetDevice(LAMP, Action("fade", True, 4000.0, expects={"on": True})))
    mesh.stage.run(0.5)
    mesh.stage.crash(leader_of(mesh, HALL))
    mesh.stage.run(20)
    assert mesh.reading(LAMP) is True
    assert mesh.of_hand(LAMP)[-1] == Finished()
    mesh.end()


@pytest.mark.parametrize("timeout_ms", [0.0, 60_000.0])
def test_a_command_by_hand_must_not_take_for_ever(timeout_ms: float) -> None:
    mesh = Orders(lights("evening", "lamp"))
    why_not = mesh.ordered(HALL, SetDevice(LAMP, Action("set", True, timeout_ms))).why_not
    assert why_not == "a command by hand to lamp may take 5 s at most"
    mesh.end()


# -- locks -------------------------------------------------------------------------------------------------


def test_a_broken_lock_is_free_once_its_run_has_stopped() -> None:
    mesh = Orders(lights("evening", "lamp", "fan", "kettle", fades=True))
    mesh.stage.fire("evening", "one")
    mesh.stage.run(1)
    assert mesh.ordered(HALL, BreakLock(LAMP)).why_not == ""
    mesh.stage.run(5)
    assert mesh.heard(Failed) == [Failed("ann broke its lock of lamp")]
    record = mesh.records(HALL)["device/lamp"]
    assert isinstance(record, DeviceRecord)
    assert record.hold is None
    assert not any(isinstance(one, Standing) for one in mesh.records(HALL).values()), "it was carried out"
    mesh.end()


def test_a_lock_is_not_free_while_its_run_cannot_be_stopped() -> None:
    mesh = Orders(lights("evening", "lamp", "fan", "kettle", fades=True))
    mesh.stage.fire("evening", "one")
    mesh.stage.run(1)
    mesh.stage.cut("n1", "n2", "n3")
    mesh.ordered(HALL, BreakLock(LAMP), node="n5")
    mesh.stage.run(20)
    held = mesh.records(HALL)["device/lamp"]
    assert isinstance(held, DeviceRecord)
    assert held.hold is not None
    assert f"{Kind.BREAKING}/lamp" in mesh.records(HALL)
    mesh.stage.heal()
    mesh.stage.run(20)
    freed = mesh.records(HALL)["device/lamp"]
    assert isinstance(freed, DeviceRecord)
    assert freed.hold is None
    mesh.end()


def test_the_lock_of_another_holder_is_not_broken() -> None:
    mesh = Orders(lights("evening", "lamp", "fan", fades=True))
    assert mesh.ordered(HALL, BreakLock(LAMP)).why_not == "nobody holds lamp"
    mesh.stage.fire("evening", "one")
    mesh.stage.run(1)
    record = mesh.records(HALL)["device/lamp"]
    assert isinstance(record, DeviceRecord)
    assert record.hold is not None
    held = record.hold.run
    other = RunId(held.routine, held.birth, type(held.stamp)(held.stamp.config, held.stamp.ballot, 99_999))
    assert "is held by" in mesh.ordered(HALL, BreakLock(LAMP, str(other))).why_not
    mesh.end()


# -- the log -----------------------------------------------------------------------------------------------


def test_the_audit_log_is_bounded_and_moves_with_its_group() -> None:
    mesh = Orders(lights("evening", "lamp"))
    for number in range(SLOTS + 6):
        mesh.order(HALL, Remember(f"thing {number}"))
        mesh.stage.run(4 * HOP_MS / 1000)
    mesh.stage.run(2)
    kept = [one.what for one in mesh.audit(HALL)]
    assert kept == [f"thing {number}" for number in range(6, SLOTS + 6)]
    mesh.stage.crash(leader_of(mesh, HALL))
    mesh.stage.run(10)
    assert [one.what for one in mesh.audit(HALL)] == kept
    assert {one.by for one in mesh.audit(HALL)} == {"ann"}
    mesh.end()
