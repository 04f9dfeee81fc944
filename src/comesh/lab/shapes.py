"""The shapes of the paper's 11-node deployment: who hears whom.

Sixteen places a metre apart, as a 4x4 grid or as an L along one floor (the line); stations within 1.01 m of
each other are neighbours. Eleven places have a node. In the grid they are drawn, again until they reach each
other; on the line they are the first eleven, with the corner in the middle.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from comesh.core.streams import stream

PLACES: Final = 16
NODES: Final = 11
SIDE: Final = 4
REACH: Final = 1.01
MAX_DRAWS: Final = 1000

Place = tuple[float, float]
Link = tuple[str, str]
"""Two neighbours, in order of their names."""


class Shape(StrEnum):
    GRID = "grid"
    LINE = "line"


def paper_places(shape: Shape, seed: int = 0) -> dict[str, Place]:
    """Eleven nodes, n01 to n11, and where they stand."""
    if shape is Shape.LINE:
        corner = NODES // 2
        taken = [(min(number, corner), max(0, number - corner)) for number in range(NODES)]
        return _named(taken)
    draws = stream(seed, "paper grid")
    for _ in range(MAX_DRAWS):
        chosen = sorted(draws.sample(range(PLACES), NODES))
        places = _named([(number % SIDE, number // SIDE) for number in chosen])
        if is_connected(places, links_of(places)):
            return places
    raise ValueError(f"no {NODES} of {PLACES} places that reach each other in {MAX_DRAWS} draws")


def _named(places: list[tuple[int, int]]) -> dict[str, Place]:
    return {f"n{number:02}": place for number, place in enumerate(places, start=1)}


def links_of(places: Mapping[str, Place], reach: float = REACH) -> list[Link]:
    names = sorted(places)
    return [
        (one, other)
        for number, one in enumerate(names)
        for other in names[number + 1 :]
        if _squared(places[one], places[other]) <= reach * reach
    ]


def _squared(one: Place, other: Place) -> float:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


def is_connected(names: Collection[str], links: Collection[Link]) -> bool:
    """Says if every node reaches every other, over whatever hops."""
    left = set(names)
    reached = {left.pop()} if left else set()
    while reached:
        one = reached.pop()
        for link in links:
            if one in link:
                other = link[0] if link[1] == one else link[1]
                if other in left:
                    left.discard(other)
                    reached.add(other)
    return not left
