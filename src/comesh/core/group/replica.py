"""One member's side of one config: what it promised, what it accepted, and what it is now.

The rules that make it safe, each a small method so that it can be read, and broken in a test, by itself:

- a ballot below the promised one is refused (`_is_outdated`); promises are flushed before they are said;
- an update is accepted only in order, after the state that its leader opened with (`_follows`);
- nobody else is promised while the lease that this member's last ack gave may still run (`lease_left_ms`),
  and nothing at all for one lease after a restart;
- a member that lost power is not whole until a leader answers its nonce with the state (`_ends_recovery`).

Elections are in `election.py`, leading in `leadership.py`, the way to the next config in `handoff.py`.
"""

from typing import TYPE_CHECKING

from comesh.core.effects import LeaderChanged, Persist
from comesh.core.events import Timer
from comesh.core.group.config import UNBOUND_STORE, Config
from comesh.core.group.deadlines import Deadlines
from comesh.core.group.host import Host
from comesh.core.group.ledger import Ledger
from comesh.core.group.letters import take_letters
from comesh.core.group.patience import DOUBT, IDLE_LEASES, doubt, expect_leader
from comesh.core.group.roles import WAYS, Role
from comesh.core.group.serving import Serving
from comesh.core.group.transfer import adopt, state_for
from comesh.core.group_messages import (
    Acked,
    Answer,
    Ask,
    Body,
    Claim,
    Gap,
    GiveUp,
    Installed,
    Lettered,
    Promise,
    Pull,
    Ready,
    Recover,
    Refuse,
    Retire,
    State,
    Stranger,
    Sync,
    Update,
)
from comesh.core.journal import Appended, KeptConfig, Promised, StateTaken, outlives_power
from comesh.core.program import ProtocolSettings
from comesh.core.records import Entry, GroupRecord, Record
from comesh.core.stamps import FIRST_ERA, NO_BALLOT, OPENING, Ballot, Era
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.election import Election
    from comesh.core.group.leadership import Leadership

RECOVER_MS = 1000.0
"""Between two requests for the state after a power loss."""


