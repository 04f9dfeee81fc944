"""What every peer needs: its program, a directory in memory, free ports, and processes that surely end.

Rules: nothing outlives its context manager. Processes are ended by their own pid, and where `setpriv` is
there the kernel ends them if we die first. Nothing is installed into the environment that runs the benchmark:
Python clients get an environment of their own, which goes away with its directory.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

LOOPBACK: Final = "127.0.0.1"
INSTALL_S: Final = 300.0
"""The longest that an installation may take."""
END_S: Final = 5.0
"""How long a process has to end by itself before it is killed."""
LOOK_AGAIN_S: Final = 0.05
"""Between two looks at whether a peer is ready."""
LOG_LINES: Final = 5
"""Of the log of a process that failed, shown."""


class MissingError(Exception):
    """A peer cannot be measured here; str() says why and what to do."""


def install(package: str, *needed: str) -> None:
    """See that these files or programs, which a Debian package brings, are there."""

    def lacking() -> list[str]:
        return [one for one in needed if shutil.which(one) is None and not Path(one).exists()]

    if not lacking():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MissingError(f"{lacking()[0]} is missing; as root on Debian: apt-get install {package}")
    command = ["apt-get", "install", "-y", "--no-install-recommends", package]
    _run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if lacking():
        raise MissingError(f"the package {package} brought no {lacking()[0]}; is this another release?")


def python_with(directory: Path, *packages: str) -> Path:
    """The Python of a new environment in this directory that has these packages."""
    place = directory / "python"
    python = place / "bin" / "python"
    _run([sys.executable, "-m", "venv", str(place)])
    _run([str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *packages])
    return python


def _run(command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"could not be installed: {error}") from error
    if done.returncode != 0:
        told = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise MissingError(f"could not be installed: {' '.join(command)}: {''.join(told)}")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory in memory where that is possible, gone afterwards."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="comesh-peer-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that were free just now, for TCP and for UDP."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            stream = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            stream.bind((LOOPBACK, 0))
            port = stream.getsockname()[1]
            datagrams = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            with contextlib.suppress(OSError):
                datagrams.bind((LOOPBACK, port))
                ports.append(port)
        return ports


@contextlib.contextmanager
def running(
    command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None, piped: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended afterwards. What it says goes to the log, or (piped) to us."""
    tied = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    with contextlib.ExitStack() as files:
        output: IO[bytes] | int = subprocess.PIPE if piped else files.enter_context(log.open("wb"))
        process = subprocess.Popen(
            [*tied, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env
        )
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def wait_until(ready: Callable[[], bool], within_s: float, what: str, log: Path | None = None) -> None:
    """Look again and again; MissingError if it does not come."""
    end_s = time.monotonic() + within_s
    while not ready():
        if time.monotonic() > end_s:
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:] if log else []
            raise MissingError(f"{what} was not ready within {within_s:.0f} s: {' / '.join(lines)}")
        time.sleep(LOOK_AGAIN_S)
