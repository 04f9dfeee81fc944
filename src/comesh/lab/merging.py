"""The recordings of a mesh on one machine, merged into one history by time.

Every line is stamped, by a clock that all processes share, when it was done, and before anything that follows
from it was; so causes come before what they cause (the rules are in `runtime/recording.py`). Of lines with
the same stamp, those of one file keep their order and files go by name: nothing gets from one process to
another within a microsecond. Acts of devices are put where the device says that they happened.
"""

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from comesh.runtime.recording import Began, DeviceActed, Line, RecordingError, What, read

ENDING: Final = ".rec"
"""Ending of the names of recordings."""
MAX_LATE_US: Final = 1_000_000
"""Maximum time after an act at which its line comes."""


class LifeEnded(NamedTuple):
    """The process is no more, from here on, because another one began: the next line of its file says so."""

    following: Began


class Moment(NamedTuple):
    at_us: int
    file: str
    """Which recording, without its ending."""
    number: int
    who: str
    what: What | LifeEnded


def recordings(directory: Path) -> list[Path]:
    found = sorted(directory.glob(f"*{ENDING}"))
    if not found:
        what = f"{directory}: no recordings here (*{ENDING})"
        raise RecordingError(f"{what}; start the nodes with --record and name that directory")
    return found


def merged(paths: list[Path]) -> Iterator[Moment]:
    """Yields all lines of all files, in order of time."""
    return heapq.merge(*(_in_place(path) for path in paths), key=_order)


def _order(moment: Moment) -> tuple[int, str, int]:
    return moment[:3]


def _in_place(path: Path) -> Iterator[Moment]:
    """Yields the lines of one file in order of time: acts are recorded a little after they happened, so lines
    wait for those."""
    waiting: list[tuple[tuple[int, str, int], Moment]] = []
    for moment in _moments(path):
        heapq.heappush(waiting, (_order(moment), moment))
        while waiting[0][0][0] < moment.at_us - MAX_LATE_US:
            yield heapq.heappop(waiting)[1]
    while waiting:
        yield heapq.heappop(waiting)[1]


def _moments(path: Path) -> Iterator[Moment]:
    file = path.name.removesuffix(ENDING)
    number = 0
    last_us: int | None = None
    for line in read(path):
        if isinstance(line.what, Began) and last_us is not None:
            number += 1
            yield Moment(last_us, file, number, line.who, LifeEnded(line.what))
        last_us = line.at_us
        number += 1
        yield Moment(_at_us(line), file, number, line.who, line.what)


def _at_us(line: Line) -> int:
    return round(line.what.acted.at_ms * 1000) if isinstance(line.what, DeviceActed) else line.at_us
