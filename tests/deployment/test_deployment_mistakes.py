"""What a person reads about a document with mistakes: exact words, exact lines, all in one run."""

from pathlib import Path

import pytest
from deployment_texts import SMALL, changed, check, told

from comesh.core.ids import NodeId
from comesh.deployment.load import load_bytes
from comesh.deployment.problems import Severity, did_you_mean

DOCUMENTS = Path(__file__).parent / "documents"


def test_every_class_of_mistake_is_reported_in_one_run() -> None:
    """Rewrite with: comesh validate mistakes.yaml 2> mistakes.txt, and read the difference."""
    outcome = load_bytes((DOCUMENTS / "mistakes.yaml").read_bytes(), "mistakes.yaml")
    assert outcome.deployment is None
    assert "\n".join(map(str, outcome.problems)) == (DOCUMENTS / "mistakes.txt").read_text().rstrip("\n")


def test_the_small_document_is_fine() -> None:
    assert told(SMALL) == []


def test_a_clause_is_pointed_at_with_its_column() -> None:
    [problem] = check(changed("lamp.level > 5", "lamp.on && lamp.levle > 5")).problems
    assert (problem.line, problem.column) == (19, 27)
    [problem] = check(changed("lamp.level > 5", '"lamp.on && lamp.levle > 5"')).problems
    assert (problem.line, problem.column) == (19, 28)
    [problem] = check(changed("lamp.level > 5", "|\n      lamp.on &&\n      lamp.levle > 5")).problems
    assert problem.line == 21


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "settings: {f: 1}",
            "settings: {f: 1, lease: 50ms}",
            ["1: settings.lease: 50ms is too short; at least 100ms"],
        ),
        (
            "settings: {f: 1}",
            "settings: {f: 0}",
            [
                "1: warning: settings.f: f: 0 means that each cluster stands still when its one node fails; "
                "set f: 1"
            ],
        ),
        (
            "settings: {f: 1}",
            "settings: {lease: 150ms}",
            [
                "1: warning: settings.lease: a lease of 150ms is under four round trips at 10ms a hop; "
                "at least 192ms avoids needless elections"
            ],
        ),
        (
            "settings: {f: 1}",
            "settings: {preset: papr}",
            ["1: settings: unknown preset 'papr'; did you mean 'paper'?"],
        ),
        ("settings: {f: 1}", "settings: [f]", ["1: settings: expected a mapping, got a list"]),
        ("settings: {f: 1}", "settings: {f: true}", ["1: settings.f: expected a whole number, got true"]),
        ("settings: {f: 1}", "settings: {f: 1.5}", ["1: settings.f: expected a whole number, got 1.5"]),
        (
            "settings: {f: 1}",
            "settings: {seed: 99999999999999999999}",
            ["1: settings.seed: 99999999999999999999 is too large; at most 9223372036854775807 is possible"],
        ),
        (
            "settings: {f: 1}",
            "settings: {time_zone: ../../etc}",
            ["1: settings.time_zone: unknown time zone '../../etc'; write a place, such as Europe/Zurich"],
        ),
        (
            "{place: [1m, 0m]}",
            '{place: [1m, 0m], address: "b:70000"}',
            ["4: nodes.b.address: 'b:70000' has no such port; ports go from 1 to 65535"],
        ),
        (
            "when: lamp.level > 5",
            "when: 1 < 2",
            ["19: routines.light.when: the clause names no device and no time, so it never changes"],
        ),
        (
            "when: lamp.level > 5",
            "on_event: button.press == 'single' || lamp.on",
            [
                "19: routines.light.on_event: an event comes from one device, but button, lamp is named; "
                "name the readings of one device with event: true"
            ],
        ),
        (
            "when: lamp.level > 5",
            "at: sunsat",
            [
                "19: routines.light.at: 'sunsat' is not a time of day; "
                "write it like 07:30, sunrise or sunset-30m"
            ],
        ),
        (
            "when: lamp.level > 5",
            'at: "07:30"\n    days: [mon, tues]',
            ["20: routines.light.days: 'tues' is not a day; write tue"],
        ),
        (
            "when: lamp.level > 5",
            "cron: 99 * * * *",
            [
                "19: routines.light.cron: '99 * * * *' is not a cron line: wrong is the minute '99' "
                "(possible: 0 to 59); the fields are minute hour day month weekday"
            ],
        ),
        (
            "argument: true}",
            "argument: true}\n  light: {}",
            [
                "22: routines.light: the key 'light' is here twice; the first is on line 18; "
                "remove or rename one"
            ],
        ),
        ("devices:\n  lamp:", "devices:\n  if:", None),
    ],
)
def test_single_mistakes(old: str, new: str, expected: list[str] | None) -> None:
    found = told(changed(old, new))
    if expected is None:
        assert any("the id 'if' is a word of the clause language" in line for line in found)
    else:
        assert found == [f"d.yaml:{line}" for line in expected]


def test_a_document_without_nodes_serves_nothing() -> None:
    found = told("devices: {lamp: {place: [1m, 1m]}}")
    assert found == [
        "d.yaml:1: nodes: there are no nodes, so no group can look after anything; "
        "name at least one computer that runs CoMesh"
    ]


def test_warnings_alone_do_not_refuse_a_document() -> None:
    outcome = check(changed("{place: [2m, 0m]}", "{place: [90km, 0m]}"))
    assert outcome.deployment is not None
    assert [problem.severity for problem in outcome.problems] == [Severity.WARNING]


def test_two_things_may_be_at_one_place() -> None:
    assert told(changed("{place: [2m, 0m]}", "{place: [1m, 0m]}")) == []


def test_merge_keys_and_own_keys() -> None:
    text = changed("  c: {place: [2m, 0m]}", "  c: {<<: *far, name: C}") + "x-far: 1\n"
    text = "x-node: &far {place: [3m, 0m]}\n" + text
    outcome = check(text)
    assert outcome.problems == ()
    assert outcome.deployment is not None
    assert outcome.deployment.nodes[NodeId("c")].place.x_mm == 3000


def test_a_misspelled_key_that_is_needed_is_reported_once_and_hides_nothing() -> None:
    assert told(changed("b: {place: [1m, 0m]}", "b: {plce: [1m, 0m], nmae: x}")) == [
        "d.yaml:4: nodes.b.plce: unknown key 'plce'; did you mean 'place'?",
        "d.yaml:4: nodes.b.nmae: unknown key 'nmae'; did you mean 'name'?",
    ]


def test_the_nearest_of_many_names_is_found() -> None:
    names = [f"lamp_{number}" for number in range(1000)]
    assert did_you_mean("lemp_777", names) == "did you mean 'lamp_777'?"
    assert did_you_mean("lamp_77x", names).startswith("did you mean 'lamp_77")
    assert did_you_mean("pump", names) == ""


def test_an_outage_that_would_stop_a_cluster_is_a_warning() -> None:
    text = SMALL.replace("a: {place: [0m, 0m]}", "a: {place: [0m, 0m], power_domain: x}")
    text = text.replace("b: {place: [1m, 0m]}", "b: {place: [1m, 0m], power_domain: x}")
    outcome = check(text)
    assert outcome.deployment is not None
    assert list(map(str, outcome.problems)) == [
        "d.yaml:3: warning: nodes.a.power_domain: an outage of power domain 'x' (2 of 3 nodes) would stop "
        "cluster c1 and changes of the deployment, until the power is back; "
        "nodes in more power domains, or fewer in this one, prevent that"
    ]
