"""What a node knows, for people: who lives, who leads what, how devices and routines are, what runs did.

A node knows the groups that it serves exactly; of others it knows who leads them, as the directory says. So a
picture of the whole mesh is made of what all nodes say (`questions.py`). Nothing here changes anything.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Final

from comesh.core.devices.part import Devices
from comesh.core.effects import (
    AnnouncementLearned,
    Answered,
    CommitKnown,
    Committed,
    DeviceChanged,
    LeaderChanged,
    MemberChanged,
    Observation,
    Refused,
    RunTraced,
)
from comesh.core.group.config import UNBOUND_STORE
from comesh.core.group.groups import Groups
from comesh.core.group.replica import Replica
from comesh.core.group.serving import Serving
from comesh.core.ids import GroupId
from comesh.core.node import Node
from comesh.core.orders.standing import paused, standing
from comesh.core.records import (
    AuditRecord,
    DeviceRecord,
    Kind,
    RoutineRecord,
    RunRecord,
    Stage,
    Standing,
    Status,
)
from comesh.queries.answers import (
    AuditSeen,
    DeviceSeen,
    GroupSeen,
    News,
    RoutineSeen,
    RunSeen,
    TraceLine,
)
from comesh.runtime.wording import in_words

MAX_TRACED: Final = 500
"""Runs whose trace is kept, the latest."""
MAX_TRACE_LINES: Final = 300
"""Of one run; what comes later is left out."""
MAX_WATCHERS: Final = 32
MAX_REASONS: Final = 100
"""For which messages were refused, each counted by itself."""
OTHER_REASONS: Final = "refused for other reasons"


Watcher = Callable[[News], None]


class View:
    """Listens to a node's observations, and says how things are when asked."""

    def __init__(self, node: Node, wall_ms: Callable[[], float]) -> None:
        self._node = node
        self._wall_ms = wall_ms
        self._traces: OrderedDict[str, deque[TraceLine]] = OrderedDict()
        self.refused: Counter[str] = Counter()
        self.watchers: list[Watcher] = []
        self.answers: dict[str, list[Callable[[Answered], None]]] = {}
        """Who waits for the answer to a request."""

    def on_observation(self, told: Observation) -> None:
        match told:
            case Committed() | CommitKnown():
                return
            case RunTraced():
                self._trace(told)
            case Answered():
                for waiting in self.answers.get(told.request, ()):
                    waiting(told)
            case Refused():
                self._count_refusal(told.why.split(":")[0][:80])
            case LeaderChanged() | DeviceChanged() | MemberChanged() | AnnouncementLearned():
                pass
        if self.watchers:
            news = self._news(told)
            if news is not None:
                for watcher in list(self.watchers):
                    watcher(news)

    def tell(self, kind: str, about: str, what: str) -> None:
        """News that the core does not know of."""
        news = News(self._wall_ms(), self._node.id, kind, about, what)
        for watcher in list(self.watchers):
            watcher(news)

    def _count_refusal(self, why: str) -> None:
        """Reasons may have numbers in them that a peer chose: no more of them than the bound."""
        known = why in self.refused or len(self.refused) < MAX_REASONS
        self.refused[why if known else OTHER_REASONS] += 1

    def _trace(self, told: RunTraced) -> None:
        run = str(told.run)
        lines = self._traces.get(run)
        if lines is None:
            lines = self._traces[run] = deque(maxlen=MAX_TRACE_LINES)
            while len(self._traces) > MAX_TRACED:
                self._traces.popitem(last=False)
        lines.append(TraceLine(self._wall_ms(), self._node.id, run, told.what, in_words(told.detail)))

    def _news(self, told: Observation) -> News | None:
        now_ms, own = self._wall_ms(), self._node.id
        match told:
            case LeaderChanged():
                members = ", ".join(told.config.nodes)
                return News(now_ms, own, "leader", told.group, told.state, told.why or members)
            case DeviceChanged():
                return News(now_ms, own, "device", told.device, told.status, told.why)
            case RunTraced():
                return News(now_ms, own, "run", str(told.run), told.what, in_words(told.detail))
            case MemberChanged():
                return News(now_ms, own, "member", told.node, told.state, told.why)
            case _:
                return None

    # -- questions ---------------------------------------------------------------------------------------

    def trace(self, run: str) -> tuple[TraceLine, ...]:
        """All lines of a run that this node told; of a routine's name: of its latest run."""
        if run in self._traces:
            return tuple(self._traces[run])
        latest = [one for one in self._traces if one.split("#")[0] == run]
        return tuple(self._traces[latest[-1]]) if latest else ()

    def runs(self) -> tuple[TraceLine, ...]:
        """The last line of each run."""
        return tuple(lines[-1] for lines in self._traces.values() if lines)

    def groups(self) -> tuple[GroupSeen, ...]:
        groups = self._node.groups
        if groups is None:
            return ()
        return tuple(self._group(group, groups) for group in sorted(groups.versions.newest.plan.genesis))

    def _group(self, group: GroupId, groups: Groups) -> GroupSeen:
        seats = [one for one in groups.replicas.values() if one.config.group == group]
        seat = max(seats, key=lambda one: one.config.number, default=None)
        listing = groups.post_office.finder.listing(group)
        serving = groups.serving(group)
        if seat is not None and (listing is None or seat.config.number >= listing.number):
            leader = self._node.id if serving is not None else None
            if leader is None and seat.leader is not None:
                leader = seat.config.nodes[seat.leader]
            return GroupSeen(
                group=group,
                number=seat.config.number,
                epoch=seat.config.epoch,
                members=seat.config.nodes,
                unseated=tuple(one.node for one in seat.config.seats if one.store == UNBOUND_STORE),
                leader=leader,
                role=seat.role.value,
                serves=serving is not None,
                version=seat.config.version,
                state=_state(seat),
            )
        if listing is not None:
            return GroupSeen(
                group=group,
                number=listing.number,
                epoch=listing.epoch,
                members=listing.nodes,
                leader=listing.leader,
                version=listing.version,
            )
        return GroupSeen(
            group=group,
            number=0,
            epoch=0,
            members=groups.versions.newest.plan.genesis[group],
            leader=None,
        )

    def devices(self) -> tuple[DeviceSeen, ...]:
        """Of the groups that this node serves."""
        return tuple(seen for serving in self._servings() for seen in _devices(serving))

    def routines(self) -> tuple[RoutineSeen, ...]:
        return tuple(seen for serving in self._servings() for seen in _routines(serving))

    def audit(self) -> tuple[AuditSeen, ...]:
        """Who did what, of the groups that this node serves."""
        return tuple(
            AuditSeen(
                group=serving.group,
                number=one.number,
                wall_ms=one.at_ms,
                by=one.by,
                what=in_words(one.what),
                request=one.request,
                run=None if one.run is None else str(one.run),
            )
            for serving in self._servings()
            for one in serving.all(AuditRecord)
        )

    def _servings(self) -> Iterator[Serving]:
        groups = self._node.groups
        if groups is not None:
            for group in groups.served:
                serving = groups.serving(group)
                if serving is not None:
                    yield serving

    @property
    def ready(self) -> bool:
        """It has joined, and every group in which it has a seat has a leader that it knows."""
        if not self._node.membership.joined:
            return False
        return all(one.leader is not None for one in self.groups() if self._node.id in one.members)


