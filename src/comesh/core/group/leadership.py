"""Leading a config: opening a ballot with Sync, updates in a pipeline, the lease, giving up.

An update is committed at f+1 acknowledgements, this member's own journal included. The acknowledgements are
the lease too: an acknowledgement says when the message that it answers was *sent*, by this member's clock.
The lease runs from there, for lease_ms less what clocks may drift, and so ends before any of f+1 members,
which count from their answer, may promise somebody else.
"""

from comesh.core.effects import Committed
from comesh.core.group.handoff import Handoff
from comesh.core.group.replica import Replica
from comesh.core.group.roles import Role
from comesh.core.group.serving import Serving
from comesh.core.group.transfer import state_for
from comesh.core.group_messages import Acked, Gap, GiveUp, Installed, Ready, Sync, Update
from comesh.core.records import Entry, GroupRecord, HandoffRecord
from comesh.core.stamps import OPENING, Ballot, Era
from comesh.core.step import Step

BUSY_TOUCHES = 3
"""A busy leader touches so many times per lease, an idle one once."""
LEAST_RESEND_MS = 20.0
"""Between neighbours on a wire two round trips are shorter than a busy machine takes to answer."""


class Leadership:
    def __init__(self, replica: Replica, ballot: Ballot, *, lossy: bool = False) -> None:
        self._replica = replica
        replica.leadership = self
        replica.leader = replica.rank
        self.ballot = ballot
        self._lossy = lossy
        self.serving: Serving | None = None
        self.handoff = Handoff(replica, self)
        self._acked: dict[int, int] = {}
        """Per other rank: the number up to which it has everything, in this ballot."""
        self._acked_sent_ms: dict[int, float] = {}
        """When the latest message that it acknowledged was sent."""
        self._heard_ms: dict[int, float] = {}
        """When it last acknowledged anything."""
        self._opened_ms = 0.0
        self._resend_ms = 0.0
        self._leased_ms = float("-inf")
        """When the lease was last renewed."""
        self._leased_until_ms = float("-inf")
        self.committed = 0
        self._was_busy = False
        self.began_wall_ms = 0.0
        self.short_since_ms: float | None = None
        """Since when f members or more are gone."""

    # -- opening -----------------------------------------------------------------------------------------

    def open(self, step: Step) -> None:
        replica = self._replica
        replica.become(Role.SYNCING, step)
        self._leased_ms = self._opened_ms = step.now_ms
        self.began_wall_ms = step.wall_ms
        if self._lossy and "handoff" not in replica.ledger.records:
            # With the handoff entry, which is flushed, everything before it is here: nothing can be lost, and
            # nothing may follow it.
            self._begin_era(step)
        elif self.ballot != OPENING:
            replica.take(None, replica.ledger.number, self.ballot, step)
            if replica.forced:
                self._tell_loss(step)
        self._send_sync(step)
        self._schedule_resend(step)
        replica.deadlines.set("giveup", replica.settings.commit_giveup_ms, step)
        self._count(step)

    def _begin_era(self, step: Step) -> None:
        """What was lost is unknown: whoever leads reconciles, device by device and run by run, from here.

        Written as one record: a member that restarts with the ballot but without the era would be whole.
        """
        replica = self._replica
        record = replica.ledger.records.get("group")
        known = record if isinstance(record, GroupRecord) else GroupRecord()
        era = Era(replica.config.number, self.ballot)
        replica.take_era(GroupRecord(era, known.eras), self.ballot, step)
        self._tell_loss(step)

    def _tell_loss(self, step: Step) -> None:
        forced = self._replica.forced
        why = "an operator had it go on alone" if forced else "f+1 members or more lost power"
        self._replica.tell("lossy", step, f"{why}: the last updates may be lost")

    def _send_sync(self, step: Step) -> None:
        replica = self._replica
        ledger = replica.ledger
        sync = Sync(self.ballot, ledger.number, ledger.digest, replica.era, step.now_ms)
        for rank in replica.peers:
            if rank not in self._acked:
                replica.send(rank, sync, step)

    def _become_serving(self, step: Step) -> None:
        replica = self._replica
        self.committed = replica.committed = replica.ledger.number
        if self._holds_handoff():
            replica.become(Role.HANDING_OFF, step)
            replica.deadlines.clear("resend", "giveup")
            replica.tell("handing off", step)
            self._schedule_touch(step)
            self.handoff.begin_start(step)
            return
        replica.become(Role.SERVING, step)
        self.serving = replica.host.open_serving(replica, step)
        self._renew_lease(step)
        replica.deadlines.clear("resend", "giveup")
        replica.tell("serving", step)
        self._schedule_touch(step)
        self.handoff.watch(step)
        self.serving.begin(step)

    def _holds_handoff(self) -> bool:
        """This config has ended: its successor is to be started, and nothing else is left to do."""
        return isinstance(self._replica.ledger.records.get("handoff"), HandoffRecord)

    # -- updates -----------------------------------------------------------------------------------------

    def propose(self, entry: Entry, step: Step) -> None:
        replica = self._replica
        replica.append(entry, self.ballot, step)
        number = replica.ledger.number
        update = Update(self.ballot, number, (entry,), self.committed, step.now_ms, self._busy)
        for rank in replica.peers:
            if rank in self._acked:
                replica.send(rank, update, step)
        if self._busy != self._was_busy:
            self._schedule_touch(step)
        if "resend" not in replica.deadlines:
            self._schedule_resend(step)
        if "giveup" not in replica.deadlines:
            replica.deadlines.set("giveup", replica.settings.commit_giveup_ms, step)
        self._count(step)

    @property
    def _busy(self) -> bool:
        return self.serving is not None and self.serving.busy

    def on_body(self, rank: int, body: Acked | Gap | Installed | Ready, step: Step) -> None:
        match body:
            case Acked() if body.ballot == self.ballot:
                self._on_acked(rank, body.number, body.sent_ms, step)
            case Gap() if body.ballot == self.ballot:
                self._on_gap(rank, body, step)
            case Installed() if self.ballot == OPENING and body.successor == self._replica.mark:
                self._on_acked(rank, body.number, float("-inf"), step)
            case _:
                pass

    def _on_acked(self, rank: int, number: int, sent_ms: float, step: Step) -> None:
        self._heard_ms[rank] = step.now_ms
        self._acked[rank] = max(self._acked.get(rank, 0), number)
        self._acked_sent_ms[rank] = max(self._acked_sent_ms.get(rank, float("-inf")), sent_ms)
        self._renew_lease(step)
        self._count(step)

    def _on_gap(self, rank: int, gap: Gap, step: Step) -> None:
        replica = self._replica
        replica.send(rank, state_for(replica, gap, self.ballot, step), step)

    def _count(self, step: Step) -> None:
        """The number that f+1 members have, this one included."""
        replica = self._replica
        f = replica.quorum - 1
        if len(self._acked) < f:
            return
        others = sorted(self._acked.values(), reverse=True)
        number = min(others[f - 1], replica.ledger.number) if f else replica.ledger.number
        if replica.role is Role.SYNCING:
            if number >= replica.ledger.number:
                self._become_serving(step)
            return
        if number > self.committed:
            self._commit(number, step)

    def _commit(self, number: int, step: Step) -> None:
        replica = self._replica
        first = self.committed + 1
        self.committed = replica.committed = number
        entries = replica.ledger.since(first - 1) or ()
        for one, entry in enumerate(entries[: number - first + 1], start=first):
            digest = replica.ledger.digest if one == replica.ledger.number else -1
            step.observe(Committed(replica.config.group, replica.config, self.ballot, one, entry, digest))
        if number == replica.ledger.number:
            replica.deadlines.clear("resend")
            replica.deadlines.clear("giveup")
        else:
            replica.deadlines.set("giveup", replica.settings.commit_giveup_ms, step)
        if replica.role is Role.HANDING_OFF:
            self.handoff.on_committed(step)
        elif self.serving is not None:
            self.serving.on_committed(number, step)

    # -- the lease ---------------------------------------------------------------------------------------

    def _renew_lease(self, step: Step) -> None:
        if self._replica.forced:
            return  # it only hands off: whoever it does not hear may still act
        f = self._replica.quorum - 1
        until_ms = float("inf")
        if f:
            if len(self._acked_sent_ms) < f:
                return
            until_ms = sorted(self._acked_sent_ms.values(), reverse=True)[f - 1] + self._lease_for_ms()
        if until_ms > self._leased_until_ms:
            self._leased_until_ms = until_ms
            self._leased_ms = step.now_ms
        if self.serving is not None:
            self.serving.lease_until_ms = self._leased_until_ms

    def _lease_for_ms(self) -> float:
        return self._replica.lease_ms * (1 - self._replica.settings.drift)

    def touch(self, step: Step) -> None:
        """Prove life, and ask for the lease: an update without entries."""
        replica = self._replica
        if replica.role is Role.SYNCING:
            return
        first = replica.ledger.number + 1
        touch = Update(self.ballot, first, (), self.committed, step.now_ms, self._busy)
        for rank in replica.peers:
            if rank in self._acked:
                replica.send(rank, touch, step)
            else:
                ledger = replica.ledger
                sync = Sync(self.ballot, ledger.number, ledger.digest, replica.era, step.now_ms)
                replica.send(rank, sync, step)

    def _schedule_touch(self, step: Step) -> None:
        self._was_busy = self._busy
        lease_ms = self._replica.lease_ms
        self._replica.deadlines.set("touch", lease_ms / (BUSY_TOUCHES if self._was_busy else 1), step)

    def is_silent(self, rank: int, step: Step) -> bool:
        """It acknowledged nothing for as long as replacing a member waits."""
        heard_ms = self._heard_ms.get(rank, self._opened_ms)
        return step.now_ms - heard_ms > self._replica.settings.replace_after_ms

    # -- time --------------------------------------------------------------------------------------------

    def on_due(self, name: str, step: Step) -> None:
        match name:
            case "touch":
                self._on_touch_due(step)
            case "resend":
                self._resend(step)
            case "giveup":
                self.give_up(step)
            case "handoff" | "start":
                self.handoff.on_due(name, step)
            case _:
                pass

    def _on_touch_due(self, step: Step) -> None:
        replica = self._replica
        unleased_ms = step.now_ms - self._leased_ms
        alone = replica.quorum > 1 and unleased_ms > replica.settings.commit_giveup_ms
        if alone or replica.host.unable:
            self.give_up(step)
            return
        self.touch(step)
        self._schedule_touch(step)

    def _schedule_resend(self, step: Step) -> None:
        self._resend_ms = max(2 * self._replica.far_round_trip_ms, LEAST_RESEND_MS)
        self._replica.deadlines.set("resend", self._resend_ms, step)

    def _resend(self, step: Step) -> None:
        """To whoever lacks something: the entries since what it acknowledged. Who was silent for a lease gets
        touches only, and asks for what it lacks when it is back."""
        replica = self._replica
        ledger = replica.ledger
        if replica.role is Role.SYNCING:
            self._send_sync(step)
        else:
            for rank in replica.peers:
                have = self._acked.get(rank)
                if have is None or have >= ledger.number or self._was_silent(rank, step):
                    continue
                entries = ledger.since(have) or ledger.since(self.committed) or ()
                first = ledger.number - len(entries) + 1
                update = Update(self.ballot, first, entries, self.committed, step.now_ms, self._busy)
                replica.send(rank, update, step)
        self._resend_ms = min(2 * self._resend_ms, replica.settings.most_update_resend_ms)
        replica.deadlines.set("resend", self._resend_ms, step)

    def _was_silent(self, rank: int, step: Step) -> bool:
        return step.now_ms - self._heard_ms.get(rank, self._opened_ms) > self._replica.lease_ms

    def give_up(self, step: Step) -> None:
        replica = self._replica
        replica.send_all(GiveUp(self.ballot), step)
        replica.follow(step)
