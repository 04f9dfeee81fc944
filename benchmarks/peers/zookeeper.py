"""ZooKeeper: three servers on loopback, and the Lock recipe of kazoo against their leader.

The servers are those of Debian's package with its defaults, but logs below warnings and the web page for
administrators switched off. A pair is acquire() and release() of one Lock object, which keeps what it can:
create an ephemeral node, look at its siblings, delete it.
"""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from peers.clients import run_client
from peers.results import Effort, Result, result
from peers.stage import LOOPBACK, free_ports, install, python_with, running, scratch, wait_until

PACKAGE: Final = "zookeeper"
JAR: Final = "/usr/share/java/zookeeper.jar"
SERVERS: Final = 3
READY_S: Final = 60.0
ANSWER_S: Final = 1.0
"""Within which a server that is up says what it is."""

_LOGS: Final = """\
log4j.rootLogger=WARN, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d %p %c: %m%n
"""


class Server(msgspec.Struct, frozen=True):
    port: int
    """Of its clients, on loopback."""
    log: Path


@contextlib.contextmanager
def zookeeper_ensemble() -> Iterator[Server]:
    """Three servers that are ready; yields their leader."""
    install(PACKAGE, JAR, "java")
    with scratch() as directory, contextlib.ExitStack() as processes:
        (directory / "log4j.properties").write_text(_LOGS)
        ports = free_ports(3 * SERVERS)
        others = [
            f"server.{number + 1}={LOOPBACK}:{ports[3 * number]}:{ports[3 * number + 1]}"
            for number in range(SERVERS)
        ]
        servers = []
        for number in range(SERVERS):
            server = Server(ports[3 * number + 2], directory / f"s{number}.log")
            settings = _write_settings(directory, number, server.port, others)
            command = [
                "java",
                "-cp",
                f"{directory}:{JAR}",
                f"-Dlog4j.configuration=file:{directory}/log4j.properties",
            ]
            command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings)]
            processes.enter_context(running(command, server.log))
            servers.append(server)
        yield _ready_leader(servers)


def _write_settings(directory: Path, number: int, port: int, others: Sequence[str]) -> Path:
    data = directory / f"s{number}"
    data.mkdir()
    (data / "myid").write_text(str(number + 1))
    settings = directory / f"s{number}.cfg"
    lines = [
        "tickTime=2000",
        "initLimit=10",
        "syncLimit=5",
        f"dataDir={data}",
        f"clientPortAddress={LOOPBACK}",
        f"clientPort={port}",
        "admin.enableServer=false",
        "4lw.commands.whitelist=srvr",
        *others,
    ]
    settings.write_text("\n".join(lines) + "\n")
    return settings


def _ready_leader(servers: Sequence[Server]) -> Server:
    leaders: list[Server] = []

    def ready() -> bool:
        modes = {server.port: _mode(server) for server in servers}
        leaders[:] = [server for server in servers if modes[server.port] == "leader"]
        return len(leaders) == 1 and sorted(modes.values()) == ["follower", "follower", "leader"]

    wait_until(ready, READY_S, "ZooKeeper", servers[0].log)
    return leaders[0]


def _mode(server: Server) -> str:
    """leader or follower, or nothing while it is neither."""
    try:
        with socket.create_connection((LOOPBACK, server.port), ANSWER_S) as connection:
            connection.sendall(b"srvr")
            answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    except OSError:
        return ""
    modes = [line.removeprefix("Mode: ") for line in answer.splitlines() if line.startswith("Mode: ")]
    return modes[0] if modes else ""


def measure(effort: Effort) -> Iterator[Result]:
    with scratch() as directory:
        python = python_with(directory, "kazoo")
        with zookeeper_ensemble() as leader:
            asked = [f"{LOOPBACK}:{leader.port}", effort.warm_up, effort.count]
            yield result(
                "ZooKeeper, kazoo: acquire + release", "ms", *run_client(python, "zookeeper_client", asked)
            )
