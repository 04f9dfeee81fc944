"""`comesh demo`: an office floor in virtual time, live in the terminal, with a story of things that break.

The whole protocol runs: groups replicate and lead, routines fire and act. Each chapter says what it does,
does it, and waits until what it promises has happened, or the time for it is over. What the protocol promises
at all times is checked all the while. On a terminal the story goes on with other victims until Ctrl-C.
`--once`, or output that is no terminal, plays it once and ends with 0 only if every promise held.
"""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.live import Live

from comesh.cli.demo_view import Log, screen
from comesh.cli.documents import read_deployment
from comesh.cli.terminal import Exit, fail, number, out
from comesh.core.draws import Draws
from comesh.core.effects import LeaderChanged, Observation, RunTraced
from comesh.core.ids import GroupId, NodeId, RoutineId
from comesh.core.program import RoutineProgram
from comesh.sim.building import Building
from comesh.sim.faults import Crash, Fault, Heal, Partition, PowerBack, PowerLoss, Restart

OFFICE = Path(__file__).parent / "office.yaml"
FRAME_S = 0.1
KNOWN_WITHIN_PERIODS = 20.0
AGREED_WITHIN_PERIODS = 90.0
LONGEST_ASKED_MS = 20_000.0
"""Of the commands of a routine that the story asks for."""
ACTING = ("executing", "command", "outcome", "releasing", "finished", "failed")
"""What is told of a run that has its locks."""
PROMISES = (
    "no two runs act on one device at once",
    "each group has one history and one leader at a time",
    "a new leader holds everything that was committed",
    "every run ends finished, or failed with a reason",
    "no device acts for a run that does not hold its lock",
)

_File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="A deployment document; left out: an office floor.", show_default=False
    ),
]


class Chapter(NamedTuple):
    """What is said, what happens, and what must be so within some membership periods."""

    says: str
    faults: tuple[Fault, ...]
    promise: str
    holds: Callable[[], bool]
    within_periods: float
    asks: Callable[[], object] | None = None
    """What people do besides."""
    rest_periods: float = 4.0
    """Before the next chapter."""


def demo(
    file: _File = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Play the story once; exit 0 if all held.")] = False,
    speed: Annotated[float, typer.Option(min=0.1, max=1000.0, help="Simulated seconds per second.")] = 3.0,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 1,
) -> None:
    """Show a building whose mesh runs routines, loses nodes, power domains and its unity, and recovers."""
    deployment = read_deployment(OFFICE if file is None else file)
    if len(deployment.nodes) < 3:
        fail("the story needs at least three nodes: one to lose, and two to notice")
    if not deployment.devices:
        fail("the story needs at least one device: without any there is no cluster whose leader could crash")
    building = Building(deployment, seed=seed)
    stage = Stage(building, speed=speed, live=out.is_terminal)
    once = once or not out.is_terminal
    draws = Draws(seed)
    with stage, suppress(KeyboardInterrupt):
        stage.play(_opening(building))
        while True:
            for chapter in _story(building, draws):
                stage.play(chapter)
            if once:
                break
    stage.close()
    raise typer.Exit(int(Exit.NO if stage.broken else Exit.OK))


