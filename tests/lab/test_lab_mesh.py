"""Real node processes, started, broken and judged: small meshes; docs/lab.md lists what to run for long."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from comesh.core.effects import RunTraced
from comesh.core.traces import Failed, Finished
from comesh.lab.judging import Quiet
from comesh.lab.mesh import Mesh, MeshError, now_us
from comesh.lab.namespaces import Namespaces, what_is_missing
from comesh.lab.proxy import Link
from comesh.lab.proxy_thread import ProxyThread
from comesh.runtime.journal.files import JOURNAL
from comesh.runtime.recording import Disturbed, Told, observation_of, read

BOUND_S = 60.0
NODES = ("n1", "n2", "n3")
DOCUMENT = """
name: Lab
settings:
  f: 1
  epoch: 15s
  monitoring: 200ms
  lease: 500ms
  membership_period: 500ms
  hop: 1ms
  command_timeout: 1s
  durability: strict
x-lamp: &lamp
  readings: {on: bool}
  commands:
    set: {argument: bool, sets: on, takes: 20ms}
    blink: {idempotent: false, takes: 20ms}
nodes:
  n1: {place: [0m, 0m]}
  n2: {place: [1m, 0m]}
  n3: {place: [2m, 0m]}
devices:
  lamp1: {place: [0m, 1m], <<: *lamp}
  lamp2: {place: [1m, 1m], <<: *lamp}
  lamp3: {place: [2m, 1m], <<: *lamp}
routines:
  forth:
    every: 1s
    do:
      - {device: lamp1, command: set, argument: true}
      - {device: lamp2, command: set, argument: true}
      - {device: lamp3, command: blink}
  back:
    every: 1s
    do:
      - {device: lamp3, command: set, argument: false}
      - {device: lamp2, command: set, argument: false}
      - {device: lamp1, command: blink}
"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(DOCUMENT)
    return path


def ended(mesh: Mesh) -> Callable[[], int]:
    """Returns how many runs have ended, by the nodes' recordings."""

    def count() -> int:
        runs: set[str] = set()
        for node in NODES:
            path = mesh.recordings / f"{node}.rec"
            for line in read(path) if path.exists() else ():
                if isinstance(line.what, Told) and line.what.kind == "RunTraced":
                    told = observation_of(line.what)
                    if isinstance(told, RunTraced) and isinstance(told.trace, Finished | Failed):
                        runs.add(str(told.run))
        return len(runs)

    return count


def wait_for_runs(mesh: Mesh, more: int) -> None:
    count = ended(mesh)
    before = count()
    mesh.wait_for(lambda: count() >= before + more, f"{more} more runs ended", bound_s=BOUND_S)


def wait_until_ready(mesh: Mesh) -> None:
    mesh.wait_for(mesh.is_ready, "all nodes are ready and know each other", bound_s=BOUND_S)


def test_a_mesh_survives_kills_power_losses_and_partitions(document: Path, tmp_path: Path) -> None:
    links = ProxyThread(seed=1)
    with Mesh(document, tmp_path / "mesh", links=links) as mesh:
        mesh.start_all()
        wait_until_ready(mesh)
        links.proxy.set_all(Link(loss=0.02, delay_ms=1.0, jitter_ms=2.0, duplicate=0.01))
        assert mesh.fire("forth", request="once").request == "once"
        wait_for_runs(mesh, 2)

        leader = mesh.leaders()["c1"]
        mesh.kill(leader)
        mesh.wait_for(lambda: "c1" in mesh.leaders(), "another one leads", bound_s=BOUND_S)
        wait_for_runs(mesh, 1)
        mesh.start(leader)
        wait_until_ready(mesh)

        mesh.power_loss(*NODES)
        mesh.wait_for(lambda: "c1" in mesh.leaders(), "one leads again", bound_s=BOUND_S)
        wait_for_runs(mesh, 1)

        leader = mesh.leaders()["c1"]
        rest = [node for node in NODES if node != leader]
        mesh.partition([[leader], rest])
        mesh.wait_for(
            lambda: mesh.leaders().get("c1", leader) in rest, "the side with a quorum leads", bound_s=BOUND_S
        )
        wait_for_runs(mesh, 1)
        mesh.heal()
        links.proxy.set_all(Link())
        from_us = now_us()
        wait_for_runs(mesh, 2)
        quiet = Quiet(from_us, now_us(), bound_ms=30_000.0)
    verdict = mesh.judge(quiet)
    assert verdict.violations == (), str(verdict)
    assert verdict.losses == (), "strict"
    assert verdict.lives == 3 + 1 + 3
    assert verdict.leader_changes >= 2
    assert verdict.acts >= 15
    assert links.proxy.counts["n1", "n2"].lost + links.proxy.counts["n2", "n1"].lost > 0
    assert not any(mesh.runs(node) for node in (*NODES, "devices"))


