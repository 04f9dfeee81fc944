"""A plan as a picture: the floors from above, as one SVG without any dependency.

Each floor is a panel to one common scale: clusters as coloured areas around their devices, devices as
dots, nodes as squares with the letter of their power domain. The pips below a node say which groups it is
in, in the clusters' colours: full for the leader, a ring for other members. Lines join each leader with
its fellow members on the same floor. Names that would cover each other are left out; every mark has its
name as a tooltip.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import cos, pi, sin
from string import ascii_uppercase
from typing import NamedTuple
from xml.sax import saxutils

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.plan import Place, Plan
from comesh.deployment.outlook import Members, group_order

PANEL_PX = (900, 640)
"""The width and the greatest height of the panel of a single floor."""
SMALL_PANEL_PX = (580, 440)
"""Size of a panel where there are several floors."""
LEGEND_WIDTH_PX = 250
FLOOR_GAP_MM = 2_000
"""Heights closer than this are one floor."""
FEWEST_ON_A_FLOOR = 4
_MARGIN_PX = 44
_GAP_PX = 20
_HEADER_PX = 58
_LEGEND_LINE_PX = 20
_MAX_LINED_CLUSTERS = 12
"""Maximum clusters for lines between members, which would hide the rest if there were more."""

COLOURS = (
    "#2f6db3", "#d9822b", "#3a8f4d", "#b8434e", "#7b5ea7", "#8c6239",
    "#c9659f", "#4c9fa8", "#9a9a2e", "#5b6b7a",
)  # fmt: skip
INK = "#1f2933"
FAINT = "#66717d"

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids, even as references (section 2.2)."""


class _Point(NamedTuple):
    x: float
    y: float


_Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


class _Floor(NamedTuple):
    """The things on one floor, with the floor's frame."""

    bottom_mm: int
    devices: dict[DeviceId, Place]
    nodes: dict[NodeId, Place]


class _Scene(NamedTuple):
    """All things to draw, with their colours and letters."""

    plan: Plan
    members: Members
    colour_of: dict[GroupId, str]
    letter_of: dict[str, str]


