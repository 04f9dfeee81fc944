"""Splits a node's table and board into pages that fit a datagram, and finds what a peer's page lacks.

All pages together cover all member names and all announcement keys, each page one span of both. So the
receiver of a page can tell what its sender lacks within those spans, whatever happens to the other pages.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

from comesh.core.ids import NEVER
from comesh.core.membership.announcements import Board
from comesh.core.membership.table import Table
from comesh.core.messages import Announcement, MemberState, MemberUpdate, Page, Span

MEMBERS_PER_PAGE = 500
ANNOUNCEMENTS_PER_PAGE = 24
"""At most 1,024 bytes of value each: a page stays below 64 kB."""

_Item = TypeVar("_Item")
_NOTHING = Span("", "")


def pages(table: Table, board: Board, *, whole: bool = True) -> Iterator[Page]:
    """Yields all that is known, as pages; at least one."""
    updates = list(table.updates()) if whole else []
    announcements = sorted(board, key=lambda announcement: announcement.key)
    members = _chunks(updates, MEMBERS_PER_PAGE)
    keyed = _chunks(announcements, ANNOUNCEMENTS_PER_PAGE)
    member_spans = _spans([chunk[0].node for chunk in members[1:]])
    announcement_spans = _spans([chunk[0].key for chunk in keyed[1:]])
    for number in range(max(len(members), len(keyed))):
        yield Page(
            tuple(members[number]) if number < len(members) else (),
            tuple(keyed[number]) if number < len(keyed) else (),
            member_spans[number] if whole and number < len(members) else _NOTHING,
            announcement_spans[number] if number < len(keyed) else _NOTHING,
        )


def answers(theirs: Page, table: Table, board: Board) -> Iterator[Page]:
    """Yields pages with what is known better here, within the spans of a peer's page; none if nothing is."""
    told = {update.node: (update.incarnation, update.state) for update in theirs.members}
    posted = {
        announcement.key: (announcement.version, announcement.value) for announcement in theirs.announcements
    }
    members: list[MemberUpdate] = [
        table.update(number)
        for number, node in enumerate(table.roster.ids if theirs.member_span != _NOTHING else ())
        if table.is_spoken_of(number)
        and theirs.member_span.has(node)
        and (table.incarnation(number), table.state(number)) > told.get(node, (NEVER, MemberState.ALIVE))
    ]
    announcements: list[Announcement] = [
        announcement
        for announcement in board
        if theirs.announcement_span.has(announcement.key)
        and (announcement.version, announcement.value) > posted.get(announcement.key, (-1, b""))
    ]
    chunks = zip_longest(
        _chunks(members, MEMBERS_PER_PAGE), _chunks(announcements, ANNOUNCEMENTS_PER_PAGE), fillvalue=()
    )
    for some, others in chunks:
        if some or others:
            yield Page(tuple(some), tuple(others), _NOTHING, _NOTHING, answer=True)


def _chunks(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    """Cuts items into chunks; at least one, if only an empty one."""
    return [items[at : at + size] for at in range(0, len(items), size)] or [items]


def _spans(borders: list[str]) -> list[Span]:
    """Cuts the whole range of names at the borders."""
    return [Span(low, high) for low, high in zip(["", *borders], [*borders, None], strict=True)]
