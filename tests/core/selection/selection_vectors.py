"""Writes vectors.json, by which another implementation can check itself; docs/selection.md explains it.

python tests/core/selection/selection_vectors.py --write

Only a deliberate change of the rules may change the file: nodes that select by different rules cost each
other detours.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from selection_plans import device, node, routine

from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.core.plan import Locality, Lsh, Plan, PlannedDevice, PlannedNode, SelectionSettings
from comesh.core.selection import Selector, make_plan
from comesh.core.selection.hashing import chain, id_hash
from comesh.core.selection.lsh import HashFamily, gaussian

FILE = Path(__file__).with_name("vectors.json")
DOMAINS = (None, "east", "west", "east", "ups", "west", "east")


def scattered(nodes: int, devices: int, seed: int) -> tuple[list[PlannedNode], list[PlannedDevice]]:
    draws = Draws(seed)

    def place() -> tuple[int, int, int]:
        return draws.below(40_000) - 20_000, draws.below(30_000), 3200 * draws.below(2)

    return (
        [node(f"node_{i}", *place(), DOMAINS[i % len(DOMAINS)]) for i in range(nodes)],
        [device(f"device_{i}", *place()) for i in range(devices)],
    )


def plans() -> dict[str, Plan]:
    """One deployment for each thing that can differ."""
    random = Locality.RANDOM
    wide = Lsh(m=1, l=3, r_milli=6000, jitter_milli=500)
    narrow = Lsh(m=3, l=1, r_milli=300)
    routines = [
        routine("night", "device_0", "device_3"),
        routine("alarm", "device_1"),
        routine("air", "device_2"),
    ]
    return {
        "defaults, two clusters": make_plan(
            1, SelectionSettings(f=1, seed=42, cluster_size=6), *scattered(9, 10, 1), routines
        ),
        "random policies": make_plan(
            1,
            SelectionSettings(f=2, seed=7, cluster_size=5, clusters=random, members=random, leaders=random),
            *scattered(12, 9, 2),
            routines,
        ),
        "random members, near leaders": make_plan(
            1, SelectionSettings(f=2, seed=7, cluster_size=5, members=random), *scattered(12, 9, 2), routines
        ),
        "jitter, wide buckets, a seed of 64 bits": make_plan(
            1, SelectionSettings(f=2, seed=2**64 - 1, lsh=wide), *scattered(11, 6, 3), routines
        ),
        "narrow buckets, so that members are borrowed": make_plan(
            1, SelectionSettings(f=1, seed=5, lsh=narrow), *scattered(14, 12, 4), routines
        ),
        "central: f = 0": make_plan(1, SelectionSettings(f=0, seed=1), *scattered(3, 5, 5), routines),
        "fewer nodes than k": make_plan(1, SelectionSettings(f=2, seed=1), *scattered(4, 5, 6), routines),
        "two nodes": make_plan(1, SelectionSettings(f=1, seed=1), *scattered(2, 5, 7), routines),
    }


def word(number: int) -> str:
    """64 bits as text, because many JSON readers have no integers beyond 2^53."""
    return f"0x{number:016x}"


def epoch_of(
    plan: Plan, epoch: int, alive: list[NodeId], table: dict[Any, tuple[NodeId, ...]]
) -> dict[str, Any]:
    selector = Selector(plan)
    view = selector.at(epoch, alive, table)
    settings = plan.settings
    family = HashFamily(settings.lsh, settings.seed, epoch, plan.spacing_mm)
    vectors = selector.node_vectors(table, family)
    buckets = [[number for part in family.functions.buckets(vector) for number in part] for vector in vectors]
    groups: dict[str, Any] = {}
    for group in selector.groups:
        groups[group] = {"key": word(selector.key(group, epoch)), "members": view.members(group)}
        if group in selector.watched:
            groups[group]["centre"] = selector.centre(group, epoch)
            groups[group]["candidates"] = view.candidates(group)
    return {
        "epoch": epoch,
        "alive": alive,
        "table": table,
        "size": view.size,
        "cap": view.cap,
        "width": family.functions.width,
        "directions": family.functions.directions,
        "offsets": family.functions.offsets,
        "vectors": dict(zip(selector.node_ids, vectors, strict=True)),
        "buckets": dict(zip(selector.node_ids, buckets, strict=True)),
        "groups": groups,
    }


def plan_vectors(name: str, plan: Plan) -> dict[str, Any]:
    everyone = [one.id for one in plan.nodes]
    after = Selector(plan).select_all(1, everyone, plan.genesis)
    some = everyone[::3] + everyone[1::3]
    return {
        "name": name,
        "plan": msgspec.to_builtins(plan),
        "epochs": [
            epoch_of(plan, 1, everyone, plan.genesis),
            epoch_of(plan, 2, some, after),
            epoch_of(plan, 1_000_003, everyone[-1:], {}),
        ],
    }


def make_vectors() -> dict[str, Any]:
    ids = [
        ("node", "node_1"),
        ("device", "node_1"),
        ("group", "c1"),
        ("group", "deployment"),
        ("draw", "gaussian"),
    ]
    chains = [[0], [1], [2**64 - 1], [1, 2, 3], [42, 7, id_hash("group", "c1"), id_hash("node", "node_1")]]
    keys = [chain(number) for number in range(8)]
    return {
        "about": "Selection of CoMesh: inputs, intermediate values and results. See docs/selection.md.",
        "id_hashes": [{"kind": kind, "id": name, "hash": word(id_hash(kind, name))} for kind, name in ids],
        "chains": [{"words": [word(one) for one in words], "hash": word(chain(*words))} for words in chains],
        "gaussians": [{"key": word(key), "entry": gaussian(key)} for key in keys],
        "plans": [plan_vectors(name, plan) for name, plan in plans().items()],
    }


def as_text(vectors: dict[str, Any]) -> str:
    """JSON with a line per entry, so that a change is visible in review."""
    return _lines(json.loads(msgspec.json.encode(vectors)), 0) + "\n"


def _lines(value: Any, depth: int) -> str:
    flat = json.dumps(value)
    if len(flat) + depth <= 108 or not isinstance(value, dict | list):
        return flat
    pad, inner = " " * depth, " " * (depth + 1)
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _lines(one, depth + 1) for one in value) + f"\n{pad}]"
    entries = (f"{inner}{json.dumps(key)}: {_lines(one, depth + 1)}" for key, one in value.items())
    return "{\n" + ",\n".join(entries) + f"\n{pad}}}"


if __name__ == "__main__":
    text = as_text(make_vectors())
    if "--write" in sys.argv[1:]:
        FILE.write_text(text)
    else:
        sys.stdout.write(text)
