"""Tests of virtual time: the order of entries, cancelling, and the bound on cancelled entries."""

import pytest

from comesh.sim.engine import STALE_ENTRIES_KEPT, Engine, Priority


def test_order_is_time_then_priority_then_sequence() -> None:
    engine = Engine()
    ran: list[str] = []
    engine.at(2.0, Priority.FAULT, ran.append, "late")
    engine.at(1.0, Priority.TIMER, ran.append, "timer")
    engine.at(1.0, Priority.ARRIVAL, ran.append, "second arrival")
    engine.at(1.0, Priority.FAULT, ran.append, "fault")
    engine.at(1.0, Priority.ARRIVAL, ran.append, "third arrival")
    engine.run_until(5.0)
    assert ran == ["fault", "second arrival", "third arrival", "timer", "late"]
    assert engine.now_ms == 5.0
    assert engine.handled == 5


def test_runs_up_to_and_including_the_end_and_goes_on_later() -> None:
    engine = Engine()
    ran: list[float] = []
    for at_ms in (1.0, 2.0, 3.0):
        engine.at(at_ms, Priority.ARRIVAL, ran.append, at_ms)
    engine.run_until(2.0)
    assert ran == [1.0, 2.0]
    engine.run_until(9.0)
    assert ran == [1.0, 2.0, 3.0]


def test_a_past_time_means_now() -> None:
    engine = Engine()
    times: list[float] = []
    engine.run_until(10.0)
    engine.at(3.0, Priority.ARRIVAL, lambda: times.append(engine.now_ms))
    engine.run_until(11.0)
    assert times == [10.0]


def test_cancelled_entries_do_not_run_and_do_not_pile_up() -> None:
    engine = Engine()
    ran: list[int] = []
    engine.at(1.0, Priority.ARRIVAL, ran.append, 1)
    for _ in range(3 * STALE_ENTRIES_KEPT):
        engine.cancel(engine.at(1e9, Priority.TIMER, ran.append, 2))
    assert len(engine) == 1
    assert len(engine._heap) <= 2 * STALE_ENTRIES_KEPT
    engine.run_until(2e9)
    assert ran == [1]


@pytest.mark.parametrize("time_ms", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_never_comes_is_refused(time_ms: float) -> None:
    engine = Engine()
    with pytest.raises(ValueError, match="is no time at which"):
        engine.at(time_ms, Priority.TIMER, print)
    with pytest.raises(ValueError, match="is no time to run until"):
        engine.run_until(time_ms)
    assert not len(engine)
