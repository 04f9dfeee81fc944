"""Cuts of one direction, healed: who leads is heard and hears nobody, or hears and is not heard."""

import time
from typing import Final

from comesh.lab.mesh import MeshError
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage

QUICK_S: Final = 3.0
LONG_S: Final = 20.0
"""Time that is long enough for all nodes that can take the leader for dead to do so."""


def heard_one_way(stage: Stage) -> None:
    """A leader that is heard but hears nobody serves no longer than its lease, and so does one that hears but
    is not heard. Another serves meanwhile, never two at once, and healed they are one mesh again."""
    with stage.mesh(five_rooms(), relayed=True) as play:
        for _ in range(2 if stage.long else 1):
            for hears in (False, True):
                _cut_one_way(play, hears=hears)


def _cut_one_way(play: Play, *, hears: bool) -> None:
    group = play.group_of("across")
    leader = play.leader(group)
    run = play.fire("across", node=next(node for node in play.mesh.nodes if node != leader))
    play.executes(run)
    if hears:
        play.mesh.silence(leader)
        play.say(f"nobody hears {leader}, which leads {group}")
    else:
        play.mesh.deafen(leader)
        play.say(f"{leader}, which leads {group}, hears nobody")
    began = time.monotonic()
    other = play.leader(group, other_than=[leader])
    took_s = time.monotonic() - began
    play.say(f"{other} serves {group} (after {took_s:.2f} s)")
    play.figure("silenced_replaced_s" if hears else "deaf_replaced_s", took_s)
    lasts_s = LONG_S if play.stage.long else QUICK_S

    def over() -> bool:
        if leader in play.servers(group):
            raise MeshError(f"{leader} serves {group} again, though it is cut off in one direction")
        return time.monotonic() - began > lasts_s

    play.until(f"that stayed so for {lasts_s:g} s", over)
    play.goes_on("tick", "tock", more=1)
    play.mesh.heal()
    play.say("healed")
    play.until("the mesh is whole", play.is_whole)
    play.ends(run)
    play.must(f"one serves {group}", len(play.servers(group)) <= 1)
    play.goes_on("tick", "tock")
