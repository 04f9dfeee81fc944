"""What a node says about itself on standard error: lines for people, or a JSON object each for machines.

Whoever should read it may not (a full pipe, a terminal that was stopped), and the mesh matters more than its
log. So lines are written by a thread; those that find no room to wait are dropped, and counted in the next
line that gets through. Lines of one moment are written together: to wake the thread costs more than the line.
"""

import os
import select
import threading
import time
from collections import deque
from enum import StrEnum
from itertools import islice
from typing import Final

import msgspec

MAX_WAITING_BYTES: Final = 65_536
"""Of lines that nobody read yet; further ones are dropped."""
END_WITHIN_S: Final = 1.0
"""How long a node that ends waits for its last lines to be read."""
TOGETHER_S: Final = 0.02
"""How long a line waits for others."""
_STDERR: Final = 2


class LogFormat(StrEnum):
    PEOPLE = "people"
    JSON = "json"


class Log:
    def __init__(self, node: str, form: LogFormat = LogFormat.PEOPLE, to: int = _STDERR) -> None:
        self._node = node
        self._form = form
        self._to = to
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._ends = False
        self._changed = threading.Condition()
        self._writer = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._writer.start()

    def say(self, what: str, *, level: str = "info", **facts: object) -> None:
        line = self._line(what, level, facts)
        with self._changed:
            notice = self._of_dropped()
            if self._lines and self._waiting_bytes + len(notice) + len(line) > MAX_WAITING_BYTES:
                self._dropped += 1
                return
            self._dropped = 0
            self._put(notice + line)

    def warn(self, what: str, **facts: object) -> None:
        self.say(what, level="warning", **facts)

    def error(self, what: str, **facts: object) -> None:
        self.say(what, level="error", **facts)

    def close(self, within_s: float = END_WITHIN_S) -> None:
        """After the last line; it waits so long for somebody to read them."""
        with self._changed:
            self._put(self._of_dropped())
            self._ends = True
            self._changed.notify()
        self._writer.join(within_s)

    def _line(self, what: str, level: str, facts: dict[str, object]) -> bytes:
        now_s = time.time()
        if self._form is LogFormat.JSON:
            told = {"at": round(now_s, 3), "node": self._node, "level": level, "what": what, **facts}
            return msgspec.json.encode(told) + b"\n"
        clock = time.strftime("%H:%M:%S", time.localtime(now_s))
        mark = "" if level == "info" else f"{level}: "
        return f"{clock} {self._node}: {mark}{what}\n".encode(errors="backslashreplace")

    def _of_dropped(self) -> bytes:
        """The line that says how many were dropped; nothing, if none were."""
        if not self._dropped:
            return b""
        lines = "line" if self._dropped == 1 else "lines"
        were = "was" if self._dropped == 1 else "were"
        what = f"{self._dropped} {lines} of the log {were} dropped: nobody read them"
        return self._line(what, "warning", {"dropped": self._dropped})

    def _put(self, line: bytes) -> None:
        self._lines.append(line)
        self._waiting_bytes += len(line)
        if len(self._lines) == 1:
            self._changed.notify()

    # In the thread

    def _write_all(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._ends:
                    self._changed.wait()
                if not self._lines:
                    return
                if not self._ends and self._waiting_bytes < select.PIPE_BUF:
                    self._changed.wait(TOGETHER_S)
                lines = self._together()
            self._write(b"".join(lines))
            with self._changed:
                for line in lines:
                    self._lines.popleft()
                    self._waiting_bytes -= len(line)

    def _together(self) -> list[bytes]:
        """The first lines, as many as are written at once or not at all: others may write there, too."""
        lines = [self._lines[0]]
        size = len(lines[0])
        for line in islice(self._lines, 1, None):
            size += len(line)
            if size > select.PIPE_BUF:
                break
            lines.append(line)
        return lines

    def _write(self, line: bytes) -> None:
        """Until it is read, or nobody listens any more."""
        while line:
            try:
                line = line[os.write(self._to, line) :]
            except BlockingIOError:
                select.select([], [self._to], [])
            except OSError:
                return
