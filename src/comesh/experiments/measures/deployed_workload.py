"""The workload of the paper's 11-node deployment: a document, and the readings that its devices get.

16 places a metre apart, each with a device, 11 of them with a node: a 4x4 grid, or an L along one floor (the
line). Routines with clauses over several sensors, commands that take seconds, and every 500 to 1,000 ms a new
reading of one device, which about half of the time is another one than before. Everything is drawn from the
seed. Each routine and the readings draw from streams of their own: with more routines, the first ones and the
readings stay what they are.

What differs from the authors' generator: a routine commands no device twice. What a command sets (`on`) is
not what triggers compare (`level`), so the readings are the same however fast the mesh is.

A place is a station of the mesh, with a node or without: all of them relay, as in the simulator.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId
from comesh.core.streams import stream
from comesh.drivers.virtual.sources import Script
from comesh.lab.shapes import NODES, PLACES, Shape

ROUTINES: Final[Mapping[int, float]] = {1: 150.0, 5: 300.0, 10: 400.0, 15: 500.0, 20: 600.0}
"""How many routines, and how many seconds such an experiment lasts."""
SENSORS: Final = ((2, 0.35), (3, 0.12), (4, 0.53))
COMMANDS: Final = ((1, 0.15), (2, 0.19), (3, 0.12), (4, 0.54))
NEGATED, NUMERIC, CHANGED = 0.1, 0.3, 0.5
"""The shares of leaves, of devices and of new readings that are so."""
LONGEST_COMMAND_S: Final = 9
MAX_DISCRETE: Final = 6
"""Discrete readings go from 0 up to 1 to 6."""
NUMERIC_RANGE: Final = (0, 100)
COMPARED_RANGE: Final = (1, 99)
"""Of the numbers in clauses: inside, so that no comparison is always true or always false."""
SHORTEST_CHANGE_MS, LONGEST_CHANGE_MS = 500.0, 1000.0
CLUSTER_SIZE: Final = 4
"""Four clusters of sixteen devices, or a few more where the places do not divide so."""
DISCRETE_SIGNS, NUMERIC_SIGNS = ("==", "!="), ("<", "<=", ">", ">=")
MESH: Final[Mapping[str, str]] = {
    "f": "1",
    "epoch": "60s",
    "monitoring": "1s",
    "push": "false",
    "locks": "{strategy: sequential}",
    "selection": f"{{cluster_size: {CLUSTER_SIZE}}}",
}
"""The settings of the paper's deployment, as a document has them. Its devices are asked every second."""
CENTRAL: Final[Mapping[str, str]] = {
    "preset": "central",
    **{name: MESH[name] for name in ("monitoring", "push", "locks")},
}
"""The same with a hub: one group of one node that looks after everything."""


class Reading(msgspec.Struct, frozen=True):
    """From at_ms on, the device's `level` is this; it may be what it was before."""

    at_ms: float
    device: DeviceId
    level: int | float


class PaperWorkload(msgspec.Struct, frozen=True):
    document: str
    """YAML, for `comesh validate`, `comesh sim` and `comesh up`."""
    readings: tuple[Reading, ...]
    """In order of time; one for each device at 0."""
    lasts_s: float
    places: tuple[tuple[int, int], ...]
    """In metres, by the number of the place; d07 stands at place 7, and so does n07, if there is one."""
    nodes: tuple[NodeId, ...]

    def scripts(self) -> dict[DeviceId, Script]:
        """The readings as sources of virtual devices, for `level`."""
        points: dict[DeviceId, list[tuple[float, int | float]]] = {}
        for reading in self.readings:
            points.setdefault(reading.device, []).append((reading.at_ms, reading.level))
        return {device: Script(tuple(of_device)) for device, of_device in points.items()}


def make_workload(
    shape: Shape,
    *,
    routines: int,
    seed: int,
    lasts_s: float | None = None,
    settings: Mapping[str, str] | None = None,
    devices_at: Mapping[DeviceId, str] | None = None,
) -> PaperWorkload:
    """lasts_s: for how long there are new readings; left out: what the paper's experiment lasts.
    settings: instead of MESH. devices_at: where the processes of virtual devices listen."""
    if routines not in ROUTINES and lasts_s is None:
        raise ValueError(
            f"say how long {routines} routines run; the paper has {', '.join(map(str, ROUTINES))}"
        )
    length_s = ROUTINES[routines] if lasts_s is None else lasts_s
    kinds = _kinds(seed)
    places = _places(shape)
    smart = sorted(stream(seed, "paper nodes").sample(range(PLACES), NODES))
    lines = [
        f"name: The paper's deployment, {shape}, {routines} routines, seed {seed}",
        "",
        "settings:",
        *(f"  {name}: {value}" for name, value in (MESH if settings is None else settings).items()),
        f"  seed: {seed}",
        "",
        "x-commands: &commands",
        *(
            f"  set_in_{takes_s}s: {{argument: bool, sets: on, takes: {takes_s}s}}"
            for takes_s in range(1, LONGEST_COMMAND_S + 1)
        ),
        "",
        "nodes:",
        *(f"  {node_at(number)}: {{place: {_place(places[number])}}}" for number in smart),
        "",
        "devices:",
        *(
            _device(name, highest, places[number], (devices_at or {}).get(name))
            for number, (name, highest) in enumerate(kinds.items())
        ),
        "",
        "routines:",
    ]
    for number in range(routines):
        lines += _routine(number, kinds, stream(seed, f"paper routine {number}"))
    return PaperWorkload(
        document="\n".join(lines) + "\n",
        readings=tuple(_readings(kinds, seed, length_s * 1000.0)),
        lasts_s=length_s,
        places=tuple(places),
        nodes=tuple(node_at(number) for number in smart),
    )


