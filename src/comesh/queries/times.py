"""Times and durations as people read them."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo


def zone_named(name: str) -> tzinfo | None:
    """The time zone of a document; None: that of this machine. UTC, where this machine does not know it."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return UTC


def clock(wall_ms: float, zone: tzinfo | None = None) -> str:
    """The time of day to the millisecond. Zone None: that of this machine; UTC is marked by a Z."""
    return f"{day_time(wall_ms, zone)}.{int(wall_ms % 1000):03d}" + ("Z" if zone is UTC else "")


def day_time(wall_ms: float, zone: tzinfo | None = None) -> str:
    """The same to the second."""
    return f"{datetime.fromtimestamp(wall_ms // 1000, UTC).astimezone(zone):%H:%M:%S}"


def differs_here(wall_ms: float, zone: tzinfo | None) -> bool:
    """Whether clocks of this machine show another time than those of the zone."""
    return day_time(wall_ms, zone) != day_time(wall_ms)


def duration_text(took_ms: float) -> str:
    """As short as it may be: 0.2 ms, 35 ms, 1.2 s, 61 s, 12 min."""
    if took_ms < 10:
        return f"{took_ms:.1f} ms"
    if took_ms < 1000:
        return f"{took_ms:.0f} ms"
    if took_ms < 10_000:
        return f"{took_ms / 1000:.1f} s".replace(".0 s", " s")
    if took_ms < 180_000:
        return f"{took_ms / 1000:.0f} s"
    return f"{took_ms / 60_000:.0f} min"
