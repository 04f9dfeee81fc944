"""A bench for one member of a config: a real node, everybody else played by the test, time by hand.

    member = Member(rank=1)
    member.hears(0, touch())
    assert member.said(0) == [Acked(OPENING, 0, 0)]

The group is `deployment`: it looks after no devices and no routines, so that only the members of its config
speak. Nothing is lost and nothing is answered by itself; timers of membership do not fire, and everybody is
believed to live until `dies`.
"""

from collections.abc import Iterable
from typing import TypeVar

from comesh.core.effects import CancelTimer, Effect, LeaderChanged, Observe, Persist, Send, SetTimer
from comesh.core.events import (
    Event,
    LeaveAsked,
    MessageReceived,
    OrderAsked,
    RecoverAsked,
    Started,
    Timer,
    TimerFired,
)
from comesh.core.group.config import OF_THE_SEAT, UNBOUND_STORE, Config, Seat
from comesh.core.group_messages import (
    Acked,
    Answer,
    Ask,
    Body,
    Claim,
    InConfig,
    Promise,
    Sync,
    Update,
)
from comesh.core.ids import Incarnation, NodeId
from comesh.core.journal import ConfigKept, Image, JournalRecord, PowerLost, Promised, StateTaken
from comesh.core.membership import MembershipSettings
from comesh.core.messages import Gossip, GossipItems, MembershipMessage, MemberState, MemberUpdate
from comesh.core.node import Node
from comesh.core.plan import DEPLOYMENT, Place, PlannedNode, SelectionSettings
from comesh.core.program import Program, ProtocolSettings
from comesh.core.records import Entry, Kind, Record, Standing
from comesh.core.selection import make_plan
from comesh.core.stamps import FIRST_ERA, NO_BALLOT, OPENING, Ballot
from comesh.core.work_messages import GroupMessage, Remember

STORE = 7
LEASE_MS = 1000.0
ROUND_TRIP_MS = 20.0
"""Assumed round trip while nothing was measured."""
NODES = tuple(NodeId(f"n{number}") for number in range(7))
"""By name they sit in rank order; those that have no seat stand by."""
LIFE = Incarnation(1, 0, 0)
SETTINGS = ProtocolSettings(
    epoch_ms=3_600_000, usual_round_trip_ms=ROUND_TRIP_MS, replace_after_ms=600_000.0, lease_ms=1000
)
"""Settings under which no epoch ends and no member is replaced."""
ELECTED = Ballot(1, 1)

_B = TypeVar("_B", bound=Body)
_R = TypeVar("_R", bound=JournalRecord)


def make_program(settings: ProtocolSettings = SETTINGS, f: int = 1) -> Program:
    nodes = [PlannedNode(id=node, place=Place(number, 0)) for number, node in enumerate(NODES)]
    plan = make_plan(1, SelectionSettings(f=f), nodes, [], [])
    return Program(plan=plan, devices={}, routines={}, settings=settings)


def make_config(seats: int = 3, *, unbound: Iterable[int] = (), number: int = 1) -> Config:
    given = [UNBOUND_STORE if rank in unbound else STORE for rank in range(seats)]
    taken = tuple(Seat(node, store) for node, store in zip(NODES, given, strict=False))
    return Config(DEPLOYMENT, number, 0, taken, int(LEASE_MS), 1)


def record(name: str) -> Record:
    """Returns a record with that key."""
    return Standing(Kind.MAINTAINED, name, "ann", 0.0)


def touch(ballot: Ballot = OPENING, number: int = 0, *, sent_ms: int = 0, busy: bool = False) -> Update:
    """Returns an update without entries, of a leader with this number of entries."""
    return Update(ballot, number + 1, (), number, sent_ms, busy)


def update(number: int, *entries: Entry, ballot: Ballot = OPENING, sent_ms: int = 0) -> Update:
    """Returns an update with entries from that number on."""
    return Update(ballot, number, entries, 0, sent_ms)


