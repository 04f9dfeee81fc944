"""Leading a config: opening a ballot with Sync, updates in a pipeline, the lease, giving up.

An update is committed at f+1 acknowledgements, this member's own journal included. The acknowledgements are
the lease too: an acknowledgement says when the message that it answers was *sent*, by this member's clock.
The lease runs from there, for lease_ms less what clocks may drift, and so ends before any of f+1 members,
which count from their answer, may promise somebody else.

An update goes to the f nearest members at once and to the others a little later (`nearest.py`).
"""

from collections.abc import Mapping
from functools import partial

from comesh.core.effects import Committed
from comesh.core.group import letters
from comesh.core.group.deadlines import ROUNDING_MS
from comesh.core.group.handoff import Handoff
from comesh.core.group.nearest import Nearest
from comesh.core.group.patience import SILENT_LEASES, lack_sync
from comesh.core.group.replica import Replica
from comesh.core.group.roles import Role
from comesh.core.group.serving import Mail, Serving
from comesh.core.group.transfer import state_for
from comesh.core.group_messages import Acked, Gap, GiveUp, Installed, Lettered, Ready, Recover, Sync, Update
from comesh.core.ids import NodeId
from comesh.core.records import Entry, GroupRecord, HandoffRecord, SaidEntry
from comesh.core.stamps import OPENING, Ballot, Era
from comesh.core.step import Step

