"""The deployment versions that a node holds, and how it comes by new ones.

The group `deployment` commits the chain: an `Apply` names the version it builds on, and a stale one is
refused. A committed version is gossiped by number; who lacks it asks a node that has it for the text,
compiles it, and keeps it in its journal before it acts on it.
"""

from collections.abc import Callable
from typing import Final

from comesh.core.events import DeviceAnswered, DeviceReported
from comesh.core.group.serving import Serving
from comesh.core.ids import GroupId, NodeId
from comesh.core.orders.audit import remember
from comesh.core.program import Program
from comesh.core.records import DocumentRecord, VersionRecord
from comesh.core.step import Step
from comesh.core.work_messages import Applied, Apply, GroupMessage

Compile = Callable[[str, int, Program], Program]
"""A document's text, its version, the program before it; ValueError in plain words if it is no deployment."""

ANNOUNCEMENT = "deployment"
KEPT_VERSIONS = 8
"""Groups adopt versions at different moments, but none lags so far."""
KEPT_TEXTS = 256
"""A node that was away for more versions than this cannot catch up: its journal has to be created anew."""


class Versions:
    """What this node holds, by version."""

    def __init__(self, first: Program, compile_text: Compile) -> None:
        self._programs: dict[int, Program] = {first.version: first}
        self._compile = compile_text
        self.texts: dict[int, str] = {first.version: first.text}
        """What others that lack them are given. Each version builds on the one before: what exists keeps its
        cluster and its birth; so all are needed, in order."""
        self.newest = first

    def get(self, version: int) -> Program | None:
        return self._programs.get(version)

    def or_newest(self, version: int) -> Program:
        return self._programs.get(version, self.newest)

    def compile(self, text: str, version: int) -> Program:
        """ValueError if it cannot be used."""
        if version != self.newest.version + 1:
            raise ValueError(f"version {version} does not follow {self.newest.version}")
        return self._compile(text, version, self.newest)

    def add(self, program: Program) -> None:
        self._programs[program.version] = program
        self.texts[program.version] = program.text
        self.newest = max(self._programs.values(), key=lambda one: one.version)
        while len(self.texts) > KEPT_TEXTS:
            del self.texts[min(self.texts)]
        while len(self._programs) > KEPT_VERSIONS:
            del self._programs[min(self._programs)]


class Deployments:
    """The part of the group `deployment`: takes new versions in, one after the other."""

    busy: Final = False
    in_flight: Final = False

    def __init__(self, serving: Serving, versions: Versions) -> None:
        self._serving = serving
        self._versions = versions

    @property
    def _current(self) -> int:
        record = self._serving.get("document", DocumentRecord)
        return max(self._versions.newest.version, 0 if record is None else record.version)

    def begin(self, step: Step) -> None:
        record = self._serving.get("document", DocumentRecord)
        if record is not None:
            self._announce(record)

    def on_message(self, message: GroupMessage, sender: NodeId, step: Step) -> None:
        body = message.body
        if not isinstance(body, Apply):
            return
        serving = self._serving
        record = serving.get("document", DocumentRecord)
        if record is not None and record.request == body.request:
            same = record.text == body.text
            why = "" if same else f"the request id is that of version {record.version}; take another one"
            serving.answer(message, sender, Applied(body.request, record.version, why))
            return
        current = self._current
        if body.base != current:
            why = f"it builds on version {body.base}, but the deployment is at {current}: start from that one"
            serving.answer(message, sender, Applied(body.request, current, why))
            return
        if self._versions.newest.version < current:
            return  # that one is about to be learned; who asks asks again
        try:
            self._versions.compile(body.text, current + 1)
        except ValueError as wrong:
            serving.answer(message, sender, Applied(body.request, current, str(wrong)))
            return
        applied = DocumentRecord(current + 1, body.text, body.request)
        serving.put(applied)
        serving.put(VersionRecord(applied.version, body.by, step.wall_ms, body.why))
        serving.drop(f"version/{applied.version - KEPT_TEXTS}")
        what = f"apply version {applied.version}"
        remember(serving, step.wall_ms, body.by, what, request=body.request)
        self._announce(applied)
        serving.answer(message, sender, Applied(body.request, current + 1))

    def _announce(self, record: DocumentRecord) -> None:
        serving = self._serving
        if serving.config.quorum > 1:
            serving.then(lambda step: serving.surroundings.learn_document(record.version, record.text, step))
        else:
            # Alone, it is committed in the step that writes it. Were that to fail, nothing of it happened,
            # and nobody may have learned it: a later step looks.
            serving.then(lambda step: serving.set_timer("deployment", "learn", "", 0.0, step))

    def on_timer(self, what: str, of: str | int, step: Step) -> None:
        record = self._serving.get("document", DocumentRecord)
        if record is not None:
            self._serving.surroundings.learn_document(record.version, record.text, step)

    def on_answer(self, event: DeviceAnswered, step: Step) -> None:
        pass

    def on_report(self, event: DeviceReported, step: Step) -> None:
        pass

    def on_reached(self, group: GroupId, step: Step) -> None:
        pass
