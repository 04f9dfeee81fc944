"""Shrinks a case that breaks a promise: delta debugging (Zeller's ddmin) over what a seed drew.

A fault that is drawn ends by itself, so no case is left in which a group lacks the nodes to go on. After the
faults, what people asked and did is left out, and then what the radio, the clocks and the start have against
the mesh. Routines and devices stay: they follow from the seed.

A reduced case is kept as the seed and what is left of what it drew, so it is small, and says so where a newer
version of the swarm draws something else.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, TypeVar

import msgspec
from msgspec.structs import replace

from comesh.sim import operations_case
from comesh.sim.fault_schedules import Schedule
from comesh.sim.swarm_case import Case, Drawing, draw
from comesh.sim.world_settings import WorldSettings

FORMAT: Final = 1
_T = TypeVar("_T")
Breaks = Callable[[Case], bool]
"""Returns whether a case still breaks the promise."""
DRAWING: Final[dict[str, Drawing]] = {"groups": draw, "operations": operations_case.draw}
"""Functions that draw a case, by the name of a swarm."""


class Reduced(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rest of a shrunk case: the numbers of its faults, requests and operations, in the order of
    drawing."""

    comesh_fuzz_case: int = FORMAT
    seed: int
    promise: str
    """The promise that it breaks."""
    faults: tuple[int, ...]
    of_faults: int
    askings: tuple[int, ...]
    of_askings: int
    operations: tuple[int, ...] = ()
    of_operations: int = 0
    calm: tuple[str, ...] = ()
    """Settings of the world that were reset."""
    swarm: Literal["groups", "operations"] = "groups"

    def case(self) -> Case:
        """Returns the case. ValueError if the seed draws something else by now."""
        drawn, *_ = DRAWING[self.swarm](self.seed)
        counts = (len(drawn.faults.faults), len(drawn.askings), len(drawn.operations))
        if counts != (self.of_faults, self.of_askings, self.of_operations):
            now = "{} faults, {} askings and {} operations".format(*counts)
            then = f"{self.of_faults}, {self.of_askings} and {self.of_operations}"
            raise ValueError(
                f"seed {self.seed} draws {now}, not {then}: another version of the swarm reduced this case"
            )
        unknown = sorted(set(self.calm) - set(CALMING))
        if self.comesh_fuzz_case != FORMAT or unknown:
            raise ValueError(f"a case of another version: format {self.comesh_fuzz_case}, calm {unknown}")
        faults = drawn.faults.faults
        if not all(0 <= number < len(faults) for number in self.faults):
            raise ValueError(f"faults are numbered from 0 to {len(faults) - 1}")
        if not all(0 <= number < len(drawn.askings) for number in self.askings):
            raise ValueError(f"askings are numbered from 0 to {len(drawn.askings) - 1}")
        if not all(0 <= number < len(drawn.operations) for number in self.operations):
            raise ValueError(f"operations are numbered from 0 to {len(drawn.operations) - 1}")
        settings = drawn.settings
        for name in self.calm:
            settings = CALMING[name](settings)
        return replace(
            drawn,
            faults=Schedule(tuple(faults[number] for number in self.faults)),
            askings=tuple(drawn.askings[number] for number in self.askings),
            operations=tuple(drawn.operations[number] for number in self.operations),
            settings=settings,
        )


def whole(seed: int, promise: str, swarm: Literal["groups", "operations"] = "groups") -> Reduced:
    """Returns everything that a seed drew."""
    drawn, *_ = DRAWING[swarm](seed)
    faults, askings, operations = len(drawn.faults.faults), len(drawn.askings), len(drawn.operations)
    return Reduced(
        seed=seed,
        promise=promise,
        faults=tuple(range(faults)),
        of_faults=faults,
        askings=tuple(range(askings)),
        of_askings=askings,
        operations=tuple(range(operations)),
        of_operations=operations,
        swarm=swarm,
    )


def shrink(case: Reduced, breaks: Breaks) -> Iterator[Reduced]:
    """Yield ever smaller cases, each of which breaks its promise; the last one is the result.

    No single part of the result can be left out.
    """
    best = case
    before = None
    while best != before:
        before = best
        for faults in ddmin(list(best.faults), _breaking(best, breaks, _with_faults)):
            best = _with_faults(best, faults)
            yield best
        for askings in ddmin(list(best.askings), _breaking(best, breaks, _with_askings)):
            best = _with_askings(best, askings)
            yield best
        for operations in ddmin(list(best.operations), _breaking(best, breaks, _with_operations)):
            best = _with_operations(best, operations)
            yield best
        for name in CALMING:
            calmer = replace(best, calm=(*best.calm, name))
            changes = name not in best.calm and calmer.case() != best.case()
            if changes and breaks(calmer.case()):
                best = calmer
                yield best


def _breaking(
    best: Reduced, breaks: Breaks, with_items: Callable[[Reduced, Sequence[_T]], Reduced]
) -> Callable[[Sequence[_T]], bool]:
    return lambda items: breaks(with_items(best, items).case())


def _with_faults(case: Reduced, faults: Sequence[int]) -> Reduced:
    return replace(case, faults=tuple(faults))


def _with_askings(case: Reduced, askings: Sequence[int]) -> Reduced:
    return replace(case, askings=tuple(askings))


def _with_operations(case: Reduced, operations: Sequence[int]) -> Reduced:
    return replace(case, operations=tuple(operations))


def ddmin(items: Sequence[_T], breaks: Callable[[Sequence[_T]], bool]) -> Iterator[list[_T]]:
    """Yield ever shorter lists that still break; the last one is minimal: without any one item it does not
    break."""
    left = list(items)
    if left and breaks([]):
        yield []
        return
    parts = 2
    while len(left) >= 2:
        size = -(-len(left) // parts)
        for begin in range(0, len(left), size):
            rest = left[:begin] + left[begin + size :]
            if rest and breaks(rest):
                left = rest
                yield left
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                return
            parts = min(2 * parts, len(left))


def _without_loss(settings: WorldSettings) -> WorldSettings:
    radio = settings.radio
    return replace(settings, radio=replace(radio, loss_per_hop=0.0, loss_per_message=0.0))


CALMING: Final[dict[str, Callable[[WorldSettings], WorldSettings]]] = {
    "loss": _without_loss,
    "duplicates": lambda one: replace(one, radio=replace(one.radio, duplicate=0.0)),
    "reordering": lambda one: replace(one, radio=replace(one.radio, reorder=0.0)),
    "skew": lambda one: replace(one, skew_ms=0.0),
    "drift": lambda one: replace(one, drift_ppm=0.0),
    "start": lambda one: replace(one, start_spread_ms=0.0),
}
"""Settings of the world that work against the mesh, by name, and how to reset them."""
