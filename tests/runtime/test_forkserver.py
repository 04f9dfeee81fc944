"""Nodes that are forked from a process which has loaded everything: what their starter knows of them."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from comesh.cli.up import is_ready
from comesh.core.ids import NodeId
from comesh.deployment.load import load_bytes
from comesh.runtime.forkserver import ForkServer, ForkServerError
from comesh.runtime.local_mesh import LocalMesh
from comesh.runtime.options import NodeOptions

LONG_S = 60.0
ONE = b"""\
name: one
settings: {f: 0}
nodes:
  n1: {place: [0m, 0m]}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}}
"""


@pytest.fixture
def fork_server(tmp_path: Path) -> Iterator[ForkServer]:
    one = ForkServer(tmp_path)
    yield one
    one.close()


def _options(directory: Path) -> NodeOptions:
    """Of a node that cannot run: it has no document."""
    return NodeOptions(
        name=NodeId("n1"), document=directory / "none.yaml", data=directory / "n1", keys=directory
    )


def test_how_a_node_ended_is_known_and_what_it_said_is_in_its_file(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        nodes = [fork_server.start(_options(tmp_path / str(number)), out) for number in range(3)]
    assert [node.wait(LONG_S) for node in nodes] == [2, 2, 2]
    assert [node.poll() for node in nodes] == [2, 2, 2]
    assert log.read_text().count("none.yaml cannot be read") == 3
    for node in nodes:
        assert node.stdin is not None
        node.stdin.close()


def test_a_mesh_can_kill_one_of_its_nodes(tmp_path: Path) -> None:
    deployment = load_bytes(ONE).deployment
    assert deployment is not None
    mesh = LocalMesh(tmp_path, deployment, ONE.decode())
    mesh.prepare()
    try:
        mesh.start("n1")
        pid = mesh.pid("n1")
        assert mesh.runs("n1")
        comm = Path(f"/proc/{pid}/comm")
        ends = time.monotonic() + LONG_S
        while comm.read_text().strip() != "n1":
            assert time.monotonic() < ends, "it is not called as its node"
            time.sleep(0.02)
        mesh.signal("n1", signal.SIGKILL)
        forked = mesh._processes["n1"]
        assert forked.wait(LONG_S) == -signal.SIGKILL
        assert not mesh.runs("n1")
    finally:
        mesh.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_node_has_loaded_no_numpy(tmp_path: Path) -> None:
    """Which takes 11 MiB: the plan of a node's deployment needs Python's own integers only."""
    deployment = load_bytes(ONE).deployment
    assert deployment is not None
    mesh = LocalMesh(tmp_path, deployment, ONE.decode())
    mesh.prepare()
    try:
        mesh.start("n1")
        ends = time.monotonic() + LONG_S
        while not is_ready(mesh, "n1"):
            assert time.monotonic() < ends, mesh.last_words("n1", 1)
            time.sleep(0.05)
        loaded = Path(f"/proc/{mesh.pid('n1')}/maps").read_text()
        assert "pydantic_core" in loaded
        assert "numpy" not in loaded
    finally:
        mesh.close()


def test_a_nursery_that_died_says_so(fork_server: ForkServer, tmp_path: Path) -> None:
    os.kill(fork_server._process.pid, signal.SIGKILL)
    fork_server._process.wait()
    with (tmp_path / "log").open("wb") as out, pytest.raises(ForkServerError, match="ended"):
        fork_server.start(_options(tmp_path), out)


def test_a_starter_that_goes_without_reading_all_ends_it_quietly(
    fork_server: ForkServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "log").open("wb") as out:
        node = fork_server.start(_options(tmp_path), out)
    ends = time.monotonic() + LONG_S
    while Path(f"/proc/{node.pid}").exists():  # how it ended is told then, and nobody reads it
        assert time.monotonic() < ends, "it did not end"
        time.sleep(0.02)
    fork_server.close()
    assert fork_server._process.returncode == 0
    assert capfd.readouterr().err == ""
    assert node.stdin is not None
    node.stdin.close()
