"""Rules of ids: how they are written, which words are taken, and what a wrong one meant."""

import re
from collections.abc import Mapping
from typing import TypeVar

from comesh.deployment.clauses.parser import RESERVED

MAX_ID_CHARACTERS = 60
ID_PATTERN = r"[a-z][a-z0-9_]*"
BUILT_IN = ("now", "sun")
"""Names in clauses that are not devices."""
TAKEN = frozenset({*RESERVED, *BUILT_IN, "deployment"})
"""Words of the clause language, and the group that keeps the document itself."""

_ID = re.compile(ID_PATTERN, re.ASCII)
_Entry = TypeVar("_Entry")


def is_id(name: str) -> bool:
    """Small letters, digits and _; it may still be taken or too long."""
    return _ID.fullmatch(name) is not None


def suggested_id(name: str) -> str | None:
    """Returns the id that a wrong name meant: `office_fan` for `Office-Fan`."""
    if is_id(name):
        return None
    better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:MAX_ID_CHARACTERS]
    return better if is_id(better) and better not in TAKEN else None


def legal_names(names: Mapping[str, object] | list[str]) -> list[str]:
    """The names that can be suggested: what was meant, in place of what cannot be an id."""
    return [better for name in names if (better := name if is_id(name) else suggested_id(name)) is not None]


def find(entries: Mapping[str, _Entry], name: str) -> _Entry | None:
    """The entry of this name, or the one that was meant to have it: that mistake is told where it is made."""
    if name in entries:
        return entries[name]
    return next((entry for key, entry in entries.items() if suggested_id(key) == name), None)
