"""Tests of sensing: reads, suspicion, status, and readings sent until seen (protocol, section 6)."""

from device_bench import AWAY, BUTTON, FENCE, HOME, LAMP, SENSOR, Bench, make_program
from msgspec.structs import replace

from comesh.core.effects import DeviceChanged, ReadDevice
from comesh.core.program import DeviceProgram
from comesh.core.records import Kind, Standing, Status
from comesh.core.stamps import Ballot
from comesh.core.work_messages import Reading, Seen, Watch


def settled() -> Bench:
    """Run until everything was read, sent and seen."""
    bench = Bench()
    bench.run(1000)
    (reading,) = bench.take(Reading)
    bench.say(Seen(SENSOR, reading.version))
    bench.take_local(Reading)
    return bench


def test_each_device_is_read_once_per_period() -> None:
    bench = settled()
    del bench.answering[SENSOR], bench.answering[LAMP]
    bench.run(50)
    bench.done.clear()
    bench.run(950)
    asked = [effect.device for effect in bench.take_done(ReadDevice)]
    assert sorted(asked) == [LAMP, SENSOR]


def test_a_new_leader_reads_awaited_devices_at_once() -> None:
    bench = settled()
    bench.answering[SENSOR] = {"value": 7}
    bench.lead(Ballot(1, 1))
    assert [reading.values for reading in bench.take(Reading)] == [{"value": 7}]


def test_unchanged_answers_commit_and_send_nothing() -> None:
    bench = settled()
    entries = bench.entries
    bench.run(10_000)
    assert bench.entries == entries
    assert not bench.posted
    assert not bench.local


def test_a_first_answer_is_committed_as_up_and_not_gossiped() -> None:
    bench = settled()
    assert bench.record(LAMP).status is Status.UP
    assert DeviceChanged(LAMP, "up", "it answers") in bench.observed()
    assert bench.announcements == []


def test_a_change_goes_once_to_each_group_that_watches_until_seen() -> None:
    bench = settled()
    bench.answering[SENSOR] = {"value": 2}
    bench.run(1000)
    first = bench.take(Reading)
    assert [(reading.values, reading.up) for reading in first] == [({"value": 2}, True)]
    bench.answering[SENSOR] = {"value": 3}
    bench.run(1000)
    bench.say(Seen(SENSOR, first[0].version))
    bench.run(4000)
    later = bench.take(Reading)
    assert len(later) >= 2
    assert {reading.values["value"] for reading in later if reading.values} <= {2, 3}
    assert later[-1].values == {"value": 3}
    assert later[-1].version > first[0].version
    bench.say(Seen(SENSOR, later[-1].version))
    bench.run(20_000)
    assert not bench.take(Reading)


def test_readings_in_maintenance_are_not_sent_with_earlier_ones() -> None:
    bench = settled()
    bench.answering[SENSOR] = {"value": 2}
    bench.run(1000)
    assert [reading.values for reading in bench.take(Reading)] == [{"value": 2}], "and it gets lost"
    bench.serving.put(Standing(Kind.MAINTAINED, SENSOR, "ann", 0.0))
    bench.commit()
    bench.answering[SENSOR] = {"value": 3}
    bench.run(20_000)
    bench.reach()
    assert not bench.take(Reading)


def test_the_own_group_is_sent_a_reading_once() -> None:
    bench = settled()
    bench.answering[LAMP] = {"on": True}
    bench.run(10_000)
    assert [reading.values for reading in bench.take_local(Reading)] == [{"on": True}]


def test_silence_is_probed_then_down_and_an_answer_is_up() -> None:
    bench = settled()
    del bench.answering[SENSOR]
    bench.run(550)
    assert bench.probed == [SENSOR]
    assert bench.record(SENSOR).status is Status.UP
    bench.run(500)
    assert bench.record(SENSOR).status is Status.DOWN
    assert bench.announcements == [("device/sensor", 2, b"down")]
    assert [(reading.values, reading.up) for reading in bench.take(Reading)] == [(None, False)]
    bench.run(5000)
    assert bench.probed == [SENSOR]
    bench.answering[SENSOR] = {"value": 1}
    bench.run(1000)
    assert bench.record(SENSOR).status is Status.UP
    assert bench.announcements[1:] == [("device/sensor", 3, b"up")]
    assert bench.take(Reading)[-1].values == {"value": 1}


