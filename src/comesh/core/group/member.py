"""The seat of this node in a config: its state, what it writes of it, and the phase that it is in.

`replica.py` adds what a member does with messages and time. Phases work on a `Member`, so that nothing here
knows of them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, Protocol

from comesh.core.draws import Draws
from comesh.core.effects import LeaderChanged, Persist
from comesh.core.events import Timer
from comesh.core.group.config import UNBOUND_STORE, Config
from comesh.core.group.deadlines import Deadlines
from comesh.core.group.ledger import Ledger
from comesh.core.group.phases import TRANSITIONS, Following, Phase, Role, Trigger
from comesh.core.group.serving import Serving
from comesh.core.group_messages import Body, Gap, Pull, Recover, State
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import Appended, KeptConfig, Promised, StateTaken, outlives_power
from comesh.core.program import Program, ProtocolSettings
from comesh.core.records import Entry, GroupRecord, Record
from comesh.core.stamps import FIRST_ERA, NO_BALLOT, OPENING, Ballot, Era
from comesh.core.step import Step
from comesh.core.work_messages import GroupMessage

IDLE_LEASES: Final = 2.5
BUSY_LEASES: Final = 1.5
"""A leader that was not heard for so many leases is suspected: two touches in a row have to be lost."""
DOUBT_LEASES: Final = 1.25
"""A leader that was not heard for so many is asked: everybody is touched once per lease."""
TWO: Final = 2


class View(NamedTuple):
    """What a leader goes by when it looks for the next config."""

    newest: Program
    living: Collection[NodeId]
    table: Mapping[GroupId, tuple[NodeId, ...]]
    """The members of each group, as the directory has them."""


class Host(Protocol):
    """The node, as the members on it see it."""

    own: NodeId
    store: int
    draws: Draws
    unable: bool
    """The journal cannot be written."""

    def send(self, to: NodeId, member: "Member", body: Body, step: Step) -> None: ...

    @property
    def deliver_early(self) -> Callable[[NodeId, GroupMessage, Step], None]:
        """Takes a message whose entry is known here to be committed, and who sent it."""
        ...

    def round_trip_ms(self, node: NodeId) -> float: ...

    def is_dead(self, node: NodeId) -> bool:
        """Believed dead or away, or removed from the deployment: not to be counted on."""

    def may_live(self, node: NodeId) -> bool:
        """Not believed dead. Who was removed runs on as long as it has a seat, and is believed nothing of."""

    def open_serving(self, member: "Member", ballot: Ballot, step: Step) -> Serving: ...

    def close_serving(self, serving: Serving, step: Step) -> None: ...

    def view(self) -> View: ...

    def retired(self, member: "Member", successor: Config, step: Step) -> None: ...

    def knows_successor(self, member: "Member") -> Config | None:
        """A newer config of the group that serves already, as far as this node has heard."""


class Member:
    def __init__(self, host: Host, kept: KeptConfig, settings: ProtocolSettings) -> None:
        self.host = host
        self.settings = settings
        self.config: Config = kept.config
        self.mark = kept.config.mark
        self.address = kept.config.address
        self.lease_ms: float = kept.config.lease_ms
        rank = self.config.rank_of(host.own)
        assert rank is not None, f"{host.own} has no seat in {self.config}"
        self.rank: int = rank
        self.peers = tuple(
            other
            for other, seat in enumerate(self.config.seats)
            if other != rank and seat.store != UNBOUND_STORE
        )
        """The ranks of the other members; a seat that nobody took has none."""
        self.whole = kept.whole
        self.promised: Ballot = kept.promised
        self.accepted: Ballot = kept.accepted
        self.ledger = Ledger(kept.records, kept.number)
        self.committed = 0
        """The highest number that a leader called committed."""
        self.opened_with: Ballot = NO_BALLOT
        """The ballot under which the state was accepted that the current accepted ballot opened with."""
        self.opened_number = kept.number
        self.leader: int | None = None
        """The rank that this member follows."""
        self.leader_busy = False
        self.unwritten = False
        """The state was pulled, and is written together with the ballot that opens with it."""
        self.forced = False
        """An operator told this member to go on alone, once."""
        self.not_whole_since_ms: float | None = None
        """Since when f+1 members are known not to be whole."""
        self.deadlines = Deadlines(Timer("group", "due", self.mark))
        self.phase: Phase = Following(Role.FOLLOWER if kept.whole else Role.RECOVERING)

    # -- small answers -----------------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return self.phase.role

    @property
    def era(self) -> Era:
        record = self.ledger.records.get("group")
        return record.era if isinstance(record, GroupRecord) else FIRST_ERA

    @property
    def far_round_trip_ms(self) -> float:
        """To the farthest other member."""
        seats, host = self.config.seats, self.host
        return max((host.round_trip_ms(seats[rank].node) for rank in self.peers), default=0.0)

    def completes_quorum(self) -> bool:
        """A leader and one member decide, or this member and its leader."""
        return not self.forced and self.config.quorum == TWO

    # -- saying ------------------------------------------------------------------------------------------

    def send(self, rank: int, body: Body, step: Step) -> None:
        self.host.send(self.config.seats[rank].node, self, body, step)

    def send_all(self, body: Body, step: Step) -> None:
        for rank in self.peers:
            self.send(rank, body, step)

    def tell(self, state: str, step: Step, why: str = "") -> None:
        """Tell whoever watches. A leader has accepted the ballot that it leads by."""
        ledger = self.ledger
        step.observe(
            LeaderChanged(
                self.config.group,
                self.config,
                self.accepted,
                state,
                ledger.number,
                ledger.digest,
                self.era,
                why,
                ledger.snapshot(),
                self.forced,
            )
        )

    def state_for(self, asked: Gap | Pull | Recover, ballot: Ballot, step: Step) -> State:
        """The accepted state, for a member that has what it says it accepted."""
        if isinstance(asked, Recover):
            accepted, number = NO_BALLOT, 0
        else:
            accepted, number = asked.accepted, asked.number
        ledger = self.ledger
        entries = ledger.said_since(number) if self._has_beginning(accepted, number) else None
        return State(
            ballot=ballot,
            accepted=self.accepted,
            number=ledger.number,
            digest=ledger.digest,
            committed=self.committed,
            base=-1 if entries is None else number,
            records=ledger.snapshot() if entries is None else (),
            entries=entries or (),
            nonce=0 if isinstance(asked, Gap) else asked.nonce,
            config=self.config,
            sent_ms=self.phase.sent_ms(step),
        )

    def _has_beginning(self, accepted: Ballot, number: int) -> bool:
        """One leader's history only grows: what was accepted under its ballot is a beginning of it."""
        if accepted == self.accepted and accepted != NO_BALLOT:
            return number <= self.ledger.number
        return accepted == self.opened_with != NO_BALLOT and number <= self.opened_number

    # -- writing -----------------------------------------------------------------------------------------

    def persist_promise(self, ballot: Ballot, step: Step) -> None:
        """Flushed before it is said."""
        if ballot != self.promised:
            self.promised = ballot
            step.do(Persist(Promised(self.mark, ballot), self._flushes_promises()))

    def _flushes_promises(self) -> bool:
        return True

    def persist(self, entry: Entry, ballot: Ballot, step: Step) -> None:
        """Write the entry that the ledger ends with: before it is acknowledged."""
        flush = self.settings.strict or any(map(outlives_power, entry))
        step.do(Persist(Appended(self.mark, ballot, self.ledger.number, entry), flush))

    def take(self, state: State | None, number: int, ballot: Ballot, step: Step) -> None:
        """Accept a state under a ballot: another one, or the one held (state None)."""
        self.opened_with = self.accepted if state is None else state.accepted
        self.opened_number = number
        self.accepted = ballot
        records = self.ledger.snapshot() if state is not None or self.unwritten else None
        self.unwritten = False
        flush = self.settings.strict or "handoff" in self.ledger.records
        step.do(Persist(StateTaken(self.mark, ballot, number, records), flush))

    def take_era(self, record: GroupRecord, ballot: Ballot, step: Step) -> None:
        """Accept the own state under a ballot, with the entry that opens an era."""
        self.opened_with, self.opened_number = self.accepted, self.ledger.number
        self.unwritten = False
        self.ledger.append((record,))
        self.accepted = ballot
        step.do(Persist(StateTaken(self.mark, ballot, self.ledger.number, self.ledger.snapshot())))

    def take_first(self, records: tuple[Record, ...], number: int, step: Step) -> None:
        """The state that the config began with comes after the seat: it is below whatever was promised, and
        does not make a member whole that lost power since it took its seat."""
        self.ledger.replace(records, number)
        self.accepted = self.opened_with = OPENING
        self.opened_number = number
        step.do(Persist(StateTaken(self.mark, OPENING, number, records, self.whole)))

    # -- phases ------------------------------------------------------------------------------------------

    def move(self, trigger: Trigger, phase: Phase | None = None) -> None:
        """Take the way that a trigger opens, within this phase or to another; this one's deadlines end."""
        role = TRANSITIONS.get((self.phase.role, trigger))
        assert role is not None, f"there is no way for {self.phase.role}: {trigger}"
        if role is Role.FOLLOWER and not self.whole:
            role = Role.RECOVERING
        if phase is not None:
            self.deadlines.clear(*self.phase.deadlines)
            self.phase = phase
        self.phase.role = role

    def follow(self, step: Step) -> None:
        """Step back from whatever this member was after, and wait for a leader."""
        self.forced = False
        serving = self.phase.serving
        if not isinstance(self.phase, Following):
            self.move(Trigger.DEPOSED, Following(Role.FOLLOWER))
        if serving is not None:
            self.host.close_serving(serving, step)
            self.tell("following", step)
        self.expect_leader(step, heard=False)

    def expect_leader(self, step: Step, *, heard: bool) -> None:
        """A leader was heard, or is due."""
        leases = BUSY_LEASES if self.leader_busy else IDLE_LEASES
        self.deadlines.set("suspicion", leases * self.lease_ms, step)
        if heard:
            self.deadlines.set("doubt", DOUBT_LEASES * self.lease_ms, step)
        else:
            self.deadlines.clear("doubt")

    def retire(self, successor: Config, step: Step) -> None:
        """A quorum of a newer config is installed: forget this one, and remember which is newer."""
        serving = self.phase.serving
        if serving is not None:
            self.host.close_serving(serving, step)
        self.move(Trigger.SUCCEEDED, Following(Role.RETIRED))
        self.deadlines.end(step)
        self.tell("retired", step)
        self.host.retired(self, successor, step)
