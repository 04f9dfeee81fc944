"""What tests of real nodes share: documents, commands as processes, and conditions that are waited for."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from comesh.cli.main import app

BOUND_S = 60.0
LOOK_S = 0.05
SMALL = """
name: Small
settings:
  {f: 1, epoch: 5s, monitoring: 200ms, lease: 500ms, membership_period: 300ms, hop: 1ms, command_timeout: 1s}
x-lamp: &lamp
  readings: {on: bool}
  commands: {set: {argument: bool, sets: on, takes: 400ms}}
nodes:
  n1: {place: [0m, 0m], power_domain: a}
  n2: {place: [1m, 0m], power_domain: b}
  n3: {place: [2m, 0m], power_domain: c}
devices:
  lamp1: {place: [0m, 1m], <<: *lamp}
  lamp2: {place: [1m, 1m], <<: *lamp, driver: {type: mqtt, host: 10.0.0.5, topic: lamp}}
routines:
  there:
    do: [{device: lamp1, command: set, argument: true}, {device: lamp2, command: set, argument: true}]
  back:
    do: [{device: lamp2, command: set, argument: false}, {device: lamp1, command: set, argument: false}]
"""


class Ended(NamedTuple):
    code: int
    stdout: str
    stderr: str


def comesh(*arguments: str | Path) -> Ended:
    """A command that ends by itself, in this process: a new one takes a second only to begin."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)


def comesh_process(*arguments: str | Path) -> Ended:
    ended = subprocess.run(
        [sys.executable, "-m", "comesh", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


TAKES_CTRL_C = ("env", "--default-signal=INT")
"""Without it, tests in the background of a shell start processes that ignore SIGINT."""


class Running:
    """A command that goes on; its output goes to a file, and it is ended with the block."""

    def __init__(self, output: Path, *arguments: str | Path) -> None:
        self.output = output
        with output.open("ab") as out:
            self.process = subprocess.Popen(
                [*TAKES_CTRL_C, sys.executable, "-m", "comesh", *map(str, arguments)],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGINT)

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_until_it_says(self, what: str) -> None:
        wait_for(lambda: what in self.said() or self.process.poll() is not None, f"{what!r} in its output")
        assert what in self.said(), self.said()

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        try:
            return self.process.wait(BOUND_S)
        finally:
            self.process.kill()
            self.process.wait()


def wait_for(condition: Callable[[], object], what: str) -> None:
    ends = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < ends, f"not within {BOUND_S:.0f} s: {what}"
        time.sleep(LOOK_S)


def processes_about(directory: Path) -> list[int]:
    """All processes of this machine that have a directory in their command."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.fsencode(directory) in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue  # it ended while it was looked at
    return found


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
