"""`comesh node` and `comesh service` as a person uses them: what is wrong is told."""

import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest
from real_processes import SMALL, Running, comesh, comesh_process, free_ports, wait_for

from comesh.runtime.addresses import listen_at
from comesh.runtime.credentials import Authority
from comesh.runtime.journal import Journal
from comesh.runtime.journal.first_start import mark_of
from comesh.runtime.running import run

ALONE = """
settings: {f: 0, lease: 500ms, membership_period: 300ms}
nodes:
  n1: {place: [0m, 0m], address: "127.0.0.1:%d"}
  n2: {place: [1m, 0m], address: "localhost:%d"}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """With keys of n1 and n2, and a document with addresses."""
    authority = Authority.create(tmp_path / "keys")
    for name in ("n1", "n2"):
        authority.issue(name).write(tmp_path / "keys", name)
    (tmp_path / "mesh.yaml").write_text(ALONE % tuple(free_ports(2)))
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "file").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["small.yaml", "--name", "n1"],
            "n1, n2, n3 have no address, so nodes cannot find each other. Write it",
        ),
        (
            ["small.yaml", "--name", "n1"],
            'give it to every node with --addresses FILE, a JSON file such as\\n  {"n1"',
        ),
        (["mesh.yaml", "--name", "m1"], "mesh.yaml: there is no node 'm1'; known: n1, n2"),
        (["mesh.yaml", "--name", "n1", "--data", "file"], "file cannot be the data directory (File exists)"),
        (
            ["mesh.yaml", "--name", "n1", "--keys", "none"],
            "none/authority.crt is missing; copy it from where",
        ),
        (["none.yaml", "--name", "n1"], "none.yaml cannot be read (No such file or directory)"),
        (["keys/n1.key", "--name", "n1"], "keys/n1.key:1:"),
    ],
)
def test_what_keeps_a_node_from_starting_is_reported(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    """In this process, which takes a second less each."""
    monkeypatch.chdir(place)
    monkeypatch.setattr("os.execv", lambda _, command: sys.exit(run(command[-1])))
    ended = comesh("node", *arguments)
    assert ended.code == 2
    assert says in ended.stderr.replace("\n", "\\n")


def test_what_the_system_refuses_is_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    for arguments, says in (
        (("--record", "none/here"), "comesh: n1: none/here: No such file or directory\n"),
        (("--listen", "192.0.2.1:7440"), "comesh: n1: cannot listen on 192.0.2.1 port 7440"),
    ):
        ended = comesh_process("node", "mesh.yaml", "--name", "n1", *arguments)
        assert (ended.code, says in ended.stderr, "Traceback" in ended.stderr) == (2, True, False)


@pytest.mark.parametrize("book", ["nonsense", '{"n1": 7440}', '{"n1": "somewhere"}'])
def test_a_wrong_address_file_is_reported(place: Path, book: str) -> None:
    (place / "book.json").write_text(book)
    document = place / "small.yaml"
    ended = comesh("node", document, "--name", "n1", "--addresses", place / "book.json")
    assert ended.code == 2
    assert 'it should be like {"n1": "10.0.0.1:7440"' in ended.stderr


def test_nodes_by_hand_find_each_other_and_other_documents_are_noticed(place: Path) -> None:
    (place / "other.yaml").write_text((place / "mesh.yaml").read_text().replace("1m, 0m", "5m, 0m"))
    keys = ("--keys", place / "keys")
    one, two = place / "data-1", place / "data-2"
    with (
        Running(
            place / "1", "node", place / "mesh.yaml", "--name", "n1", "--data", one, *keys, "--init"
        ) as first,
        Running(
            place / "2", "node", place / "other.yaml", "--name", "n2", "--data", two, *keys, "--init"
        ) as second,
    ):
        first.wait_until_it_says("n1 of mesh.yaml, data in ")
        first.wait_until_it_says(": listens on UDP 0.0.0.0:")
        first.wait_until_it_says("; waits for n2, as far as its groups need them")
        wait_for(lambda: "n2 began with another document than n1" in first.said(), "n1 has noticed")
        wait_for(lambda: "n1 began with another document than n2" in second.said(), "n2 has noticed")
        shown = comesh("status", "--data", one)
        assert shown.code == 1
        assert "needs attention: n2 began with another document than n1" in shown.stdout
        taken = comesh_process("node", place / "mesh.yaml", "--name", "n1", "--data", one, *keys)
        assert taken.code == 2
        assert f"process {first.process.pid} uses this directory" in taken.stderr
        taken = comesh_process("node", place / "mesh.yaml", "--name", "n1", "--data", place / "data-3", *keys)
        assert taken.code == 2
        assert "Address already in use; is the port taken" in taken.stderr
        assert first.end(signal.SIGTERM) == 0
        assert "left the mesh, as asked" in first.said()
        assert second.end(signal.SIGINT) == 0


def test_keys_of_another_authority_are_reported_on_both_sides(place: Path) -> None:
    Authority.create(place / "strange").issue("n2").write(place / "strange", "n2")
    begin = ("node", place / "mesh.yaml", "--init", "--name")
    one, two = place / "data-1", place / "data-2"
    with (
        Running(place / "1", *begin, "n1", "--data", one, "--keys", place / "keys"),
        Running(place / "2", *begin, "n2", "--data", two, "--keys", place / "strange"),
    ):
        for data, other in ((one, "n2"), (two, "n1")):
            wait_for(
                lambda data=data: "certificate was refused" in comesh("status", "--data", data).stdout,
                "what is wrong is told",
            )
            assert f"needs attention: {other}: " in comesh("status", "--data", data).stdout


def test_a_false_first_start_is_reported(place: Path) -> None:
    data, keys = place / "data", place / "keys"
    begin = ("node", place / "mesh.yaml", "--name", "n1", "--data", data, "--keys", keys)
    with Running(place / "output", *begin) as replaced:
        replaced.wait_until_it_says("stop it, remove this directory, and start every node with --init, once")
    with Running(place / "output", *begin, "--init") as late:
        late.wait_until_it_says("--init does nothing here")


@pytest.mark.parametrize("marked", [True, False], ids=["as it is", "without the mark"])
def test_a_node_that_was_wiped_does_not_begin_the_deployment_again(place: Path, marked: bool) -> None:
    """Not even with --init. Without the mark it would: that is what the mark is for."""
    data, keys = place / "data", place / "keys"
    begin = ("node", place / "mesh.yaml", "--name", "n1", "--data", data, "--keys", keys, "--init")
    for again in (False, True):
        with Running(place / f"output-{again}", *begin) as node:
            node.wait_until_it_says("waits for n2")
            node.end(signal.SIGTERM)
        initialised = Journal.open(data)
        initialised.close()
        assert initialised.initialised is not (again and marked)
        assert ("--init does nothing here" in node.said()) is (again and marked)
        shutil.rmtree(data)
        if not marked:
            mark_of(keys, "n1").unlink()


def test_all_families_that_are_needed_are_listened_on() -> None:
    both = listen_at("n1", {"n1": (("10.0.0.1", 7440),), "n2": (("fd00::2", 7441),)})
    assert both[0] == ("0.0.0.0", 7440)
    assert both[1:] == ((("::", 7440),) if _has_ipv6() else ())
    assert listen_at("n1", {"n1": (("10.0.0.1", 7440),), "n2": (("10.0.0.2", 7441),)}) == (("0.0.0.0", 7440),)


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
            one.bind(("::", 0))
    except OSError:
        return False
    return True


def test_a_service_has_what_its_node_needs(place: Path) -> None:
    printed = comesh("service", place / "mesh.yaml", "--name", "n1", "--data", "/var/lib/my mesh")
    assert printed.code == 0
    unit = printed.stdout
    assert f"node {place / 'mesh.yaml'} --name n1 --data '/var/lib/my mesh' --keys /etc/comesh/keys\n" in unit
    assert "Type=notify" in unit
    assert "TimeoutStartSec=infinity" in unit
    assert "--init" not in unit[unit.index("[Unit]") :]
    if place.is_relative_to("/tmp"):
        assert f"warning: {place / 'mesh.yaml'} is below a directory for temporary files" in printed.stderr
    assert "/var/lib/my mesh is below" not in printed.stderr
    assert "address" not in printed.stderr
    lacking = comesh("service", place / "small.yaml", "--name", "n1", "--data", "/tmp/data")
    assert "warning: /tmp/data is below" in lacking.stderr
    assert "n1, n2, n3 have no address in the document, so n1 will not start" in lacking.stderr
    unknown = comesh("service", place / "mesh.yaml", "--name", "m1")
    assert (unknown.code, "there is no node 'm1'; known: n1, n2" in unknown.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            "node FILE --name n1 --log loud",
            "Invalid value for '--log': 'loud' is not one of 'people', 'json'.",
        ),
        ("keys token ann --role boss", "Invalid value for '--role': 'boss' is not one of"),
        ("devicse", "No such command 'devicse'; did you mean 'devices'?"),
        ("virtual set", "Missing argument"),
    ],
)
def test_a_command_that_is_called_wrongly_says_so_in_plain_words(
    place: Path, arguments: str, says: str
) -> None:
    ended = comesh(*arguments.replace("FILE", str(place / "mesh.yaml")).split())
    assert (ended.code, says in ended.stderr, "Value error" in ended.stderr) == (2, True, False), ended.stderr


@pytest.mark.parametrize(
    "command", ["status", "nodes", "devices lamp", "runs", "doctor", "fire there", "trace", "watch"]
)
def test_without_a_mesh_it_is_said_how_to_start_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(place)
    ended = comesh(*command.split())
    assert ended.code == 2
    assert "start one with `comesh up FILE`, or say where with --data" in ended.stderr
    assert "none is not a directory" in comesh(*command.split(), "--data", "none").stderr
