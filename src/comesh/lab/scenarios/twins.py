"""Two nodes with one name: somebody copied a memory card and put the copy into another computer."""

import shutil
from typing import Final

from comesh.lab.mesh import STATUS_S
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.runtime.client import Client, NoAnswerError
from comesh.runtime.local_mesh import LOOPBACK
from comesh.runtime.view import NodeStatus

TWIN: Final = "-twin"


def two_have_one_name(stage: Stage) -> None:
    """Of two processes with the name and the journal of one node only one takes part; the other ends, or is
    heard by nobody and serves nothing. Neither votes twice, and the mesh goes on."""
    with stage.mesh(five_rooms()) as play:
        node = play.leader(play.group_of("across"))
        run = play.fire("across")
        twin = f"{node}{TWIN}"
        copied = play.mesh.directory / "nodes" / twin
        shutil.copytree(play.mesh.data_of(node), copied, ignore=shutil.ignore_patterns("*.sock", "lock"))
        play.mesh.start(node, process=twin, data=copied, listen=((LOOPBACK, 0),))
        play.say(f"a second {node} starts, from a copy of its disk")
        play.until("only one of the two takes part", lambda: _is_out(play, node) or _is_out(play, twin))
        out = twin if _is_out(play, twin) else node
        play.say(f"{out} is out; the last that it said: {play.mesh.last_words(out, 1)}")
        play.until("every group is served", lambda: _all_served_without(play, out))
        play.ends(run)
        play.goes_on("tick", "tock")
        play.mesh.terminate(node, twin)
        play.say("both were stopped, and the original is started again")
        play.restart(node)
        play.until("all seats are taken", play.all_seated)
        play.goes_on("tick", "tock")


def _is_out(play: Play, process: str) -> bool:
    """It has ended, or knows of nobody else and serves nothing."""
    if not play.mesh.runs(process):
        return True
    try:
        with Client(play.mesh.directory / "nodes" / process, within_s=STATUS_S) as client:
            status = client.ask(NodeStatus, "status")
    except NoAnswerError:
        return False
    return set(status.living) <= {status.node} and not any(one.serves for one in status.groups)


def _all_served_without(play: Play, out: str) -> bool:
    """As the nodes that are not doubled know it."""
    doubled = out.removesuffix(TWIN)
    known = {
        one.group
        for status in play.mesh.statuses().values()
        if status.node != doubled
        for one in status.groups
        if one.leader is not None
    }
    return known == set(play.program.plan.genesis)
