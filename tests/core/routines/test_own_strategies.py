"""Tests of registered lock strategies: requests and releases of each attempt."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest
from routine_bench import Bench, program, routine

from comesh.core.ids import DeviceId, RoutineId
from comesh.core.records import RunRecord, Stage
from comesh.core.strategies import (
    LOCK_STRATEGIES,
    MAX_REST_MS,
    AtDevices,
    Manner,
    Strategy,
    Wanted,
    is_known,
    register_lock_strategy,
    strategy_named,
    strategy_of,
)
from comesh.core.work_messages import Fire, LockRequest, Release, RunQuery, RunState, Wound

R = RoutineId("r")
Own = Callable[..., str]


@pytest.fixture
def own() -> Iterator[Own]:
    def add(*manners: Manner) -> str:
        register_lock_strategy("own", *manners)
        return "own"

    yield add
    if is_known("own"):
        LOCK_STRATEGIES.remove("own")


def fired(*devices: str, strategy: str) -> Bench:
    bench = Bench(program(routine(*devices, strategy=strategy)))
    bench.hear(Fire(R, "q"))
    return bench


def asked(bench: Bench) -> list[tuple[str, int, tuple[str, ...], Strategy]]:
    return [(to, body.attempt, body.devices, body.strategy) for to, body in bench.take(LockRequest)]


def given_back(bench: Bench) -> list[tuple[str, ...]]:
    return [body.devices for _, body in bench.take(Release)]


def backwards(wanted: Sequence[Wanted]) -> list[list[DeviceId]]:
    return [[one.device] for one in reversed(wanted)]


def test_each_attempt_has_its_manner_and_the_last_one_stays(own: Own) -> None:
    bench = fired("b1", "d1", strategy=own(Manner(AtDevices.REFUSE), Manner(AtDevices.QUEUE)))
    assert asked(bench) == [
        ("c2", 1, ("b1",), Strategy.OPTIMISTIC),
        ("c3", 1, ("d1",), Strategy.OPTIMISTIC),
    ]
    bench.refuse("d1")
    bench.release("b1", attempt=1)
    bench.release("d1", attempt=1)
    bench.wait(450)
    assert asked(bench) == [("c2", 2, ("b1",), Strategy.SEQUENTIAL)]
    bench.hear(Wound(bench.run().run, 2, DeviceId("b1")), "c2")
    bench.release("b1", attempt=2)
    assert asked(bench) == [("c2", 3, ("b1",), Strategy.SEQUENTIAL)], "at once: it was not refused"
    bench.grant("b1")
    bench.grant("d1")
    assert bench.stage is Stage.EXECUTING


def test_rounds_are_asked_for_one_after_the_other(own: Own) -> None:
    bench = fired("b1", "b2", "d1", strategy=own(Manner(AtDevices.BY_AGE, rounds=backwards)))
    for group, device in (("c3", "d1"), ("c2", "b2"), ("c2", "b1")):
        assert asked(bench) == [(group, 1, (device,), Strategy.PRIORITY)]
        bench.grant(device)
    assert bench.stage is Stage.EXECUTING


def test_devices_in_no_round_come_last_and_unknown_ones_are_ignored(own: Own) -> None:
    def some(wanted: Sequence[Wanted]) -> list[list[DeviceId]]:
        return [[], [DeviceId("stranger")], [DeviceId("d1"), DeviceId("d1")]]

    bench = fired("b1", "b2", "d1", strategy=own(Manner(AtDevices.BY_AGE, rounds=some)))
    assert [devices for _, _, devices, _ in asked(bench)] == [("d1",)]
    bench.grant("d1")
    assert [devices for _, _, devices, _ in asked(bench)] == [("b1", "b2")]


def test_every_requested_lock_is_given_back(own: Own) -> None:
    bench = fired("b1", "b2", "d1", strategy=own(Manner(AtDevices.BY_AGE, rounds=backwards)))
    bench.grant("d1")
    bench.said.clear()
    bench.hear(Wound(bench.run().run, 1, DeviceId("d1")), "c3")
    assert given_back(bench) == [("b2",), ("d1",)], "b1 was never asked for"


def test_rests_are_kept_within_bounds(own: Own) -> None:
    def rest(attempt: int, round_trip_ms: float) -> float:
        return -1.0 if attempt == 1 else 1e9

    bench = fired("b1", strategy=own(Manner(AtDevices.REFUSE, rest=rest)))
    for attempt, (min_ms, max_ms) in ((1, (50.0, 160.0)), (2, (0.5 * MAX_REST_MS, 1.5 * MAX_REST_MS))):
        bench.refuse("b1")
        bench.release("b1", attempt=attempt)
        asked(bench)
        began_ms = bench.now_ms
        while not asked(bench):
            bench.wait(10)
        assert min_ms <= bench.now_ms - began_ms <= max_ms + 10


def test_other_groups_see_the_queue_rule_and_not_the_name(own: Own) -> None:
    bench = fired("b1", strategy=own(Manner(AtDevices.REFUSE)))
    bench.said.clear()
    run = bench.run().run
    bench.hear(RunQuery(run, R, (DeviceId("b1"),), None), "c2")
    ((_, state),) = bench.take(RunState)
    assert state.strategy is Strategy.OPTIMISTIC


def test_records_name_a_strategy_and_built_in_ones_take_one_byte(own: Own) -> None:
    run = fired("b1", strategy=own(Manner(AtDevices.BY_AGE))).run()
    assert run.strategy == "own"
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(run), type=RunRecord) == run
    built_in = msgspec.structs.replace(run, strategy=strategy_named("priority"))
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(built_in), type=RunRecord)
    assert decoded.strategy is Strategy.PRIORITY
    assert len(msgspec.msgpack.encode(run)) == len(msgspec.msgpack.encode(built_in)) + len("own")


def test_a_run_of_an_unknown_strategy_goes_by_age_and_gives_all_back(own: Own) -> None:
    bench = fired("a1", "b1", "d1", strategy=own(Manner(AtDevices.BY_AGE, rounds=backwards)))
    bench.grant("d1")
    LOCK_STRATEGIES.remove("own")
    bench.said.clear()
    bench.hear(Wound(bench.run().run, 1, DeviceId("d1")), "c3")
    assert given_back(bench) == [("a1",), ("b1",), ("d1",)]
    for device in ("b1", "d1"):
        bench.release(device, attempt=1)
    assert {strategy for *_, strategy in asked(bench)} == {Strategy.PRIORITY}


def test_a_strategy_that_could_wait_in_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="could wait for each other in a circle"):
        register_lock_strategy("own", Manner(AtDevices.BY_AGE), Manner(AtDevices.QUEUE, rounds=backwards))
    with pytest.raises(ValueError, match="has no manner"):
        register_lock_strategy("own")
    with pytest.raises(ValueError, match="there is a lock strategy 'priority' already"):
        register_lock_strategy("priority", Manner(AtDevices.QUEUE))
    assert not is_known("own")


def test_built_in_strategies_are_registered_like_others() -> None:
    at_devices = {str(one): strategy_of(one).manner(1).at_devices.value for one in Strategy}
    assert at_devices == {str(one): one for one in Strategy}