class Member:
    """The node of one seat, from the start of its process on."""

    def __init__(
        self,
        rank: int = 1,
        *,
        config: Config | None = None,
        records: tuple[Record, ...] = (),
        number: int = 0,
        promised: Ballot = OPENING,
        accepted: Ballot = OPENING,
        power_lost: bool = False,
        settings: ProtocolSettings = SETTINGS,
        waits_ms: float = 0.0,
        seated: bool = True,
    ) -> None:
        """Its journal holds its seat with such a state. waits_ms: pass so long, and forget what was done."""
        self.config = config or make_config()
        self.rank = rank
        self.now_ms = 0.0
        self.image = Image()
        mark = self.config.mark
        if seated:
            self._write(ConfigKept(self.config, STORE, number, records, True))
            self._write(Promised(mark, promised))
        if seated and accepted != NO_BALLOT:
            self._write(StateTaken(mark, accepted, number, None))
        self._program = make_program(settings, self.config.f)
        self._timers: dict[Timer, float] = {}
        self.effects: list[Effect] = []
        self._boots = 0
        self.restart(power_lost=power_lost)
        if waits_ms:
            self.waits(waits_ms)
            self.forget()

    def _write(self, one: JournalRecord) -> None:
        self.image.apply(one)

    def restart(self, *, power_lost: bool = False) -> None:
        """A new process, with what the journal holds."""
        self._boots += 1
        self._timers.clear()
        self.node = Node(
            own=NODES[self.rank],
            roster=self._program.roster,
            membership=MembershipSettings(),
            seed=1,
            program=self._program,
        )
        if power_lost:
            self._write(PowerLost())
        started = Started(boot=self._boots, nonce=1, store=STORE, initialised=False, journal=self.image)
        self._step(started)

    # -- what happens ------------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        for effect in self.node.step(event, self.now_ms, self.now_ms):
            match effect:
                case SetTimer(timer, after_ms):
                    self._timers[timer] = self.now_ms + after_ms
                case CancelTimer(timer):
                    self._timers.pop(timer, None)
                case Persist(written):
                    self._write(written)
                    self.effects.append(effect)
                case Send(_, _, message) if isinstance(message, MembershipMessage | GroupMessage):
                    pass
                case _:
                    self.effects.append(effect)

    def hears(self, rank: int, body: Body, *, store: int = OF_THE_SEAT, of: Config | None = None) -> None:
        """Deliver a message from the node with that number."""
        message = InConfig(*(of or self.config).address, store, body)
        event = MessageReceived(sender=NODES[rank], incarnation=LIFE, deployment=1, message=message)
        self._step(event)

    def waits(self, for_ms: float) -> None:
        """Pass time; timers fire in order."""
        ends_ms = self.now_ms + for_ms
        while True:
            due = {one: at_ms for one, at_ms in self._timers.items() if one.part != "membership"}
            timer = min(due, key=lambda one: (due[one], one), default=None)
            if timer is None or due[timer] > ends_ms:
                break
            self.now_ms = max(self.now_ms, self._timers.pop(timer))
            self._step(TimerFired(timer=timer))
        self.now_ms = ends_ms

    def dies(self, rank: int) -> None:
        """Let membership declare that node dead."""
        update = MemberUpdate(NODES[rank], MemberState.DEAD, LIFE)
        gossip = Gossip(GossipItems((update,)))
        self._step(MessageReceived(sender=NODES[-1], incarnation=LIFE, deployment=1, message=gossip))

    def ordered(self, request: str) -> None:
        """Order something of the group, which takes one entry."""
        self._step(OrderAsked(group=DEPLOYMENT, request=request, by="ann", wish=Remember(request)))

    def leaves(self) -> None:
        self._step(LeaveAsked())

    def forced(self) -> None:
        """Let an operator make it continue alone."""
        self._step(RecoverAsked(group=DEPLOYMENT))

    # -- shorthand ---------------------------------------------------------------------------------------

    def promises(
        self,
        rank: int,
        accepted: Ballot = OPENING,
        number: int = 0,
        *,
        digest: int = 0,
        whole: bool = True,
        ballot: Ballot | None = None,
    ) -> None:
        """Answer the member's last claim."""
        ballot = ballot or self.claimed
        self.hears(rank, Promise(ballot, accepted, number, digest, whole, FIRST_ERA))

    def would(self, rank: int, *, would: bool = True, able: bool = False, whole: bool = True) -> None:
        """Answer the member's last pre-vote request."""
        self.hears(rank, Answer(self.asked, would, able, whole, None, OPENING))

    def acks(self, *ranks: int) -> None:
        """Let these members acknowledge everything sent to them."""
        for rank in ranks:
            last = [body for to, body in self.sent if to == rank and isinstance(body, Sync | Update)][-1]
            number = last.number if isinstance(last, Sync) else last.first + len(last.entries) - 1
            self.hears(rank, Acked(last.ballot, number, last.sent_ms))

    def passes(self, for_ms: float, *ranks: int) -> None:
        """Pass time while only these members acknowledge what they are sent."""
        ends_ms = self.now_ms + for_ms
        while self.now_ms < ends_ms:
            self.waits(min(LEASE_MS / 4, ends_ms - self.now_ms))
            self.acks(*[rank for rank in ranks if rank in self.to(Update)])

    def asks(self) -> None:
        """Pass time until it has missed its leader and sends pre-vote requests."""
        while not any(body.ballot != NO_BALLOT for _, body in self.sent if isinstance(body, Ask)):
            self.waits(LEASE_MS / 10)

    def claims(self, *ranks: int) -> None:
        """Let these members agree to its pre-vote, so that it claims."""
        self.asks()
        for rank in ranks:
            self.would(rank)

    def leads(self, *ranks: int) -> "Member":
        """Let these members elect and acknowledge it, with its own state; then drop all earlier effects."""
        self.claims(*ranks)
        for rank in ranks:
            self.promises(rank)
        self.acks(*ranks)
        assert self.role == "serving"
        self.forget()
        return self

    # -- what it said, wrote and is ----------------------------------------------------------------------

    @property
    def role(self) -> str:
        assert self.node.groups is not None
        replica = self.node.groups.addressed.get(self.config.address)
        return "gone" if replica is None else str(replica.role)

    @property
    def sent(self) -> list[tuple[int, Body]]:
        """Returns all messages sent since the last `forget`, with the rank of the receiver."""
        return [
            (NODES.index(one.to), one.message.body)
            for one in self.effects
            if isinstance(one, Send) and isinstance(one.message, InConfig)
        ]

    def said(self, rank: int) -> list[Body]:
        """Returns the messages sent to one member since the last call."""
        found = [body for to, body in self.sent if to == rank]
        self.effects = [
            one
            for one in self.effects
            if not (isinstance(one, Send) and isinstance(one.message, InConfig) and one.to == NODES[rank])
        ]
        return found

    def last(self, kind: type[_B]) -> _B:
        """Returns the latest message of that kind to any member."""
        return [body for _, body in self.sent if isinstance(body, kind)][-1]

    def to(self, kind: type[Body]) -> list[int]:
        """Returns the receivers of such a message."""
        return [to for to, body in self.sent if isinstance(body, kind)]

    @property
    def asked(self) -> Ballot:
        return self.last(Ask).ballot

    @property
    def claimed(self) -> Ballot:
        return self.last(Claim).ballot

    def written(self, kind: type[_R]) -> list[_R]:
        found = [one.record for one in self.effects if isinstance(one, Persist)]
        return [one for one in found if isinstance(one, kind)]

    def flushed(self, kind: type[_R]) -> list[_R]:
        """Returns the records of that kind that were flushed."""
        found = [one.record for one in self.effects if isinstance(one, Persist) and one.flush]
        return [one for one in found if isinstance(one, kind)]

    @property
    def told(self) -> list[str]:
        """Returns the observations of its leadership."""
        found = [one.observation for one in self.effects if isinstance(one, Observe)]
        return [one.state for one in found if isinstance(one, LeaderChanged)]

    @property
    def order(self) -> list[type]:
        """Returns the kinds of records and messages in the order of writing and sending."""
        found: list[type] = []
        for one in self.effects:
            if isinstance(one, Persist):
                found.append(type(one.record))
            elif isinstance(one, Send) and isinstance(one.message, InConfig):
                found.append(type(one.message.body))
        return found

    def forget(self) -> None:
        """Drop all earlier effects."""
        self.effects.clear()
