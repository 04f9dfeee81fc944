"""Problems of a document: where, what, and the likely fix.

A problem is a value, never an exception, because all mistakes of a document are told in one go:

    office.yaml:41: routines.night_lock.when: unknown device 'lamp_9'; did you mean 'lamp_8'?
"""

import difflib
from collections.abc import Iterable
from enum import StrEnum
from heapq import nlargest

import msgspec

Path = tuple[str | int, ...]
"""A place in the document: keys and list indexes from the top."""

SHOWN_CHARACTERS = 60
"""Maximum characters of a text that a problem quotes; longer ones are shortened."""


COMPARED_NAMES = 20


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Position(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place in the text; both count from 1."""

    line: int
    column: int


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake. line and column are 0 where the whole file is meant."""

    file: str
    line: int
    column: int
    path: str
    what: str
    fix: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        parts = [where]
        if self.severity is Severity.WARNING:
            parts.append("warning")
        if self.path:
            parts.append(self.path)
        parts.append(f"{self.what}; {self.fix}" if self.fix else self.what)
        return ": ".join(parts)


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """A problem before its place in the file is known: what checks make, and load turns into Problems."""

    path: Path
    what: str
    fix: str = ""
    severity: Severity = Severity.ERROR
    offset: int | None = None
    """Which character of the text at path is meant, from 0; None: all of it."""
    at_key: bool = False
    """The key is meant, not the value."""


class WrongError(ValueError):
    """A value that cannot be used: raised by parsers of single values, caught where the path is known."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(f"{what}; {fix}" if fix else what)
        self.what = what
        self.fix = fix


def complain(*path: str | int, what: str, fix: str = "", at_key: bool = False) -> Complaint:
    return Complaint(path=path, what=what, fix=fix, at_key=at_key)


def warn(*path: str | int, what: str, fix: str = "") -> Complaint:
    return Complaint(path=path, what=what, fix=fix, severity=Severity.WARNING)


def show_path(path: Path) -> str:
    """`routines.night_lock.do[2].device`"""
    shown = ""
    for step in path:
        match step:
            case int():
                shown += f"[{step}]"
            case str():
                shown += f".{shorten(step)}" if shown else shorten(step)
    return shown


def printable(text: str) -> str:
    """The text without what could change a terminal or break a line."""
    return "".join(character if character.isprintable() else "?" for character in text)


def shorten(text: str) -> str:
    """Returns one printable line of bounded length."""
    line = printable(text)
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 3] + "..."


def quote(value: object) -> str:
    """A value of the document as a problem shows it."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "nothing"
        case str():
            return f"'{shorten(value)}'"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case int() if value.bit_length() > 128:
            return "a very large number"
        case _:
            return shorten(str(value))


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The likely fix for a misspelled name: the nearest, or all of them where they are few."""
    names = sorted(known)
    close = nearest(wrong, names)
    if close:
        return f"did you mean '{shorten(close)}'?"
    if 0 < len(names) <= 12:
        return "known: " + ", ".join(map(shorten, names))
    return ""


def nearest(wrong: str, names: list[str]) -> str:
    """The name that is most like the wrong one; empty: none is like it."""
    close = difflib.get_close_matches(wrong[:SHOWN_CHARACTERS], _alike(wrong, names), n=1, cutoff=0.6)
    return close[0] if close else ""


def _alike(wrong: str, names: list[str]) -> list[str]:
    """The names that begin or end most like the wrong one: the thorough comparison is slow."""
    if len(names) <= 2 * COMPARED_NAMES:
        return names
    begin = nlargest(COMPARED_NAMES, names, key=lambda name: _shared(name, wrong))
    end = nlargest(COMPARED_NAMES, names, key=lambda name: _shared(reversed(name), reversed(wrong)))
    return sorted({*begin, *end})


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """Counts the characters that are the same until the first difference."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
