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
from comesh.core.ids import DeviceId, NodeId
from comesh.core.journal import Appended
from comesh.core.records import DeviceRecord, Gone, RunRecord, Stage
from comesh.core.stamps import RunId
from comesh.core.traces import Executing, LockAsked
from comesh.experiments.measures.histories import Moment, Proposals, Sample


class LockDelays(NamedTuple):
    acquisitions: list[Sample]
    waits: list[Sample]
    syncs: list[Sample]
    conflict_syncs: list[Sample]


class _Reader:
    def __init__(self) -> None:
        self._acquisitions: list[Sample] = []
        self._waits: list[Sample] = []
        self._proposals = Proposals()
        self._began_ms: dict[RunId, float] = {}
        self._let_go_ms: dict[RunId, float] = {}
        self._asked_ms: dict[tuple[RunId, str], float] = {}
        self._held_ms: dict[RunId, float] = {}
        """When each run got its last lock."""
        self._lives: dict[tuple[NodeId, str], RunId] = {}
        """The newest run of each routine that each node knows, by the key of its record. A run whose devices
        are all of its own group ends in the entry that releases them. Members write entries later than
        their leader, so what one of them writes ends only runs that it has written itself."""
        self._holders: dict[DeviceId, RunId] = {}
        """Who holds each device, or held it last."""
        self._free_ms: dict[RunId, dict[DeviceId, float]] = defaultdict(dict)
        """When each device that a run holds had become free for it."""
        self._executes_ms: dict[RunId, float] = {}

    def written(self, at_ms: float, node: NodeId, what: Appended) -> None:
        """By the leader first: members write only what it sent them."""
        self._proposals.written(at_ms, node, what)
        for record in what.entry:
            if isinstance(record, RunRecord):
                self._began_ms.setdefault(record.run, at_ms)
                before = self._lives.get((node, record.key))
                if before is not None and before < record.run:
                    self._let_go_ms.setdefault(before, at_ms)
                self._lives[node, record.key] = record.run if before is None else max(before, record.run)
                if record.stage is Stage.RELEASING_LOCKS:
                    self._let_go_ms.setdefault(record.run, at_ms)
            elif isinstance(record, Gone) and (node, record.key) in self._lives:
                self._let_go_ms.setdefault(self._lives[node, record.key], at_ms)

    def committed(self, at_ms: float, node: NodeId, told: Committed) -> None:
        commit = self._proposals.committed(at_ms, node, told)
        granted = [
            record for record in told.entry if isinstance(record, DeviceRecord) and self._is_granted(record)
        ]
        runs = [_run_of(record) for record in granted]
        requested = {
            run for run, record in zip(runs, granted, strict=True) if (run, record.device) in self._asked_ms
        }
        for run, record in zip(runs, granted, strict=True):
            began_ms = self._began_ms[run]
            # A group asks itself without a trace, and a request that is passed on is not traced again: both
            # happen as soon as the run holds what comes before in its order. Where that is in this very
            # entry, the rest was asked for when the entry was proposed.
            if run in requested:
                unasked_ms = at_ms if commit is None else commit.proposed_ms
            else:
                unasked_ms = self._held_ms.get(run, began_ms)
            self._grant(at_ms, run, record.device, self._asked_ms.get((run, record.device), unasked_ms))
        self._held_ms.update(dict.fromkeys(runs, at_ms))

    def _is_granted(self, record: DeviceRecord) -> bool:
        """Whether the record gives its device to a run that did not hold it."""
        if record.hold is None:
            return False
        run = record.hold.run
        return run != self._holders.get(record.device) and run in self._began_ms

    def _grant(self, at_ms: float, run: RunId, device: DeviceId, asked_ms: float) -> None:
        began_ms, before = self._began_ms[run], self._holders.get(device)
        self._holders[device] = run
        # A holder whose end nobody wrote was before this history: it says nothing of when it let go.
        let_go_ms = began_ms if before is None else self._let_go_ms.get(before, began_ms)
        free_ms = max(began_ms, let_go_ms)
        self._free_ms[run][device] = free_ms
        self._acquisitions.append(Sample(at_ms, at_ms - max(free_ms, asked_ms)))
        self._waits.append(Sample(at_ms, at_ms - free_ms))

    def traced(self, at_ms: float, told: RunTraced) -> None:
        match told.trace:
            case LockAsked(devices=devices):
                for device in devices:
                    self._asked_ms.setdefault((told.run, device), at_ms)
            case Executing():
                self._executes_ms.setdefault(told.run, at_ms)
            case _:
                pass

    def found(self) -> LockDelays:
        """At the end of the history: a run may be seen to execute before its last grant is."""
        syncs: list[Sample] = []
        conflicts: list[Sample] = []
        for run, at_ms in self._executes_ms.items():
            if run in self._free_ms:
                free_ms = max(self._free_ms[run].values())
                syncs.append(Sample(at_ms, at_ms - free_ms))
                if free_ms > self._began_ms[run]:
                    conflicts.append(syncs[-1])
        return LockDelays(self._acquisitions, self._waits, syncs, conflicts)


def _run_of(record: DeviceRecord) -> RunId:
    assert record.hold is not None
    return record.hold.run


def lock_delays(moments: Iterable[Moment]) -> LockDelays:
    reader = _Reader()
    for at_ms, who, what in moments:
        match what:
            case Appended():
                reader.written(at_ms, NodeId(who), what)
            case Committed():
                reader.committed(at_ms, NodeId(who), what)
            case RunTraced():
                reader.traced(at_ms, what)
            case _:
                pass
    return reader.found()
