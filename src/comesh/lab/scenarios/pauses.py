"""SIGSTOP of who leads: a process that stands still, and takes itself for the leader when it goes on."""

import time
from typing import Final

from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage

QUICK_S: Final = 1.7
LONG_S: Final = 30.0
"""More than four leases; and so long that everybody takes it for dead."""


def a_leader_stands_still(stage: Stage) -> None:
    """A leader that stands still for longer than its lease is replaced; when it goes on it serves nothing
    under its old ballot, and what it had begun is done once."""
    with stage.mesh(five_rooms()) as play:
        groups = (play.group_of("across"), play.group_of("west1"))
        for group in groups if stage.long else groups[:1]:
            _stand_still(play, group)


def _stand_still(play: Play, group: str) -> None:
    leader = play.leader(group)
    run = play.fire("across", node=next(node for node in play.mesh.nodes if node != leader))
    play.executes(run)
    began = time.monotonic()
    play.mesh.pause(leader)
    play.say(f"{leader} stands still")
    other = play.leader(group, other_than=[leader])
    play.say(f"{other} serves {group}")
    play.goes_on("tick", "tock", more=1)
    stands_s = LONG_S if play.stage.long else QUICK_S
    play.until(f"{leader} stood still for {stands_s:g} s", lambda: time.monotonic() - began > stands_s)
    play.mesh.resume(leader)
    play.until("the mesh is whole", play.is_whole)
    play.ends(run)
    play.must(f"one serves {group}", len(play.servers(group)) <= 1)
