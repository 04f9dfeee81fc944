"""The shapes of what only HTTP has; those of all other answers are in `comesh.queries.answers`."""

import msgspec

from comesh.core.ids import RoutineId


class FireWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    request: str | None = None
    """An id of your own: the same one fires once, however often and at whichever node it is asked."""


class FireAnswer(msgspec.Struct, frozen=True, kw_only=True):
    routine: RoutineId
    request: str
    run: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    alive: bool
    ready: bool
    """It takes part in the mesh."""


class Error(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    error: str
    """What happened, and what to do."""
    did_you_mean: str = ""
    problems: tuple[str, ...] = ()
    """What is wrong with a document, one by one."""
