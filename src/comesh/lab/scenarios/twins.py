"""Two nodes with one name: somebody copied a memory card and put the copy into another computer."""

import shutil
from typing import Final

from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.runtime.local_mesh import LOOPBACK
from comesh.runtime.running import ENDED_ITSELF

TWIN: Final = "-twin"


def two_have_one_name(stage: Stage) -> None:
    """The younger of two processes with the name and the journal of one node takes part; the older learns of
    it, says so and ends by itself. Neither votes twice, and the mesh goes on."""
    with stage.mesh(five_rooms()) as play:
        node = play.leader(play.group_of("across"))
        run = play.fire("across")
        twin = f"{node}{TWIN}"
        copied = play.mesh.directory / "nodes" / twin
        shutil.copytree(play.mesh.data_of(node), copied, ignore=shutil.ignore_patterns("*.sock", "lock"))
        play.mesh.start(node, process=twin, data=copied, listen=((LOOPBACK, 0),))
        play.say(f"a second {node} starts, from a copy of its disk")
        took_s = play.until(f"the older {node} has ended by itself", lambda: not play.mesh.runs(node))
        play.figure("older_ended_s", took_s)
        said = play.mesh.last_words(node, 1)
        play.must(f"it says why: {said}", "another process runs as node" in said)
        play.must("its exit code says so", play.mesh.exit_code(node) == ENDED_ITSELF)
        play.until("every group is served", lambda: _all_served_without(play, node))
        play.ends(run)
        play.goes_on("tick", "tock")
        play.mesh.terminate(twin)
        play.say("the copy was stopped, and the original is started again")
        play.restart(node)
        play.until("all seats are taken", play.all_seated)
        play.goes_on("tick", "tock")


def _all_served_without(play: Play, doubled: str) -> bool:
    """Says if all groups are served, as the nodes that are not doubled know it."""
    known = {
        one.group
        for status in play.mesh.statuses().values()
        if status.node != doubled
        for one in status.groups
        if one.leader is not None
    }
    return known == set(play.program.plan.genesis)
