"""A mesh of four real nodes, of which each has a keys directory of its own, as on four machines."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from real_processes import comesh

from comesh.api.tokens import create
from comesh.core.ids import RoutineId
from comesh.deployment.load import load_bytes
from comesh.queries.answers import MeshStatus, NodeStatus, QueryError
from comesh.queries.requests import FireRoutine, Role, ShowMesh, ShowStatus
from comesh.runtime.client import Client
from comesh.runtime.local_mesh import LocalMesh

BOUND_S = 90.0
LOOK_S = 0.1
MESH = """
name: Keys
settings:
  {f: 1, epoch: 1h, monitoring: 200ms, lease: 500ms, membership_period: 300ms, hop: 1ms, command_timeout: 1s}
x-lamp: &lamp
  readings: {on: bool}
  commands: {set: {argument: bool, sets: on}}
nodes:
  n1: {place: [0m, 0m], power_domain: a}
  n2: {place: [1m, 0m], power_domain: b}
  n3: {place: [2m, 0m], power_domain: c}
  n4: {place: [3m, 0m], power_domain: d}
devices:
  lamp: {place: [0m, 1m], <<: *lamp}
routines:
  light: {do: [{device: lamp, command: set, argument: true}]}
"""


class Keyed(LocalMesh):
    """`self.directory / keys` is the person's; `machines/NODE` is what was copied to a node."""

    operator = ""
    """A token for the HTTP interfaces."""

    @property
    def keys(self) -> Path:
        return self.directory / "keys"

    def machine(self, node: str) -> Path:
        return self.directory / "machines" / node

    def copy(self, node: str, *files: str, to: str | None = None) -> None:
        """As a person would, with scp: each file in place at once."""
        there = self.machine(to or node)
        there.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in files or ("authority.crt", f"{node}.crt", f"{node}.key"):
            scratch = there / f".{file}"
            shutil.copy2(self.keys / file, scratch)
            scratch.replace(there / file)

    def begin_node(self, node: str, **more: Any) -> None:
        self.start(node, **{"keys": self.machine(node), **more})

    def status(self, node: str) -> NodeStatus | None:
        with suppress(QueryError), Client(self.data_of(node), within_s=10.0) as client:
            return client.ask(ShowStatus())
        return None

    def mesh_status(self, node: str) -> MeshStatus:
        with Client(self.data_of(node), within_s=20.0) as client:
            return client.ask(ShowMesh())

    def said(self, node: str) -> str:
        return self._log(node).read_text(errors="replace")

    def fires(self, node: str) -> None:
        """The mesh serves: a routine can be fired."""

        def fired() -> bool:
            with suppress(QueryError), Client(self.data_of(node), within_s=40.0) as client:
                return bool(client.ask(FireRoutine(routine=RoutineId("light"))).run)
            return False

        wait_for(fired, f"{node} has a routine fired")

    def sees(self, node: str, *living: str) -> bool:
        status = self.status(node)
        return status is not None and set(status.living) == set(living)

    def command(self, *arguments: str) -> str:
        """`comesh keys ...` of the person who has the authority."""
        ended = comesh("keys", *arguments, "--keys", self.keys)
        assert ended.code == 0, ended.stderr
        return ended.stdout


@contextmanager
def keyed_mesh(directory: Path, *first: str) -> Iterator[Keyed]:
    outcome = load_bytes(MESH.encode(), "mesh.yaml")
    assert outcome.deployment is not None, outcome.errors
    mesh = Keyed(directory, outcome.deployment, MESH, api=True)
    mesh.prepare()
    try:
        mesh.operator = create(mesh.keys, "does", Role.OPERATOR, 1000.0 * time.time())
        mesh._started |= set(mesh.nodes) - set(first)  # the others join later: there is nothing to begin
        mesh.start_devices()
        for node in first:
            mesh.copy(node)
            mesh.copy(node, "tokens.json")
            mesh.begin_node(node)
        wait_for(lambda: all(_is_ready(mesh, node) for node in first), "all nodes are ready")
        yield mesh
    finally:
        mesh.close()


def _is_ready(mesh: Keyed, node: str) -> bool:
    status = mesh.status(node)
    return status is not None and status.ready


def wait_for(condition: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < ends, f"not within {BOUND_S:.0f} s: {what}"
        time.sleep(LOOK_S)
