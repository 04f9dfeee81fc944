"""Nodes come and go while a mesh of real processes runs; and one goes on alone where all others are lost."""

from collections.abc import Callable
from pathlib import Path

from real_processes import SMALL, Ended, comesh, wait_for

from comesh.lab.mesh import Mesh

BOUND_S = 60.0
HERE = SMALL.replace(", driver: {type: mqtt, host: 10.0.0.5, topic: lamp}", "")
TICK = "routines:\n  tick: {every: 1s, do: [{device: lamp1, command: set, argument: false, takes: 50ms}]}\n"
TICKING = HERE.replace("routines:\n", TICK).replace("f: 1,", "f: 1, durability: strict,")
FOURTH = "  n4: {place: [3m, 0m], power_domain: d}\n"


def started(place: Path, text: str) -> Mesh:
    document = place / "small.yaml"
    document.write_text(text)
    return Mesh(document, place / "run")


def firings(mesh: Mesh) -> Callable[[], int]:
    """How many runs of tick have ended well, as nodes that live say."""

    def count() -> int:
        told = comesh("runs", "--last", "500", "--json", "--data", mesh.directory).stdout
        return told.count('"finished"')

    return count


def goes_on(mesh: Mesh) -> None:
    count = firings(mesh)
    before = count()
    wait_for(lambda: count() >= before + 2, "tick goes on")


def seats_of(mesh: Mesh, node: str) -> list[str]:
    """Groups whose leader has it among the members."""
    statuses = mesh.statuses().values()
    return [one.group for status in statuses for one in status.groups if one.serves and node in one.members]


def run(mesh: Mesh, *arguments: str | Path) -> Ended:
    return comesh(*arguments, "--data", mesh.directory)


def test_a_node_is_added_begins_from_the_chain_and_another_one_leaves(tmp_path: Path) -> None:
    with started(tmp_path, TICKING) as mesh:
        mesh.start_all()
        mesh.wait_for(mesh.is_ready, "all nodes are ready", bound_s=BOUND_S)
        mesh.apply(TICKING.replace("f: 1,", "f: 1, seed: 5,"), now=True)
        mesh.apply(TICKING.replace("devices:\n", FOURTH + "devices:\n", 1))
        chain = tmp_path / "chain"
        exported = run(mesh, "versions", "--export", chain)
        assert f"{chain} has 3 versions" in exported.stdout
        mesh.start("n4", document=chain)
        mesh.wait_for(mesh.is_ready, "the new node is ready", bound_s=BOUND_S)
        mesh.wait_for(lambda: bool(seats_of(mesh, "n4")), "the new node has a seat", bound_s=BOUND_S)
        assert sorted(path.name for path in mesh.data_of("n4").glob("deployment-*")) == [
            f"deployment-{version}.yaml" for version in (1, 2, 3)
        ]
        goes_on(mesh)

        alone = run(mesh, "leave", "n1", "--yes", "--node", "n1")
        assert "n1 is the node that is asked" in alone.stderr
        left = run(mesh, "leave", "n2", "--yes")
        assert left.code == 0, left
        assert "node n2 hands its seats over, and ends by itself" in left.stdout
        assert "n2 has no seat any more" in left.stdout
        assert "comesh keys revoke n2" in left.stdout
        mesh.follow("n1")
        mesh.wait_for(lambda: not mesh.runs("n2"), "it ended by itself", bound_s=BOUND_S)
        assert mesh.exit_code("n2") == 1
        mesh.wait_for(lambda: mesh.is_ready() and mesh.works_by(4), "all is well", bound_s=BOUND_S)
        too_few = run(mesh, "leave", "n3", "--yes")
        assert too_few.code == 1
        assert "f: 1 needs groups of 3 nodes, but there are only 2" in too_few.stderr
        goes_on(mesh)

        mesh.terminate("n4")
        mesh.start("n4")
        mesh.wait_for(mesh.is_ready, "it is back, from its journal and its chain", bound_s=BOUND_S)
        mesh.wait_for(mesh.is_seated, "all groups have it again: now another may be lost", bound_s=BOUND_S)
        mesh.terminate("n3")
        mesh.wipe("n3")
        only_first = tmp_path / "small.yaml"
        mesh.start("n3", document=only_first)
        mesh.wait_for(mesh.is_ready, "it is back, with the chain of the others", bound_s=BOUND_S)
        assert (mesh.data_of("n3") / "deployment-4.yaml").is_file()
        goes_on(mesh)
    verdict = mesh.judge()
    assert verdict.kept, str(verdict)
    assert verdict.losses == ()


def test_a_dead_node_is_left_out_and_hears_of_it_when_it_returns(tmp_path: Path) -> None:
    with started(tmp_path, TICKING.replace("devices:\n", FOURTH + "devices:\n", 1)) as mesh:
        mesh.start_all()
        mesh.wait_for(mesh.is_ready, "all nodes are ready", bound_s=BOUND_S)
        mesh.kill("n4")
        left = run(mesh, "leave", "n4", "--yes")
        assert left.code == 0, left
        goes_on(mesh)
        mesh.start("n4")
        mesh.wait_for(lambda: not mesh.runs("n4"), "it ended by itself", bound_s=BOUND_S)
        assert "removed from the deployment" in mesh.last_words("n4")
        mesh.follow("n1")
    verdict = mesh.judge()
    assert verdict.kept, str(verdict)


def test_one_goes_on_alone_where_the_others_are_lost_for_good(tmp_path: Path) -> None:
    with started(tmp_path, TICKING) as mesh:
        mesh.start_all()
        mesh.wait_for(mesh.is_ready, "all nodes are ready", bound_s=BOUND_S)
        goes_on(mesh)
        lives = run(mesh, "recover", "c1", "--unsafe", "--yes")
        assert lives.code == 1
        assert "a quorum of c1 lives" in lives.stderr
        mesh.kill("n2", "n3")
        for node in ("n2", "n3"):
            mesh.wipe(node)

        def is_alone() -> bool:
            status = mesh.status("n1")
            return status is not None and status.living == ("n1",)

        mesh.wait_for(is_alone, "n1 knows that it is alone", bound_s=BOUND_S)
        looked = run(mesh, "recover", "c1", "deployment")
        assert looked.code == 1
        assert "the newest that is reached" in looked.stdout
        assert "nothing was done" in looked.stderr
        done = run(mesh, "recover", "c1", "deployment", "--unsafe", "--yes")
        assert done.code == 0, done
        assert "recover: n1 goes on alone" in run(mesh, "audit").stdout

        others = TICKING.replace("  n2:", "  n4:").replace("  n3:", "  n5:")
        applied = run(mesh, "apply", _written(tmp_path, others), "--yes", "--no-wait")
        assert applied.code == 0, applied
        mesh.follow("n1")
        for node in ("n4", "n5"):
            mesh.start(node)
        mesh.wait_for(lambda: mesh.is_ready() and mesh.works_by(2), "all groups work again", bound_s=BOUND_S)
        mesh.wait_for(
            lambda: all(len(seats_of(mesh, node)) == 2 for node in ("n4", "n5")), "seated", bound_s=BOUND_S
        )
        goes_on(mesh)
        assert "fired" in run(mesh, "fire", "there").stdout
    verdict = mesh.judge()
    assert verdict.kept, str(verdict)


def _written(place: Path, text: str) -> Path:
    file = place / "changed.yaml"
    file.write_text(text)
    return file
