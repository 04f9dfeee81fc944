"""How a node comes to sit in a config: by a genesis right, an invitation, or the state from a leader.

A config exists for a node only if its journal says so. Genesis rights are written once, when the journal of
a deployment is initialised (or adopts the version that adds a group): no wiped, late or partitioned node can
begin a second history. Everything here is flushed before it is said.

About configs that this node does not sit in it answers `Moved` for what is over, and that it is a stranger
where its seat belongs to another journal.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from comesh.core.effects import Persist
from comesh.core.group.config import GENESIS_STORE, Address, Config, Seat
from comesh.core.group.ledger import Ledger
from comesh.core.group.replica import Replica
from comesh.core.group.versions import Versions
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
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import ConfigDropped, ConfigKept, Image, KeptConfig, Promised, StateTaken
from comesh.core.program import Program
from comesh.core.records import HandoffRecord, Record
from comesh.core.stamps import NO_BALLOT, OPENING, Ballot
from comesh.core.step import Step

EARLY_MESSAGES: Final = 64
"""Maximum messages kept of configs that this node is about to be started in."""


class Seats(Protocol):
    """The node, as joining sees it: the seats that it has."""

    own: NodeId
    store: int
    unable: bool
    replicas: dict[int, Replica]
    addressed: dict[Address, Replica]
    versions: Versions

    def successor_of(self, group: GroupId, number: int) -> Config | None:
        """A config after that one, of which a quorum is installed."""

    def seat(self, kept: KeptConfig, step: Step, *, restarted: bool) -> Replica:
        """Sit in a config that the journal holds now."""
        ...

    def send_message(self, to: NodeId, message: InConfig, step: Step) -> None: ...

    def on_in_config(self, sender: NodeId, message: InConfig, step: Step) -> None: ...

    @property
    def ask_document(self) -> Callable[[NodeId, Step], None]:
        """Asks a node for the deployment version after the newest that is here."""
        ...


class Base:
    """What an invited node keeps: the config to come, and a state to start from."""

    __slots__ = ("config", "ledger")

    def __init__(self, config: Config, ledger: Ledger) -> None:
        self.config = config
        self.ledger = ledger


def genesis_config(program: Program, group: GroupId) -> Config:
    seats = tuple(Seat(node, GENESIS_STORE) for node in program.plan.genesis[group])
    return Config(group, 1, 0, seats, program.settings.lease_ms, _first_version(program, group))


def _first_version(program: Program, group: GroupId) -> int:
    """Part of the config's identity, so the same for whoever holds whatever later version."""
    return program.first_versions.get(group, 1)


def keep(record: ConfigKept, ballot: Ballot, step: Step) -> KeptConfig:
    """Write a config with its state, as the leader of that ballot opened or gave it."""
    mark = record.config.mark
    promised, taken = Promised(mark, ballot), StateTaken(mark, ballot, record.number, None)
    step.do(Persist(record, flush=False))
    step.do(Persist(promised, flush=False))
    step.do(Persist(taken))
    image = Image()
    for one in (record, promised, taken):
        image.apply(one)
    return image.configs[mark]


