"""Machines as their recordings tell of them: which process ran, and what was on its disk.

A record is on the disk from when it was written; a power loss takes what was not flushed. What a process
wrote in its last moment may not have been recorded any more. A disk of which that is known, because its
journal is longer than what was recorded or a record does not fit what is known, counts as one that may have
anything (`unsure`).
"""

from collections import deque

from comesh.core.ids import NodeId
from comesh.core.journal import Image, JournalRecord, PowerLost
from comesh.runtime.recording import Began


class RecordedDisk:
    """The disk of a recorded node, as checkers look at it (`checks.disks.DiskSeen`)."""

    def __init__(self, store: int = 0, *, initialised: bool = True) -> None:
        """Starts as the deployment was initialised, for a machine that has not started yet."""
        self.store = store
        self.initialised = initialised
        self.unsure = False
        self._gone = False
        self._durable = Image()
        self._now = Image()
        self._tail: deque[tuple[int, JournalRecord]] = deque()
        self._flushed_byte = 0
        self._at_byte = 0

    @property
    def lost_power(self) -> bool:
        return self._gone or self.unsure

    def image(self) -> Image:
        return self._now

    def write(self, record: JournalRecord, at_byte: int) -> None:
        self._fold(self._now, record)
        self._tail.append((at_byte, record))
        self._at_byte = at_byte

    def flush(self, to_byte: int) -> None:
        while self._tail and self._tail[0][0] <= to_byte:
            self._fold(self._durable, self._tail.popleft()[1])
        self._flushed_byte = max(self._flushed_byte, to_byte)

    def end(self, following: Began) -> None:
        """Its process is no more; what the next one began from was there, or gone, from then on."""
        kept_byte = following.at_byte
        if kept_byte is None:
            kept_byte = self._flushed_byte if following.power_lost else self._at_byte
        self.cut(kept_byte)
        if following.power_lost:
            self.flush(self._at_byte)  # what survived that is on the disk itself
        self._gone = following.power_lost

    def begin(self, began: Began) -> None:
        """A process starts from it, and knows from now on whether power was lost."""
        self._gone = False
        if began.at_byte is not None and began.at_byte > self._at_byte and self._at_byte:
            self.unsure = True
        if began.power_lost:
            self._fold(self._durable, PowerLost())
            self._fold(self._now, PowerLost())

    def cut(self, kept_byte: int) -> None:
        """Drops what was written after that."""
        if not self._tail or self._tail[-1][0] <= kept_byte:
            return
        while self._tail and self._tail[-1][0] > kept_byte:
            self._tail.pop()
        self._at_byte = kept_byte
        self._now = self._durable.copy()
        for _, record in self._tail:
            self._fold(self._now, record)

    def _fold(self, image: Image, record: JournalRecord) -> None:
        try:
            image.apply(record)
        except KeyError:  # a config whose record was not recorded any more
            self.unsure = True


class RecordedMachine:
    """One recording of a node (`checks.disks.MachineSeen`). A second process with the name of a node records
    into a file of another name, and is another machine."""

    def __init__(self, name: str, node_id: NodeId) -> None:
        self.name = name
        self.node_id = node_id
        self.disk = RecordedDisk()
        self.process: Began | None = None
        self.started_ms = 0.0
        self.told_ms = 0.0
        """When it last told something."""

    def begin(self, at_ms: float, began: Began) -> None:
        self._take_disk(began)
        self.disk.begin(began)
        self.process, self.started_ms = began, at_ms

    def end(self, following: Began | None) -> None:
        """following: the next life's beginning, if there is one."""
        self.process = None
        if following is not None:
            self.disk.end(following)
            self._take_disk(following)

    def _take_disk(self, began: Began) -> None:
        """Another store is another disk."""
        if self.disk.store not in (0, began.store):
            self.disk = RecordedDisk()
        self.disk.store, self.disk.initialised = began.store, began.initialised


class RecordedMachines(dict[str, RecordedMachine]):
    """Recorded machines by name. One that nobody recorded never ran."""

    def __missing__(self, name: str) -> RecordedMachine:
        machine = self[name] = RecordedMachine(name, NodeId(name))
        return machine

    def of(self, name: str, node: NodeId) -> RecordedMachine:
        if name not in self:
            self[name] = RecordedMachine(name, node)
        return self[name]

    def runs_since(self, node: NodeId, since_ms: float) -> bool:
        return any(
            machine.node_id == node and machine.process is not None and machine.started_ms <= since_ms
            for machine in self.values()
        )
