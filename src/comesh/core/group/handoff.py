"""From config to config: one mechanism for epochs, replacement and new deployment versions (section 4).

1. Invite the members of the next config, with the state so far; this config serves on.
2. When they are Ready (the base flushed, their stores known), and no command is under way (for a while no
   other begins), commit the handoff entry: the last one that this config ever has. From proposing it on
   there are no outside effects but messages that waited for entries before it, so the parts end here.
3. Start to every new member: the config, the entry's number, the digest of the state there, what it lacks.
4. When f+1 of them are Installed, the old members retire.

Whoever comes to lead a config that holds the entry repeats step 3: a config has one successor.

Another config is due at the end of an epoch, when a member is gone, and for a new deployment version. The
clock only proposes: a leader looks whether its wall clock has crossed a boundary since it began to serve, and
then counts the epoch up by one. So a clock that was set forward costs at most one handoff, epochs never go
back, and never run ahead of the clock by more than the boundaries it showed. Groups are staggered by hash. An
epoch is prolonged, by one at most, while a command is under way: the next leader would have to wait until it
cannot land any more, counted from its own beginning.
"""

from collections.abc import Collection
from typing import Final, Protocol

import msgspec

from comesh.core.draws import mix64
from comesh.core.group.config import UNBOUND_STORE, Config, Seat, unbound
from comesh.core.group.member import Member
from comesh.core.group.peers import Peers
from comesh.core.group.phases import Role, Trigger
from comesh.core.group.serving import Serving
from comesh.core.group_messages import Installed, Invite, Ready, Retire, Start
from comesh.core.ids import GroupId, NodeId
from comesh.core.program import Program
from comesh.core.records import Entry, HandoffRecord, Record, SaidEntry
from comesh.core.selection.hashing import id_hash
from comesh.core.step import Step

LANDING_MS: Final = 5000.0
"""How long commands under way may take to land before the handoff entry; no other begins meanwhile."""
LANDING_LOOKS: Final = 10
"""Per lease: how often it is looked whether they have."""


def stagger(group: GroupId) -> float:
    """From 0 to 1, by hash."""
    return (mix64(id_hash("stagger", group)) >> 11) * 2.0**-53


