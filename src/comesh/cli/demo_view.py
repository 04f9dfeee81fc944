"""The screen of the demo: the floor from above, the groups, some devices, and what happened."""

from collections import deque
from collections.abc import Iterable

from rich.columns import Columns
from rich.console import ConsoleDimensions, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from comesh.cli.demo_mesh import DemoMesh
from comesh.cli.tables import value_text
from comesh.cli.terminal import out, plain
from comesh.core.ids import GroupId, NodeId
from comesh.deployment.problems import printable

FLOOR_COLUMNS, FLOOR_ROWS = 62, 11
WIDE_COLUMNS, HIGH_ROWS = 138, 32
MIN_COLUMNS, MIN_ROWS = 60, 20
"""Minimum size of a screen for a picture."""
AROUND_ROWS = 7
"""Rows of a small screen for the heading, frames, headings of the groups, and the cursor."""
BORDERS = 4
SHOWN_LINES = 12
SHOWN_DEVICES = 8

_DOMAIN_STYLES = ("cyan", "magenta", "yellow", "blue", "green", "white")


class Log:
    """Events, newest last; printed as they come where there is no live screen."""

    def __init__(self, mesh: DemoMesh) -> None:
        self._mesh = mesh
        self.lines: deque[Text] = deque(maxlen=SHOWN_LINES)

    def add(self, what: str, style: str = "") -> Text:
        line = plain(f"{self._mesh.now_s:7.1f} s  {what}", style)
        self.lines.append(line)
        return line


def is_too_small(size: ConsoleDimensions) -> bool:
    return size.width < MIN_COLUMNS or size.height < MIN_ROWS


def screen(mesh: DemoMesh, log: Log, size: ConsoleDimensions) -> RenderableType:
    """Draws everything where there is room; on a small terminal the groups and what happened."""
    going = sum(one.live is not None for one in mesh.routines().values())
    now = f"{mesh.now_s:.1f} s; runs: {mesh.finished} finished, {mesh.failed} failed, {going} going"
    heading = plain(f"{mesh.deployment.name or 'A building'}: {now}", "bold")
    end, ask = "Ctrl-C ends all. From another terminal:", f"comesh status --data {mesh.local.directory}"
    if size.width < WIDE_COLUMNS or size.height < HIGH_ROWS:
        closing = newest((plain(end, "dim"), plain(f"  {ask}", "dim")), size.width, SHOWN_LINES)
        room = size.height - len(mesh.groups) - AROUND_ROWS - len(closing)
        return Group(
            _in_one_line(heading),
            Panel(groups(mesh), title="groups"),
            Panel(Group(*newest(log.lines, size.width - BORDERS, room)), title="what happens"),
            *closing,
        )
    happened = Panel(Group(*log.lines) if log.lines else Text(""), title="what happens")
    note = plain(f"Real processes on this machine, encrypted between each other. {end} {ask}", "dim")
    top = Columns([Panel(floor(mesh), title="the floor from above"), Panel(groups(mesh), title="groups")])
    happened.width = FLOOR_COLUMNS + 34
    return Group(heading, top, Columns([happened, Panel(devices(mesh), title="some devices")]), note)


def newest(lines: Iterable[Text], width: int, rows: int) -> list[Text]:
    """Returns the last events that have room, each as a whole: an event that does not fit into a row goes on
    in the next."""
    shown = [row for line in lines for row in line.wrap(out, width, overflow="fold", no_wrap=False)]
    return shown[-max(rows, 1) :]


def _in_one_line(text: Text) -> Text:
    short = text.copy()
    short.no_wrap, short.overflow = True, "ellipsis"
    return short


def floor(mesh: DemoMesh) -> Text:
    """Draws nodes where they are: filled if they run, in the colour of their power domain."""
    nodes = mesh.program.plan.nodes
    running = set(mesh.running())
    xs, ys = [node.place.x_mm for node in nodes], [node.place.y_mm for node in nodes]
    wide, deep = max(max(xs) - min(xs), 1), max(max(ys) - min(ys), 1)
    cells = [[(" ", "")] * FLOOR_COLUMNS for _ in range(FLOOR_ROWS)]
    domains = sorted({node.power_domain or node.id for node in nodes})
    for node in sorted(nodes, key=lambda node: (node.place.y_mm, node.place.x_mm)):
        row = (FLOOR_ROWS - 1) * (node.place.y_mm - min(ys)) // deep
        label = ("● " if node.id in running else "✗ ") + node.id
        column = (FLOOR_COLUMNS - len(label)) * (node.place.x_mm - min(xs)) // wide
        style = _DOMAIN_STYLES[domains.index(node.power_domain or node.id) % len(_DOMAIN_STYLES)]
        row = _free_row(cells, row, column, len(label))
        for offset, letter in enumerate(label):
            cells[row][column + offset] = (letter, style if node.id in running else "red")
    lines = [Text.assemble(*row) for row in reversed(cells)]
    legend = Text.assemble(
        *((f"{printable(name)}  ", style) for name, style in zip(domains, _DOMAIN_STYLES, strict=False))
    )
    return Text("\n").join([*lines, legend])


def _free_row(cells: list[list[tuple[str, str]]], row: int, column: int, length: int) -> int:
    """Returns the nearest row with room for a label."""
    order = sorted(range(FLOOR_ROWS), key=lambda other: abs(other - row))
    for other in order:
        if all(cell[0] == " " for cell in cells[other][column : column + length]):
            return other
    return row


def groups(mesh: DemoMesh) -> Table:
    """Lists which nodes look after which cluster now, which one leads, and whether the group serves."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("group")
    table.add_column("members (▸ leads, ✗ gone)")
    table.add_column("")
    for group, now in mesh.groups.items():
        members = Text(", ").join([_member(mesh, node, leads=node == now.leader) for node in now.members])
        table.add_row(group, members, _state(mesh, group))
    return table


def _member(mesh: DemoMesh, node: NodeId, *, leads: bool) -> Text:
    if not mesh.local.runs(node):
        return Text(f"✗ {node}", style="red")
    return Text(f"▸ {node}", style="bold") if leads else Text(node)


def _state(mesh: DemoMesh, group: GroupId) -> Text:
    return Text("serves", style="green") if mesh.serves(group) else Text("waits", style="bold red")


def devices(mesh: DemoMesh) -> Table:
    table = Table.grid(padding=(0, 1))
    every = max(1, len(mesh.deployment.devices) // SHOWN_DEVICES)
    seen = mesh.devices()
    for device_id, device in list(mesh.deployment.devices.items())[::every][:SHOWN_DEVICES]:
        now = seen.get(device_id)
        reading, value = next(iter((now.readings or {}).items()), ("", "")) if now is not None else ("", "")
        unit = device.readings[reading].unit if reading in device.readings else None
        table.add_row(device_id, reading, plain(f"{value_text(value)} {unit or ''}"))
    return table
