"""The story of the demo: what people and faults do, and what must then hold.

A chapter is drawn when it is told: who leads at that moment decides who is struck.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from comesh.cli.demo_mesh import DemoMesh
from comesh.cli.terminal import number
from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.program import RoutineProgram

START_S: Final = 60.0
KNOWN_S: Final = 25.0
BACK_S: Final = 60.0
RUN_S: Final = 60.0
LONGEST_ASKED_MS: Final = 30_000.0
"""Maximum time of the commands of a routine that the story fires."""


class Chapter(NamedTuple):
    """A chapter: its text, what is done, and what must hold within how many seconds."""

    says: str
    does: Callable[[], object]
    promise: str
    holds: Callable[[], bool]
    within_s: float
    look: str = ""
    """Command that shows what happens meanwhile."""


def opening(mesh: DemoMesh) -> Chapter:
    count, clusters = len(mesh.local.nodes), len(mesh.program.plan.clusters)
    return Chapter(
        f"all start: {number(count, 'node')} as processes, {number(clusters, 'cluster')} of devices, "
        "each with its group",
        mesh.begin,
        f"all {count} run and know of each other, and every group is served",
        lambda: len(mesh.running()) == count and mesh.agrees() and mesh.all_serve(),
        START_S,
        "comesh status",
    )


def story(mesh: DemoMesh, draws: Draws) -> Iterator[Chapter]:
    yield from _sensors(mesh)
    yield from _conflict(mesh, draws)
    yield from _leader_dies(mesh, draws)
    domains: dict[str, list[NodeId]] = {}
    for name, node in sorted(mesh.deployment.nodes.items()):
        if node.power_domain is not None:
            domains.setdefault(node.power_domain, []).append(name)
    large = [domain for domain, nodes in domains.items() if len(nodes) < len(mesh.local.nodes)]
    if large:
        domain = draws.choice(large)
        yield from _power(mesh, domain, domains[domain])
    yield _epoch(mesh)


# -- chapters ----------------------------------------------------------------------------------------------


def _sensors(mesh: DemoMesh) -> Iterator[Chapter]:
    """Makes sensors of our own office change and a badge be shown, so that routines fire by themselves."""
    routines, devices = mesh.deployment.routines, mesh.deployment.devices
    if "welcome" in routines and "reception_motion" in devices:
        before = _last(mesh, "welcome")
        yield Chapter(
            "somebody comes to the reception: its motion sensor says so",
            lambda: _flip(mesh, "reception_motion", "active"),
            "the routine welcome fired by itself and switched the light on",
            lambda: _last(mesh, "welcome") not in (before, None),
            RUN_S,
            "comesh trace welcome",
        )
    if "visitor" in routines and "badge_reader" in devices:
        seen = _last(mesh, "visitor")
        yield Chapter(
            "a guest shows a badge",
            lambda: mesh.press("badge_reader", {"badge": "guest"}),
            "the event fired visitor, and the main door is open",
            lambda: _last(mesh, "visitor") not in (seen, None),
            RUN_S,
            "comesh trace visitor",
        )


def _flip(mesh: DemoMesh, device: str, reading: str) -> None:
    mesh.set_reading(device, reading, False)
    mesh.set_reading(device, reading, True)


def _last(mesh: DemoMesh, routine: str) -> str | None:
    seen = mesh.routines().get(routine)
    return None if seen is None else seen.last


def _conflict(mesh: DemoMesh, draws: Draws) -> Iterator[Chapter]:
    """Fires two routines that want one device at the same time."""
    found = _rivals(mesh, draws)
    if found is None:
        return
    one, other, device = found
    runs: list[str] = []

    def ask() -> None:
        runs.append(mesh.fire(one, draws.choice(mesh.running())))
        runs.append(mesh.fire(other, draws.choice(mesh.running())))

    yield Chapter(
        f"{one} and {other} are asked for at once; both want {device}",
        ask,
        "one had it after the other, and both came to their end",
        lambda: bool(runs) and all(mesh.has_ended(run) for run in runs),
        2 * RUN_S,
        "comesh status --devices",
    )


def _rivals(mesh: DemoMesh, draws: Draws) -> tuple[RoutineId, RoutineId, str] | None:
    short = _short(mesh)
    pairs = [
        (one.id, other.id, min(one.commands & other.commands))
        for one in short
        for other in short
        if one.id < other.id and one.commands & other.commands
    ]
    return draws.choice(pairs) if pairs else None


def _short(mesh: DemoMesh) -> list[RoutineProgram]:
    routines = mesh.program.routines.values()
    return [one for one in routines if 0 < _lasts_ms(mesh, one) <= LONGEST_ASKED_MS]


def _lasts_ms(mesh: DemoMesh, routine: RoutineProgram) -> int:
    devices = mesh.deployment.devices
    steps = mesh.deployment.routines[routine.id].do
    return sum(step.lasts_ms(devices[DeviceId(step.device)].commands[step.command]) for step in steps)


def _leader_dies(mesh: DemoMesh, draws: Draws) -> Iterator[Chapter]:
    """Kills a leader in the middle of a run, which goes on."""
    lasting = [one for one in _short(mesh) if _lasts_ms(mesh, one) >= 3000]
    choice = lasting or _short(mesh)
    if not choice:
        return
    routine = draws.choice(sorted(one.id for one in choice))
    group = mesh.program.group_of_routine[routine]
    runs: list[str] = []
    yield Chapter(
        f"somebody asks for {routine}: {mesh.deployment.routines[routine].name or routine}",
        lambda: runs.append(mesh.fire(routine, draws.choice(mesh.running()))),
        f"{routine} has all its locks and acts",
        lambda: bool(runs) and (mesh.executing(runs[0]) or mesh.has_ended(runs[0])),
        RUN_S,
        f"comesh trace {routine}",
    )
    if not runs:
        return
    leader = mesh.groups[group].leader or mesh.groups[group].members[0]
    yield Chapter(
        f"{leader}, which leads {group}, is killed in the middle of it",
        lambda: mesh.kill(leader),
        f"every node left knows, another leads {group}, and {runs[0]} came to its end",
        lambda: (
            mesh.agrees()
            and all(mesh.serves(one) for one in mesh.groups)
            and mesh.has_ended(runs[0])
            and mesh.how_ended(runs[0]) == "finished"
        ),
        RUN_S,
        f"comesh trace {routine}",
    )
    yield _return(mesh, f"{leader} is started again", [leader])


def _power(mesh: DemoMesh, domain: str, nodes: list[NodeId]) -> Iterator[Chapter]:
    stopped = [group for group in mesh.groups if not mesh.can_serve(group, nodes)]
    reach = (
        "every group is served"
        if not stopped
        else f"{', '.join(stopped)} can not act until enough of its nodes are back"
    )
    yield Chapter(
        f"power domain {domain} fails, and with it {', '.join(nodes)}",
        lambda: mesh.kill(*nodes),
        f"every node left knows; {reach}",
        lambda: mesh.agrees() and all(mesh.serves(group) for group in mesh.groups if group not in stopped),
        KNOWN_S,
        "comesh status",
    )
    yield _return(mesh, f"the power of {domain} is back", nodes)


def _return(mesh: DemoMesh, says: str, nodes: Collection[str]) -> Chapter:
    def start() -> None:
        for node in nodes:
            mesh.start(node)

    return Chapter(
        says,
        start,
        "all nodes know of each other again, every group is served, and has all of its members",
        lambda: (
            len(mesh.running()) == len(mesh.local.nodes)
            and mesh.agrees()
            and mesh.all_serve()
            and mesh.all_whole()
        ),
        BACK_S + (mesh.program.settings.cold_wait_ms + mesh.program.settings.epoch_ms) / 1000,
    )


def _epoch(mesh: DemoMesh) -> Chapter:
    before = {group: seen.number for group, seen in mesh.groups.items()}
    epoch_s = mesh.program.settings.epoch_ms / 1000
    return Chapter(
        f"an epoch passes ({epoch_s:.0f} s): groups move on, so that nobody carries the load for long",
        lambda: None,
        "every group moved to its next config and is served",
        lambda: mesh.all_serve() and all(seen.number > before[group] for group, seen in mesh.groups.items()),
        2 * epoch_s + 20.0,
        "comesh watch",
    )
