"""What cases came to so far, kept in files, so that a reproduction goes on where it stopped.

- OUT/cases/NAME.jsonl: one line per finished case of a campaign, written at once, with its parameters and the
  commit that measured it (`source.py`). Results of another commit stay in the file and do not count, unless
  that commit is declared equal.
- OUT/recordings/NAME/KEY.xz: the recording of a case, where its campaign keeps one.
"""

import fcntl
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

from comesh.experiments.source import Code
from comesh.experiments.stage import Campaign, Parameters, Row


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one case came to: rows, or what went wrong."""

    commit: str
    parameters: Parameters
    rows: list[Row] = []
    error: str = ""
    took_s: float = 0.0
    reread: str = ""
    """The commit that computed the rows from the case's recording, if they were computed anew."""


_decoder = msgspec.json.Decoder(Outcome)


def key_of(parameters: Parameters) -> bytes:
    return msgspec.json.encode(parameters, order="deterministic")


class Store:
    """The results of one campaign, open while its cases are run. equal: other commits whose results count,
    too; where there are several results of a case, this commit's go first, then those of the first of
    these."""

    def __init__(self, out: Path, campaign: Campaign, code: Code, equal: Sequence[str] = ()) -> None:
        self._counts = [code.name, *map(code.called, equal)]
        self._path = out / "cases" / f"{campaign.name}.jsonl"
        self._recordings = out / "recordings" / campaign.name
        self._file: BinaryIO | None = None
        self._found: dict[bytes, Outcome] = {}
        self.left_out: Counter[str] = Counter()
        """Results that do not count, by their commit."""

    def __enter__(self) -> "Store":
        """BlockingIOError: another process has it open."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab+", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as wrong:
            self._file.close()
            why = "another comesh reproduce writes results into it: wait for that, or take another --out"
            raise BlockingIOError(wrong.errno, why, str(self._path)) from None
        self._file.seek(0)
        written = self._file.read()
        for line in written.splitlines():
            try:
                outcome = _decoder.decode(line)
            except msgspec.DecodeError:  # cut off while it was written
                continue
            self._take(outcome)
        self._found = {key: one for key, one in self._found.items() if not one.error}
        if written and not written.endswith(b"\n"):
            self._file.write(b"\n")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._file is not None
        self._file.close()

    def _take(self, outcome: Outcome) -> None:
        """The latest result of a commit counts; an error counts for this commit only, and is tried again."""
        if outcome.commit not in self._counts:
            self.left_out[outcome.commit] += 1
            return
        rank = self._counts.index(outcome.commit)
        if outcome.error and rank:
            return
        key = key_of(outcome.parameters)
        known = self._found.get(key)
        if known is None or rank <= self._counts.index(known.commit):
            self._found[key] = outcome

    def get(self, parameters: Parameters) -> Outcome | None:
        return self._found.get(key_of(parameters))

    def put(self, outcome: Outcome, recording: bytes = b"") -> None:
        assert self._file is not None
        if recording:
            path = self.recording(outcome.parameters)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(recording)
        self._found[key_of(outcome.parameters)] = outcome
        self._file.write(msgspec.json.encode(outcome) + b"\n")

    def recording(self, parameters: Parameters) -> Path:
        """Where the recording of a case is, if there is one."""
        key = blake2b(key_of(parameters), digest_size=6).hexdigest()
        return self._recordings / f"{key}.xz"