def node_at(place: int) -> NodeId:
    return NodeId(f"n{place:02}")


def device_at(place: int) -> DeviceId:
    return DeviceId(f"d{place:02}")


# -- what is drawn -----------------------------------------------------------------------------------------


def _kinds(seed: int) -> dict[DeviceId, int | None]:
    """The highest value of each device that is discrete, None for each that is numeric."""
    draws = stream(seed, "paper devices")
    numeric = draws.sample(range(PLACES), round(PLACES * NUMERIC))
    return {
        device_at(number): None if number in numeric else 1 + draws.below(MAX_DISCRETE)
        for number in range(PLACES)
    }


def _places(shape: Shape) -> list[tuple[int, int]]:
    """In metres."""
    if shape is Shape.GRID:
        return [(number % 4, number // 4) for number in range(PLACES)]
    corner = PLACES // 2
    return [(min(number, corner), max(0, number - corner)) for number in range(PLACES)]


def _level(highest: int | None, draws: Draws, numbers: tuple[int, int] = NUMERIC_RANGE) -> int | float:
    return round(draws.between(*numbers), 2) if highest is None else draws.below(highest + 1)


def _readings(kinds: Mapping[DeviceId, int | None], seed: int, length_ms: float) -> list[Reading]:
    draws = stream(seed, "paper readings")
    names = sorted(kinds)
    levels = {name: _level(kinds[name], draws) for name in names}
    drawn = [Reading(0.0, name, levels[name]) for name in names]
    at_ms = 0.0
    while (at_ms := at_ms + draws.between(SHORTEST_CHANGE_MS, LONGEST_CHANGE_MS)) < length_ms:
        name = draws.choice(names)
        if draws.chance(CHANGED):
            levels[name] = _other_level(kinds[name], levels[name], draws)
        drawn.append(Reading(round(at_ms, 3), name, levels[name]))
    return drawn


def _other_level(highest: int | None, level: int | float, draws: Draws) -> int | float:
    while (other := _level(highest, draws)) == level:
        pass
    return other


def _leaf(sensor: DeviceId, highest: int | None, draws: Draws) -> str:
    sign = draws.choice(NUMERIC_SIGNS if highest is None else DISCRETE_SIGNS)
    leaf = f"{sensor}.level {sign} {_level(highest, draws, COMPARED_RANGE)}"
    return f"!({leaf})" if draws.chance(NEGATED) else leaf


def _clause(leaves: Sequence[str], draws: Draws) -> str:
    """A random binary tree over the leaves, each joint half of the time an and."""
    if len(leaves) == 1:
        return leaves[0]
    cut = 1 + draws.below(len(leaves) - 1)
    sign = "&&" if draws.chance(0.5) else "||"
    sides = (_clause(leaves[:cut], draws), _clause(leaves[cut:], draws))
    return f" {sign} ".join(f"({side})" if " && " in side or " || " in side else side for side in sides)


def _weighted(shares: Sequence[tuple[int, float]], draws: Draws) -> int:
    left = draws.unit()
    for number, share in shares:
        left -= share
        if left < 0:
            return number
    return shares[-1][0]


# -- the document ------------------------------------------------------------------------------------------


def _place(place: tuple[int, int]) -> str:
    return f"[{place[0]}m, {place[1]}m]"


def _device(name: DeviceId, highest: int | None, place: tuple[int, int], at: str | None) -> str:
    lowest, most = NUMERIC_RANGE if highest is None else (0, highest)
    kind = "float" if highest is None else "int"
    return "\n".join(
        [
            f"  {name}:",
            f"    place: {_place(place)}",
            f"    readings: {{on: bool, level: {{type: {kind}, range: [{lowest}, {most}]}}}}",
            "    commands: *commands",
            *([] if at is None else [f"    driver: {{type: virtual, at: '{at}'}}"]),
        ]
    )


def _routine(number: int, kinds: Mapping[DeviceId, int | None], draws: Draws) -> list[str]:
    names = sorted(kinds)
    sensors = draws.sample(names, _weighted(SENSORS, draws))
    commanded = draws.sample(names, _weighted(COMMANDS, draws))
    return [
        f"  r{number:02}:",
        f"    when: '{_clause([_leaf(sensor, kinds[sensor], draws) for sensor in sensors], draws)}'",
        "    cooldown: 10s",
        "    do:",
        *(
            f"      - {{device: {name}, command: set_in_{1 + draws.below(LONGEST_COMMAND_S)}s, argument: "
            f"{str(draws.chance(0.5)).lower()}}}"
            for name in commanded
        ),
    ]
