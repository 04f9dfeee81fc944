"""From config to config: one mechanism for epochs, replacement and new deployment versions (section 4).

1. Invite the members of the next config, with the state so far; this config serves on.
2. When they are Ready (the base flushed, their stores known), and no command is under way (for a while no
   other begins), commit the handoff entry: the last one that this config ever has. From proposing it on
   there are no outside effects but letters that waited for entries before it, so the parts end here.
3. Start to every new member: the config, the entry's number, the digest of the state there, what it lacks.
4. When f+1 of them are Installed, the old members retire.

Whoever comes to lead a config that holds the entry repeats step 3: a config has one successor.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from comesh.core.group.config import UNBOUND_STORE, Config, Seat
from comesh.core.group.patience import lost_members
from comesh.core.group.roles import Role
from comesh.core.group_messages import Installed, Invite, Ready, Retire, Start
from comesh.core.ids import NodeId
from comesh.core.records import HandoffRecord, Record, SaidEntry
from comesh.core.step import Step

if TYPE_CHECKING:
    from comesh.core.group.leadership import Leadership
    from comesh.core.group.replica import Replica
    from comesh.core.group.serving import Serving

LANDING_MS: Final = 5000.0
"""How long commands under way may take to land before the handoff entry; no other begins meanwhile."""
LANDING_LOOKS: Final = 10
"""Per lease: how often it is looked whether they have."""


class Handoff:
    def __init__(self, replica: "Replica", leadership: "Leadership") -> None:
        self._replica = replica
        self._leadership = leadership
        self._next: Config | None = None
        """The config that is being prepared, its seats unbound."""
        self._next_mark = 0
        self._began_ms = 0.0
        self._landing_ms: float | None = None
        """Since when commands under way are waited for."""
        self._ready: dict[NodeId, Ready] = {}
        self._left_out: dict[NodeId, int] = {}
        """Who was not Ready in time, and the epoch in which that was."""
        self._served: Serving | None = None
        """What ended with the proposal of the entry: what it has to tell of commits that come with it."""
        self._successor: Config | None = None
        self._lacking: dict[NodeId, None] = {}
        """New members that lack the base: they are sent everything."""
        self._installed: dict[NodeId, None] = {}

    # -- 1: invite ---------------------------------------------------------------------------------------

    def watch(self, step: Step) -> None:
        """Look every lease whether another config is due."""
        self._replica.deadlines.set("handoff", self._replica.lease_ms, step)

    def hurry(self, step: Step) -> None:
        """Look now."""
        if self._next is None and self._replica.role is Role.SERVING:
            self._look(step)

    def on_due(self, name: str, step: Step) -> None:
        if name == "start":
            self._send_starts(step)
            return
        if self._replica.role is not Role.SERVING:
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
        if self._replica.role is Role.SERVING and "handoff" not in self._replica.deadlines:
            self.watch(step)

    def _look(self, step: Step) -> None:
        replica = self._replica
        epoch = replica.config.epoch
        self._left_out = {node: seen for node, seen in self._left_out.items() if seen >= epoch}
        proposed = replica.host.next_config(replica, frozenset(self._left_out), step)
        if proposed is not None:
            self._invite(proposed, step)

    def _invite(self, proposed: Config, step: Step) -> None:
        replica = self._replica
        self._next, self._next_mark = proposed, proposed.mark
        self._began_ms = step.now_ms
        self._ready = {}
        self._let_go()
        for node in proposed.nodes:
            if node != replica.host.own:
                self._send_invite(node, step)
        self._consider(step)

    def _send_invite(self, node: NodeId, step: Step) -> None:
        assert self._next is not None
        replica = self._replica
        ledger = replica.ledger
        has_it = node in replica.config.nodes
        records = None if has_it else ledger.snapshot()
        invite = Invite(self._next, ledger.number, ledger.digest, records)
        replica.host.send(node, replica, invite, step)

    def _missing(self) -> list[NodeId]:
        assert self._next is not None
        own = self._replica.host.own
        return [node for node in self._next.nodes if node != own and node not in self._ready]

    def _wait_on(self, step: Step) -> None:
        """Invite again; who is not Ready in time is left out, and another config computed."""
        replica = self._replica
        if step.now_ms - self._began_ms < replica.settings.ready_wait_ms:
            for node in self._missing():
                self._send_invite(node, step)
            return
        late = self._missing()
        before = self._next
        for node in late:
            self._left_out[node] = replica.config.epoch
        self._next = None
        proposed = replica.host.next_config(replica, frozenset(self._left_out), step)
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
            ledger = self._replica.ledger
            invite = Invite(self._next, ledger.number, ledger.digest, ledger.snapshot())
            self._replica.host.send(node, self._replica, invite, step)
            return
        self._ready[node] = ready
        self._consider(step)

    def _consider(self, step: Step) -> None:
        """Go on when everybody who lives is Ready, and nothing is in the air."""
        if self._is_ready() and not self._goes_without(step) and self._landed(step):
            self._propose(step)

    def _goes_without(self, step: Step) -> bool:
        """Who died since it was invited, or never ran, gets no seat where somebody else can have it: another
        config is prepared."""
        replica = self._replica
        missing = self._missing()
        if not missing:
            return False
        self._left_out |= dict.fromkeys(missing, replica.config.epoch)
        proposed = replica.host.next_config(replica, frozenset(self._left_out), step)
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
        host = self._replica.host
        return all(host.is_dead(node) for node in self._missing()) and self._is_enough()

    def _let_go(self) -> None:
        """Commands begin again: the next config is not near any more."""
        self._landing_ms = None
        if self._leadership.serving is not None:
            self._leadership.serving.holds_back = False

    def _landed(self, step: Step) -> bool:
        """No command is under way, or that was waited for long enough. The next leader could not tell what
        came of one that must not be done twice. Where members are lost, a lease is long enough: one that a
        leader before had under way takes longer than the group may have."""
        serving = self._leadership.serving
        if serving is None or not serving.in_flight:
            return True
        if self._landing_ms is None:
            self._landing_ms = step.now_ms
            serving.holds_back = True
        replica = self._replica
        replica.deadlines.set("handoff", replica.lease_ms / LANDING_LOOKS, step)
        hurries = lost_members(replica, self._leadership, step)
        return step.now_ms - self._landing_ms >= (replica.lease_ms if hurries else LANDING_MS)

    def _is_enough(self) -> bool:
        """Ready before commit: f+1 of the new members have the base on disk."""
        assert self._next is not None
        own = self._replica.host.own in self._next.nodes
        return len(self._ready) + own >= self._next.quorum

    # -- 2: the entry ------------------------------------------------------------------------------------

    def _propose(self, step: Step) -> None:
        replica = self._replica
        assert self._next is not None
        stores = {node: ready.store for node, ready in self._ready.items()}
        stores[replica.host.own] = replica.host.store
        seats = tuple(Seat(node, stores.get(node, UNBOUND_STORE)) for node in self._next.nodes)
        successor = msgspec.structs.replace(self._next, seats=seats)
        self._next = None
        self._end_serving(step)
        replica.become(Role.HANDING_OFF, step)
        replica.deadlines.clear("handoff")
        replica.tell("handing off", step)
        self._leadership.propose((HandoffRecord(successor),), step, to_all=True)

    def _end_serving(self, step: Step) -> None:
        """No outside effects from here on but letters that wait already, and no entry after the next one."""
        serving, self._leadership.serving = self._leadership.serving, None
        if serving is not None:
            self._served = serving
            self._replica.host.close_serving(serving, step)

    def on_committed(self, step: Step) -> None:
        if self._served is not None:
            self._served.on_committed(self._leadership.committed, step)
        if self._successor is None and self._leadership.committed == self._replica.ledger.number:
            self.begin_start(step)

    # -- 3 and 4: start, retire --------------------------------------------------------------------------

    def begin_start(self, step: Step) -> None:
        record = self._replica.ledger.records["handoff"]
        assert isinstance(record, HandoffRecord)
        self._successor = record.successor
        self._send_starts(step)

    def _send_starts(self, step: Step) -> None:
        replica = self._replica
        assert self._successor is not None
        known = replica.host.knows_successor(replica)
        if known is not None and known.number > self._successor.number:
            # What this one starts has ended, and its members may be gone: nobody else would say so. That the
            # successor itself is listed is not enough: one who was forced to may lead it alone.
            self._retire_all(known, step)
            return
        for seat in self._successor.seats:
            if seat.node not in self._installed and seat.store != UNBOUND_STORE:
                self._send_start(seat.node, step)
                if replica.role is Role.RETIRED:
                    return
        replica.deadlines.set("start", replica.settings.start_resend_ms, step)

    def _send_start(self, node: NodeId, step: Step) -> None:
        replica = self._replica
        assert self._successor is not None
        ledger = replica.ledger
        base = ledger.number
        records: tuple[Record, ...] = ()
        entries: tuple[SaidEntry, ...] = ()
        if node not in replica.config.nodes or node in self._lacking:
            ready = self._ready.get(node)
            since = None if ready is None or node in self._lacking else ledger.said_since(ready.number)
            base = -1 if since is None or ready is None else ready.number
            records, entries = (ledger.snapshot(), ()) if since is None else ((), since)
        start = Start(self._successor, ledger.number, ledger.digest, base, records, entries)
        replica.host.send(node, replica, start, step)

    def on_installed(self, node: NodeId, installed: Installed, step: Step) -> None:
        replica = self._replica
        successor = self._successor
        if successor is None or installed.successor != successor.mark or node not in successor.nodes:
            return
        self._installed[node] = None
        if len(self._installed) >= successor.quorum and replica.role is Role.HANDING_OFF:
            self._retire_all(successor, step)

    def _retire_all(self, newer: Config, step: Step) -> None:
        self._replica.send_all(Retire(newer), step)
        self._replica.retire(newer, step)
