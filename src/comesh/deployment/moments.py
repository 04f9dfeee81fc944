"""The readings of a moment: the local time as `now`, and `sun.up` where there is a location.

All of it is constant within a minute. So nodes whose clocks differ by less agree nearly always, a clause that
names the time needs looking at once a minute only, and asking often costs nothing.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from astral import Observer, refraction_at_zenith
from astral.sun import SUN_APPARENT_RADIUS, zenith

from comesh.core.program import Moment
from comesh.core.values import Value
from comesh.deployment.clauses.vocabulary import WEEKDAYS, ReadingName
from comesh.deployment.settings import Location

MINUTE_MS = 60_000
_REMEMBERED_MINUTES = 8
"""Nodes of one simulation share a moment, and their clocks are not equal."""
_HORIZON = 90.0 + SUN_APPARENT_RADIUS
_SET_ZENITH = _HORIZON + refraction_at_zenith(_HORIZON)
"""Zenith angle of the sun's middle when its upper rim is at the horizon, as at sunrise and sunset."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(zone: ZoneInfo, location: Location | None) -> Moment:
    """The values of `now` and `sun` by wall time; none, so that they are unknown, beyond the calendar."""

    @lru_cache(maxsize=_REMEMBERED_MINUTES)
    def in_minute(minute: int) -> Mapping[ReadingName, Value | None]:
        try:
            at = (_EPOCH + timedelta(minutes=minute)).astimezone(zone)
        except OverflowError:
            return {}
        return _values(at, location)

    return lambda wall_ms: in_minute(int(wall_ms // MINUTE_MS))


def _values(at: datetime, location: Location | None) -> dict[ReadingName, Value | None]:
    values: dict[ReadingName, Value | None] = {
        ("now", "time"): f"{at.hour:02}:{at.minute:02}",
        ("now", "hour"): at.hour,
        ("now", "minute"): at.minute,
        ("now", "weekday"): WEEKDAYS[at.weekday()],
        ("now", "day"): at.day,
        ("now", "month"): at.month,
    }
    if location is not None:
        observer = Observer(location.latitude, location.longitude)
        values["sun", "up"] = zenith(observer, at, with_refraction=False) < _SET_ZENITH
    return values
