"""Keeps the results of seeds in a file, so that fuzzing goes on where it stopped.

One JSON line per finished seed, written at once: nothing that was finished is lost, however the command ends.
Each line names the code that it was found with, by a digest of the package's sources: what other code did
says nothing about this one, so such lines are dropped.
"""

import os
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

import comesh
from comesh.cli.fuzz_findings import Finding, SwarmKind


class _Line(msgspec.Struct, frozen=True):
    comesh_fuzz: str
    """The digest of the code."""
    swarm: SwarmKind
    finding: Finding


_decoder = msgspec.json.Decoder(_Line)


def code_digest() -> str:
    """Returns a digest of all sources of the package: paths and contents."""
    root = Path(comesh.__file__).parent
    digest = blake2b(digest_size=8)
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(source)}\n".encode())
        digest.update(source)
    return digest.hexdigest()


def is_state(begin: bytes) -> bool:
    """Says if a file begins like one of ours."""
    return begin.startswith(b'{"comesh_fuzz":')


class State:
    """The state file, open while seeds run. `found`: this code's earlier results, by seed."""

    def __init__(self, path: Path, kind: SwarmKind) -> None:
        self._path = path
        self._kind = kind
        self.code = code_digest()
        self.found: dict[int, Finding] = {}
        self.dropped = 0
        """Number of findings of other code."""
        self._file: BinaryIO | None = None

    def __enter__(self) -> "State":
        kept, whole = self._read()
        if not whole:
            draft = self._path.with_name(self._path.name + ".new")
            draft.write_bytes(b"".join(kept))
            os.replace(draft, self._path)
        self._file = self._path.open("ab")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, finding: Finding) -> None:
        assert self._file is not None, "the state is not open"
        self.found[finding.seed] = finding
        line = _Line(self.code, self._kind, finding)
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()

    def _read(self) -> tuple[list[bytes], bool]:
        """Fills `found`. Returns the lines of this code, of whatever swarm, and whether those are all."""
        if not self._path.exists():
            return [], True
        kept: list[bytes] = []
        lines = self._path.read_bytes().splitlines(keepends=True)
        for text in lines:
            try:
                line = _decoder.decode(text)
            except msgspec.MsgspecError:
                continue
            if not text.endswith(b"\n"):
                continue  # cut short when the machine went down
            if line.comesh_fuzz != self.code:
                self.dropped += 1
                continue
            kept.append(text)
            if line.swarm is self._kind:
                self.found[line.finding.seed] = line.finding
        return kept, len(kept) == len(lines)
