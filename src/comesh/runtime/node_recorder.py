"""Records what a node sees and does, for the checkers: what `recording` keeps, taken from a running node."""

import os
from collections.abc import Callable
from pathlib import Path

from comesh.core.effects import Observation
from comesh.core.events import Started
from comesh.core.journal import JournalRecord
from comesh.drivers.virtual.devices import Acted, Pressed
from comesh.runtime.host import Host
from comesh.runtime.journal import Journal
from comesh.runtime.recording import (
    Began,
    DeviceActed,
    DevicePressed,
    Ended,
    Flushed,
    Observed,
    Recorder,
    What,
    Wrote,
    encode_record,
    told,
)


class NodeRecorder:
    def __init__(self, path: Path, name: str, now_us: Callable[[], int]) -> None:
        self._recorder = Recorder(path, name)
        self._now_us = now_us

    def listen(self, host: Host, journal: Journal) -> None:
        """Before anybody else: in a recording a cause comes before what it causes."""

        def observed(observation: Observation) -> None:
            if isinstance(observation, Observed):
                self._write(told(observation))

        def wrote(record: JournalRecord) -> None:
            self._write(Wrote(encode_record(record), journal.appended_bytes))

        host.listeners.insert(0, observed)
        host.wrote.append(wrote)
        host.flushed.append(lambda: self._write(Flushed(journal.flushed_bytes)))

    def began(self, started: Started) -> None:
        self._write(Began(started.boot, started.store, started.initialised, started.power_lost, os.getpid()))

    def acted(self, what: Acted | Pressed) -> None:
        self._write(DeviceActed(what) if isinstance(what, Acted) else DevicePressed(what))

    def ended(self, why: str) -> None:
        self._write(Ended(why))
        self._recorder.close()

    def _write(self, what: What) -> None:
        self._recorder.write(self._now_us(), what)
