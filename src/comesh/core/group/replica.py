"""One member's side of one config: what it does with messages, and with time.

The rules that make it safe, each a small method so that it can be read, and broken in a test, by itself:

- a ballot below the promised one is refused (`_is_outdated`); promises are flushed before they are said;
- an update is accepted only in order, after the state that its leader opened with (`_follows`);
- nobody else is promised while the lease that this member's last ack gave may still run (`lease_left_ms`),
  and nothing at all for one lease after a restart;
- a member that lost power is not whole until a leader answers its nonce with the state (`_ends_recovery`);
- messages that come with an update are acted on only where this member and its leader are a quorum
  (`completes_quorum`).

What a member holds and writes is in `member.py`; elections are in `election.py`, leading in `leadership.py`,
the way to the next config in `handoff.py`.
"""

from enum import StrEnum
from typing import Final

from comesh.core.effects import CommitKnown
from comesh.core.group.election import Election
from comesh.core.group.leadership import Leadership
from comesh.core.group.ledger import Ledger
from comesh.core.group.member import BUSY_LEASES, DOUBT_LEASES, IDLE_LEASES, Host, Member
from comesh.core.group.phases import Following, Role, Trigger
from comesh.core.group_messages import (
    Acked,
    Answer,
    Ask,
    Body,
    Claim,
    Gap,
    GiveUp,
    Installed,
    Promise,
    Pull,
    Recover,
    Refuse,
    Retire,
    State,
    Stranger,
    Sync,
    Update,
    UpdateWithMessages,
)
from comesh.core.journal import KeptConfig
from comesh.core.program import ProtocolSettings
from comesh.core.stamps import NO_BALLOT, OPENING, Ballot
from comesh.core.step import Step

RECOVER_MS: Final = 1000.0
"""Between two requests for the state after a power loss."""
DOUBT: Final = Ask(NO_BALLOT)
"""Asks a leader whether it still leads; the member itself wants nothing."""
DOUBT_ROUND_TRIPS: Final = 2.0
MIN_DOUBT: Final = 0.25
"""Part of a lease that an answer may take, however near the leader is. One that stands still is not suspected
sooner for it than a busy one is."""


class BallotRule(StrEnum):
    """When a message with a ballot is heeded, in the words of the table in docs/protocol.md."""

    REFUSE_BELOW_PROMISED = "not below the promised ballot; else `Refuse`"
    DROP_BELOW_PROMISED = "not below the promised ballot, or the state that this member pulled"
    CLAIM_ABOVE_PROMISED = "the claimer's own, and above the promised ballot or the same; else `Refuse`"
    OF_MY_LEADER = "the one that was accepted, from the leader that is followed"
    OF_MY_ELECTION = "the one that this member asks or claims for"
    OF_MY_LEADERSHIP = "the one that this member leads by"


_Balloted = Update | Sync | State | Claim | GiveUp | Answer | Promise | Acked | Gap
BALLOT_RULES: dict[type[_Balloted], BallotRule] = {
    Update: BallotRule.REFUSE_BELOW_PROMISED,
    UpdateWithMessages: BallotRule.REFUSE_BELOW_PROMISED,
    Sync: BallotRule.REFUSE_BELOW_PROMISED,
    State: BallotRule.DROP_BELOW_PROMISED,
    Claim: BallotRule.CLAIM_ABOVE_PROMISED,
    GiveUp: BallotRule.OF_MY_LEADER,
    Answer: BallotRule.OF_MY_ELECTION,
    Promise: BallotRule.OF_MY_ELECTION,
    Acked: BallotRule.OF_MY_LEADERSHIP,
    Gap: BallotRule.OF_MY_LEADERSHIP,
}
"""Looked at before anything else. Ask, Pull and Recover promise nothing and are heeded under any ballot; a
Refuse is for whoever claimed or leads, and the rest is of configs, not of ballots."""


