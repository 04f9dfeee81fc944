"""Which node of this machine a command asks where it is not told: of one mesh, and not who is to leave."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from real_processes import comesh

from comesh.cli.asking import connect
from comesh.runtime.client import SOCKET, AnyClient, Client


class Here:
    """A directory in which nodes listen that say nothing."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def listens(self, run: str, node: str) -> Path:
        place = Path(".comesh") / run / "nodes" / node
        place.mkdir(parents=True)
        one = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        one.bind(str(place / SOCKET))
        one.listen()
        return place

    def ended(self, run: str, node: str) -> None:
        """Killed: its socket is still there."""
        place = Path(".comesh") / run / "nodes" / node
        place.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            one.bind(str(place / SOCKET))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        yield Here(stack)


def asked(data: Path | None = None, last: str | None = None) -> Path:
    client: AnyClient = connect(data, None, None, Path("keys"), None, last=last)
    assert isinstance(client, Client)
    with client:
        return client.directory


def test_two_meshes_need_a_choice(here: Here) -> None:
    place = here.listens("hall", "n1")
    here.listens("house", "n1")
    for arguments in (("status",), ("status", "--node", "n1"), ("virtual", "set", "door", "open=true")):
        refused = comesh(*arguments)
        assert refused.code == 2
        assert "2 meshes run here: hall, house. Say which one, such as --data .comesh/h" in refused.stderr
    assert asked(Path(".comesh/hall")) == place


def test_a_mesh_that_runs_no_more_is_none(here: Here) -> None:
    place = here.listens("hall", "n1")
    here.ended("house", "n1")
    assert asked() == place


def test_the_node_that_leaves_is_asked_only_where_it_is_the_only_one(here: Here) -> None:
    first = here.listens("hall", "n1")
    assert asked(last="n1") == first
    second = here.listens("hall", "n2")
    assert (asked(), asked(last="n1"), asked(last="n2")) == (first, second, first)