def test_a_probe_that_is_answered_keeps_the_device_up() -> None:
    bench = settled()
    del bench.answering[SENSOR]
    bench.run(550)
    assert bench.probed == [SENSOR]
    bench.answer(-1, SENSOR, {"value": 1})
    bench.answering[SENSOR] = {"value": 1}
    bench.run(3000)
    assert bench.record(SENSOR).status is Status.UP
    assert not bench.announcements


def test_an_error_counts_as_silence_and_a_lone_member_reads_again() -> None:
    bench = settled()
    bench.can_probe = False
    del bench.answering[SENSOR]
    bench.done.clear()
    while not (reads := bench.take_done(ReadDevice)):
        bench.run(50)
    bench.answer(reads[0].call, SENSOR, error="no answer")
    assert len(bench.take_done(ReadDevice)) == 1
    assert bench.record(SENSOR).status is Status.UP
    bench.run(400)
    assert bench.record(SENSOR).status is Status.DOWN


def test_a_slow_device_is_measured_and_not_suspected() -> None:
    bench = settled()
    del bench.answering[SENSOR]
    for _ in range(300):
        bench.run(20)
        for read in bench.take_done(ReadDevice):
            bench.run(150)
            bench.answer(read.call, SENSOR, {"value": 1})
    assert not bench.probed


def test_an_overtaken_answer_is_ignored() -> None:
    bench = settled()
    del bench.answering[SENSOR]
    bench.done.clear()
    while not (reads := bench.take_done(ReadDevice)):
        bench.run(50)
    bench.report(SENSOR, {"value": 9})
    bench.answer(reads[0].call, SENSOR, {"value": 1})
    assert [reading.values for reading in bench.take(Reading)] == [{"value": 9}]


def test_answers_are_fitted() -> None:
    program = make_program()
    program.devices[LAMP] = DeviceProgram(id=LAMP, fit=lambda answer: {"on": bool(answer.get("on"))})
    bench = Bench(program, answering={LAMP: {"on": 1, "noise": "x"}})
    bench.run(1000)
    assert [reading.values for reading in bench.take_local(Reading)] == [{"on": True}]


def test_fixed_timeouts_wait_a_whole_period() -> None:
    bench = Bench(make_program(estimated_timeouts=False))
    bench.run(1000)
    del bench.answering[SENSOR]
    bench.run(1200)
    assert not bench.probed
    bench.run(300)
    assert bench.probed == [SENSOR]


def test_watch_is_answered_once_a_reading_is_known() -> None:
    bench = Bench(silent=(SENSOR,))
    bench.say(Watch((SENSOR,)))
    assert not bench.take(Reading)
    bench.answering[SENSOR] = {"value": 5}
    bench.run(1000)
    (told,) = bench.take(Reading)
    bench.say(Watch((SENSOR, LAMP, BUTTON)))
    answers = bench.take(Reading)
    assert [(reading.device, reading.values) for reading in answers] == [
        (SENSOR, {"value": 5}),
        (LAMP, {"on": False}),
        (BUTTON, {"pressed": False}),
    ]
    assert answers[0].version == told.version
    bench.say(Watch((LAMP,)), sender=HOME)
    assert bench.take_local(Reading)[-1].values == {"on": False}


def test_readings_sent_to_an_asking_group_are_answers_until_confirmed() -> None:
    bench = Bench(silent=(SENSOR,))
    bench.say(Watch((SENSOR,)))
    bench.answering[SENSOR] = {"value": 5}
    bench.run(1000)
    (told,) = bench.take(Reading)
    assert told.watched == FENCE
    bench.run(1500)
    assert {again.watched for again in bench.take(Reading)} == {FENCE}, "told again until it is seen"
    bench.say(Seen(SENSOR, told.version))
    bench.answering[SENSOR] = {"value": 6}
    bench.run(1000)
    assert [(later.values, later.watched) for later in bench.take(Reading)] == [({"value": 6}, None)]


def test_a_new_leader_informs_all_watchers_also_of_devices_that_are_down() -> None:
    bench = settled()
    bench.lead(Ballot(1, 0))
    bench.run(1000)
    assert [reading.values for reading in bench.take(Reading)] == [{"value": 1}]
    bench.committed["device/sensor"] = replace(bench.record(SENSOR), status=Status.DOWN)
    del bench.answering[SENSOR]
    bench.lead(Ballot(2, 0))
    assert [(reading.values, reading.up) for reading in bench.take(Reading)] == [(None, False)]
    assert {message.to for message in bench.posted} <= {AWAY}
