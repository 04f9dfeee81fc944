"""Where the interface opens, and where it does not: a node without it is as small as before, and goes on."""

import asyncio
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from one_node import ALONE, BOUND_S, one_node, until
from real_mesh import wait_for

from comesh.api import opening
from comesh.api.opening import is_loopback
from comesh.runtime.credentials import Authority


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("n1.example", False),
    ],
)
def test_what_is_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) == here


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"api": ("0.0.0.0", 0)}, "can be reached from other machines, and that needs TLS"),
        ({"api_cert": "own.crt"}, "--api-cert and --api-key belong together; give both files"),
        ({"api_key": "own.key"}, "--api-cert and --api-key belong together; give both files"),
        ({"api_cert": "own", "api_key": "x"}, "--api-cert own brings its key; leave --api-key out"),
        ({"api_cert": "no.crt", "api_key": "no.key"}, "no.crt and no.key cannot be used"),
        ({"api": ("192.0.2.1", 80), "api_cert": "own"}, "cannot listen on 192.0.2.1:80"),
    ],
)
def test_why_it_does_not_open_is_told_and_the_node_goes_on(
    tmp_path: Path, more: dict[str, object], says: str
) -> None:
    async def scene() -> None:
        async with one_node(tmp_path, **more) as node:
            await until(lambda: says in node.said())
            assert node.said().count("no HTTP interface") == 1
            assert node.assembly.view.ready
            assert node.port == 0

    asyncio.run(scene())


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            async with one_node(tmp_path, api=("127.0.0.1", port)) as node:
                await until(lambda: f"cannot listen on 127.0.0.1:{port}" in node.said())

    asyncio.run(scene())


@pytest.mark.parametrize("own", [True, False])
def test_with_tls_a_client_knows_whom_it_asks(tmp_path: Path, own: bool) -> None:
    """By the authority of the deployment, and the name of the node as that of its host."""
    files = {"api_key": str(tmp_path / "keys" / "n1.key"), "api_cert": str(tmp_path / "keys" / "n1.crt")}

    async def scene() -> None:
        async with one_node(tmp_path, api=("0.0.0.0", 0), **({"api_cert": "own"} if own else files)) as node:
            trusted = ssl.create_default_context(cafile=str(tmp_path / "keys" / "authority.crt"))
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", node.port, ssl=trusted, server_hostname="n1"
            )
            writer.write(node.request("GET", "/api/v1/devices/lamp"))
            assert (await asyncio.wait_for(reader.read(), BOUND_S)).startswith(b"HTTP/1.1 200 ")
            writer.close()
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.open_connection("127.0.0.1", node.port, ssl=trusted, server_hostname="n2")
            assert not (await node.say(node.request("GET", "/health"))).startswith(b"HTTP/1.1 200")

    asyncio.run(scene())


def test_where_it_is_not_installed_the_log_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "NEEDED", ("starlette", "no_such_package"))
    said: list[str] = []

    class Told:
        log = type("Log", (), {"warn": staticmethod(said.append)})

    assert opening.api_of(Told()) is None
    assert len(said) == 1
    assert "pip install 'comesh[web]'" in said[0]


def test_a_node_without_it_loads_nothing_of_it() -> None:
    code = (
        "import sys; from comesh.runtime.process import leave_out; leave_out()\n"
        "import comesh.runtime.running\n"
        "print({'comesh.api', 'starlette', 'uvicorn', 'h11', 'anyio'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=BOUND_S, check=True
    )
    assert ended.stdout.strip() == "set()"


@pytest.mark.parametrize("tls", [True, False])
def test_a_process_of_its_own_opens_it(tmp_path: Path, tls: bool) -> None:
    """As `comesh node` starts it: with TLS it needs what other nodes leave out."""
    Authority.create(tmp_path / "keys").issue("n1").write(tmp_path / "keys", "n1")
    (tmp_path / "alone.yaml").write_text(ALONE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    at = ["--api", f"127.0.0.1:{port}", *(["--api-cert", "own"] if tls else [])]
    places = ["--data", "data", "--keys", "keys", "--listen", "127.0.0.1:0", "--init", "--end-with-stdin"]
    command = [sys.executable, "-m", "comesh", "node", "alone.yaml", "--name", "n1", *places, *at]
    with (tmp_path / "log").open("wb") as out:
        node = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=out, stderr=out)
    try:
        trusted = ssl.create_default_context(cafile=str(tmp_path / "keys" / "authority.crt"))

        def ready() -> bool:
            assert node.poll() is None, (tmp_path / "log").read_text()
            try:
                plain = socket.create_connection(("127.0.0.1", port), BOUND_S)
                with trusted.wrap_socket(plain, server_hostname="n1") if tls else plain as asked:
                    asked.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                    return asked.recv(65_536).startswith(b"HTTP/1.1 200 ")
            except ConnectionRefusedError:
                return False

        wait_for(ready, "it answers")
        scheme = "https" if tls else "http"
        assert f"HTTP interface at {scheme}://127.0.0.1:{port}\n" in (tmp_path / "log").read_text()
    finally:
        assert node.stdin is not None
        node.stdin.close()
        assert node.wait(BOUND_S) == 0
