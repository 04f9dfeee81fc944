"""`comesh demo`: an office floor as real processes on this machine, with a story of things that break.

Each chapter says what it does and where to look, does it, and waits until what it promises has happened, or
the time for it is over. On a terminal the story goes on with other victims until Ctrl-C. `--once`, or output
that is no terminal, plays it once, lets the checkers of the simulator judge what all processes recorded, and
ends with 0 only if every promise held.
"""

import tempfile
import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.live import Live

from comesh.cli.demo_mesh import DemoMesh
from comesh.cli.demo_story import Chapter, opening, story
from comesh.cli.demo_view import MIN_COLUMNS, MIN_ROWS, Log, is_too_small, screen
from comesh.cli.documents import read_deployment, read_text
from comesh.cli.terminal import Exit, err, fail, out
from comesh.cli.up import with_virtual_devices
from comesh.core.draws import Draws
from comesh.core.traces import Failed, Finished, Fired
from comesh.deployment.model import Deployment
from comesh.lab.judging import judge
from comesh.queries.answers import News, QueryError
from comesh.queries.trace_text import Telling
from comesh.runtime.local_mesh import LocalMesh, LocalMeshError

OFFICE: Final = Path(__file__).parent / "office.yaml"
LOOK_S: Final = 0.2
REST_S: Final = 2.0
"""Pause between chapters, where a person looks on."""
FIRST_READINGS: Final = (
    ("outside", "wind", 4.0),
    ("reception_motion", "active", False),
    ("kitchen_motion", "active", False),
    ("meeting_1_air", "co2", 600),
    ("meeting_2_air", "co2", 600),
)
"""First readings of our own office: nothing happens before the story lets it."""


def demo(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A deployment document.  [default: an office floor]", show_default=False
        ),
    ] = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Play the story once, and exit with 0 if all promises held.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for the faults.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Directory for the files of the mesh.  [default: a temporary one]")
    ] = None,
) -> None:
    """Run an office's mesh here, break it, and watch it go on."""
    document = OFFICE if file is None else file
    deployment = read_deployment(document)
    if len(deployment.nodes) < 3:
        fail("the story needs at least three nodes: one to lose, and two to notice")
    if not deployment.devices:
        fail("the story needs at least one device: without any there is no cluster whose leader could die")
    once = once or not out.is_terminal
    live = out.is_terminal and not is_too_small(out.size)
    if out.is_terminal and not live:
        err.print(f"note: a terminal of {MIN_COLUMNS}x{MIN_ROWS} or more shows a picture; here are lines")
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="comesh-demo-") as temporary:
        directory = Path(temporary) if data is None else data
        stage = _stage(directory, document, deployment, once=once, live=live)
        try:
            with stage:
                stage.play_all(Draws(seed), once=once)
        except KeyboardInterrupt:
            interrupted = True
            err.print("ending all nodes in good order")
        finally:
            stage.mesh.close()
        stage.close(judged=once and not interrupted)
    if interrupted and once:
        raise typer.Exit(int(Exit.INTERRUPTED))
    raise typer.Exit(int(Exit.NO if stage.broken else Exit.OK))


def _stage(directory: Path, document: Path, given: Deployment, *, once: bool, live: bool) -> "Stage":
    deployment, text = with_virtual_devices(given, read_text(document))
    local = LocalMesh(directory, deployment, text)
    records = directory / "recordings" if once else None
    try:
        local.prepare()
        if records is not None:
            records.mkdir(exist_ok=True)
    except LocalMeshError as wrong:
        fail(str(wrong))
    except OSError as wrong:
        fail(f"{records} cannot be made ({wrong.strerror or wrong}); choose another place with --data")
    return Stage(DemoMesh(local, deployment, records=records), live=live, records=records)


class Stage:
    """Plays chapters, and prints what happens."""

    def __init__(self, mesh: DemoMesh, *, live: bool, records: Path | None) -> None:
        self.mesh = mesh
        self.kept = 0
        self.broken = 0
        self._records = records
        self._log = Log(mesh)
        self._telling = Telling(time_zone=mesh.deployment.settings.time_zone)
        self._live = Live(console=out, screen=True, auto_refresh=False) if live else None

    def __enter__(self) -> None:
        if self._live is not None:
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def play_all(self, draws: Draws, *, once: bool) -> None:
        self._say(f"files and logs: {self.mesh.local.directory}")
        self.play(opening(self.mesh))
        for device, reading, value in FIRST_READINGS:
            if device in self.mesh.deployment.devices:
                self.mesh.set_reading(device, reading, value)
        while self.mesh.running():
            for chapter in story(self.mesh, draws):
                self.play(chapter)
            if once:
                return

    def play(self, chapter: Chapter) -> None:
        self._say(chapter.says, "bold")
        if chapter.look:
            self._say(f"  look: {chapter.look} --data {self.mesh.local.directory}", "dim")
        began = time.monotonic()
        try:
            chapter.does()
        except (QueryError, LocalMeshError) as wrong:
            self.broken += 1
            self._say(f"  could NOT be done: {wrong}", "bold red")
            return
        self._look()
        while not chapter.holds():
            if time.monotonic() - began > chapter.within_s:
                self.broken += 1
                self._say(f"  NOT so after {chapter.within_s:.0f} s: {chapter.promise}", "bold red")
                return
            self._look()
        self.kept += 1
        self._say(f"  {chapter.promise} ({time.monotonic() - began:.1f} s)", "green")
        rests = time.monotonic() + (REST_S if out.is_terminal else 0.0)
        while time.monotonic() < rests:
            self._look()

    def close(self, *, judged: bool) -> None:
        """Prints what is left on the terminal when the story is over; all processes have ended."""
        mesh = self.mesh
        out.print(
            f"{mesh.now_s:.0f} s; {mesh.finished} runs finished, {mesh.failed} failed. "
            f"Of what was promised, {self.kept} happened in time, {self.broken} did not."
        )
        if not judged or self._records is None:
            return
        verdict = judge(self._records, mesh.local.directory / "deployment.yaml")
        self.broken += len(verdict.violations)
        for violation in verdict.violations:
            err.print(f"BROKEN: {violation}")
        out.print(
            f"recorded and checked: {verdict.commits} commits, {verdict.runs} runs, {verdict.acts} acts of "
            f"devices, {verdict.leader_changes} changes of leader; "
            + (
                f"{len(verdict.violations)} violations of the protocol's promises"
                if verdict.violations
                else "every promise of the protocol held"
            )
        )

    def _say(self, what: str, style: str = "") -> None:
        line = self._log.add(what, style)
        if self._live is None:
            out.print(line)

    def _look(self) -> None:
        """Lets time pass, prints news, draws."""
        while self.mesh.news:
            told = _words(self.mesh.news.popleft(), self._telling)
            if told:
                self._say(f"  {told}")
        if self._live is not None:
            self._live.update(screen(self.mesh, self._log, out.size), refresh=True)
        time.sleep(LOOK_S)


def _words(news: News, telling: Telling) -> str:
    """Returns what a person wants to know of an event; empty: nothing."""
    if news.trace is not None:
        told = telling.text(news.about, news.node, news.wall_ms, news.trace)
        return f"{news.about} {told}" if isinstance(news.trace, Fired | Finished | Failed) else ""
    match news.kind, news.what:
        case "leader", "serving":
            return f"{news.node} leads {news.about} now: {news.detail}"
        case "device", "down":
            return f"{news.about} is down: {news.detail}"
        case _:
            return ""
