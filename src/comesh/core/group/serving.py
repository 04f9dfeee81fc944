"""What the leader of a config works with while it serves.

The parts that look after devices and routines stage changed records with `put` and say things with `message`;
neither takes effect by itself. When the step ends, all that was staged becomes one entry, and what was to
be said, done or told waits until that entry (and so every one before it) is committed. So "outside effects
only after commit" is not a habit of the parts but a property of this class.

A message to the own group does not wait: it reaches the other part in the same step, on the staged records,
and what comes of it joins the same entry. That is how a one-cluster, one-step run costs two commits.

A `Serving` lives as long as its leadership: when that ends, so does everything that waited here. Where it
ends by a handoff, messages and what is told still go out with the commit that they wait for: they are facts,
and whoever leads next does not know that nobody has heard of them.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from comesh.core.draws import Draws
from comesh.core.effects import Effect, Observation, Observe
from comesh.core.events import DeviceAnswered, DeviceReported, Timer
from comesh.core.group.config import Config
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.messages import Announcement
from comesh.core.program import Program, ProtocolSettings
from comesh.core.records import Entry, Gone, GroupRecord, Record
from comesh.core.stamps import Ballot, Era, Fence, Stamp
from comesh.core.step import Step
from comesh.core.work_messages import GroupMessage, Work

MIN_TIMER_MS = 1.0
"""No timer fires in the instant that it is set: what is due by a rounding error would never be."""

Then = Callable[[Step], None]
_R = TypeVar("_R", bound=Record)


class Surroundings(Protocol):
    """What the node tells the groups that it serves."""

    own: NodeId

    def route(self, message: GroupMessage, to: NodeId | None, step: Step) -> None:
        """Send a message to the leader of its group, or to one node."""

    def next_call(self, serving: "Serving") -> int:
        """A number for a device call, whose answer comes back to that serving group."""

    def round_trip_ms(self, node: NodeId) -> float: ...

    def probe(self, serving: "Serving", device: DeviceId, step: Step) -> bool:
        """Have another member of the config ask a device; the answer comes as DeviceAnswered with call -1.
        False: there is nobody to ask."""

    def post_announcement(self, key: str, version: int, value: bytes, step: Step) -> None: ...

    def announcement(self, key: str) -> Announcement | None: ...

    def learn_document(self, version: int, text: str, step: Step) -> None:
        """A deployment version is committed: adopt it, and let everybody know."""


class Part(Protocol):
    """Looks after the devices, or the routines, of a served group."""

    def begin(self, step: Step) -> None:
        """Serving begins: take everything up again from the records."""

    def on_message(self, message: GroupMessage, sender: NodeId, step: Step) -> None: ...

    def on_timer(self, what: str, of: str | int, step: Step) -> None: ...

    def on_answer(self, event: DeviceAnswered, step: Step) -> None: ...

    def on_report(self, event: DeviceReported, step: Step) -> None: ...

    def on_reached(self, group: GroupId, step: Step) -> None:
        """A group that was silent may answer again: say now what waits for its answer."""

    @property
    def busy(self) -> bool:
        """Runs or locks are open: touch more often, so that a dead leader is noticed sooner."""
        ...

    @property
    def in_flight(self) -> bool:
        """A command is under way, or may still land: a new leader would have to wait for it in full."""
        ...


class OutboundMessage:
    """A message that waits for the commit of an entry. told: somebody has it already, and knows that."""

    __slots__ = ("_still", "_surroundings", "message", "sent", "to", "told")

    def __init__(
        self,
        message: GroupMessage,
        to: NodeId | None,
        surroundings: Surroundings,
        still: Callable[[], bool] | None,
    ) -> None:
        self.message = message
        self.to = to
        self.told: Callable[[], bool] | None = None
        self.sent = False
        self._surroundings = surroundings
        self._still = still

    def __call__(self, step: Step) -> None:
        self.sent = True
        if (self._still is None or self._still()) and (self.told is None or not self.told()):
            self._surroundings.route(self.message, self.to, step)


class Serving:
    def __init__(
        self,
        *,
        config: Config,
        ballot: Ballot,
        records: Mapping[str, Record],
        committed: int,
        number: int,
        program: Program,
        surroundings: Surroundings,
        draws: Draws,
    ) -> None:
        self.group: GroupId = config.group
        self.config = config
        self.mark = config.mark
        self.ballot = ballot
        self.fence = Fence(config.number, ballot)
        self.program = program
        self.settings: ProtocolSettings = program.settings
        self.surroundings = surroundings
        self.draws = draws
        self.parts: dict[str, Part] = {}
        self.lease_until_ms = float("-inf")
        """By this node's clock; without a lease no command is sent."""
        self.ended = False
        self.holds_back = False
        """No command begins: those under way are waited for, and then another config serves."""
        self.has_work = False
        """Something was staged or said since the last seal."""
        self._records: dict[str, Record] = dict(records)
        self._staged: dict[str, Record] = {}
        self._number = number
        self.committed = committed
        """The number up to which all entries are."""
        self.era: Era = self.group_record.era
        self._stamps = 0
        self._local: deque[GroupMessage] = deque()
        self._outward: deque[tuple[int, Then | Effect]] = deque()
        """What waits for the commit of an entry, by its number, in order."""
        self._fresh: list[Then | Effect] = []
        """What waits for the entry of this step."""
        self._outbox: list[OutboundMessage] = []
        """The messages that wait for the entry of this step."""
        self._timers: dict[Timer, None] = {}

    # -- the state ---------------------------------------------------------------------------------------

    def get(self, key: str, kind: type[_R]) -> _R | None:
        """The record with this key as it is staged, committed or not."""
        record = self._records.get(key)
        return record if isinstance(record, kind) else None

    def all(self, kind: type[_R]) -> list[_R]:
        return [record for record in self._records.values() if isinstance(record, kind)]

    def put(self, record: Record) -> None:
        """Stage a record; the entry of this step carries it."""
        key = record.key
        self._records[key] = self._staged[key] = record
        self.has_work = True
        if isinstance(record, GroupRecord):
            self.era = record.era

    def prove(self) -> None:
        """Stage what is there already: what is said in this step is said by who still leads after it."""
        self.put(self.group_record)

    def drop(self, key: str) -> None:
        if self._records.pop(key, None) is not None:
            self._staged[key] = Gone(key)
            self.has_work = True

    @property
    def group_record(self) -> GroupRecord:
        return self.get("group", GroupRecord) or GroupRecord()

    def stamp(self) -> Stamp:
        """A new one, higher than all before in this group."""
        self._stamps += 1
        return Stamp(self.config.number, self.ballot, self._stamps)

    # -- what takes effect after commit ------------------------------------------------------------------

    def send(self, to: GroupId, body: Work, still: Callable[[], bool] | None = None) -> None:
        """Say something to the leader of a group; to the own group, in this step. still: whether it is worth
        saying once it may be said."""
        message = GroupMessage(to, self.group, self.fence, self.config.version, body)
        if to == self.group:
            self._local.append(message)
            self.has_work = True
        else:
            self._route(message, None, still)

    def answer(self, message: GroupMessage, sender: NodeId, body: Work) -> None:
        """Say something to whoever wrote: the leader of a group, or a node."""
        if message.sender is not None:
            self.send(message.sender, body)
            return
        self._route(GroupMessage(None, self.group, self.fence, self.config.version, body), sender)

    def _route(
        self, message: GroupMessage, to: NodeId | None, still: Callable[[], bool] | None = None
    ) -> None:
        outbound = OutboundMessage(message, to, self.surroundings, still)
        self._outbox.append(outbound)
        self.then(outbound)

    def then(self, call: Then) -> None:
        """Do this once all that is staged now is committed, if this node still serves."""
        self._fresh.append(call)
        self.has_work = True

    def do(self, effect: Effect) -> None:
        """Have an effect after commit."""
        self._fresh.append(effect)
        self.has_work = True

    def tell(self, observation: Observation) -> None:
        """Tell whoever watches, after commit; also if that comes when this node only hands off."""
        self._fresh.append(Observe(observation))
        self.has_work = True

    # -- time and devices --------------------------------------------------------------------------------

    def has_lease(self, now_ms: float) -> bool:
        return now_ms < self.lease_until_ms

    def set_timer(self, part: str, what: str, of: str | int, after_ms: float, step: Step) -> None:
        """A timer of a part; it ends with this leadership."""
        timer = Timer(part, what, of, self.group)
        self._timers[timer] = None
        step.set_timer(timer, max(after_ms, MIN_TIMER_MS))

    def cancel_timer(self, part: str, what: str, of: str | int, step: Step) -> None:
        timer = Timer(part, what, of, self.group)
        if timer in self._timers:
            self._timers.pop(timer, None)
            step.cancel_timer(timer)

    def next_call(self) -> int:
        return self.surroundings.next_call(self)

    # -- what the replica and the node ask ---------------------------------------------------------------

    @property
    def busy(self) -> bool:
        for part in self.parts.values():  # noqa: SIM110 (asked several times a step: a generator costs)
            if part.busy:
                return True
        return False

    @property
    def in_flight(self) -> bool:
        return any(part.in_flight for part in self.parts.values())

    def begin(self, step: Step) -> None:
        for part in self.parts.values():
            part.begin(step)

    def on_timer(self, timer: Timer, step: Step) -> None:
        self._timers.pop(timer, None)
        self.parts[timer.part].on_timer(timer.what, timer.of, step)

    def on_reached(self, group: GroupId, step: Step) -> None:
        for part in self.parts.values():
            part.on_reached(group, step)

    @property
    def next_entry(self) -> int:
        """The number of the entry that what is staged now becomes."""
        return self._number + 1

    def take_local(self) -> GroupMessage | None:
        """The next message to the own group."""
        return self._local.popleft() if self._local else None

    def seal(self) -> Entry | None:
        """End a step: what was staged is one entry, if anything was, to be proposed under the next number."""
        entry: Entry | None = None
        if self._staged:
            entry = tuple(self._staged.values())
            self._staged = {}
            self._number += 1
        else:
            self._outbox = []
        number = self._waits_for
        self._outward.extend([(number, call) for call in self._fresh])
        self._fresh = []
        self.has_work = False
        return entry

    def take_outbox(self) -> list[OutboundMessage]:
        """The messages that wait for the entry that was sealed."""
        outbox, self._outbox = self._outbox, []
        return outbox

    @property
    def _waits_for(self) -> int:
        """The entry whose commit lets out what was said in its step."""
        return self._number

    def on_committed(self, number: int, step: Step) -> None:
        """All entries up to this number are committed: what waited for them happens, in order."""
        self.committed = max(self.committed, number)
        while self._outward and self._outward[0][0] <= self.committed:
            _, waiting = self._outward.popleft()
            if isinstance(waiting, Effect):
                step.do(waiting)
            else:
                waiting(step)

    def end(self, step: Step) -> None:
        """Nothing that waited happens any more; what is said of a commit that may yet come does."""
        self.ended = True
        for timer in self._timers:
            step.cancel_timer(timer)
        self._timers.clear()
        self._outward = deque(one for one in self._outward if isinstance(one[1], Observe | OutboundMessage))
        self._local.clear()
