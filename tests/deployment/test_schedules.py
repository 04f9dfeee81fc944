"""When schedules fire."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comesh.deployment.model import Routine
from comesh.deployment.problems import WrongError
from comesh.deployment.schedules import next_instant, parse_cron, parse_time, schedule_of
from comesh.deployment.settings import Location

ZURICH = ZoneInfo("Europe/Zurich")
HERE = Location(latitude=47.4, longitude=8.5)
SVALBARD = Location(latitude=78.2, longitude=15.6)


def following(routine: dict[str, object], after: str, location: Location | None = HERE) -> str | None:
    schedule = schedule_of(Routine.model_validate(routine))
    assert schedule is not None
    found = next_instant(schedule, datetime.fromisoformat(after).replace(tzinfo=UTC), ZURICH, location)
    return found.strftime("%Y-%m-%d %H:%M") if found else None


@pytest.mark.parametrize(
    ("routine", "after", "expected"),
    [
        ({"every": "15m"}, "2026-11-15 10:07", "2026-11-15 10:15"),
        ({"every": "15m"}, "2026-11-15 10:15", "2026-11-15 10:30"),
        ({"at": "07:30"}, "2026-11-15 06:29", "2026-11-15 06:30"),
        ({"at": "07:30"}, "2026-11-15 06:30", "2026-11-16 06:30"),
        ({"at": ["07:30", "18:00"]}, "2026-11-15 06:30", "2026-11-15 17:00"),
        ({"at": "07:30", "days": ["wed"]}, "2026-11-15 06:00", "2026-11-18 06:30"),
        ({"at": "00:30"}, "2026-11-15 23:20", "2026-11-15 23:30"),
        ({"at": "02:30"}, "2026-03-28 12:00", "2026-03-29 01:30"),
        ({"at": "02:30"}, "2026-10-24 12:00", "2026-10-25 00:30"),
        ({"at": "02:30"}, "2026-10-25 00:30", "2026-10-26 01:30"),
        ({"cron": "0 6 * * mon-fri"}, "2026-11-14 12:00", "2026-11-16 05:00"),
        ({"cron": "0 0 29 2 *"}, "2026-11-14 12:00", "2028-02-28 23:00"),
        ({"at": "sunset"}, "2026-06-21 12:00", "2026-06-21 19:26"),
        ({"at": "sunset-30m"}, "2026-06-21 12:00", "2026-06-21 18:56"),
    ],
)  # fmt: skip
def test_next(routine: dict[str, object], after: str, expected: str) -> None:
    assert following(routine, after) == expected


def test_the_sun_may_not_set_for_months_and_then_does() -> None:
    found = following({"at": "sunset"}, "2026-06-21 12:00", SVALBARD)
    assert found is not None and found.startswith("2026-08")
    assert following({"at": "sunset"}, "2026-06-21 12:00", None) is None


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text(max_size=30), st.from_regex(r"[-0-9*/, a-zL#]{1,6}( [-0-9*/,a-zL#]{1,6}){4}", fullmatch=True)
    )
)
def test_any_text_is_a_schedule_or_wrong(text: str) -> None:
    for parse in (parse_cron, parse_time):
        try:
            parse(text)
        except WrongError as wrong:
            assert wrong.what
