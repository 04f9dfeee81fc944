"""kill -9 of who leads, in every stage of a run that spans two groups; of f nodes; of a power domain."""

from collections.abc import Mapping
from typing import Final

from comesh.core.ids import GroupId
from comesh.lab.mesh import MeshError, now_us
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage

STAGES: Final = ("ACQUIRING_LOCKS", "EXECUTING", "RELEASING_LOCKS")
ROUTINE, DEVICE, BOTH = "the routine leader", "the device leader", "both leaders"
QUICK: Final = (
    ("ACQUIRING_LOCKS", DEVICE),
    ("EXECUTING", BOTH),
    ("RELEASING_LOCKS", ROUTINE),
)
MAX_TRIES: Final = 5
"""A stage may be over before it was seen: then it is tried again."""
GUARD_US: Final = 3_000_000
"""Time that the door must be open for guard to fire."""


def leaders_die(stage: Stage) -> None:
    """Whoever leads can die in every stage of a run: it is taken over and ends; held locks, `for:` timers and
    periodic firings go on."""
    chosen = [(one, who) for one in STAGES for who in (ROUTINE, DEVICE, BOTH)] if stage.long else QUICK
    with stage.mesh(five_rooms(), relayed=True) as play:
        play.set_reading("door", "open", False)
        routines, devices = play.group_of("across"), play.group_of("west1")
        for when, who in chosen:
            of_routine, of_device = play.two_leaders(routines, devices)
            victims = {ROUTINE: [of_routine], DEVICE: [of_device], BOTH: [of_routine, of_device]}[who]
            play.say(f"{who} shall die while a run is {when}")
            opened_us = _open_door(play)
            members = {group: play.members(group) for group in (routines, devices)}
            runs = _bring_to(play, when, of_routine, of_device)
            play.kill(*victims)
            _take_over(play, victims, members)
            play.ends(*runs)
            play.goes_on("tick", "tock")
            _guard_fired(play, opened_us)


def f_nodes_die(stage: Stage) -> None:
    """f nodes can die at once, here two, whoever they are: no group loses its quorum, all go on."""
    with stage.mesh(five_rooms(f=2)) as play:
        nodes = play.mesh.nodes
        pairs = [(one, nodes[(number + 1) % len(nodes)]) for number, one in enumerate(nodes)]
        for victims in pairs if stage.long else pairs[:1]:
            run = play.fire("across")
            play.executes(run)
            play.kill(*victims)
            play.until("every group is served without them", play.all_served)
            play.ends(run)
            play.goes_on("tick", "tock")
            play.restart(*victims)
            play.until("all seats are taken", play.all_seated)


def a_power_domain_dies(stage: Stage) -> None:
    """A power domain has at most f members of any group: when it goes dark, and loses what it had not
    flushed, every group is served by the others; and it comes back. Who was replaced meanwhile by members of
    one domain is back at the latest in the next epoch."""
    with stage.mesh(five_rooms(domains="aabbc", epoch="20s")) as play:
        for domain in (("n1", "n2"), ("n3", "n4")) if stage.long else (("n1", "n2"),):
            _wait_until_spread(play, domain)
            run = play.fire("across", node="n5")
            lost_bytes = play.mesh.lose_power(*domain)
            play.say(f"dark: {', '.join(domain)} ({lost_bytes} bytes lost)")
            play.until("every group is served without them", play.all_served)
            play.ends(run)
            play.goes_on("tick", "tock")
            play.restart(*domain)
            play.until("all seats are taken", play.all_seated)


def _wait_until_spread(play: Play, domain: tuple[str, ...]) -> None:
    """At most f of a group are in this domain: with too few nodes that cannot be, until others come back."""

    def is_spread() -> bool:
        led = [one for status in play.mesh.statuses().values() for one in status.groups if one.serves]
        return play.all_seated() and all(len(set(one.members) & set(domain)) <= 1 for one in led)

    play.until(f"no group has more than one of {', '.join(domain)}", is_spread)


def _bring_to(play: Play, when: str, of_routine: str, of_device: str) -> list[str]:
    """Fire until a run is in this stage; all that fired, that run last."""
    runs: list[str] = []
    for _ in range(MAX_TRIES):
        runs.append(play.fire("across"))
        if when == "ACQUIRING_LOCKS":
            _wait_for(play, runs[-1], "EXECUTING")
            runs.append(play.fire("back"))
        elif when == "RELEASING_LOCKS":
            _wait_for(play, runs[-1], "EXECUTING", done=1)
            play.cut(of_routine, of_device)
        if _wait_for(play, runs[-1], when):
            play.say(f"{runs[-1]} is {when}")
            return runs
        play.heal()
    raise MeshError(f"no run was seen {when} in {MAX_TRIES} tries")


def _wait_for(play: Play, run: str, when: str, done: int = 0) -> bool:
    """Waits until the run is in this stage and did so many commands; False: it has ended."""
    reached = False

    def is_there() -> bool:
        nonlocal reached
        live = play.live(run)
        reached = live is not None and live.stage == when and live.done >= done
        return reached or run in play.watch.look().ended

    play.mesh.wait_for(is_there, f"{run} is {when}", bound_s=60.0)
    return reached


def _take_over(play: Play, victims: list[str], groups: Mapping[GroupId, tuple[str, ...]]) -> None:
    """Others serve, if they are enough; then the dead come back."""
    play.heal()
    began_us = now_us()
    for group, members in groups.items():
        if sum(node in victims for node in members) <= len(members) // 2:
            leader = play.leader(group, other_than=victims)
            play.say(f"{leader} serves {group} ({(now_us() - began_us) / 1000:.0f} ms after the death)")
    play.restart(*victims)
    play.until("the mesh is whole", play.is_whole)


def _open_door(play: Play) -> int:
    """When it was not open yet: nothing that counts from then may come sooner."""
    before_us = now_us()
    play.set_reading("door", "open", True)
    return before_us


def _guard_fired(play: Play, opened_us: int) -> None:
    """Once, and not too early, whoever counted its time."""

    def firings() -> list[int]:
        fired = play.watch.look().fired
        return [fired[run] for run in play.watch.firings_of("guard") if fired[run] > opened_us]

    play.until("guard fired", lambda: bool(firings()))
    play.must(
        f"once, {(firings()[0] - opened_us) / 1e6:.1f} s after the door opened",
        len(firings()) == 1 and firings()[0] - opened_us >= GUARD_US,
    )
    play.set_reading("door", "open", False)
    play.until("guard saw the door close", lambda: _truth(play) is False)


def _truth(play: Play) -> bool | None:
    seen = play.routine("guard")
    return None if seen is None else seen.truth