class _Sheet:
    """Marks in drawing order, and the room that names have taken."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self.panel: _Box = (0, 0, 0, 0)
        """The panel that is being drawn."""
        self._taken: list[_Box] = []

    def add(self, mark: str) -> None:
        self.marks.append(mark)

    def text(self, x: float, y: float, words: str, size: int = 12, **style: str) -> None:
        extra = "".join(
            f" {name.replace('_', '-')}={saxutils.quoteattr(value)}" for name, value in style.items()
        )
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{extra}>{_escaped(words)}</text>')

    def reserve(self, at: _Point, half_px: float) -> None:
        self._taken.append((at.x - half_px, at.y - half_px, at.x + half_px, at.y + half_px))

    def name(
        self, at: _Point, words: str, *, size: int, away_px: float, fill: str, must: bool = False
    ) -> None:
        """Write a name beside a mark, in the panel and covering nothing; or nowhere, unless it must."""
        width, height = 0.6 * size * len(words), float(size)
        spots = [spot for away in (away_px, away_px * 1.7) for spot in _beside(at, width, height, away)]
        inside = [spot for spot in spots if self._inside(spot)]
        free = [spot for spot in inside if not any(_overlap(spot, other) for other in self._taken)]
        if free or must:
            box = (free or inside or spots)[0]
            self._taken.append(box)
            x, y = box[0], box[1] + height * 0.82
            self.text(x, y, words, size, fill="#ffffff", stroke="#ffffff", stroke_width="2.6", opacity="0.8")
            self.text(x, y, words, size, fill=fill)

    def _inside(self, box: _Box) -> bool:
        left, top, right, bottom = self.panel
        return left + 4 < box[0] and top + 4 < box[1] and box[2] < right - 4 and box[3] < bottom - 4


def _escaped(words: str) -> str:
    """Words of a document as text of an element, without what no XML may hold."""
    return saxutils.escape(_NOT_XML.sub("", words))


def _beside(at: _Point, width: float, height: float, away: float) -> list[_Box]:
    """Yields the places for a name: right, left, above, below, and at the upper and lower corners."""
    right, left = at.x + away, at.x - away - width
    above, below, level = at.y - away - height, at.y + away, at.y - height / 2
    middle, bit = at.x - width / 2, away * 0.3
    corners = [
        (right, level), (left, level), (middle, above), (middle, below),
        (right - bit, above + bit), (left + bit, above + bit),
        (right - bit, below - bit), (left + bit, below - bit),
    ]  # fmt: skip
    return [(x, y, x + width, y + height) for x, y in corners]


def draw(plan: Plan, members: Members | None = None, title: str = "") -> str:
    """The picture of a plan with the members of one epoch: by default those of genesis."""
    members = plan.genesis if members is None else members
    groups = sorted((cluster.group for cluster in plan.clusters), key=group_order)
    colour_of = {group: COLOURS[row % len(COLOURS)] for row, group in enumerate(groups)}
    scene = _Scene(plan, members, colour_of, _letters(plan))
    floors = _floors(plan)
    alone = len(floors) == 1
    panel, per_pixel = _scale(floors, PANEL_PX if alone else SMALL_PANEL_PX)
    columns = 1 if alone else min(len(floors), 2 if len(floors) <= 4 else 3)
    rows = -(-len(floors) // columns)
    legend_height = _LEGEND_LINE_PX * (len(groups) + len(scene.letter_of) + 15)
    panels_height = rows * (panel[1] + _GAP_PX)
    width = _GAP_PX + columns * (panel[0] + _GAP_PX) + LEGEND_WIDTH_PX
    height = _HEADER_PX + max(panels_height, legend_height)
    sheet = _Sheet()
    sheet.text(_GAP_PX, 34, title or f"Plan of deployment version {plan.version}", 20, font_weight="600")
    for number, floor in enumerate(floors):
        corner = _Point(
            _GAP_PX + number % columns * (panel[0] + _GAP_PX),
            _HEADER_PX + number // columns * (panel[1] + _GAP_PX),
        )
        title = "" if alone else f"floor at {round(floor.bottom_mm / 1000, 1):g} m"
        frame = _Frame(floor, corner, panel, per_pixel)
        _draw_panel(sheet, frame, title)
        _draw_floor(sheet, scene, floor, frame)
    _draw_legend(sheet, scene, width - LEGEND_WIDTH_PX, per_pixel)
    body = "\n".join(sheet.marks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="Inter, Helvetica, Arial, sans-serif" fill="{INK}">\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


class _Frame:
    """Converts millimetres to pixels of one panel; y grows upwards on the floor."""

    def __init__(self, floor: _Floor, corner: _Point, panel: tuple[int, int], per_pixel: float) -> None:
        self.corner, self.panel = corner, panel
        places = [*floor.devices.values(), *floor.nodes.values()]
        self._per_pixel = per_pixel
        middle_x = (min(place.x_mm for place in places) + max(place.x_mm for place in places)) / 2
        middle_y = (min(place.y_mm for place in places) + max(place.y_mm for place in places)) / 2
        self._left = corner.x + panel[0] / 2 - middle_x / per_pixel
        self._top = corner.y + panel[1] / 2 + middle_y / per_pixel

    def at(self, place: Place) -> _Point:
        return _Point(self._left + place.x_mm / self._per_pixel, self._top - place.y_mm / self._per_pixel)


def _draw_panel(sheet: _Sheet, frame: _Frame, title: str) -> None:
    (left, top), (width, height) = frame.corner, frame.panel
    sheet.panel = (left, top, left + width, top + height)
    sheet.add(
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="8" '
        'fill="#fbfcfd" stroke="#d5dbe1"/>'
    )
    sheet.text(left + 12, top + 20, title, 12, fill=FAINT)


def _draw_floor(sheet: _Sheet, scene: _Scene, floor: _Floor, frame: _Frame) -> None:
    plan, colour_of = scene.plan, scene.colour_of
    devices, nodes = _spread(floor, frame)
    for at in devices.values():
        sheet.reserve(at, 4)
    for at in nodes.values():
        sheet.reserve(at, 11)
        sheet.reserve(_Point(at.x, at.y + 15), 5)
    for cluster in plan.clusters:
        here = [devices[device] for device in cluster.devices if device in devices]
        if here:
            _draw_area(sheet, here, colour_of[cluster.group], cluster.group)
    if len(plan.clusters) <= _MAX_LINED_CLUSTERS:
        _draw_lines(sheet, scene, nodes)
    cluster_of = {device: cluster.group for cluster in plan.clusters for device in cluster.devices}
    for device, at in devices.items():
        colour = colour_of[cluster_of[device]]
        tip = f"<title>{_escaped(device)} ({_escaped(cluster_of[device])})</title>"
        sheet.add(f'<circle cx="{at.x:.1f}" cy="{at.y:.1f}" r="3.6" fill="{colour}">{tip}</circle>')
    domain_of = {node.id: node.power_domain for node in plan.nodes}
    for node, at in nodes.items():
        domain = domain_of[node]
        _draw_node(sheet, scene, node, at, "" if domain is None else scene.letter_of[domain])
    for node, at in nodes.items():
        sheet.name(at, node, size=12, away_px=13, fill=INK, must=True)
    for cluster in plan.clusters:
        here = [devices[device] for device in cluster.devices if device in devices]
        if here:
            top = min(here, key=lambda point: (point.y, point.x))
            colour = colour_of[cluster.group]
            sheet.name(_Point(top.x, top.y - 2), cluster.group, size=13, away_px=9, fill=colour)
    for device, at in devices.items():
        sheet.name(at, device, size=9, away_px=6, fill=FAINT)


def _draw_area(sheet: _Sheet, points: Sequence[_Point], colour: str, group: GroupId) -> None:
    """The hull of a cluster, with a round border so that one or two devices have an area too."""
    style = f'fill="{colour}" stroke="{colour}" stroke-width="30" stroke-linejoin="round" opacity="0.13"'
    corners = _hull(points)
    if len(corners) == 1:
        corners.append(_Point(corners[0].x + 0.1, corners[0].y))
    outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    sheet.add(f'<polygon points="{outline}" {style}><title>{_escaped(group)}</title></polygon>')


def _draw_lines(sheet: _Sheet, scene: _Scene, nodes: Mapping[NodeId, _Point]) -> None:
    for group, colour in scene.colour_of.items():
        leader, *others = scene.members[group]
        if leader not in nodes:
            continue
        for other in others:
            if other in nodes:
                (x1, y1), (x2, y2) = nodes[leader], nodes[other]
                sheet.add(
                    f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
                    'stroke-width="1.3" opacity="0.55"/>'
                )


def _draw_node(sheet: _Sheet, scene: _Scene, node: NodeId, at: _Point, letter: str) -> None:
    members, colour_of = scene.members, scene.colour_of
    duties = [(group, members[group].index(node)) for group in colour_of if node in members[group]]
    told = ", ".join(f"leads {group}" if rank == 0 else f"in {group}" for group, rank in duties) or "idle"
    sheet.add(
        f'<rect x="{at.x - 8:.1f}" y="{at.y - 8:.1f}" width="16" height="16" rx="3" fill="#ffffff" '
        f'stroke="{INK}" stroke-width="1.6"><title>{_escaped(node)}: {_escaped(told)}</title></rect>'
    )
    if letter:
        sheet.text(at.x, at.y + 4, letter, 11, text_anchor="middle", font_weight="600")
    left = at.x - (len(duties) - 1) * 5
    for row, (group, rank) in enumerate(duties):
        sheet.add(_pip(_Point(left + 10 * row, at.y + 15), colour_of[group], rank == 0))


def _pip(at: _Point, colour: str, leads: bool) -> str:
    fill = colour if leads else "#ffffff"
    shape = f'cx="{at.x:.1f}" cy="{at.y:.1f}" r="3.7" stroke-width="1.8"'
    return f'<circle {shape} fill="{fill}" stroke="{colour}"/>'


def _draw_legend(sheet: _Sheet, scene: _Scene, left: float, per_pixel: float) -> None:
    plan, members = scene.plan, scene.members
    y = _HEADER_PX + 12.0
    devices_of = {cluster.group: len(cluster.devices) for cluster in plan.clusters}
    sheet.text(left, y, "Clusters (leader)", 13, font_weight="600")
    for group, colour in scene.colour_of.items():
        y += _LEGEND_LINE_PX
        sheet.add(f'<circle cx="{left + 7}" cy="{y - 4}" r="6" fill="{colour}"/>')
        sheet.text(left + 20, y, f"{group}: {devices_of[group]} devices ({members[group][0]})")
    if scene.letter_of:
        y += 2 * _LEGEND_LINE_PX
        sheet.text(left, y, "Power domains", 13, font_weight="600")
        for domain, letter in scene.letter_of.items():
            y += _LEGEND_LINE_PX
            sheet.text(left + 7, y, letter, 12, text_anchor="middle", font_weight="600")
            count = sum(node.power_domain == domain for node in plan.nodes)
            sheet.text(left + 20, y, f"{domain}: {count} node{'s' if count > 1 else ''}")
    lines = len(plan.clusters) <= _MAX_LINED_CLUSTERS
    _draw_marks_legend(sheet, left, y + 2 * _LEGEND_LINE_PX, per_pixel, lines=lines)


def _draw_marks_legend(sheet: _Sheet, left: float, y: float, per_pixel: float, *, lines: bool) -> None:
    sheet.text(left, y, "Marks", 13, font_weight="600")
    y += _LEGEND_LINE_PX
    sheet.add(
        f'<rect x="{left}" y="{y - 11}" width="14" height="14" rx="3" fill="#ffffff" '
        f'stroke="{INK}" stroke-width="1.6"/>'
    )
    sheet.text(left + 20, y, "node, with its power domain")
    y += _LEGEND_LINE_PX
    sheet.add(f'<circle cx="{left + 7}" cy="{y - 4}" r="3.6" fill="{FAINT}"/>')
    sheet.text(left + 20, y, "device, in its cluster's colour")
    for leads, told in ((True, "leads that cluster"), (False, "member of its group")):
        y += _LEGEND_LINE_PX
        sheet.add(_pip(_Point(left + 7, y - 4), FAINT, leads))
        sheet.text(left + 20, y, told)
    if lines:
        y += _LEGEND_LINE_PX
        sheet.add(
            f'<line x1="{left}" y1="{y - 4}" x2="{left + 14}" y2="{y - 4}" stroke="{FAINT}" '
            'stroke-width="1.6"/>'
        )
        sheet.text(left + 20, y, "from a leader to its members")
    y += _LEGEND_LINE_PX
    sheet.add(f'<rect x="{left}" y="{y - 11}" width="14" height="14" rx="5" fill="{FAINT}" opacity="0.2"/>')
    sheet.text(left + 20, y, "area of a cluster's devices")
    y += 1.6 * _LEGEND_LINE_PX
    metres = _round_metres(110 * per_pixel / 1000)
    length = metres * 1000 / per_pixel
    sheet.add(
        f'<path d="M{left},{y - 5} v5 h{length:.1f} v-5" fill="none" stroke="{INK}" stroke-width="1.4"/>'
    )
    sheet.text(left + length + 8, y, f"{metres:g} m")


def _letters(plan: Plan) -> dict[str, str]:
    """A letter for each power domain: A, B, ... Z, A2, B2, ..."""
    domains = sorted({node.power_domain for node in plan.nodes if node.power_domain is not None})
    return {
        domain: ascii_uppercase[row % 26] + ("" if row < 26 else str(row // 26 + 1))
        for row, domain in enumerate(domains)
    }


def _floors(plan: Plan) -> list[_Floor]:
    """Heights with a gap between them are floors, the lowest first, but a floor has more than a few things:
    what is alone on a roof or in a well is drawn with the floor that is nearest."""
    places = [node.place for node in plan.nodes] + [device.place for device in plan.devices]
    levels: list[list[int]] = []
    for height_mm in sorted(place.z_mm for place in places):
        if not levels or height_mm - levels[-1][-1] >= FLOOR_GAP_MM:
            levels.append([])
        levels[-1].append(height_mm)
    while len(levels) > 1:
        smallest = min(range(len(levels)), key=lambda row: len(levels[row]))
        if len(levels[smallest]) >= max(FEWEST_ON_A_FLOOR, len(places) // 12):
            break
        neighbours = [row for row in (smallest - 1, smallest + 1) if 0 <= row < len(levels)]
        nearest = min(neighbours, key=lambda row: abs(levels[row][0] - levels[smallest][0]))
        low, high = sorted((nearest, smallest))
        levels[low : high + 1] = [levels[low] + levels[high]]
    return [_floor_of(plan, heights[0], heights[-1]) for heights in levels]


def _floor_of(plan: Plan, lowest_mm: int, highest_mm: int) -> _Floor:
    return _Floor(
        lowest_mm,
        {one.id: one.place for one in plan.devices if lowest_mm <= one.place.z_mm <= highest_mm},
        {one.id: one.place for one in plan.nodes if lowest_mm <= one.place.z_mm <= highest_mm},
    )


def _scale(floors: Iterable[_Floor], largest: tuple[int, int]) -> tuple[tuple[int, int], float]:
    """The size of the panels, and millimetres per pixel, the same for all floors."""
    across, upwards = 3 * _MARGIN_PX, 2.4 * _MARGIN_PX
    wide = deep = 1000
    for floor in floors:
        places = [*floor.devices.values(), *floor.nodes.values()]
        wide = max(wide, max(place.x_mm for place in places) - min(place.x_mm for place in places))
        deep = max(deep, max(place.y_mm for place in places) - min(place.y_mm for place in places))
    per_pixel = max(wide / (largest[0] - across), deep / (largest[1] - upwards))
    return (largest[0], round(deep / per_pixel + upwards)), per_pixel


def _spread(floor: _Floor, frame: _Frame) -> tuple[dict[DeviceId, _Point], dict[NodeId, _Point]]:
    """Places each mark: nodes stand apart, and devices that share a place stand around it."""
    nodes: dict[NodeId, _Point] = {}
    for node, place in floor.nodes.items():
        at = frame.at(place)
        while any(abs(at.x - other.x) < 20 and abs(at.y - other.y) < 20 for other in nodes.values()):
            at = _Point(at.x + 21, at.y)
        nodes[node] = at
    crowds: dict[_Point, list[DeviceId]] = {}
    for device, place in floor.devices.items():
        crowds.setdefault(frame.at(place), []).append(device)
    hosts = set(map(frame.at, floor.nodes.values()))
    devices: dict[DeviceId, _Point] = {}
    for at, crowd in crowds.items():
        for number, device in enumerate(crowd):
            if at in hosts:
                angle = pi * (1.2 * (number % 8 + 0.5) / min(8, len(crowd)) - 0.1)
                reach = 16.0 + 8 * (number // 8)
            else:
                angle = 2 * pi * number / len(crowd)
                reach = 0.0 if len(crowd) == 1 else 6.0
            devices[device] = _Point(at.x + reach * cos(angle), at.y - reach * sin(angle))
    return devices, nodes


def _hull(points: Sequence[_Point]) -> list[_Point]:
    """The corners of the convex hull, by Andrew's monotone chain."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return ordered
    corners: list[_Point] = []
    for sweep in (ordered, ordered[::-1]):
        begin = len(corners)
        for point in sweep:
            while len(corners) - begin >= 2 and _turns_right(corners[-2], corners[-1], point):
                corners.pop()
            corners.append(point)
        corners.pop()
    return corners


def _turns_right(one: _Point, two: _Point, three: _Point) -> bool:
    return (two.x - one.x) * (three.y - one.y) <= (two.y - one.y) * (three.x - one.x)


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _round_metres(metres: float) -> float:
    """The largest of 1, 2, 5, 10, ... that is not above."""
    step = 0.01
    best = step
    while step <= metres:
        best = max(times * step for times in (1, 2, 5) if times * step <= metres)
        step *= 10
    return best
