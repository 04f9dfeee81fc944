"""What happened at a node, as its core tells: traces of runs, news, answers to orders, what was refused."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Final

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
from comesh.core.node import Node
from comesh.core.traces import what_of
from comesh.queries.answers import News, TraceLine

MAX_TRACED: Final = 500
"""Runs whose trace is kept, the latest."""
MAX_TRACE_LINES: Final = 300
"""Lines of one run; what comes later is left out."""
MAX_REASONS: Final = 100
"""For which messages were refused, each counted by itself."""
OTHER_REASONS: Final = "refused for other reasons"


Watcher = Callable[[News], None]


class History:
    """Listens to the observations of a node's core."""

    def __init__(self, node: Node, wall_ms: Callable[[], float]) -> None:
        self._node = node
        self._wall_ms = wall_ms
        self._traces: OrderedDict[str, deque[TraceLine]] = OrderedDict()
        self.refused: Counter[str] = Counter()
        self.watchers: list[Watcher] = []
        self.answers: dict[str, list[Callable[[Answered], None]]] = {}
        """What waits for the answer to a request."""

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
        lines.append(TraceLine(self._wall_ms(), self._node.id, run, told.trace))

    def _news(self, told: Observation) -> News | None:
        now_ms, own = self._wall_ms(), self._node.id
        match told:
            case LeaderChanged():
                members = ", ".join(told.config.nodes)
                return News(now_ms, own, "leader", told.group, told.state, told.why or members)
            case DeviceChanged():
                return News(now_ms, own, "device", told.device, told.status, told.why)
            case RunTraced():
                return News(now_ms, own, "run", str(told.run), what_of(told.trace), trace=told.trace)
            case MemberChanged():
                return News(now_ms, own, "member", told.node, told.state, told.why)
            case _:
                return None

    # -- traces ---------------------------------------------------------------------------------------

    def trace(self, run: str) -> tuple[TraceLine, ...]:
        """All lines of a run that this node told; of a routine's name: of its latest run."""
        if run in self._traces:
            return tuple(self._traces[run])
        latest = [one for one in self._traces if one.split("#")[0] == run]
        return tuple(self._traces[latest[-1]]) if latest else ()

    def runs(self) -> tuple[TraceLine, ...]:
        """The last line of each run."""
        return tuple(lines[-1] for lines in self._traces.values() if lines)
