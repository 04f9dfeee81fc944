"""Devices: each has a place, its parts fit each other, and no secret stands in the open."""

import re
from collections.abc import Iterator
from statistics import median_low

from comesh.core.plan import Place
from comesh.deployment.draft import Draft
from comesh.deployment.id_names import find, legal_names
from comesh.deployment.model import Command, Device
from comesh.deployment.problems import Complaint, Path, WrongError, complain, did_you_mean, quote, warn
from comesh.deployment.units import show_length
from comesh.deployment.values import Kind

FAR_MM = 20_000_000
"""20 km from the middle of everything else is more likely a wrong unit than a mesh."""
FAR_TIMES = 20
"""Factor of far: a place this many times as far away as half of the others, if few places are."""
NEAR_MM = 500_000
"""But not within this distance of the middle."""
KM = 1_000_000
_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "token", "secret", "key", "apikey", "pin", "psk"}
)
_URL_WITH_PASSWORD = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/@\s]*:[^/@\s]+@")


def have_a_place(draft: Draft) -> Iterator[Complaint]:
    for device_id, device in draft.devices.items():
        path: Path = ("devices", device_id)
        if device.on is not None and not draft.exists("nodes", device.on):
            fix = did_you_mean(device.on, legal_names(draft.names("nodes")))
            yield complain(*path, "on", what=f"unknown node {quote(device.on)}", fix=fix)
        if (
            device.place is None
            and device.on is None
            and draft.sound(*path, "place")
            and draft.sound(*path, "on")
        ):
            fix = "write place: [x, y, z], or on: with the node that hosts it"
            yield complain(*path, what="the device has no place", fix=fix, at_key=True)


def near_each_other(draft: Draft) -> Iterator[Complaint]:
    places: dict[Path, Place] = {("nodes", name): node.place for name, node in draft.nodes.items()}
    for name, device in draft.devices.items():
        if device.place is not None:
            places["devices", name] = device.place
    if len(places) < 3:
        return
    middle = Place(
        *(median_low(axis) for axis in zip(*(_axes(place) for place in places.values()), strict=True))
    )
    far_mm = {
        path: max(abs(one - other) for one, other in zip(_axes(place), _axes(middle), strict=True))
        for path, place in places.items()
    }
    usual_mm = max(median_low(far_mm.values()) * FAR_TIMES, NEAR_MM)
    astray = [path for path in places if far_mm[path] > usual_mm]
    few = len(astray) <= max(1, len(places) // 10)
    for path in places:
        if far_mm[path] > FAR_MM or (few and path in astray):
            away = show_length(far_mm[path]) if far_mm[path] < KM else f"{round(far_mm[path] / KM)} km"
            what = f"is {away} away from the middle of the deployment"
            yield warn(*path, "place", what=what, fix="is the unit right?")


def _axes(place: Place) -> tuple[int, int, int]:
    return place.x_mm, place.y_mm, place.z_mm


def parts_fit(draft: Draft) -> Iterator[Complaint]:
    for device_id, device in draft.devices.items():
        path: Path = ("devices", device_id)
        if device.event and not device.readings and draft.sound(*path, "readings"):
            fix = "name what is reported, such as readings: {press: [single, double, long]}"
            yield complain(*path, "event", what="an event device needs a reading", fix=fix)
        for name, command in device.commands.items():
            targets = [command.sets] if isinstance(command.sets, str) else list(command.sets or ())
            if all(draft.sound(*path, "readings", target) for target in targets):
                yield from _sets_fit(device, command, targets, (*path, "commands", name, "sets"))
            if command.toggles is not None and draft.sound(*path, "readings", command.toggles):
                yield from _toggles_fits(device, command, command.toggles, (*path, "commands", name))


def _sets_fit(device: Device, command: Command, targets: list[str], path: Path) -> Iterator[Complaint]:
    for target in targets:
        if find(device.readings, target) is None:
            fix = did_you_mean(target, legal_names(device.readings))
            yield complain(*path, what=f"the device has no reading {quote(target)}", fix=fix)
            return
        if target not in device.readings:
            return
    if isinstance(command.sets, str):
        if command.argument is None:
            what = f"the command takes nothing that {quote(command.sets)} could become"
            yield complain(
                *path, what=what, fix=f"write sets: {{{command.sets}: VALUE}}, or give it an argument"
            )
        elif command.argument.kind is not device.readings[command.sets].kind:
            what = f"the argument and the reading {quote(command.sets)} are of different types"
            yield complain(*path, what=what, fix="make them the same")
        return
    for target, value in (command.sets or {}).items():
        if device.readings[target].fit(value) is None:
            what = f"{quote(value)} is never the reading {quote(target)}"
            yield complain(*path, target, what=what, fix=f"it is {device.readings[target].describe()}")


def _toggles_fits(device: Device, command: Command, target: str, path: Path) -> Iterator[Complaint]:
    reading = find(device.readings, target)
    if reading is None:
        fix = did_you_mean(target, legal_names(device.readings))
        yield complain(*path, "toggles", what=f"the device has no reading {quote(target)}", fix=fix)
    elif reading.kind is not Kind.BOOL:
        what = f"only true or false can be toggled, and {quote(target)} is {reading.describe()}"
        yield complain(*path, "toggles", what=what, fix="write what the command sets, as sets:")
    if command.sets is not None:
        yield complain(*path, "toggles", what="a command either sets or toggles", fix="remove one of them")
    elif command.argument is not None:
        yield complain(
            *path, "argument", what="a command that toggles takes no argument", fix="remove it, or use sets:"
        )


def no_secrets_in_the_open(draft: Draft) -> Iterator[Complaint]:
    for device_id, device in draft.devices.items():
        for path, wrong in _literal_secrets(device.driver.options):
            yield complain("devices", device_id, "driver", *path, what=wrong.what, fix=wrong.fix)


def _literal_secrets(options: object, path: Path = ()) -> Iterator[tuple[Path, WrongError]]:
    """Where driver options hold what looks like a secret in the open."""
    match options:
        case dict():
            for name, inner in options.items():
                yield from _literal_secrets(inner, (*path, str(name)))
        case list():
            for index, inner in enumerate(options):
                yield from _literal_secrets(inner, (*path, index))
        case str() if _URL_WITH_PASSWORD.match(options):
            advice = "give user and password as options of their own, the password as !secret NAME"
            yield path, WrongError("a password does not belong in an address", advice)
        case str() | int() | float() if not isinstance(options, bool):
            key = next((step for step in reversed(path) if isinstance(step, str)), "")
            if re.split(r"[_\-. ]", key.lower())[-1] in _SECRET_WORDS:
                advice = f"write {key}: !secret NAME"
                yield path, WrongError(f"{quote(key)} looks like a secret in the open", advice)
        case _:
            return
