"""The slips that people made when they first wrote a document: each is told with what to write instead."""

import pytest
from deployment_texts import SMALL, changed, check, told

from comesh.deployment.problems import WrongError
from comesh.deployment.schedules import parse_cron, parse_days


def with_routine(line: str) -> str:
    return changed("when: lamp.level > 5", line)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (("mon-fri",), {0, 1, 2, 3, 4}),
        (("sat - mon",), {5, 6, 0}),
        (("mon-tue", "sun"), {0, 1, 6}),
        (("wed-wed",), {2}),
    ],
)
def test_days_may_be_ranges(days: tuple[str, ...], expected: set[int]) -> None:
    assert parse_days(days) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{at: 07:30, days: mon-fir}", "'mon-fir' is not a day; did you mean 'fri'?"),
        ('{at: 07:30, days: "mon, wed"}', "'mon, wed' is not a day; write days: [mon, wed]"),
        ("{at: 07:30, days: Monday-Friday}", "'Monday-Friday' is not a day; write days: mon-fri"),
        ("{at: 07:30, days: Monday}", "'Monday' is not a day; write mon"),
        ("{every: -30s}", "'-30s' is not a duration; it cannot be negative"),
        ("{every: -30}", "-30 is not a duration; it cannot be negative"),
    ],
)
def test_schedules(line: str, expected: str) -> None:
    [problem] = told(with_routine("<<: " + line))
    assert expected in problem


def test_a_cron_line_is_told_field_by_field() -> None:
    with pytest.raises(WrongError) as told_of:
        parse_cron("61 25 * * *")
    assert "the minute '61' (possible: 0 to 59), and the hour '25' (possible: 0 to 23)" in told_of.value.what
    with pytest.raises(WrongError, match=r"'0 0 30 2 \*' never fires; its day never comes in that month"):
        parse_cron("0 0 30 2 *")
    assert parse_cron("*/5 0-6 L jan sun") == "*/5 0-6 L jan sun"
