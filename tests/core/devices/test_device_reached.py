"""Tests that a device group repeats its messages at once when the awaited group is reached."""

from device_bench import AWAY, BUTTON, HOME, LAMP, R1, R2, R3, SENSOR, Bench, run_of

from comesh.core.ids import GroupId
from comesh.core.stamps import Ballot, Era
from comesh.core.strategies import Strategy
from comesh.core.work_messages import DeviceEvents, EventsSeen, Reading, RunQuery, Seen, Wound

LONG_MS = 40_000.0
"""Time after which everything is repeated every max_request_resend_ms only."""
SOON_MS = 2400.0
"""The second pause, with what it is spread by."""


def test_readings_are_sent_to_a_reached_group_until_seen() -> None:
    bench = Bench()
    bench.run(LONG_MS)
    bench.take(Reading)
    bench.reach(GroupId("another"))
    assert not bench.take(Reading)
    bench.reach()
    (told,) = bench.take(Reading)
    assert told.device == SENSOR
    bench.run(SOON_MS)
    assert bench.take(Reading) == [told], "the pauses begin anew"
    bench.say(Seen(SENSOR, told.version))
    bench.reach()
    assert not bench.take(Reading)


def test_events_are_sent_to_a_reached_group_until_seen() -> None:
    bench = Bench()
    bench.report(BUTTON, {"pressed": True}, "a")
    bench.run(LONG_MS)
    bench.take(DeviceEvents)
    bench.reach()
    (events,) = bench.take(DeviceEvents)
    assert events.routine == R3
    bench.run(SOON_MS)
    assert bench.take(DeviceEvents)
    bench.say(EventsSeen(BUTTON, R3, 1))
    bench.reach()
    assert not bench.take(DeviceEvents)


def test_a_holder_is_wounded_when_its_group_is_reached() -> None:
    bench = Bench()
    younger, older = run_of(R2), run_of(R1)
    bench.lock(younger, strategy=Strategy.PRIORITY, fired_ms=2.0)
    bench.lock(older, strategy=Strategy.PRIORITY, fired_ms=1.0)
    bench.run(LONG_MS)
    bench.take(Wound)
    bench.reach(HOME)
    assert not bench.take(Wound)
    bench.reach()
    assert bench.take(Wound) == [Wound(younger, 1, LAMP)]


def test_after_an_outage_a_reached_group_is_asked() -> None:
    bench = Bench()
    bench.lead(Ballot(1, 0), era=Era(0, Ballot(1, 0)))
    bench.run(LONG_MS)
    bench.take(RunQuery)
    bench.reach(GroupId("another"))
    assert not bench.take(RunQuery)
    bench.reach(AWAY)
    assert {query.routine for query in bench.take(RunQuery)} == {R1, R2, R3}
