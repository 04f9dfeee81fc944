"""Medley: the membership service of one node. It joins probing, gossip, exchange, joining and leaving.

A node that starts compares tables with its seeds first. What the mesh remembers of its own name decides
how it goes on:

- nothing, or an older life of it: it simply speaks, and is heard as a new life;
- a younger life than its own (a wiped disk, or a copied one): still joining, it takes the next boot
  number above, so that the process that started last has the highest;
- once joined, a younger life of its name can only be another process, or the memory of a dead one. The
  node listens: if a witness hears that other life again and again, this one stops and says why. If not, it
  takes the next boot number above. Numbers of members are the roster's; they never leave the process.
"""

from collections.abc import Sequence

from comesh.core.draws import Draws
from comesh.core.effects import MemberChanged, Persist, Refused, Stop
from comesh.core.events import AnnouncementPosted, MessageReceived, Started, Timer
from comesh.core.ids import NEVER, Incarnation, NodeId
from comesh.core.journal import BootRaised
from comesh.core.membership.beliefs import Beliefs
from comesh.core.membership.former import Former
from comesh.core.membership.pages import answers, pages
from comesh.core.membership.probing import PERIOD, Prober
from comesh.core.membership.roster import Roster
from comesh.core.membership.settings import MembershipSettings
from comesh.core.membership.table import Table
from comesh.core.messages import (
    Ack,
    Announcement,
    Doubled,
    Exchange,
    Gossip,
    GossipItems,
    MembershipMessage,
    MemberState,
    MemberUpdate,
    Nack,
    Page,
    Ping,
    PingRequest,
)
from comesh.core.step import Step

GOSSIP = Timer("membership", "gossip")
EXCHANGE = Timer("membership", "exchange")
JOIN = Timer("membership", "join")
RIVAL = Timer("membership", "rival")
LEAVE = Timer("membership", "leave")

JOIN_PARTNERS = 5
MAX_JOIN_PERIODS = 30
"""Maximum periods between tries to join: the wait begins with one period and doubles up to this."""
RIVAL_PERIODS = 8
"""Periods in which a node waits for further witnesses of another process of its name: time for several
answers."""
LATE_PERIODS = 1
"""Minimum periods between two messages of the other life that a witness heard: one alone may be a late
message of the dead."""
LEAVE_ROUNDS = 5
"""Gossip rounds in which a leaving node spreads that it leaves before it stops."""
FORMER_EXCHANGES = 10
"""Exchanges of tables after which nobody should speak any more of a node that left the deployment."""

MAX_TAKEN = 4096
"""Maximum items of each kind that are taken from one message; honest ones carry far fewer."""
LONG_AGO_MS = 3_600_000.0
"""Maximum age that a message reports; anything older witnesses nothing."""
MAX_COUNT = 1 << 62
"""Maximum boot and refutation. No honest one comes near it; a claim above it would leave the wire's range."""

_WORD = (1 << 64) - 1
_ASKING = (Ping, PingRequest, Exchange)