BUSY_TOUCHES = 1.5
"""The nearest members hear a busy leader so many times per lease at least, and suspect it soonest: not
before two touches in a row are lost. Others, and all members of an idle leader, hear it once per lease."""
TOGETHER = 0.15
"""Of a lease: touches that are due within it are sent at once, so that one timer serves several members."""
MIN_TOUCH_MS = 1.0
"""No touch in the instant of the one before."""
SPREADS = 10
"""Members that are not needed for a commit hear of it at most so many times per lease."""
MAX_IN_FLIGHT = 4
"""Entries that one member has not acknowledged. What comes meanwhile goes with its next acknowledgement,
together: a busy group needs fewer messages for each entry, not more time."""
NO_MAILS: Mapping[NodeId, list[Mail]] = {}
NOBODY: Mapping[int, list[Mail]] = {}
MIN_RESEND_MS = 20.0
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
        self._sent: dict[int, int] = {}
        """The number up to which it was sent everything, acknowledged or not."""
        self._sent_again: dict[int, int] = {}
        """The number up to which it was sent something more than once."""
        self._letters: dict[int, list[Mail]] = {}
        """Letters that wait for entries which are not yet sent to that member."""
        self._unwritten = False
        """The last entry is sent before it is written: no letter goes with it."""
        self._said_ms: dict[int, float] = {}
        """When it was last sent anything that it acknowledges."""
        self._nearest = Nearest(replica)
        self._expected = 0
        """The number that the nearest are to acknowledge in time."""
        self._late_ms = 0.0
        """Who has not acknowledged that by then is late."""
        self._spread_by_ms = 0.0
        """Then the others hear what they wait for, committed or not."""
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
        for rank in self._replica.peers:
            if rank not in self._acked:
                self._send_sync_to(rank, step)

    def _send_sync_to(self, rank: int, step: Step) -> None:
        replica, ledger = self._replica, self._replica.ledger
        sync = Sync(self.ballot, ledger.number, ledger.digest, replica.era, self.sent_ms(step))
        replica.send(rank, sync, step)
        self._said_ms[rank] = step.now_ms

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
        if lack_sync(replica, self, step):
            self._schedule_resend(step)
        replica.tell("serving", step)
        self._schedule_touch(step)
        self.handoff.watch(step)
        self.serving.begin(step)

    def _holds_handoff(self) -> bool:
        """This config has ended: its successor is to be started, and nothing else is left to do."""
        return isinstance(self._replica.ledger.records.get("handoff"), HandoffRecord)

    # -- updates -----------------------------------------------------------------------------------------

    def propose(
        self,
        entry: Entry,
        step: Step,
        *,
        to_all: bool = False,
        mails: Mapping[NodeId, list[Mail]] = NO_MAILS,
    ) -> None:
        """to_all: the others need it as soon as the nearest. mails: letters that wait for its commit.

        It is sent before this member writes it, so that all write at once (decision 22). That this member
        counts itself is safe: whatever comes of it follows the record, and so waits for the disk. An early
        letter does, too.
        """
        replica = self._replica
        replica.ledger.append(entry)
        waiting = self._who_waits(mails, step) if mails and letters.completes_quorum(replica) else NOBODY
        if waiting:
            self._write_and_send(entry, waiting, step)
        else:
            self._send_first(step, to_all=to_all)
            replica.persist(entry, self.ballot, step)
        others = len(self._acked) > len(self._nearest.ranks) and not to_all
        if others and "spread" not in replica.deadlines:
            self._spread_by_ms = step.now_ms + replica.lease_ms / SPREADS
            self._expect_nearest(step)
        elif others and self.committed >= self._expected:
            self._expect_nearest(step)
        if not self._was_busy and self._busy:
            self._schedule_touch(step)
        if "resend" not in replica.deadlines:
            self._schedule_resend(step)
        if "giveup" not in replica.deadlines:
            replica.deadlines.set("giveup", replica.settings.commit_giveup_ms, step)
        if replica.quorum == 1:  # otherwise somebody else has to have it first
            self._count(step)

    def _send_first(self, step: Step, *, to_all: bool) -> None:
        """Before it is written, and so without letters that still wait for entries before it."""
        self._unwritten = True
        if to_all:
            self._send_to_all(step)
        else:
            for rank in self._nearest.ranks:
                self._send_if_free(rank, step)
        self._unwritten = False

    def _write_and_send(self, entry: Entry, waiting: Mapping[int, list[Mail]], step: Step) -> None:
        """What a letter waits for is written before the letter is sent."""
        self._replica.persist(entry, self.ballot, step)
        self._send_with_letters(waiting, step)

    def _who_waits(self, mails: Mapping[NodeId, list[Mail]], step: Step) -> dict[int, list[Mail]]:
        """The members that letters go to. With the entry such a member knows that it is committed, and need
        not wait until this leader does (decision 24)."""
        found: dict[int, list[Mail]] = {}
        for node, of_node in mails.items():
            rank = self._replica.config.rank_of(node)
            if rank is not None and rank in self._acked and not self._was_silent(rank, step):
                found[rank] = of_node
        return found

    def _send_with_letters(self, waiting: Mapping[int, list[Mail]], step: Step) -> None:
        """The entry goes to who waits for a letter, in the place of the nearest if it is as near."""
        for rank, mails in waiting.items():
            self._letters.setdefault(rank, []).extend(mails)
        near = any(map(self._nearest.is_near, waiting))
        for rank in waiting if near else {**waiting, **dict.fromkeys(self._nearest.ranks)}:
            self._send_if_free(rank, step)

    def _with_letters(self, rank: int, update: Update) -> Update:
        """With the letters to that member that wait for entries which it then has. Who gets one counts all
        that comes with it as committed: so there is none with an entry that is not written yet. And none
        while it has a state instead of entries that are not committed: it could not tell of those."""
        if self._unwritten or self.committed < self._sent_again.get(rank, 0):
            return update
        mails = [mail for mail in self._letters.pop(rank, ()) if not mail.posted]
        if not mails:
            return update
        for mail in mails:
            mail.told = partial(self._has, rank, self._replica.ledger.number)
        return Lettered(
            update.ballot,
            update.first,
            update.entries,
            update.committed,
            update.sent_ms,
            update.busy,
            tuple(mail.letter for mail in mails),
        )

    def _has(self, rank: int, number: int) -> bool:
        """Acknowledged, and sent once: what was sent again had no letters with it."""
        return self._acked.get(rank, 0) >= number > self._sent_again.get(rank, 0)

    def _send_if_free(self, rank: int, step: Step) -> None:
        """Unless enough is on its way to it already."""
        if self._sent.get(rank, 0) - self._acked.get(rank, 0) < MAX_IN_FLIGHT:
            self._send_news(rank, step)

    def _send_news(self, rank: int, step: Step, *, also_empty: bool = False) -> None:
        """An update with all that it was not sent yet, if there is anything: also_empty says it anyhow.

        Who was silent and is not needed, or lacks more than is kept, gets none of it: it asks when it is
        back. Who has not acknowledged the state that this ballot opened with gets nothing.
        """
        have = self._acked.get(rank)
        if have is None:
            return
        ledger = self._replica.ledger
        entries: tuple[SaidEntry, ...] | None = ()
        if rank in self._nearest.ranks or not self._was_silent(rank, step):
            entries = ledger.said_since(max(have, self._sent.get(rank, 0)))
            self._sent[rank] = ledger.number
        if entries is None:
            entries, also_empty = (), True  # an update without them has it ask for the state
        if entries or also_empty:
            first = ledger.number - len(entries) + 1
            busy = self._busy and rank in self._nearest.ranks
            update = Update(self.ballot, first, entries, self.committed, self.sent_ms(step), busy)
            self._replica.send(rank, self._with_letters(rank, update) if entries else update, step)
            self._said_ms[rank] = step.now_ms

    def _expect_nearest(self, step: Step) -> None:
        """The others hear it sooner if the nearest do not acknowledge it in time."""
        self._expected = self._replica.ledger.number
        self._late_ms = step.now_ms + self._nearest.wait_ms
        due_ms = min(self._late_ms, self._spread_by_ms)
        self._replica.deadlines.set("spread", max(due_ms - step.now_ms, 0.0), step)

    def _on_spread_due(self, step: Step) -> None:
        """The others hear it. If one of the nearest did not answer in time, it is at once, and they are asked
        first from now on."""
        # A deadline that is due may lie a rounding ahead.
        if self.committed < self._expected and step.now_ms + ROUNDING_MS >= self._late_ms:
            self._choose_nearest(step, self._expected)
        self._send_to_all(step)

    def _send_to_all(self, step: Step) -> None:
        for rank in self._replica.peers:
            self._send_news(rank, step)

    @property
    def _busy(self) -> bool:
        return self.serving is not None and self.serving.busy

    def on_body(self, rank: int, body: Acked | Gap | Installed | Ready, step: Step) -> None:
        match body:
            case Acked() if body.ballot == self.ballot:
                said_ms = self._said_ms.get(rank)
                if said_ms is not None and body.sent_ms == int(said_ms - self._opened_ms):
                    self._nearest.sample(rank, step.now_ms - said_ms)
                self._on_acked(rank, body.number, self._opened_ms + body.sent_ms, step)
            case Gap() if body.ballot == self.ballot:
                self.give_state(rank, body, step)
            case Installed() if self.ballot == OPENING and body.successor == self._replica.mark:
                self._on_acked(rank, body.number, float("-inf"), step)
            case _:
                pass

    def _on_acked(self, rank: int, number: int, sent_ms: float, step: Step) -> None:
        self._heard_ms[rank] = step.now_ms
        if rank not in self._acked:
            self._acked[rank] = number
            self._choose_nearest(step)
        self._acked[rank] = max(self._acked.get(rank, 0), number)
        self._acked_sent_ms[rank] = max(self._acked_sent_ms.get(rank, float("-inf")), sent_ms)
        self._renew_lease(step)
        self._count(step)
        if rank in self._nearest.ranks or rank in self._letters:
            self._send_if_free(rank, step)

    def _choose_nearest(self, step: Step, number: int = 0) -> None:
        """Of those who answer, and have everything up to that number."""
        peers = self._replica.peers
        acked = self._acked
        self._nearest.choose([r for r in peers if acked.get(r, -1) < number or self._was_silent(r, step)])

    def give_state(self, rank: int, asked: Gap | Recover, step: Step) -> None:
        replica = self._replica
        self._sent_again[rank] = replica.ledger.number
        replica.send(rank, state_for(replica, asked, self.ballot, step), step)

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
            if not lack_sync(replica, self, step):
                replica.deadlines.clear("resend")
            replica.deadlines.clear("giveup")
            if "spread" in replica.deadlines:
                replica.deadlines.set("spread", max(self._spread_by_ms - step.now_ms, 0.0), step)
            replica.deadlines.wake_on_time(step)
        else:
            if "spread" in replica.deadlines and number >= self._expected:
                self._expect_nearest(step)
            replica.deadlines.set("giveup", replica.settings.commit_giveup_ms, step)
            self._schedule_resend(step)
        if replica.role is Role.HANDING_OFF:
            self.handoff.on_committed(step)
        elif self.serving is not None:
            self.serving.on_committed(number, step)

    def sent_ms(self, step: Step) -> int:
        """What a message says of now, and its acknowledgement says again. Rounded down: the lease that runs
        from there ends no later for it."""
        return int(step.now_ms - self._opened_ms)

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

    def touch(self, rank: int, step: Step) -> None:
        """Prove life, and ask for the lease: an update with what is new, or with nothing."""
        if rank in self._acked and self._replica.role is not Role.SYNCING:
            self._send_news(rank, step, also_empty=True)
        else:
            self._send_sync_to(rank, step)

    def _until_touch_ms(self, rank: int, step: Step) -> float:
        """How long until a member that hears nothing else is to be touched."""
        lease_ms = self._replica.lease_ms
        apart_ms = lease_ms / BUSY_TOUCHES if self._was_busy and rank in self._nearest.ranks else lease_ms
        return self._said_ms.get(rank, self._opened_ms) + apart_ms - step.now_ms

    def _schedule_touch(self, step: Step) -> None:
        self._was_busy = self._busy
        peers = self._replica.peers
        after_ms = min((self._until_touch_ms(rank, step) for rank in peers), default=self._replica.lease_ms)
        self._replica.deadlines.set("touch", max(after_ms, MIN_TOUCH_MS), step)

    def silent_ms(self, rank: int, step: Step) -> float:
        """For how long it has acknowledged nothing."""
        return step.now_ms - self._heard_ms.get(rank, self._opened_ms)

    def was_heard(self, rank: int) -> bool:
        return rank in self._heard_ms

    # -- time --------------------------------------------------------------------------------------------

    def on_due(self, name: str, step: Step) -> None:
        match name:
            case "touch":
                self._on_touch_due(step)
            case "resend":
                self._resend(step)
            case "spread":
                self._on_spread_due(step)
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
        self._choose_nearest(step)
        for rank in replica.peers:
            if self._until_touch_ms(rank, step) <= TOGETHER * replica.lease_ms:
                self.touch(rank, step)
        self._schedule_touch(step)

    def _schedule_resend(self, step: Step) -> None:
        self._resend_ms = max(2 * self._replica.far_round_trip_ms, MIN_RESEND_MS)
        self._replica.deadlines.set("resend", self._resend_ms, step)

    def _resend(self, step: Step) -> None:
        """To whoever lacks something: the entries since what it acknowledged. Who was silent gets touches
        only, and asks for what it lacks when it is back."""
        replica = self._replica
        ledger = replica.ledger
        if replica.role is Role.SYNCING:
            self._send_sync(step)
        else:
            for rank in lack_sync(replica, self, step):
                self._send_sync_to(rank, step)
            if self.committed == ledger.number and not lack_sync(replica, self, step):
                return
            for rank in replica.peers:
                have = self._acked.get(rank)
                if have is None or have >= ledger.number or self._was_silent(rank, step):
                    continue
                entries = ledger.said_since(have) or ledger.said_since(self.committed) or ()
                first = ledger.number - len(entries) + 1
                busy = self._busy and rank in self._nearest.ranks
                update = Update(self.ballot, first, entries, self.committed, self.sent_ms(step), busy)
                replica.send(rank, update, step)
                self._sent[rank] = self._sent_again[rank] = ledger.number
        self._resend_ms = min(2 * self._resend_ms, replica.settings.max_update_resend_ms)
        replica.deadlines.set("resend", self._resend_ms, step)

    def _was_silent(self, rank: int, step: Step) -> bool:
        return self.silent_ms(rank, step) > SILENT_LEASES * self._replica.lease_ms

    def give_up(self, step: Step) -> None:
        replica = self._replica
        replica.send_all(GiveUp(self.ballot), step)
        replica.follow(step)
