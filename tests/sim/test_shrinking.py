"""Delta debugging over what a seed drew."""

from collections.abc import Iterable

import msgspec
import pytest

from comesh.core.ids import NodeId
from comesh.sim.faults import PowerLoss
from comesh.sim.shrinking import ddmin, shrink, whole
from comesh.sim.swarm_case import Case, draw

A, B = NodeId("a"), NodeId("b")


@pytest.mark.parametrize("culprits", [{7}, {0, 99}, {3, 40, 41, 77}])
def test_the_necessary_items_are_found(culprits: set[int]) -> None:
    tries = 0

    def breaks(items: Iterable[int]) -> bool:
        nonlocal tries
        tries += 1
        return culprits <= set(items)

    *_, last = ddmin(range(100), breaks)
    assert set(last) == culprits
    assert tries < 150


def test_nothing_is_needed() -> None:
    assert list(ddmin([1, 2], lambda _: True)) == [[]]
    assert list(ddmin([], lambda _: True)) == []


def test_everything_is_needed() -> None:
    assert list(ddmin([1, 2, 3], lambda items: len(items) == 3)) == []


def _suits(seed: int) -> bool:
    """A power loss, some askings, wrong clocks, a slow start: something to leave out of everything."""
    case, *_ = draw(seed)
    power = any(isinstance(fault, PowerLoss) for fault in case.faults.faults)
    return power and len(case.askings) > 2 and case.settings.skew_ms > 0 and case.settings.start_spread_ms > 0


SEED = next(seed for seed in range(1, 1000) if _suits(seed))


def test_a_case_shrinks_to_its_necessary_parts() -> None:
    drawn, *_ = draw(SEED)
    first = whole(SEED, "safety")
    assert first.case() == drawn
    outage = next(fault for fault in drawn.faults.faults if isinstance(fault, PowerLoss))
    asking = drawn.askings[2]

    def breaks(case: Case) -> bool:
        return outage in case.faults.faults and asking in case.askings and case.settings.skew_ms > 0

    *_, last = shrink(first, breaks)
    case = last.case()
    assert [type(fault) for fault in case.faults.faults] == [PowerLoss]
    assert case.askings == (asking,)
    assert case.settings.skew_ms > 0
    assert case.settings.start_spread_ms == 0
    assert "skew" not in last.calm


def test_a_case_of_another_swarm_is_refused() -> None:
    first = whole(SEED, "safety")
    for wrong in ({"of_faults": 0}, {"faults": (999,)}, {"askings": (-1,)}, {"calm": ("x",)}):
        with pytest.raises(ValueError, match=r"."):
            msgspec.structs.replace(first, **wrong).case()
