"""What a node says about itself on standard error: lines for people, or a JSON object each for machines."""

import sys
import time
from contextlib import suppress
from enum import StrEnum
from typing import TextIO

import msgspec


class LogFormat(StrEnum):
    PEOPLE = "people"
    JSON = "json"


class Log:
    def __init__(self, node: str, form: LogFormat = LogFormat.PEOPLE, to: TextIO | None = None) -> None:
        self._node = node
        self._form = form
        self._to = to or sys.stderr

    def say(self, what: str, *, level: str = "info", **facts: object) -> None:
        now_s = time.time()
        if self._form is LogFormat.JSON:
            line = msgspec.json.encode(
                {"at": round(now_s, 3), "node": self._node, "level": level, "what": what, **facts}
            ).decode()
        else:
            clock = time.strftime("%H:%M:%S", time.localtime(now_s))
            mark = "" if level == "info" else f"{level}: "
            line = f"{clock} {self._node}: {mark}{what}"
        with suppress(OSError, ValueError):  # nobody listens any more: the mesh matters more than its log
            self._to.write(line + "\n")
            self._to.flush()

    def warn(self, what: str, **facts: object) -> None:
        self.say(what, level="warning", **facts)

    def error(self, what: str, **facts: object) -> None:
        self.say(what, level="error", **facts)
