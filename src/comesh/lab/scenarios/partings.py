"""Partitions in two and in three, healed. Sides are chosen so that they matter to who looks after what."""

import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from comesh.lab.mesh import MeshError
from comesh.lab.proxy_thread import ProxyThread
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage

QUICK_S: Final = 3.0
LONG_S: Final = 20.0
"""Time that is long enough for nodes of other sides to be taken for dead, and replaced."""

Sides = tuple[frozenset[str], ...]
Pair = tuple[str, str]


def parted_in_two(stage: Stage) -> None:
    """Per group only the side with f+1 of its config acts. A run that spans the sides waits, then goes on or
    ends with a reason."""
    with stage.mesh(five_rooms(), relayed=True) as play:
        for _ in range(2 if stage.long else 1):
            _part(play, 2, spans=True)


def parted_in_three(stage: Stage) -> None:
    """A group of which no side has f+1 is served by nobody, and goes on when it is healed."""
    with stage.mesh(five_rooms(), relayed=True) as play:
        for _ in range(2 if stage.long else 1):
            _part(play, 3, spans=False)


def _part(play: Play, count: int, *, spans: bool) -> None:
    routines, devices = play.group_of("across"), play.group_of("west1")
    members = {group: play.members(group) for group in (routines, devices)}
    sides = _sides(play.mesh.nodes, members[routines], members[devices], count, spans=spans)
    before = play.fire("across")
    sent = _sent_bytes(play)
    play.part(*sides)
    began = time.monotonic()
    acting = {group: _quorum(sides, of) for group, of in members.items()}
    for group, side in acting.items():
        _wait_until_only(play, group, side)
    leader = next(iter(play.servers(routines)))
    run = play.fire("across", node=leader)
    lasts_s = LONG_S if play.stage.long else QUICK_S

    def over() -> bool:
        for group, side in acting.items():
            if not play.servers(group) <= side:
                raise MeshError(f"{play.servers(group)} serve {group}, but only {set(side)} may")
        return time.monotonic() - began > lasts_s

    play.until(f"that stayed so for {lasts_s:g} s", over)
    _tell_futile(play, sides, sent, time.monotonic() - began)
    ended = play.watch.look().ended
    play.must(
        f"{run} waits or failed with a reason: {ended.get(run, 'it waits')}",
        ended.get(run) not in ("finished", ""),
    )
    play.heal()
    healed = time.monotonic()
    play.ends(before, run)
    play.figure("ended_after_heal_s", time.monotonic() - healed)
    play.until("the mesh is whole", play.is_whole)
    play.goes_on("tick", "tock")


def _sent_bytes(play: Play) -> dict[Pair, int]:
    assert isinstance(play.mesh.links, ProxyThread)
    return {pair: count.bytes for pair, count in play.mesh.links.proxy.counts.items()}


def _tell_futile(play: Play, sides: Sides, before: dict[Pair, int], passed_s: float) -> None:
    """Notes what the busiest node sent to one that it cannot reach."""
    side_of = {node: number for number, side in enumerate(sides) for node in side}
    after = _sent_bytes(play)
    most, pair = max(
        (after[pair] - before.get(pair, 0), pair) for pair in after if side_of[pair[0]] != side_of[pair[1]]
    )
    play.say(f"{pair[0]} sent {most / passed_s:.0f} bytes per second to {pair[1]}, in vain")
    play.figure("in_vain_bytes_per_s", most / passed_s)


def _wait_until_only(play: Play, group: str, side: frozenset[str]) -> None:
    """Waits until only one of these nodes serves the group; without any, until nobody does."""

    def is_so() -> bool:
        servers = play.servers(group)
        return servers <= side and len(servers) == bool(side)

    who = f"only one of {', '.join(sorted(side))}" if side else "nobody"
    play.until(f"{who} serves {group}", is_so)


def _quorum(sides: Sides, members: Sequence[str]) -> frozenset[str]:
    """The side with a majority of these; empty: none has."""
    return next((side for side in sides if 2 * len(side & set(members)) > len(members)), frozenset())


def _sides(
    nodes: Sequence[str], one: Sequence[str], other: Sequence[str], count: int, *, spans: bool
) -> Sides:
    """Returns sides in which one group can act, and the other on another side (spans) or nowhere."""
    for sides in _all_sides(nodes, count):
        here, there = _quorum(sides, one), _quorum(sides, other)
        if here and here != there and bool(there) == spans:
            return sides
    raise MeshError(f"no {count} sides part {', '.join(one)} from {', '.join(other)}")


def _all_sides(nodes: Sequence[str], count: int) -> Iterator[Sides]:
    for numbers in product(range(count), repeat=len(nodes)):
        if len(set(numbers)) == count:
            yield tuple(
                frozenset(node for node, number in zip(nodes, numbers, strict=True) if number == side)
                for side in range(count)
            )
