"""Triggers: clauses that name what exists and compare like with like, schedules that ever fire."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from comesh.deployment.checks.settings import zone_exists
from comesh.deployment.clauses.compiler import (
    Clause,
    WrongClauseError,
    compile_clause,
    compile_event_clause,
)
from comesh.deployment.clauses.parser import parse
from comesh.deployment.clauses.ranges import doubts
from comesh.deployment.clauses.vocabulary import Readings, vocabulary
from comesh.deployment.draft import Draft
from comesh.deployment.id_names import suggested_id
from comesh.deployment.model import Routine
from comesh.deployment.problems import Complaint, Path, Severity, WrongError, complain, quote
from comesh.deployment.schedules import At, SunTime, next_instant, schedule_of
from comesh.deployment.values import ValueType

_SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class _AnyReading(dict[str, ValueType | None]):
    """The readings of a device that could not be read: whatever a clause names may be among them."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> None:
        return None


def readings_of(draft: Draft) -> Readings:
    """Returns all readings that the clauses of a draft can name."""
    devices: dict[str, dict[str, ValueType | None]] = {}
    for name, device in draft.devices.items():
        devices[name] = dict(device.readings)
    for path in draft.broken:
        match path:
            case ("devices", str() as name, "readings", str() as reading, *_) if name in devices:
                devices[name].setdefault(reading, None)
            case _:
                pass
    for readings in devices.values():
        for reading in list(readings):
            readings.setdefault(suggested_id(reading) or reading, readings[reading])
    for name in list(devices):
        devices.setdefault(suggested_id(name) or name, devices[name])
    known = dict(vocabulary(devices, sun=_has_location(draft)))
    for name in draft.names("devices"):
        if name not in draft.devices or ("devices", name, "readings") in draft.broken:
            known[name] = _AnyReading()
            known.setdefault(suggested_id(name) or name, _AnyReading())
    return known


def clauses_fit(draft: Draft) -> Iterator[Complaint]:
    if ("devices",) in draft.broken:
        return
    readings = readings_of(draft)
    for routine_id, routine in draft.routines.items():
        path: Path = ("routines", routine_id)
        if routine.when is not None and draft.sound(*path, "when"):
            yield from _when_fits(draft, routine.when, readings, (*path, "when"))
        if routine.on_event is not None and draft.sound(*path, "on_event"):
            yield from _event_fits(draft, routine.on_event, readings, (*path, "on_event"))


def _when_fits(draft: Draft, source: str, readings: Readings, path: Path) -> Iterator[Complaint]:
    try:
        clause = compile_clause(source, readings)
    except WrongClauseError as wrong:
        yield from _mistakes(draft, wrong, path)
        return
    for device, reading in sorted(clause.reads):
        found = draft.device(device)
        if reading != "up" and found is not None and found.event:
            what = f"{quote(device)} reports events, which are over at once"
            yield complain(*path, what=what, fix=f"write on_event: {device}.{reading} in place of when")
    if not clause.reads:
        yield complain(*path, what="the clause names no device and no time, so it never changes")
    yield from _doubtful(source, readings, path)


def _event_fits(draft: Draft, source: str, readings: Readings, path: Path) -> Iterator[Complaint]:
    try:
        clause = compile_event_clause(source, readings)
    except WrongClauseError as wrong:
        yield from _mistakes(draft, wrong, path)
        return
    yield from _one_event_device(draft, clause, path)
    yield from _doubtful(source, readings, path)


def _doubtful(source: str, readings: Readings, path: Path) -> Iterator[Complaint]:
    """Yields warnings about clauses that are true or false whatever happens."""
    for doubt in doubts(parse(source), readings):
        yield Complaint(
            path=path, what=doubt.what, fix=doubt.fix, offset=doubt.offset, severity=Severity.WARNING
        )


def _one_event_device(draft: Draft, clause: Clause, path: Path) -> Iterator[Complaint]:
    devices = sorted({device for device, _ in clause.reads})
    if len(devices) != 1:
        what = f"an event comes from one device, but {', '.join(devices) or 'none'} is named"
        yield complain(*path, what=what, fix="name the readings of one device with event: true")
        return
    device = draft.device(devices[0])
    if devices[0] in ("now", "sun") or (device is not None and not device.event):
        what = f"{quote(devices[0])} does not report events"
        fix = "use when:" if device is None else f"use when:, or add event: true to devices.{devices[0]}"
        yield complain(*path, what=what, fix=fix)
    elif (devices[0], "up") in clause.reads:
        yield complain(*path, what=f"'{devices[0]}.up' is not an event", fix="use when:")


def _has_location(draft: Draft) -> bool:
    """Says if there is a location, even a wrong one, which was reported once, where it is."""
    return draft.settings.location is not None or "location" in draft.own_settings


def _mistakes(draft: Draft, wrong: WrongClauseError, path: Path) -> Iterator[Complaint]:
    for mistake in wrong.mistakes:
        fix = mistake.fix
        if mistake.what == "unknown device 'sun'" and not _has_location(draft):
            fix = "set settings.location to use the sun"
        yield Complaint(path=path, what=mistake.what, fix=fix, offset=mistake.offset)


def schedules_fire(draft: Draft) -> Iterator[Complaint]:
    name = draft.settings.time_zone
    zone = ZoneInfo(name if zone_exists(name) else "UTC")
    for routine_id, routine in draft.routines.items():
        yield from _schedule_fires(draft, routine, ("routines", routine_id), zone)


def _schedule_fires(draft: Draft, routine: Routine, path: Path, zone: ZoneInfo) -> Iterator[Complaint]:
    key = "cron" if routine.cron is not None else "at"
    try:
        schedule = schedule_of(routine)
    except WrongError as wrong:
        yield complain(*path, "days" if "is not a day" in wrong.what else key, what=wrong.what, fix=wrong.fix)
        return
    if schedule is None or routine.every_ms == 0:
        return
    location = draft.settings.location
    if (
        isinstance(schedule, At)
        and location is None
        and any(isinstance(one, SunTime) for one in schedule.times)
    ):
        what = "sunrise and sunset need to know where on Earth this is"
        yield complain(*path, "at", what=what, fix="set settings.location")
    elif next_instant(schedule, _SOME_DAY, zone, location) is None:
        fix = "its day never comes in that month" if key == "cron" else ""
        yield complain(*path, key, what="the schedule never fires", fix=fix)
