"""How long a run waits for locks that are free, read off what nodes wrote and told (P15).

A run begins when its leader writes its firing, or its turn after the routine's last run. A device is free for
it from then on, or, if another run has it, from when that run's leader writes that it gives its locks back.
That the release has to reach the device's group counts: there, release and next grant are one entry.

- lock acquisition: a device is free and the run has asked for it -> its group has committed that the run
  holds it;
- lock wait: the same from when the device is free, whether the run has asked or not: one that asks for its
  locks one after the other may wait for a busy device while this one is free;
- sync delay: the last of a run's devices becomes free -> the run executes. Of all runs, and of those alone
  that found a device held by another one (`conflict`).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from comesh.core.effects import Committed, RunTraced
from comesh.core.ids import DeviceId
from comesh.core.journal import Appended
from comesh.core.records import DeviceRecord, Entry, Gone, Record, RunRecord, Stage
from comesh.core.stamps import RunId
from comesh.experiments.measures.histories import Moment, Sample


class LockDelays(NamedTuple):
    acquisitions: list[Sample]
    waits: list[Sample]
    syncs: list[Sample]
    conflict_syncs: list[Sample]


class _Reader:
    def __init__(self) -> None:
        self.found = LockDelays([], [], [], [])
        self._began_ms: dict[RunId, float] = {}
        self._let_go_ms: dict[RunId, float] = {}
        self._asked_ms: dict[tuple[RunId, str], float] = {}
        self._held_ms: dict[RunId, float] = {}
        """When each run got its last lock."""
        self._lives: dict[str, RunId] = {}
        """The newest run of each routine, by the key of its record. One whose devices are all of its own
        group ends in the entry that lets them go."""
        self._holders: dict[DeviceId, RunId] = {}
        """Who holds each device, or held it last."""
        self._free_ms: dict[RunId, dict[DeviceId, float]] = defaultdict(dict)
        """Of each run that holds devices: when each of them had become free for it."""
        self._executes: set[RunId] = set()

    def written(self, at_ms: float, record: Record) -> None:
        """By the leader first, as members write only what it sent them."""
        if isinstance(record, RunRecord):
            self._began_ms.setdefault(record.run, at_ms)
            before = self._lives.get(record.key)
            if before is not None and before < record.run:
                self._let_go_ms.setdefault(before, at_ms)
            self._lives[record.key] = record.run if before is None else max(before, record.run)
            if record.stage is Stage.RELEASING_LOCKS:
                self._let_go_ms.setdefault(record.run, at_ms)
        elif isinstance(record, Gone) and record.key in self._lives:
            self._let_go_ms.setdefault(self._lives[record.key], at_ms)

    def committed(self, at_ms: float, entry: Entry) -> None:
        """What one entry grants was asked for together."""
        runs = {run for record in entry if (run := self._granted(at_ms, record)) is not None}
        self._held_ms.update(dict.fromkeys(runs, at_ms))

    def _granted(self, at_ms: float, record: Record) -> RunId | None:
        """The run that the record gives the device to."""
        if not isinstance(record, DeviceRecord) or record.hold is None:
            return None
        run, before = record.hold.run, self._holders.get(record.device)
        if run == before or run not in self._began_ms:
            return None
        self._holders[record.device] = run
        began_ms = self._began_ms[run]
        # A holder whose end nobody wrote was before this history: it says nothing of when it let go.
        let_go_ms = began_ms if before is None else self._let_go_ms.get(before, began_ms)
        free_ms = max(began_ms, let_go_ms)
        # A group asks itself without a word, and one that a request is passed on to is asked by another: as
        # soon as the run holds what comes before in the order.
        asked_ms = self._asked_ms.get((run, record.device), self._held_ms.get(run, began_ms))
        self._free_ms[run][record.device] = free_ms
        self.found.acquisitions.append(Sample(at_ms, at_ms - max(free_ms, asked_ms)))
        self.found.waits.append(Sample(at_ms, at_ms - free_ms))
        return run

    def traced(self, at_ms: float, told: RunTraced) -> None:
        run = told.run
        if told.what == "lock asked":
            for device in told.detail.partition(" of ")[0].split(", "):
                self._asked_ms.setdefault((run, device), at_ms)
        elif told.what == "executing" and run not in self._executes and run in self._free_ms:
            self._executes.add(run)
            free_ms = max(self._free_ms[run].values())
            self.found.syncs.append(Sample(at_ms, at_ms - free_ms))
            if free_ms > self._began_ms[run]:
                self.found.conflict_syncs.append(Sample(at_ms, at_ms - free_ms))


def lock_delays(moments: Iterable[Moment]) -> LockDelays:
    reader = _Reader()
    for at_ms, _, what in moments:
        match what:
            case Appended():
                for record in what.entry:
                    reader.written(at_ms, record)
            case Committed():
                reader.committed(at_ms, what.entry)
            case RunTraced():
                reader.traced(at_ms, what)
            case _:
                pass
    return reader.found
