"""A document on its way to a Deployment: what could be read, and which parts are broken.

All mistakes are to be told at once, so a part that is wrong in form is reported and taken out, and the
rest is still checked for sense. Checks ask `sound` before they complain about what may only be a
consequence of a mistake that was already told.
"""

from typing import Any, TypeVar

import msgspec
from pydantic import ValidationError

from comesh.deployment.id_names import find, suggested_id
from comesh.deployment.mistakes import complaints
from comesh.deployment.model import Device, Node, Routine, Step
from comesh.deployment.problems import Complaint, Path, complain, did_you_mean, quote
from comesh.deployment.settings import Settings
from comesh.deployment.values import MAX_TEXT, DocumentModel

MAX_REPAIRS = 8
SECTIONS = ("name", "settings", "nodes", "devices", "routines")
FREE_PREFIX = "x-"
"""Keys at the top that begin like this are the author's own, for anchors to be used elsewhere."""

_Model = TypeVar("_Model", bound=DocumentModel)


class Draft(msgspec.Struct, kw_only=True):
    name: str | None = None
    settings: Settings = msgspec.field(default_factory=Settings)
    nodes: dict[str, Node] = {}
    devices: dict[str, Device] = {}
    routines: dict[str, Routine] = {}
    own_settings: frozenset[str] = frozenset()
    """The settings that the document gives itself."""
    unreadable: set[tuple[str, str]] = set()
    """(section, id) of entries that are there but could not be read at all."""
    broken: set[Path] = set()
    broken_within: set[Path] = set()
    """Paths that have something broken at or below them."""

    def mark_broken(self, path: Path) -> None:
        self.broken.add(path)
        self.broken_within.update(path[:length] for length in range(len(path) + 1))

    def sound(self, *path: str | int) -> bool:
        """Nothing at, above or below this path was reported as wrong in form."""
        above = (path[:length] for length in range(len(path) + 1))
        return path not in self.broken_within and not any(one in self.broken for one in above)

    def names(self, section: str) -> list[str]:
        """Returns all ids of a section, also of entries that could not be read."""
        known: dict[str, Any] = getattr(self, section)
        return [*known, *(name for where, name in self.unreadable if where == section)]

    def exists(self, section: str, name: str) -> bool:
        known: dict[str, Any] = getattr(self, section)
        if name in known or (section, name) in self.unreadable or (section,) in self.broken:
            return True
        return any(suggested_id(one) == name for one in self.names(section))

    def device(self, name: str) -> Device | None:
        """The device of this id, or the one that was meant to have it."""
        return find(self.devices, name)


def draft_of(data: dict[str, Any], replaced: set[Path]) -> tuple[Draft, list[Complaint]]:
    """Read every part of the document that can be read; replaced is what was not even YAML."""
    draft = Draft()
    for path in replaced:
        draft.mark_broken(path)
    found = [
        complain(key, what=f"unknown key {quote(key)}", fix=did_you_mean(key, SECTIONS), at_key=True)
        for key in data
        if key not in SECTIONS and not key.startswith((FREE_PREFIX, "? line"))
    ]
    draft.name = _name(data.get("name"), found)
    own_settings = {} if data.get("settings") is None else data["settings"]
    draft.settings = _repaired(Settings, own_settings, ("settings",), draft, found) or Settings()
    draft.own_settings = frozenset(own_settings) if isinstance(own_settings, dict) else frozenset()
    draft.nodes = _entries(Node, data, "nodes", draft, found)
    draft.devices = _entries(Device, data, "devices", draft, found)
    draft.routines = _entries(Routine, data, "routines", draft, found)
    for complaint in found:
        draft.mark_broken(complaint.path)
    return draft, found


def _name(name: Any, found: list[Complaint]) -> str | None:
    match name:
        case None:
            return None
        case "":
            found.append(complain("name", what="the text is empty"))
        case str() if len(name) > MAX_TEXT:
            found.append(complain("name", what=f"the text is longer than {MAX_TEXT} characters"))
        case str():
            return name
        case _:
            found.append(complain("name", what=f"expected a text, got {quote(name)}", fix="put it in quotes"))
    return None


def _entries(
    model: type[_Model], data: dict[str, Any], section: str, draft: Draft, found: list[Complaint]
) -> dict[str, _Model]:
    entries = data.get(section)
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        fix = f"write {section}: and below it one entry per id"
        found.append(complain(section, what=f"expected a mapping by id, got {quote(entries)}", fix=fix))
        return {}
    read: dict[str, _Model] = {}
    for name, entry in entries.items():
        if name.startswith("? line"):
            continue
        repaired = _repaired(model, entry, (section, name), draft, found)
        if repaired is None:
            draft.unreadable.add((section, name))
        else:
            read[name] = repaired
    return read


def _repaired(
    model: type[_Model], data: Any, at: Path, draft: Draft, found: list[Complaint]
) -> _Model | None:
    """The entry without the parts that are wrong in form, each of which is reported; None if none is left."""
    for _ in range(MAX_REPAIRS):
        try:
            return model.model_validate(data)
        except ValidationError as wrong:
            fresh = complaints(model, data, wrong, at)
        for complaint in fresh:
            if complaint.path not in draft.broken_within and not _explained(complaint, fresh):
                found.append(complaint)
        for complaint in fresh:
            draft.mark_broken(complaint.path)
            data = None if data is None else _without(data, complaint.path[len(at) :])
        if data is None:
            return None
    return None


def _explained(complaint: Complaint, others: list[Complaint]) -> bool:
    """A key is only missing because it is misspelled, which is told already."""
    return any(
        other.path[:-1] == complaint.path[:-1]
        and (
            other.fix == f"did you mean '{complaint.path[-1]}'?"
            or other.fix.startswith(f"write {complaint.path[-1]}: ")
        )
        for other in others
    )


_PLACEHOLDER = Step(device="?", command="?")
"""Stands for a step that cannot be read, so that the others keep their index. It is broken: nobody looks."""


def _without(data: Any, path: Path) -> Any:
    """A copy of data without what is at path; None where the entry cannot do without."""
    match data, path:
        case dict(), (str() as key,):
            return {name: inner for name, inner in data.items() if name != key} if key in data else None
        case list(), (int(),):
            return None
        case dict(), ("do" as key, int() as index, *rest) if isinstance(data.get(key), list):
            steps = list(data[key])
            left = _without(steps[index], tuple(rest)) if rest else None
            steps[index] = _PLACEHOLDER if left is None else left
            return {**data, key: steps}
        case dict(), (str() as key, _, *_) if key not in data:
            return data
        case dict(), (str() as key, *rest):
            left = _without(data[key], tuple(rest))
            return {
                **{name: inner for name, inner in data.items() if name != key},
                **({} if left is None else {key: left}),
            }
        case _:
            return None