class Replica(Member):
    def __init__(self, host: Host, kept: KeptConfig, settings: ProtocolSettings) -> None:
        super().__init__(host, kept, settings)
        self.lease_ends_ms = float("-inf")
        """Until then nobody but the leader is promised anything."""
        self.holds_until_ms = float("-inf")
        """After a restart: until then nobody at all."""
        self.nonce = 0

    @property
    def leadership(self) -> Leadership | None:
        return self.phase if isinstance(self.phase, Leadership) else None

    # -- begin and time ----------------------------------------------------------------------------------

    def begin(self, step: Step, *, restarted: bool) -> None:
        """Take the seat: after a restart, or newly installed."""
        if restarted:
            self.holds_until_ms = step.now_ms + self.lease_ms * (1 + self.settings.drift)
        if not self.whole:
            self._ask_to_recover(step)
            self.deadlines.set("suspicion", IDLE_LEASES * self.lease_ms, step)
        elif restarted or self.rank != 0:
            self.expect_leader(step, heard=False)
        else:
            self.phase = Following(Role.INVITED)
            leadership = Leadership(self, OPENING, step)
            self.move(Trigger.FIRST_LEADER, leadership)
            leadership.open(step)

    def on_due(self, step: Step) -> None:
        for name in self.deadlines.due(step):
            match name:
                case "suspicion":
                    self.suspect(step)
                case "doubt":
                    self._doubt(step)
                case "recover":
                    self._ask_to_recover(step)
                case _:
                    self.phase.on_due(name, step)

    def suspect(self, step: Step) -> None:
        """The leader is silent, dead, or gave up. Nobody else is promised anything before its lease ends."""
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
        self.leader = None
        self._stand(step)

    def _stand(self, step: Step) -> None:
        """Begin an election."""
        self.deadlines.clear("suspicion")
        election = Election(self)
        self.move(Trigger.SUSPECTED, election)
        election.ask(step)

    def _doubt(self, step: Step) -> None:
        """The leader missed a touch: it is asked, and suspected if it says nothing."""
        if self.role is not Role.FOLLOWER or self.leader is None:
            return
        self.send(self.leader, DOUBT, step)
        trip_ms = self.host.round_trip_ms(self.config.seats[self.leader].node)
        leases = BUSY_LEASES if self.leader_busy else IDLE_LEASES
        wait_ms = max(DOUBT_ROUND_TRIPS * trip_ms, MIN_DOUBT * self.lease_ms)
        max_ms = (leases - DOUBT_LEASES) * self.lease_ms
        self.deadlines.set("suspicion", min(wait_ms, max_ms), step)

    def force(self, step: Step) -> None:
        """Lead alone, in a new era, and hand off to a config that has a quorum."""
        if not isinstance(self.phase, Leadership):
            self.follow(step)
            self.deadlines.clear("recover")
            self.forced = True
            self._stand(step)

    def on_member_dead(self, step: Step) -> None:
        """Membership changed its mind about somebody: is it the leader?"""
        follows = self.leader if self.role is Role.FOLLOWER else None
        if follows is not None and self.host.is_dead(self.config.seats[follows].node):
            self.suspect(step)

    # -- messages ----------------------------------------------------------------------------------------

    def on_body(self, rank: int, body: Body, step: Step) -> None:
        """From another member; its seat and store were checked."""
        if isinstance(body, _Balloted) and not self._heeds(rank, body, step):
            return
        match body:
            case Acked() | Gap() | Answer() | Promise() | Installed() | Stranger():
                self.phase.on_body(rank, body, step)
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
                self.send(rank, self.state_for(body, NO_BALLOT, step), step)
            case Recover():
                self._on_recover(rank, body, step)
            case GiveUp():
                self.lease_ends_ms = step.now_ms  # it never serves in that ballot again
                self.suspect(step)
            case Retire():
                self.retire(body.successor, step)
            case Refuse():
                self._on_refuse(rank, body, step)
            case _:
                pass

    def _heeds(self, rank: int, body: _Balloted, step: Step) -> bool:
        """Its ballot is one that such a message may have now."""
        ballot = body.ballot
        match BALLOT_RULES[type(body)]:
            case BallotRule.REFUSE_BELOW_PROMISED:
                if self._is_outdated(ballot):
                    self.send(rank, Refuse(ballot, self.promised, 0.0), step)
                    return False
                return True
            case BallotRule.DROP_BELOW_PROMISED:
                return self._is_pulled(rank, body) or not self._is_outdated(ballot)
            case BallotRule.CLAIM_ABOVE_PROMISED:
                if ballot.rank == rank and ballot >= self.promised:
                    return True
                self.send(rank, Refuse(ballot, self.promised, self.lease_left_ms(rank, step)), step)
                return False
            case BallotRule.OF_MY_LEADER:
                return rank == self.leader and ballot == self.accepted
            case BallotRule.OF_MY_ELECTION:
                return isinstance(self.phase, Election) and ballot == self.phase.ballot
            case BallotRule.OF_MY_LEADERSHIP:
                return isinstance(self.phase, Leadership) and ballot == self.phase.ballot

    def _is_outdated(self, ballot: Ballot) -> bool:
        return ballot < self.promised

    def _is_pulled(self, rank: int, state: Body) -> bool:
        """It is the state that this member's election asked for."""
        phase = self.phase
        return isinstance(phase, Election) and isinstance(state, State) and phase.awaits(rank, state)

    def _follows(self, update: Update) -> bool:
        """In order, after the state that this ballot opened with."""
        return update.ballot == self.accepted and update.first <= self.ledger.number + 1

    def _on_update(self, rank: int, update: Update, step: Step) -> None:
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
        if isinstance(update, UpdateWithMessages):
            self._take_messages(rank, update, step)

    def _take_messages(self, rank: int, update: UpdateWithMessages, step: Step) -> None:
        """The update was accepted and acknowledged. Its messages wait for commits that this member knows of
        before its leader does (decision 24): where two are a quorum, an entry that the leader has written and
        one member has accepted is committed, and a leader sends messages with an update only after it has
        written what they wait for."""
        if not self.completes_quorum():
            return
        # Not what came after it: the leader sends entries without messages before it writes them.
        number = update.first + len(update.entries) - 1
        if number > self.committed:
            entries = self.ledger.since(self.committed)
            if entries is None:
                return  # it was given the whole state since, and cannot tell what it knows to be committed
            config, first = self.config, self.committed + 1
            known = entries[: number - self.committed]
            step.observe(CommitKnown(config.group, config, update.ballot, first, known))
            self.committed = number
        for message in update.messages:
            self.host.deliver_early(self.config.seats[rank].node, message, step)

    def acknowledge(self, rank: int, ballot: Ballot, sent_ms: int, step: Step) -> None:
        """Say that everything is written: this is also what gives the leader its lease."""
        if not isinstance(self.phase, Following):
            self.follow(step)
        self.leader = rank
        self.not_whole_since_ms = None
        self.lease_ends_ms = step.now_ms + self.lease_ms * (1 + self.settings.drift)
        self.expect_leader(step, heard=True)
        self.send(rank, Acked(ballot, self.ledger.number, sent_ms), step)

    def _ask_for_all(self, rank: int, ballot: Ballot, step: Step) -> None:
        """What the leader has does not follow from what this member holds."""
        self.send(rank, Gap(ballot, NO_BALLOT, 0, 0), step)

    def _ask_for_state(self, rank: int, ballot: Ballot, step: Step) -> None:
        ledger = self.ledger
        self.send(rank, Gap(ballot, self.accepted, ledger.number, ledger.digest), step)

    def _on_sync(self, rank: int, sync: Sync, step: Step) -> None:
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

    def _on_state(self, rank: int, state: State, step: Step) -> None:
        election = self.phase
        if isinstance(election, Election) and election.awaits(rank, state):
            if not election.disowns(rank, state, step):
                election.on_pulled(state, adopt(self.ledger, state), step)
            return
        if self.host.unable or rank != state.ballot.rank:
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
                self.move(Trigger.MADE_WHOLE)
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
            if self.phase.serving is not None:
                left_ms = max(left_ms, self.phase.serving.lease_until_ms - step.now_ms)
        return max(left_ms, 0.0)

    def _on_ask(self, rank: int, ask: Ask, step: Step) -> None:
        leadership = self.leadership
        leads = leadership is not None
        if leadership is not None:
            leadership.touch(rank, step)
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
        if left_ms > 0:
            self.send(rank, Refuse(claim.ballot, self.promised, left_ms), step)
            return
        if self.host.unable:
            return
        if not isinstance(self.phase, Following):
            self.follow(step)
        self.persist_promise(claim.ballot, step)
        self.expect_leader(step, heard=False)
        ledger = self.ledger
        promise = Promise(claim.ballot, self.accepted, ledger.number, ledger.digest, self.whole, self.era)
        self.send(rank, promise, step)

    def _on_refuse(self, rank: int, refuse: Refuse, step: Step) -> None:
        if not isinstance(self.phase, Leadership):
            self.phase.on_body(rank, refuse, step)
        elif refuse.promised > self.phase.ballot:
            # Somebody claimed higher. If it does not lead by now, this member claims above it.
            self.follow(step)
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


def adopt(ledger: Ledger, state: State) -> bool:
    """Make the ledger what the state says; False if it does not fit what is held."""
    if state.base < 0:
        ledger.replace(state.records, state.number)
        return True
    if state.base != ledger.number:
        return False
    before = ledger.snapshot()
    follows = all(ledger.follow(entry) is not None for entry in state.entries)
    if not follows or ledger.digest != state.digest:
        ledger.replace(before, state.base)
        return False
    return True
