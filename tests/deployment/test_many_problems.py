"""Documents with more problems than are looked for: no number of warnings hides a mistake."""

import pytest
from deployment_texts import SMALL, changed, check, told

from comesh.deployment.checks import plan as plan_checks
from comesh.deployment.clauses.compiler import WrongClauseError
from comesh.deployment.clauses.parser import ClauseError
from comesh.deployment.load import MAX_FOUND_BY_CHECK, load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.planning import plan_of

MANY = MAX_FOUND_BY_CHECK + 10


def with_many_warnings(routine: str) -> str:
    """Half of the devices are 30 km away: one warning each."""
    lines = ["nodes:", *(f"  n{i}: {{place: [{i}m, 0m]}}" for i in range(3)), "devices:"]
    for name, x, count in (("d", "0m", MANY + 50), ("far", "30km", MANY)):
        lines += [f"  {name}{i}: {{place: [{x}, {i}m], readings: {{on: bool}}}}" for i in range(count)]
    return "\n".join([*lines, "routines:", f"  r: {routine}", ""])


@pytest.mark.parametrize(
    ("routine", "expected"),
    [
        (
            "{when: nosuch.on, do: [{device: alsonot, command: zap}]}",
            ["unknown device 'nosuch'", "unknown device 'alsonot'"],
        ),
        ("{when: d1.on, do: [{device: d2, command: zap}]}", ["'d2' is a sensor: it has no commands"]),
    ],
)
def test_warnings_do_not_hide_mistakes(routine: str, expected: list[str]) -> None:
    outcome = check(with_many_warnings(routine))
    assert outcome.deployment is None
    assert [problem.what for problem in outcome.errors] == expected
    assert len(outcome.warnings) == MAX_FOUND_BY_CHECK
    assert outcome.more


def test_a_mistake_after_the_warnings_of_the_same_check_is_found() -> None:
    routines = [f"  r{i}: {{when: lamp.level > 200, do: *do}}" for i in range(MANY)]
    text = SMALL.replace("    do:\n", "    do: &do\n") + "\n".join(
        [*routines, "  z: {when: lmp.on, do: *do}"]
    )
    outcome = check(text)
    assert len(outcome.warnings) == MAX_FOUND_BY_CHECK
    assert [(problem.path, problem.fix) for problem in outcome.errors] == [
        ("routines.z.when", "did you mean 'lamp'?")
    ]


def test_many_mistakes_of_one_check_leave_room_for_those_of_others() -> None:
    lines = "".join(f"  D{i}: {{place: [0m, 1m]}}\n" for i in range(MANY))
    outcome = check(changed("devices:\n", "devices:\n" + lines).replace("lamp.level", "lamp.levle"))
    assert outcome.more
    assert sum("cannot be an id" in problem.what for problem in outcome.errors) == MAX_FOUND_BY_CHECK
    assert any("'levle'" in problem.what for problem in outcome.errors)


def test_a_document_with_few_problems_has_no_more() -> None:
    assert not check(changed("lamp.level > 5", "lamp.levle > 5")).more
    assert not check(SMALL).more


def test_many_warnings_alone_do_not_stop_a_deployment() -> None:
    text = with_many_warnings("{when: d1.on, do: [{device: d2, command: zap}]}")
    text = text.replace("  d2: {", "  d2: {commands: {zap: {}}, ")
    outcome = check(text)
    assert outcome.deployment is not None
    assert outcome.more
    plan_of(outcome.deployment)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ('""', "the text is empty"),
        ("x" * 1001, "the text is longer than 1000 characters"),
        ("3", "expected a text, got 3; put it in quotes"),
    ],
)
def test_a_name_that_cannot_be_used_is_reported(name: str, expected: str) -> None:
    assert told(f"name: {name}\n{SMALL}") == [f"d.yaml:1: name: {expected}"]


def test_a_clause_that_only_planning_refuses_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Deployment) -> None:
        raise WrongClauseError([ClauseError(0, "unknown device 'x'")])

    monkeypatch.setattr(plan_checks, "plan_of", refuse)
    outcome = load_bytes(SMALL.encode())
    assert outcome.deployment is None
    assert [problem.what for problem in outcome.errors] == ["no plan can be made: unknown device 'x'"]


def test_the_name_of_a_domain_may_look_like_a_sentence() -> None:
    text = SMALL
    for node in ("[0m, 0m]", "[1m, 0m]", "[2m, 0m]"):
        text = text.replace(f"{node}}}", f"{node}, power_domain: y; z}}")
    [problem] = check(text).warnings
    assert problem.what.startswith("an outage of power domain 'y; z' (3 of 3 nodes) would stop cluster c1")
    assert problem.fix == "nodes in more power domains, or fewer in this one, prevent that"