class Joining:
    """The invitations that this node holds, and what comes for configs that it does not sit in."""

    def __init__(self, seats: Seats) -> None:
        self._seats = seats
        self.bases: dict[GroupId, Base] = {}
        """By group: of the config that this node is invited to."""
        self._early: deque[tuple[NodeId, InConfig]] = deque(maxlen=EARLY_MESSAGES)

    # -- messages ----------------------------------------------------------------------------------------

    def on_early(self, sender: NodeId, message: InConfig) -> None:
        """A member that was started sooner says that it is installed."""
        self._early.append((sender, message))

    def _reply(self, to: NodeId, message: InConfig, body: Body, step: Step) -> None:
        """Answer about a config that this node has no replica of."""
        reply = InConfig(*message.address, self._seats.store, body)
        self._seats.send_message(to, reply, step)

    def on_unknown(self, sender: NodeId, message: InConfig, step: Step) -> None:
        seats = self._seats
        newest = seats.successor_of(message.group, message.number)
        body = message.body
        if newest is not None:
            if isinstance(body, Ask | Claim | Recover | Update | Sync):
                self._reply(sender, message, Moved(newest), step)
            return
        if seats.unable:
            return
        match body:
            case State():
                kept = self._install_from(body, step)
                if kept is not None:
                    replica = seats.seat(kept, step, restarted=True)
                    replica.acknowledge(body.ballot.rank, body.ballot, body.sent_ms, step)
            case Sync() | Update() if self._is_invited(message):
                self._reply(sender, message, Gap(body.ballot, NO_BALLOT, 0, 0), step)
            case Sync() | Update() | Ask() | Claim() | Recover():
                self._reply(sender, message, Stranger(), step)
            case SeatGiven():
                kept = self._take(body.config, step)
                if kept is not None:
                    seats.seat(kept, step, restarted=True)
            case _:
                pass

    def _is_invited(self, message: InConfig) -> bool:
        base = self.bases.get(message.group)
        return base is not None and base.config.number == message.number

    def on_summons(
        self, sender: NodeId, message: InConfig, body: Invite | Start, old: Replica | None, step: Step
    ) -> None:
        seats = self._seats
        successor = body.successor
        rank = successor.rank_of(seats.own)
        if seats.unable or rank is None:
            return
        newest = seats.successor_of(message.group, successor.number)
        seated = seats.replicas.get(successor.mark)
        if seated is not None:
            if isinstance(body, Start):
                self._start_seated(sender, message, body, seated, step)
        elif newest is not None:
            self._reply(sender, message, Moved(newest), step)
        elif seats.versions.get(successor.version) is None:
            seats.ask_document(sender, step)
        elif isinstance(body, Invite):
            self._reply(sender, message, self._keep_base(body, old, step), step)
        elif successor.seats[rank].store == self._seats.store:
            self._start(sender, message, body, old, step)

    def _start(
        self, sender: NodeId, message: InConfig, start: Start, old: Replica | None, step: Step
    ) -> None:
        kept = self._keep_started(start, old, step)
        if isinstance(kept, Ready):
            self._reply(sender, message, kept, step)
            return
        replica = self._seats.seat(kept, step, restarted=False)
        self._say_installed(sender, message, replica, start.number, step)
        for early in [one for one in self._early if one[1].address == replica.address]:
            self._early.remove(early)
            self._seats.on_in_config(*early, step)

    def _start_seated(
        self, sender: NodeId, message: InConfig, start: Start, replica: Replica, step: Step
    ) -> None:
        """It sits already: for having been started, or, without a state, for another member's word."""
        if replica.accepted == NO_BALLOT:
            first = self._first_state(start, self._seats.addressed.get(message.address))
            if first is None:
                lacking = Ready(start.successor.mark, self._seats.store, -1, 0)
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
            replica.send(0, Installed(replica.mark, number), step)

    # -- the journal -------------------------------------------------------------------------------------

    def restore(self, kept: KeptConfig) -> None:
        self.bases[kept.config.group] = Base(kept.config, Ledger(kept.records, kept.number))

    def _keep_base(self, invite: Invite, old: Replica | None, step: Step) -> Ready:
        """Keep the base, flushed; members of the config that is to end keep on with what they have."""
        successor = invite.successor
        mark, store = successor.mark, self._seats.store
        if invite.records is None:
            if old is None or not old.whole:
                return Ready(mark, store, -1, 0)
            ledger = old.ledger
            records: tuple[Record, ...] = ()
        else:
            ledger = Ledger({record.key: record for record in invite.records}, invite.number)
            if ledger.digest != invite.digest:
                return Ready(mark, store, -1, 0)
            records = invite.records
        base = self.bases.get(successor.group)
        if base is None or base.config != successor or base.ledger.number != ledger.number:
            self._drop(successor.group, step)
            self.bases[successor.group] = Base(successor, ledger)
            step.do(
                Persist(ConfigKept(successor, self._seats.store, ledger.number, records, installed=False))
            )
        return Ready(mark, store, ledger.number, ledger.digest)

    def _keep_started(self, start: Start, old: Replica | None, step: Step) -> KeptConfig | Ready:
        """The kept config, written; or that the base is not what the start builds on."""
        first = self._first_state(start, old)
        if first is None:
            return Ready(start.successor.mark, self._seats.store, -1, 0)
        self._drop(start.successor.group, step)
        return keep(ConfigKept(start.successor, self._seats.store, start.number, first, True), OPENING, step)

    def _first_state(self, start: Start, old: Replica | None) -> tuple[Record, ...] | None:
        """What the new config begins with; None: the base is not what the start builds on."""
        records = self._last_state(start, old)
        if records is None:
            return None
        # The handoff entry was the old config's last word; the new one begins without it.
        return tuple(record for record in records if not isinstance(record, HandoffRecord))

    def _last_state(self, start: Start, old: Replica | None) -> tuple[Record, ...] | None:
        if start.base < 0:
            return start.records
        if start.base == start.number and not start.entries and old is not None and old.whole:
            fits = (old.ledger.number, old.ledger.digest) == (start.number, start.digest)
            return old.ledger.snapshot() if fits else None
        base = self.bases.get(start.successor.group)
        if base is None or base.ledger.number != start.base:
            return None
        ledger = Ledger(base.ledger.records, base.ledger.number)
        follows = all(ledger.follow(entry) is not None for entry in start.entries)
        fits = follows and (ledger.number, ledger.digest) == (start.number, start.digest)
        return ledger.snapshot() if fits else None

    def _install_from(self, state: State, step: Step) -> KeptConfig | None:
        """A leader gave the state of a config that this node has a seat in, but was never started in."""
        rank = state.config.rank_of(self._seats.own)
        if rank is None or state.config.seats[rank].store != self._seats.store or state.base >= 0:
            return None
        self._drop(state.config.group, step)
        record = ConfigKept(state.config, self._seats.store, state.number, state.records, True)
        return keep(record, state.ballot, step)

    def _take(self, config: Config, step: Step) -> KeptConfig | None:
        """Sit in a config that this node was Ready for, without having its first state: it counts below every
        state that was ever accepted there. The seat's store says that it was; what this journal does not
        hold, it never acted in."""
        rank = config.rank_of(self._seats.own)
        if rank is None or config.seats[rank].store != self._seats.store:
            return None
        self._drop(config.group, step)
        return keep(ConfigKept(config, self._seats.store, 0, (), True), NO_BALLOT, step)

    def _drop(self, group: GroupId, step: Step) -> None:
        """Another config was chosen, or this one is installed."""
        base = self.bases.pop(group, None)
        if base is not None:
            step.do(Persist(ConfigDropped(base.config.mark), flush=False))
