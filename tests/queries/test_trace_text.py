"""What people read of a run: each trace in words, how long things took, and one clock for all of it."""

from datetime import UTC, datetime
from typing import get_args

import msgspec
import pytest

from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.traces import (
    AttemptBegan,
    BecameTrue,
    ByHand,
    CameDue,
    CommandAnswered,
    CommandSent,
    Dropped,
    EventCame,
    Executing,
    Failed,
    Finished,
    Fired,
    Ignored,
    LeaderTookOver,
    LockAsked,
    LockGranted,
    LockPassedOn,
    LockQueued,
    LockRefused,
    Releasing,
    StayedTrue,
    Trace,
    Wounded,
    what_of,
)
from comesh.queries.times import clock, duration_text, zone_named
from comesh.queries.trace_text import Telling, text_of

LAMP, FAN = DeviceId("lamp"), DeviceId("fan")
RUN = "evening#4:0.0:12"
TOLD: list[tuple[Trace, str, str]] = [
    (Fired(ByHand("ann")), "fired: by hand, ann", ""),
    (
        Fired(BecameTrue({"door.open": True, "wind": None}), "r#4:0.0:9"),
        "fired: its clause became true (door.open true, wind unknown); waits for r#4:0.0:9 to end",
        "",
    ),
    (
        Fired(StayedTrue(5000.0, {"door.open": False})),
        "fired: its clause was true for 5 s (door.open false)",
        "",
    ),
    (
        Fired(EventCame(LAMP, 3, {"press": "double"})),
        "fired: lamp had an event (press double)",
        "fired: lamp had an event (press double, event 3)",
    ),
    (
        Ignored(ByHand("ann"), paused_by="bob"),
        "ignored: by hand, ann; paused by bob",
        "",
    ),
    (
        Ignored(ByHand("ann"), cooldown_ms=561.5),
        "ignored: by hand, ann; cools down for 562 ms more",
        "",
    ),
    (Dropped("the routine was removed"), "dropped: the routine was removed", ""),
    (AttemptBegan(1, "sequential"), "began attempt 1", "began attempt 1 (sequential)"),
    (
        AttemptBegan(2, "optimistic", "lamp is held"),
        "began attempt 2: lamp is held",
        "began attempt 2 (optimistic): lamp is held",
    ),
    (LeaderTookOver(NodeId("n2"), "3.1"), "n2 took over its lead", "n2 took over its lead, ballot 3.1"),
    (
        LockAsked((LAMP, FAN), GroupId("c1"), 1),
        "asked for the locks of lamp, fan",
        "asked for the locks of lamp, fan, of group c1, attempt 1",
    ),
    (
        LockPassedOn((LAMP,), GroupId("c2"), 1),
        "asked on for the lock of lamp",
        "asked on for the lock of lamp, of group c2, attempt 1",
    ),
    (LockGranted(LAMP, "1:0.0:35"), "took the lock of lamp", "took the lock of lamp, stamp 1:0.0:35"),
    (LockQueued(LAMP), "waits for the lock of lamp", ""),
    (LockRefused(LAMP, "held"), "was refused the lock of lamp: another run holds it", ""),
    (Wounded(LAMP, 1), "gives way to an older run, which waits for lamp", ""),
    (
        Executing(1, 1),
        "executes: has all its locks, 1 step",
        "executes: has all its locks, 1 step, attempt 1",
    ),
    (
        Executing(2, 11, 4),
        "executes: goes on with step 5 of 11",
        "executes: goes on with step 5 of 11, attempt 2",
    ),
    (CommandSent(0, LAMP, "set", True), "step 1: tells lamp set true", ""),
    (CommandSent(0, LAMP, "say", "It is True"), "step 1: tells lamp say It is True", ""),
    (CommandAnswered(0, LAMP, "done"), "step 1: lamp did it", ""),
    (CommandAnswered(0, LAMP, "unknown", "no answer"), "step 1: lamp may have done it: no answer", ""),
    (Releasing(""), "gives its locks back", ""),
    (Releasing("lamp: set: no answer"), "gives its locks back: lamp: set: no answer", ""),
    (Finished(), "finished", ""),
    (Failed("lamp: set: no answer"), "failed: lamp: set: no answer", ""),
]


@pytest.mark.parametrize(("trace", "words", "verbose"), TOLD)
def test_a_trace_in_words(trace: Trace, words: str, verbose: str) -> None:
    assert text_of(trace) == words
    assert text_of(trace, verbose=True) == (verbose or words)


def test_every_trace_has_words_and_survives_json() -> None:
    assert {type(trace) for trace, _, _ in TOLD} == set(get_args(Trace))
    for trace, _, _ in TOLD:
        assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
    fired = msgspec.json.encode(Fired(ByHand("ann")))
    assert fired == b'{"what":"fired","cause":["by_hand","ann"],"waits_for":null}'
    assert what_of(LockPassedOn((LAMP,), GroupId("c1"), 1)) == "lock_passed_on"


def test_what_ends_something_says_how_long_it_took() -> None:
    telling = Telling()
    lines: list[tuple[float, str, Trace, str]] = [
        (0.0, "n1", Fired(ByHand("ann")), "fired: by hand, ann"),
        (0.5, "n1", LockAsked((LAMP, FAN), GroupId("c1"), 1), "asked for the locks of lamp, fan"),
        (0.7, "n1", LockGranted(LAMP, "1:0.0:35"), "took the lock of lamp (0.2 ms)"),
        (35.5, "n1", LockGranted(FAN, "1:0.0:36"), "took the lock of fan (35 ms)"),
        (40.0, "n1", CommandSent(0, LAMP, "set", True), "step 1: tells lamp set true"),
        (
            2040.0,
            "n1",
            CommandAnswered(0, LAMP, "failed", "jammed"),
            "step 1: lamp did not do it (2 s): jammed",
        ),
        (2100.0, "n2", LeaderTookOver(NodeId("n2"), "1.1"), "n2 took over its lead"),
        (2200.0, "n2", Failed("lamp: set: jammed"), "failed: lamp: set: jammed"),
    ]
    for at_ms, node, trace, words in lines:
        assert telling.text(RUN, node, at_ms, trace) == words
    assert (
        telling.text("another#1:0.0:1", "n1", 1.0, LockGranted(LAMP, "1:0.0:37")) == "took the lock of lamp"
    )


def test_times_of_a_line_are_all_in_the_zone_of_the_document() -> None:
    at_ms = datetime(2026, 7, 1, 5, 30, tzinfo=UTC).timestamp() * 1000
    telling = Telling(time_zone="Europe/Zurich")
    words = telling.text(RUN, "n1", at_ms + 12.0, Fired(CameDue(at_ms)))
    assert (telling.clock(at_ms + 12.0), words) == ("07:30:00.012", "fired: scheduled for 07:30:00")
    assert clock(at_ms, zone_named("Mars/Olympus")) == "05:30:00.000Z", "a zone that is not known here"


@pytest.mark.parametrize(
    ("took_ms", "words"),
    [
        (0.0, "0.0 ms"),
        (9.94, "9.9 ms"),
        (35.4, "35 ms"),
        (1000.0, "1 s"),
        (1250.0, "1.2 s"),
        (61_400.0, "61 s"),
        (720_000.0, "12 min"),
    ],
)
def test_durations_are_short(took_ms: float, words: str) -> None:
    assert duration_text(took_ms) == words
