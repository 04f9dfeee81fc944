"""Finds problems of a mesh from what all nodes report of themselves and of each other, with advice.

Pure: from what was answered to findings. `doctor.py` asks and shows.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from comesh.core.ids import NodeId
from comesh.queries.answers import Checked, GroupSeen, Hears, MeshHealth

DAY_MS: Final = 86_400_000.0
WARN_DAYS: Final = 30.0
"""Days before a certificate ends in which it is a finding."""
CLOCK_MS: Final = 1000.0
"""Maximum certain distance of a clock from the median; a greater one is a finding."""
LOW_DISK_BYTES: Final = 64 * 1024 * 1024
LOW_DISK_SHARE: Final = 0.03
LARGE_JOURNAL_BYTES: Final = 64 * 1024 * 1024
LARGE_NODE_KB: Final = 200 * 1024
"""Memory of a node that is a finding: the service that `comesh service` prints may have 256 MB."""
LOW_MEMORY_KB: Final = 50 * 1024
SLOW_MS: Final = 500.0
"""Round trip that is a finding."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    about: str
    """One of clock, certificate, port, disk, memory, version, reach, group, node."""
    what: str
    advice: str


def examine(health: MeshHealth, groups: Iterable[GroupSeen], trouble: Iterable[str] = ()) -> list[Finding]:
    """Returns all findings. trouble: what nodes complain of by themselves."""
    answered = {node: one for node, one in health.nodes.items() if one is not None}
    found = [
        *_silent(health),
        *_clocks(answered),
        *_certificates(answered, health.as_of_ms),
        *_disks(answered),
        *_memory(answered),
        *_versions(answered),
        *_reach(health, answered),
        *_groups(groups, answered),
    ]
    return [*found, *(Finding(about="node", what=what, advice=_advice(what)) for what in trouble)]


_ADVICE: Final = {
    "shows a revoked certificate": "somebody uses keys that you revoked: if that is a machine of yours, give "
    "it new ones: comesh keys node NAME --force",
    "is not trusted any more": "copy it a certificate of the new authority: comesh keys rotate NAME",
    "new keys are not used": "copy the three files there again: they do not fit together",
    "clock": "set the clock of that machine, or let its time service reach a server",
    "disk": "make room, or replace the disk: until it can write, the node acknowledges nothing",
    "comesh keys": "do what it says",
    "remove their data directories": "do what it says",
}
"""Advice by words of the trouble; the first that fits."""


def _advice(trouble: str) -> str:
    fitting = (advice for words, advice in _ADVICE.items() if words in trouble)
    return next(fitting, "look at the log of that node; what is not mended there is worth a report")


def median_offset_ms(answered: Iterable[Checked]) -> float:
    """Returns the median of all clocks, relative to that of the asked node."""
    return statistics.median(one.offset_ms for one in answered)


def _silent(health: MeshHealth) -> Iterator[Finding]:
    asked = health.nodes.get(health.asked)
    for node, why in health.silent.items():
        hears = None if asked is None else asked.said.hears.get(node)
        yield Finding(
            about="node",
            what=f"{node}: {why}, as {health.asked} knows"
            + (f"; {hears.why}" if hears and hears.why else ""),
            advice="look at its machine, its log, and whether it is reached at its address",
        )


def _clocks(answered: dict[NodeId, Checked]) -> Iterator[Finding]:
    median_ms = median_offset_ms(answered.values())
    for node, one in answered.items():
        off_ms = one.offset_ms - median_ms
        if abs(off_ms) - one.within_ms > CLOCK_MS:
            way = "ahead of" if off_ms > 0 else "behind"
            yield Finding(
                about="clock",
                what=f"{node}: its clock is {abs(off_ms) / 1000:.1f} s {way} the median of all",
                advice="set it, or let the time service of that machine reach a server",
            )
        if one.said.clock_source != "own":
            yield Finding(
                about="clock",
                what=f"{node}: it does not go by its own clock ({one.said.clock_source})",
                advice="set the clock of that machine",
            )


def _certificates(answered: dict[NodeId, Checked], now_ms: float) -> Iterator[Finding]:
    for node, one in answered.items():
        for whose, ends_ms, again in (
            ("its certificate", one.said.certificate_ends_ms, f"comesh keys node {node} --force"),
            ("the authority's certificate", one.said.authority_ends_ms, "comesh keys rotate --authority"),
        ):
            days = (ends_ms - now_ms) / DAY_MS
            if days < WARN_DAYS:
                when = f"ends in {days:.0f} days" if days > 0 else f"ended {-days:.0f} days ago"
                yield Finding(
                    about="certificate", what=f"{node}: {whose} {when}", advice=f"renew it: {again}"
                )


