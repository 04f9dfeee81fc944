"""Prints the summary of a simulation."""

from collections.abc import Sequence

from comesh.cli.sim_protocol import show_lines, show_protocol
from comesh.cli.tables import ListTable
from comesh.cli.terminal import number, out
from comesh.core.ids import NodeId
from comesh.deployment.problems import printable
from comesh.sim.fault_schedules import Schedule
from comesh.sim.group_watch import Span
from comesh.sim.report import Report, Spread
from comesh.sim.watch import Detection

_MAX_PARTS = 6
_MAX_NAMES = 6


def show(report: Report, schedule: Schedule) -> None:
    out.print(
        f"{printable(report.topology)}: {number(report.nodes, 'node')} among "
        f"{number(report.stations, 'station')}, seed {report.seed} "
        f"(a station is a place with a radio: a node's, a device's, or both)"
    )
    if report.protocol is None:
        out.print("Membership only: no groups, no routines.")
    faster = f", {report.simulated_s / report.cpu_s:.1f} times real time" if report.cpu_s > 0 else ""
    out.print(
        f"{report.simulated_s:g} s simulated in {report.cpu_s:.2f} s of CPU{faster}; {report.events} events"
    )
    show_lines("faults", [line.strip() for line in schedule.describe()])
    _show_traffic(report)
    out.print()
    out.print(f"end to end, sent per node:           {_rates(report.end_to_end_bytes_per_s)}")
    out.print(f"hop by hop, transmitted per node:    {_rates(report.hop_by_hop_bytes_per_s)}")
    out.print()
    _show_membership(report)
    _show_reach(report)
    if report.protocol is not None:
        show_protocol(report.protocol, _idle(report))
    if report.trace_digest is not None:
        out.print(f"trace {report.trace_digest}")


def _show_traffic(report: Report) -> None:
    seconds = report.simulated_s * report.nodes
    table = ListTable()
    table.add_column("kind")
    for title in ("sent", "bytes", "received", "lost", "transmitted", "bytes", "B/s per node"):
        table.add_column(title, justify="right")
    for row in report.traffic:
        per_node = row.sent.size_bytes / seconds if seconds else 0.0
        table.add_row(
            row.kind,
            str(row.sent.messages),
            str(row.sent.size_bytes),
            str(row.received.messages),
            str(sum(row.lost.values())),
            str(row.transmitted.messages),
            str(row.transmitted.size_bytes),
            f"{per_node:.1f}",
        )
    out.print()
    out.print(table)
    why: dict[str, int] = {}
    for row in report.traffic:
        for reason, count in row.lost.items():
            why[reason] = why.get(reason, 0) + count
    if why:
        out.print("lost: " + ", ".join(f"{count} {reason}" for reason, count in sorted(why.items())))


def _show_membership(report: Report) -> None:
    show_lines("crashes", [_told(detection) for detection in report.detections])
    out.print(f"false suspicions {report.false_suspicions}, false deaths {report.false_deaths}")
    stops = [f"{life.at_ms / 1000:.3f} s  {life.machine}: {life.why}" for life in report.stopped]
    show_lines("stopped by themselves", stops)


def _show_reach(report: Report) -> None:
    """Prints whether groups could act and were served, and when running nodes could not reach each other."""
    weak = report.without_majority
    if weak is not None:
        lines = [f"{group} had no majority {_when(spans)}" for group, spans in weak.items() if spans]
        if len(lines) < len(weak):
            sound = ", ".join(group for group in weak if not weak[group])
            lines.append(f"a majority ran and could reach each other throughout: {sound}")
        show_lines("groups", lines, count=len(weak))
    unserved = report.unserved or {}
    lines = [f"{group} {_when(spans)}" for group, spans in unserved.items() if spans]
    show_lines("served by nobody", lines)
    splits = []
    for split in report.splits:
        span = _when((Span(split.from_s, split.to_s),))
        parts = " | ".join(_some(part) for part in split.parts[:_MAX_PARTS])
        more = f" | and {len(split.parts) - _MAX_PARTS} more" if len(split.parts) > _MAX_PARTS else ""
        splits.append(f"{len(split.parts)} parts {span}: {parts}{more}")
    show_lines("running nodes were split into parts that could not reach each other", splits)


def _idle(report: Report) -> list[str]:
    """Says which groups could not act: `c1 and deployment could not act for 150 s: too many of their nodes
    were down or cut off`."""
    groups_for: dict[int, list[str]] = {}
    for group, spans in (report.without_majority or {}).items():
        ends_s = [report.simulated_s if span.to_s is None else span.to_s for span in spans]
        idle_s = round(sum(end_s - span.from_s for span, end_s in zip(spans, ends_s, strict=True)))
        if idle_s:
            groups_for.setdefault(idle_s, []).append(group)
    longest = sorted(groups_for.items(), reverse=True)
    lines = []
    for idle_s, groups in longest[:_MAX_PARTS]:
        whose = "its" if len(groups) == 1 else "their"
        why = f"too many of {whose} nodes were down or cut off"
        lines.append(f"{_and(groups)} could not act for {idle_s} s: {why}")
    rest = sum(len(groups) for _, groups in longest[_MAX_PARTS:])
    return lines + ([f"{number(rest, 'more group')} could not act for a shorter time"] if rest else [])


def _and(groups: Sequence[str]) -> str:
    if len(groups) > _MAX_NAMES:
        return f"{', '.join(groups[: _MAX_NAMES - 1])} and {len(groups) - _MAX_NAMES + 1} more"
    return " and ".join(filter(None, (", ".join(groups[:-1]), groups[-1])))


def _when(spans: Sequence[Span]) -> str:
    """Formats spans of time: `from 30.0 s to 43.0 s, from 50.0 s to the end`."""
    shown = [
        f"from {span.from_s:.1f} s to " + ("the end" if span.to_s is None else f"{span.to_s:.1f} s")
        for span in spans[:_MAX_PARTS]
    ]
    left = len(spans) - _MAX_PARTS
    more = ["and once more" if left == 1 else f"and {left} times more"] if left > 0 else []
    return ", ".join(shown + more)


def _some(nodes: Sequence[NodeId]) -> str:
    if len(nodes) <= _MAX_NAMES:
        return ", ".join(nodes)
    return f"{', '.join(nodes[: _MAX_NAMES - 1])} and {len(nodes) - _MAX_NAMES + 1} more"


def _told(detection: Detection) -> str:
    what = f"{detection.crashed_at_ms / 1000:.3f} s  {detection.node}: "
    if detection.first_after_ms is None or detection.last_after_ms is None:
        return what + ("back before anybody noticed" if detection.over else "nobody noticed")
    first, last = detection.first_after_ms / 1000, detection.last_after_ms / 1000
    what += f"first known after {first:.2f} s, to {detection.known_by} of {detection.of} after {last:.2f} s"
    return what + (" (it came back)" if detection.over else "")


def _rates(spread: Spread) -> str:
    return f"mean {spread.mean:.1f}, median {spread.median:.1f}, most {spread.most:.1f} B/s"
