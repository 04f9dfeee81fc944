"""A difference between two documents, as people read it; `changes` finds them."""

from enum import StrEnum

import msgspec


class What(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    RENAMED = "renamed"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    """setting, node, device, routine, or document"""
    name: str
    what: What
    details: tuple[str, ...] = ()
    """The old and the new value, a line each; for a renamed entry: its new name."""

    def __str__(self) -> str:
        if self.what is What.RENAMED:
            return f"{self.kind} {self.name} renamed to {self.details[0]}"
        if self.kind in ("setting", "document"):
            return f"{self.kind} {self.name}: {'; '.join(self.details)}"
        return f"{self.kind} {self.name} {self.what}" + "".join(f"\n  {one}" for one in self.details)
