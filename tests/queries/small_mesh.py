"""Nodes that only answer reads, joined by frames that a test can lose: no core, no socket, no disk."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from comesh.core.effects import Answered
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.program import Program
from comesh.core.records import VersionRecord
from comesh.deployment.model import Deployment
from comesh.queries.answers import DeviceSeen, GroupSeen
from comesh.queries.mesh import Asker, Mesh
from comesh.queries.node_reads import answered
from comesh.queries.peers import Answers, Peers
from comesh.queries.requests import Role
from comesh.queries.table import Table
from comesh.queries.view import TimeTold
from comesh.runtime.documents import Compiler

LAMP, GROUP = DeviceId("lamp"), GroupId("c1")
NAMES = (NodeId("n1"), NodeId("n2"), NodeId("n3"))
DOCUMENT = """
settings: {f: 1}
nodes: {n1: {place: [0m, 0m]}, n2: {place: [1m, 0m]}, n3: {place: [2m, 0m]}}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}, commands: {set: {argument: bool, sets: on}}}
routines:
  light: {do: [{device: lamp, command: set, argument: true}]}
"""
ANN = Asker(by="ann (token)", role=Role.OPERATOR)
_compiler = Compiler()


class SmallView:
    """A node that knows what a test says. What it is given is kept, and answered by `say`."""

    compiler = _compiler
    devices_at: str | None = None

    def __init__(self, own: NodeId, *, leader: NodeId = NAMES[0]) -> None:
        self.own = own
        self.leader: NodeId | None = leader
        self.living: tuple[NodeId, ...] = NAMES
        self.dead: set[NodeId] = set()
        self.now_ms = 1000.0 * (1 + NAMES.index(own))
        self.given: list[Any] = []
        self.errors: list[str] = []
        self._waiting: dict[str, Callable[[Answered], None]] = {}
        self._requests = 0

    def __getattr__(self, name: str) -> Any:
        """Whatever else a node is asked for: nothing."""
        return lambda *_: ()

    deployment: Deployment = _compiler.deployment(DOCUMENT)
    program: Program = _compiler(DOCUMENT, 1, None)

    def is_dead(self, node: NodeId) -> bool:
        return node in self.dead

    def unreached(self) -> dict[NodeId, str]:
        return {}

    def groups(self) -> tuple[GroupSeen, ...]:
        return tuple(
            GroupSeen(
                group=group,
                number=1,
                epoch=0,
                members=NAMES,
                leader=self.leader,
                serves=self.leader == self.own,
            )
            for group in sorted(self.program.plan.genesis)
        )

    def all_paused(self) -> bool:
        return False

    def wall_ms(self) -> float:
        return self.now_ms

    def monotonic_ms(self) -> float:
        return self.now_ms

    def time_told(self) -> TimeTold:
        return TimeTold(wall_ms=self.now_ms, valid=True)

    def served(self) -> tuple[GroupId, ...]:
        return tuple(self.program.plan.genesis) if self.leader == self.own else ()

    def devices(self) -> tuple[DeviceSeen, ...]:
        served = (DeviceSeen(device=LAMP, group=GROUP, status="up", readings={"on": True}),)
        return served if self.leader == self.own else ()

    def version_records(self) -> tuple[VersionRecord, ...] | None:
        return () if self.leader == self.own else None

    def texts(self) -> Mapping[int, str]:
        return {1: DOCUMENT}

    def new_request(self) -> str:
        self._requests += 1
        return f"{self.own}.1.o{self._requests}"

    def give(self, command: Any) -> None:
        self.given.append(command)

    def on_answer(self, request: str, told: Callable[[Answered], None]) -> Callable[[], None]:
        self._waiting[request] = told
        return lambda: self._waiting.pop(request, None) and None

    def say(self, request: str, why_not: str = "") -> None:
        """What the core answers to a command."""
        self._waiting[request](Answered(request, None, None, why_not))

    def error(self, what: str) -> None:
        self.errors.append(what)


class SmallMesh:
    """Three nodes. `lose`: whether a frame is lost on its way."""

    def __init__(self, *, leader: NodeId = NAMES[0]) -> None:
        self.sent: list[tuple[NodeId, NodeId, bytes]] = []
        self.lose: Callable[[NodeId, NodeId], bool] = lambda sender, to: False
        self.views = {name: SmallView(name, leader=leader) for name in NAMES}
        self.peers = {name: self._peers(name) for name in NAMES}

    def _peers(self, own: NodeId) -> Peers:
        view = self.views[own]

        def send(to: NodeId, frame: bytes) -> None:
            lost = self.lose(own, to)
            self.sent.append((own, to, frame))
            if not lost and to in self.peers:
                asyncio.get_running_loop().call_soon(self.peers[to].on_frame, own, frame)

        answers = Answers(lambda read: answered(read, view), view.wall_ms, "small 1")
        return Peers(send, answers, view.monotonic_ms)

    def mesh(self, name: NodeId) -> Mesh:
        return Mesh(self.views[name], self.peers[name])

    def table(self, name: NodeId = NAMES[0]) -> Table:
        return Table(self.mesh(name))

    def frames(self, sender: NodeId, to: NodeId) -> list[bytes]:
        return [frame for one, other, frame in self.sent if (one, other) == (sender, to)]
