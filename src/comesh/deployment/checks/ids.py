"""Ids: how they are written, which are taken, and that no two things share one."""

from collections.abc import Iterator

from comesh.deployment.draft import Draft
from comesh.deployment.id_names import MAX_ID_CHARACTERS, TAKEN, is_id, suggested_id
from comesh.deployment.problems import Complaint, Path, complain, quote

_KINDS = {"nodes": "a node", "devices": "a device", "routines": "a routine"}


def well_formed(draft: Draft) -> Iterator[Complaint]:
    for section in _KINDS:
        for name in draft.names(section):
            yield from _check(name, (section, name))
    for device_id, device in draft.devices.items():
        for reading in device.readings:
            path = ("devices", device_id, "readings", reading)
            yield from _check(reading, path)
            if reading == "up":
                fix = "every device has it: it says whether the device answers"
                yield complain(*path, what="the reading 'up' is taken", fix=fix, at_key=True)
        for command in device.commands:
            yield from _check(command, ("devices", device_id, "commands", command))


def _check(name: str, path: Path) -> Iterator[Complaint]:
    if not is_id(name):
        what = f"{quote(name)} cannot be an id"
        fix = "use small letters, digits and _, beginning with a letter"
        better = suggested_id(name)
        if better is not None:
            fix += f", such as {better}"
        yield complain(*path, what=what, fix=fix, at_key=True)
    elif len(name) > MAX_ID_CHARACTERS:
        yield complain(*path, what=f"the id is longer than {MAX_ID_CHARACTERS} characters", at_key=True)
    elif name in TAKEN:
        what = f"the id {quote(name)} is a word of the clause language or of CoMesh"
        yield complain(*path, what=what, fix=f"choose another, such as {name}_1", at_key=True)


def not_shared(draft: Draft) -> Iterator[Complaint]:
    """Checks that one id names one thing, in clauses, on the command line and in logs."""
    seen: dict[str, str] = {}
    for section in _KINDS:
        for name in draft.names(section):
            if name in seen:
                what = f"the id {quote(name)} is also the id of {_KINDS[seen[name]]}"
                yield complain(section, name, what=what, fix="rename one of them", at_key=True)
            else:
                seen[name] = section
