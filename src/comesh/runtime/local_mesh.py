"""A whole deployment as processes on this machine: one per node, and one that is all virtual devices.

    DIRECTORY/
      deployment.yaml        what it was made from
      newest.yaml, chain     what it runs by, if that was changed since: the newest document, and all of them
      keys/                  its own authority, a key and certificate per node
      addresses.json         where nodes listen, on loopback
      api.json               where their HTTP interfaces are, if they have them
      nodes/NAME/            the data of a node: its journal, its control socket
      logs/NAME.log          what it said
      started.json           nodes that were started before: only a first start may begin groups
      lock                   held by the process that runs it, with its number in it

A process ends with the one that started it, however that ends: it holds the other end of its standard input.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from comesh.core.ids import NodeId
from comesh.deployment.model import Deployment
from comesh.runtime.credentials import Authority, CredentialsError
from comesh.runtime.documents import Chain, parsed
from comesh.runtime.forkserver import Forked, ForkServer, ForkServerError
from comesh.runtime.journal import JournalError
from comesh.runtime.journal.files import JOURNAL, DirectoryLock
from comesh.runtime.options import Address, NodeOptions, node_command

LOOPBACK: Final = "127.0.0.1"
END_S: Final = 10.0
"""How long a process may take to end in good order."""
LOOK_S: Final = 0.05
FIRST, NEWEST, CHAIN = "deployment.yaml", "newest.yaml", "chain"
DEVICES: Final = "devices"
"""The process that is all devices outside of nodes; no node can have this name with its files, see `_log`."""


class LocalMeshError(Exception):
    """The mesh cannot be set up; str() says what is wrong and what to do."""


class LocalMesh:
    def __init__(
        self, directory: Path, deployment: Deployment, text: str, *, api: bool = False, still: bool = False
    ) -> None:
        """api: nodes have HTTP interfaces, each at a free port. still: devices change nothing alone."""
        self.directory = directory
        self._still = still
        self._has_api = api
        self.api_at: dict[NodeId, Address] = {}
        self.deployment = deployment
        self.nodes: tuple[NodeId, ...] = tuple(sorted(deployment.nodes))
        self.version = 1
        self.is_outdated = False
        """The mesh goes by a later document than the one that was given here."""
        self.devices_at: Address | None = None
        self._text = text
        self._processes: dict[str, subprocess.Popen[bytes] | Forked] = {}
        self._fork_server: ForkServer | None = None
        self._started: set[str] = set()
        self.addresses: dict[NodeId, Address] = {}
        self._held: DirectoryLock | None = None

    # -- files -------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make what is not there yet."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock()
            for name in ("keys", "nodes", "logs"):
                (self.directory / name).mkdir(exist_ok=True, mode=0o700)
            self._keep_document()
            self._make_keys()
            self._choose_addresses()
            started = self.directory / "started.json"
            if started.is_file():
                self._started = set(msgspec.json.decode(started.read_bytes(), type=list[str]))
            self.note_started(*self.nodes)
        except (OSError, CredentialsError, msgspec.DecodeError) as wrong:
            what = f"{wrong.filename}: {wrong.strerror}" if isinstance(wrong, OSError) else str(wrong)
            raise LocalMeshError(
                f"{self.directory} cannot be set up ({what}); choose another place with --data"
            ) from wrong
        self._wait_for_former_nodes()

    def _lock(self) -> None:
        """One process at a time runs a mesh from a directory."""
        if self._held is not None:
            return
        try:
            self._held = DirectoryLock(self.directory)
        except JournalError as wrong:
            raise LocalMeshError(
                f"a mesh runs from {self.directory} already: ask it with `comesh status --data "
                f"{self.directory}`, end it with Ctrl-C there, or choose another place with --data"
            ) from wrong

    def _wait_for_former_nodes(self) -> None:
        """If the process that ran this mesh was killed, its nodes may still be leaving."""
        ends = time.monotonic() + END_S
        for data in filter(Path.is_dir, map(self.data_of, self.nodes)):
            while True:
                try:
                    DirectoryLock(data).release()
                    break
                except JournalError as wrong:
                    if time.monotonic() > ends:
                        raise LocalMeshError(str(wrong)) from wrong
                time.sleep(LOOK_S)

    def _keep_document(self) -> None:
        kept, newest = self.directory / FIRST, self.directory / NEWEST
        if not kept.is_file():
            kept.write_text(self._text)
        known = [kept.read_text()]
        if newest.is_file():
            chain = Chain.load((self.directory / CHAIN).read_text(), CHAIN)
            self.version = chain.newest
            known += [*chain.texts.values(), chain.text]
        if self._text not in known:
            raise LocalMeshError(
                f"{self.directory} was begun with another document, or the document was changed since. A "
                "mesh goes on with the document that it has: start it with that one, and change it with "
                "`comesh apply FILE`; or remove that directory to begin anew, or choose another one with "
                "--data"
            )
        self.is_outdated = self._text != known[-1]
        self._go_by(parsed(known[-1], str(newest)))

    def _go_by(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.nodes = tuple(sorted(deployment.nodes))

    def take_chain(self, chain: Chain) -> None:
        """The mesh runs by a newer version, which may have other nodes: they can be started here."""
        (self.directory / CHAIN).write_text(chain.dump())
        (self.directory / NEWEST).write_text(chain.text)
        self.version = chain.newest
        self._go_by(parsed(chain.text, f"version {chain.newest}"))
        self._make_keys()
        new = [node for node in self.nodes if node not in self.addresses]
        ports = _free_ports(len(new), socket.SOCK_DGRAM)
        self.addresses |= {node: (LOOPBACK, port) for node, port in zip(new, ports, strict=True)}
        if self._has_api:
            free = _free_ports(len(new), socket.SOCK_STREAM)
            self.api_at |= {node: (LOOPBACK, port) for node, port in zip(new, free, strict=True)}
        self._write_addresses()

    def _newest(self, changed: str) -> Path:
        """The file of the document; changed: its name, once there is more than the first one."""
        path = self.directory / changed
        return path if path.is_file() else self.directory / FIRST

    def _make_keys(self) -> None:
        keys = self.directory / "keys"
        known = (keys / "authority.crt").is_file()
        authority = Authority.load(keys) if known else Authority.create(keys)
        for node in self.nodes:
            if not (keys / f"{node}.crt").is_file():
                authority.issue(node).write(keys, node)

    def _choose_addresses(self) -> None:
        """Free ports, anew at each start: another process may have taken the old ones."""
        names = [*self.nodes, DEVICES]
        ports = dict(zip(names, _free_ports(len(names), socket.SOCK_DGRAM), strict=True))
        self.devices_at = (LOOPBACK, ports.pop(DEVICES))
        self.addresses = {NodeId(name): (LOOPBACK, port) for name, port in ports.items()}
        if self._has_api:
            free = _free_ports(len(self.nodes), socket.SOCK_STREAM)
            self.api_at = {node: (LOOPBACK, port) for node, port in zip(self.nodes, free, strict=True)}
        self._write_addresses()

    def _write_addresses(self) -> None:
        book = {name: [list(at)] for name, at in self.addresses.items()}
        (self.directory / "addresses.json").write_bytes(msgspec.json.encode(book))
        if self._has_api:
            at = {node: f"http://{host}:{port}" for node, (host, port) in self.api_at.items()}
            (self.directory / "api.json").write_bytes(msgspec.json.format(msgspec.json.encode(at)))
        else:
            (self.directory / "api.json").unlink(missing_ok=True)

    def data_of(self, node: str) -> Path:
        return self.directory / "nodes" / node

    # -- processes ---------------------------------------------------------------------------------------

    def start_devices(self, extra: Iterable[str] = ()) -> None:
        assert self.devices_at is not None
        host, port = self.devices_at
        document = str(self._newest(NEWEST))
        options = ["--listen", f"{host}:{port}", "--end-with-stdin", *(["--still"] if self._still else [])]
        self._spawn(
            DEVICES,
            [sys.executable, "-m", "comesh", "virtual", document, *options, *extra],
        )

    def start(
        self,
        node: str,
        *,
        process: str | None = None,
        addresses: Mapping[NodeId, Address] | None = None,
        **more: Any,
    ) -> None:
        """process: what the process is called here, if not as its node. addresses: of the others as this node
        is to reach them. more: fields of NodeOptions."""
        self.note_started(node)
        first = node not in self._started
        name, options = process or node, self.options(node, addresses, initialise=first, **more)
        if self._inside(name):
            self._spawn(name, node_command(options))
        else:
            self._fork(name, options)

    def note_started(self, *nodes: str) -> None:
        """Remember who has a journal: if it is gone one day, the node was wiped, and does not begin anew."""
        new = {node for node in nodes if (self.data_of(node) / JOURNAL).exists()} - self._started
        if new:
            self._started |= new
            (self.directory / "started.json").write_bytes(msgspec.json.encode(sorted(self._started)))

    def options(
        self, node: str, addresses: Mapping[NodeId, Address] | None = None, **more: Any
    ) -> NodeOptions:
        """What the process of a node is told."""
        assert self.devices_at is not None
        options = NodeOptions(
            name=NodeId(node),
            document=self._newest(CHAIN),
            data=self.data_of(node),
            keys=self.directory / "keys",
            listen=(self.addresses[NodeId(node)],),
            addresses={name: (at,) for name, at in (addresses or self.addresses).items() if name != node},
            devices_at=f"{self.devices_at[0]}:{self.devices_at[1]}",
            api=self.api_at.get(NodeId(node)),
            still=self._still,
            end_with_stdin=True,
        )
        return msgspec.structs.replace(options, **more)

    def _spawn(self, name: str, command: list[str]) -> None:
        with self._log(name).open("ab") as out:
            self._processes[name] = subprocess.Popen(
                [*self._inside(name), *command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for the one that started it, which ends it in good order
            )

    def _fork(self, name: str, options: NodeOptions) -> None:
        """As `_spawn` does, from a process that has loaded everything."""
        if self._fork_server is None or not self._fork_server.is_alive:
            self._fork_server = ForkServer(self.directory)
        try:
            with self._log(name).open("ab") as out:
                self._processes[name] = self._fork_server.start(options, out)
        except ForkServerError as wrong:
            raise LocalMeshError(
                f"{name} cannot be started: {wrong}; see the memory of this machine"
            ) from wrong

    def _log(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"

    def _inside(self, name: str) -> list[str]:
        """What to put before the command of a process; nothing, unless it runs elsewhere."""
        return []

    def runs(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def exit_code(self, name: str) -> int | None:
        return self._processes[name].poll()

    def kill(self, *names: str) -> None:
        """kill -9: no time for anything."""
        for name in names:
            if self.runs(name):
                self._processes[name].kill()
        for name in names:
            self._forget(name)

    def signal(self, name: str, what: signal.Signals) -> None:
        if self.runs(name):
            os.kill(self._processes[name].pid, what)

    def terminate(self, *names: str) -> None:
        """Have them leave in good order; who does not within END_S is killed."""
        for name in names:
            self.signal(name, signal.SIGCONT)
            self.signal(name, signal.SIGTERM)
        for name in names:
            process = self._processes.get(name)
            if process is None:
                continue
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
            self._forget(name)

    def close(self) -> None:
        """End everything, nodes first."""
        nodes = [name for name in self._processes if name != DEVICES]
        self.terminate(*nodes)
        self.terminate(*list(self._processes))
        if self._fork_server is not None:
            self._fork_server.close()
            self._fork_server = None
        if self._held is not None:
            self._held.release()
            self._held = None

    def _forget(self, name: str) -> None:
        self.note_started(name)
        process = self._processes.pop(name, None)
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()

    def last_words(self, name: str, lines: int = 3) -> str:
        """The end of what a process said."""
        log = self._log(name)
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.is_file() else ""


def _free_ports(count: int, kind: socket.SocketKind) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    try:
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def end_with_stdin(end: Callable[[], object]) -> None:
    """Call this when standard input reaches its end: whoever started this process is gone."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        end()

    threading.Thread(target=wait, daemon=True).start()
