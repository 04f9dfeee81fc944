"""Messages about configs that this node does not sit in, or is to sit in next.

It answers `Moved` for what is over, keeps the base that an invitation brings, takes the seat that a Start, a
leader's State or another member gives it, and says that it is a stranger where its seat belongs to another
journal.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from comesh.core.group.replica import Replica
from comesh.core.group.seating import Seating
from comesh.core.group_messages import (
    Ask,
    Body,
    Claim,
    Gap,
    InConfig,
    Installed,
    Invite,
    Moved,
    Ready,
    Recover,
    SeatGiven,
    Start,
    State,
    Stranger,
    Sync,
    Update,
)
from comesh.core.ids import NodeId
from comesh.core.stamps import NO_BALLOT, OPENING
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.groups import Groups

EARLY_MESSAGES: Final = 64
"""Of configs that this node is about to be started in: kept until it is."""


class Admission:
    def __init__(self, groups: "Groups", seating: Seating) -> None:
        self._groups = groups
        self._seating = seating
        self.early: deque[tuple[NodeId, InConfig]] = deque(maxlen=EARLY_MESSAGES)

    def _reply(self, to: NodeId, message: InConfig, body: Body, step: Step) -> None:
        """Answer about a config that this node has no replica of."""
        store = self._seating.store
        reply = InConfig(*message.address, store, body)
        self._groups.send_message(to, reply, step)

    def on_unknown(self, sender: NodeId, message: InConfig, step: Step) -> None:
        groups = self._groups
        newest = groups.successor_of(message.group, message.number)
        body = message.body
        if newest is not None:
            if isinstance(body, Ask | Claim | Recover | Update | Sync):
                self._reply(sender, message, Moved(newest), step)
            return
        if groups.unable:
            return
        match body:
            case State():
                kept = self._seating.install_from(body, step)
                if kept is not None:
                    replica = groups.seat(kept, step, restarted=True)
                    replica.acknowledge(body.ballot.rank, body.ballot, body.sent_ms, step)
            case Sync() | Update() if self._is_invited(message):
                self._reply(sender, message, Gap(body.ballot, NO_BALLOT, 0, 0), step)
            case Sync() | Update() | Ask() | Claim() | Recover():
                self._reply(sender, message, Stranger(), step)
            case SeatGiven():
                kept = self._seating.take(body.config, step)
                if kept is not None:
                    groups.seat(kept, step, restarted=True)
            case _:
                pass

    def _is_invited(self, message: InConfig) -> bool:
        base = self._seating.bases.get(message.group)
        return base is not None and base.config.number == message.number

    def on_summons(
        self, sender: NodeId, message: InConfig, body: Invite | Start, old: Replica | None, step: Step
    ) -> None:
        groups = self._groups
        successor = body.successor
        rank = successor.rank_of(groups.own)
        if groups.unable or rank is None:
            return
        newest = groups.successor_of(message.group, successor.number)
        seated = groups.replicas.get(successor.mark)
        if seated is not None:
            if isinstance(body, Start):
                self._start_seated(sender, message, body, seated, step)
        elif newest is not None:
            self._reply(sender, message, Moved(newest), step)
        elif groups.versions.get(successor.version) is None:
            groups.post_office.ask_document(sender, step)
        elif isinstance(body, Invite):
            self._reply(sender, message, self._seating.on_invite(body, old, step), step)
        elif successor.seats[rank].store == self._seating.store:
            self._start(sender, message, body, old, step)

    def _start(
        self, sender: NodeId, message: InConfig, start: Start, old: Replica | None, step: Step
    ) -> None:
        kept = self._seating.on_start(start, old, step)
        if isinstance(kept, Ready):
            self._reply(sender, message, kept, step)
            return
        replica = self._groups.seat(kept, step, restarted=False)
        self._say_installed(sender, message, replica, start.number, step)
        for early in [one for one in self.early if one[1].address == replica.address]:
            self.early.remove(early)
            self._groups.on_in_config(*early, step)

    def _start_seated(
        self, sender: NodeId, message: InConfig, start: Start, replica: Replica, step: Step
    ) -> None:
        """It sits already: for having been started, or, without a state, for another member's word."""
        if replica.accepted == NO_BALLOT:
            first = self._seating.first_state(start, self._groups.addressed.get(message.address))
            if first is None:
                lacking = Ready(start.successor.mark, self._seating.store, -1, 0)
                self._reply(sender, message, lacking, step)
                return
            replica.take_first(first, start.number, step)
        self._say_installed(sender, message, replica, start.number, step)

    def _say_installed(
        self, sender: NodeId, message: InConfig, replica: Replica, number: int, step: Step
    ) -> None:
        """To who started it, and to the leader that everyone expects."""
        self._reply(sender, message, Installed(replica.mark, number), step)
        if replica.rank != 0 and replica.promised == OPENING:
            self._groups.send(replica.config.nodes[0], replica, Installed(replica.mark, number), step)
