"""Checks that every order that a person was told is done stands in the committed history.

- What was answered as done stands in a committed entry: an order in the audit log, a firing by its request, a
  version with its document. A loss that is reported later may take it, but it was there.
- A group that was reached works by that version.
- A version of the deployment is committed once, each builds on the one before, and all nodes hold the same
  text of it. Only a reported loss lets numbers be passed over.
"""

from comesh.core.effects import Answered, Committed, LeaderChanged, Observation
from comesh.core.ids import GroupId, NodeId
from comesh.core.journal import DocumentKept, JournalRecord
from comesh.core.plan import DEPLOYMENT
from comesh.core.records import AuditRecord, DocumentRecord, Entry, Record, RoutineRecord
from comesh.core.stamps import RunId
from comesh.sim.checks.history import Change, State
from comesh.sim.checks.violation import Promise, Verdicts


class Answers:
    """Answers to people: `reaching`: requests that a group works by a version. `done` and `refused`:
    results."""

    def __init__(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts
        self.reaching: dict[str, tuple[GroupId, int]] = {}
        self.done: set[str] = set()
        self.refused: dict[str, str] = {}
        self._committed: set[str] = set()
        self._working: dict[GroupId, int] = {}
        """The highest version by which each group was seen to work."""
        self._texts: dict[int, tuple[NodeId, str]] = {}

    # -- what is told ------------------------------------------------------------------------------------

    def observe(self, now_ms: float, node: NodeId, observation: Observation) -> None:
        match observation:
            case Committed():
                self._note(observation.entry)
            case LeaderChanged():
                self._note(observation.records)
                if observation.state == "serving":
                    version = max(self._working.get(observation.group, 0), observation.config.version)
                    self._working[observation.group] = version
            case Answered():
                self._on_answered(now_ms, node, observation)
            case _:
                pass

    def on_written(self, now_ms: float, node: NodeId, record: JournalRecord) -> None:
        """Check that all nodes keep the same text of a version."""
        if not isinstance(record, DocumentKept):
            return
        first, text = self._texts.setdefault(record.version, (node, record.text))
        if text != record.text:
            what = f"{node} keeps another document as version {record.version} than {first}"
            self._verdicts.broken(Promise.ONE_HISTORY, now_ms, what, group=DEPLOYMENT)

    def _note(self, entry: Entry) -> None:
        for record in entry:
            match record:
                case AuditRecord() | DocumentRecord():
                    self._committed.add(record.request)
                case RoutineRecord():
                    self._committed.update(request for request, _ in record.requests)
                case _:
                    pass

    def _on_answered(self, now_ms: float, node: NodeId, answer: Answered) -> None:
        if answer.why_not:
            self.refused[answer.request] = answer.why_not
            return
        self.done.add(answer.request)
        reached = self.reaching.get(answer.request)
        if reached is None:
            if answer.request not in self._committed:
                what = f"{node} was told that {answer.request!r} is done, but nobody committed it"
                self._verdicts.broken(Promise.ORDERS, now_ms, what)
        elif self._working.get(reached[0], 0) < reached[1]:
            what = f"{node} was told that {reached[0]} works by version {reached[1]}, which it does not"
            self._verdicts.broken(Promise.ORDERS, now_ms, what, group=reached[0])

    # -- what the history says ---------------------------------------------------------------------------

    def on_entry(self, at_ms: float, group: GroupId, changes: list[Change], state: State) -> None:
        for _, before, after in changes:
            if after is not None:
                self._note((after,))
            if isinstance(after, DocumentRecord):
                self._on_version(at_ms, before, after)

    def on_state(
        self, at_ms: float, group: GroupId, records: dict[str, Record], *, lossy: bool
    ) -> list[RunId]:
        self._lossy = self._lossy or (lossy and group == DEPLOYMENT)
        return []

    _lossy = False

    def _on_version(self, at_ms: float, before: Record | None, after: DocumentRecord) -> None:
        if before is None:
            last, request = 1, ""
        else:
            assert isinstance(before, DocumentRecord)
            last, request = before.version, before.request
        if after.version != last + 1 and not (self._lossy and after.version > last):
            what = f"version {after.version} was committed after {last}"
            self._verdicts.broken(Promise.ONE_HISTORY, at_ms, what, group=DEPLOYMENT)
        if after.request == request:
            what = f"{request!r} was applied twice, as {last} and {after.version}"
            self._verdicts.broken(Promise.ORDERS, at_ms, what, group=DEPLOYMENT)