def _state(seat: Replica) -> tuple[int, int, int, int]:
    return seat.config.number, seat.accepted.round, seat.accepted.rank, seat.ledger.number


def _devices(serving: Serving) -> Iterator[DeviceSeen]:
    part = serving.parts.get("devices")
    for device in serving.program.devices_of(serving.group):
        record = serving.get("device/" + device, DeviceRecord)
        sensed = part.sensed(device) if isinstance(part, Devices) else None
        yield DeviceSeen(
            device=device,
            group=serving.group,
            status=str(Status.UNKNOWN if record is None else record.status),
            readings=None if sensed is None else sensed.readings,
            holder=None if record is None or record.hold is None else str(record.hold.run),
            waiting=() if record is None else tuple(str(one.run) for one in record.queue),
            maintained_by=_by(standing(serving, Kind.MAINTAINED, device)),
            breaking_by=_by(standing(serving, Kind.BREAKING, device)),
        )


def _by(order: Standing | None) -> str | None:
    return None if order is None else order.by


def _routines(serving: Serving) -> Iterator[RoutineSeen]:
    for routine in serving.program.routines_of(serving.group):
        record = serving.get("routine/" + routine, RoutineRecord)
        run = serving.get("run/" + routine, RunRecord)
        ended = None if record is None else record.ended
        yield RoutineSeen(
            routine=routine,
            group=serving.group,
            truth=None if record is None else record.truth,
            live=None if run is None else _run(run),
            waiting=0 if record is None else len(record.waiting),
            last=None if ended is None else str(ended.run),
            last_reason="" if ended is None else ended.reason,
            paused_by=_by(paused(serving, routine)),
        )


def _run(record: RunRecord) -> RunSeen:
    return RunSeen(
        run=str(record.run),
        stage=Stage(record.stage).name,
        attempt=record.attempt,
        held=tuple(one.device for one in record.held),
        done=len(record.progress),
        steps=len(record.steps),
    )
