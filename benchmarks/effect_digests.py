"""Digests of everything that nodes do, to tell whether a change of the core changes what it does.

    python benchmarks/effect_digests.py > before.txt           # the scenarios, and seeds of both swarms
    python benchmarks/effect_digests.py --compare before.txt   # after the change; 1 if anything differs
    python benchmarks/effect_digests.py --effects swarm-17 > 17.txt   # every effect of one of them, for diff

A digest covers all effects of all nodes, in order, with the time of each step. Effects are compared by their
values: a class or a field may get another name, but not another place. A refactoring of the core leaves all
digests as they were.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from comesh.core.effects import Effect, Observe
from comesh.core.node import AnyEvent, Node
from comesh.sim import operations_swarm, swarm

ROOT = Path(__file__).resolve().parents[1]
JOBS = 2
SWARMS: dict[str, Callable[[int], object]] = {
    "swarm": swarm.run_seed,
    "operations": operations_swarm.run_seed,
}

Heard = Callable[[Node, float, list[Effect]], None]
_encode = msgspec.msgpack.Encoder(enc_hook=repr).encode


@contextmanager
def listening(heard: Heard) -> Iterator[None]:
    """Hands the effects of every step of every node to a listener."""
    steps = Node.steps

    def overheard(
        self: Node, events: Sequence[AnyEvent], now_ms: float, wall_ms: float | None = None
    ) -> list[Effect]:
        effects = steps(self, events, now_ms, wall_ms)
        heard(self, now_ms, effects)
        return effects

    Node.steps = overheard  # type: ignore[method-assign]
    try:
        yield
    finally:
        Node.steps = steps  # type: ignore[method-assign]


@cache
def scenarios() -> Any:
    """The module that plays the scenarios of tests/scenarios, with all of them registered."""
    sys.path.insert(0, str(ROOT / "tests" / "scenarios"))
    importlib.import_module("test_scenarios")  # registers them
    return importlib.import_module("repertoire")


def play(name: str) -> None:
    """Run a seed of a swarm, or a scenario."""
    swarm_name, _, seed = name.rpartition("-")
    if swarm_name in SWARMS:
        SWARMS[swarm_name](int(seed))
    else:
        scenarios().play(name)


def flat(effect: Effect) -> list[Any]:
    """An effect by its values, without the names of its fields."""
    values = effect.observation if isinstance(effect, Observe) else effect
    return [type(effect).__name__, *msgspec.structs.astuple(values)]


def digest(name: str) -> str:
    found = blake2b(digest_size=12)

    def heard(node: Node, now_ms: float, effects: list[Effect]) -> None:
        found.update(_encode((node.id, now_ms, [flat(effect) for effect in effects])))

    with listening(heard):
        play(name)
    return f"{name} {found.hexdigest()}"


def show(name: str) -> None:
    """Print every effect of a seed or a scenario."""

    def heard(node: Node, now_ms: float, effects: list[Effect]) -> None:
        for effect in effects:
            print(f"{now_ms:.3f} {node.id} {effect}")

    with listening(heard):
        play(name)


def names(seeds: dict[str, str]) -> list[str]:
    """The scenarios, and the seeds of each swarm."""
    found = sorted(scenarios().SCENARIOS)
    for name, span in seeds.items():
        first, _, last = span.partition("-")
        found += [f"{name}-{seed}" for seed in range(int(first), int(last or first) + 1)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Digests of everything that nodes do.")
    parser.add_argument("--swarm", default="1-200", help="seeds, A-B")
    parser.add_argument("--operations", default="1-20", help="seeds of the swarm of operations, A-B")
    parser.add_argument("--compare", type=Path, help="what this printed before")
    parser.add_argument("--effects", metavar="NAME", help="print the effects of one seed or scenario instead")
    parser.add_argument("--jobs", type=int, default=JOBS, help="processes")
    asked = parser.parse_args()
    if asked.effects is not None:
        show(asked.effects)
        return 0
    before = {} if asked.compare is None else dict(map(str.split, asked.compare.read_text().splitlines()))
    different = 0
    with ProcessPoolExecutor(asked.jobs) as pool:
        for line in pool.map(digest, names({"swarm": asked.swarm, "operations": asked.operations})):
            name, found = line.split()
            if asked.compare is None:
                print(line, flush=True)
            elif before.get(name) != found:
                different += 1
                print(f"{name} {'differs' if name in before else 'is new'}", flush=True)
    if asked.compare is not None:
        print(f"{different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
