"""The demo as a person runs it: real processes, the story told in lines, and what the screen shows."""

import signal
from io import StringIO
from pathlib import Path

from real_processes import SMALL, Running, comesh, processes_about, wait_for
from rich.console import Console, ConsoleDimensions

from comesh.cli.demo_mesh import DemoMesh
from comesh.cli.demo_view import Log, is_too_small, screen
from comesh.core.ids import GroupId, NodeId
from comesh.deployment.load import load_bytes
from comesh.queries.answers import GroupSeen
from comesh.runtime.local_mesh import LocalMesh

OFFICE = Path(__file__).parent.parent.parent / "src" / "comesh" / "cli" / "office.yaml"


def test_the_story_holds_what_it_promises(tmp_path: Path) -> None:
    document = tmp_path / "small.yaml"
    document.write_text(SMALL)
    told = comesh("demo", document, "--once", "--data", tmp_path / "run")
    assert told.code == 0, told.stdout + told.stderr
    for what in (
        "all start: 3 nodes as processes",
        "back and there are asked for at once; both want lamp1",
        "is killed in the middle of it",
        "is started again",
        "power domain",
        "an epoch passes (5 s)",
        "every promise of the protocol held",
        "0 did not.",
        f"look: comesh status --data {tmp_path / 'run'}\n",
    ):
        assert what in told.stdout
    assert "NOT" not in told.stdout
    assert "virtual devices stand in for 1 device with the driver mqtt" in told.stderr
    assert processes_about(tmp_path / "run") == []


def test_ctrl_c_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    run, document = tmp_path / "run", tmp_path / "small.yaml"
    document.write_text(SMALL)
    with Running(tmp_path / "output", "demo", document, "--data", run) as running:
        wait_for(lambda: len(processes_about(run)) >= 5, "nodes and devices run")
        assert running.end(signal.SIGINT) == 130, running.said()
    assert "ending all nodes in good order" in running.said()
    assert "Traceback" not in running.said()
    wait_for(lambda: processes_about(run) == [], "no process is left")


def test_a_document_without_devices_has_no_story(tmp_path: Path) -> None:
    document = tmp_path / "bare.yaml"
    document.write_text("nodes: {a: {place: [0m, 0m]}, b: {place: [1m, 0m]}, c: {place: [2m, 0m]}}\n")
    refused = comesh("demo", document)
    assert refused.code == 2
    assert refused.stderr.startswith("comesh: the story needs at least one device")


class Pictured(DemoMesh):
    """A mesh that is shown, and runs nowhere: every node but those that are gone is taken for running."""

    def __init__(self, text: str, directory: Path, *, gone: tuple[str, ...] = ()) -> None:
        deployment = load_bytes(text.encode(), "shown.yaml").deployment
        assert deployment is not None
        super().__init__(LocalMesh(directory, deployment, text), deployment, records=None)
        self._gone = gone
        self.local.runs = lambda name: name not in gone  # there is no process

    @property
    def groups(self) -> dict[GroupId, GroupSeen]:
        return {
            group: GroupSeen(
                group=group, number=1, epoch=0, members=members, leader=NodeId(members[0]), serves=True
            )
            for group, members in self.program.plan.genesis.items()
        }


def shown(mesh: DemoMesh, width: int, height: int, *lines: str) -> str:
    log = Log(mesh)
    for line in lines:
        log.add(line)
    console = Console(width=width, height=height, record=True, file=StringIO())
    console.print(screen(mesh, log, ConsoleDimensions(width, height)))
    return console.export_text()


def test_texts_of_a_document_are_no_markup_on_the_screen(tmp_path: Path) -> None:
    text = (
        'name: "[/bold]\\e[2J"\n'
        'nodes: {a: {place: [0m, 0m], power_domain: "[/red]\\e"}, '
        "b: {place: [1m, 0m]}, c: {place: [2m, 0m]}}\n"
        'devices: {d: {place: [0m, 0m], readings: {warm: {type: float, unit: "[/C]"}}}}\n'
    )
    picture = shown(Pictured(text, Path("here")), 150, 50, "[/red] goes out")
    assert "comesh status --data here" in picture
    for part in ("[/bold]?[2J", "[/red]?", "[/red] goes out"):
        assert part in picture


def test_the_screen_shows_gone_nodes_and_fits_small_terminals(tmp_path: Path) -> None:
    mesh = Pictured(OFFICE.read_text(), tmp_path)
    victim = next(iter(mesh.groups.values())).members[0]
    mesh = Pictured(OFFICE.read_text(), tmp_path, gone=(victim,))
    assert f"✗ {victim}" in shown(mesh, 150, 50, "a story")
    small = shown(mesh, 80, 24, *(f"line {number}" for number in range(30)))
    assert "groups" in small
    assert "line 29" in small
    assert small.count("\n") <= 24


def test_hints_are_whole_on_a_small_terminal() -> None:
    mesh = Pictured(OFFICE.read_text(), Path("/tmp/comesh-demo-abcdefgh"))
    hint = f"  look: comesh status --devices --data {'d' * 60}"
    small = shown(mesh, 80, 24, *(f"line {number}" for number in range(30)), hint)
    assert "  comesh status --data /tmp/comesh-demo-abcdefgh\n" in small
    assert "look: comesh status --devices --data" in small
    assert "d" * 60 in small
    assert "…" not in small
    assert small.count("\n") <= 24


def test_a_terminal_that_is_too_small_gets_lines() -> None:
    assert is_too_small(ConsoleDimensions(40, 30))
    assert is_too_small(ConsoleDimensions(120, 12))
    assert not is_too_small(ConsoleDimensions(80, 24))
