"""A document is changed while three real nodes run by it: shown, refused, applied, listed, taken back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_processes import SMALL, Ended, comesh, wait_for

from comesh.lab.mesh import Mesh

BOUND_S = 60.0
HERE = SMALL.replace(", driver: {type: mqtt, host: 10.0.0.5, topic: lamp}", "")
EXTRA = "routines:\n  extra: {every: 1s, do: [{device: lamp1, command: set, argument: false}]}\n"
MORE = HERE.replace("routines:\n", EXTRA)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    place = tmp_path_factory.mktemp("apply")
    document = place / "small.yaml"
    document.write_text(HERE)
    with Mesh(document, place / "run") as made:
        made.start_all()
        made.wait_for(made.is_ready, "all nodes are ready", bound_s=BOUND_S)
        yield made
    verdict = made.judge()
    assert verdict.kept, str(verdict)


def run(mesh: Mesh, *arguments: str | Path) -> Ended:
    ended = comesh(*arguments, "--data", mesh.directory)
    mesh.follow("n1")
    return ended


def written(mesh: Mesh, text: str) -> Path:
    file = mesh.directory / "changed.yaml"
    file.write_text(text)
    return file


def not_led(mesh: Mesh) -> bool:
    status = mesh.status("n1")
    return (
        status is not None and status.living == ("n1",) and all(one.leader is None for one in status.groups)
    )


def test_the_same_document_is_not_applied(mesh: Mesh) -> None:
    same = run(mesh, "apply", written(mesh, HERE + "# nothing but a comment\n"), "--yes")
    assert same.code == 0, same
    assert "means the same as version 1. Nothing is applied" in same.stdout


def test_a_difference_is_shown_and_nothing_done_unless_somebody_says_yes(mesh: Mesh) -> None:
    file = written(mesh, MORE)
    shown = run(mesh, "apply", file, "--dry-run")
    assert shown.code == 1
    assert "routine extra added\n  every: 1s\n  do: lamp1 set false" in shown.stdout
    unsaid = run(mesh, "apply", file)
    assert unsaid.code == 2
    assert "standard input is not a terminal: give --yes" in unsaid.stderr
    assert mesh.version == 1


def test_mistakes_are_reported_with_their_line(mesh: Mesh) -> None:
    file = written(mesh, MORE.replace("device: lamp2", "device: lamp9"))
    wrong = run(mesh, "apply", file, "--yes")
    assert wrong.code == 1
    line = (
        file.read_text()
        .splitlines()
        .index(next(one for one in file.read_text().splitlines() if "lamp9" in one))
    )
    assert f"changed.yaml:{line + 1}: " in wrong.stderr
    assert "unknown device 'lamp9'" in wrong.stderr
    order = run(mesh, "apply", written(mesh, HERE.replace("f: 1,", "f: 1, locks: {order: device},")), "--yes")
    assert order.code == 1
    assert "settings.locks.order cannot change in a running deployment" in order.stderr


def test_applied_followed_listed_and_taken_back(mesh: Mesh) -> None:
    done = run(mesh, "apply", written(mesh, MORE), "--yes", "--why", "more light")
    assert done.code == 0, done
    assert "applied as version 2" in done.stdout
    assert "c1 works by version 2" in done.stdout, "and who leads it, where that is known by then"
    assert "all 2 groups work by version 2" in done.stdout
    wait_for(lambda: comesh("trace", "extra", "--data", mesh.directory).code == 0, "the new routine fires")

    stale = run(mesh, "apply", "--to", "1", "--yes", "--base", "1")
    assert stale.code == 1
    assert "it builds on version 1, but the mesh is at 2" in stale.stderr
    same = run(mesh, "apply", "--to", "2", "--yes", "--base", "1")
    assert (same.code, "the mesh is at 2" in same.stderr) == (1, True)
    assert run(mesh, "apply", "--to", "2", "--yes", "--base", "2").code == 0

    back = run(mesh, "apply", "--to", "1", "--yes", "--now", "--json")
    told = json.loads(back.stdout)
    assert (told["base"], told["version"], told["groups"]) == (2, 3, {"c1": True, "deployment": True})
    assert [(one["name"], one["what"]) for one in told["changes"]] == [("extra", "removed")]

    listed = json.loads(run(mesh, "versions", "--json").stdout)
    assert [(one["version"], one["why"]) for one in listed["versions"]] == [
        (3, ""),
        (2, "more light"),
        (1, ""),
    ]
    assert listed["versions"][1]["by"].endswith("@n1")
    assert "more light" in run(mesh, "versions").stdout
    assert run(mesh, "versions", "2").stdout == MORE
    assert run(mesh, "versions", "1", "2", "--diff").stdout.startswith("routine extra added")
    assert run(mesh, "versions", "1", "3", "--diff").stdout == "versions 1 and 3 mean the same\n"
    assert "there is no version 9 here" in run(mesh, "versions", "9").stderr


def test_without_a_quorum_nothing_is_applied_and_why_is_said(mesh: Mesh) -> None:
    mesh.kill("n2", "n3")
    file = written(mesh, MORE)
    wait_for(lambda: not_led(mesh), "n1 knows that it is alone")
    refused = comesh("apply", file, "--yes", "--data", mesh.directory)
    assert refused.code == 1
    assert "does not reach a quorum of the group deployment" in refused.stderr
    assert "A version is applied on the side that has most of them" in refused.stderr
    for node in ("n2", "n3"):
        mesh.start(node)
    mesh.wait_for(mesh.is_ready, "all nodes are back", bound_s=BOUND_S)
    mesh.wait_for(lambda: mesh.works_by(3), "all groups are served", bound_s=BOUND_S)
    assert run(mesh, "apply", file, "--yes").code == 0