class Stage:
    """Plays chapters at a pace that a person can follow."""

    def __init__(self, building: Building, *, speed: float, live: bool) -> None:
        self._building = building
        self._speed = speed
        self._log = Log(building)
        self._live = Live(console=out, screen=True, auto_refresh=False) if live else None
        self._told_violations = 0
        self._leaders: dict[GroupId, tuple[int, NodeId]] = {}
        self.kept = 0
        self.broken = 0
        building.world.observers.append(self._on_observation)

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def play(self, chapter: Chapter) -> None:
        """Do what the chapter says, and wait for what it promises."""
        building = self._building
        period_s = building.deployment.settings.membership_period_ms / 1000
        self._say(chapter.says, "bold")
        building.happen(*chapter.faults)
        if chapter.asks is not None:
            chapter.asks()
        began_ms = building.world.now_ms
        self._run(FRAME_S)
        while not chapter.holds():
            if building.world.now_ms - began_ms > 1000 * period_s * chapter.within_periods:
                self.broken += 1
                self._say(
                    f"  NOT so after {chapter.within_periods * period_s:.0f} s: {chapter.promise}", "bold red"
                )
                return
            self._run(FRAME_S)
        took_s = (building.world.now_ms - began_ms) / 1000
        self.kept += 1
        self._say(f"  {chapter.promise} ({took_s:.1f} s)", "green")
        self._run(chapter.rest_periods * period_s)

    def close(self) -> None:
        """What is left on the terminal when the story is over."""
        report = self._building.simulation.report()
        out.print(
            f"{report.simulated_s:.0f} s simulated, {report.events} events, "
            f"{report.end_to_end_bytes_per_s.mean:.0f} bytes/s sent per node. "
            f"Of what was promised, {self.kept} happened in time, {self.broken} did not."
        )
        runs, checks = self._building.protocol.runs, self._building.checks
        checks.finish()
        out.print(
            f"{runs.fired} runs: {runs.finished} finished, {runs.failed} failed, {len(runs.going)} still "
            f"going; {self._building.protocol.commits} commits."
        )
        for promise in PROMISES:
            out.print(f"  checked all the while: {promise}")
        self._tell_violations()
        if not checks.violations:
            out.print("  none of them was broken")

    def _say(self, what: str, style: str = "") -> None:
        line = self._log.add(what, style)
        if self._live is None:
            out.print(line)

    def _on_observation(self, now_ms: float, node: NodeId, told: Observation) -> None:
        """What groups and runs do, as it happens."""
        match told:
            case LeaderChanged(state="serving", group=group, config=config):
                before = self._leaders.get(group)
                self._leaders[group] = (config.number, node)
                if before is not None and config.number > before[0]:
                    self._say(f"  {group} moved to {', '.join(config.nodes)}; {node} leads")
                elif before is not None and before[1] != node:
                    self._say(f"  {node} leads {group} now")
            case RunTraced(what="finished", run=run):
                self._say(f"  {run.routine} finished")
            case RunTraced(what="failed", run=run, detail=why):
                self._say(f"  {run.routine} failed: {why}")
            case _:
                pass

    def _tell_violations(self) -> None:
        violations = self._building.checks.violations
        for violation in violations[self._told_violations :]:
            self.broken += 1
            self._say(f"  BROKEN: {violation}", "bold red")
        self._told_violations = len(violations)

    def _run(self, seconds: float) -> None:
        """Let simulated time pass, at the pace asked for."""
        end_ms = self._building.world.now_ms + 1000 * seconds
        while self._building.world.now_ms < end_ms:
            began = time.monotonic()
            step_s = min(FRAME_S * self._speed, (end_ms - self._building.world.now_ms) / 1000)
            self._building.run(step_s)
            self._tell_violations()
            if self._live is not None:
                self._live.update(screen(self._building, self._log, out.size), refresh=True)
                time.sleep(max(0.0, step_s / self._speed - (time.monotonic() - began)))


def _opening(building: Building) -> Chapter:
    count, clusters = len(building.plan.nodes), len(building.plan.clusters)
    return Chapter(
        f"all start: {number(count, 'node')}, {number(clusters, 'cluster')} of devices, each with its group",
        (),
        f"all {count} run and know of each other, and every group serves",
        lambda: len(building.running()) == count and building.agrees() and _all_serve(building),
        AGREED_WITHIN_PERIODS,
    )


def _all_serve(building: Building) -> bool:
    return all(map(building.serves, building.groups))


def _story(building: Building, draws: Draws) -> Iterator[Chapter]:
    """Drawn as it is told: who leads at that moment decides who is struck."""
    group = draws.choice([cluster.group for cluster in building.plan.clusters])
    routine = _to_ask_for(building, draws)
    if routine is not None:
        group = building.program.group_of_routine[routine]
        yield _asking(building, routine, draws.choice(building.running()))
    leader = building.groups[group].leader or building.groups[group].members[0]
    crashes = f"{leader}, the leader of {group}, crashes" + (" in the middle of it" if routine else "")
    asked = [run.run for run in building.protocol.runs.going if run.run.startswith(f"{routine}#")]
    yield _loss(building, crashes, (Crash(at_ms=0, node=leader),), [leader])
    yield _return(building, f"{leader} is switched on again", (Restart(at_ms=0, node=leader),))
    for domain, nodes in sorted(building.world.topology.power_domains.items()):
        lost = f"power domain {domain} goes out, and with it {', '.join(nodes)}"
        yield _loss(building, lost, (PowerLoss(at_ms=0, domain=domain),), nodes)
        yield _return(building, f"the power of {domain} is back", (PowerBack(at_ms=0, domain=domain),))
    side, cut = _cut_in_two(building)
    rest = len(building.plan.nodes) - len(side)
    yield Chapter(
        f"the mesh is cut: {number(len(side), 'node')} in the west, {rest} in the east",
        (cut,),
        "each side knows that the other is out of reach; each group serves on the side of its majority",
        lambda: (
            _sides_know(building, side) and all(_led_by_majority(building, g, side) for g in building.groups)
        ),
        AGREED_WITHIN_PERIODS,
    )
    yield _return(building, "the cut heals", (Heal(at_ms=0),), asked)


