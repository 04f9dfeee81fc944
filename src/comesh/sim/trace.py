"""The event trace: everything that happened, in order, as JSON lines, and a hash of it.

A line is `[time_ms, machine, kind, event]`; of a journal it has what tells it from others. Two runs with one
seed have the same trace, byte for byte, whatever the process, the machine's load or PYTHONHASHSEED.
"""

from hashlib import blake2b
from typing import BinaryIO

import msgspec

from comesh.core.journal import Image


def _journal(image: object) -> object:
    """Returns a journal in short: its configs by mark, with their positions; a whole one would fill the
    trace."""
    if not isinstance(image, Image):
        raise TypeError(f"a trace cannot hold {type(image).__name__}")
    configs = {
        str(mark): (kept.number, kept.promised, kept.accepted, kept.whole, len(kept.records))
        for mark, kept in image.configs.items()
    }
    return {"boot": image.boot, "configs": configs, "documents": list(image.documents)}


class Trace:
    """Hashes the lines of a trace, and writes them if a file is given."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file = file
        self._hash = blake2b(digest_size=16)
        self._encode = msgspec.json.Encoder(enc_hook=_journal).encode

    def record(self, now_ms: float, machine: str, event: msgspec.Struct) -> None:
        line = self._encode((now_ms, machine, type(event).__name__, event)) + b"\n"
        self._hash.update(line)
        if self._file is not None:
            self._file.write(line)

    def digest(self) -> str:
        """Returns the hash of all lines so far."""
        return self._hash.hexdigest()
