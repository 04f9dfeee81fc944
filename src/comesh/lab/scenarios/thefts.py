"""A node is stolen: its certificate is revoked, and another machine takes over its name."""

import shutil
import time
from pathlib import Path

from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.runtime.keyring import replace_node
from comesh.runtime.local_mesh import LOOPBACK
from comesh.runtime.revocation import FILE
from comesh.runtime.running import REVOKED


def a_node_is_stolen(stage: Stage) -> None:
    """The list that revokes a leader's certificate is given to one node. All come to know it; the leader is
    out and ends, its routines go on. A new machine with its name is let in, and the stolen one stays out."""
    with stage.mesh(five_rooms()) as play:
        node = play.leader(play.group_of("across"))
        given = next(one for one in play.mesh.nodes if one != node)
        persons = play.mesh.directory / "persons-keys"
        shutil.copytree(play.mesh.directory / "keys", persons)
        play.mesh.terminate(given)
        play.mesh.start(given, keys=persons)
        play.until(f"{given}, which alone will see the list, is back", play.is_whole)
        run = play.fire("across")
        replace_node(persons, node)
        began = time.monotonic()
        play.say(f"the certificate of {node}, which leads, is revoked")
        play.until(f"{node} has ended by itself", lambda: not play.mesh.runs(node))
        play.figure("revoked_ended_s", time.monotonic() - began)
        play.must("its exit code says so", play.mesh.exit_code(node) == REVOKED)
        others = [one for one in play.mesh.nodes if one != node]
        play.until("all others have the list", lambda: all(_has_list(play, one) for one in others))
        play.figure("known_by_all_s", time.monotonic() - began)
        play.mesh.kill(node)  # it is gone already: this closes what is left of it
        play.ends(run)
        play.until("the mesh is whole without it", play.is_whole)
        play.goes_on("tick", "tock")
        _come_back(play, node, persons)
        play.until("all seats are taken", play.all_seated)
        play.goes_on("tick", "tock")


def _has_list(play: Play, node: str) -> bool:
    return (play.mesh.data_of(node) / FILE).is_file()


def _come_back(play: Play, node: str, persons: Path) -> None:
    """A new machine with the name, and the thief with the old keys, which the shared directory still has."""
    play.mesh.wipe(node)
    play.mesh.start(node, keys=persons)
    play.say(f"a new machine is {node}, with new keys")
    play.until("the mesh is whole", play.is_whole)
    stolen = f"{node}-stolen"
    play.mesh.start(
        node, process=stolen, data=play.mesh.directory / "nodes" / stolen, listen=((LOOPBACK, 0),)
    )
    play.say("the stolen machine is switched on")
    play.until("it ends", lambda: not play.mesh.runs(stolen))
    play.must("its exit code says that it is revoked", play.mesh.exit_code(stolen) == REVOKED)
    play.must(f"{node} goes on", play.mesh.runs(node))
    play.mesh.kill(stolen)
