"""The document of a mesh is changed while it works, and all of its nodes are restarted one by one."""

import time
from typing import Final

from comesh.lab.mesh import now_us
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.lab.shapes import Shape, paper_places

BENCHES: Final = 13
DONE: Final = "finished"
WAITING: Final = 8
"""Firings that may wait behind the live run of a routine."""
ENDS_S: Final = 120.0


def a_routine_is_added(stage: Stage) -> None:
    """Eleven nodes get a new routine while more than a hundred firings run or wait: it is live within
    seconds; every firing comes to its end, and none is lost."""
    with stage.mesh(workshop(stage.seed)) as play:
        for number, now in enumerate((False, True, False, True) if stage.long else (False, True), start=2):
            _add_routine(play, number, now=now)


def _add_routine(play: Play, number: int, *, now: bool) -> None:
    fires = [f"work{bench}" for _ in range(WAITING + 1) for bench in range(BENCHES)]
    fired = [play.mesh.fire(routine).run for routine in fires]
    play.must(f"{len(fired)} firings run or wait", all(fired))
    name, how = f"extra{number}", "at once" if now else "as groups hear of it"
    open_then = set(fired) - set(play.watch.look().ended)
    play.figure(f"{how}: firings not ended yet at the command", len(open_then))
    began_us = now_us()
    version = play.mesh.apply(workshop(play.stage.seed, extra=number), now=now)
    play.say(f"version {version} is applied, {how} (after {(now_us() - began_us) / 1e6:.2f} s)")
    play.until(f"all groups work by version {version}", lambda: play.mesh.works_by(version))
    follow_s = (now_us() - began_us) / 1e6
    open_then = set(fired) - set(play.watch.look().ended)
    play.figure(f"{how}: firings not ended yet when all groups follow", len(open_then))
    play.until(f"{name} has fired", lambda: bool(play.watch.look().firings_of(name)))
    live_s = (min(play.watch.fired[run] for run in play.watch.firings_of(name)) - began_us) / 1e6
    play.figure(f"{how}: first firing, seconds after the command", live_s)
    play.figure(f"{how}: all groups follow, seconds after the command", follow_s)
    play.until("all firings have ended", lambda: _all_ended(play, fired), bound_s=ENDS_S)
    failed = {run: play.watch.ended[run] for run in fired if play.watch.ended.get(run, DONE) != DONE}
    play.must(f"none of {len(fired)} firings failed, but {failed}", not failed)


def _all_ended(play: Play, fired: list[str]) -> bool:
    """The last word of a run may be lost where its group is handed off in that moment: then nobody knows it
    any more, and the judge says from what was committed whether it came to its end."""
    ended = play.watch.look().ended
    return all(play.is_forgotten(run) for run in fired if run not in ended)


def restarted_one_by_one(stage: Stage) -> None:
    """All nodes are restarted, one after the other as soon as all members are seated again, while routines
    fire every second: no firing is lost."""
    with stage.mesh(five_rooms()) as play:
        play.goes_on("tick", "tock")
        for node in play.mesh.nodes * (2 if stage.long else 1):
            play.mesh.terminate(node)
            play.mesh.start(node)
            play.until(f"{node} is back, and all seats are taken", play.all_seated, bound_s=ENDS_S)
        play.goes_on("tick", "tock")
        for routine in ("tick", "tock"):
            missed = _missed(play, routine)
            play.must(f"{routine} fired in every second, but {missed}", not missed)


def _missed(play: Play, routine: str) -> list[int]:
    """Seconds between its first and its last firing in which it did not fire."""
    wall_us = time.time_ns() // 1000 - now_us()
    fired = play.watch.look().fired
    seconds = {(fired[run] + wall_us) // 1_000_000 for run in play.watch.firings_of(routine)}
    return sorted(set(range(min(seconds), max(seconds))) - seconds)


def workshop(seed: int, extra: int = 0) -> str:
    """The paper's eleven nodes, and benches of two machines each that are set to work by hand. extra: with
    more routines up to this number, which fire every second."""
    places = paper_places(Shape.GRID, seed)
    nodes = "\n".join(f"  {name}: {{place: [{x}m, {y}m]}}" for name, (x, y) in places.items())
    machines = "\n".join(
        f"  machine{bench}{side}: {{place: [{bench % 4}.{side}m, {bench // 4}.3m], <<: *machine}}"
        for bench in range(BENCHES)
        for side in (1, 2)
    )
    routines = "\n".join(
        f"  work{bench}: {{do: [{{device: machine{bench}1, command: work}}, "
        f"{{device: machine{(bench + 1) % BENCHES}2, command: work}}]}}"
        for bench in range(BENCHES)
    )
    added = "".join(
        f"\n  extra{number}: {{every: 1s, do: [{{device: lamp, command: blink}}]}}"
        for number in range(2, extra + 1)
    )
    return f"""
name: Workshop
settings:
  {{f: 1, epoch: 15s, monitoring: 1s, lease: 1s, hop: 2ms, command_timeout: 2s, flight_limit: 1s,
   selection: {{cluster_size: 4}}}}
x-machine: &machine
  commands: {{work: {{idempotent: false, takes: 500ms}}}}
nodes:
{nodes}
devices:
  lamp: {{place: [1m, 1m], commands: {{blink: {{idempotent: false, takes: 20ms}}}}}}
{machines}
routines:
{routines}{added}
"""
