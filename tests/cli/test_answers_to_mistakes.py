"""What commands answer to mistakes: the place, what is wrong, and what to do."""

import asyncio
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.cli.node_requests import NoNodeError, post
from comesh.cli.sim_summary import _when
from comesh.cli.terminal import confirm
from comesh.core.ids import DeviceId
from comesh.deployment.load import load
from comesh.deployment.program import step_by_hand
from comesh.runtime.bundle import read_bundle
from comesh.runtime.credentials import Authority, Credentials, CredentialsError
from comesh.runtime.transport import TransportError, addresses
from comesh.sim.group_watch import Span

EXAMPLE = Path(__file__).parents[2] / "src" / "comesh" / "deployment" / "starter.yaml"


def answer(*arguments: str | Path) -> str:
    return CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "200"}).output


@pytest.mark.parametrize(
    ("device", "command", "argument", "expected"),
    [
        ("hall_lamp", "switch", None, "hall_lamp switch needs an argument: true or false"),
        ("hall_lamp", "swich", None, "hall_lamp has no command swich; did you mean 'switch'?"),
        (
            "office_climate",
            "heat",
            None,
            "office_climate has no command heat; it is a sensor",
        ),
        ("hall_lamp", "switch", 3, "hall_lamp switch takes true or false, not 3"),
    ],
)
def test_a_command_by_hand_that_cannot_be(
    device: str, command: str, argument: int | None, expected: str
) -> None:
    deployment = load(EXAMPLE).deployment
    assert deployment is not None
    with pytest.raises(ValueError, match="^" + expected.replace("?", r"\?") + "$"):
        step_by_hand(deployment, DeviceId(device), command, argument)


def test_a_document_in_the_place_of_a_bundle(tmp_path: Path) -> None:
    floor = tmp_path / "floor.yaml"
    floor.write_text("name: x\n")
    floor.chmod(0o644)
    with pytest.raises(CredentialsError, match="is not a bundle; make one with: comesh keys bundle NODE"):
        read_bundle(floor)


def test_a_spoiled_key_says_how_to_replace_it(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path, "house", 30)
    authority.issue("n1", 30).write(tmp_path, "n1")
    key = tmp_path / "n1.key"
    key.write_bytes(b"garbage")
    with pytest.raises(CredentialsError, match="make it again with: comesh keys node n1 --force"):
        Credentials.load(tmp_path, "n1")
    key.unlink()
    with pytest.raises(CredentialsError, match=r"make it with: comesh keys node n1$"):
        Credentials.load(tmp_path, "n1")
    (tmp_path / "authority.key").write_bytes(b"garbage")
    with pytest.raises(CredentialsError, match="restore it from a copy"):
        Authority.load(tmp_path)


def test_a_port_that_needs_special_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(addresses, "_open_socket", refuse)
    with pytest.raises(TransportError, match="ports below 1024 need special rights: choose a higher one"):
        asyncio.run(addresses.open_sockets([("127.0.0.1", 80)]))
    with pytest.raises(TransportError, match="is the port taken"):
        asyncio.run(addresses.open_sockets([("127.0.0.1", 7440)]))


@contextmanager
def plain_http() -> Iterator[int]:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server.server_port
        server.shutdown()
        serving.join()


def test_https_to_a_port_without_tls() -> None:
    with plain_http() as port, pytest.raises(NoNodeError) as wrong:
        post(f"https://127.0.0.1:{port}", "/", {}, trusted=None)
    assert str(wrong.value).endswith("does not speak TLS; is the port right? Without TLS write http://")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("sim", "--follow", "nope", "--topology", "grid"), "--follow nope: there is no such routine\n"),
        (("lab", "nope"), "no scenario nope; --list shows all\n"),
        (("plan", "FLOOR", "--without", "hall-pi"), "did you mean 'hall_pi'?\n"),
    ],
)
def test_a_wrong_name_has_an_answer_that_ends(
    arguments: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    floor = tmp_path / "floor.yaml"
    floor.write_text(EXAMPLE.read_text())
    assert answer(*(floor if one == "FLOOR" else one for one in arguments)).endswith(expected)


def test_a_node_that_does_not_run_here_but_has_a_like_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deployment.yaml").write_text(EXAMPLE.read_text())
    assert "did you mean 'hall_pi'?" in answer("nodes", "--node", "hall-pi")


def test_confirmation_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        confirm("go on?", yes=False)
    assert "standard input is not a terminal: give --yes" in capsys.readouterr().err


def test_what_is_left_out_is_counted_as_people_count() -> None:
    spans = [Span(from_s=float(number), to_s=number + 0.5) for number in range(12)]
    shown = next(count for count in range(1, 12) if "more" in _when(spans[:count]))
    assert _when(spans[:shown]).endswith("and once more")
    assert _when(spans[: shown + 1]).endswith("and 2 times more")
