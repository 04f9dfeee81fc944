"""What a replica asks of the node that it lives in."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from comesh.core.draws import Draws
from comesh.core.group.config import Config
from comesh.core.group.serving import Serving
from comesh.core.group_messages import Body
from comesh.core.ids import NodeId
from comesh.core.step import Step
from comesh.core.work_messages import Letter

if TYPE_CHECKING:
    from comesh.core.group.replica import Replica


class Host(Protocol):
    """The node, as its replicas see it."""

    own: NodeId
    store: int
    draws: Draws
    unable: bool
    """The journal cannot be written."""

    def send(self, to: NodeId, replica: "Replica", body: Body, step: Step) -> None: ...

    @property
    def deliver_early(self) -> Callable[[NodeId, Letter, Step], None]:
        """Takes a letter whose entry is known here to be committed, and who sent it."""
        ...

    def round_trip_ms(self, node: NodeId) -> float: ...

    def is_dead(self, node: NodeId) -> bool:
        """Believed dead or away, or removed from the deployment: not to be counted on."""

    def may_live(self, node: NodeId) -> bool:
        """Not believed dead. Who was removed runs on as long as it has a seat, and is believed nothing of."""

    def open_serving(self, replica: "Replica", step: Step) -> Serving: ...

    def close_serving(self, serving: Serving, step: Step) -> None: ...

    def next_config(self, replica: "Replica", left_out: frozenset[NodeId], step: Step) -> Config | None:
        """The config that should follow now, with unbound seats; None: this one stays."""

    def retired(self, replica: "Replica", successor: Config, step: Step) -> None: ...

    def elect(self, replica: "Replica", step: Step) -> None:
        """Begin an election."""

    def open_first(self, replica: "Replica", step: Step) -> None:
        """Lead as the rank 0 that everyone expects."""

    def knows_successor(self, replica: "Replica") -> Config | None:
        """A newer config of the group that serves already, as far as this node has heard."""