def _loss(building: Building, says: str, faults: tuple[Fault, ...], lost: Collection[NodeId]) -> Chapter:
    """What is left must know; groups that keep a majority must serve, the others say so."""
    stopped = [group for group, now in building.groups.items() if not _majority(now.members, lost)]
    reach = (
        "every group serves"
        if not stopped
        else f"{', '.join(stopped)} can not act until enough of its nodes are back"
    )
    return Chapter(
        says,
        faults,
        f"every node left knows; {reach}",
        lambda: (
            building.agrees()
            and all(building.serves(group) != (group in stopped) for group in building.groups)
        ),
        KNOWN_WITHIN_PERIODS,
    )


def _majority(members: Collection[NodeId], lost: Collection[NodeId]) -> bool:
    return 2 * sum(node not in lost for node in members) > len(members)


def _return(building: Building, says: str, faults: tuple[Fault, ...], asked: Collection[str] = ()) -> Chapter:
    """Groups that lost more than they can bear wait (cold_wait): nothing from before may still land."""
    count = len(building.plan.nodes)
    waits = [group for group in building.groups if not building.serves(group)]
    cold_s = building.program.settings.cold_wait_ms / 1000
    if waits:
        says += f"; {', '.join(waits)} goes on after a wait of {cold_s:.0f} s, lest late commands still land"
    period_s = building.deployment.settings.membership_period_ms / 1000
    return Chapter(
        says,
        faults,
        "all nodes know of each other again, and every group serves"
        + (f"; {', '.join(asked)}, which the crash met, came to its end" if asked else ""),
        lambda: (
            len(building.running()) == count
            and building.agrees()
            and _all_serve(building)
            and not any(run.run in asked for run in building.protocol.runs.going)
        ),
        AGREED_WITHIN_PERIODS + (cold_s / period_s if waits else 0.0),
    )


def _to_ask_for(building: Building, draws: Draws) -> RoutineId | None:
    """A routine to ask for: soon over, and not on devices that the crash of its leader takes along. Better
    one whose commands can be read back, so that the next leader need not wait, and one of several devices."""
    routines = building.program.routines.values()
    short = [
        one
        for one in routines
        if sum(step.takes_ms for step in one.steps) <= LONGEST_ASKED_MS and not _hosts_any(building, one)
    ]
    sure = [one for one in short if all(step.expects is not None for step in one.steps)] or short
    several = [one for one in sure if len(one.commands) > 1] or sure
    return draws.choice(sorted(one.id for one in several)) if several else None


def _hosts_any(building: Building, routine: RoutineProgram) -> bool:
    """Does the leader of its group host one of its devices?"""
    leader = building.groups[building.program.group_of_routine[routine.id]].leader
    return any(building.deployment.devices[device].on == leader for device in routine.commands)


def _asking(building: Building, routine: RoutineId, node: NodeId) -> Chapter:
    """Somebody asks a node for a routine; the story goes on as soon as the run acts."""
    told = building.protocol.told
    name = building.deployment.routines[routine].name or routine

    def ask() -> None:
        told.pop(routine, None)
        building.world.fire(routine, f"demo {building.world.now_ms:.0f}", node)

    return Chapter(
        f"somebody asks {node} for {routine}: {name}",
        (),
        f"{routine} has all its locks and acts",
        lambda: told.get(routine, "") in ACTING,
        KNOWN_WITHIN_PERIODS,
        asks=ask,
        rest_periods=0.0,
    )


def _cut_in_two(building: Building) -> tuple[list[NodeId], Partition]:
    """The western half of the nodes, and a cut between it, with the devices there, and the rest."""
    westward = sorted(building.plan.nodes, key=lambda node: (node.place.x_mm, node.id))
    side = westward[: len(westward) // 2]
    border_mm = max(node.place.x_mm for node in side)
    devices = [device.id for device in building.plan.devices if device.place.x_mm <= border_mm]
    nodes = sorted(node.id for node in side)
    return nodes, Partition(at_ms=0, sources=(*nodes, *devices), both=True)


def _sides_know(building: Building, side: list[NodeId]) -> bool:
    """Does no node believe in anybody beyond the cut?"""
    return all((node in side) == (other in side) for node, view in building.views().items() for other in view)


def _led_by_majority(building: Building, group: GroupId, side: list[NodeId]) -> bool:
    now = building.groups[group]
    here = sum(node in side for node in now.members)
    return now.leader is not None and (now.leader in side) == (2 * here > len(now.members))
