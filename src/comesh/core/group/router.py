"""Messages between the leaders of groups, requests of people, and deployment documents.

Nothing here is reliable: who needs an answer asks again. Requests of people are repeated from here until they
are answered, or `REQUEST_LIFE_MS` is over.

Who asks again waits longer each time. But when a silent group may be reached again (one of its nodes is
back, another leader is known, or it writes), all that waits for it in this node is said at once, and the
waits begin anew: at most once per request_resend_ms.
"""

from collections import deque
from collections.abc import Container
from typing import Final, Protocol

from comesh.core.draws import Draws
from comesh.core.effects import Answered, Refused
from comesh.core.events import ApplyAsked, FireAsked, MessageReceived, OrderAsked, Timer
from comesh.core.group.finder import Finder, Sent, is_quiet, listing_announcement
from comesh.core.group.replica import Replica
from comesh.core.group.serving import OutboundMessage, Serving
from comesh.core.group.versions import ANNOUNCEMENT, Versions
from comesh.core.ids import GroupId, NodeId
from comesh.core.membership import Medley
from comesh.core.messages import Announcement
from comesh.core.plan import DEPLOYMENT
from comesh.core.program import Program
from comesh.core.records import HandoffRecord, RunRecord, Stage, run_key
from comesh.core.stamps import OPENING, Fence
from comesh.core.step import Step
from comesh.core.work_messages import (
    Applied,
    Apply,
    Command,
    DocumentAsked,
    DocumentGiven,
    Fire,
    GroupMessage,
    Home,
    LockRequest,
    NotLeader,
    Order,
    Ordered,
    Reach,
)

REQUESTS: Final = Timer("group", "requests")
DOCUMENTS: Final = Timer("group", "documents")
REACHED: Final = Timer("group", "reached")
REACHED_JITTER: Final = 0.1
"""Part of request_resend_ms: many nodes learn at once that a group is reached, and do not write in step."""
HEARD_RESENDS: Final = 2.0
"""A word of a group ends a silence of so many request_resend_ms: what takes its time is answered when it is
first asked again."""
REQUEST_LIFE_MS: Final = 60_000.0
MAX_REQUESTS: Final = 256
DOCUMENT_MS: Final = 1000.0
"""Between two questions for a document that is known to exist."""


class _Request:
    __slots__ = ("began_ms", "message", "request", "wait_ms")

    def __init__(self, request: str, message: GroupMessage, began_ms: float, wait_ms: float) -> None:
        self.request = request
        self.message = message
        self.began_ms = began_ms
        self.wait_ms = wait_ms


class RouterHost(Protocol):
    """The node, as its router sees it."""

    own: NodeId
    draws: Draws
    membership: Medley
    versions: Versions
    replicas: dict[int, Replica]

    @property
    def served(self) -> tuple[GroupId, ...]: ...

    def serving(self, group: GroupId) -> Serving | None: ...

    def is_dead(self, node: NodeId) -> bool: ...

    def hand_over(self, serving: Serving, message: GroupMessage, sender: NodeId, step: Step) -> None:
        """A message reaches the part of a served group that it is for."""

    def hurry(self, group: GroupId, step: Step) -> None:
        """Somebody is at a newer deployment version than a group that this node serves."""

    def adopt(self, program: Program, step: Step) -> None:
        """Take a newer deployment version."""

    def announcement(self, key: str) -> Announcement | None: ...

    def post_announcement(self, key: str, version: int, value: bytes, step: Step) -> None: ...


