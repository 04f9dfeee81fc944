"""Finding the leader of a group: the gossiped directory, what messages and answers said since, else a guess.

A wrong guess costs an answer, never safety: whoever does not serve the group says `NotLeader`, and where it
thinks that the leader is. What was written to the wrong one lately is then sent again to the right one.

A group that was asked and says nothing is *silent*. When there is reason to think that it can be reached
again, whoever waits for it asks at once.
"""

from collections import deque
from collections.abc import Container
from typing import NamedTuple

import msgspec

from comesh.core.group.config import Config, unbound
from comesh.core.ids import Counter, GroupId, NodeId
from comesh.core.membership.announcements import QUIET, Board
from comesh.core.program import Program
from comesh.core.stamps import NO_BALLOT, OPENING, Ballot, Fence
from comesh.core.step import Step
from comesh.core.work_messages import Asking, GroupMessage, LockRequest

RECENT_LETTERS = 16
RECENT_MS = 2000.0
"""Messages of the last while that are sent again when a better address is learned."""
MAX_TRIES = 3
"""How often one message is sent again by itself."""
UNANSWERED = 2
"""So many messages that ask, to one address without a word from the group, and another member is tried."""


class Listing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the directory says of a group; posted by whoever begins to serve it."""

    number: Counter
    epoch: int
    ballot: Ballot
    leader: NodeId
    nodes: tuple[NodeId, ...]
    version: Counter

    @property
    def fence(self) -> Fence:
        return Fence(self.number, self.ballot)

    def config(self, group: GroupId, lease_ms: int) -> Config:
        """The config that is served, but for the stores of its seats."""
        return Config(group, self.number, self.epoch, unbound(self.nodes), lease_ms, self.version)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Listing)


QUIET_FROM_NODES = 300
"""In a mesh of so many nodes listings only ride along: to push each to everybody would be most of its
traffic, and a message to the wrong node costs an answer."""
QUIET_FROM_PERIODS = 30.0
"""But not where epochs are shorter than so many periods of membership: who rides along would hear of most
leaders when they lead no more."""


def announcement_keys(group: GroupId) -> tuple[str, str]:
    """Returns the key of a listing that is pushed, and of one that rides along."""
    return "config/" + group, QUIET + "config/" + group


def is_quiet(mesh_size: int, periods: float, ballot: Ballot) -> bool:
    """Whether a listing rides along, in a mesh of so many nodes with epochs of so many membership periods.
    Who was elected is pushed in any: whom a dead leader left behind nobody else corrects."""
    return ballot == OPENING and mesh_size >= QUIET_FROM_NODES and periods >= QUIET_FROM_PERIODS


def listing_announcement(
    config: Config, ballot: Ballot, leader: NodeId, *, quiet: bool
) -> tuple[str, int, bytes]:
    """Key, version and value of the announcement: versions rise with config and ballot."""
    listing = Listing(config.number, config.epoch, ballot, leader, config.nodes, config.version)
    version = (config.number << 24) | min(ballot.round, (1 << 24) - 1)
    key = announcement_keys(config.group)[quiet]
    return key, version, _encoder.encode(listing)


class Sent(NamedTuple):
    """A message of the last while, and how often it was sent again."""

    at_ms: float
    message: GroupMessage
    tries: int


def _awaits_word(message: GroupMessage) -> bool:
    """Not so an answer, nor a lock request that is passed on: that nothing comes of these says nothing."""
    body = message.body
    return isinstance(body, Asking) and not (isinstance(body, LockRequest) and body.home is not None)


class Finder:
    def __init__(self, board: Board) -> None:
        self._board = board
        self._digest = board.digest
        self._listings: dict[GroupId, Listing] = {}
        """What the board says of a group, looked up once until the board changes."""
        self._decoded: dict[GroupId, tuple[int, Listing]] = {}
        """The last listing, and the version of its announcement."""
        self._leaders: dict[GroupId, tuple[Fence, NodeId]] = {}
        self._unanswered: dict[GroupId, int] = {}
        self._recent: dict[GroupId, deque[Sent]] = {}
        self._silent: dict[GroupId, float] = {}
        """When a group was first asked something since its last word."""

    def listing(self, group: GroupId) -> Listing | None:
        if self._digest != self._board.digest:
            self._digest = self._board.digest
            self._listings.clear()
        found = self._listings.get(group)
        if found is None:
            found = self._look_up(group)
            if found is not None:
                self._listings[group] = found
        return found

    def _look_up(self, group: GroupId) -> Listing | None:
        announcements = [one for key in announcement_keys(group) if (one := self._board.get(key)) is not None]
        if not announcements:
            return None
        announcement = max(announcements, key=lambda one: one.version)
        known = self._decoded.get(group)
        if known is not None and known[0] == announcement.version:
            return known[1]
        try:
            listing = _decoder.decode(announcement.value)
        except msgspec.DecodeError:
            return None
        self._decoded[group] = (announcement.version, listing)
        return listing

    def where(self, group: GroupId, program: Program) -> NodeId | None:
        """The node to write to."""
        listing = self.listing(group)
        known = self._leaders.get(group)
        if listing is not None and (known is None or listing.fence > known[0]):
            known = self._leaders[group] = (listing.fence, listing.leader)
            self._unanswered[group] = 0
        tries = self._unanswered.get(group, 0) // UNANSWERED
        if known is not None and tries == 0:
            return known[1]
        nodes = self._nodes(group, program)
        if not nodes:
            return None if known is None else known[1]
        return nodes[(tries - (known is not None)) % len(nodes)]

    def _nodes(self, group: GroupId, program: Program) -> tuple[NodeId, ...]:
        listing = self.listing(group)
        return program.plan.genesis.get(group, ()) if listing is None else listing.nodes

    def wrote(self, group: GroupId, message: GroupMessage, tries: int, step: Step) -> None:
        if _awaits_word(message):
            self._unanswered[group] = self._unanswered.get(group, 0) + 1
            self._silent.setdefault(group, step.now_ms)
        recent = self._recent.get(group)
        if recent is None:
            recent = self._recent[group] = deque(maxlen=RECENT_LETTERS)
        recent.append(Sent(step.now_ms, message, tries))

    def heard(self, group: GroupId, fence: Fence, node: NodeId, step: Step) -> list[Sent]:
        """The leader of a group wrote; if it is a new one: what to send again, to this one."""
        self._unanswered[group] = 0
        self._silent.pop(group, None)
        known = self._leaders.get(group)
        if known is not None and fence < known[0]:
            return []
        self._leaders[group] = (fence, node)
        return self._again(group, step) if known is not None and known[1] != node else []

    def corrected(self, group: GroupId, about: Fence, leader: NodeId | None, step: Step) -> list[Sent]:
        """The node that was asked does not lead; returns what to send again, to the one that may."""
        known = self._leaders.get(group)
        if leader is None:
            # It knows nobody: another member is tried, each message a few times. Unless a leader wrote since.
            tries = self._unanswered.get(group, 0) // UNANSWERED
            if tries or known is None or about >= known[0]:
                self._unanswered[group] = UNANSWERED * (tries + 1)
            return self._again(group, step)
        if known is not None and about < known[0]:
            return []
        if known is not None and leader == known[1]:
            # Another member was asked in its place, and is reached: perhaps the leader is again, too.
            return self._again(group, step) if self._unanswered.get(group, 0) > UNANSWERED else []
        self._leaders[group] = (about, leader)
        self._unanswered[group] = 0
        return self._again(group, step)

    def _again(self, group: GroupId, step: Step) -> list[Sent]:
        recent = self._recent.pop(group, None) or ()
        return [one for one in recent if step.now_ms - one.at_ms < RECENT_MS and one.tries < MAX_TRIES]

    def silent_with(self, nodes: Container[NodeId], program: Program) -> list[GroupId]:
        """Silent groups that one of these nodes leads or is a member of."""
        return [
            group
            for group in self._silent
            if self.leader(group)[1] in nodes or any(node in nodes for node in self._nodes(group, program))
        ]

    def silent_and_listed(self) -> list[GroupId]:
        """Silent groups of which the directory has a newer leader than the one that was asked."""
        found = ((group, self.listing(group), self._leaders.get(group)) for group in self._silent)
        return [
            group
            for group, listing, known in found
            if listing is not None and (known is None or listing.fence > known[0])
        ]

    def reached(self, group: GroupId, after_ms: float, step: Step) -> bool:
        """There is reason to think that a group can be reached. True: it was silent for so long already, and
        who waits for it should ask again."""
        since_ms = self._silent.get(group)
        if since_ms is None or step.now_ms - since_ms < after_ms:
            return False
        del self._silent[group]
        self._unanswered[group] = 0
        return True

    def expect(self, successor: Config) -> None:
        """A config is over: the leader that everyone expects of the next one."""
        known = self._leaders.get(successor.group)
        fence = Fence(successor.number, OPENING)
        if known is None or known[0] < fence:
            self._leaders[successor.group] = (fence, successor.nodes[0])
            self._unanswered[successor.group] = 0

    def forget_messages(self) -> None:
        """Send nothing again."""
        self._recent.clear()

    def leader(self, group: GroupId) -> tuple[Fence, NodeId | None]:
        """What this node would tell somebody who asked the wrong one."""
        listing = self.listing(group)
        known = self._leaders.get(group)
        if known is not None and (listing is None or known[0] >= listing.fence):
            return known
        if listing is not None:
            return listing.fence, listing.leader
        return Fence(0, NO_BALLOT), None