class Medley:
    def __init__(
        self,
        *,
        own: NodeId,
        roster: Roster,
        settings: MembershipSettings,
        draws: Draws,
        seeds: Sequence[NodeId] = (),
        table: Table | None = None,
    ) -> None:
        """seeds: nodes to ask first when joining; table: what is known already (simulations)."""
        self._own = own
        self._roster = roster
        self.settings = settings
        self._draws = draws
        self._seeds = tuple(seed for seed in seeds if seed != own)
        self._number = roster.index[own]
        self.beliefs = Beliefs(own, table or Table(roster), settings)
        self.prober = Prober(own, roster, self.beliefs, settings, draws)
        self.incarnation: Incarnation = NEVER
        self._joined = False
        self._join_periods = 1
        self._leaving = ""
        """The reason why this node is about to stop, if it is."""
        self._former = Former(FORMER_EXCHANGES * settings.exchange_ms)
        self._gossiping = False
        self._rival: Incarnation | None = None
        """A younger life of this node's name."""
        self._witnesses: dict[NodeId, float] = {}
        """Nodes that reported having heard the rival, with the time of their first report."""
        self._living: tuple[int, tuple[NodeId, ...]] = (-1, ())

    # -- what others may ask -------------------------------------------------------------------------

    @property
    def joined(self) -> bool:
        return self._joined

    @property
    def living(self) -> tuple[NodeId, ...]:
        """Returns the nodes believed to be there (a suspect still is), in id order, this one included."""
        table = self.beliefs.table
        if self._living[0] != table.version:
            ids = tuple(self._roster.ids[number] for number in table.living_numbers())
            self._living = (table.version, ids)
        return self._living[1]

    @property
    def version(self) -> int:
        """A number that rises when `living` changes."""
        return self.beliefs.table.version

    def is_dead(self, node: NodeId) -> bool:
        """Says if a node is believed dead or away, or was removed. Not so a stranger: a newer version may
        have it."""
        number = self._roster.index.get(node)
        return node in self._former if number is None else not self.beliefs.table.is_living(number)

    def is_former(self, node: NodeId) -> bool:
        """Says if a newer deployment version removed this node."""
        return node in self._former

    def round_trip_ms(self, node: NodeId) -> float | None:
        """Returns the estimated round trip. None: never measured, or not a node of this deployment
        version."""
        number = self._roster.index.get(node)
        return None if number is None else self.prober.round_trips.estimate_ms(number)

    # -- what happens --------------------------------------------------------------------------------

    def on_started(self, event: Started, step: Step) -> None:
        self.incarnation = Incarnation(event.boot, event.nonce)
        table = self.beliefs.table
        alone = len(self._roster) == 1
        self._joined = alone or table.incarnation(self._number) == self.incarnation
        if table.compare(self._number, self.incarnation, MemberState.ALIVE) > 0:
            table.set(self._number, self.incarnation, MemberState.ALIVE)
        step.set_timer(PERIOD, self._draws.unit() * self.settings.period_ms)
        step.set_timer(EXCHANGE, self._draws.unit() * self.settings.exchange_ms)
        if not self._joined:
            self._join(step)

    def on_message(self, event: MessageReceived, message: MembershipMessage, step: Step) -> None:
        asks = isinstance(message, _ASKING)
        if self.hears(event.sender, event.incarnation, step, asks=asks):
            self._on_membership(self._roster.index[event.sender], event, message, step)
            self._spread_soon(step)

    def on_timer(self, timer: Timer, step: Step) -> None:
        if timer.what == "no_answer":
            self.prober.on_no_answer(int(timer.of), self.incarnation, step)
        elif timer.what == "suspicion":
            suspect = NodeId(str(timer.of))
            if self.beliefs.on_expiry(suspect, step):
                self.prober.probe(self._roster.index[suspect], self.incarnation, step)
        elif timer == PERIOD:
            self.prober.on_period(self.incarnation, step)
        elif timer == GOSSIP:
            self._on_gossip_round(step)
        elif timer == EXCHANGE:
            self._on_exchange_due(step)
        elif timer == JOIN:
            self._join(step)
        elif timer == RIVAL:
            self._on_no_witness(step)
        elif timer == LEAVE:
            step.do(Stop(self._leaving))
        if not self._gossiping and self.beliefs.queue:
            self._gossip_after(0.0, step)

    def on_announcement(self, event: AnnouncementPosted, step: Step) -> None:
        """Spreads something that this node wants all nodes to know."""
        why_not = self.beliefs.learn_announcement(
            Announcement(event.key, event.version, event.value), None, step
        )
        if why_not is not None:
            step.observe(Refused(self._own, why_not))
        elif not self._gossiping and self.beliefs.queue:
            self._gossip_after(0.0, step)

    def on_leave(self, step: Step) -> None:
        self._leave("left the mesh, as asked", step)

    def adopt(self, roster: Roster, step: Step) -> None:
        """Takes another deployment version. What is known of the nodes in both stays; new ones are presumed
        alive as at the first start, and the others are forgotten."""
        if self._leaving or roster.nodes == self._roster.nodes:
            return
        if self._own not in roster.index:
            self._leave("removed from the deployment", step)
            return
        gone = [node for node in self._roster.ids if node not in roster.index]
        was_alone = len(self._roster) == 1
        self._former.adopt(gone, roster.ids, step.now_ms)
        self.prober.adopt(roster, step)
        self.beliefs.adopt(roster, step)
        self._roster = roster
        self._number = roster.index[self._own]
        if was_alone:
            self._exchange_soon(step)
        if len(roster) == 1:
            self._become_joined(step)

    def stay(self, roster: Roster, step: Step) -> None:
        """Takes another version, but goes on even if this node is not in it: the node hears the nodes that
        are."""
        if self._own not in roster.index:
            roster = Roster((*roster.nodes, self._roster.nodes[self._number]))
        self.adopt(roster, step)

    def _leave(self, why: str, step: Step) -> None:
        if self._leaving:
            return
        self._leaving = why
        self.beliefs.table.set(self._number, self.incarnation, MemberState.LEFT)
        self._announce(step)
        step.cancel_timer(PERIOD)
        step.set_timer(LEAVE, LEAVE_ROUNDS * self.settings.gossip_ms)

    # -- messages ------------------------------------------------------------------------------------

    def _on_membership(
        self, sender: int, event: MessageReceived, message: MembershipMessage, step: Step
    ) -> None:
        match message:
            case Ping():
                self._take(message.gossip, event.sender, step)
                gossip = self.beliefs.queue.take(self.beliefs.sends, self.beliefs.warning(sender))
                step.send(event.sender, self.incarnation, Ack(message.number, gossip))
            case Ack():
                self._take(message.gossip, event.sender, step)
                self.prober.on_ack(sender, event.incarnation, message, self.incarnation, step)
            case PingRequest():
                self._take(message.gossip, event.sender, step)
                self.prober.on_request(event.sender, message, self.incarnation, step)
            case Gossip():
                self._take(message.gossip, event.sender, step)
            case Exchange():
                self._on_exchange(event.sender, message, step)
            case Page():
                self._on_page(event.sender, message, step)
            case Nack():
                self.prober.on_nack(sender, message)
            case Doubled():
                self._on_doubled(event.sender, message, step)

    def hears(
        self,
        sender: NodeId,
        incarnation: Incarnation,
        step: Step,
        *,
        asks: bool = False,
        also_former: bool = False,
    ) -> bool:
        """Takes note of a message, and says if its sender is a node of this version and of no older life than
        known.

        asks: its message wants an answer. also_former: it may be one that a newer version has no more.
        """
        number = self._roster.index.get(sender)
        if number is None:
            if also_former and sender in self._former:
                return True
            if not self._former.is_expected(sender, step.now_ms):
                step.observe(Refused(sender, "not a node of this deployment version"))
            return False
        if number == self._number:
            self._on_self(MemberUpdate(self._own, MemberState.ALIVE, incarnation), step)
            return False
        table = self.beliefs.table
        if table.is_plainly(number, incarnation):
            table.heard_ms[number] = step.now_ms
            return True
        return self._hear_oddly(number, incarnation, step, asks=asks)

    def _hear_oddly(self, sender: int, voice: Incarnation, step: Step, *, asks: bool) -> bool:
        """Handles a sender whose incarnation does not fit the table. False: a message of an earlier life, to
        be ignored.

        Only who asks is answered: two nodes that each take the other for a ghost must not go on for ever.
        """
        table = self.beliefs.table
        known = table.incarnation(sender)
        name = self._roster.ids[sender]
        if self._is_past(voice, known):
            heard_ms = table.heard_ms[sender]
            if asks and heard_ms > float("-inf"):
                ago_ms = min(step.now_ms - heard_ms, LONG_AGO_MS)
                step.send(name, self.incarnation, Doubled(known, ago_ms))
            elif asks:
                self._tell(name, table.update(sender), step)
            return False
        self.beliefs.hear(sender, voice, step)
        self._spread_soon(step)
        if asks and table.state(sender) == MemberState.DEAD:
            self._tell(name, table.update(sender), step)
        return True

    def _is_past(self, voice: Incarnation, known: Incarnation) -> bool:
        return voice.life < known.life

    def _take(self, gossip: GossipItems, sender: NodeId, step: Step) -> None:
        strangers = 0
        for update in gossip.members[:MAX_TAKEN]:
            number = self._roster.index.get(update.node)
            if number is None:
                strangers += not self._former.is_expected(update.node, step.now_ms)
            elif number == self._number:
                self._on_self(update, step)
            elif self.beliefs.learn(number, update, step) and update.state == MemberState.SUSPECT:
                self.prober.confirm(number, self.incarnation, step)
        if strangers:
            why = f"{strangers} updates about nodes that are not of this deployment version"
            step.observe(Refused(sender, why))
        for announcement in gossip.announcements[:MAX_TAKEN]:
            self.beliefs.learn_announcement(announcement, sender, step)

    def _tell(self, node: NodeId, update: MemberUpdate, step: Step) -> None:
        step.send(node, self.incarnation, Gossip(GossipItems((update,))))

    # -- news ----------------------------------------------------------------------------------------

    def _spread_soon(self, step: Step) -> None:
        """Schedules gossip of what was just learned, not at the same moment in all nodes."""
        if not self._gossiping and self.beliefs.queue:
            self._gossip_after(self._draws.unit() * self.settings.gossip_ms, step)

    def _gossip_after(self, delay_ms: float, step: Step) -> None:
        self._gossiping = True
        step.set_timer(GOSSIP, delay_ms)

    def _on_gossip_round(self, step: Step) -> None:
        self._gossiping = False
        partners = self._partners(self.settings.fanout)
        if not partners:
            self._gossip_after(self.settings.exchange_ms, step)
            return
        for number in partners:
            gossip = self.beliefs.queue.take(self.beliefs.sends)
            if not gossip.members and not gossip.announcements:
                return
            step.send(self._roster.ids[number], self.incarnation, Gossip(gossip))
        if self.beliefs.queue:
            self._gossip_after(self.settings.gossip_ms, step)

    def _partners(self, count: int) -> list[int]:
        """Living nodes to talk to: near ones, and one from anywhere so that news crosses the mesh."""
        chosen = self.prober.schedule.some(count - 1, self.beliefs.table, but=self._number)
        others = [
            number
            for number in self.prober.schedule.anyone(min(count, 2), self.beliefs.table)
            if number != self._number and number not in chosen
        ]
        return chosen + others[:1]

    def _announce(self, step: Step) -> None:
        """Say at once what is true of this node now."""
        self.beliefs.queue.members.put(self._own, self.beliefs.table.update(self._number))
        self._gossip_after(0.0, step)

    # -- the whole table -----------------------------------------------------------------------------

    @property
    def _digest(self) -> int:
        return (self.beliefs.table.digest + self.beliefs.board.digest) & _WORD

    def _on_exchange_due(self, step: Step) -> None:
        """Compare with one living node, and as often with one that is believed gone: it may be back. Who
        believes most others gone is likelier cut off itself, and tries more often."""
        partners = self._partners(1)
        gone = self.beliefs.table.gone_numbers()
        if gone and (not partners or self._draws.chance(0.5)):
            partners = [self._draws.choice(gone)]
        for number in partners:
            step.send(
                self._roster.ids[number],
                self.incarnation,
                Exchange(self._digest, False, self.beliefs.table.digest),
            )
        if len(gone) >= self.beliefs.table.living:
            self._exchange_soon(step)
        else:
            step.set_timer(EXCHANGE, self.settings.exchange_ms * self._draws.between(0.75, 1.25))

    def _exchange_soon(self, step: Step) -> None:
        """There is more to learn than can wait for the next regular comparison."""
        step.set_timer(EXCHANGE, self.settings.exchange_ms * self._draws.between(0.05, 0.15))

    def _on_exchange(self, sender: NodeId, theirs: Exchange, step: Step) -> None:
        if theirs.answer:
            self._become_joined(step)
        elif theirs.digest == self._digest:
            step.send(sender, self.incarnation, Exchange(theirs.digest, answer=True))
        else:
            whole = theirs.members != self.beliefs.table.digest
            for page in pages(self.beliefs.table, self.beliefs.board, whole=whole):
                step.send(sender, self.incarnation, page)
            self._exchange_soon(step)

    def _on_page(self, sender: NodeId, theirs: Page, step: Step) -> None:
        better = [] if theirs.answer else list(answers(theirs, self.beliefs.table, self.beliefs.board))
        self._take(GossipItems(theirs.members, theirs.announcements), sender, step)
        for page in better:
            step.send(sender, self.incarnation, page)
        if not theirs.answer:
            self._exchange_soon(step)
        self._become_joined(step)

    # -- this node itself ----------------------------------------------------------------------------

    def _join(self, step: Step) -> None:
        if self._joined:
            return
        seeds = [self._roster.index[seed] for seed in self._seeds if seed in self._roster.index]
        others = [number for number in range(len(self._roster)) if number not in (self._number, *seeds)]
        for number in [*seeds, *self._draws.sample(others, JOIN_PARTNERS)]:
            step.send(
                self._roster.ids[number],
                self.incarnation,
                Exchange(self._digest, False, self.beliefs.table.digest),
            )
        step.set_timer(JOIN, self._join_periods * self.settings.period_ms)
        self._join_periods = min(2 * self._join_periods, MAX_JOIN_PERIODS)

    def _become_joined(self, step: Step) -> None:
        if not self._joined:
            self._joined = True
            step.cancel_timer(JOIN)
            step.observe(MemberChanged(self._own, "alive", self.incarnation, "joined"))

    def _on_self(self, update: MemberUpdate, step: Step) -> None:
        """Handles an update about this node itself."""
        if self._leaving:
            return
        if max(update.incarnation.boot, update.incarnation.refutation) > MAX_COUNT:
            step.observe(Refused(self._own, "an update about this node at an incarnation out of all measure"))
            return
        if update.incarnation.life <= self.incarnation.life:
            if update.state > MemberState.ALIVE and self._is_behind(update):
                self._refute(update, step)
        elif not self._joined or update.state > MemberState.SUSPECT:
            self._claim_above(update.incarnation, step)
        elif self._rival is None:
            self._rival = update.incarnation
            step.set_timer(RIVAL, RIVAL_PERIODS * self.settings.period_ms)

    def _is_behind(self, update: MemberUpdate) -> bool:
        """Does whoever spreads this update not know, and is not being told already, that it is wrong?"""
        if update.incarnation.life < self.incarnation.life:
            return self._own not in self.beliefs.queue.members
        return update.incarnation.refutation >= self.incarnation.refutation

    def _refute(self, update: MemberUpdate, step: Step) -> None:
        self.prober.health.worse()
        boot, nonce = self.incarnation.life
        said = update.incarnation.refutation if update.incarnation.life == (boot, nonce) else 0
        refutation = max(said, self.incarnation.refutation) + 1
        self._speak_as(Incarnation(boot, nonce, refutation), step)

    def _claim_above(self, other: Incarnation, step: Step) -> None:
        boot = other.boot + 1
        step.do(Persist(BootRaised(boot)))
        self._speak_as(Incarnation(boot, self.incarnation.nonce), step)
        if not self._joined:
            self._join(step)

    def _speak_as(self, incarnation: Incarnation, step: Step) -> None:
        self.incarnation = incarnation
        self.beliefs.table.set(self._number, incarnation, MemberState.ALIVE)
        self._announce(step)

    def _on_doubled(self, witness: NodeId, message: Doubled, step: Step) -> None:
        """A witness heard a younger life of this node's name."""
        if message.younger.life <= self.incarnation.life or message.heard_ago_ms >= LONG_AGO_MS:
            return
        heard_ms = step.now_ms - message.heard_ago_ms
        if not self._joined or self._rival is None:
            self._witnesses.clear()
            self._on_self(MemberUpdate(self._own, MemberState.ALIVE, message.younger), step)
        first_ms = self._witnesses.setdefault(witness, heard_ms)
        if self._joined and heard_ms - first_ms > LATE_PERIODS * self.settings.period_ms:
            step.do(
                Stop(
                    f"another process runs as node '{self._own}' and is younger (boot "
                    f"{message.younger.boot}, this one is boot {self.incarnation.boot}). Was the disk or "
                    "SD card copied? Give one of the two its own node id, then start it again."
                )
            )

    def _on_no_witness(self, step: Step) -> None:
        rival, self._rival = self._rival, None
        self._witnesses.clear()
        if rival is not None and rival.life > self.incarnation.life:
            self._claim_above(rival, step)
