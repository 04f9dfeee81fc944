"""The examples and the starter: fine as they are, plannable, and understood by editors."""

from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from deployment_texts import EXAMPLES, SMALL

from comesh.core.ids import NodeId, RoutineId
from comesh.core.plan import Locality
from comesh.deployment.load import load, load_bytes
from comesh.deployment.planning import plan_of, planned_routines, selection_settings
from comesh.deployment.schema import document_schema
from comesh.deployment.settings import Settings
from comesh.deployment.tree import SecretName, TreeNode, grow

STARTER = Path(str(files("comesh.deployment").joinpath("starter.yaml")))
ALL = [*EXAMPLES, STARTER]


def test_there_are_three_examples() -> None:
    assert [path.stem for path in EXAMPLES] == ["factory", "farm", "office"]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_fine_without_a_warning(path: Path) -> None:
    outcome = load(path)
    assert outcome.problems == ()
    assert outcome.deployment is not None


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_plannable(path: Path) -> None:
    deployment = load(path).deployment
    assert deployment is not None
    plan = plan_of(deployment)
    assert sorted(device for cluster in plan.clusters for device in cluster.devices) == sorted(
        deployment.devices
    )
    assert set(plan.anchors) == set(deployment.routines)
    assert plan_of(deployment) == plan


def test_a_routine_touches_what_it_reads_and_what_it_commands() -> None:
    deployment = load(next(path for path in EXAMPLES if path.stem == "office")).deployment
    assert deployment is not None
    touches = {routine.id: routine.touches for routine in planned_routines(deployment)}
    assert touches[RoutineId("reception_light")] == ("reception_lamp", "reception_motion")
    assert touches[RoutineId("welcome")] == ("badge_reader", "main_door", "reception_lamp")


def test_settings_become_those_of_the_core() -> None:
    own = {"preset": "paper", "selection": {"members": "random", "lsh": {"r": 2.5, "jitter": 0.25}}}
    core = selection_settings(Settings.model_validate(own))
    assert (core.f, core.k, core.power_domain_rule) == (2, 5, False)
    assert (core.members, core.lsh.r_milli, core.lsh.jitter_milli) == (Locality.RANDOM, 2500, 250)


def test_the_paper_preset_is_a_delta_that_the_document_can_override() -> None:
    paper = load_bytes(
        SMALL.replace("{f: 1}", "{preset: paper, f: 1, locks: {strategy: optimistic}}").encode()
    )
    assert paper.problems == ()
    assert paper.deployment is not None
    found = paper.deployment.settings
    assert (found.f, found.epoch_ms, found.hop_ms, found.push) == (1, 200_000, 1000, False)
    assert (found.locks.strategy, found.locks.batch, found.locks.order) == ("optimistic", "none", "device")
    assert paper.deployment.nodes[NodeId("a")].power_domain is None


def plain(node: TreeNode) -> object:
    match node.value:
        case dict():
            return {key: plain(inner) for key, inner in node.value.items()}
        case list():
            return [plain(inner) for inner in node.value]
        case SecretName():
            return node.value.name
        case _:
            return node.value


def schema_errors(data: bytes) -> list[str]:
    root = grow(data, len(data)).root
    assert root is not None
    validator = jsonschema.Draft202012Validator(document_schema())
    return [error.message for error in validator.iter_errors(plain(root))]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(document_schema())


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_editors_find_no_fault(path: Path) -> None:
    assert schema_errors(path.read_bytes()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{f: 1}", "{f: one}"),
        ("{f: 1}", "{epoch: 60}"),
        ("{f: 1}", "{epohc: 60s}"),
        ("[2m, 0m]", "[2, 0m]"),
        ("on: bool", "on: boolean"),
        ("event: true", "event: yes"),
        ("  light:", "  Light Routine:"),
        ("command: switch, ", ""),
        ("    when: lamp.level > 5", "    when: lamp.level > 5\n    days: [someday]"),
    ],
)
def test_editors_find_faults(old: str, new: str) -> None:
    assert schema_errors(SMALL.replace(old, new).encode()) != []


def test_every_key_is_explained_in_the_schema() -> None:
    schema = document_schema()
    for name, definition in schema["$defs"].items():
        for key, value in definition.get("properties", {}).items():
            assert "description" in value or "$ref" in value, f"{name}.{key} has no description"
