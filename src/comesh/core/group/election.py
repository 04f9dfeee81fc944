"""How a member comes to lead: Bully by rank with a pre-vote (protocol, section 3).

Ask first, without consequence: only who would be promised by f+1 claims, so that an isolated node never
disturbs. A lower rank that is able takes precedence: the asker defers to it for a while. A claim is a promise
to oneself, flushed; with f+1 promises from whole members the newest accepted state is pulled and opened.

After a power loss of f+1 members or more there are not enough whole ones. When so many have been seen, and
`cold_wait` is over, a claim may be won with promises of members that are not whole: a *lossy* election, which
opens a new era. What it may have lost is reconciled afterwards (section 5).
"""

from typing import Final

from comesh.core.group.config import UNBOUND_STORE
from comesh.core.group.leadership import Leadership
from comesh.core.group.member import IDLE_LEASES, Member
from comesh.core.group.phases import Phase, Role, Trigger
from comesh.core.group_messages import Answer, Ask, Body, Claim, Promise, Pull, Refuse, State, Stranger
from comesh.core.stamps import NO_BALLOT, Ballot
from comesh.core.step import Step

DEFER_PER_RANK_MS: Final = 100.0
CLAIM_ROUND_TRIPS: Final = 6.0
"""A claim that was not won within so many round trips (and a lease) is given up."""


