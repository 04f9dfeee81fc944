"""The shapes of answers about the mesh, as the control socket and HTTP give them.

Whatever tells of an entity says who told it, when, and whether that was now.
"""

from typing import Final

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.values import Value
from comesh.runtime.seen import DeviceSeen, GroupSeen, NodeStatus, RoutineSeen, TraceLine

FIRE_WAIT_S: Final = 35.0
"""Longer than the core tries to reach a group."""


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """reached False: whoever knows could not be asked now, and this is the last that was heard."""

    reached: bool
    as_of_ms: float | None
    """Milliseconds since 1970, by the clock of who answered; null: nothing was heard yet."""
    answered_by: NodeId | None


class NodeListed(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeId
    name: str | None
    power_domain: str | None
    life: str
    """living, dead, or never heard of"""


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """As the node that was asked knows them."""

    as_of_ms: float
    answered_by: NodeId
    nodes: tuple[NodeListed, ...]


class NodeAnswer(Freshness, frozen=True, kw_only=True):
    about: NodeListed
    status: NodeStatus | None


class GroupAnswer(Freshness, frozen=True, kw_only=True):
    group: GroupId
    devices: tuple[DeviceId, ...]
    routines: tuple[RoutineId, ...]
    state: GroupSeen | None


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """As the node that was asked knows them."""

    as_of_ms: float
    answered_by: NodeId
    groups: tuple[GroupSeen, ...]


class DeviceAnswer(Freshness, frozen=True, kw_only=True):
    device: DeviceId
    name: str | None
    group: GroupId
    state: DeviceSeen | None


class Devices(msgspec.Struct, frozen=True, kw_only=True):
    devices: tuple[DeviceAnswer, ...]


class RoutineAnswer(Freshness, frozen=True, kw_only=True):
    routine: RoutineId
    name: str | None
    group: GroupId
    commands: tuple[DeviceId, ...]
    """The devices that it commands."""
    state: RoutineSeen | None


class Routines(msgspec.Struct, frozen=True, kw_only=True):
    routines: tuple[RoutineAnswer, ...]


class Runs(msgspec.Struct, frozen=True, kw_only=True):
    """The latest, newest first: the last line of each."""

    as_of_ms: float
    answered_by: NodeId
    silent: tuple[NodeId, ...]
    """Nodes that live and did not answer: what only they know is missing."""
    runs: tuple[TraceLine, ...]


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    routine: RoutineId
    as_of_ms: float
    answered_by: NodeId
    silent: tuple[NodeId, ...]
    ended: bool
    trace: tuple[TraceLine, ...]


class Mesh(msgspec.Struct, frozen=True, kw_only=True):
    """What every node of the deployment says; None: nothing, and `silent` has why."""

    asked: NodeId
    nodes: dict[NodeId, NodeStatus | None]
    silent: dict[NodeId, str] = {}
    trouble: tuple[str, ...] = ()
    """What a person should look after, and concerns the mesh more than one node."""


class Fired(msgspec.Struct, frozen=True, kw_only=True):
    run: str | None
    why_not: str


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """What was done; home: nothing, because the device is part of that node."""

    device: DeviceId
    readings: dict[str, Value] = {}
    home: NodeId | None = None
