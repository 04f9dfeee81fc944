"""What the demo shows on a terminal: the floor from above, the groups, some devices, and what happened."""

from collections import deque

from rich.columns import Columns
from rich.console import ConsoleDimensions, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from comesh.cli.terminal import plain
from comesh.core.ids import GroupId, NodeId
from comesh.deployment.problems import printable
from comesh.sim.building import Building

FLOOR_COLUMNS, FLOOR_ROWS = 62, 11
WIDE_COLUMNS, HIGH_ROWS = 138, 32
SHOWN_LINES = 12
SHOWN_DEVICES = 8

_DOMAIN_STYLES = ("cyan", "magenta", "yellow", "blue", "green", "white")


class Log:
    """What happened, newest last; printed as it comes where there is no live screen."""

    def __init__(self, building: Building) -> None:
        self._building = building
        self.lines: deque[Text] = deque(maxlen=SHOWN_LINES)

    def add(self, what: str, style: str = "") -> Text:
        line = plain(f"{self._building.world.now_ms / 1000:7.1f} s  {what}", style)
        self.lines.append(line)
        return line


def screen(building: Building, log: Log, size: ConsoleDimensions) -> RenderableType:
    """Everything where there is room; on a small terminal the groups and what happened."""
    runs = building.protocol.runs
    now = f"{building.world.now_ms / 1000:.1f} s; runs: {runs.finished} finished, {runs.failed} failed"
    going = f", {len(runs.going)} going" if runs.going else ""
    heading = plain(f"{building.deployment.name or 'A building'}: {now}{going}", "bold")
    happened = Panel(Group(*log.lines) if log.lines else Text(""), title="what happens")
    note = Text("simulated: no packet leaves this process. Ctrl-C ends it.", style="dim")
    if size.width < WIDE_COLUMNS or size.height < HIGH_ROWS:
        return Group(heading, Panel(groups(building), title="groups"), happened, note)
    top = Columns(
        [Panel(floor(building), title="the floor from above"), Panel(groups(building), title="groups")]
    )
    happened.width = FLOOR_COLUMNS + 34
    return Group(heading, top, Columns([happened, Panel(devices(building), title="some devices")]), note)


def floor(building: Building) -> Text:
    """Nodes where they are: filled if they run, in the colour of their power domain."""
    nodes = building.plan.nodes
    xs, ys = [node.place.x_mm for node in nodes], [node.place.y_mm for node in nodes]
    wide, deep = max(max(xs) - min(xs), 1), max(max(ys) - min(ys), 1)
    cells = [[(" ", "")] * FLOOR_COLUMNS for _ in range(FLOOR_ROWS)]
    domains = sorted({node.power_domain or node.id for node in nodes})
    for node in sorted(nodes, key=lambda node: (node.place.y_mm, node.place.x_mm)):
        row = (FLOOR_ROWS - 1) * (node.place.y_mm - min(ys)) // deep
        label = ("● " if building.world.runs(node.id) else "✗ ") + node.id
        column = (FLOOR_COLUMNS - len(label)) * (node.place.x_mm - min(xs)) // wide
        style = _DOMAIN_STYLES[domains.index(node.power_domain or node.id) % len(_DOMAIN_STYLES)]
        row = _free_row(cells, row, column, len(label))
        for offset, letter in enumerate(label):
            cells[row][column + offset] = (letter, style if building.world.runs(node.id) else "red")
    lines = [Text.assemble(*row) for row in reversed(cells)]
    legend = Text.assemble(
        *((f"{printable(name)}  ", style) for name, style in zip(domains, _DOMAIN_STYLES, strict=False))
    )
    return Text("\n").join([*lines, legend])


def _free_row(cells: list[list[tuple[str, str]]], row: int, column: int, length: int) -> int:
    """The nearest row with room for a label."""
    order = sorted(range(FLOOR_ROWS), key=lambda other: abs(other - row))
    for other in order:
        if all(cell[0] == " " for cell in cells[other][column : column + length]):
            return other
    return row


def groups(building: Building) -> Table:
    """Who looks after which cluster now, who leads, and whether the group serves."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("group")
    table.add_column("members (▸ leads, ✗ gone)")
    table.add_column("")
    for group, now in building.groups.items():
        shown = Text(", ").join([_member(building, node, leads=node == now.leader) for node in now.members])
        table.add_row(group, shown, _state(building, group))
    return table


def _member(building: Building, node: NodeId, *, leads: bool) -> Text:
    if not building.world.runs(node):
        return Text(f"✗ {node}", style="red")
    return Text(f"▸ {node}", style="bold") if leads else Text(node)


def _state(building: Building, group: GroupId) -> Text:
    return Text("serves", style="green") if building.serves(group) else Text("waits", style="bold red")


def devices(building: Building) -> Table:
    table = Table.grid(padding=(0, 1))
    for device_id, device in list(building.deployment.devices.items())[:: _every(building)][:SHOWN_DEVICES]:
        reading, value = next(iter(building.readings(device_id).items()), ("", ""))
        shown = f"{value:.1f}" if isinstance(value, float) else str(value).lower()
        unit = device.readings[reading].unit if reading else None
        table.add_row(device_id, reading, plain(f"{shown} {unit or ''}"))
    return table


def _every(building: Building) -> int:
    return max(1, len(building.deployment.devices) // SHOWN_DEVICES)
