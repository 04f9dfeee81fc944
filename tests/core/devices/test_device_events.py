"""Event devices: a press is taken once and reaches every routine that listens (protocol, section 6)."""

from device_bench import AWAY, BUTTON, HOME, LAMP, NEAR, R3, SENSOR, Bench, make_program, run_of

from comesh.core.devices.event_feeds import MAX_EVENTS
from comesh.core.effects import AcknowledgeEvent, Refused, Subscribe
from comesh.core.records import DeviceRecord, Kind, Standing
from comesh.core.stamps import Ballot
from comesh.core.work_messages import DeviceEvents, EventsSeen, Reading

PRESSED = {"pressed": True}


def sequences(events: DeviceEvents) -> list[int]:
    return [event.sequence for event in events.events]


def test_subscriptions_to_event_devices_are_renewed() -> None:
    bench = Bench()
    assert bench.take_done(Subscribe) == [Subscribe(BUTTON)]
    bench.run(12_000)
    assert bench.take_done(Subscribe) == [Subscribe(BUTTON)] * 2


def test_an_event_is_committed_before_it_is_acknowledged_or_sent() -> None:
    bench = Bench()
    bench.run(1000)
    bench.commits = False
    bench.report(BUTTON, PRESSED, "a")
    assert not bench.take_done(AcknowledgeEvent)
    assert not bench.take(DeviceEvents)
    bench.commit()
    assert bench.take_done(AcknowledgeEvent) == [AcknowledgeEvent(BUTTON, "a")]
    (events,) = bench.take(DeviceEvents)
    assert (events.routine, sequences(events)) == (R3, [1])
    (near,) = bench.take_local(DeviceEvents)
    assert (near.routine, sequences(near)) == (NEAR, [1])


def test_events_in_maintenance_are_acknowledged_after_a_commit() -> None:
    """Another leader may serve by now, and may have ended the maintenance."""
    bench = Bench(records=(Standing(Kind.MAINTAINED, BUTTON, "ann", 0.0),))
    bench.run(1000)
    entries = bench.entries
    bench.report(BUTTON, PRESSED, "a")
    assert bench.take_done(AcknowledgeEvent) == [AcknowledgeEvent(BUTTON, "a")]
    assert bench.entries == entries + 1
    assert not bench.take(DeviceEvents)


def test_an_event_in_maintenance_is_not_new_afterwards() -> None:
    """The device got no acknowledgement, and repeats the event."""
    order = Standing(Kind.MAINTAINED, BUTTON, "ann", 0.0)
    bench = Bench(records=(order,))
    bench.report(BUTTON, PRESSED, "a")
    bench.serving.drop(order.key)
    bench.commit()
    bench.report(BUTTON, PRESSED, "a")
    assert not bench.take(DeviceEvents)
    bench.report(BUTTON, PRESSED, "b")
    assert [sequences(events) for events in bench.take(DeviceEvents)] == [[2]]


def test_a_repeated_event_is_acknowledged_and_not_taken() -> None:
    bench = Bench()
    for token in ("a", "b", "a", "b"):
        bench.report(BUTTON, PRESSED, token)
    assert bench.record(BUTTON).sequence == 2
    bench.lead(Ballot(1, 0))
    bench.report(BUTTON, PRESSED, "a")
    assert bench.record(BUTTON).sequence == 2
    assert [effect.token for effect in bench.take_done(AcknowledgeEvent)] == ["a", "b", "a", "b", "a"]


def test_events_of_a_device_are_known_when_it_is_added_again() -> None:
    """It was removed before it heard the acknowledgement, and has repeated the event ever since."""
    bench = Bench()
    for token in ("a", "b"):
        bench.report(BUTTON, PRESSED, token)
    without, again = make_program(devices=(LAMP, SENSOR)), bench.program
    bench.lead(Ballot(1, 0), program=without)
    bench.report(BUTTON, PRESSED, "b")
    bench.lead(Ballot(2, 0), program=again)
    bench.take(DeviceEvents)
    bench.take_done(AcknowledgeEvent)
    for token in ("a", "b"):
        bench.report(BUTTON, PRESSED, token)
    assert not bench.take(DeviceEvents)
    assert [effect.token for effect in bench.take_done(AcknowledgeEvent)] == ["a", "b"]
    bench.report(BUTTON, PRESSED, "c")
    assert [sequences(events) for events in bench.take(DeviceEvents)] == [[3]], "it counts on"