class Router:
    def __init__(self, groups: RouterHost) -> None:
        self._groups = groups
        self.finder = Finder(groups.membership.beliefs.board)
        self.inside: deque[tuple[NodeId, GroupMessage]] = deque()
        """Messages to groups that this node serves itself."""
        self._requests: dict[str, _Request] = {}
        self._asked_version = 0

    # -- messages -----------------------------------------------------------------------------------------

    def route(self, message: GroupMessage, to: NodeId | None, step: Step, tries: int = 0) -> None:
        """To one node, or to the leader of the message's group, wherever it is thought to be."""
        groups = self._groups
        if to is None and message.to is not None:
            if groups.serving(message.to) is not None:
                self.inside.append((groups.own, message))
                return
            to = self.finder.where(message.to, groups.versions.newest)
            self.finder.wrote(message.to, message, tries, step)
        if to == groups.own:
            self.inside.append((groups.own, message))
        elif to is not None:
            step.send(to, groups.membership.incarnation, message)

    def by_node(self, outbox: list[OutboundMessage]) -> dict[NodeId, list[OutboundMessage]]:
        """Which other nodes these messages go to, as far as that is known now."""
        groups = self._groups
        found: dict[NodeId, list[OutboundMessage]] = {}
        for outbound in outbox:
            to, group = outbound.to, outbound.message.to
            if to is None and group is not None and groups.serving(group) is None:
                to = self.finder.where(group, groups.versions.newest)
            if to is not None and to != groups.own:
                found.setdefault(to, []).append(outbound)
        return found

    def deliver_early(self, sender: NodeId, message: GroupMessage, step: Step) -> None:
        """Drops what is not for this node any more: its sender may not know yet that it could be sent."""
        if message.to is None or self._groups.serving(message.to) is not None:
            self._on_message(sender, message, step)

    def _send_again(self, messages: list[Sent], step: Step) -> None:
        for sent in messages:
            if self._is_meant(sent.message):
                self.route(sent.message, None, step, sent.tries + 1)

    def _is_meant(self, message: GroupMessage) -> bool:
        """Not so a command of a run that was stopped since: what finds its way late must not happen late."""
        serving = None if message.sender is None else self._groups.serving(message.sender)
        if serving is None or not isinstance(message.body, Command):
            return True
        run = serving.get(run_key(message.body.origin.run.routine), RunRecord)
        return run is not None and run.run == message.body.origin.run and run.stage is Stage.EXECUTING

    def _on_not_leader(self, answer: NotLeader, step: Step) -> None:
        group = answer.group
        knew = self.finder.leader(group)
        again = self.finder.corrected(group, answer.about, answer.leader, step)
        known = self.finder.leader(group)
        if known != knew:
            self._on_reached(group, step)
        if answer.leader is None or known != knew:
            self._send_again(again, step)
            return
        for sent in again:
            if self._is_meant(sent.message):
                self.finder.wrote(group, sent.message, sent.tries + 1, step)
                self.route(sent.message, answer.leader, step)

    def deliver(self, step: Step) -> None:
        """Hand over the next message that stays inside this node."""
        sender, message = self.inside.popleft()
        self._on_message(sender, message, step)

    def on_message(self, event: MessageReceived, message: GroupMessage, step: Step) -> None:
        self._on_message(event.sender, message, step)

    def _on_message(self, sender: NodeId, message: GroupMessage, step: Step) -> None:
        groups = self._groups
        if message.sender is not None and message.by is not None:
            self._on_reached(message.sender, step, HEARD_RESENDS)
            self._send_again(self.finder.heard(message.sender, message.by, sender, step), step)
        if isinstance(message.body, LockRequest) and message.body.home is not None:
            self._on_hearsay(message.body.home, message.body.fence, step)
        if message.to is None:
            self._on_answer(message, step)
            return
        serving = groups.serving(message.to)
        if serving is None:
            about, leader = self.finder.leader(message.to)
            if sender != groups.own:
                leader = self._heir(message.to) if leader == groups.own else leader
                correction = NotLeader(message.to, leader, about)
                self.route(GroupMessage(None, None, None, message.version, correction), sender, step)
            return
        if message.version > serving.config.version:
            groups.hurry(message.to, step)
            return
        groups.hand_over(serving, message, sender, step)

    def _heir(self, group: GroupId) -> NodeId | None:
        """The node that is to lead a group which this one hands off; likely it does when a message comes."""
        groups = self._groups
        for replica in groups.replicas.values():
            record = replica.ledger.records.get("handoff")
            if replica.config.group == group and isinstance(record, HandoffRecord):
                heir = record.successor.nodes[0]
                return None if heir == groups.own else heir
        return None

    def _on_hearsay(self, home: Home, fence: Fence, step: Step) -> None:
        """A request that was passed on says who leads the group that it came from, or led it once."""
        if fence >= self.finder.leader(home.group)[0]:
            self._on_reached(home.group, step, HEARD_RESENDS)
            self._send_again(self.finder.heard(home.group, fence, home.leader, step), step)

    def _on_answer(self, message: GroupMessage, step: Step) -> None:
        match message.body:
            case NotLeader() as answer:
                self._on_not_leader(answer, step)
            case Ordered() as done:
                self._close(done.request, Answered(done.request, done.run, None, done.why_not), step)
            case Applied() as applied:
                self._close(
                    applied.request, Answered(applied.request, None, applied.version, applied.why_not), step
                )
            case _:
                pass

    def post_listing(self, group: GroupId, step: Step) -> None:
        """Let everybody know that this node serves a group."""
        groups = self._groups
        serving = groups.serving(group)
        if serving is not None:
            newest = groups.versions.newest
            periods = newest.settings.epoch_ms / groups.membership.settings.period_ms
            quiet = is_quiet(len(newest.plan.nodes), periods, serving.ballot)
            announcement = listing_announcement(serving.config, serving.ballot, groups.own, quiet=quiet)
            groups.post_announcement(*announcement, step)
            if serving.ballot != OPENING:
                self._tell_leaders(serving, step)

    def _tell_leaders(self, serving: Serving, step: Step) -> None:
        """Nodes that may have written to a dead leader need not wait for gossip to say who was elected."""
        groups = self._groups
        correspondents = groups.versions.newest.correspondents.get(serving.group, ())
        leaders = {self.finder.leader(group)[1] for group in correspondents} - {groups.own, None}
        told = NotLeader(serving.group, groups.own, serving.fence)
        for node in sorted(node for node in leaders if node is not None and not groups.is_dead(node)):
            self.route(GroupMessage(None, None, None, serving.config.version, told), node, step)

    # -- silent groups -----------------------------------------------------------------------------------

    def on_back(self, nodes: Container[NodeId], step: Step) -> None:
        """These nodes are believed alive again."""
        for group in self.finder.silent_with(nodes, self._groups.versions.newest):
            self._on_reached(group, step)

    def on_board(self, step: Step) -> None:
        """There are new announcements."""
        self.look_for_document(step)
        for group in self.finder.silent_and_listed():
            self._on_listed(group, step)

    def _on_listed(self, group: GroupId, step: Step) -> None:
        """Another leader is known than the one that was asked. If it was elected, the one before is dead and
        does not say so: what it was asked is sent again now."""
        listing = self.finder.listing(group)
        self._on_reached(group, step)
        if listing is not None and listing.ballot != OPENING:
            self._on_not_leader(NotLeader(group, listing.leader, listing.fence), step)

    def _on_reached(self, group: GroupId, step: Step, resends: float = 1.0) -> None:
        """A group may be reached: if it was silent for so many resends, what waits for it is said again."""
        resend_ms = self._groups.versions.newest.settings.request_resend_ms
        if self.finder.reached(group, resends * resend_ms, step):
            after_ms = resend_ms * self._groups.draws.between(0.0, REACHED_JITTER)
            step.set_timer(Timer(REACHED.part, REACHED.what, group), after_ms)

    def _ask_again(self, group: GroupId, step: Step) -> None:
        for request in self._requests.values():
            if request.message.to == group:
                request.wait_ms = self._groups.versions.newest.settings.request_resend_ms
                self._repeat(request, step)
        for served in self._groups.served:
            serving = self._groups.serving(served)
            if serving is not None:
                serving.on_reached(group, step)

    # -- requests of people ------------------------------------------------------------------------------

    def on_fire(self, event: FireAsked, step: Step) -> None:
        group = self._groups.versions.newest.group_of_routine.get(event.routine)
        if group is None:
            why = f"there is no routine {event.routine}"
            step.observe(Answered(event.request, None, None, why))
            return
        self._open(event.request, group, Fire(event.routine, event.request, event.by), step)

    def on_apply(self, event: ApplyAsked, step: Step) -> None:
        body = Apply(event.base, event.text, event.request, event.by, event.why)
        self._open(event.request, DEPLOYMENT, body, step)

    def on_order(self, event: OrderAsked, step: Step) -> None:
        order = Order(event.request, event.by, step.wall_ms, event.wish)
        # A group that is asked by a newer version than its own hands off, and its successor answers.
        version = event.wish.version if isinstance(event.wish, Reach) else 0
        self._open(event.request, event.group, order, step, version)

    def _open(
        self, request: str, group: GroupId, body: Fire | Apply | Order, step: Step, version: int = 0
    ) -> None:
        groups = self._groups
        if len(self._requests) >= MAX_REQUESTS:
            step.observe(Answered(request, None, None, f"{MAX_REQUESTS} requests wait already"))
            return
        # Else by the oldest version: a person's request must not be told to come later.
        message = GroupMessage(group, None, None, version, body)
        wait_ms = groups.versions.newest.settings.request_resend_ms
        self._requests[request] = _Request(request, message, step.now_ms, wait_ms)
        self.route(message, None, step)
        step.set_timer(Timer(REQUESTS.part, REQUESTS.what, request), wait_ms)

    def _close(self, request: str, answer: Answered, step: Step) -> None:
        if self._requests.pop(request, None) is not None:
            step.cancel_timer(Timer(REQUESTS.part, REQUESTS.what, request))
            step.observe(answer)

    def on_timer(self, timer: Timer, step: Step) -> None:
        if timer.what == DOCUMENTS.what:
            self._asked_version = 0
            self.look_for_document(step)
            return
        if timer.what == REACHED.what:
            self._ask_again(GroupId(str(timer.of)), step)
            return
        request = self._requests.get(str(timer.of))
        if request is None:
            return
        if step.now_ms - request.began_ms > REQUEST_LIFE_MS:
            del self._requests[request.request]
            why = f"no answer within {REQUEST_LIFE_MS / 1000:.0f} s: its group has no leader that is reached"
            step.observe(Answered(request.request, None, None, why))
            return
        max_ms = self._groups.versions.newest.settings.max_request_resend_ms
        request.wait_ms = min(2 * request.wait_ms, max_ms)
        self._repeat(request, step)

    def _repeat(self, request: _Request, step: Step) -> None:
        self.route(request.message, None, step)
        timer = Timer(REQUESTS.part, REQUESTS.what, request.request)
        step.set_timer(timer, request.wait_ms * self._groups.draws.between(0.8, 1.2))

    # -- deployment versions -----------------------------------------------------------------------------

    def look_for_document(self, step: Step) -> None:
        """Ask for the newest version, if gossip says that there is one which this node lacks."""
        groups = self._groups
        announcement = groups.announcement(ANNOUNCEMENT)
        newest = groups.versions.newest.version
        if announcement is None or announcement.version <= newest or self._asked_version > newest:
            return
        others = [node for node in groups.membership.living if node != groups.own]
        poster = NodeId(announcement.value.decode("utf-8", "replace"))
        asked = poster if poster in others and groups.draws.chance(0.5) else None
        if asked is None and others:
            asked = groups.draws.choice(others)
        if asked is not None:
            self.ask_document(asked, step)

    def on_newer(self, sender: NodeId, step: Step) -> None:
        """Somebody works by a newer version. Gossip may not say so any more: it does not outlive an outage of
        all nodes."""
        if self._asked_version <= self._groups.versions.newest.version:
            self.ask_document(sender, step)

    def ask_document(self, node: NodeId, step: Step) -> None:
        """For the version after the newest that this node has: each builds on the one before."""
        self._asked_version = self._groups.versions.newest.version + 1
        step.set_timer(DOCUMENTS, DOCUMENT_MS)
        step.send(node, self._groups.membership.incarnation, DocumentAsked(self._asked_version))

    def on_document_asked(self, sender: NodeId, asked: DocumentAsked, step: Step) -> None:
        text = self._groups.versions.texts.get(asked.version)
        if text:
            given = DocumentGiven(asked.version, text)
            step.send(sender, self._groups.membership.incarnation, given)

    def on_document_given(self, sender: NodeId, given: DocumentGiven, step: Step) -> None:
        self.learn_document(given.version, given.text, step, by=sender)

    def learn_document(self, version: int, text: str, step: Step, by: NodeId | None = None) -> None:
        """Adopt a version that is committed, and let everybody know that it exists."""
        groups = self._groups
        if version <= groups.versions.newest.version:
            return
        try:
            program = groups.versions.compile(text, version)
        except ValueError as wrong:
            step.observe(Refused(by or groups.own, f"deployment version {version}: {wrong}"))
            return
        groups.adopt(program, step)
        groups.post_announcement(ANNOUNCEMENT, version, groups.own.encode(), step)
        self.look_for_document(step)
