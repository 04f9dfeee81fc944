"""Full, torn, spoiled and empty disks, and a clock that is wrong: the node says so, and the mesh goes on."""

from typing import Final

from comesh.lab.mesh import now_us
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.lab.small_disk import fill, make_room

HOUR_MS: Final = 3_600_000.0
TORN_BYTES: Final = 5
FLUSH_MS: Final = 2000.0
"""Rarely, so that under `batched` the end that is torn off was not flushed."""
FLIPPED_FROM_END: Final = 40
LEADS_S: Final = 150.0
"""Time until every node led once: several epochs."""
SPARE_FIRINGS: Final = 3
"""Firings that may be missed while nobody led."""


def a_disk_is_full(stage: Stage) -> None:
    """A leader without room on its disk says so, acknowledges nothing, leads nothing, and takes part again
    when there is room."""
    with stage.mesh(five_rooms(), small_disk_of="across") as play:
        victim = play.first_leader("across")
        where = play.mesh.data_of(victim)
        play.must(f"{victim} leads", victim in play.servers(play.group_of("across")))
        run = play.fire("across")
        play.executes(run)
        play.say(f"the disk of {victim} is full: {fill(where)} bytes more went there")
        play.until(f"{victim} says so", lambda: "full" in " ".join(_trouble(play, victim)))
        play.say(f"{victim}: {'; '.join(_trouble(play, victim))}")
        play.until(f"{victim} serves nothing", lambda: victim not in play.mesh.leaders().values())
        play.until("every group is served", play.all_served)
        play.ends(run)
        play.goes_on("tick", "tock")
        make_room(where)
        play.say("there is room again")
        play.until(f"{victim} has no trouble any more", lambda: not _trouble(play, victim))
        play.until("all seats are taken", play.all_seated)
        play.goes_on("tick", "tock")


def a_journal_is_spoiled(stage: Stage) -> None:
    """A journal with a torn end goes on or is set aside; one with a flipped bit is set aside; one that is
    gone stands for one that was lost. The node says what it found, and recovers from its peers."""
    for durability in ("strict", "batched") if stage.long else ("strict",):
        _spoil(stage, durability)


def _spoil(stage: Stage, durability: str) -> None:
    with stage.mesh(five_rooms(durability=durability), flush_ms=FLUSH_MS) as play:
        victim = play.leader(play.group_of("across"))
        for what in ("torn", "flipped", "wiped"):
            run = play.fire("across")
            play.executes(run)
            play.kill(victim)
            said = _log_bytes(play, victim)
            match what:
                case "torn":
                    play.mesh.tear(victim, TORN_BYTES)
                case "flipped":
                    play.mesh.flip_bit(victim, FLIPPED_FROM_END)
                case _:
                    play.mesh.wipe(victim)
            play.say(f"the journal of {victim} is {what}")
            play.restart(victim)
            play.until("the mesh is whole", play.is_whole)
            notes = [line for line in _log(play, victim)[said:].splitlines() if "journal" in line]
            play.must(f"it says what it found: {notes[0] if notes else 'nothing'}", bool(notes))
            play.ends(run)
            play.until("all seats are taken", play.all_seated)
            play.goes_on("tick", "tock")
            victim = play.leader(play.group_of("west1"))


def a_clock_is_wrong(stage: Stage) -> None:
    """A node whose clock is an hour off says so. It may lead: what is periodic fires on, under it and under
    who comes after it, and nothing fires for each second of an hour that did not pass."""
    with stage.mesh(five_rooms(epoch="20s" if stage.long else "5s")) as play:
        victim = play.leader(play.group_of("tick"))
        play.mesh.terminate(victim)
        play.mesh.start(victim, clock_offset_ms=HOUR_MS)
        play.say(f"{victim} starts again with a clock that is an hour ahead")
        play.until("the mesh is whole", play.is_whole)
        play.until(f"{victim} says so", lambda: "most nodes say" in " ".join(_trouble(play, victim)))
        play.say(f"{victim}: {'; '.join(_trouble(play, victim))}")
        others = [node for node in play.mesh.nodes if node != victim]
        before, began_us = len(play.watch.look().firings_of("tick")), now_us()
        play.until(
            f"{victim} leads what is periodic",
            lambda: victim in play.servers(play.group_of("tick")) | play.servers(play.group_of("tock")),
            bound_s=LEADS_S,
        )
        play.goes_on("tick", "tock", more=5)
        play.kill(victim)
        play.until("others lead", lambda: set(play.mesh.leaders().values()) <= set(others))
        play.goes_on("tick", "tock", more=5)
        fired, passed_s = len(play.watch.firings_of("tick")) - before, (now_us() - began_us) / 1e6
        play.must(f"tick fired {fired} times in {passed_s:.0f} s", fired <= passed_s + SPARE_FIRINGS)
        play.restart(victim)


def _trouble(play: Play, node: str) -> tuple[str, ...]:
    status = play.mesh.status(node)
    return () if status is None else status.trouble


def _log(play: Play, node: str) -> str:
    return (play.mesh.directory / "logs" / f"{node}.log").read_text(errors="replace")


def _log_bytes(play: Play, node: str) -> int:
    return len(_log(play, node))
