"""All groups of one node: its replicas, what it serves, and who is asked where.

One event may reach several of them, and what they say to each other stays inside the step, and never reaches
the radio: `settle` runs until nothing is left to do.
"""

from collections import deque
from operator import attrgetter
from typing import Final

from comesh.core.devices import Devices
from comesh.core.draws import Draws
from comesh.core.effects import Persist, ReadDevice
from comesh.core.events import AnnouncementPosted, DeviceAnswered, DeviceReported, Started, Timer
from comesh.core.group.config import GENESIS_STORE, OF_THE_SEAT, UNBOUND_STORE, Address, Config
from comesh.core.group.election import Election
from comesh.core.group.joining import Joining, genesis_config, keep
from comesh.core.group.member import Member, View
from comesh.core.group.replica import Replica
from comesh.core.group.router import Router
from comesh.core.group.serving import Serving
from comesh.core.group.versions import Deployments, Versions
from comesh.core.group_messages import (
    Body,
    InConfig,
    Installed,
    Invite,
    Moved,
    Probe,
    Probed,
    Ready,
    SeatGiven,
    Start,
    Stranger,
)
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.journal import ConfigDropped, ConfigKept, DocumentKept, Image, KeptConfig, Tombstone
from comesh.core.membership import Medley
from comesh.core.messages import Announcement
from comesh.core.orders.part import Orders
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import Program
from comesh.core.routines import Routines
from comesh.core.stamps import OPENING, Ballot
from comesh.core.step import Step
from comesh.core.work_messages import GroupMessage, part_for

MAX_ROUNDS: Final = 10_000
"""A step that does not settle within so many rounds is a bug, not work."""
_has_work: Final = attrgetter("has_work")


