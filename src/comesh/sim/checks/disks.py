"""Checks that committed entries were written by f+1 members, on the disks of a config's seats at that moment.

A power loss may take an entry from a disk again before its acknowledgement has arrived, and a wipe
everything. A seat that suffered either counts as one that may have had the entry.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from comesh.core.group.config import GENESIS_STORE, UNBOUND_STORE, Config, Seat
from comesh.core.ids import NodeId
from comesh.core.journal import Image, KeptConfig
from comesh.core.stamps import NO_BALLOT, OPENING, Ballot

Lacking = Callable[[Config, int, Ballot, int], list[NodeId]]
"""Returns the seats that lack the entry with this number of a config (and its mark) under this ballot; none
if a quorum has it."""


def nobody(_: Config, __: int, ___: Ballot, ____: int) -> list[NodeId]:
    """A `Lacking` for worlds without disks: nobody lacks anything."""
    return []


class DiskSeen(Protocol):
    """A disk as the checkers see it, simulated or recorded."""

    @property
    def store(self) -> int: ...

    @property
    def initialised(self) -> bool: ...

    @property
    def lost_power(self) -> bool:
        """True if power was lost since a process last started from this disk."""
        ...

    def image(self) -> Image:
        """Returns all that was written, folded; read it before anything more is written."""
        ...


class MachineSeen(Protocol):
    """A machine as the checkers see it: its disk and its process."""

    @property
    def name(self) -> str: ...

    @property
    def node_id(self) -> NodeId: ...

    @property
    def disk(self) -> DiskSeen: ...

    @property
    def process(self) -> object | None:
        """The process that runs here; None: none does."""
        ...


class Disks:
    def __init__(self, machines: Mapping[str, MachineSeen]) -> None:
        self._machines = machines

    def lacking(self, config: Config, mark: int, ballot: Ballot, number: int) -> list[NodeId]:
        lacking: list[NodeId] = []
        have = 0
        for seat in config.seats:
            if self._may_have(seat, config, mark, ballot, number):
                have += 1
                if have == config.quorum:
                    return []
            else:
                lacking.append(seat.node)
        return lacking

    def _may_have(self, seat: Seat, config: Config, mark: int, ballot: Ballot, number: int) -> bool:
        if seat.store == UNBOUND_STORE:
            return False
        machine = self._machines[seat.node]
        disk = machine.disk
        if not sits(seat, disk) or disk.lost_power:
            return True
        image = disk.image()
        kept = image.configs.get(mark)
        if kept is not None and (not kept.whole or _holds(kept, ballot, number)):
            return True
        return is_beyond(image, config)


def sits(seat: Seat, disk: DiskSeen) -> bool:
    """True if the seat belongs to this disk; False: the seat's disk was lost, or never existed."""
    if seat.store == UNBOUND_STORE:
        return False
    return disk.initialised if seat.store == GENESIS_STORE else disk.store == seat.store


def _holds(kept: KeptConfig, ballot: Ballot, number: int) -> bool:
    """True if the disk holds the entry. Being installed counts as an acknowledgement of the opening
    ballot."""
    accepted = OPENING if kept.accepted == NO_BALLOT else kept.accepted
    return kept.installed and kept.number >= number and accepted >= ballot


def is_beyond(image: Image, config: Config) -> bool:
    """True if the disk is past the config: it has a later one, or knows of one."""
    tombstone = image.tombstones.get(config.group)
    if tombstone is not None and tombstone.number > config.number:
        return True
    return any(
        kept.installed and kept.config.group == config.group and kept.config.number > config.number
        for kept in image.configs.values()
    )
