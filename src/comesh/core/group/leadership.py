"""Leading a config: opening a ballot with Sync, updates in a pipeline, the lease, giving up.

An update is committed at f+1 acknowledgements, this member's own journal included. The acknowledgements are
the lease too: an acknowledgement says when the message that it answers was *sent*, by this member's clock.
The lease runs from there, for lease_ms less what clocks may drift, and so ends before any of f+1 members,
which count from their answer, may promise somebody else.

An update goes to the f nearest members at once and to the others a little later (`peers.py`).
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from comesh.core.effects import Committed
from comesh.core.group.deadlines import ROUNDING_MS
from comesh.core.group.handoff import Handoff
from comesh.core.group.member import Member
from comesh.core.group.peers import Peer, Peers
from comesh.core.group.phases import Phase, Role, Trigger
from comesh.core.group.serving import OutboundMessage
from comesh.core.group_messages import (
    Acked,
    Body,
    Gap,
    GiveUp,
    Installed,
    Recover,
    Sync,
    Update,
    UpdateWithMessages,
)
from comesh.core.ids import NodeId
from comesh.core.records import Entry, GroupRecord, HandoffRecord, SaidEntry
from comesh.core.stamps import OPENING, Ballot, Era
from comesh.core.step import Step

BUSY_TOUCHES: Final = 1.5
"""The nearest members hear a busy leader so many times per lease at least, and suspect it soonest: not
before two touches in a row are lost. Others, and all members of an idle leader, hear it once per lease."""
TOGETHER: Final = 0.15
"""Touches that are due within this part of a lease are sent at once: one timer serves several members."""
MIN_TOUCH_MS: Final = 1.0
"""No touch in the instant of the one before."""
SPREADS: Final = 10
"""Members that are not needed for a commit hear of it at most so many times per lease."""
MAX_IN_FLIGHT: Final = 4
"""Entries that one member has not acknowledged. What comes meanwhile goes with its next acknowledgement,
together: a busy group needs fewer messages for each entry, not more time."""
NO_OUTBOX: Mapping[NodeId, list[OutboundMessage]] = {}
MIN_RESEND_MS: Final = 20.0
"""Between neighbours on a wire two round trips are shorter than a busy machine takes to answer."""


class Leadership(Phase):
    """The phase of a member from the ballot that it won until somebody else's, or the end of its config."""

    deadlines = ("resend", "spread", "touch", "giveup", "handoff", "start")

    def __init__(self, member: Member, ballot: Ballot, step: Step, *, lossy: bool = False) -> None:
        super().__init__(Role.SYNCING)
        self.member = member
        self.ballot = ballot
        self.quorum = 1 if member.forced else member.config.quorum
        """How many members, this one included, decide."""
        self.peers = Peers(member, ballot, self.quorum, step.now_ms)
        self.committed = 0
        self.began_wall_ms = step.wall_ms
        self.handoff = Handoff(self)
        self._lossy = lossy
        self._opened_ms = step.now_ms
        self._leased_ms = step.now_ms
        """When the lease was last renewed."""
        self._leased_until_ms = float("-inf")
        self._acknowledged_by = 0
        """How many members have the state that this ballot opened with."""
        self._unwritten = False
        """The last entry is sent before it is written: no message goes with it."""
        self._expected = 0
        """The number that the nearest are to acknowledge in time."""
        self._late_ms = 0.0
        """When a member that has not acknowledged that is late."""
        self._spread_by_ms = 0.0
        """Then the others hear what they wait for, committed or not."""
        self._resend_ms = 0.0
        self._was_busy = False

    # -- opening -----------------------------------------------------------------------------------------

    def open(self, step: Step) -> None:
        member = self.member
        member.leader = member.rank
        if self._lossy and "handoff" not in member.ledger.records:
            # With the handoff entry, which is flushed, everything before it is here: nothing can be lost, and
            # nothing may follow it.
            self._begin_era(step)
        elif self.ballot != OPENING:
            member.take(None, member.ledger.number, self.ballot, step)
            if member.forced:
                self._tell_loss(step)
        self._send_sync(step)
        self._schedule_resend(step)
        member.deadlines.set("giveup", member.settings.commit_giveup_ms, step)
        self._count(step)

    def _begin_era(self, step: Step) -> None:
        """What was lost is unknown: whoever leads reconciles, device by device and run by run, from here.

        Written as one record: a member that restarts with the ballot but without the era would be whole.
        """
        member = self.member
        record = member.ledger.records.get("group")
        known = record if isinstance(record, GroupRecord) else GroupRecord()
        era = Era(member.config.number, self.ballot)
        member.take_era(GroupRecord(era, known.eras), self.ballot, step)
        self._tell_loss(step)

    def _tell_loss(self, step: Step) -> None:
        forced = self.member.forced
        why = "an operator had it go on alone" if forced else "f+1 members or more lost power"
        self.member.tell("lossy", step, f"{why}: the last updates may be lost")

    def _send_sync(self, step: Step) -> None:
        for peer in self.peers.all:
            if peer.acked is None:
                self._send_sync_to(peer, step)

    def _send_sync_to(self, peer: Peer, step: Step) -> None:
        ledger = self.member.ledger
        sync = Sync(self.ballot, ledger.number, ledger.digest, self.member.era, self.sent_ms(step))
        self.member.send(peer.rank, sync, step)
        peer.said_ms = step.now_ms

    def _become_serving(self, step: Step) -> None:
        member = self.member
        self.committed = member.committed = member.ledger.number
        if self._holds_handoff():
            member.move(Trigger.OPENED_WITH_HANDOFF)
            member.deadlines.clear("resend", "giveup")
            member.tell("handing off", step)
            self._schedule_touch(step)
            self.handoff.begin_start(step)
            return
        member.move(Trigger.OPENED)
        self.serving = member.host.open_serving(member, self.ballot, step)
        self._renew_lease(step)
        member.deadlines.clear("resend", "giveup")
        if self.peers.lack_sync(step):
            self._schedule_resend(step)
        member.tell("serving", step)
        self._schedule_touch(step)
        self.handoff.watch(step)
        self.serving.begin(step)

    def _holds_handoff(self) -> bool:
        """This config has ended: its successor is to be started, and nothing else is left to do."""
        return isinstance(self.member.ledger.records.get("handoff"), HandoffRecord)

    # -- updates -----------------------------------------------------------------------------------------

    def propose(
        self,
        entry: Entry,
        step: Step,
        *,
        to_all: bool = False,
        outbox: Mapping[NodeId, list[OutboundMessage]] = NO_OUTBOX,
    ) -> None:
        """to_all: the others need it as soon as the nearest. outbox: messages that wait for its commit.

        It is sent before this member writes it, so that all write at once (decision 22). That this member
        counts itself is safe: whatever comes of it follows the record, and so waits for the disk. An early
        message does, too.
        """
        member, peers = self.member, self.peers
        member.ledger.append(entry)
        waiting = self._who_waits(outbox, step) if outbox and member.completes_quorum() else []
        if waiting:
            self._write_and_send(entry, waiting, step)
        else:
            self._send_first(step, to_all=to_all)
            member.persist(entry, self.ballot, step)
        others = self._acknowledged_by > len(peers.nearest) and not to_all
        if others and "spread" not in member.deadlines:
            self._spread_by_ms = step.now_ms + member.lease_ms / SPREADS
            self._expect_nearest(step)
        elif others and self.committed >= self._expected:
            self._expect_nearest(step)
        if not self._was_busy and self._busy:
            self._schedule_touch(step)
        if "resend" not in member.deadlines:
            self._schedule_resend(step)
        if "giveup" not in member.deadlines:
            member.deadlines.set("giveup", member.settings.commit_giveup_ms, step)
        if self.quorum == 1:  # otherwise somebody else has to have it first
            self._count(step)

    def _send_first(self, step: Step, *, to_all: bool) -> None:
        """Before it is written, and so without messages that still wait for entries before it."""
        self._unwritten = True
        if to_all:
            self._send_to_all(step)
        else:
            for peer in self.peers.nearest:
                self._send_if_free(peer, step)
        self._unwritten = False

    def _write_and_send(self, entry: Entry, waiting: Iterable[Peer], step: Step) -> None:
        """What a message waits for is written before the message is sent."""
        self.member.persist(entry, self.ballot, step)
        self._send_with_messages(waiting, step)

    def _who_waits(self, outbox: Mapping[NodeId, list[OutboundMessage]], step: Step) -> list[Peer]:
        """The members that messages go to, which wait with them for the next message. With the entry such a
        member knows that it is committed, and need not wait until this leader does (decision 24)."""
        found: list[Peer] = []
        for node, of_node in outbox.items():
            peer = self.peers.of_node.get(node)
            if peer is not None and peer.acked is not None and not self.peers.is_silent(peer, step):
                peer.messages.extend(of_node)
                found.append(peer)
        return found

    def _send_with_messages(self, waiting: Iterable[Peer], step: Step) -> None:
        """The entry goes to who waits for a message, in the place of the nearest if it is as near."""
        near = any(map(self.peers.is_near, waiting))
        for peer in waiting if near else dict.fromkeys([*waiting, *self.peers.nearest]):
            self._send_if_free(peer, step)

    def _with_messages(self, peer: Peer, update: Update) -> Update:
        """With the messages to that member that wait for entries which it then has. Who gets one counts all
        that comes with it as committed: so there is none with an entry that is not written yet. And none
        while it has a state instead of entries that are not committed: it could not tell of those."""
        if self._unwritten or self.committed < peer.sent_again:
            return update
        outbox = [outbound for outbound in peer.messages if not outbound.sent]
        peer.messages.clear()
        if not outbox:
            return update
        for outbound in outbox:
            outbound.told = partial(peer.has, self.member.ledger.number)
        return UpdateWithMessages(
            update.ballot,
            update.first,
            update.entries,
            update.committed,
            update.sent_ms,
            update.busy,
            tuple(outbound.message for outbound in outbox),
        )

    def _send_if_free(self, peer: Peer, step: Step) -> None:
        """Unless it was sent everything, or enough is on its way to it already."""
        if peer.sent < self.member.ledger.number and peer.sent - (peer.acked or 0) < MAX_IN_FLIGHT:
            self._send_news(peer, step)

    def _send_news(self, peer: Peer, step: Step, *, also_empty: bool = False) -> None:
        """An update with all that it was not sent yet, if there is anything: also_empty says it anyhow.

        Who was silent and is not needed, or lacks more than is kept, gets none of it: it asks when it is
        back. Who has not acknowledged the state that this ballot opened with gets nothing.
        """
        if peer.acked is None:
            return
        ledger = self.member.ledger
        entries: tuple[SaidEntry, ...] | None = ()
        if peer.near or not self.peers.is_silent(peer, step):
            entries = ledger.said_since(max(peer.acked, peer.sent))
            peer.sent = ledger.number
        if entries is None:
            entries, also_empty = (), True  # an update without them has it ask for the state
        if entries or also_empty:
            update = self._update(peer, entries, step)
            self.member.send(peer.rank, self._with_messages(peer, update) if entries else update, step)
            peer.said_ms = step.now_ms

    def _update(self, peer: Peer, entries: tuple[SaidEntry, ...], step: Step) -> Update:
        """The last entries."""
        first = self.member.ledger.number - len(entries) + 1
        return Update(
            self.ballot, first, entries, self.committed, self.sent_ms(step), peer.near and self._busy
        )

    def _expect_nearest(self, step: Step) -> None:
        """The others hear it sooner if the nearest do not acknowledge it in time."""
        self._expected = self.member.ledger.number
        self._late_ms = step.now_ms + self.peers.wait_ms
        due_ms = min(self._late_ms, self._spread_by_ms)
        self.member.deadlines.set("spread", max(due_ms - step.now_ms, 0.0), step)

    def _on_spread_due(self, step: Step) -> None:
        """The others hear it. If one of the nearest did not answer in time, it is at once, and they are asked
        first from now on."""
        # A deadline that is due may lie a rounding ahead.
        if self.committed < self._expected and step.now_ms + ROUNDING_MS >= self._late_ms:
            self.peers.choose_nearest(step, self._expected)
        self._send_to_all(step)

    def _send_to_all(self, step: Step) -> None:
        for peer in self.peers.all:
            self._send_news(peer, step)

    @property
    def _busy(self) -> bool:
        return self.serving is not None and self.serving.busy

    def on_body(self, rank: int, body: Body, step: Step) -> None:
        match body:
            case Acked():
                peer = self.peers.of_rank[rank]
                if body.sent_ms == int(peer.said_ms - self._opened_ms):
                    peer.sample(step.now_ms - peer.said_ms)
                self._on_acked(peer, body.number, self._opened_ms + body.sent_ms, step)
            case Gap():
                self.give_state(rank, body, step)
            case Installed() if self.ballot == OPENING and body.successor == self.member.mark:
                self._on_acked(self.peers.of_rank[rank], body.number, float("-inf"), step)
            case _:
                pass

    def _on_acked(self, peer: Peer, number: int, sent_ms: float, step: Step) -> None:
        peer.heard_ms = step.now_ms
        if peer.acked is None:
            peer.acked = number
            self._acknowledged_by += 1
            self.peers.choose_nearest(step)
        peer.acked = max(peer.acked, number)
        peer.lease_from_ms = max(peer.lease_from_ms, sent_ms)
        self._renew_lease(step)
        self._count(step)
        if peer.near or peer.messages:
            self._send_if_free(peer, step)

    def give_state(self, rank: int, asked: Gap | Recover, step: Step) -> None:
        member = self.member
        self.peers.of_rank[rank].sent_again = member.ledger.number
        member.send(rank, member.state_for(asked, self.ballot, step), step)

    def _count(self, step: Step) -> None:
        """The number that f+1 members have, this one included."""
        member = self.member
        f = self.quorum - 1
        if self._acknowledged_by < f:
            return
        number = member.ledger.number
        if f:
            acked = [peer.acked for peer in self.peers.all if peer.acked is not None]
            number = min(sorted(acked, reverse=True)[f - 1], number)
        if self.role is Role.SYNCING:
            if number >= member.ledger.number:
                self._become_serving(step)
            return
        if number > self.committed:
            self._commit(number, step)

    def _commit(self, number: int, step: Step) -> None:
        member = self.member
        first = self.committed + 1
        self.committed = member.committed = number
        entries = member.ledger.since(first - 1) or ()
        for one, entry in enumerate(entries[: number - first + 1], start=first):
            digest = member.ledger.digest if one == member.ledger.number else -1
            step.observe(Committed(member.config.group, member.config, self.ballot, one, entry, digest))
        if number == member.ledger.number:
            if not self.peers.lack_sync(step):
                member.deadlines.clear("resend")
            member.deadlines.clear("giveup")
            if "spread" in member.deadlines:
                member.deadlines.set("spread", max(self._spread_by_ms - step.now_ms, 0.0), step)
            member.deadlines.wake_on_time(step)
        else:
            if "spread" in member.deadlines and number >= self._expected:
                self._expect_nearest(step)
            member.deadlines.set("giveup", member.settings.commit_giveup_ms, step)
            self._schedule_resend(step)
        if self.role is Role.HANDING_OFF:
            self.handoff.on_committed(step)
        elif self.serving is not None:
            self.serving.on_committed(number, step)

    def sent_ms(self, step: Step) -> int:
        """What a message says of now, and its acknowledgement says again. Rounded down: the lease that runs
        from there ends no later for it."""
        return int(step.now_ms - self._opened_ms)

    # -- the lease ---------------------------------------------------------------------------------------

    def _renew_lease(self, step: Step) -> None:
        if self.member.forced:
            return  # it only hands off: whoever it does not hear may still act
        f = self.quorum - 1
        until_ms = float("inf")
        if f:
            if self._acknowledged_by < f:
                return
            sent_ms = sorted([peer.lease_from_ms for peer in self.peers.all], reverse=True)
            until_ms = sent_ms[f - 1] + self._lease_for_ms()
        if until_ms > self._leased_until_ms:
            self._leased_until_ms = until_ms
            self._leased_ms = step.now_ms
        if self.serving is not None:
            self.serving.lease_until_ms = self._leased_until_ms

    def _lease_for_ms(self) -> float:
        return self.member.lease_ms * (1 - self.member.settings.drift)

    def touch(self, rank: int, step: Step) -> None:
        """Prove life, and ask for the lease: an update with what is new, or with nothing."""
        peer = self.peers.of_rank[rank]
        if peer.acked is not None and self.role is not Role.SYNCING:
            self._send_news(peer, step, also_empty=True)
        else:
            self._send_sync_to(peer, step)

    def _until_touch_ms(self, peer: Peer, step: Step) -> float:
        """How long until a member that hears nothing else is to be touched."""
        lease_ms = self.member.lease_ms
        apart_ms = lease_ms / BUSY_TOUCHES if self._was_busy and peer.near else lease_ms
        return peer.said_ms + apart_ms - step.now_ms

    def _schedule_touch(self, step: Step) -> None:
        self._was_busy = self._busy
        after_ms = min(
            (self._until_touch_ms(peer, step) for peer in self.peers.all), default=self.member.lease_ms
        )
        self.member.deadlines.set("touch", max(after_ms, MIN_TOUCH_MS), step)

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
        member = self.member
        unleased_ms = step.now_ms - self._leased_ms
        alone = self.quorum > 1 and unleased_ms > member.settings.commit_giveup_ms
        if alone or member.host.unable:
            self.give_up(step)
            return
        self.peers.choose_nearest(step)
        for peer in self.peers.all:
            if self._until_touch_ms(peer, step) <= TOGETHER * member.lease_ms:
                self.touch(peer.rank, step)
        self._schedule_touch(step)

    def _schedule_resend(self, step: Step) -> None:
        self._resend_ms = max(2 * self.peers.far_ms, MIN_RESEND_MS)
        self.member.deadlines.set("resend", self._resend_ms, step)

    def _resend(self, step: Step) -> None:
        """To whoever lacks something: the entries since what it acknowledged. Who was silent gets touches
        only, and asks for what it lacks when it is back."""
        member, ledger = self.member, self.member.ledger
        if self.role is Role.SYNCING:
            self._send_sync(step)
        else:
            lack_sync = self.peers.lack_sync(step)
            for peer in lack_sync:
                self._send_sync_to(peer, step)
            if self.committed == ledger.number and not lack_sync:
                return
            for peer in self.peers.all:
                have = peer.acked
                if have is None or have >= ledger.number or self.peers.is_silent(peer, step):
                    continue
                entries = ledger.said_since(have) or ledger.said_since(self.committed) or ()
                member.send(peer.rank, self._update(peer, entries, step), step)
                peer.sent = peer.sent_again = ledger.number
        self._resend_ms = min(2 * self._resend_ms, member.settings.max_update_resend_ms)
        member.deadlines.set("resend", self._resend_ms, step)

    def give_up(self, step: Step) -> None:
        self.member.send_all(GiveUp(self.ballot), step)
        self.member.follow(step)
