"""`comesh up` and what is asked of it: three real nodes, shared by most tests of this file."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_processes import SMALL, Running, comesh, processes_about, wait_for


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Running]]:
    """Its data directory, and the process."""
    place = tmp_path_factory.mktemp("up")
    document = place / "small.yaml"
    document.write_text(SMALL)
    with Running(place / "output", "up", document, "--data", place / "run") as running:
        running.wait_until_it_says("ready after")
        yield place / "run", running


@pytest.fixture
def run(mesh: tuple[Path, Running]) -> Path:
    return mesh[0]


def status_of(run: Path) -> dict[str, object]:
    answer: dict[str, object] = json.loads(comesh("status", "--data", run, "--json").stdout)
    return answer


def test_it_says_what_it_does(mesh: tuple[Path, Running]) -> None:
    said = mesh[1].said()
    assert "virtual devices stand in for 1 device with the driver mqtt: nothing real is" in said
    assert "starting 3 nodes; files and logs:" in said
    assert "virtual devices change by themselves (--still: they do not), and also when told" in said


def test_status_tells_nodes_groups_and_devices(run: Path) -> None:
    wait_for(lambda: comesh("status", "--data", run).code == 0, "all is well")
    shown = comesh("status", "--data", run, "--devices", "--routines")
    for what in (
        "Small, deployment version 1",
        "n1",
        "n3",
        "c1",
        "deployment",
        "lamp2",
        "there",
        "2 devices",
    ):
        assert what in shown.stdout
    one = comesh("status", "--data", run / "nodes" / "n2")
    assert "asked n2" in one.stdout
    assert "asked n3" in comesh("status", "--data", run, "--node", "n3").stdout


def test_status_for_machines(run: Path) -> None:
    answer = status_of(run)
    assert answer["trouble"] == []
    nodes = answer["nodes"]
    assert isinstance(nodes, dict)
    assert sorted(nodes) == ["n1", "n2", "n3"]
    assert len({one["document"] for one in nodes.values()}) == 1


def test_a_routine_is_fired_traced_and_watched(run: Path, tmp_path: Path) -> None:
    with Running(tmp_path / "watched", "watch", "--data", run, "--json") as watching:
        fired = comesh("fire", "there", "--data", run, "--json", "--request", "once")
        assert fired.code == 0, fired.stderr
        name = json.loads(fired.stdout)["run"]
        again = comesh("fire", "there", "--data", run, "--request", "once")
        assert f"{name} fired; see what it does with: comesh trace '{name}'" in again.stdout
        wait_for(lambda: "finished" in comesh("trace", name, "--data", run).stdout, "the run has finished")

        def news_of_a_firing() -> bool:
            """Whenever the watcher began to listen, it hears of one of them."""
            comesh("fire", "back", "--data", run)
            return '"about":"back#' in watching.said()

        wait_for(news_of_a_firing, "news of a run")
        assert {"node", "kind", "about", "what"} <= json.loads(watching.said().splitlines()[0]).keys()
        assert watching.end(signal.SIGINT) == 130
    lines = json.loads(comesh("trace", "there", "--data", run, "--json").stdout)
    assert lines[0]["trace"]["what"] == "fired"
    assert {line["run"] for line in lines} == {name}
    assert name in comesh("trace", "--data", run).stdout
    told, verbose = (comesh("trace", name, "--data", run, *more).stdout for more in ((), ("--verbose",)))
    assert re.search(r" took the lock of \w+ \([\d.]+ m?s\)\n", told), told
    assert ", stamp 1:0." in verbose and "stamp" not in told


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["fire", "ther"], 1, "there is no routine 'ther' here; did you mean 'there'?"),
        (["trace", "ther"], 1, "there is no run or routine 'ther' here; did you mean 'there'?"),
        (["trace", "nothing", "--json"], 1, ""),
        (["status", "--node", "n7"], 2, "no node 'n7' runs here; known: n1, n2, n3"),
    ],
)
def test_unanswerable_requests_are_reported(run: Path, arguments: list[str], code: int, says: str) -> None:
    ended = comesh(*arguments, "--data", run)
    assert (ended.code, says in ended.stderr) == (code, True)


def test_a_group_that_moves_on_is_reported_in_one_line(mesh: tuple[Path, Running]) -> None:
    """An epoch has five seconds here."""
    mesh[1].wait_until_it_says("leader c1 serving")
    assert " retired " not in mesh[1].said()
    assert " handing off " not in mesh[1].said()


def test_a_second_one_is_refused(run: Path) -> None:
    refused = comesh("up", run.parent / "small.yaml", "--data", run)
    assert refused.code == 2
    assert f"a mesh runs from {run} already" in refused.stderr


def test_a_node_that_is_killed_is_missed_and_comes_back(mesh: tuple[Path, Running]) -> None:
    run, running = mesh
    lock = run / "nodes" / "n2" / "lock"
    killed = lock.read_text()
    os.kill(int(killed), signal.SIGKILL)
    running.wait_until_it_says("n2 was killed (signal 9); it is started again in 5 s")
    without = comesh("status", "--data", run, "--node", "n1")
    assert without.code == 1
    assert "n2    dead" in without.stdout or "n2    no answer" in without.stdout
    wait_for(lambda: lock.read_text() not in (killed, ""), "another process")
    wait_for(lambda: comesh("status", "--data", run).code == 0, "all is well again")


def test_ctrl_c_ends_everything(mesh: tuple[Path, Running]) -> None:
    """The last test of the shared mesh."""
    run, running = mesh
    assert len(processes_about(run)) >= 5
    assert running.end(signal.SIGINT) == 0
    assert "ending all nodes in good order" in running.said()
    assert processes_about(run) == []
    gone = comesh("status", "--data", run)
    assert gone.code == 2
    assert f"no node runs from {run}" in gone.stderr


def test_kill_and_ctrl_c_during_the_start_leave_nothing(tmp_path: Path) -> None:
    run, document = tmp_path / "run", tmp_path / "small.yaml"
    document.write_text(SMALL)
    with Running(tmp_path / "killed", "up", document, "--data", run) as running:
        running.wait_until_it_says("starting 3 nodes")
        wait_for(lambda: len(processes_about(run)) >= 5, "nodes and devices run")
        running.end(signal.SIGKILL)
    with Running(tmp_path / "stopped", "up", document, "--data", run) as running:
        running.wait_until_it_says("starting 3 nodes")
        assert running.end(signal.SIGINT) == 130, running.said()
    wait_for(lambda: processes_about(run) == [], "no process is left")


def test_a_mesh_that_cannot_start_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "small.yaml"
    document.write_text(SMALL)
    (tmp_path / "file").touch()
    refused = comesh("up", document, "--data", tmp_path / "file")
    assert (refused.code, "cannot be set up" in refused.stderr) == (2, True)
    document.write_text(SMALL.replace("lamp2, command", "lamp3, command"))
    refused = comesh("up", document, "--data", tmp_path / "run")
    assert refused.code == 1
    assert "unknown device 'lamp3'; did you mean 'lamp2'?" in refused.stderr
    assert "Traceback" not in refused.stderr
