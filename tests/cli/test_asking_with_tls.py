"""A node with TLS is asked over HTTP, by address and by its name in a document; who is another is told."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from real_processes import Running, comesh, free_ports, wait_for

from comesh.api.tokens import create
from comesh.queries.requests import Role
from comesh.runtime.credentials import Authority
from comesh.runtime.keyring import revoke

ALONE = """
settings: {f: 0, lease: 500ms, membership_period: 300ms}
nodes: {n1: {place: [0m, 0m], address: "127.0.0.1:%d"}}
devices: {lamp: {place: [0m, 1m], readings: {on: bool}}}
"""
OTHERS = """
nodes:
  n1: {place: [0m, 0m], address: "127.0.0.1:7440"}
  n2: {place: [1m, 0m], address: "localhost:7440"}
  n3: {place: [2m, 0m]}
"""


class Alone:
    def __init__(self, place: Path, port: int) -> None:
        self.place = place
        self.port = port


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    place = tmp_path_factory.mktemp("tls")
    Authority.create(place / "keys").issue("n1").write(place / "keys", "n1")
    Authority.create(place / "strange")
    copytree(place / "keys", place / "desk")
    revoke(place / "desk", ["n1"], [])
    (place / "token").write_text(create(place / "keys", "looks", Role.VIEWER, 1000.0 * time.time()))
    (place / "alone.yaml").write_text(ALONE % free_ports(1)[0])
    (place / "others.yaml").write_text(OTHERS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Running(
        place / "output",
        *("node", place / "alone.yaml", "--name", "n1", "--data", place / "data", "--keys", place / "keys"),
        *("--init", "--api", f"127.0.0.1:{port}", "--api-cert", "own"),
    ) as running:
        running.wait_until_it_says("ready")
        made = Alone(place, port)
        wait_for(lambda: ask(made, f"https://127.0.0.1:{port}")[0] == 0, "it answers over HTTP")
        yield made


def ask(alone: Alone, node: str, keys: str = "keys") -> tuple[int, str]:
    ended = comesh(
        "devices",
        *("--node", node, "--file", alone.place / "others.yaml"),
        *("--keys", alone.place / keys, "--token-file", alone.place / "token"),
    )
    return ended.code, ended.stdout + ended.stderr


def test_it_is_asked_by_its_address_and_by_its_name(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comesh.cli.asking.API_PORT", alone.port)
    for node in (
        f"https://127.0.0.1:{alone.port}",
        f"https://localhost:{alone.port}/",
        "https://127.0.0.1",
        "n1",
    ):
        code, said = ask(alone, node)
        assert (code, "1 device; as of " in said) == (0, True), said


@pytest.mark.parametrize(
    ("node", "keys", "says"),
    [
        ("https://127.0.0.1:PORT", "strange", "is not of this deployment: "),
        ("https://127.0.0.1:PORT", "desk", "shows a revoked certificate: it is told nothing"),
        ("https://127.0.0.1:PORT", "none", "none/authority.crt is missing"),
        ("http://127.0.0.1:PORT", "keys", "broke the connection off"),
        ("n2", "keys", "is n1, not n2; is the address of n2 right in the document?"),
        ("n3", "keys", "others.yaml has no address of n3; add address: to it"),
        ("n4", "keys", "no node 'n4' runs here, and "),
    ],
)
def test_who_is_another_one_is_reported(
    alone: Alone, monkeypatch: pytest.MonkeyPatch, node: str, keys: str, says: str
) -> None:
    monkeypatch.setattr("comesh.cli.asking.API_PORT", alone.port)
    code, said = ask(alone, node.replace("PORT", str(alone.port)), keys)
    assert (code, says in said) == (2, True), said


def test_a_port_without_tls_is_reported(alone: Alone) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{deaf.getsockname()[1]}"
        code, said = ask(alone, f"https://{at}")
    assert (code, f"nothing listens at https://{at}" in said) == (2, True), said


def test_where_nobody_answers_the_doctor_looks_at_the_ports(
    alone: Alone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    found = comesh("doctor", "--file", alone.place / "alone.yaml")
    assert found.code == 1
    assert "no mesh runs below this directory" in found.stderr
    assert "port: n1: UDP port" in found.stdout
    assert "is taken, and no node that you may ask is there" in found.stdout
    free = tmp_path / "free.yaml"
    free.write_text(ALONE % free_ports(1)[0])
    assert "start it: comesh node" in comesh("doctor", "--file", free).stdout
    assert "start it: comesh node free.yaml --name n1" in comesh("doctor").stdout