class Groups:
    """Host of the replicas and surroundings of the served groups."""

    def __init__(self, own: NodeId, membership: Medley, versions: Versions, draws: Draws) -> None:
        self.own = own
        self.membership = membership
        self.versions = versions
        self.draws = draws
        self.store = 0
        self.unable = False
        self.replicas: dict[int, Replica] = {}
        """By the mark of their config."""
        self.addressed: dict[Address, Replica] = {}
        self.tombstones: dict[GroupId, Config] = {}
        self.router = Router(self)
        self.deliver_early = self.router.deliver_early
        self.ask_document = self.router.ask_document
        self._calls: dict[int, Serving] = {}
        self._probes: dict[int, tuple[Replica, NodeId, Probe]] = {}
        self._last_call = 0
        self._last_probe = 0
        self._asked: dict[DeviceId, int] = {}
        """The last probe of a device that was asked of another member: only its answer is taken, and once."""
        self._local: deque[InConfig] = deque()
        self._joining = Joining(self)
        self._seen_members = -1
        self._seen_board = 0
        self._initialised = False
        self._servings: dict[GroupId, Serving] = {}

    # -- begin -------------------------------------------------------------------------------------------

    def on_started(self, event: Started, step: Step) -> None:
        self.store = event.store
        self._initialised = event.initialised
        image = event.journal or Image()
        self._load(image, step)
        self.restore(image, step)
        self._follow_roster(step)
        self._begin_anew(image, step)

    def _begin_anew(self, image: Image, step: Step) -> None:
        """A journal that was initialised with the deployment, and holds nothing yet: write its rights.
        Of a node that came later only those of groups that came with it or after it: before, another journal
        may have had its name."""
        if self._initialised and not image.configs and not image.tombstones:
            newest = self.versions.newest
            since = newest.node_since.get(self.own, 0)
            before = tuple(group for group, first in newest.first_versions.items() if first < since)
            self._take_rights(newest, before, step)

    def _load(self, image: Image, step: Step) -> None:
        """Take the journal's versions, one by one: whom one brought and another removed may have a seat."""
        for version, text in sorted(image.documents.items()):
            if version == self.versions.newest.version + 1:
                program = self.versions.compile(text, version)
                self.versions.add(program)
                self.membership.stay(program.roster, step)

    def restore(self, image: Image, step: Step) -> None:
        """Go on from what the journal holds, as after any restart."""
        for replica in self.replicas.values():
            replica.deadlines.end(step)
        self.replicas = {}
        self.addressed = {}
        self._joining.bases.clear()
        self.tombstones = dict(image.tombstones)
        for kept in image.configs.values():
            if kept.installed:
                self.seat(kept, step, restarted=True)
            else:
                self._joining.restore(kept)
        for newest in list(self.tombstones.values()):
            self._leave_older(newest, step)

    def _take_rights(self, program: Program, before: tuple[GroupId, ...], step: Step) -> None:
        """Write the genesis rights of the groups that a version adds, if this node is to begin them."""
        for group in sorted(program.plan.genesis):
            known = any(replica.config.group == group for replica in self.replicas.values())
            if group in before or known or self.own not in program.plan.genesis[group]:
                continue
            config = genesis_config(program, group)
            kept = keep(ConfigKept(config, GENESIS_STORE, 0, (), True), OPENING, step)
            self.seat(kept, step, restarted=False)

    def adopt(self, program: Program, step: Step) -> None:
        """Take a newer deployment version: its rights first, so that with the document they are written."""
        before = tuple(self.versions.newest.plan.genesis)
        self.versions.add(program)
        if self._initialised:
            self._take_rights(program, before, step)
        step.do(Persist(DocumentKept(program.version, program.text)))
        self._follow_roster(step)

    def _follow_roster(self, step: Step) -> None:
        """Go by the nodes of the newest version; one that it has no more stays as long as it has a seat."""
        follow = self.membership.stay if self.replicas else self.membership.adopt
        follow(self.versions.newest.roster, step)

    def hurry(self, group: GroupId, step: Step) -> None:
        """Somebody is at a newer deployment version than a group that this node serves."""
        self._seal(step)  # nothing may follow the entry that hands the group off
        for replica in self.replicas.values():
            if replica.config.group == group and replica.leadership is not None:
                replica.leadership.handoff.hurry(step)

    # -- events ------------------------------------------------------------------------------------------

    def on_timer(self, timer: Timer, step: Step) -> None:
        if timer.part == "group":
            if timer.what == "due":
                replica = self.replicas.get(int(timer.of))
                if replica is not None:
                    replica.on_due(step)
            elif timer.what == "list":
                self.router.post_listing(GroupId(str(timer.of)), step)
            else:
                self.router.on_timer(timer, step)
            return
        serving = self._servings.get(GroupId(timer.group))
        if serving is not None:
            serving.on_timer(timer, step)

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        serving = self._calls.pop(event.call, None)
        if serving is not None:
            if not serving.ended:
                serving.parts["devices"].on_answer(event, step)
            return
        probe = self._probes.pop(event.call, None)
        if probe is not None:
            replica, asker, asked = probe
            body = Probed(asked.device, asked.number, event.readings, event.error)
            self.send(asker, replica, body, step)

    def on_report(self, event: DeviceReported, step: Step) -> None:
        for serving in list(self._servings.values()):
            if event.device in serving.program.devices_of(serving.group):
                serving.parts["devices"].on_report(event, step)

    def on_leave(self, step: Step) -> None:
        for replica in list(self.replicas.values()):
            if replica.leadership is not None:
                replica.leadership.give_up(step)

    def on_recover(self, group: GroupId, step: Step) -> None:
        """Go on alone, as an operator wants it."""
        seats = [replica for replica in self.replicas.values() if replica.config.group == group]
        if seats:
            max(seats, key=lambda replica: replica.config.number).force(step)

    def on_unable(self, step: Step) -> None:
        """Nothing can be written: nothing is promised, acknowledged or led until that is mended, nor said
        again: what the failed step meant to say was not said, for it was not written."""
        self.unable = True
        self.router.finder.forget_messages()
        self.on_leave(step)
        for replica in list(self.replicas.values()):
            if isinstance(replica.phase, Election):
                replica.follow(step)  # a claim that is not on disk must not be repeated

    def on_able(self, image: Image, step: Step) -> None:
        """The journal can be written again: what was accepted but not written is forgotten."""
        if self.unable:
            self.unable = False
            for version, text in sorted(self.versions.texts.items()):
                if version not in image.documents:
                    step.do(Persist(DocumentKept(version, text), flush=False))
            self.restore(image, step)
            self._begin_anew(image, step)

    # -- settling ----------------------------------------------------------------------------------------

    def settle(self, step: Step) -> None:
        """Let everything that this step set going inside the node come to rest."""
        beliefs = self.membership.beliefs
        version = beliefs.table.version
        if version != self._seen_members:
            self._seen_members = version
            for replica in list(self.replicas.values()):
                replica.on_member_dead(step)
        if beliefs.board.digest != self._seen_board:
            self._seen_board = beliefs.board.digest
            self.router.on_board(step)
        if beliefs.returned:
            self.router.on_back(frozenset(beliefs.returned), step)
            beliefs.returned.clear()
        for _ in range(MAX_ROUNDS):
            if self._local:
                self.on_in_config(self.own, self._local.popleft(), step)
            elif self.router.inside:
                self.router.deliver(step)
            else:
                serving = next(filter(_has_work, self._servings.values()), None)
                if serving is None:
                    return
                self._settle_serving(serving, step)
        raise RuntimeError(f"{self.own}: a step does not come to rest")

    def _seal(self, step: Step) -> None:
        """Make entries of all that is staged."""
        for _ in range(MAX_ROUNDS):
            serving = next(filter(_has_work, self._servings.values()), None)
            if serving is None:
                return
            self._settle_serving(serving, step)
        raise RuntimeError(f"{self.own}: a step does not come to rest")

    def _settle_serving(self, serving: Serving, step: Step) -> None:
        message = serving.take_local()
        if message is not None:
            self.hand_over(serving, message, self.own, step)
            return
        entry = serving.seal()
        leadership = None if entry is None else self.replicas[serving.mark].leadership
        if entry is not None and leadership is not None:
            leadership.propose(entry, step, outbox=self.router.by_node(serving.take_outbox()))
        if not serving.ended:
            serving.on_committed(serving.committed, step)

    def hand_over(self, serving: Serving, message: GroupMessage, sender: NodeId, step: Step) -> None:
        """A message reaches the part that it is for."""
        part = serving.parts.get(part_for(message.body))
        if part is not None:
            part.on_message(message, sender, step)

    # -- between members ---------------------------------------------------------------------------------

    def send(self, to: NodeId, member: Member, body: Body, step: Step) -> None:
        self.send_message(to, InConfig(*member.address, OF_THE_SEAT, body), step)

    def send_message(self, to: NodeId, message: InConfig, step: Step) -> None:
        if to == self.own:
            self._local.append(message)
        else:
            step.send(to, self.membership.incarnation, message)

    def on_in_config(self, sender: NodeId, message: InConfig, step: Step) -> None:
        replica = self.addressed.get(message.address)
        body = message.body
        match body:
            case Invite() | Start():
                self._joining.on_summons(sender, message, body, replica, step)
            case Ready():
                if replica is not None and replica.leadership is not None:
                    replica.leadership.handoff.on_ready(sender, body, step)
            case Installed():
                self._on_installed(sender, message, body, replica, step)
            case _ if replica is None:
                self._joining.on_unknown(sender, message, step)
            case Probe() | Probed():
                self._on_probe(sender, body, replica, step)
            case Moved():
                if body.newest.number > replica.config.number:
                    replica.retire(body.newest, step)
            case Stranger():
                rank = replica.config.rank_of(sender)
                if rank is not None and self._sits(replica, rank, message.store):
                    self.send(sender, replica, SeatGiven(replica.config), step)
                elif rank is not None:
                    replica.on_body(rank, body, step)
            case _:
                rank = replica.config.rank_of(sender)
                if rank is not None and self._sits(replica, rank, message.store):
                    replica.on_body(rank, body, step)

    def _on_installed(
        self, sender: NodeId, message: InConfig, body: Installed, replica: Replica | None, step: Step
    ) -> None:
        if replica is None:
            self._joining.on_early(sender, message)
        elif body.successor == replica.mark:
            rank = replica.config.rank_of(sender)
            if rank is not None and self._sits(replica, rank, message.store):
                replica.on_body(rank, body, step)
        elif replica.leadership is not None:
            replica.leadership.handoff.on_installed(sender, body, step)

    def _sits(self, replica: Replica, rank: int, store: int) -> bool:
        """Another member, with the journal that the seat was given to: another one is a stranger's."""
        given = replica.config.seats[rank].store
        return rank != replica.rank and given != UNBOUND_STORE and store in (given, OF_THE_SEAT)

    def successor_of(self, group: GroupId, number: int) -> Config | None:
        """A config after that one, of which a quorum is installed; None: that one may still be needed.

        This node's own seat in a config is no proof of it, for it may be alone there; but of the one before,
        which served, or no config had followed.
        """
        tombstone = self.tombstones.get(group)
        if tombstone is not None and tombstone.number > number:
            return tombstone
        for replica in self.replicas.values():
            if replica.config.group == group and replica.config.number > number + 1:
                return replica.config.predecessor
        return None

    def seat(self, kept: KeptConfig, step: Step, *, restarted: bool) -> Replica:
        """Sit in a config that the journal holds now."""
        replica = Replica(self, kept, self.versions.or_newest(kept.config.version).settings)
        self.replicas[replica.mark] = self.addressed[replica.address] = replica
        replica.begin(step, restarted=restarted)
        return replica

    # -- probes ------------------------------------------------------------------------------------------

    def _on_probe(self, sender: NodeId, body: Probe | Probed, replica: Replica, step: Step) -> None:
        if isinstance(body, Probe):
            self._last_call += 1
            self._probes[self._last_call] = (replica, sender, body)
            step.do(ReadDevice(body.device, self._last_call))
        elif replica.phase.serving is not None and self._asked.pop(body.device, None) == body.number:
            event = DeviceAnswered(device=body.device, call=-1, readings=body.readings, error=body.error)
            devices = replica.phase.serving.parts.get("devices")
            if devices is not None:
                devices.on_answer(event, step)

    # -- what replicas ask (Host) ------------------------------------------------------------------------

    def round_trip_ms(self, node: NodeId) -> float:
        if node == self.own:
            return 0.0
        estimate_ms = self.membership.round_trip_ms(node)
        return self.versions.newest.settings.usual_round_trip_ms if estimate_ms is None else estimate_ms

    def is_dead(self, node: NodeId) -> bool:
        return self.membership.is_dead(node)

    def may_live(self, node: NodeId) -> bool:
        return self.membership.is_former(node) or not self.membership.is_dead(node)

    def open_serving(self, member: Member, ballot: Ballot, step: Step) -> Serving:
        config = member.config
        serving = Serving(
            config=config,
            ballot=ballot,
            records=member.ledger.records,
            committed=member.ledger.number,
            number=member.ledger.number,
            program=self.versions.or_newest(config.version),
            surroundings=self,
            draws=self.draws.fork(config.number),
        )
        if config.group == DEPLOYMENT:
            serving.parts["deployment"] = Deployments(serving, self.versions)
            serving.parts["orders"] = Orders(serving, None, None)
        else:
            devices, routines = Devices(serving), Routines(serving)
            orders = Orders(serving, devices, routines)
            serving.parts |= {"orders": orders, "devices": devices, "routines": routines}
        self._servings[config.group] = serving
        # Not now: were this step's writes to fail, nothing of it happened, and nobody may have heard of it.
        step.set_timer(Timer("group", "list", config.group), 0.0)
        return serving

    def close_serving(self, serving: Serving, step: Step) -> None:
        serving.end(step)
        self._calls = {call: one for call, one in self._calls.items() if one is not serving}
        if self._servings.get(serving.group) is serving:
            del self._servings[serving.group]

    def view(self) -> View:
        newest = self.versions.newest
        table = {
            group: listing.nodes
            for group in newest.plan.genesis
            if (listing := self.router.finder.listing(group)) is not None
        }
        # Nobody answers the probes of a node that was removed, so all others may live as far as it knows.
        # Who does not is not Ready in time, and left out.
        removed = self.own not in newest.roster.index
        return View(newest, newest.roster.ids if removed else self.membership.living, table)

    def retired(self, member: Member, successor: Config, step: Step) -> None:
        """Keep the tombstone, for ever; forget the rest."""
        self.router.finder.expect(successor)
        self.replicas.pop(member.mark, None)
        self.addressed.pop(member.address, None)
        self._bury(successor, step)
        step.do(Persist(ConfigDropped(member.mark)))
        self._leave_older(successor, step)
        self._follow_roster(step)

    def _leave_older(self, newest: Config, step: Step) -> None:
        """A node that knows of a newer config sits in no older one, and so tells its leader so."""
        for replica in self.replicas.values():
            if replica.config.group == newest.group and replica.config.number < newest.number:
                replica.retire(newest, step)  # and with it the next of them
                return

    def _bury(self, successor: Config, step: Step) -> None:
        known = self.tombstones.get(successor.group)
        if known is None or successor.number > known.number:
            self.tombstones[successor.group] = successor
            step.do(Persist(Tombstone(successor)))

    def knows_successor(self, member: Member) -> Config | None:
        config = member.config
        listing = self.router.finder.listing(config.group)
        if listing is not None and listing.number > config.number:
            return listing.config(config.group, config.lease_ms)
        return self.successor_of(config.group, config.number)

    # -- what served groups ask (Surroundings) -----------------------------------------------------------

    @property
    def served(self) -> tuple[GroupId, ...]:
        return tuple(self._servings)

    def serving(self, group: GroupId) -> Serving | None:
        return self._servings.get(group)

    def route(self, message: GroupMessage, to: NodeId | None, step: Step) -> None:
        self.router.route(message, to, step)

    def next_call(self, serving: Serving) -> int:
        self._last_call += 1
        self._calls[self._last_call] = serving
        return self._last_call

    def probe(self, serving: Serving, device: DeviceId, step: Step) -> bool:
        replica = self.replicas[serving.mark]
        others = [rank for rank in replica.peers if not self.is_dead(replica.config.seats[rank].node)]
        if not others:
            return False
        self._last_probe += 1
        self._asked[device] = self._last_probe
        replica.send(self.draws.choice(others), Probe(device, self._last_probe), step)
        return True

    def announcement(self, key: str) -> Announcement | None:
        return self.membership.beliefs.board.get(key)

    def post_announcement(self, key: str, version: int, value: bytes, step: Step) -> None:
        self.membership.on_announcement(AnnouncementPosted(key=key, version=version, value=value), step)

    def learn_document(self, version: int, text: str, step: Step) -> None:
        self.router.learn_document(version, text, step)