class Replica:
    def __init__(self, host: Host, kept: KeptConfig, settings: ProtocolSettings) -> None:
        self.host = host
        self.settings = settings
        self.config: Config = kept.config
        self.mark = kept.config.mark
        self.address = kept.config.address
        rank = self.config.rank_of(host.own)
        assert rank is not None, f"{host.own} has no seat in {self.config}"
        self.rank: int = rank
        self.whole = kept.whole
        self.promised: Ballot = kept.promised
        self.accepted: Ballot = kept.accepted
        self.ledger = Ledger(kept.records, kept.number)
        self.committed = 0
        """The highest number that a leader called committed."""
        self.opened_with: Ballot = NO_BALLOT
        """The ballot under which the state was accepted that the current accepted ballot opened with."""
        self.opened_number = kept.number
        self.role = Role.FOLLOWER if kept.whole else Role.RECOVERING
        self.leader: int | None = None
        """The rank that this member follows."""
        self.leader_busy = False
        self.lease_ends_ms = float("-inf")
        """Until then nobody but the leader is promised anything."""
        self.holds_until_ms = float("-inf")
        """After a restart: until then nobody at all."""
        self.nonce = 0
        self.election: Election | None = None
        self.leadership: Leadership | None = None
        self.unwritten = False
        """The state was pulled, and is written together with the ballot that opens with it."""
        self.forced = False
        """An operator told this member to go on alone, once."""
        self.not_whole_since_ms: float | None = None
        """Since when f+1 members are known not to be whole."""
        self.deadlines = Deadlines(Timer("group", "due", self.mark))

    # -- small answers -----------------------------------------------------------------------------------

    @property
    def lease_ms(self) -> float:
        return self.config.lease_ms

    @property
    def era(self) -> Era:
        record = self.ledger.records.get("group")
        return record.era if isinstance(record, GroupRecord) else FIRST_ERA

    @property
    def quorum(self) -> int:
        """How many members, this one included, decide."""
        return 1 if self.forced else self.config.quorum

    @property
    def serving(self) -> Serving | None:
        return None if self.leadership is None else self.leadership.serving

    @property
    def peers(self) -> list[int]:
        """The other members; a seat that nobody took has none."""
        return [
            rank
            for rank, seat in enumerate(self.config.seats)
            if rank != self.rank and seat.store != UNBOUND_STORE
        ]

    @property
    def far_round_trip_ms(self) -> float:
        """To the farthest other member."""
        return max(
            (self.host.round_trip_ms(self.config.seats[rank].node) for rank in self.peers), default=0.0
        )

    def send(self, rank: int, body: Body, step: Step) -> None:
        self.host.send(self.config.seats[rank].node, self, body, step)

    def send_all(self, body: Body, step: Step) -> None:
        for rank in self.peers:
            self.send(rank, body, step)

    def become(self, role: Role, step: Step) -> None:
        if role is self.role:
            return
        assert (self.role, role) in WAYS, f"no way from {self.role} to {role}"
        self.role = role

    def persist_promise(self, ballot: Ballot, step: Step) -> None:
        """Flushed before it is said."""
        if ballot != self.promised:
            self.promised = ballot
            step.do(Persist(Promised(self.mark, ballot), self._flushes_promises()))

    def _flushes_promises(self) -> bool:
        return True

    def tell(self, state: str, step: Step, why: str = "") -> None:
        ledger = self.ledger
        step.observe(
            LeaderChanged(
                self.config.group,
                self.config,
                self.accepted if self.leadership is None else self.leadership.ballot,
                state,
                ledger.number,
                ledger.digest,
                self.era,
                why,
                ledger.snapshot(),
                self.forced,
            )
        )

    # -- begin, time, end --------------------------------------------------------------------------------

    def begin(self, step: Step, *, restarted: bool) -> None:
        """Take the seat: after a restart, or newly installed."""
        if restarted:
            self.holds_until_ms = step.now_ms + self.lease_ms * (1 + self.settings.drift)
        if not self.whole:
            self._ask_to_recover(step)
            self.deadlines.set("suspicion", IDLE_LEASES * self.lease_ms, step)
        elif restarted or self.rank != 0:
            expect_leader(self, step, heard=False)
        else:
            self.role = Role.INVITED
            self.host.open_first(self, step)

    def on_due(self, step: Step) -> None:
        for name in self.deadlines.due(step):
            match name:
                case "suspicion":
                    self.suspect(step)
                case "doubt":
                    doubt(self, step)
                case "recover":
                    self._ask_to_recover(step)
                case _ if self.election is not None:
                    self.election.on_due(name, step)
                case _ if self.leadership is not None:
                    self.leadership.on_due(name, step)
                case _:
                    pass

    def suspect(self, step: Step) -> None:
        """The leader is silent, dead, or gave up."""
        if self.role not in (Role.FOLLOWER, Role.RECOVERING):
            return
        successor = self.host.knows_successor(self)
        if successor is not None:
            self.retire(successor, step)
            return
        if self.host.unable:
            self.deadlines.set("suspicion", self.lease_ms, step)
            return
        wait_ms = max(self.holds_until_ms, self.lease_ends_ms) - step.now_ms
        if wait_ms > 0:
            self.deadlines.set("suspicion", wait_ms, step)
            return
        self.deadlines.clear("suspicion")
        self.leader = None
        self.host.elect(self, step)

    def force(self, step: Step) -> None:
        """Lead alone, in a new era, and hand off to a config that has a quorum."""
        if self.leadership is None:
            self.follow(step)
            self.deadlines.clear("suspicion", "recover")
            self.forced = True
            self.host.elect(self, step)

    def on_member_dead(self, step: Step) -> None:
        """Membership changed its mind about somebody: is it the leader?"""
        follows = self.leader if self.role is Role.FOLLOWER else None
        if follows is not None and self.host.is_dead(self.config.seats[follows].node):
            self.suspect(step)

    def follow(self, step: Step) -> None:
        """Step back from whatever this member was after, and wait for a leader."""
        self.forced = False
        leadership, self.leadership, self.election = self.leadership, None, None
        self.deadlines.clear(
            "ask", "defer", "claim", "resend", "spread", "touch", "giveup", "handoff", "start"
        )
        self.become(Role.FOLLOWER if self.whole else Role.RECOVERING, step)
        if leadership is not None and leadership.serving is not None:
            self.host.close_serving(leadership.serving, step)
            self.tell("following", step)
        expect_leader(self, step, heard=False)

    def retire(self, successor: Config, step: Step) -> None:
        """A quorum of a newer config is installed: forget this one, and remember which is newer."""
        leadership, self.leadership, self.election = self.leadership, None, None
        if leadership is not None and leadership.serving is not None:
            self.host.close_serving(leadership.serving, step)
        self.become(Role.RETIRED, step)
        self.deadlines.end(step)
        self.tell("retired", step)
        self.host.retired(self, successor, step)

    # -- messages ----------------------------------------------------------------------------------------

    def on_body(self, rank: int, body: Body, step: Step) -> None:
        """From another member; its seat and store were checked."""
        match body:
            case Update():
                self._on_update(rank, body, step)
            case Sync():
                self._on_sync(rank, body, step)
            case State():
                self._on_state(rank, body, step)
            case Ask():
                self._on_ask(rank, body, step)
            case Claim():
                self._on_claim(rank, body, step)
            case Pull():
                self.send(rank, state_for(self, body, NO_BALLOT, step), step)
            case Recover():
                self._on_recover(rank, body, step)
            case GiveUp():
                self._on_give_up(rank, body, step)
            case Retire():
                self.retire(body.successor, step)
            case Answer() | Promise() if self.election is not None:
                self.election.on_body(rank, body, step)
            case Stranger() if self.election is not None:
                self.election.on_stranger(rank, step)
            case Refuse():
                self._on_refuse(rank, body, step)
            case Acked() | Gap() | Installed() | Ready() if self.leadership is not None:
                self.leadership.on_body(rank, body, step)
            case _:
                pass  # late: what it answers is over

    def _is_outdated(self, ballot: Ballot) -> bool:
        return ballot < self.promised

    def _follows(self, update: Update) -> bool:
        """In order, after the state that this ballot opened with."""
        return update.ballot == self.accepted and update.first <= self.ledger.number + 1

    def _on_update(self, rank: int, update: Update, step: Step) -> None:
        if self._is_outdated(update.ballot):
            self.send(rank, Refuse(update.ballot, self.promised, 0.0), step)
            return
        if self.host.unable or not self.whole:
            return
        if not self._follows(update):
            self._ask_for_state(rank, update.ballot, step)
            return
        missing = update.entries[self.ledger.number + 1 - update.first :]
        for said in missing:
            entry = self.ledger.follow(said)
            if entry is None:
                self._ask_for_all(rank, update.ballot, step)
                return
            self.persist(entry, update.ballot, step)
        self.committed = max(self.committed, min(update.committed, self.ledger.number))
        self.leader_busy = update.busy
        self.acknowledge(rank, update.ballot, update.sent_ms, step)
        if isinstance(update, Lettered):
            take_letters(self, rank, update, step)

    def persist(self, entry: Entry, ballot: Ballot, step: Step) -> None:
        """Write the entry that the ledger ends with: before it is acknowledged."""
        flush = self.settings.strict or any(map(outlives_power, entry))
        step.do(Persist(Appended(self.mark, ballot, self.ledger.number, entry), flush))

    def acknowledge(self, rank: int, ballot: Ballot, sent_ms: int, step: Step) -> None:
        """Say that everything is written: this is also what gives the leader its lease."""
        if self.role in (Role.ASKING, Role.CLAIMING, Role.SYNCING, Role.SERVING, Role.HANDING_OFF):
            self.follow(step)
        self.leader = rank
        self.not_whole_since_ms = None
        self.lease_ends_ms = step.now_ms + self.lease_ms * (1 + self.settings.drift)
        expect_leader(self, step, heard=True)
        self.send(rank, Acked(ballot, self.ledger.number, sent_ms), step)

    def _ask_for_all(self, rank: int, ballot: Ballot, step: Step) -> None:
        """What the leader has does not follow from what this member holds."""
        self.send(rank, Gap(ballot, NO_BALLOT, 0, 0), step)

    def _ask_for_state(self, rank: int, ballot: Ballot, step: Step) -> None:
        ledger = self.ledger
        self.send(rank, Gap(ballot, self.accepted, ledger.number, ledger.digest), step)

    def _on_sync(self, rank: int, sync: Sync, step: Step) -> None:
        if self._is_outdated(sync.ballot):
            self.send(rank, Refuse(sync.ballot, self.promised, 0.0), step)
            return
        if self.host.unable:
            return
        self.persist_promise(sync.ballot, step)
        if not self.whole:
            self._ask_to_recover(step)
        elif sync.ballot == self.accepted:
            self.acknowledge(rank, sync.ballot, sync.sent_ms, step)
        elif (self.ledger.number, self.ledger.digest) == (sync.number, sync.digest):
            self.take(None, sync.number, sync.ballot, step)
            self.acknowledge(rank, sync.ballot, sync.sent_ms, step)
        else:
            self._ask_for_state(rank, sync.ballot, step)

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

    def _on_state(self, rank: int, state: State, step: Step) -> None:
        if self.election is not None and self.election.awaits(rank, state):
            if self.election.disowns(rank, state, step):
                return
            self.election.on_pulled(state, adopt(self.ledger, state), step)
            return
        if self._is_outdated(state.ballot) or self.host.unable or rank != state.ballot.rank:
            return
        if state.nonce and not self._ends_recovery(state):
            return  # an answer to a question of before
        if self.whole and state.ballot == self.accepted and state.number <= self.ledger.number:
            return  # it came twice
        if not self.whole and not state.nonce:
            return
        if not adopt(self.ledger, state):
            ask = self._ask_for_all if state.base == self.ledger.number else self._ask_for_state
            ask(rank, state.ballot, step)
            return
        self.persist_promise(state.ballot, step)
        self.take(state, state.number, state.ballot, step)
        if not self.whole:
            self.whole = True
            self.deadlines.clear("recover")
            if self.role is Role.RECOVERING:
                self.become(Role.FOLLOWER, step)
        self.acknowledge(rank, state.ballot, state.sent_ms, step)

    def _ends_recovery(self, state: State) -> bool:
        """Only an answer to this life's own question: any other may be older than what was acknowledged."""
        return not self.whole and state.nonce == self.nonce != 0

    # -- elections of others -----------------------------------------------------------------------------

    def lease_left_ms(self, rank: int, step: Step) -> float:
        """How long this member may not promise anything to that rank."""
        left_ms = self.holds_until_ms - step.now_ms
        if rank != self.leader:
            left_ms = max(left_ms, self.lease_ends_ms - step.now_ms)
            if self.leadership is not None and self.leadership.serving is not None:
                left_ms = max(left_ms, self.leadership.serving.lease_until_ms - step.now_ms)
        return max(left_ms, 0.0)

    def _on_ask(self, rank: int, ask: Ask, step: Step) -> None:
        leads = self.leadership is not None
        if self.leadership is not None:
            self.leadership.touch(rank, step)
        if ask == DOUBT:
            return  # who does not lead says nothing, and is missed
        would = not self.host.unable and not leads and self.lease_left_ms(rank, step) <= 0
        able = would and self.whole
        leader = self.rank if leads else self.leader
        answer = Answer(ask.ballot, would, able, self.whole, None if would else leader, self.promised)
        self.send(rank, answer, step)
        if able and self.rank < rank and self.role is Role.FOLLOWER:
            self.suspect(step)

    def _on_claim(self, rank: int, claim: Claim, step: Step) -> None:
        left_ms = self.lease_left_ms(rank, step)
        again = claim.ballot == self.promised and claim.ballot.rank == rank
        if claim.ballot.rank != rank or left_ms > 0 or (not again and claim.ballot <= self.promised):
            self.send(rank, Refuse(claim.ballot, self.promised, left_ms), step)
            return
        if self.host.unable:
            return
        if self.role in (Role.ASKING, Role.CLAIMING, Role.SYNCING, Role.SERVING, Role.HANDING_OFF):
            self.follow(step)
        self.persist_promise(claim.ballot, step)
        expect_leader(self, step, heard=False)
        ledger = self.ledger
        promise = Promise(claim.ballot, self.accepted, ledger.number, ledger.digest, self.whole, self.era)
        self.send(rank, promise, step)

    def _on_refuse(self, rank: int, refuse: Refuse, step: Step) -> None:
        if self.election is not None:
            self.election.on_refuse(rank, refuse, step)
        elif self.leadership is not None and refuse.promised > self.leadership.ballot:
            # Somebody claimed higher. If it does not lead by now, this member claims above it.
            self.follow(step)
            self.suspect(step)

    def _on_give_up(self, rank: int, give_up: GiveUp, step: Step) -> None:
        if rank == self.leader and give_up.ballot == self.accepted:
            self.lease_ends_ms = step.now_ms  # it never serves in that ballot again
            self.suspect(step)

    # -- recovery ----------------------------------------------------------------------------------------

    def _ask_to_recover(self, step: Step) -> None:
        if self.whole:
            return
        if self.nonce == 0:
            self.nonce = 1 + (self.host.draws.word() >> 2)
        self.send_all(Recover(self.nonce, self.promised), step)
        self.deadlines.set("recover", RECOVER_MS, step)

    def _on_recover(self, rank: int, recover: Recover, step: Step) -> None:
        leadership = self.leadership
        if leadership is not None:
            # Also while it syncs: what f+1 promised to follow holds whatever this member acknowledged, and
            # after an outage nobody else could make it whole.
            if leadership.ballot >= recover.promised:
                leadership.give_state(rank, recover, step)
            else:
                self.follow(step)
                self.suspect(step)
        elif rank == self.leader and self.role is Role.FOLLOWER:
            self.suspect(step)
