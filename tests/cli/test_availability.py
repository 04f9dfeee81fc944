"""`comesh availability`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from comesh.cli.main import app
from comesh.core.selection.policies import MEMBER_POLICIES

runner = CliRunner()
PAPER = ["--smart", "100", "--groups", "30", "--f", "5"]


def _asked(*options: str) -> dict[str, Any]:
    result = runner.invoke(app, ["availability", *options, "--json"])
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_the_table_goes_on_until_less_than_one_percent() -> None:
    result = runner.invoke(app, ["availability", *PAPER])
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()[:1].isdigit()][1:]
    assert [row[0] for row in rows] == [str(failures) for failures in range(len(rows))]
    assert rows[5][1] == "100.00"
    assert rows[6][1:3] == [">", "99.99"], "not certain, so not 100 %"
    assert float(rows[-2][1]) >= 1 > float(rows[-1][1])
    assert "at least 50% up to F = 24 (4.8 f)" in result.stdout
    assert "at least 90% up to F = 17" in result.stdout
    assert "at least 99% up to F = 12" in result.stdout


def test_json_has_the_same() -> None:
    answer = _asked(*PAPER)
    assert answer["members"] == 11
    chances = [one["availability"] for one in answer["formula"]]
    assert chances[24] > 0.5 > chances[25]
    assert [one["failures"] for one in answer["tolerated"]] == [24, 17, 12]
    assert answer["drawn"] is answer["power_domains"] is None


def test_draws_over_real_groups_stand_beside_the_formula_and_follow_from_the_seed() -> None:
    options = (*PAPER, "--monte-carlo", "400", "--members", "random", "--topology", "random")
    answer = _asked(*options)
    assert answer["drawn"]["draws"] == 400
    drawn = [one["availability"] for one in answer["drawn"]["availability"]]
    assert all(abs(drawn[one["failures"]] - one["availability"]) < 0.15 for one in answer["formula"])
    assert _asked(*options) == answer != _asked(*options, "--seed", "2")
    told = runner.invoke(app, ["availability", *PAPER, "--monte-carlo", "400"]).stdout
    assert "as drawn" in told
    assert "400 times over real groups" in told


def test_power_domains_are_reported_with_the_rule_and_without() -> None:
    options = ("--smart", "40", "--groups", "4", "--f", "2", "--monte-carlo", "80", "--power-domains", "4")
    answer = _asked(*options)["power_domains"]
    on, off = (answer[rule]["availability"][1]["availability"] for rule in ("rule_on", "rule_off"))
    assert on == 1.0 > off
    told = runner.invoke(app, ["availability", *options]).stdout
    assert "rule on" in told
    assert "whole power domains out, of 4" in told


NEAREST = """
from comesh.core.selection.policies import register_member_policy


def nearest(choice, draft):
    draft.take(choice.nearest(), choice.size)


register_member_policy("availability-nearest", nearest)
"""


@pytest.fixture
def as_before() -> Iterator[None]:
    yield
    MEMBER_POLICIES.remove("availability-nearest")


@pytest.mark.usefixtures("as_before")
def test_a_policy_of_ones_own_is_drawn_over(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(NEAREST)
    drawing = (*PAPER, "--monte-carlo", "400", "--power-domains", "10")
    mine = _asked(*drawing, "--members", "availability-nearest", "--plugin", str(file))
    ours = _asked(*drawing)
    borne = [one["power_domains"]["rule_off"]["availability"][1]["availability"] for one in (mine, ours)]
    assert borne[0] < borne[1], "who takes all members from nearby loses more with a domain"


def test_many_failures_are_thinned_out_and_the_last_is_shown() -> None:
    options = ("--smart", "5000", "--groups", "10", "--f", "3")
    told = runner.invoke(app, ["availability", *options]).stdout
    shown = [line.split()[0] for line in told.splitlines() if line[:1].isdigit() and line.endswith("%")]
    assert 20 < len(shown) <= 62
    assert shown[-1] == str(_asked(*options)["formula"][-1]["failures"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--smart", "4"], "f = 5 makes groups of 11 members, and there are 4 nodes"),
        (["--members", "near"], "unknown member policy"),
        (["--members", "near"], "or name its file with --plugin"),
        (["--plugin", "none.py"], "none.py"),
        (["--power-domains", "5"], "say how often"),
        (["--power-domains", "101", "--monte-carlo", "10"], "there are only 100 nodes"),
        (["--power-domains", "30", "--monte-carlo", "10"], "25 or 34 would do"),
        (["--smart", "5000", "--monte-carlo", "100000"], "at most 40000 draws"),
        (["--f", "-1"], "greater than or equal to 0"),
    ],
)
def test_impossible_options_are_refused_in_plain_words(options: list[str], told: str) -> None:
    result = runner.invoke(app, ["availability", *options])
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr
