"""What queries need of the node that they are asked at, and nothing else of it. All of it is known at once.

`runtime/node_view.py` is the real one; tests make their own.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from comesh.core.effects import Answered
from comesh.core.events import ApplyAsked, FireAsked, OrderAsked, RecoverAsked
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.program import Program
from comesh.core.records import VersionRecord
from comesh.deployment.model import Deployment
from comesh.drivers.virtual.devices import VirtualDevice
from comesh.queries.answers import (
    AuditSeen,
    DeviceSeen,
    GroupSeen,
    NodeHealth,
    NodeStatus,
    RoutineSeen,
    TraceLine,
)

Ranks = dict[str, tuple[int, int, str]]
"""The rank of the newest revocation list of each authority."""
Command = FireAsked | ApplyAsked | OrderAsked
"""What the core answers by its request id."""


class TimeTold(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a node, and the document that it goes by."""

    wall_ms: float
    valid: bool
    """It goes by its own clock."""
    version: int = 0
    document: str = ""
    """The digest of the deployment with this version."""
    first: str = ""
    """The digest of the deployment with version 1: everything is planned upon it."""


class Compiler(Protocol):
    """Reads documents. ValueError: what is wrong with one, line by line."""

    def deployment(self, text: str) -> Deployment: ...
    def __call__(self, text: str, version: int, previous: Program | None) -> Program: ...


class NodeView(Protocol):
    """One node, as queries see it."""

    @property
    def own(self) -> NodeId: ...
    @property
    def compiler(self) -> Compiler: ...

    # -- what it knows of the mesh -----------------------------------------------------------------------

    @property
    def deployment(self) -> Deployment:
        """The newest document."""
        ...

    @property
    def program(self) -> Program:
        """The newest document, compiled."""
        ...

    @property
    def living(self) -> tuple[NodeId, ...]:
        """The nodes that live, this one among them."""
        ...

    def is_dead(self, node: NodeId) -> bool: ...
    def unreached(self) -> dict[NodeId, str]:
        """Nodes that this one has no way to, and why."""
        ...

    def groups(self) -> tuple[GroupSeen, ...]:
        """All groups as this node knows them, without asking anybody."""
        ...

    def all_paused(self) -> bool:
        """Everything is paused, and whatever is new will be, too."""
        ...

    # -- what it says of itself --------------------------------------------------------------------------

    def status(self) -> NodeStatus: ...
    def health(self) -> NodeHealth: ...
    def time_told(self) -> TimeTold: ...
    def wall_ms(self) -> float: ...
    def machine_wall_ms(self) -> float:
        """By the clock of its machine, whatever the node goes by."""
        ...

    def monotonic_ms(self) -> float: ...

    # -- what it serves ----------------------------------------------------------------------------------

    def served(self) -> tuple[GroupId, ...]: ...
    def devices(self) -> tuple[DeviceSeen, ...]: ...
    def routines(self) -> tuple[RoutineSeen, ...]: ...
    def audit(self) -> tuple[AuditSeen, ...]: ...
    def version_records(self) -> tuple[VersionRecord, ...] | None:
        """The records of who applied what; None: this node does not lead the group that has them."""
        ...

    def trace(self, run: str) -> tuple[TraceLine, ...]: ...
    def runs(self) -> tuple[TraceLine, ...]:
        """The last line of each run."""
        ...

    def texts(self) -> Mapping[int, str]:
        """All documents that it has, from the first one on."""
        ...

    def chain(self) -> str:
        """All documents that it has, in one text."""
        ...

    # -- what it is given --------------------------------------------------------------------------------

    def new_request(self) -> str:
        """An id that no order had before."""
        ...

    def give(self, command: Command | RecoverAsked) -> None: ...
    def on_answer(self, request: str, told: Callable[[Answered], None]) -> Callable[[], None]:
        """Have answers to this request told; what is returned ends that."""
        ...

    def newer_revocations(self, than: Ranks) -> tuple[bytes, ...]: ...
    def take_revocation(self, proof: bytes) -> None: ...

    # -- its virtual devices -----------------------------------------------------------------------------

    @property
    def devices_at(self) -> str | None:
        """Where virtual devices are that are no part of a node: host:port of their process."""
        ...

    def virtual(self, device: DeviceId) -> VirtualDevice | None:
        """A virtual device that is part of this node."""
        ...

    def home_of(self, device: DeviceId) -> NodeId | None:
        """The node that a virtual device is part of."""
        ...

    def disturb(self, device: DeviceId, be: str, ms: float) -> None: ...

    def warn(self, what: str) -> None: ...
    def error(self, what: str) -> None: ...
