"""Node reads: what one node asks another of itself, for a person or for the nodes themselves.

A read is a Struct with the method that answers it, from what the node knows: at once, without asking
anybody. None means: that is not mine. `peers` carries reads and answers.
"""

from functools import cache
from typing import Final, Generic, TypeVar, get_args

import msgspec

from comesh.core.ids import DeviceId, GroupId, RoutineId
from comesh.core.records import VersionRecord
from comesh.queries.answers import (
    AuditSeen,
    DeviceSeen,
    GroupSeen,
    NodeHealth,
    NodeStatus,
    RoutineSeen,
    TraceLine,
)
from comesh.queries.view import NodeView, Ranks, TimeTold

A = TypeVar("A")


class NodeRead(msgspec.Struct, Generic[A], frozen=True, kw_only=True, omit_defaults=True, tag_field="read"):
    """Base of all reads; the type parameter is the answer."""

    def answer(self, view: NodeView) -> A:
        """What the node of this view says."""
        raise NotImplementedError


class OwnStatus(NodeRead[NodeStatus], frozen=True, kw_only=True, tag="status"):
    """What a node says of itself and of the groups that it serves."""

    def answer(self, view: NodeView) -> NodeStatus:
        return view.status()


class OwnHealth(NodeRead[NodeHealth], frozen=True, kw_only=True, tag="health"):
    """How a node and its machine are, and whom it hears."""

    def answer(self, view: NodeView) -> NodeHealth:
        return view.health()


class OwnDevice(NodeRead[DeviceSeen | None], frozen=True, kw_only=True, tag="device"):
    """A device, if the node serves its group."""

    device: DeviceId

    def answer(self, view: NodeView) -> DeviceSeen | None:
        return next((one for one in view.devices() if one.device == self.device), None)


class OwnDevices(NodeRead[tuple[DeviceSeen, ...]], frozen=True, kw_only=True, tag="devices"):
    """All devices of the groups that a node serves."""

    def answer(self, view: NodeView) -> tuple[DeviceSeen, ...]:
        return view.devices()


class OwnRoutine(NodeRead[RoutineSeen | None], frozen=True, kw_only=True, tag="routine"):
    """A routine, if the node serves its group."""

    routine: RoutineId

    def answer(self, view: NodeView) -> RoutineSeen | None:
        return next((one for one in view.routines() if one.routine == self.routine), None)


class OwnRoutines(NodeRead[tuple[RoutineSeen, ...]], frozen=True, kw_only=True, tag="routines"):
    """All routines of the groups that a node serves."""

    def answer(self, view: NodeView) -> tuple[RoutineSeen, ...]:
        return view.routines()


class OwnGroup(NodeRead[GroupSeen | None], frozen=True, kw_only=True, tag="group"):
    """A group, if the node serves it."""

    group: GroupId

    def answer(self, view: NodeView) -> GroupSeen | None:
        return next((one for one in view.groups() if one.serves and one.group == self.group), None)


class OwnTrace(NodeRead[tuple[TraceLine, ...]], frozen=True, kw_only=True, tag="trace"):
    """What a node saw a run do."""

    run: str

    def answer(self, view: NodeView) -> tuple[TraceLine, ...]:
        return view.trace(self.run)


class OwnRuns(NodeRead[tuple[TraceLine, ...]], frozen=True, kw_only=True, tag="runs"):
    """The last line of each run that a node saw."""

    def answer(self, view: NodeView) -> tuple[TraceLine, ...]:
        return view.runs()


class OwnLogs(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that a node serves, and their audit logs."""

    groups: tuple[GroupId, ...] = ()
    entries: tuple[AuditSeen, ...] = ()


class OwnAudit(NodeRead[OwnLogs], frozen=True, kw_only=True, tag="audit"):
    """The audit logs of the groups that a node serves."""

    def answer(self, view: NodeView) -> OwnLogs:
        return OwnLogs(groups=view.served(), entries=view.audit())


class OwnVersions(NodeRead[tuple[VersionRecord, ...] | None], frozen=True, kw_only=True, tag="versions"):
    """The records of who applied which version, if the node leads the group that has them."""

    def answer(self, view: NodeView) -> tuple[VersionRecord, ...] | None:
        return view.version_records()


class OwnChain(NodeRead[str], frozen=True, kw_only=True, tag="chain"):
    """All documents that a node has, in one text."""

    def answer(self, view: NodeView) -> str:
        return view.chain()


class OwnTime(NodeRead[TimeTold], frozen=True, kw_only=True, tag="time"):
    """The time by a node's clock, and the document that it goes by."""

    def answer(self, view: NodeView) -> TimeTold:
        return view.time_told()


class NewerRevocations(NodeRead[tuple[bytes, ...]], frozen=True, kw_only=True, tag="revocations"):
    """The revocation lists that count more than those that the asking node has."""

    than: Ranks = {}

    def answer(self, view: NodeView) -> tuple[bytes, ...]:
        return view.newer_revocations(self.than)


class YouAreRevoked(NodeRead[None], frozen=True, kw_only=True, tag="revoked"):
    """Not a question: the node that gets it is refused, and this list says why."""

    proof: bytes = b""
    """Empty: the list is too long for a datagram."""

    def answer(self, view: NodeView) -> None:
        view.take_revocation(self.proof)


AnyRead = (
    OwnStatus
    | OwnHealth
    | OwnDevice
    | OwnDevices
    | OwnRoutine
    | OwnRoutines
    | OwnGroup
    | OwnTrace
    | OwnRuns
    | OwnAudit
    | OwnVersions
    | OwnChain
    | OwnTime
    | NewerRevocations
    | YouAreRevoked
)
_decode: Final = msgspec.msgpack.Decoder(AnyRead).decode


def answered(read: msgspec.Raw, view: NodeView) -> bytes | None:
    """The answer of a node to a read that came from another one; None: it does not know such a read."""
    try:
        known = _decode(read)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return msgspec.msgpack.encode(known.answer(view))


@cache
def answer_type(kind: type[NodeRead[A]]) -> type[A]:
    """The type that a read is answered with."""
    (base,) = kind.__orig_bases__  # type: ignore[attr-defined]  # NodeRead[...], see PEP 560
    (answer,) = get_args(base)
    return answer  # type: ignore[no-any-return]  # the parameter that the class was made with
