"""How a node comes to sit in a config: by a genesis right, an invitation, or the state from a leader.

A config exists for a node only if its journal says so. Genesis rights are written once, when the journal of
a deployment is initialised (or adopts the version that adds a group): no wiped, late or partitioned node can
begin a second history. Everything here is flushed before it is said.
"""

from comesh.core.effects import Persist
from comesh.core.group.config import GENESIS_STORE, Config, Seat
from comesh.core.group.ledger import Ledger
from comesh.core.group.replica import Replica
from comesh.core.group_messages import Invite, Ready, Start, State
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import ConfigDropped, ConfigKept, Image, KeptConfig, Promised, StateTaken
from comesh.core.program import Program
from comesh.core.records import HandoffRecord, Record
from comesh.core.stamps import NO_BALLOT, OPENING, Ballot
from comesh.core.step import Step


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


class Seating:
    """Invitations that this node holds, by group."""

    def __init__(self, own: NodeId, store: int) -> None:
        self._own = own
        self.store = store
        self.bases: dict[GroupId, Base] = {}

    def restore(self, kept: KeptConfig) -> None:
        self.bases[kept.config.group] = Base(kept.config, Ledger(kept.records, kept.number))

    def on_invite(self, invite: Invite, old: Replica | None, step: Step) -> Ready:
        """Keep the base, flushed; members of the config that is to end keep on with what they have."""
        successor = invite.successor
        mark = successor.mark
        if invite.records is None:
            if old is None or not old.whole:
                return Ready(mark, self.store, -1, 0)
            ledger = old.ledger
            records: tuple[Record, ...] = ()
        else:
            ledger = Ledger({record.key: record for record in invite.records}, invite.number)
            if ledger.digest != invite.digest:
                return Ready(mark, self.store, -1, 0)
            records = invite.records
        base = self.bases.get(successor.group)
        if base is None or base.config != successor or base.ledger.number != ledger.number:
            self.drop(successor.group, step)
            self.bases[successor.group] = Base(successor, ledger)
            step.do(Persist(ConfigKept(successor, self.store, ledger.number, records, installed=False)))
        return Ready(mark, self.store, ledger.number, ledger.digest)

    def on_start(self, start: Start, old: Replica | None, step: Step) -> KeptConfig | Ready:
        """The kept config, written; or that the base is not what the start builds on."""
        first = self.first_state(start, old)
        if first is None:
            return Ready(start.successor.mark, self.store, -1, 0)
        self.drop(start.successor.group, step)
        return keep(ConfigKept(start.successor, self.store, start.number, first, True), OPENING, step)

    def first_state(self, start: Start, old: Replica | None) -> tuple[Record, ...] | None:
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

    def install_from(self, state: State, step: Step) -> KeptConfig | None:
        """A leader gave the state of a config that this node has a seat in, but was never started in."""
        rank = state.config.rank_of(self._own)
        if rank is None or state.config.seats[rank].store != self.store or state.base >= 0:
            return None
        self.drop(state.config.group, step)
        record = ConfigKept(state.config, self.store, state.number, state.records, True)
        return keep(record, state.ballot, step)

    def take(self, config: Config, step: Step) -> KeptConfig | None:
        """Sit in a config that this node was Ready for, without having its first state: it counts below every
        state that was ever accepted there. The seat's store says that it was; what this journal does not
        hold, it never acted in."""
        rank = config.rank_of(self._own)
        if rank is None or config.seats[rank].store != self.store:
            return None
        self.drop(config.group, step)
        return keep(ConfigKept(config, self.store, 0, (), True), NO_BALLOT, step)

    def drop(self, group: GroupId, step: Step) -> None:
        """Another config was chosen, or this one is installed."""
        base = self.bases.pop(group, None)
        if base is not None:
            step.do(Persist(ConfigDropped(base.config.mark), flush=False))
