"""Many nodes on one machine: a process that has loaded what a node needs, and forks into nodes.

Loading takes most of the time that a node needs to start. Whoever runs a whole deployment on one machine
(`local_mesh.py`) has it done once:

    fork_server = ForkServer(directory)
    node = fork_server.start(options, out)      # like subprocess.Popen: pid, poll(), wait(), kill(), stdin
    fork_server.close()                         # nodes go on until their own end

`python -m comesh.runtime.forkserver FD DIRECTORY` is the process; the directory is there for people who list
processes. A request on the socket FD is the options of a node with two files, its standard input and
output. It answers with the number of the process, and later with how it ended, before that number can be
given to another process.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import IO, Final

import msgspec

from comesh.runtime.options import NodeOptions, as_text, from_text
from comesh.runtime.process import leave_out

MAX_BYTES: Final = 262_144
"""Of one request: options with the addresses of all nodes."""
LOOK_S: Final = 0.05
MAX_NAME: Final = 15
"""Letters of a name that the system keeps of a process."""


class Told(msgspec.Struct, frozen=True, array_like=True):
    """A node began, or (code) ended: as subprocess.Popen has it, below 0 by a signal."""

    pid: int
    code: int | None = None


class ForkServerError(Exception):
    """It ended; str() says so."""


class Forked:
    """The process of a node, for who has no child of that number."""

    def __init__(self, pid: int, stdin: IO[bytes], fork_server: "ForkServer") -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = stdin
        self._fork_server = fork_server

    def poll(self) -> int | None:
        return self._fork_server.code_of(self.pid, 0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._fork_server.code_of(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a node", timeout or 0.0)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class ForkServer:
    def __init__(self, directory: Path) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            fd = theirs.fileno()
            command = [sys.executable, "-OO", "-m", "comesh.runtime.forkserver", str(fd), str(directory)]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=(fd,),
                start_new_session=True,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # threads do not survive a fork
            )
        self._codes: dict[int, int] = {}
        self._lock = threading.Lock()

    def start(self, options: NodeOptions, out: IO[bytes]) -> Forked:
        """Begin a node that writes to this file. ForkServerError: it cannot."""
        read, write = os.pipe()
        stdin = os.fdopen(write, "wb")
        try:
            with self._lock:
                pid = self._begin(options, [read, out.fileno()])
        except BaseException:
            stdin.close()  # a node that began nevertheless ends with it
            raise
        finally:
            os.close(read)
        return Forked(pid, stdin, self)

    def _begin(self, options: NodeOptions, files: list[int]) -> int:
        try:
            socket.send_fds(self._socket, [as_text(options).encode()], files)
        except OSError as wrong:
            raise ForkServerError("the process that nodes are started from ended") from wrong
        while True:
            told = self._next(None)
            if told is None:
                raise ForkServerError("the process that nodes are started from ended")
            if told.code is None:
                self._codes.pop(told.pid, None)  # of a former process with this number
                return told.pid
            self._codes[told.pid] = told.code

    def code_of(self, pid: int, within_s: float | None) -> int | None:
        """How a node ended; None: it did not within that time."""
        ends = None if within_s is None else time.monotonic() + within_s
        with self._lock:
            while pid not in self._codes:
                told = self._next(None if ends is None else max(0.0, ends - time.monotonic()))
                if told is not None and told.code is not None:
                    self._codes[told.pid] = told.code
                elif not self.is_alive:
                    return self._orphan(pid, ends)
                elif ends is not None and time.monotonic() >= ends:
                    return None
            return self._codes[pid]

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def _orphan(self, pid: int, ends: float | None) -> int | None:
        """A node goes on when this process has ended; then nobody knows how it ends, only that it did."""
        while _exists(pid):
            if ends is not None and time.monotonic() >= ends:
                return None
            time.sleep(LOOK_S)
        return -signal.SIGKILL

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def _next(self, within_s: float | None) -> Told | None:
        """What it tells next; None: nothing in time, or it ended."""
        readable, _, _ = select.select([self._socket], [], [], within_s)
        try:
            data = self._socket.recv(MAX_BYTES) if readable else b""
        except ConnectionError:
            data = b""
        if readable and not data:
            self._process.wait()
        return msgspec.json.decode(data, type=Told) if data else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# -- the process itself ------------------------------------------------------------------------------------


def serve(told: socket.socket) -> None:
    """Until whoever started it is gone."""
    leave_out()
    import_module("comesh.runtime.running")
    gc.collect()
    gc.freeze()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable, _, _ = select.select([told.fileno(), woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _tell_ended(told)
        if told.fileno() in readable:
            try:
                text, files, _, _ = socket.recv_fds(told, MAX_BYTES, 2)
            except ConnectionError:  # gone before it read all that was told
                return
            if not text:
                return
            import_module("comesh.runtime.running").load_api(from_text(text.decode()))
            pid = os.fork()
            if pid == 0:
                _become(text.decode(), files, [told.fileno(), woken, wake])
            for file in files:
                os.close(file)
            with contextlib.suppress(OSError):  # gone meanwhile: read next, and the end then
                told.send(msgspec.json.encode(Told(pid)))


def _tell_ended(told: socket.socket) -> None:
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        with contextlib.suppress(OSError):  # nobody wants to know any more
            told.send(msgspec.json.encode(Told(ended.si_pid, code)))
        os.waitpid(ended.si_pid, 0)


def _become(text: str, files: list[int], not_mine: list[int]) -> None:
    """Be the process of a node, as if it had been started by itself; does not return."""
    code = 70
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        stdin, out = files
        for file, place in ((stdin, 0), (out, 1), (out, 2)):
            os.dup2(file, place)
        for file in (*files, *not_mine):
            os.close(file)
        name = msgspec.json.decode(text.encode(), type=dict[str, msgspec.Raw])["name"]
        with contextlib.suppress(OSError):
            Path("/proc/self/comm").write_bytes(msgspec.json.decode(name, type=str).encode()[:MAX_NAME])
        code = import_module("comesh.runtime.running").run(text)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as control:
        serve(control)