def clock_epoch(group: GroupId, wall_ms: float, epoch_ms: float) -> int:
    return int((wall_ms + stagger(group) * epoch_ms) // epoch_ms)


class Leader(Protocol):
    """The leadership that hands off."""

    member: Member
    peers: Peers
    serving: Serving | None
    committed: int
    began_wall_ms: float

    def propose(self, entry: Entry, step: Step, *, to_all: bool = False) -> None: ...


class Handoff:
    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._member = leader.member
        self._next: Config | None = None
        """The config that is being prepared, its seats unbound."""
        self._next_mark = 0
        self._began_ms = 0.0
        self._landing_ms: float | None = None
        """Since when commands under way are waited for."""
        self._ready: dict[NodeId, Ready] = {}
        self._left_out: dict[NodeId, int] = {}
        """Nodes that were not Ready in time, and the epoch in which that was."""
        self._served: Serving | None = None
        """What ended with the proposal of the entry: what it has to tell of commits that come with it."""
        self._successor: Config | None = None
        self._lacking: dict[NodeId, None] = {}
        """New members that lack the base: they are sent everything."""
        self._installed: dict[NodeId, None] = {}
        self._short_since_ms: float | None = None
        """Since when a member or more are gone."""

    # -- 1: invite ---------------------------------------------------------------------------------------

    def watch(self, step: Step) -> None:
        """Look every lease whether another config is due."""
        self._member.deadlines.set("handoff", self._member.lease_ms, step)

    def hurry(self, step: Step) -> None:
        """Look now."""
        if self._next is None and self._member.role is Role.SERVING:
            self._look(step)

    def on_due(self, name: str, step: Step) -> None:
        if name == "start":
            self._send_starts(step)
            return
        if self._member.role is not Role.SERVING:
            return
        if self._next is None:
            self._look(step)
        elif self._is_ready():
            self._consider(step)
        else:
            self._let_go()
            self._wait_on(step)
        self._watch_on(step)

    def _watch_on(self, step: Step) -> None:
        if self._member.role is Role.SERVING and "handoff" not in self._member.deadlines:
            self.watch(step)

    def _look(self, step: Step) -> None:
        member = self._member
        epoch = member.config.epoch
        self._left_out = {node: seen for node, seen in self._left_out.items() if seen >= epoch}
        proposed = self._next_config(frozenset(self._left_out), step)
        if proposed is not None:
            self._invite(proposed, step)

    def _invite(self, proposed: Config, step: Step) -> None:
        member = self._member
        self._next, self._next_mark = proposed, proposed.mark
        self._began_ms = step.now_ms
        self._ready = {}
        self._let_go()
        for node in proposed.nodes:
            if node != member.host.own:
                self._send_invite(node, step)
        self._consider(step)

    def _send_invite(self, node: NodeId, step: Step) -> None:
        assert self._next is not None
        member = self._member
        ledger = member.ledger
        has_it = node in member.config.nodes
        records = None if has_it else ledger.snapshot()
        invite = Invite(self._next, ledger.number, ledger.digest, records)
        member.host.send(node, member, invite, step)

    def _missing(self) -> list[NodeId]:
        assert self._next is not None
        own = self._member.host.own
        return [node for node in self._next.nodes if node != own and node not in self._ready]

    def _wait_on(self, step: Step) -> None:
        """Invite again; who is not Ready in time is left out, and another config computed."""
        member = self._member
        if step.now_ms - self._began_ms < member.settings.ready_wait_ms:
            for node in self._missing():
                self._send_invite(node, step)
            return
        late = self._missing()
        before = self._next
        for node in late:
            self._left_out[node] = member.config.epoch
        self._next = None
        proposed = self._next_config(frozenset(self._left_out), step)
        if proposed is None:
            return
        if before is not None and set(proposed.nodes) == set(before.nodes):
            self._next = before
            if self._is_enough():
                self._propose(step)
                return
        self._invite(proposed, step)

    def on_ready(self, node: NodeId, ready: Ready, step: Step) -> None:
        if self._successor is not None:
            if ready.number < 0:
                self._lacking[node] = None
                self._send_start(node, step)
            return
        if self._next is None or ready.successor != self._next_mark or node not in self._next.nodes:
            return
        if ready.number < 0:
            ledger = self._member.ledger
            invite = Invite(self._next, ledger.number, ledger.digest, ledger.snapshot())
            self._member.host.send(node, self._member, invite, step)
            return
        self._ready[node] = ready
        self._consider(step)

    def _consider(self, step: Step) -> None:
        """Go on when everybody who lives is Ready, and nothing is in the air."""
        if self._is_ready() and not self._goes_without(step) and self._landed(step):
            self._propose(step)

    def _goes_without(self, step: Step) -> bool:
        """A node that died since it was invited, or never ran, gets no seat where another one can have it:
        another config is prepared."""
        member = self._member
        missing = self._missing()
        if not missing:
            return False
        self._left_out |= dict.fromkeys(missing, member.config.epoch)
        proposed = self._next_config(frozenset(self._left_out), step)
        before, self._next = self._next, None
        if proposed is None:
            self._let_go()
        elif before is not None and set(proposed.nodes) == set(before.nodes):
            self._next = before
            return False
        else:
            self._invite(proposed, step)
        return True

    def _is_ready(self) -> bool:
        host = self._member.host
        return all(host.is_dead(node) for node in self._missing()) and self._is_enough()

    def _let_go(self) -> None:
        """Commands begin again: the next config is not near any more."""
        self._landing_ms = None
        if self._leader.serving is not None:
            self._leader.serving.holds_back = False

    def _landed(self, step: Step) -> bool:
        """No command is under way, or that was waited for long enough. The next leader could not tell what
        came of one that must not be done twice. Where members are lost, a lease is long enough: one that a
        leader before had under way takes longer than the group may have."""
        serving = self._leader.serving
        if serving is None or not serving.in_flight:
            return True
        if self._landing_ms is None:
            self._landing_ms = step.now_ms
            serving.holds_back = True
        member = self._member
        member.deadlines.set("handoff", member.lease_ms / LANDING_LOOKS, step)
        hurries = self._leader.peers.lost(step)
        return step.now_ms - self._landing_ms >= (member.lease_ms if hurries else LANDING_MS)

    def _is_enough(self) -> bool:
        """Ready before commit: f+1 of the new members have the base on disk."""
        assert self._next is not None
        own = self._member.host.own in self._next.nodes
        return len(self._ready) + own >= self._next.quorum

    # -- 2: the entry ------------------------------------------------------------------------------------

    def _propose(self, step: Step) -> None:
        member = self._member
        assert self._next is not None
        stores = {node: ready.store for node, ready in self._ready.items()}
        stores[member.host.own] = member.host.store
        seats = tuple(Seat(node, stores.get(node, UNBOUND_STORE)) for node in self._next.nodes)
        successor = msgspec.structs.replace(self._next, seats=seats)
        self._next = None
        self._end_serving(step)
        member.move(Trigger.HANDOFF_PROPOSED)
        member.deadlines.clear("handoff")
        member.tell("handing off", step)
        self._leader.propose((HandoffRecord(successor),), step, to_all=True)

    def _end_serving(self, step: Step) -> None:
        """No outside effects from here on but messages that wait already, and no entry after the next one."""
        serving, self._leader.serving = self._leader.serving, None
        if serving is not None:
            self._served = serving
            self._member.host.close_serving(serving, step)

    def on_committed(self, step: Step) -> None:
        if self._served is not None:
            self._served.on_committed(self._leader.committed, step)
        if self._successor is None and self._leader.committed == self._member.ledger.number:
            self.begin_start(step)

    # -- 3 and 4: start, retire --------------------------------------------------------------------------

    def begin_start(self, step: Step) -> None:
        record = self._member.ledger.records["handoff"]
        assert isinstance(record, HandoffRecord)
        self._successor = record.successor
        self._send_starts(step)

    def _send_starts(self, step: Step) -> None:
        member = self._member
        assert self._successor is not None
        known = member.host.knows_successor(member)
        if known is not None and known.number > self._successor.number:
            # What this one starts has ended, and its members may be gone: nobody else would say so. That the
            # successor itself is listed is not enough: one who was forced to may lead it alone.
            self._retire_all(known, step)
            return
        for seat in self._successor.seats:
            if seat.node not in self._installed and seat.store != UNBOUND_STORE:
                self._send_start(seat.node, step)
                if member.role is Role.RETIRED:
                    return
        member.deadlines.set("start", member.settings.start_resend_ms, step)

    def _send_start(self, node: NodeId, step: Step) -> None:
        member = self._member
        assert self._successor is not None
        ledger = member.ledger
        base = ledger.number
        records: tuple[Record, ...] = ()
        entries: tuple[SaidEntry, ...] = ()
        if node not in member.config.nodes or node in self._lacking:
            ready = self._ready.get(node)
            since = None if ready is None or node in self._lacking else ledger.said_since(ready.number)
            base = -1 if since is None or ready is None else ready.number
            records, entries = (ledger.snapshot(), ()) if since is None else ((), since)
        start = Start(self._successor, ledger.number, ledger.digest, base, records, entries)
        member.host.send(node, member, start, step)

    def on_installed(self, node: NodeId, installed: Installed, step: Step) -> None:
        member = self._member
        successor = self._successor
        if successor is None or installed.successor != successor.mark or node not in successor.nodes:
            return
        self._installed[node] = None
        if len(self._installed) >= successor.quorum and member.role is Role.HANDING_OFF:
            self._retire_all(successor, step)

    def _retire_all(self, newer: Config, step: Step) -> None:
        self._member.send_all(Retire(newer), step)
        self._member.retire(newer, step)

    # -- which config is due -----------------------------------------------------------------------------

    def _next_config(self, left_out: frozenset[NodeId], step: Step) -> Config | None:
        """The config that should follow now, its seats unbound; None: this one stays."""
        member = self._member
        newest, living, table = member.host.view()
        config = member.config
        group = config.group
        is_left = group not in newest.plan.genesis
        crossed = not is_left and self._is_epoch_over(newest.settings.epoch_ms, step)
        adopts = newest.version > config.version
        lost = self._leader.peers.lost(step)
        wanted = crossed or adopts or member.forced or self._is_short(living, step)
        if not wanted and not lost:
            return None
        epoch = config.epoch + crossed
        alive = [node for node in living if node not in left_out and node not in lost]
        members = (
            _who_stays(config, newest, alive)
            if is_left
            else newest.selector.select(group, epoch, alive, table)
        )
        same = set(members) == set(config.nodes) and not self._leader.peers.unseated(living, step)
        if same and not (crossed or adopts or member.forced):
            return None
        if not wanted and len(members) < len(config.seats):
            return None  # nobody is there to take the places of the lost
        return Config(
            group=group,
            number=config.number + 1,
            epoch=epoch,
            seats=unbound(members),
            lease_ms=newest.settings.lease_ms,
            version=newest.version,
        )

    def _is_epoch_over(self, epoch_ms: float, step: Step) -> bool:
        """The clock has crossed a boundary; while a command is under way, a second one."""
        group = self._member.config.group
        began = clock_epoch(group, self._leader.began_wall_ms, epoch_ms)
        crossings = clock_epoch(group, step.wall_ms, epoch_ms) - began
        serving = self._leader.serving
        return crossings > (1 if serving is not None and serving.in_flight else 0)

    def _is_short(self, living: Collection[NodeId], step: Step) -> bool:
        """A member is gone, and has been for replace_after_ms: the next one might be one too many."""
        member = self._member
        unseated = len(self._leader.peers.unseated(living, step))
        gone = sum(seat.node not in living for seat in member.config.seats) + unseated
        if not gone:
            self._short_since_ms = None
            return False
        if self._short_since_ms is None:
            # Who is silent has been for as long already.
            waited_ms = member.settings.replace_after_ms if unseated else 0.0
            self._short_since_ms = step.now_ms - waited_ms
        return step.now_ms - self._short_since_ms >= member.settings.replace_after_ms


def _who_stays(config: Config, newest: Program, alive: Collection[NodeId]) -> tuple[NodeId, ...]:
    """Members of a group whose cluster is gone from the deployment. It serves what is left to its end, so
    whoever is there stays, in all epochs; others take the places of those who are not."""
    stay = [node for node in config.nodes if node in newest.node_since and node in alive]
    others = sorted(node for node in alive if node in newest.node_since and node not in stay)
    absent = [node for node in config.nodes if node not in stay]
    return tuple((stay + others + absent)[: len(config.nodes)])
