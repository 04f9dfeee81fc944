"""Clients that need packages of their own run as processes of their own, and print what they measured:
`{"took_ms": [...], "all_s": ...}`, as JSON."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from peers.stage import MissingError

LONGEST_S: Final = 300.0
"""That one measurement may take."""


class _Measured(msgspec.Struct, frozen=True):
    took_ms: list[float]
    all_s: float


def run_client(python: Path, name: str, arguments: Sequence[object]) -> tuple[list[float], float]:
    """Milliseconds of each, and seconds of all."""
    script = Path(__file__).parent / f"{name}.py"
    command = [str(python), str(script), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=LONGEST_S)
    except subprocess.TimeoutExpired as error:
        raise MissingError(f"{name} did not end within {LONGEST_S:.0f} s") from error
    if done.returncode != 0:
        raise MissingError(f"{name} failed: {done.stderr.decode(errors='replace').strip().splitlines()[-1:]}")
    measured = msgspec.json.decode(done.stdout, type=_Measured)
    return measured.took_ms, measured.all_s
