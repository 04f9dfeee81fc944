"""What a node's disk holds: records in order, and the image that they make.

A journal is append-only. `Image.apply` folds one record in; reading a journal is folding all of it, and an
image can be written out in place of the records that made it. Nothing else is needed to start again.

Which record is flushed when is decided by who persists it (`effects.Persist.flush`): promises, claims,
configs and tombstones before they are used; updates every flush_ms, or before they are acknowledged if they
must outlive a power loss (`outlives_power`), or all of them are to (`strict`).
"""

from typing import Annotated, assert_never

import msgspec

from comesh.core.group.config import Config
from comesh.core.ids import GroupId
from comesh.core.records import DeviceRecord, DocumentRecord, Entry, Gone, HandoffRecord, Record
from comesh.core.stamps import NO_BALLOT, Ballot

BootNumber = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""No machine starts so often: the next one can still be written, and said to others."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """Base of all journal records."""


class BootRaised(_Entry, frozen=True, tag=1):
    """This process speaks as this boot from now on."""

    boot: BootNumber


class ConfigKept(_Entry, frozen=True, tag=2):
    """A config that this node sits in, or (installed False) is invited to, and the state it begins with."""

    config: Config
    store: int
    """The seat's: the genesis store in a first config, else this journal's."""
    number: int
    records: tuple[Record, ...]
    installed: bool


class Promised(_Entry, frozen=True, tag=3):
    """To follow nobody below this ballot (an own claim is a promise too)."""

    mark: int
    ballot: Ballot


class Appended(_Entry, frozen=True, tag=4):
    """The entry with this number, accepted from the leader of this ballot."""

    mark: int
    ballot: Ballot
    number: int
    entry: Entry


class StateTaken(_Entry, frozen=True, tag=5):
    """The state that the leader of this ballot opened with, or gave. records None: it is the one held."""

    mark: int
    ballot: Ballot
    number: int
    records: tuple[Record, ...] | None
    whole: bool = True
    """A leader gave it in answer to this member's question, or the member lacked nothing before."""


class PowerLost(_Entry, frozen=True, tag=6):
    """The tail of this journal may be lost: no config in it is whole until a leader gives its state."""


class ConfigDropped(_Entry, frozen=True, tag=7):
    mark: int


class Tombstone(_Entry, frozen=True, tag=8):
    """This is the newest config of its group; older ones are over."""

    newest: Config


class DocumentKept(_Entry, frozen=True, tag=9):
    version: int
    text: str


JournalRecord = (
    BootRaised
    | ConfigKept
    | Promised
    | Appended
    | StateTaken
    | PowerLost
    | ConfigDropped
    | Tombstone
    | DocumentKept
)


class KeptConfig:
    """What the journal says of one config."""

    __slots__ = ("accepted", "config", "installed", "number", "promised", "records", "store", "whole")

    def __init__(self, record: ConfigKept) -> None:
        self.config = record.config
        self.store = record.store
        self.installed = record.installed
        self.whole = True
        self.promised = NO_BALLOT
        self.accepted = NO_BALLOT
        self.number = record.number
        self.records: dict[str, Record] = {one.key: one for one in record.records}

    def copy(self) -> "KeptConfig":
        twin = KeptConfig(ConfigKept(self.config, self.store, self.number, (), self.installed))
        twin.whole, twin.promised, twin.accepted = self.whole, self.promised, self.accepted
        twin.records = dict(self.records)
        return twin


class Image:
    """A journal, folded."""

    __slots__ = ("boot", "configs", "documents", "tombstones")

    def __init__(self) -> None:
        self.boot = 0
        self.configs: dict[int, KeptConfig] = {}
        """By mark."""
        self.tombstones: dict[GroupId, Config] = {}
        self.documents: dict[int, str] = {}

    def copy(self) -> "Image":
        twin = Image()
        twin.boot = self.boot
        twin.configs = {mark: kept.copy() for mark, kept in self.configs.items()}
        twin.tombstones = dict(self.tombstones)
        twin.documents = dict(self.documents)
        return twin

    def apply(self, record: JournalRecord) -> None:
        match record:
            case Appended():
                kept = self.configs[record.mark]
                put_all(kept.records, record.entry)
                kept.number, kept.accepted = record.number, record.ballot
            case Promised():
                self.configs[record.mark].promised = record.ballot
            case StateTaken():
                kept = self.configs[record.mark]
                if record.records is not None:
                    kept.records = {one.key: one for one in record.records}
                kept.number, kept.accepted = record.number, record.ballot
                kept.whole = kept.whole or record.whole
            case ConfigKept():
                before = self.configs.get(record.config.mark)
                kept = self.configs[record.config.mark] = KeptConfig(record)
                if before is not None:
                    kept.promised = before.promised
            case ConfigDropped():
                self.configs.pop(record.mark, None)
            case Tombstone():
                self.tombstones[record.newest.group] = record.newest
            case BootRaised():
                self.boot = max(self.boot, record.boot)
            case PowerLost():
                for kept in self.configs.values():
                    kept.whole = not kept.installed
            case DocumentKept():
                self.documents[record.version] = record.text
            case _:
                assert_never(record)


def outlives_power(record: Record) -> bool:
    """It must be on disk before it is acknowledged, whatever the durability: the last entry of a config, with
    which everything before it is there; a deployment version, which is told to all; a command that must not
    be done twice, before it leaves."""
    if isinstance(record, DeviceRecord):
        return any(call.outcome is None and not call.action.idempotent for call in record.calls)
    return isinstance(record, HandoffRecord | DocumentRecord)


def put_all(records: dict[str, Record], entry: Entry) -> None:
    """Put each record of an entry in the place of the one with its key."""
    for record in entry:
        if isinstance(record, Gone):
            records.pop(record.gone, None)
        else:
            records[record.key] = record
