"""`comesh demo`: an office floor in virtual time, live in the terminal, with a story of things that break.

Each chapter says what it does, does it, and waits until what it promises has happened, or the time for it
is over. On a terminal the story goes on with other victims until Ctrl-C. `--once`, or output that is no
terminal, plays it once and ends with 0 only if every promise held.
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
from comesh.cli.terminal import Exit, fail, out
from comesh.core.draws import Draws
from comesh.core.ids import NodeId
from comesh.sim.building import Building
from comesh.sim.faults import Crash, Fault, Heal, Partition, PowerBack, PowerLoss, Restart

OFFICE = Path(__file__).parent / "office.yaml"
FRAME_S = 0.1
KNOWN_WITHIN_PERIODS = 20.0
AGREED_WITHIN_PERIODS = 90.0

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


def demo(
    file: _File = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Play the story once; exit 0 if all held.")] = False,
    speed: Annotated[float, typer.Option(min=0.1, max=1000.0, help="Simulated seconds per second.")] = 3.0,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything random.")] = 1,
) -> None:
    """Show a building whose mesh loses nodes, a power domain and its unity, and recovers."""
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
        self.kept = 0
        self.broken = 0

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
        self._run(4 * period_s)

    def close(self) -> None:
        """What is left on the terminal when the story is over."""
        report = self._building.simulation.report()
        out.print(
            f"{report.simulated_s:.0f} s simulated, {report.events} events, "
            f"{report.end_to_end_bytes_per_s.mean:.0f} bytes/s sent per node. "
            f"Of what was promised, {self.kept} happened in time, {self.broken} did not.",
            markup=False,
        )

    def _say(self, what: str, style: str = "") -> None:
        line = self._log.add(what, style)
        if self._live is None:
            out.print(line)

    def _run(self, seconds: float) -> None:
        """Let simulated time pass, at the pace asked for."""
        end_ms = self._building.world.now_ms + 1000 * seconds
        while self._building.world.now_ms < end_ms:
            began = time.monotonic()
            epoch = self._building.epoch
            step_s = min(FRAME_S * self._speed, (end_ms - self._building.world.now_ms) / 1000)
            self._building.run(step_s)
            if self._building.epoch != epoch:
                self._say(f"epoch {self._building.epoch} begins: every group moves to new members")
            if self._live is not None:
                self._live.update(screen(self._building, self._log, out.size), refresh=True)
                time.sleep(max(0.0, step_s / self._speed - (time.monotonic() - began)))


def _opening(building: Building) -> Chapter:
    count = len(building.plan.nodes)
    return Chapter(
        f"{count} nodes start; {len(building.plan.clusters)} clusters of devices get their groups",
        (),
        f"all {count} run and know of each other",
        lambda: len(building.running()) == count and building.agrees(),
        AGREED_WITHIN_PERIODS,
    )


def _story(building: Building, draws: Draws) -> Iterator[Chapter]:
    """Drawn as it is told: who leads at that moment decides who is struck."""
    group = draws.choice([cluster.group for cluster in building.plan.clusters])
    leader = building.groups[group][0]
    yield _loss(
        building, f"{leader}, the leader of {group}, crashes", (Crash(at_ms=0, node=leader),), [leader]
    )
    yield _return(building, f"{leader} is switched on again", (Restart(at_ms=0, node=leader),))
    for domain, nodes in sorted(building.world.topology.power_domains.items()):
        lost = f"power domain {domain} goes out, and with it {', '.join(nodes)}"
        yield _loss(building, lost, (PowerLoss(at_ms=0, domain=domain),), nodes)
        yield _return(building, f"the power of {domain} is back", (PowerBack(at_ms=0, domain=domain),))
    side, cut = _cut_in_two(building)
    yield Chapter(
        f"the mesh is cut: {len(side)} nodes in the west, {len(building.plan.nodes) - len(side)} in the east",
        (cut,),
        "each side knows that the other is out of reach",
        lambda: _sides_know(building, side),
        AGREED_WITHIN_PERIODS,
    )
    yield _return(building, "the cut heals", (Heal(at_ms=0),))


def _loss(building: Building, says: str, faults: tuple[Fault, ...], lost: Collection[NodeId]) -> Chapter:
    """What is left must know; groups that keep a majority must be able to act, the others say so."""
    stopped = [group for group, members in building.groups.items() if not _majority(members, lost)]
    reach = (
        "every group can act"
        if not stopped
        else f"{', '.join(stopped)} can not act until enough of its nodes are back"
    )
    return Chapter(
        says,
        faults,
        f"every node left knows; {reach}",
        lambda: (
            building.agrees()
            and all(building.can_act(group) != (group in stopped) for group in building.groups)
        ),
        KNOWN_WITHIN_PERIODS,
    )


def _majority(members: Collection[NodeId], lost: Collection[NodeId]) -> bool:
    return 2 * sum(node not in lost for node in members) > len(members)


def _return(building: Building, says: str, faults: tuple[Fault, ...]) -> Chapter:
    count = len(building.plan.nodes)
    return Chapter(
        says,
        faults,
        "all nodes know of each other again",
        lambda: len(building.running()) == count and building.agrees(),
        AGREED_WITHIN_PERIODS,
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
