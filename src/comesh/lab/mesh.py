"""A deployment as real processes, to be broken: each node a `comesh node`, all recorded, judged at the end.

    with Mesh(document, directory, links=ProxyThread(seed=1)) as mesh:
        mesh.start_all()
        mesh.wait_for(mesh.is_ready, "all nodes are ready", bound_s=20)
        mesh.fire("r1"); mesh.kill("n3"); mesh.partition([["n1"], ["n2"]]); mesh.heal()
    verdict = mesh.judge()

Links: none (plain loopback), a relay that breaks them (`proxy_thread`), or namespaces with routes
(`namespaces`). With a relay every node knows the others by the relay's sockets.

Whatever is done to the mesh is recorded too, so that the judge knows which processes are no more and what was
cut from which journal. Power loss is kill -9, the journal cut back to what was flushed, and another boot id.
Everything blocks; nothing waits for longer than it is told.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from comesh.core.ids import GroupId, NodeId, RoutineId
from comesh.deployment.load import load
from comesh.deployment.model import Deployment
from comesh.lab.judging import Quiet, Verdict, judge, judge_recordings
from comesh.lab.merging import ENDING, recordings
from comesh.lab.namespaces import DEVICES_HOST, Namespaces
from comesh.lab.proxy import Proxy, free_addresses
from comesh.lab.proxy_thread import ProxyThread
from comesh.queries.answers import NodeStatus, QueryError, RoutineFired
from comesh.queries.requests import ApplyDocument, FireRoutine, ShowChain, ShowStatus
from comesh.runtime.client import Client
from comesh.runtime.documents import Chain
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.journal.format import read_journal
from comesh.runtime.journal.opening import lose_unflushed
from comesh.runtime.local_mesh import CHAIN, DEVICES, LOOPBACK, LocalMesh
from comesh.runtime.options import Address
from comesh.runtime.recording import Disturbed, Recorder

LOOK_S: Final = 0.05
"""Interval at which a condition is checked."""
STATUS_S: Final = 2.0
"""A node that does not say how it is within this is taken for one that does not answer."""
LAB: Final = "lab"
"""The recording of what was done to the mesh."""
NODE_PORT: Final = 7440
DEVICES_PORT: Final = 7441
"""Port of the devices in namespaces, where every port is free."""

Links = ProxyThread | Namespaces | None


class MeshError(Exception):
    """The mesh did not do what it should; str() says what, and what its nodes said last."""


class Mesh(LocalMesh):
    def __init__(self, document: Path, directory: Path, *, links: Links = None) -> None:
        super().__init__(directory, _deployment(document), document.read_text())
        self.document = document
        self.recordings = directory / "recordings"
        self.links = links
        self._boots: dict[str, int] = {}
        self._books: dict[str, dict[NodeId, Address]] = {}
        """Addresses at which each node reaches the others, if not directly."""
        self._recorder: Recorder | None = None
        self._paused: set[str] = set()
        self.started_with: dict[str, dict[str, Any]] = {}
        """Options with which each node is started, besides the usual ones."""

    def __enter__(self) -> "Mesh":
        self.recordings.mkdir(parents=True, exist_ok=True)
        self.prepare()
        self._recorder = Recorder(self.recordings / f"{LAB}{ENDING}", LAB)
        if isinstance(self.links, ProxyThread):
            books = self.links.start({str(name): at for name, at in self.addresses.items()})
            self._books = {
                node: {NodeId(name): at for name, at in book.items()} for node, book in books.items()
            }
        return self

    def __exit__(self, *_: object) -> None:
        """Processes end in good order; links that were given are closed by whoever made them, but a relay
        thread ends with its mesh."""
        try:
            for name in list(self._processes):
                self.resume(name)
            self.close()
        finally:
            if isinstance(self.links, ProxyThread):
                self.links.close()
            if self._recorder is not None:
                self._recorder.close()
                self._recorder = None

    def _choose_addresses(self) -> None:
        if isinstance(self.links, Namespaces):
            self.devices_at = (DEVICES_HOST, DEVICES_PORT)
            self.addresses = {name: (self.links.addresses[name][0], NODE_PORT) for name in self.nodes}
        else:
            found = free_addresses([*self.nodes, DEVICES], LOOPBACK)
            self.devices_at = found.pop(DEVICES)
            self.addresses = {NodeId(name): at for name, at in found.items()}

    # -- processes ---------------------------------------------------------------------------------------

    def start_all(self, *, devices: Iterable[str] = ()) -> None:
        """The devices, and every node; devices: more arguments for their process."""
        self.start_devices((*("--record", str(self.recordings / f"{DEVICES}{ENDING}")), *devices))
        for node in self.nodes:
            self.start(node)

    def start(
        self,
        node: str,
        *,
        process: str | None = None,
        addresses: Mapping[NodeId, Address] | None = None,
        **more: Any,
    ) -> None:
        """process: of a second one with the name of this node, which records into a file of that name."""
        told = self.started_with.get(node, {}) | {
            "record": self.recordings / f"{process or node}{ENDING}",
            "boot_id": f"lab {self._boots.setdefault(node, 1)}",
        }
        super().start(node, process=process, addresses=addresses or self._books.get(node), **(told | more))

    def _inside(self, name: str) -> list[str]:
        return self.links.inside(name) if isinstance(self.links, Namespaces) else []

    def kill(self, *names: str) -> None:
        """kill -9, all before any is waited for."""
        self._paused.difference_update(names)
        super().kill(*names)
        self._note("killed", names, ends=True)

    def terminate(self, *names: str) -> None:
        """They leave in good order."""
        running = [name for name in names if name in self._processes]
        super().terminate(*names)
        if running:
            self._note("terminated", running, ends=True)

    def pause(self, name: str) -> None:
        self.signal(name, signal.SIGSTOP)
        self._paused.add(name)
        self._note("stopped", [name])

    def resume(self, name: str) -> None:
        self._paused.discard(name)
        if self.runs(name):
            self.signal(name, signal.SIGCONT)

    def stop(self, name: str, seconds: float) -> None:
        """The process stands still for so long."""
        self.pause(name)
        time.sleep(seconds)
        self.resume(name)
        self._note("goes on", [name])

    # -- disks -------------------------------------------------------------------------------------------

    def power_loss(self, *nodes: str) -> int:
        """Cuts the power of these nodes at once, and restores it. Returns how many bytes of their journals
        are lost."""
        lost_bytes = self.lose_power(*nodes)
        for node in nodes:
            self.start(node)
        return lost_bytes

    def lose_power(self, *nodes: str) -> int:
        """They go dark, and what was not flushed is gone."""
        self._paused.difference_update(nodes)
        super().kill(*nodes)
        lost_bytes = 0
        kept: dict[str, int] = {}
        for node in nodes:
            self._boots[node] = self._boots.get(node, 1) + 1
            directory = self.data_of(node)
            if (directory / JOURNAL).is_file():
                lost_bytes += lose_unflushed(directory)
                kept[node] = _length(directory)
        self._note("lost power", nodes, ends=True, kept_bytes=kept)
        return lost_bytes

    def wipe(self, node: str) -> None:
        """Another, empty disk for a node that does not run."""
        self._must_not_run(node)
        shutil.rmtree(self.data_of(node), ignore_errors=True)
        self._note("wiped", [node])

    def tear(self, node: str, cut_bytes: int) -> None:
        """Cut the end of the journal of a node that does not run."""
        self._must_not_run(node)
        path = self.data_of(node) / JOURNAL
        os.truncate(path, max(0, path.stat().st_size - cut_bytes))
        self._note("torn", [node], kept_bytes={node: _length(self.data_of(node))})

    def flip_bit(self, node: str, from_end: int) -> None:
        """Flips a bit in the journal of a node that does not run, this many bytes before its end."""
        self._must_not_run(node)
        path = self.data_of(node) / JOURNAL
        data = bytearray(path.read_bytes())
        data[-from_end] ^= 0x10
        path.write_bytes(data)
        self._note("a bit was flipped", [node])

    def _must_not_run(self, node: str) -> None:
        if self.runs(node):
            raise MeshError(f"{node} runs: its disk cannot be touched")

    # -- links -------------------------------------------------------------------------------------------

    def partition(self, sides: Sequence[Collection[str]]) -> None:
        if isinstance(self.links, ProxyThread):
            self.links.proxy.partition(sides)
        elif self.links is not None:
            self.links.partition(sides)
        else:
            raise MeshError("plain loopback cannot be cut: give the mesh links")
        self._note(f"parted: {' | '.join(', '.join(sorted(side)) for side in sides)}")

    def deafen(self, node: str) -> None:
        """It is heard, and hears nobody: behind a relay."""
        self._relay().deafen(node)
        self._note(f"deaf: {node}")

    def silence(self, node: str) -> None:
        """It hears, and nobody hears it: behind a relay."""
        self._relay().silence(node)
        self._note(f"silenced: {node}")

    def _relay(self) -> Proxy:
        if not isinstance(self.links, ProxyThread):
            raise MeshError("only a relay cuts one direction of all links: give the mesh a ProxyThread")
        return self.links.proxy

    def heal(self) -> None:
        if isinstance(self.links, ProxyThread):
            self.links.proxy.heal()
        elif self.links is not None:
            self.links.heal()
        self._note("healed")

    # -- questions ---------------------------------------------------------------------------------------

    def client(self, node: str, within_s: float = STATUS_S) -> Client:
        return Client(self.data_of(node), within_s=within_s)

    def status(self, node: str) -> NodeStatus | None:
        """None: it does not answer."""
        try:
            with self.client(node) as client:
                return client.ask(ShowStatus())
        except QueryError:
            return None

    def statuses(self) -> dict[str, NodeStatus]:
        """Returns the status of each node that runs and answers; one that stands still is not asked."""
        running = [node for node in self.nodes if self.runs(node) and node not in self._paused]
        asked = {node: self.status(node) for node in running}
        return {node: status for node, status in asked.items() if status is not None}

    def leaders(self) -> dict[GroupId, NodeId]:
        """Returns which nodes claim to serve each group."""
        return {
            group.group: status.node
            for status in self.statuses().values()
            for group in status.groups
            if group.serves
        }

    def is_ready(self) -> bool:
        """Every node that runs is ready, and knows exactly those that run."""
        running = {node for node in self.nodes if self.runs(node)}
        statuses = self.statuses()
        return set(statuses) == running and all(
            status.ready and set(status.living) == running for status in statuses.values()
        )

    def is_seated(self) -> bool:
        """No group has a member that runs and was away when its config began."""
        groups = [one for status in self.statuses().values() for one in status.groups if one.serves]
        return not any(self.runs(node) for one in groups for node in one.unseated)

    def fire(self, routine: str, *, node: str | None = None, request: str | None = None) -> RoutineFired:
        """Ask a node (the first that runs) to fire a routine."""
        asked = node or next(one for one in self.nodes if self.runs(one))
        with Client(self.data_of(asked)) as client:
            return client.ask(FireRoutine(routine=RoutineId(routine), request=request))

    def apply(self, text: str, *, now: bool = False) -> int:
        """Have the mesh run by another document; the version that it becomes."""
        asked = next(one for one in self.nodes if self.runs(one))
        with Client(self.data_of(asked)) as client:
            done = client.ask(ApplyDocument(base=self.version, text=text, now=now))
        self.follow(asked)
        return done.version

    def follow(self, node: str) -> None:
        """Know what this node runs by: its nodes can be started, and the judge knows all versions."""
        with self.client(node) as client:
            self.take_chain(Chain.load(client.ask(ShowChain()).chain, node))

    def works_by(self, version: int) -> bool:
        """Every group is served, by this version or a later one."""
        served = [one for status in self.statuses().values() for one in status.groups if one.serves]
        groups = {one.group for status in self.statuses().values() for one in status.groups}
        return {one.group for one in served if one.version >= version} == groups

    def wait_for(self, condition: Callable[[], bool], what: str, *, bound_s: float) -> float:
        """Waits until a condition holds. Returns how many seconds that took. MeshError: it never held."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > bound_s:
                said = "\n".join(f"{node}: {self.last_words(node)}" for node in (*self.nodes, DEVICES))
                raise MeshError(f"not within {bound_s:g} s: {what}\n{said}")
            time.sleep(LOOK_S)
        return time.monotonic() - began

    # -- the verdict -------------------------------------------------------------------------------------

    def judge(self, quiet: Quiet | None = None) -> Verdict:
        """Over everything that was recorded until now."""
        chain = self.directory / CHAIN
        if not chain.is_file():
            return judge(self.recordings, self.document, quiet=quiet)
        programs = Chain.load(chain.read_text(), CHAIN).programs()
        return judge_recordings(recordings(self.recordings), programs, quiet=quiet)

    def _note(
        self,
        what: str,
        nodes: Iterable[str] = (),
        *,
        ends: bool = False,
        kept_bytes: dict[str, int] | None = None,
    ) -> None:
        if self._recorder is not None:
            self._recorder.write(now_us(), Disturbed(what, tuple(nodes), ends, kept_bytes or {}))


def now_us() -> int:
    """Returns the time by the clock of recordings."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def _length(directory: Path) -> int:
    """Returns the length of a journal, as its process counted."""
    reading = read_journal((directory / JOURNAL).read_bytes())
    return 0 if reading.header is None else reading.header.base + reading.body_bytes


def _deployment(document: Path) -> Deployment:
    outcome = load(document)
    if outcome.deployment is None:
        raise MeshError("\n".join(map(str, outcome.problems)))
    return outcome.deployment
