"""Keeps what a node believes of the others, and decides what it passes on.

Rules:
- An update counts if it overrides the entry in the table (table.py says when); it is then passed on.
- That a member of the deployment is alive for the first time is no news: everyone presumed it.
- A suspicion that nobody refutes in time (suspicion.py) becomes a death.
"""

from comesh.core.effects import AnnouncementLearned, MemberChanged, Refused
from comesh.core.events import Timer
from comesh.core.ids import NEVER, Incarnation, NodeId
from comesh.core.membership.announcements import Board, is_quiet
from comesh.core.membership.gossip_queue import GossipQueue
from comesh.core.membership.roster import Roster
from comesh.core.membership.settings import MembershipSettings
from comesh.core.membership.suspicion import Suspicion
from comesh.core.membership.table import Table
from comesh.core.messages import Announcement, MemberState, MemberUpdate
from comesh.core.step import Step


class Beliefs:
    __slots__ = ("_own", "_roster", "_settings", "_suspicions", "board", "queue", "returned", "table")

    def __init__(self, own: NodeId, table: Table, settings: MembershipSettings) -> None:
        self._own = own
        self._roster = table.roster
        self._settings = settings
        self._suspicions: dict[NodeId, Suspicion] = {}
        self.table = table
        self.queue = GossipQueue()
        self.board = Board()
        self.returned: set[NodeId] = set()
        """Nodes that were suspected or gone and are alive again; the reader of the set empties it."""

    def adopt(self, roster: Roster, step: Step) -> None:
        """Takes another deployment version: forgets the nodes that are not in it any more."""
        for node in self._roster.ids:
            if node not in roster.index:
                self.queue.members.drop(node)
                if self._suspicions.pop(node, None) is not None:
                    step.cancel_timer(_expiry(node))
        self._roster = roster
        self.table.adopt(roster)

    @property
    def sends(self) -> int:
        return self._settings.sends(self.table.living)

    def hear(self, number: int, incarnation: Incarnation, step: Step) -> None:
        """Takes note that a member spoke itself. Raises its entry, but never overrides an update at the same
        incarnation."""
        if self.table.compare(number, incarnation, MemberState.ALIVE) > 0:
            update = MemberUpdate(self._roster.ids[number], MemberState.ALIVE, incarnation)
            self.learn(number, update, step)
        if self.table.incarnation(number).life == incarnation.life:
            self.table.heard_ms[number] = step.now_ms

    def warning(self, number: int) -> MemberUpdate | None:
        """Returns the suspicion or death that a member must hear about itself, so that it can refute it."""
        state = self.table.state(number)
        return self.table.update(number) if state in (MemberState.SUSPECT, MemberState.DEAD) else None

    def learn(self, number: int, update: MemberUpdate, step: Step) -> bool:
        """Takes in an update about another member. True if it changed anything."""
        if update.state == MemberState.ALIVE and self.table.is_plainly(number, update.incarnation):
            return False
        order = self.table.compare(number, update.incarnation, update.state)
        if order < 0:
            return False
        if order == 0:
            return self._confirm(update, step)
        before = self.table.state(number)
        was = self.table.incarnation(number)
        self.table.set(number, update.incarnation, update.state)
        if self._suspicions.pop(update.node, None) is not None:
            step.cancel_timer(_expiry(update.node))
        if update.state == MemberState.SUSPECT:
            self._suspect(update, step)
        if update.state == MemberState.ALIVE != before:
            self.returned.add(update.node)
        if was == NEVER and before == update.state == MemberState.ALIVE:
            return True
        self.queue.members.put(update.node, update)
        if (before, was.life) != (update.state, update.incarnation.life):
            self._tell(update, before, was, step)
        return True

    def learn_announcement(self, announcement: Announcement, sender: NodeId | None, step: Step) -> str | None:
        """Takes in an announcement, from a peer or (sender None) from this node itself. Says why not, or
        None."""
        known = self.board.get(announcement.key)
        if known is announcement and sender is not None:
            return None  # what most messages bring
        if not self.board.is_news(announcement):
            if sender is not None or known is None or known == announcement:
                return None
            return f"announcement {announcement.key!r} is there at version {known.version}"
        why_not = self.board.why_not(announcement)
        if why_not is not None:
            if sender is not None:
                step.observe(Refused(sender, why_not))
            return why_not
        self.board.put(announcement)
        queue = self.queue.quiet if is_quiet(announcement.key) else self.queue.announcements
        queue.put(announcement.key, announcement)
        if sender is not None:
            step.observe(AnnouncementLearned(announcement.key, announcement.version, announcement.value))
        return None

    def on_expiry(self, node: NodeId, step: Step) -> bool:
        """Ends a suspicion: a witness declares the suspect dead. True: this node is no witness, and has to
        probe."""
        suspicion = self._suspicions.get(node)
        if suspicion is None:
            return False
        if not suspicion.is_witnessed:
            return True
        self.learn(
            self._roster.index[node],
            MemberUpdate(node, MemberState.DEAD, suspicion.incarnation, self._own),
            step,
        )
        return False

    def _suspect(self, update: MemberUpdate, step: Step) -> None:
        shortest_ms = self._settings.suspicion_ms(self.table.living)
        suspicion = Suspicion(
            own=self._own,
            incarnation=update.incarnation,
            began_ms=step.now_ms,
            shortest_ms=shortest_ms,
            longest_ms=shortest_ms * self._settings.suspicion_stretch,
            needed=max(0, min(self._settings.confirmations, self.table.living - 3)),
        )
        if update.by is not None:
            suspicion.confirm(update.by)
        self._suspicions[update.node] = suspicion
        step.set_timer(_expiry(update.node), suspicion.left_ms(step.now_ms))

    def _confirm(self, update: MemberUpdate, step: Step) -> bool:
        suspicion = self._suspicions.get(update.node)
        if suspicion is None or update.by is None or not suspicion.confirm(update.by):
            return False
        self.queue.members.amend(update.node, update)
        step.set_timer(_expiry(update.node), suspicion.left_ms(step.now_ms))
        return True

    def _tell(self, update: MemberUpdate, before: MemberState, was: Incarnation, step: Step) -> None:
        match update.state:
            case MemberState.ALIVE if was.life != update.incarnation.life:
                why = "restarted"
            case MemberState.ALIVE:
                why = f"was {before.name.lower()}, and responds"
            case MemberState.SUSPECT:
                why = f"no answer to {update.by or 'a node'}"
            case MemberState.DEAD:
                why = "it did not respond in time"
            case MemberState.LEFT:
                why = "it left the mesh"
        step.observe(MemberChanged(update.node, update.state.name.lower(), update.incarnation, why))


def _expiry(node: NodeId) -> Timer:
    """Names the timer of a suspicion by the node's id, which stays the same in every roster."""
    return Timer("membership", "suspicion", node)
