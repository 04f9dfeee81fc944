"""When a schedule fires: `every: 15m`, `at: [07:30, sunset-30m]`, `cron: 0 6 * * mon-fri`.

`every` counts from midnight UTC of 1 January 1970, so that all nodes agree on the instants. `at` and
`cron` are local times. A local time that the change to summer time skips fires at the corresponding
instant after the gap; one that occurs twice fires once.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec
from astral import Observer
from astral.sun import sunrise, sunset
from cronsim import CronSim, CronSimError

from comesh.deployment.clauses.vocabulary import CLOCK_TIME
from comesh.deployment.model import DAYS, Routine
from comesh.deployment.problems import WrongError, did_you_mean, quote
from comesh.deployment.settings import Location
from comesh.deployment.units import parse_duration_ms

MAX_CRON_CHARACTERS = 100
LOOKAHEAD_DAYS = 366
_DAYS_BY_NAME = {"weekdays": "mon-fri", "workdays": "mon-fri", "weekend": "sat-sun", "weekends": "sat-sun"}
"""A schedule that does not fire within this time (a cron line: within 50 years) never does."""

_SUN = re.compile(r"(sunrise|sunset)(?: ?([+-]) ?(.+))?", re.ASCII)
_CRON_FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day", "1 to 31, or L for the last"),
    ("month", "1 to 12, or jan to dec"),
    ("weekday", "0 to 7, or sun to sat"),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Every(msgspec.Struct, frozen=True):
    period_ms: int


class ClockTime(msgspec.Struct, frozen=True):
    hour: int
    minute: int


class SunTime(msgspec.Struct, frozen=True):
    sunset: bool
    offset_ms: int


class At(msgspec.Struct, frozen=True):
    times: tuple[ClockTime | SunTime, ...]
    days: frozenset[int]
    """0 is Monday."""


class Cron(msgspec.Struct, frozen=True):
    line: str


Schedule = Every | At | Cron


def schedule_of(routine: Routine) -> Schedule | None:
    """The schedule of a routine, if it has one. Raises WrongError."""
    if routine.every_ms is not None:
        return Every(routine.every_ms)
    if routine.at is not None:
        return At(tuple(parse_time(text) for text in routine.at), parse_days(routine.days))
    if routine.cron is not None:
        return Cron(parse_cron(routine.cron))
    return None


def parse_time(text: str) -> ClockTime | SunTime:
    if CLOCK_TIME.fullmatch(text):
        return ClockTime(int(text[:2]), int(text[3:]))
    found = _SUN.fullmatch(text)
    if found is None:
        raise WrongError(f"{quote(text)} is not a time of day", "write it like 07:30, sunrise or sunset-30m")
    offset_ms = parse_duration_ms(found.group(3)) if found.group(3) else 0
    if offset_ms > 12 * 3_600_000:
        raise WrongError(f"{quote(text)} is more than 12 hours from the sun's time")
    return SunTime(found.group(1) == "sunset", -offset_ms if found.group(2) == "-" else offset_ms)


def parse_days(days: tuple[str, ...] | None) -> frozenset[int]:
    if days is None:
        return frozenset(range(7))
    found: set[int] = set()
    for text in days:
        first, dash, last = (part.strip() for part in text.partition("-"))
        for day in (first, last) if dash else (first,):
            if day not in DAYS:
                raise WrongError(f"{quote(text)} is not a day", _right_days(text, day))
        begin, end = DAYS.index(first), DAYS.index(last if dash else first)
        found.update((begin + offset) % 7 for offset in range((end - begin) % 7 + 1))
    return frozenset(found)


def _right_days(text: str, day: str) -> str:
    """Says how to write what is not a day. `mon, wed` and `Monday to Friday` name more than one: none is
    lost."""
    words = [meant for word in re.findall(r"[a-z]+", text.lower()) if (meant := _day_meant(word))]
    if len(words) > 1:
        joined = "-".join(words) if "-" in text or " to " in text else f"[{', '.join(words)}]"
        return f"write days: {joined}"
    if text.lower() in _DAYS_BY_NAME:
        return f"write days: {_DAYS_BY_NAME[text.lower()]}"
    return f"write {words[0]}" if words and day == text else did_you_mean(day, DAYS)


def _day_meant(word: str) -> str:
    """The day that begins like a word, such as `mo` or `Monday`; empty: none."""
    return next((day for day in DAYS if len(word) > 1 and (word.startswith(day) or day.startswith(word))), "")


def parse_cron(line: str) -> str:
    if len(line) > MAX_CRON_CHARACTERS or not line.isascii() or len(line.split()) != 5:
        raise WrongError(
            f"{quote(line)} is not a cron line", "write five fields: minute hour day month weekday"
        )
    fields = line.split()
    wrong = [
        f"the {name} {quote(fields[index])} (possible: {possible})"
        for index, (name, possible) in enumerate(_CRON_FIELDS)
        if not _is_cron(" ".join(["*"] * index + [fields[index]] + ["*"] * (4 - index)))
    ]
    if wrong:
        what = f"{quote(line)} is not a cron line: wrong is {', and '.join(wrong)}"
        raise WrongError(what, "the fields are minute hour day month weekday")
    if not _is_cron(line):
        raise WrongError(f"{quote(line)} never fires", "its day never comes in that month")
    return line


def _is_cron(line: str) -> bool:
    try:
        CronSim(line, datetime(2026, 1, 1))
    except CronSimError:
        return False
    return True


def next_instant(
    schedule: Schedule, after: datetime, zone: ZoneInfo, location: Location | None
) -> datetime | None:
    """The first instant after `after` (which knows its time zone), in UTC; None: never."""
    match schedule:
        case Every():
            passed_ms = (after - _EPOCH) // timedelta(milliseconds=1)
            due_ms = (passed_ms // schedule.period_ms + 1) * schedule.period_ms
            return _EPOCH + timedelta(milliseconds=due_ms)
        case Cron():
            found = next(CronSim(schedule.line, after.astimezone(zone)), None)
            return found.astimezone(UTC) if found is not None else None
        case At():
            return _next_time(schedule, after, zone, location)


def _next_time(schedule: At, after: datetime, zone: ZoneInfo, location: Location | None) -> datetime | None:
    first = after.astimezone(zone).date() - timedelta(days=1)
    best: datetime | None = None
    for offset in range(LOOKAHEAD_DAYS + 2):
        day = first + timedelta(days=offset)
        if best is not None and day > best.astimezone(zone).date() + timedelta(days=1):
            break
        if day.weekday() in schedule.days:
            for instant in _instants(schedule, day, zone, location):
                if instant > after and (best is None or instant < best):
                    best = instant
    return best


def _instants(schedule: At, day: date, zone: ZoneInfo, location: Location | None) -> Iterator[datetime]:
    for when in schedule.times:
        match when:
            case ClockTime():
                local = datetime.combine(day, time(when.hour, when.minute), tzinfo=zone)
                yield local.astimezone(UTC)
            case SunTime() if location is not None:
                observer = Observer(location.latitude, location.longitude)
                try:
                    found = (sunset if when.sunset else sunrise)(observer, date=day, tzinfo=zone)
                except ValueError:
                    continue
                yield found.astimezone(UTC) + timedelta(milliseconds=when.offset_ms)
            case SunTime():
                continue
