"""Queues the gossip that rides on messages: least-sent first, each item a bounded number of times.

One item per subject: a newer one replaces the older and starts its count anew.
"""

from itertools import islice
from typing import Generic, TypeVar

from comesh.core.messages import Announcement, GossipItems, MemberUpdate

MAX_MEMBERS_PER_MESSAGE = 8
MAX_ANNOUNCEMENTS_PER_MESSAGE = 4
MAX_WAITING = 8192
"""Maximum items of each kind. Beyond it an item is not queued, and the exchange of tables has to bring it."""

NO_GOSSIP = GossipItems()

_Item = TypeVar("_Item")


class Waiting(Generic[_Item]):
    """Items of one kind by subject, in rows by how often they were sent, oldest first in a row."""

    __slots__ = ("_row_of", "_rows")

    def __init__(self) -> None:
        self._rows: list[dict[str, _Item]] = []
        self._row_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, subject: str) -> bool:
        return subject in self._row_of

    def put(self, subject: str, item: _Item) -> None:
        """Queues a new item, whose count starts anew."""
        row = self._row_of.get(subject)
        if row is not None:
            del self._rows[row][subject]
        elif len(self._row_of) >= MAX_WAITING:
            return
        if not self._rows:
            self._rows.append({})
        self._rows[0][subject] = item
        self._row_of[subject] = 0

    def amend(self, subject: str, item: _Item) -> None:
        """Replaces the item under way for this subject by a more detailed one."""
        row = self._row_of.get(subject)
        if row is None:
            self.put(subject, item)
        else:
            self._rows[row][subject] = item

    def drop(self, subject: str) -> None:
        """Removes the item of a subject."""
        row = self._row_of.pop(subject, None)
        if row is not None:
            del self._rows[row][subject]

    def take(self, count: int, sends: int) -> tuple[_Item, ...]:
        """Takes the least-sent items; one that was sent `sends` times now is forgotten."""
        if not self._row_of:
            return ()
        rows = self._rows
        taken: list[tuple[int, list[tuple[str, _Item]]]] = []
        for row, items in enumerate(rows):
            if items:
                some = list(items.items()) if len(items) <= count else list(islice(items.items(), count))
                taken.append((row, some))
                count -= len(some)
                if not count:
                    break
        told: list[_Item] = []
        for row, some in taken:
            before, after = rows[row], row + 1
            if len(some) == len(before):
                rows[row] = {}
            else:
                for subject, _ in some:
                    del before[subject]
            told += [item for _, item in some]
            if after >= sends:
                for subject, _ in some:
                    del self._row_of[subject]
                continue
            if after == len(rows):
                rows.append({})
            rows[after].update(some)
            self._row_of.update(dict.fromkeys([subject for subject, _ in some], after))
        return tuple(told)


class GossipQueue:
    __slots__ = ("announcements", "members", "quiet")

    def __init__(self) -> None:
        self.members: Waiting[MemberUpdate] = Waiting()
        self.announcements: Waiting[Announcement] = Waiting()
        self.quiet: Waiting[Announcement] = Waiting()
        """Announcements that ride along and cause no message of their own."""

    def take(self, sends: int, first: MemberUpdate | None = None) -> GossipItems:
        """Takes the items for the next message; `first` is an update that its receiver must hear in any
        case."""
        if first is None and not self and not self.quiet:
            return NO_GOSSIP
        members = self.members.take(MAX_MEMBERS_PER_MESSAGE, sends)
        if first is not None and first not in members:
            members = (first, *members)
        announcements = self.announcements.take(MAX_ANNOUNCEMENTS_PER_MESSAGE, sends)
        if len(announcements) < MAX_ANNOUNCEMENTS_PER_MESSAGE:
            announcements += self.quiet.take(MAX_ANNOUNCEMENTS_PER_MESSAGE - len(announcements), sends)
        return GossipItems(members, announcements)

    def __bool__(self) -> bool:
        return bool(self.members or self.announcements)