def _disks(answered: dict[NodeId, Checked]) -> Iterator[Finding]:
    for node, one in answered.items():
        said = one.said
        free, disk = size(said.data_free_bytes), size(said.data_disk_bytes)
        if said.data_free_bytes < max(LOW_DISK_BYTES, LOW_DISK_SHARE * said.data_disk_bytes):
            yield Finding(
                about="disk",
                what=f"{node}: {free} of {disk} left at {said.data}",
                advice="make room: a node that cannot write acknowledges nothing",
            )
        if said.journal_bytes > LARGE_JOURNAL_BYTES:
            yield Finding(
                about="disk",
                what=f"{node}: its journal has {size(said.journal_bytes)}",
                advice="a journal is compacted by itself; if it grows on, see the log for errors of the disk",
            )


def _memory(answered: dict[NodeId, Checked]) -> Iterator[Finding]:
    for node, one in answered.items():
        said = one.said
        if said.memory_kb > LARGE_NODE_KB:
            yield Finding(
                about="memory",
                what=f"{node}: the process has {said.memory_kb / 1024:.0f} MB",
                advice="restart it if it grows; its service ends it at MemoryMax",
            )
        if 0 < said.memory_free_kb < LOW_MEMORY_KB:
            yield Finding(
                about="memory",
                what=f"{node}: its machine has {said.memory_free_kb / 1024:.0f} MB left",
                advice="see what else runs there",
            )


def _versions(answered: dict[NodeId, Checked]) -> Iterator[Finding]:
    software = sorted({one.said.software for one in answered.values()})
    if len(software) > 1:
        yield Finding(
            about="version",
            what="nodes run different software: " + _who(answered, lambda one: one.said.software),
            advice="bring all to the newest, one by one",
        )
    deployments = {(one.said.version, one.said.document) for one in answered.values()}
    if len(deployments) > 1:
        yield Finding(
            about="version",
            what="nodes go by different documents: "
            + _who(answered, lambda one: f"version {one.said.version} ({one.said.document[:8]})"),
            advice="a newer version spreads within seconds; if it stays so, they began with different ones: "
            "stop the few, remove their data directories, and start them again",
        )


def _reach(health: MeshHealth, answered: dict[NodeId, Checked]) -> Iterator[Finding]:
    """Yields findings about each pair of nodes that answered, in both directions."""
    for node, one in answered.items():
        for other, hears in one.said.hears.items():
            if other not in answered:
                continue  # said already
            if not hears.living:
                yield Finding(
                    about="reach",
                    what=f"{node} does not hear {other}" + (f": {hears.why}" if hears.why else ""),
                    advice=f"is UDP open from {node} to {_where(hears, other)}, and back?",
                )
            elif not hears.connected and hears.why:
                yield Finding(
                    about="reach",
                    what=f"{node} reaches {other} only through others: {hears.why}",
                    advice=f"is UDP open from {node} to {_where(hears, other)}, and back?",
                )
            elif hears.round_trip_ms is not None and hears.round_trip_ms > SLOW_MS:
                yield Finding(
                    about="reach",
                    what=f"{node} to {other} and back takes {hears.round_trip_ms:.0f} ms",
                    advice="look at the network between them, and at how busy both machines are",
                )


def _groups(groups: Iterable[GroupSeen], answered: dict[NodeId, Checked]) -> Iterator[Finding]:
    for one in groups:
        here = [node for node in one.members if node in answered]
        gone = ", ".join(node for node in one.members if node not in answered)
        if not one.serves:
            yield Finding(
                about="group",
                what=f"{one.group}: nobody serves it" + (f"; gone: {gone}" if gone else ""),
                advice="bring its members back: it goes on by itself once a majority is there",
            )
        elif gone and 2 * (len(here) - 1) <= len(one.members):
            yield Finding(
                about="group",
                what=f"{one.group}: {len(here)} of {len(one.members)} members are left; gone: {gone}",
                advice="it stops with the next one that goes: bring those back, or wait for its next epoch",
            )


def _who(answered: dict[NodeId, Checked], of: Callable[[Checked], str]) -> str:
    by: dict[str, list[str]] = {}
    for node, one in answered.items():
        by.setdefault(of(one), []).append(node)
    return "; ".join(f"{what}: {', '.join(nodes)}" for what, nodes in sorted(by.items()))


def _where(hears: Hears, other: NodeId) -> str:
    return hears.address or other


def size(count: int) -> str:
    """Formats a size, such as `12 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 10_000:
            return f"{count} {unit}"
        count //= 1000
    return f"{count} GB"
