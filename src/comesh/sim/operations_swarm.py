"""The swarm of operations: the usual swarm, in which people also work on the mesh while it breaks.

They give orders, apply versions, have nodes join and leave, revoke certificates, and restart everything,
asking whoever lives. When the faults are over an operator lifts what still stands; then all groups must come
to be served by the newest version, all nodes to hold it, nodes that were removed to end, and all runs to end.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from comesh.core.actions import Action
from comesh.core.events import ApplyAsked, FireAsked, OrderAsked
from comesh.core.group.groups import Groups
from comesh.core.group.replica import Replica
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.node import Node
from comesh.core.program import Program
from comesh.core.records import Kind, Standing
from comesh.core.stamps import NO_BALLOT
from comesh.core.streams import stream
from comesh.core.work_messages import (
    BreakLock,
    Maintain,
    Pause,
    Reach,
    Remember,
    Restore,
    Resume,
    SetDevice,
    Wish,
)
from comesh.drivers.virtual.devices import DeviceSpec
from comesh.sim.checks.answers import Answers
from comesh.sim.checks.disks import sits
from comesh.sim.checks.paused import PausedCommands
from comesh.sim.engine import Priority
from comesh.sim.faults import Crash
from comesh.sim.machine import Machine
from comesh.sim.operations import Operation, What
from comesh.sim.operations_case import OPERATING_MS, Compiler, Edit, draw
from comesh.sim.swarm import Swarm, Verdict
from comesh.sim.swarm_case import Case
from comesh.sim.trace import Trace
from comesh.sim.world import NodeFactory

WIPE_CHECK_MS = 0.001
"""Time before the wipe of a disk at which is checked whether it may be wiped."""
LOOK_MS = 1000.0
"""Interval at which people check whether they can continue."""
MAX_TRIES = 6
"""Maximum attempts to make a version; each is made anew if another version came first."""
RESTART_MS = 500.0
RESTART_TIMEOUT_MS = 20_000.0
"""Timeout of a restart of all nodes: it continues after this time even if the last node has not joined."""
OPERATOR_AGAIN_MS = 6000.0
MANUAL_TIMEOUT_MS = 2500.0
"""Timeout of a command by hand."""

_T = TypeVar("_T")
_OF_GROUPS = (What.PAUSE_ALL, What.RESUME_ALL)


class OperationsSwarm(Swarm):
    """One seed, ready to run."""

    breaking_ms = OPERATING_MS

    def __init__(self, seed: int, *, case: Case | None = None, trace: Trace | None = None) -> None:
        self._begun_with: dict[NodeId, Program] = {}
        """Programs that nodes added later began with."""
        self._lives: Counter[NodeId] = Counter()
        super().__init__(seed, case=case, trace=trace, drawing=draw)
        self.answers = Answers(self.checks)
        self.world.observers.append(self.answers.observe)
        self.world.writers.append(self.answers.on_written)
        self.checks.histories.follow(self.answers)
        self.world.senders.append(PausedCommands(self.checks, self.checks.histories).on_sent)
        self._meant: dict[str, tuple[GroupId, Wish]] = {}
        """Requests by id, with what each meant when it was first asked."""
        self._fired: dict[str, RoutineId] = {}
        self._edits: dict[str, tuple[int, Edit]] = {}
        """Versions by request: the version that each builds on, and its text."""
        self._done: Counter[str] = Counter()
        self._lifted_ms: dict[tuple[GroupId, str], float] = {}
        self._draws = stream(seed, "operations swarm run")
        founders = {node.id for node in self.program.plan.nodes}
        for node in sorted(self.topology.nodes):
            if node not in founders:
                machine = self.world.machines[node]
                self.world.wipe(machine)
                machine.away = True
        for operation in self.case.operations:
            self._at(operation.at_ms, self._operate, operation)
        for fault in self.case.faults.faults:
            if isinstance(fault, Crash) and fault.wipes_at_ms is not None:
                self._at(fault.wipes_at_ms - WIPE_CHECK_MS, self._spare_last, fault.node)

    def _spare_last(self, node: NodeId) -> None:
        machine = self.world.machines[node]
        machine.keeps_disk = self._is_last(machine)

    def _is_last(self, machine: Machine) -> bool:
        return is_last_of_a_group(machine, self.world.machines.values())

    def _nodes(self, specs: dict[DeviceId, DeviceSpec]) -> NodeFactory:
        compiler = Compiler(self.case, self.topology, specs)

        def make(node_id: NodeId) -> Node:
            self._lives[node_id] += 1
            program = self._begun_with.get(node_id, self.program)
            return Node(
                own=node_id,
                roster=program.roster,
                membership=self.case.membership,
                seed=stream(self.case.seed, f"node {node_id} {self._lives[node_id]}").word(),
                program=program,
                compile_text=compiler,
            )

        return make

    def _at(self, at_ms: float, call: Callable[..., None], *arguments: object) -> None:
        self.world.engine.at(at_ms, Priority.ARRIVAL, call, *arguments)

    def _later(self, after_ms: float, call: Callable[..., None], *arguments: object) -> None:
        self._at(self.world.now_ms + after_ms, call, *arguments)

    # -- who is asked ------------------------------------------------------------------------------------

    def _living(self, node: NodeId, *, but: NodeId | None = None) -> tuple[NodeId, Groups] | None:
        """Returns this node if it runs, or else another one."""
        names = sorted(self.topology.nodes)
        first = names.index(node)
        for name in names[first:] + names[:first]:
            process = self.world.machines[name].process
            if process is not None and name != but:
                assert isinstance(process.node, Node)
                assert process.node.groups is not None
                return name, process.node.groups
        return None

    def _operate(self, operation: Operation) -> None:
        match operation.what:
            case What.APPLY:
                self._apply(operation)
            case What.REACH:
                self._reach(operation)
            case What.JOIN:
                self._change_nodes(operation, 1)
                self._later(operation.later_ms, self._join, operation)
            case What.LEAVE | What.LEAVE_DEAD | What.LEAVE_NOW:
                self._leave(operation)
            case What.REVOKE:
                self._revoke(operation)
            case What.RESTART_ALL:
                self._restart(sorted(self.topology.nodes))
            case _:
                self._order(operation)

    # -- orders ------------------------------------------------------------------------------------------

    def _order(self, operation: Operation) -> None:
        asked = self._living(operation.node)
        if asked is None:
            return
        node, groups = asked
        program = groups.versions.newest
        if operation.what in _OF_GROUPS:
            all_of = Pause(None) if operation.what is What.PAUSE_ALL else Resume(None)
            for group in sorted(program.plan.genesis):
                self._give_order(node, group, all_of, f"{operation.request} {group}", operation.by)
            return
        if operation.what is What.FIRE:
            picked = _picked(sorted(program.routines), operation.pick)
            routine = self._fired.setdefault(operation.request, picked)
            event = FireAsked(routine=routine, request=operation.request, by=operation.by)
            self._give(node, event)
            return
        group, wish = self._meant.setdefault(operation.request, _wish(operation, program))
        self._give_order(node, group, wish, operation.request, operation.by)

    def _give_order(self, node: NodeId, group: GroupId, wish: Wish, request: str, by: str) -> None:
        self._give(node, OrderAsked(group=group, request=request, by=by, wish=wish))

    def _give(self, node: NodeId, event: FireAsked | ApplyAsked | OrderAsked) -> None:
        process = self.world.machines[node].process
        if process is not None:
            self.world.give(process, event)

    # -- versions ----------------------------------------------------------------------------------------

    def _apply(self, operation: Operation) -> None:
        asked = self._living(operation.node)
        if asked is None:
            return
        node, groups = asked
        base = max(1, groups.versions.newest.version - operation.stale)
        edit = Edit(seed=self.case.seed, base=base, pick=operation.pick)
        self._give_version(node, base, edit, operation.request, operation.by)

    def _give_version(self, node: NodeId, base: int, edit: Edit, request: str, by: str) -> None:
        base, edit = self._edits.setdefault(request, (base, edit))
        self._give(node, ApplyAsked(base=base, text=edit.text, request=request, by=by))

    def _reach(self, operation: Operation) -> None:
        asked = self._living(operation.node)
        if asked is None:
            return
        node, groups = asked
        newest = groups.versions.newest
        for group in sorted(newest.plan.genesis):
            request = f"{operation.request} {group}"
            self.answers.reaching[request] = (group, newest.version)
            self._give_order(node, group, Reach(newest.version), request, operation.by)

    def _change_nodes(self, operation: Operation, number: int) -> None:
        """Apply a version with or without a node; made anew as long as another version comes first."""
        of, request = operation.of, f"{operation.request} try {number}"
        asked = self._living(operation.node, but=of)
        if asked is not None:
            node, groups = asked
            base = groups.versions.newest.version
            joins = operation.what is What.JOIN
            edit = Edit(
                seed=self.case.seed,
                base=base,
                pick=operation.pick,
                add=of if joins else None,
                remove=None if joins else of,
            )
            self._give_version(node, base, edit, request, operation.by)
        self._later(3 * LOOK_MS, self._see_changed, operation, number)

    def _see_changed(self, operation: Operation, number: int) -> None:
        """Check whether the change succeeded: repeat it if it was refused or the asked node has ended, else
        wait."""
        request = f"{operation.request} try {number}"
        if request in self.answers.done:
            self._done[f"applied: {operation.what}"] += 1
            return
        if self.world.now_ms > self.breaking_ms:
            return
        asked = self._living(operation.node, but=operation.of)
        if asked is not None and request in asked[1].router._requests:
            self._later(LOOK_MS, self._see_changed, operation, number)
        elif number < MAX_TRIES:
            self._change_nodes(operation, number + 1)

    # -- machines ----------------------------------------------------------------------------------------

    def _join(self, operation: Operation) -> None:
        """Start the machine once there is a version with it, from the state of a living node."""
        assert operation.of is not None
        self._begin(self.world.machines[operation.of], operation)

    def _begin(self, machine: Machine, operation: Operation) -> None:
        node = machine.node_id
        asked = self._living(operation.node, but=node)
        newest = None if asked is None else asked[1].versions.newest
        if newest is None or node not in newest.roster.index:
            self._later(LOOK_MS, self._begin, machine, operation)
            return
        self._begun_with[node] = newest
        machine.away = False
        self.world.start(machine)
        self._done["joined" if operation.what is What.JOIN else "replaced"] += 1

    def _leave(self, operation: Operation) -> None:
        assert operation.of is not None
        machine = self.world.machines[operation.of]
        if operation.what is not What.LEAVE and self._is_last(machine):
            return
        if operation.what is What.LEAVE_DEAD:
            self.world.take_away(machine)
        self._change_nodes(operation, 1)
        if operation.what is What.LEAVE_NOW:
            self._later(LOOK_MS, self._stop, machine)

    def _stop(self, machine: Machine) -> None:
        """Ask the node to leave in good order, for good."""
        self.world.ask_to_leave(machine)
        self._later(2 * LOOK_MS, self.world.take_away, machine)

    def _revoke(self, operation: Operation) -> None:
        assert operation.of is not None
        if self._is_last(self.world.machines[operation.of]):
            return
        new = self.world.revoke(operation.of)
        self._done["revoked"] += 1
        self._later(operation.later_ms, self._begin, new, operation)

    def _restart(self, left: list[NodeId]) -> None:
        """Restart the next of all running nodes."""
        while left and self.world.machines[left[0]].process is None:
            left = left[1:]
        if not left or self.world.now_ms > self.breaking_ms:
            self._done["restarted all"] += 1
            return
        machine = self.world.machines[left[0]]
        self.world.kill(machine)
        self._later(RESTART_MS, self.world.start, machine)
        self._later(2 * RESTART_MS, self._see_joined, left, self.world.now_ms)

    def _see_joined(self, left: list[NodeId], since_ms: float) -> None:
        process = self.world.machines[left[0]].process
        joined = process is not None and isinstance(process.node, Node) and process.node.membership.joined
        if joined or self.world.now_ms - since_ms > RESTART_TIMEOUT_MS:
            self._restart(left[1:])
        else:
            self._later(LOOK_MS, self._see_joined, left, since_ms)

    # -- the quiet phase ---------------------------------------------------------------------------------

    def _newest(self) -> Program:
        """Returns the newest version that any node holds."""
        held = [groups.versions.newest for _, groups in self._groups()]
        return max(held, key=lambda one: one.version, default=self.program)

    def _start_all(self) -> None:
        """Start all nodes of the newest version, and lift all standing orders."""
        newest = self._newest()
        for node in self.topology.nodes:
            machine = self.world.machines[node]
            if node in newest.roster.index and not self.world.runs(node):
                self.world.start(machine)
        self._lift_orders()

    def _is_lost(self, left: list[Replica]) -> bool:
        """True if the remaining whole members are no quorum, and a missing one that may have been is gone for
        good."""
        config = left[0].config
        machines = [one for one in self.world.machines.values() if not one.away]
        gone = [
            seat
            for seat in config.seats
            if not any(one.node_id == seat.node and sits(seat, one.disk) for one in machines)
        ]
        whole = sum(replica.whole for replica in left)
        return super()._is_lost(left) or (bool(gone) and whole < config.quorum)

    def _lift_orders(self) -> None:
        for group, standing in self._standing():
            if standing.kind is Kind.BREAKING:
                continue
            last_ms = self._lifted_ms.get((group, standing.key), -OPERATOR_AGAIN_MS)
            asked = self._living(self._draws.choice(sorted(self.topology.nodes)))
            if self.world.now_ms - last_ms < OPERATOR_AGAIN_MS or asked is None:
                continue
            self._lifted_ms[group, standing.key] = self.world.now_ms
            paused = standing.kind is Kind.PAUSED
            wish = Resume(None) if paused else Restore(DeviceId(standing.of))
            request = f"lift {standing.key} of {group} at {self.world.now_ms:.0f}"
            self._give_order(asked[0], group, wish, request, "operator")

    def _standing(self) -> list[tuple[GroupId, Standing]]:
        """Returns orders that were not lifted, by the committed history of the existing groups."""
        return [
            (group, record)
            for group in sorted(self._newest().plan.genesis)
            if group in self.checks.histories.groups
            for record in self.checks.histories.groups[group].records.values()
            if isinstance(record, Standing)
        ]

    def _restless(self) -> list[str]:
        stuck = super()._restless()
        newest = self._newest()
        for process, groups in self._groups():
            node, held = process.machine.node_id, groups.versions.newest.version
            if node not in newest.roster.index:
                stuck.append(f"{process.machine.name} runs, which version {newest.version} has no more")
            elif held != newest.version:
                stuck.append(f"{process.machine.name} holds version {held}, not {newest.version}")
            for group in groups.served:
                serving = groups.serving(group)
                if serving is not None and group in newest.plan.genesis:
                    by = serving.config.version
                    if by != newest.version:
                        stuck.append(f"{node} serves {group} by version {by}, not {newest.version}")
        stuck += self._misinformed()
        stuck += [f"{one.key} stands in {group}, by {one.by}" for group, one in self._standing()]
        return stuck

    def _misinformed(self) -> list[str]:
        """Returns the nodes that do not know exactly which nodes run, or take a revoked life for its
        successor."""
        nodes = [process.node for process, _ in self._groups()]
        lives = {node.id: node.membership.incarnation.life for node in nodes if isinstance(node, Node)}
        roster = self._newest().roster
        expected = tuple(node for node in roster.ids if node in lives)
        wrong: list[str] = []
        for node in nodes:
            assert isinstance(node, Node)
            if node.id not in roster.index or node.deployment != self._newest().version:
                continue
            living, table = node.membership.living, node.membership.beliefs.table
            if living != expected:
                wrong.append(f"{node.id} believes that {', '.join(living)} live")
            for machine in self.world.revoked:
                name = machine.node_id
                if name in living and table.incarnation(roster.index[name]).life != lives.get(name):
                    wrong.append(f"{node.id} takes another process for {name}")
        return wrong

    def settled(self) -> bool:
        return not super()._restless() and super().settled()

    def done(self) -> dict[str, int]:
        orders = {one for one in self.answers.done if one.startswith("order")}
        refused = {one for one in self.answers.refused if one.startswith("order")}
        counted = Counter(self._done)
        counted["orders done"] = len(orders)
        counted["orders refused or unanswered"] = len(refused - orders)
        counted["versions applied"] = self._newest().version - 1
        counted["versions refused"] = sum(one in self.answers.refused for one in self._edits)
        counted["reached"] = len(self.answers.done & set(self.answers.reaching))
        return dict(sorted(counted.items()))


def _picked(names: list[_T], pick: int) -> _T:
    return names[pick % len(names)]


def _wish(operation: Operation, program: Program) -> tuple[GroupId, Wish]:
    """Returns the request that an order makes, by the version that the asked node holds."""
    pick = operation.pick
    match operation.what:
        case What.PAUSE | What.RESUME:
            routine = _picked(sorted(program.routines), pick)
            wish: Wish = Pause(routine) if operation.what is What.PAUSE else Resume(routine)
            return program.group_of_routine[routine], wish
        case What.REMEMBER:
            return _picked(sorted(program.plan.genesis), pick), Remember(f"thing {pick}")
        case _:
            device = _picked(sorted(program.devices), pick)
            return program.group_of_device[device], _of_device(operation, device)


def _of_device(operation: Operation, device: DeviceId) -> Wish:
    match operation.what:
        case What.MAINTAIN:
            return Maintain(device)
        case What.RESTORE:
            return Restore(device)
        case What.BREAK_LOCK:
            return BreakLock(device)
        case _:
            if operation.pick % 3 == 0:
                return SetDevice(device, Action("toggle", timeout_ms=MANUAL_TIMEOUT_MS, idempotent=False))
            on = bool(operation.pick % 2)
            return SetDevice(device, Action("set", on, MANUAL_TIMEOUT_MS, expects={"on": on}))


def run_seed(seed: int) -> Verdict:
    """Draw the case, run it, let the mesh recover, and judge."""
    return OperationsSwarm(seed).run()


def is_last_of_a_group(machine: Machine, machines: Iterable[Machine]) -> bool:
    """True if no other of these machines has the newest config of some group of this one.

    With its disk the group is gone, and no protocol and no operator brings it back. It can be any member's:
    where a config began without its third member, two disks are all that there is of it. A seat that was
    given by another member's word alone has no state.
    """
    others: dict[GroupId, int] = {}
    for other in machines:
        if other is not machine and not other.away and not other.revoked:
            for group, number in _installed(other).items():
                others[group] = max(number, others.get(group, 0))
    return any(number > others.get(group, 0) for group, number in _installed(machine).items())


def _installed(machine: Machine) -> dict[GroupId, int]:
    """Returns the newest config of each group whose state is on the disk, by number."""
    found: dict[GroupId, int] = {}
    for kept in machine.disk.image().configs.values():
        if kept.installed and kept.accepted != NO_BALLOT:
            found[kept.config.group] = max(kept.config.number, found.get(kept.config.group, 0))
    return found