class Election(Phase):
    """The phase of a member that asks who would promise it, and then claims."""

    deadlines = ("ask", "defer", "claim", "resend")

    def __init__(self, member: Member) -> None:
        super().__init__(Role.ASKING)
        self._member = member
        self._would: dict[int, bool] = {}
        """Ranks that would promise, and whether they are whole."""
        self._lost: dict[int, None] = {
            rank: None for rank, seat in enumerate(member.config.seats) if seat.store == UNBOUND_STORE
        }
        """Ranks whose seat is nobody's: it was never taken, or the journal is gone."""
        self._deferred = False
        self._round = member.promised.round
        self._promises: dict[int, Promise] = {}
        self._pulled_from: int | None = None
        self._nonce = 0
        self._resend_ms = 0.0
        self._lossy = False
        self.ballot = Ballot(self._round, member.rank)

    # -- the pre-vote ------------------------------------------------------------------------------------

    def ask(self, step: Step) -> None:
        member = self._member
        self.ballot = Ballot(max(self._round, member.promised.round, 0) + 1, member.rank)
        self._would = {member.rank: member.whole}
        self._deferred = False
        if member.forced:
            self._claim(step)
            return
        member.send_all(Ask(self.ballot), step)
        spread = member.host.draws.between(1.0, 1.5)
        member.deadlines.set("ask", max(member.lease_ms, 2 * member.far_round_trip_ms) * spread, step)
        self._consider(step)

    def on_body(self, rank: int, body: Body, step: Step) -> None:
        match body:
            case Answer() if self.role is Role.ASKING:
                self._on_answer(rank, body, step)
            case Promise() if self.role is Role.CLAIMING:
                self._promises[rank] = body
                self._lost.pop(rank, None)
                self._count(step)
            case Refuse() if self.role is Role.CLAIMING and body.ballot == self.ballot:
                self._round = max(self._round, body.promised.round)
                if body.promised > self.ballot:
                    self._step_back(step)
            case Stranger():
                self._on_stranger(rank, step)
            case _:
                pass

    def _on_stranger(self, rank: int, step: Step) -> None:
        if rank in self._would or rank in self._promises:
            return  # a stranger has its name, but it spoke itself
        self._lost[rank] = None
        if self.role is Role.ASKING:
            self._consider(step)
        elif self.role is Role.CLAIMING:
            self._count(step)

    def _on_answer(self, rank: int, answer: Answer, step: Step) -> None:
        member = self._member
        self._round = max(self._round, answer.promised.round)
        if not answer.would:
            if answer.leader is not None and not member.host.is_dead(member.config.seats[answer.leader].node):
                member.follow(step)
            return
        self._would[rank] = answer.whole
        self._lost.pop(rank, None)
        if answer.able and rank < member.rank and not self._deferred:
            self._deferred = True
            wait_ms = 2 * member.far_round_trip_ms + DEFER_PER_RANK_MS * member.rank
            member.deadlines.set("defer", wait_ms, step)
        self._consider(step)

    def _consider(self, step: Step) -> None:
        """Claim, if enough would promise and nobody goes first."""
        member = self._member
        if "defer" in member.deadlines:
            return
        whole = sum(self._would.values())
        not_whole = len(self._would) - whole + len(self._lost)
        quorum = member.config.quorum
        enough = self._is_prevoted(whole, quorum)
        if enough or (len(self._would) >= quorum and self._is_cold(not_whole, step)):
            self._claim(step)

    def _is_prevoted(self, whole: int, quorum: int) -> bool:
        return whole >= quorum

    def _is_cold(self, not_whole: int, step: Step) -> bool:
        """f+1 members are not whole, and have not been for so long that no whole quorum will come."""
        member = self._member
        if not_whole < member.config.quorum:
            return False
        if member.not_whole_since_ms is None:
            member.not_whole_since_ms = step.now_ms
        return step.now_ms - member.not_whole_since_ms >= member.settings.cold_wait_ms

    # -- the claim ---------------------------------------------------------------------------------------

    def _claim(self, step: Step) -> None:
        member = self._member
        self.ballot = Ballot(max(self._round, member.promised.round, 0) + 1, member.rank)
        member.move(Trigger.PREVOTED)
        member.deadlines.clear("ask", "defer")
        member.persist_promise(self.ballot, step)
        ledger = member.ledger
        own = Promise(self.ballot, member.accepted, ledger.number, ledger.digest, member.whole, member.era)
        self._promises = {member.rank: own}
        member.send_all(Claim(self.ballot), step)
        trip_ms = max(member.far_round_trip_ms, 1.0)
        member.deadlines.set("claim", CLAIM_ROUND_TRIPS * trip_ms + member.lease_ms, step)
        self._resend_ms = 2 * trip_ms
        member.deadlines.set("resend", self._resend_ms, step)
        self._count(step)

    def _count(self, step: Step, *, late: bool = False) -> None:
        member = self._member
        if self._pulled_from is not None:
            return
        chosen_among = self._enough(step, late=late)
        if chosen_among is None:
            return
        newest = max(chosen_among, key=lambda rank: self._newness(chosen_among[rank], rank))
        if chosen_among[newest].accepted == NO_BALLOT:
            return  # none of them was ever started in this config: its first state is with somebody else
        if newest == member.rank:
            self._open(step)
            return
        self._pulled_from = newest
        self._nonce = 1 + (member.host.draws.word() >> 2)
        self._pull(step)

    def _enough(self, step: Step, *, late: bool) -> dict[int, Promise] | None:
        """The promises to choose among; None: there are not enough of them.

        f+1 whole members meet every f+1 that acknowledged something. Members that are not whole meet nobody
        for sure, so a lossy election waits for everybody that may live, removed from the deployment or not:
        one may have what others lost.
        """
        member = self._member
        whole = {rank: one for rank, one in self._promises.items() if self._counts(one)}
        if len(whole) >= member.config.quorum:
            return whole
        if member.forced:
            self._lossy = True
            return self._promises
        not_whole = len(self._promises) - len(whole) + len(self._lost)
        enough = len(self._promises) >= member.config.quorum and self._is_cold(not_whole, step)
        if not enough or not (late or self._has_heard_all()):
            return None
        self._lossy = True
        return self._promises

    def _has_heard_all(self) -> bool:
        member = self._member
        return all(
            rank in self._promises
            or rank in self._lost
            or not member.host.may_live(member.config.seats[rank].node)
            for rank in member.peers
        )

    def _counts(self, promise: Promise) -> bool:
        return promise.whole

    def _newness(self, promise: Promise, rank: int) -> tuple[Ballot, int, bool]:
        """The highest accepted ballot, then number; of equals the own state, which need not travel."""
        return (promise.accepted, promise.number, rank == self._member.rank)

    def _pull(self, step: Step) -> None:
        member = self._member
        assert self._pulled_from is not None
        ledger = member.ledger
        pull = Pull(member.accepted, ledger.number, ledger.digest, self._nonce)
        member.send(self._pulled_from, pull, step)

    def _pull_all(self, step: Step) -> None:
        """What this member has is no beginning of it."""
        if self._pulled_from is not None:
            self._member.send(self._pulled_from, Pull(NO_BALLOT, 0, 0, self._nonce), step)

    def awaits(self, rank: int, state: State) -> bool:
        return rank == self._pulled_from and state.nonce == self._nonce

    def disowns(self, rank: int, state: State, step: Step) -> bool:
        """It has no more what it promised with, for it lost power since: choose again without it."""
        promise = self._promises[rank]
        if (state.accepted, state.number) >= (promise.accepted, promise.number):
            return False
        del self._promises[rank]
        self._pulled_from = None
        self._count(step)
        return True

    def on_pulled(self, state: State, fits: bool, step: Step) -> None:
        """The newest state is here; it is accepted as the one who gave it accepted it."""
        if not fits:
            self._pull_all(step)
            return
        self._member.accepted = state.accepted
        self._member.unwritten = True
        self._open(step)

    def _open(self, step: Step) -> None:
        member = self._member
        member.whole = True
        leadership = Leadership(member, self.ballot, step, lossy=self._lossy)
        member.move(Trigger.WON, leadership)
        leadership.open(step)

    # -- time --------------------------------------------------------------------------------------------

    def on_due(self, name: str, step: Step) -> None:
        member = self._member
        match name:
            case "ask" if self.role is Role.ASKING:
                self.ask(step)
            case "defer" if self.role is Role.ASKING:
                self._deferred = True
                self._consider(step)
            case "resend" if self.role is Role.CLAIMING:
                if self._pulled_from is not None:
                    self._pull(step)
                else:
                    member.send_all(Claim(self.ballot), step)
                self._resend_ms = min(2 * self._resend_ms, member.settings.max_update_resend_ms)
                member.deadlines.set("resend", self._resend_ms, step)
            case "claim" if self.role is Role.CLAIMING:
                self._count(step, late=True)
                if member.phase is self:
                    self._step_back(step)
            case _:
                pass

    def _step_back(self, step: Step) -> None:
        """Wait a while, by rank and by chance, then ask again unless somebody leads by then."""
        member = self._member
        member.follow(step)
        wait_ms = member.lease_ms * member.host.draws.between(0.5, IDLE_LEASES)
        member.deadlines.set("suspicion", wait_ms, step)
