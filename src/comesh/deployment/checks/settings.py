"""Settings: enough nodes for f, times that fit each other, a time zone that exists."""

import zoneinfo
from collections.abc import Iterator
from typing import Final

from comesh.deployment.draft import Draft
from comesh.deployment.problems import Complaint, complain, did_you_mean, quote, warn
from comesh.deployment.units import show_duration

MIN_LEASE_MS = 100
MIN_PERIOD_MS = 50
LEASES_PER_EPOCH = 10
HOPS_PER_LEASE = 4 * 2 * 2.4
"""A lease should cover four round trips to a quorum, which the paper finds 2.4 hops away."""


PLACE_OF_ABBREVIATION: Final = {
    **dict.fromkeys(("CEST", "MEZ", "MESZ"), "Europe/Berlin"),
    "EEST": "Europe/Athens",
    "WEST": "Europe/Lisbon",
    "BST": "Europe/London",
    "EDT": "America/New_York",
    **dict.fromkeys(("CST", "CDT"), "America/Chicago"),
    "MDT": "America/Denver",
    **dict.fromkeys(("PST", "PDT"), "America/Los_Angeles"),
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
}
"""Abbreviations that people write, each with a place in that zone."""
MAX_ABBREVIATION: Final = 5
"""Characters."""


def enough_nodes(draft: Draft) -> Iterator[Complaint]:
    count = len(draft.names("nodes"))
    if not draft.sound("settings", "f") or ("nodes",) in draft.broken:
        return
    f = draft.settings.f
    if count == 0:
        what = "there are no nodes, so no group can look after anything"
        yield complain("nodes", what=what, fix="name at least one computer that runs CoMesh")
    elif 2 * f + 1 > count:
        what = f"f: {f} needs groups of {2 * f + 1} nodes, but there are only {count}"
        possible = (count - 1) // 2
        yield complain("settings", "f", what=what, fix=f"set f: {possible}, or have {2 * f + 1} nodes")
    elif f == 0:
        what = "f: 0 means that each cluster stands still when its one node fails"
        yield warn("settings", "f", what=what, fix=survive_one(count))


def survive_one(nodes: int) -> str:
    """Says what to write in place of f: 0."""
    return "set f: 1" if nodes >= 3 else "have 3 nodes, and set f: 1"


def times_fit(draft: Draft) -> Iterator[Complaint]:
    settings = draft.settings
    shown = show_duration
    for key, value_ms, min_ms in (
        ("lease", settings.lease_ms, MIN_LEASE_MS),
        ("monitoring", settings.monitoring_ms, MIN_PERIOD_MS),
        ("membership_period", settings.membership_period_ms, MIN_PERIOD_MS),
        ("command_timeout", settings.command_timeout_ms, MIN_PERIOD_MS),
        ("hop", settings.hop_ms, 1),
    ):
        if value_ms < min_ms:
            yield complain(
                "settings", key, what=f"{shown(value_ms)} is too short", fix=f"at least {shown(min_ms)}"
            )
    if not draft.sound("settings", "epoch"):
        return
    epoch = shown(settings.epoch_ms)
    short = draft.sound("settings", "lease") and settings.epoch_ms < LEASES_PER_EPOCH * settings.lease_ms
    if short and "lease" in draft.own_settings and "epoch" not in draft.own_settings:
        what = f"{LEASES_PER_EPOCH} leases of {shown(settings.lease_ms)} are longer than an epoch of {epoch}"
        fix = f"at most {shown(settings.epoch_ms // LEASES_PER_EPOCH)}, or lengthen epoch"
        yield complain("settings", "lease", what=what, fix=fix)
    elif short:
        what = f"an epoch of {epoch} is shorter than {LEASES_PER_EPOCH} leases of {shown(settings.lease_ms)}"
        fix = f"at least {shown(LEASES_PER_EPOCH * settings.lease_ms)}, or shorten lease"
        yield complain("settings", "epoch", what=what, fix=fix)
    if settings.monitoring_ms > settings.epoch_ms:
        monitoring = shown(settings.monitoring_ms)
        what = f"devices are asked every {monitoring}, less often than groups change ({epoch})"
        yield complain("settings", "monitoring", what=what, fix="shorten monitoring, or lengthen epoch")
    if MIN_LEASE_MS <= settings.lease_ms < HOPS_PER_LEASE * settings.hop_ms:
        lease, hop = shown(settings.lease_ms), shown(settings.hop_ms)
        what = f"a lease of {lease} is under four round trips at {hop} a hop"
        fix = f"at least {shown(int(HOPS_PER_LEASE * settings.hop_ms))} avoids needless elections"
        yield warn("settings", "lease", what=what, fix=fix)


def time_zone_exists(draft: Draft) -> Iterator[Complaint]:
    name = draft.settings.time_zone
    if not zone_exists(name):
        fix = _right_zone(name)
        yield complain("settings", "time_zone", what=f"unknown time zone {quote(name)}", fix=fix)


def _right_zone(name: str) -> str:
    if name.upper() in PLACE_OF_ABBREVIATION:
        place = PLACE_OF_ABBREVIATION[name.upper()]
        return f"an abbreviation does not say when clocks change; write a place, such as {place}"
    if name.isupper() and len(name) <= MAX_ABBREVIATION:
        return "abbreviations are not known; write a place, such as Europe/Zurich"
    zones = zoneinfo.available_timezones()
    in_europe = [zone for zone in zones if zone.startswith("Europe/")]
    near = did_you_mean(name, in_europe)
    return near or did_you_mean(name, zones) or "write a place, such as Europe/Zurich"


def zone_exists(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
