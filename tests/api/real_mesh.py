"""What the tests of the HTTP interface share: a mesh of real nodes, tokens, conditions to wait for."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from comesh.api.tokens import create
from comesh.cli.up import begin, wait_until_ready
from comesh.deployment.load import load_bytes
from comesh.queries.requests import Role
from comesh.runtime.local_mesh import LocalMesh

BOUND_S = 60.0
LOOK_S = 0.05
DEVICES = ("d1", "d2", "d3", "d4")
MESH = """
name: Asked
settings:
  {f: 1, epoch: 1h, monitoring: 200ms, lease: 500ms, membership_period: 300ms, hop: 1ms, command_timeout: 1s,
   selection: {cluster_size: 1}}
x-lamp: &lamp
  readings: {on: bool}
  commands: {set: {argument: bool, sets: on}}
nodes:
  n1: {name: The first, place: [0m, 0m], power_domain: a}
  n2: {place: [40m, 0m], power_domain: b}
  n3: {place: [80m, 0m], power_domain: c}
devices:
  d1: {name: Lamp by the first, place: [0m, 1m], <<: *lamp}
  d2: {place: [40m, 1m], <<: *lamp}
  d3: {place: [80m, 1m], <<: *lamp}
  d4: {place: [80m, 3m], <<: *lamp}
routines:
  light:
    name: Light
    do: [{device: d1, command: set, argument: true}, {device: d3, command: set, argument: true}]
  dark: {do: [{device: d2, command: set, argument: false}]}
"""


class Asked:
    """A mesh whose nodes are asked over HTTP."""

    def __init__(self, mesh: LocalMesh, viewer: str, operator: str) -> None:
        self.mesh = mesh
        self.viewer = viewer
        self.operator = operator
        self._clients: dict[tuple[str, str], httpx.Client] = {}
        """By node and token: a node takes only so many connections."""

    def client(self, node: str = "n1", token: str | None = None) -> httpx.Client:
        """As an operator, unless told otherwise; without any token: an empty one."""
        shown = self.operator if token is None else token
        known = self._clients.get((node, shown))
        if known is None:
            headers = {"authorization": f"Bearer {shown}"} if shown else {}
            known = httpx.Client(base_url=self.url(node), headers=headers, timeout=BOUND_S)
            self._clients[node, shown] = known
        return known

    def url(self, node: str = "n1") -> str:
        host, port = next(at for name, at in self.mesh.api_at.items() if name == node)
        return f"http://{host}:{port}"

    def close(self) -> None:
        for one in self._clients.values():
            one.close()


@contextmanager
def asked_mesh(directory: Path) -> Iterator[Asked]:
    outcome = load_bytes(MESH.encode(), "mesh.yaml")
    assert outcome.deployment is not None, outcome.errors
    mesh = LocalMesh(directory, outcome.deployment, MESH, api=True)
    try:
        mesh.prepare()
        keys, now_ms = directory / "keys", 1000.0 * time.time()
        asked = Asked(
            mesh,
            create(keys, "looks", Role.VIEWER, now_ms),
            create(keys, "does", Role.OPERATOR, now_ms),
        )
        begin(mesh)
        wait_until_ready(mesh)
        try:
            yield asked
        finally:
            asked.close()
    finally:
        mesh.close()


def wait_for(condition: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < ends, f"not within {BOUND_S:.0f} s: {what}"
        time.sleep(LOOK_S)