@pytest.mark.skipif(bool(what_is_missing()), reason=what_is_missing() or "all is there")
def test_a_mesh_works_over_hops(document: Path, tmp_path: Path) -> None:
    with (
        Namespaces(NODES, [("n1", "n2"), ("n2", "n3")], hello_s=0.2) as links,
        Mesh(document, tmp_path / "mesh", links=links) as mesh,
    ):
        links.wait_for_routes(bound_s=BOUND_S)
        links.set_all_loss(0.02)
        mesh.start_all()
        wait_until_ready(mesh)
        wait_for_runs(mesh, 2)
        mesh.partition([["n1", "n2"], ["n3"]])
        mesh.wait_for(
            lambda: mesh.leaders().get("c1") in ("n1", "n2"), "the side with a quorum leads", bound_s=BOUND_S
        )
        wait_for_runs(mesh, 2)
        mesh.heal()
        links.wait_for_routes(bound_s=BOUND_S)
        wait_for_runs(mesh, 1)
    verdict = mesh.judge()
    assert verdict.violations == (), str(verdict)
    assert verdict.acts > 6


def test_a_stuck_process_is_told_apart_from_one_that_ended(document: Path, tmp_path: Path) -> None:
    with Mesh(document, tmp_path / "mesh") as mesh:
        mesh.start("n1")
        mesh.wait_for(lambda: mesh.status("n1") is not None, "it answers", bound_s=BOUND_S)
        mesh.pause("n1")
        assert mesh.runs("n1")
        mesh.resume("n1")
        mesh.wait_for(lambda: mesh.status("n1") is not None, "it answers again", bound_s=BOUND_S)
        with pytest.raises(MeshError, match="n1 runs: its disk cannot be touched"):
            mesh.wipe("n1")
        with pytest.raises(MeshError, match="plain loopback cannot be cut"):
            mesh.partition([["n1"]])
        with pytest.raises(MeshError, match="only a relay cuts one direction"):
            mesh.deafen("n1")
        with pytest.raises(MeshError, match="not within 0 s: the impossible"):
            mesh.wait_for(lambda: False, "the impossible", bound_s=0.0)
        mesh.terminate("n1")
        journal = mesh.data_of("n1") / JOURNAL
        size = journal.stat().st_size
        mesh.tear("n1", 5)
        assert journal.stat().st_size == size - 5
        before = journal.read_bytes()
        inode = os.stat(journal).st_ino
        mesh.flip_bit("n1", 3)
        assert sum(one != other for one, other in zip(before, journal.read_bytes(), strict=True)) == 1
        assert os.stat(journal).st_ino == inode, "the same file: a copy would be a stranger's"
        mesh.wipe("n1")
        assert not journal.exists()
    done = [line.what for line in read(mesh.recordings / "lab.rec") if isinstance(line.what, Disturbed)]
    assert [one.what for one in done] == ["stopped", "terminated", "torn", "a bit was flipped", "wiped"]
    assert [one.ends for one in done] == [False, True, False, False, False]


def test_a_document_with_mistakes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("nodes: 1\n")
    with pytest.raises(MeshError, match=r"wrong\.yaml"):
        Mesh(path, tmp_path / "mesh")


def test_time_is_that_of_the_recordings() -> None:
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before <= now_us() * 1000 + 999 <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 999