def test_a_removed_device_keeps_only_its_event_numbers() -> None:
    bench = Bench()
    bench.report(BUTTON, PRESSED, "a")
    bench.lock(run_of(R3), BUTTON)
    bench.lead(Ballot(1, 0), program=make_program(devices=(LAMP, SENSOR)))
    assert bench.record(BUTTON).events, "whole, as long as it is held"
    bench.release(run_of(R3), BUTTON)
    assert bench.record(BUTTON) == DeviceRecord(BUTTON, sequence=1, token="a")
    assert bench.lock(run_of(R3, 2), BUTTON).answers[0].refused == "unknown"
    entries = bench.entries
    bench.release(run_of(R3, 2), BUTTON)
    bench.lead(Ballot(2, 0))
    bench.report(BUTTON, PRESSED, "b")
    assert bench.record(BUTTON) == DeviceRecord(BUTTON, sequence=1, token="a")
    assert bench.entries == entries, "nothing more is written of it"


def test_events_are_repeated_in_order_until_seen_then_trimmed() -> None:
    bench = Bench()
    bench.report(BUTTON, PRESSED, "a")
    bench.report(BUTTON, PRESSED, "b")
    bench.take(DeviceEvents)
    bench.run(3000)
    assert all(sequences(events) == [1, 2] for events in bench.take(DeviceEvents))
    bench.say(EventsSeen(BUTTON, R3, 1))
    bench.run(10_000)
    assert {tuple(sequences(events)) for events in bench.take(DeviceEvents)} == {(2,)}
    bench.say(EventsSeen(BUTTON, R3, 2))
    bench.run(20_000)
    assert not bench.take(DeviceEvents)
    assert len(bench.record(BUTTON).events) == 2
    bench.say(EventsSeen(BUTTON, NEAR, 2), sender=HOME)
    assert bench.record(BUTTON).events == ()
    assert bench.record(BUTTON).sequence == 2


def test_events_seen_by_all_are_trimmed_after_a_while() -> None:
    bench = Bench()
    bench.report(BUTTON, PRESSED, "a")
    bench.say(EventsSeen(BUTTON, NEAR, 1), sender=HOME)
    bench.say(EventsSeen(BUTTON, R3, 1), sender=AWAY)
    assert len(bench.record(BUTTON).events) == 1
    bench.run(5000)
    assert bench.record(BUTTON).events == ()


def test_a_new_leader_sends_what_the_record_holds() -> None:
    bench = Bench()
    bench.report(BUTTON, PRESSED, "a")
    bench.take(DeviceEvents)
    bench.lead(Ballot(1, 0))
    assert [sequences(events) for events in bench.take(DeviceEvents)] == [[1]]


def test_the_oldest_of_too_many_events_is_dropped_and_reported() -> None:
    bench = Bench()
    for number in range(MAX_EVENTS + 1):
        bench.report(BUTTON, PRESSED, f"t{number}")
    assert [event.sequence for event in bench.record(BUTTON).events] == list(range(2, MAX_EVENTS + 2))
    assert [seen.why[:6] for seen in bench.observed() if isinstance(seen, Refused)] == ["button"]


def test_without_listeners_only_the_sequence_is_kept() -> None:
    bench = Bench()
    bench.program.listeners.clear()
    bench.lead(Ballot(1, 0))
    bench.report(BUTTON, PRESSED, "a")
    assert (bench.record(BUTTON).sequence, bench.record(BUTTON).events) == (1, ())
    assert bench.take_done(AcknowledgeEvent) == [AcknowledgeEvent(BUTTON, "a")]


def test_a_report_without_a_token_is_a_reading() -> None:
    bench = Bench()
    bench.run(1000)
    bench.take_local(Reading)
    bench.report(LAMP, {"on": True})
    assert [reading.values for reading in bench.take_local(Reading)] == [{"on": True}]
