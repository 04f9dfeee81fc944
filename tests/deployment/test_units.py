"""Durations and lengths as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comesh.core.plan import Place
from comesh.deployment.problems import WrongError
from comesh.deployment.units import (
    MAX_DURATION_MS,
    parse_duration_ms,
    parse_length_mm,
    show_duration,
    show_length,
)
from comesh.deployment.values import parse_place


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("500ms", 500), ("60s", 60_000), ("2m", 120_000), ("2min", 120_000), ("1h30m", 5_400_000),
        ("1.5s", 1500), ("1 h 30 m", 5_400_000), ("0s", 0), (0, 0), ("1d", 86_400_000), ("1m500ms", 60_500),
    ],
)  # fmt: skip
def test_durations(text: object, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "60",
        60,
        1.5,
        True,
        None,
        [],
        "5 lightyears",
        "-5s",
        "1s1h",
        "1s1s",
        "0.1ms",
        "999d",
        "٣s",
        "1e3s",
        "s",
    ],
)
def test_not_durations(text: object) -> None:
    with pytest.raises(WrongError):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "length_mm"),
    [
        ("4.5m", 4500),
        ("120cm", 1200),
        ("3 m", 3000),
        ("-350mm", -350),
        ("0.1m", 100),
        ("2km", 2_000_000),
        (0, 0),
    ],
)
def test_lengths(text: object, length_mm: int) -> None:
    assert parse_length_mm(text) == length_mm


@pytest.mark.parametrize("text", ["4.5", 4.5, "1ft", "0.1mm", "101km", "m", "", None, True, "1m2cm"])
def test_not_lengths(text: object) -> None:
    with pytest.raises(WrongError):
        parse_length_mm(text)


@given(st.integers(0, MAX_DURATION_MS))
def test_durations_are_shown_as_they_are_read(duration_ms: int) -> None:
    assert parse_duration_ms(show_duration(duration_ms)) == duration_ms


@given(st.integers(-100_000_000, 100_000_000))
def test_lengths_are_shown_as_they_are_read(length_mm: int) -> None:
    assert parse_length_mm(show_length(length_mm)) == length_mm


def test_places() -> None:
    assert parse_place(["4.5m", "2m", "3m"]) == Place(4500, 2000, 3000)
    assert parse_place({"x": "1m", "y": "2m"}) == Place(1000, 2000, 0)
    for wrong in (["1m"], ["1m"] * 4, {"x": "1m"}, {"x": "1m", "y": "1m", "floor": 3}, "here", None, 3):
        with pytest.raises(WrongError):
            parse_place(wrong)
