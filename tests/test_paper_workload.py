"""The paper's workload: a valid document for every seed and shape, of the right shape, that really runs."""

import itertools
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.program import program_of

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import paper_workload  # noqa: PLC0415 -- benchmarks are no package, found only with the path above

    return paper_workload


def deployment_of(document: str) -> Deployment:
    outcome = load_bytes(document.encode())
    assert not outcome.problems
    assert outcome.deployment is not None
    return outcome.deployment


@pytest.mark.parametrize("shape", ["grid", "line"])
@pytest.mark.parametrize("seed", [0, 1, 7, 2**40])
def test_every_document_is_valid_and_has_the_papers_shape(paper: ModuleType, shape: str, seed: int) -> None:
    made = paper.make_workload(paper.Shape(shape), routines=20, seed=seed)
    deployment = deployment_of(made.document)
    assert (len(deployment.nodes), len(deployment.devices), len(deployment.routines)) == (11, 16, 20)
    assert deployment.settings.f == 1
    assert (deployment.settings.epoch_ms, deployment.settings.monitoring_ms) == (60_000, 1000)
    assert len(program_of(deployment).plan.clusters) == 4
    assert all(routine.cooldown_ms == 10_000 for routine in deployment.routines.values())
    assert {len(routine.do) for routine in deployment.routines.values()} <= {1, 2, 3, 4}


def test_more_routines_leave_the_first_ones_and_the_readings_as_they_are(paper: ModuleType) -> None:
    made = {
        routines: paper.make_workload(paper.Shape.GRID, routines=routines, seed=5, lasts_s=60.0)
        for routines in paper.ROUTINES
    }
    for few, more in itertools.pairwise(made.values()):
        routines = few.document.partition("routines:\n")[2]
        assert routines
        assert routines in more.document
        assert few.readings == more.readings


def test_one_device_gets_a_new_reading_every_half_to_whole_second(paper: ModuleType) -> None:
    made = paper.make_workload(paper.Shape.LINE, routines=20, seed=2)
    later = made.readings[paper.PLACES :]
    assert {reading.at_ms for reading in made.readings[: paper.PLACES]} == {0.0}
    assert later[-1].at_ms < made.lasts_s * 1000
    gaps = [after.at_ms - before.at_ms for before, after in itertools.pairwise(later)]
    assert all(499.9 < gap < 1000.1 for gap in gaps)
    level: dict[str, float] = {}
    kinds: Counter[str] = Counter()
    for reading in made.readings:
        before = level.get(reading.device)
        kinds["first" if before is None else "same" if before == reading.level else "changed"] += 1
        level[reading.device] = reading.level
    assert 0.4 < kinds["changed"] / len(later) < 0.6
    assert len({script.points for script in made.scripts().values()}) == paper.PLACES


def test_a_number_that_the_paper_has_not_needs_a_length(paper: ModuleType) -> None:
    with pytest.raises(ValueError, match="say how long 3 routines run"):
        paper.make_workload(paper.Shape.GRID, routines=3, seed=1)


@pytest.mark.parametrize("shape", ["grid", "line"])
def test_the_command_writes_a_document_that_runs(
    paper: ModuleType,
    shape: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    readings = tmp_path / "readings.json"
    arguments = ["--shape", shape, "--routines", "5", "--readings", str(readings)]
    monkeypatch.setattr(sys, "argv", ["paper_workload.py", *arguments])
    assert paper.main() == 0
    document = tmp_path / "mesh.yaml"
    document.write_text(capsys.readouterr().out)
    assert readings.read_text().startswith('[{"at_ms":0.0,"device":"d00","level":')
    ran = CliRunner().invoke(app, ["sim", str(document), "--minutes", "1"])
    assert ran.exit_code == 0, ran.output
    assert "every promise of the protocol held" in ran.stdout
    assert "runs: 0 fired" not in ran.stdout
