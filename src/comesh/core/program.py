"""What a deployment says, compiled for the core: devices, routines, settings, and the plan made of them.

The core knows no YAML and no CEL: a trigger reaches it as a deterministic predicate, a schedule as a
function from one instant to the next. `comesh.deployment.program` makes programs.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Protocol

import msgspec

from comesh.core.actions import RoutineStep
from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.membership.roster import Roster
from comesh.core.plan import Plan
from comesh.core.selection import Selector
from comesh.core.strategies import Batch, LockOrder, Strategy, StrategyName
from comesh.core.values import Value

ReadingName = tuple[str, str]
"""Device and reading."""


class Predicate(Protocol):
    """A trigger's clause."""

    @property
    def reads(self) -> frozenset[ReadingName]: ...

    def evaluate(self, values: Mapping[ReadingName, Value | None]) -> bool | None:
        """Its truth; None is unknown. `up` is a reading of every device."""
        ...


Instants = Callable[[float], float | None]
"""From wall time in ms to the first instant after it that a schedule fires at; None: never again."""
Moment = Callable[[float], Mapping[ReadingName, Value | None]]
"""What clauses can name of a wall time in ms: ("now", ...), ("sun", ...)."""
Fit = Callable[[Mapping[str, Value]], dict[str, Value]]
"""A device's answer as its readings are declared: whole numbers become floats where floats are, and what is
not of its type is left out."""


class ProtocolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Every knob of groups, devices and routines; formulas stand beside what they give."""

    lease_ms: int = 1000
    epoch_ms: int = 60_000
    monitoring_ms: float = 1000.0
    strict: bool = False
    """Flush before each acknowledgement; otherwise every flush_ms."""
    batch: Batch = Batch.CLUSTER
    order: LockOrder = LockOrder.CLUSTER
    estimated_timeouts: bool = True
    flight_limit_ms: float = 10_000.0
    """How long a command may stay in the air where the driver does not say."""
    drift: float = 0.01
    """Clocks of two nodes run at rates at most this far apart."""
    cold_wait_ms: float = 30_000.0
    replace_after_ms: float = 3000.0
    """A member that has been believed dead for so long is replaced."""
    ready_wait_ms: float = 5000.0
    start_resend_ms: float = 1000.0
    request_resend_ms: float = 1000.0
    max_request_resend_ms: float = 10_000.0
    max_update_resend_ms: float = 2000.0
    probe_after_ms: float = 10_000.0
    usual_round_trip_ms: float = 100.0
    """Assumed round trip to a peer or device that was never measured."""

    @property
    def silent_after_ms(self) -> float:
        """So is one that lives and acknowledges nothing for this long: 3 times that, 5 leases at least."""
        return max(3.0 * self.replace_after_ms, 5.0 * self.lease_ms)

    @property
    def commit_giveup_ms(self) -> float:
        """A leader that cannot commit for this long gives up: 5 leases."""
        return 5.0 * self.lease_ms


class DeviceProgram(msgspec.Struct, frozen=True, kw_only=True):
    id: DeviceId
    event: bool = False
    flight_ms: float | None = None
    """How long a command may stay in the air, if the driver can say; None: settings.flight_limit_ms."""
    fit: Fit | None = None
    """None: answers are taken as they are."""
    fences: bool = False
    """It refuses a command with a lower stamp than it has seen."""
    by_hand_ms: float = 5000.0
    """How long a command by hand may take."""


class RoutineProgram(msgspec.Struct, frozen=True, kw_only=True):
    id: RoutineId
    birth: int = 1
    """The deployment version that added it."""
    when: Predicate | None = None
    for_ms: float = 0.0
    on_event: Predicate | None = None
    """Over the readings of one event device."""
    schedule: Instants | None = None
    cooldown_ms: float = 0.0
    strategy: StrategyName = Strategy.SEQUENTIAL
    steps: tuple[RoutineStep, ...] = ()

    @property
    def commands(self) -> frozenset[DeviceId]:
        """The devices whose locks a run needs."""
        return frozenset(step.device for step in self.steps)


class FormerRoutine(msgspec.Struct, frozen=True):
    group: GroupId
    commands: frozenset[DeviceId]


MAX_FORMER = 256
"""Removed routines that are remembered."""


def _former(program: "Program", previous: "Program | None") -> dict[RoutineId, FormerRoutine]:
    if previous is None:
        return {}
    former = dict(previous.former)
    for name, routine in previous.routines.items():
        group = previous.group_of_routine.get(name)
        if group is not None and program.group_of_routine.get(name) != group:
            former[name] = FormerRoutine(group, routine.commands)
    return dict(list(former.items())[-MAX_FORMER:])


def _nothing(_: float) -> Mapping[ReadingName, Value | None]:
    return {}


class Program:
    """One deployment version, ready to run. Immutable; nodes of one simulation share it."""

    def __init__(
        self,
        *,
        plan: Plan,
        devices: Mapping[DeviceId, DeviceProgram],
        routines: Mapping[RoutineId, RoutineProgram],
        settings: ProtocolSettings,
        moment: Moment = _nothing,
        text: str = "",
        first_versions: Mapping[GroupId, int] | None = None,
        previous: "Program | None" = None,
    ) -> None:
        self.plan = plan
        self.version = plan.version
        self.devices = dict(devices)
        self.routines = dict(routines)
        self.settings = settings
        self.moment = moment
        self.text = text
        """The document that it was made of: what a node hands to one that lacks this version."""
        if first_versions is None:
            first_versions = dict.fromkeys(plan.genesis, plan.version)
        self.first_versions: dict[GroupId, int] = dict(first_versions)
        """The deployment version that added each group."""
        known = {} if previous is None else previous.node_since
        self.node_since: dict[NodeId, int] = {
            node.id: known.get(node.id, plan.version) for node in plan.nodes
        }
        """The deployment version since which all have each node."""
        self.group_of_device: dict[DeviceId, GroupId] = {
            device: cluster.group for cluster in plan.clusters for device in cluster.devices
        }
        self.group_of_routine: dict[RoutineId, GroupId] = {
            routine: cluster.group for cluster in plan.clusters for routine in cluster.routines
        }
        self.watchers: dict[DeviceId, tuple[RoutineId, ...]] = _readers(routines, events=False)
        """The routines whose clause reads a device."""
        self.listeners: dict[DeviceId, tuple[RoutineId, ...]] = _readers(routines, events=True)
        """The routines that fire on a device's events."""
        self.users: dict[DeviceId, tuple[RoutineId, ...]] = _users(routines)
        """The routines that command a device."""
        self.longest_ms: dict[DeviceId, float] = _longest(routines)
        """How long a command to a device may take at most."""
        self.former: dict[RoutineId, FormerRoutine] = _former(self, previous)
        """Routines of earlier versions: their last runs may still hold locks."""
        self.homes: dict[DeviceId, GroupId] = dict(previous.homes if previous else {})
        """The group that each device has, or last had."""
        self.homes |= self.group_of_device

    @cached_property
    def selector(self) -> Selector:
        return Selector(self.plan)

    @cached_property
    def roster(self) -> Roster:
        return Roster(self.plan.nodes)

    def devices_of(self, group: GroupId) -> tuple[DeviceId, ...]:
        return self._clusters.get(group, ((), ()))[0]

    def routines_of(self, group: GroupId) -> tuple[RoutineId, ...]:
        return self._clusters.get(group, ((), ()))[1]

    @cached_property
    def correspondents(self) -> dict[GroupId, tuple[GroupId, ...]]:
        """The groups that each group exchanges messages with: one has a routine that touches the other's
        devices, or a routine of a third touches those of both."""
        touched = {routine: {group} for routine, group in self.group_of_routine.items()}
        for by_device in (self.watchers, self.listeners, self.users):
            for device, routines in by_device.items():
                if device in self.group_of_device:  # and not the time of day
                    for routine in routines:
                        touched[routine].add(self.group_of_device[device])
        found: dict[GroupId, set[GroupId]] = {}
        for groups in touched.values():
            for group in groups:
                found.setdefault(group, set()).update(groups - {group})
        return {group: tuple(sorted(others)) for group, others in found.items()}

    @cached_property
    def _clusters(self) -> dict[GroupId, tuple[tuple[DeviceId, ...], tuple[RoutineId, ...]]]:
        return {cluster.group: (cluster.devices, cluster.routines) for cluster in self.plan.clusters}


def _readers(
    routines: Mapping[RoutineId, RoutineProgram], *, events: bool
) -> dict[DeviceId, tuple[RoutineId, ...]]:
    found: dict[DeviceId, list[RoutineId]] = {}
    for routine_id, routine in sorted(routines.items()):
        predicate = routine.on_event if events else routine.when
        if predicate is not None:
            for device in sorted({name for name, _ in predicate.reads}):
                found.setdefault(DeviceId(device), []).append(routine_id)
    return {device: tuple(readers) for device, readers in found.items()}


def _longest(routines: Mapping[RoutineId, RoutineProgram]) -> dict[DeviceId, float]:
    longest_ms: dict[DeviceId, float] = {}
    for routine in routines.values():
        for step in routine.steps:
            longest_ms[step.device] = max(longest_ms.get(step.device, 0.0), step.action.timeout_ms)
    return longest_ms


def _users(routines: Mapping[RoutineId, RoutineProgram]) -> dict[DeviceId, tuple[RoutineId, ...]]:
    found: dict[DeviceId, list[RoutineId]] = {}
    for routine_id, routine in sorted(routines.items()):
        for device in sorted(routine.commands):
            found.setdefault(device, []).append(routine_id)
    return {device: tuple(users) for device, users in found.items()}
