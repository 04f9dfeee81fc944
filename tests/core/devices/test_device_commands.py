"""Tests of commands: intents, leases, fences, outcomes, and open calls under a new leader (section 7)."""

import pytest
from device_bench import (
    FENCE,
    LAMP,
    LANDING_MS,
    LATER_FENCE,
    R1,
    R2,
    TIMEOUT_MS,
    Bench,
    run_of,
)
from msgspec.structs import replace

from comesh.core.actions import Origin
from comesh.core.devices.calls import TOO_LATE
from comesh.core.effects import CommandDevice, ReadDevice
from comesh.core.records import Outcome
from comesh.core.stamps import FIRST_ERA, Ballot
from comesh.core.values import Value
from comesh.core.work_messages import (
    CommandState,
    Fenced,
    FencedDevice,
    LockState,
    Reading,
    StepState,
)

A, B = run_of(R1), run_of(R2)


def held() -> Bench:
    bench = Bench()
    bench.run(1000)
    bench.lock(A)
    bench.take_local(Reading)
    return bench


def outcomes(bench: Bench) -> list[Outcome | None]:
    return [state.state.outcome for state in bench.take(CommandState)]


def test_a_command_leaves_after_commit_with_lease_and_grant() -> None:
    bench = held()
    bench.serving.lease_until_ms = bench.now_ms + 500
    bench.commits = False
    bench.command(A)
    assert not bench.take_done(CommandDevice)
    bench.commit()
    command = bench.sent_command()
    hold = bench.record(LAMP).hold
    assert hold is not None
    assert command.origin is not None and command.origin.grant is not None
    assert command.origin.grant > hold.stamp
    assert command.until_ms == bench.now_ms + 500
    assert (replace(command.origin, grant=None), command.action.command) == (Origin(A, 1, 0), "on")
    bench.answer(command.call, LAMP, {"on": True})
    assert outcomes(bench) == [Outcome.DONE]
    assert bench.record(LAMP).calls[0].landed


def test_the_answer_of_a_command_is_a_reading_too() -> None:
    bench = held()
    bench.command(A)
    bench.answer(bench.sent_command().call, LAMP, {"on": True})
    assert [reading.values for reading in bench.take_local(Reading)] == [{"on": True}]


def test_a_command_costs_one_entry_for_the_intent_and_one_for_the_outcome() -> None:
    bench = held()
    bench.answering[LAMP] = {"on": True}
    bench.run(1000)
    entries = bench.entries
    bench.command(A)
    bench.answer(bench.sent_command().call, LAMP, {"on": True})
    assert bench.entries == entries + 2


def test_the_devices_refusal_is_a_failure() -> None:
    bench = held()
    bench.command(A)
    bench.answer(bench.sent_command().call, LAMP, error="no command 'on'")
    (state,) = bench.take(CommandState)
    assert state.state == StepState(0, Outcome.FAILED, "no command 'on'")
    bench.lock(B)
    bench.release(A)
    assert bench.has(B)


def test_a_known_step_is_answered_and_not_repeated() -> None:
    bench = held()
    bench.command(A)
    command = bench.sent_command()
    bench.command(A)
    assert outcomes(bench) == [None]
    bench.answer(command.call, LAMP, {"on": True})
    bench.command(A)
    assert outcomes(bench) == [Outcome.DONE, Outcome.DONE]
    assert not bench.take_done(CommandDevice)


def test_only_the_holders_attempt_commands() -> None:
    bench = held()
    entries = bench.entries
    bench.command(B)
    bench.command(A, attempt=2)
    assert outcomes(bench) == [Outcome.REFUSED, Outcome.REFUSED]
    bench.release(A)
    bench.command(A)
    assert outcomes(bench) == [Outcome.REFUSED]
    assert not bench.take_done(CommandDevice)
    assert bench.entries == entries + 1


def test_lower_fences_are_refused_once_a_higher_one_is_committed() -> None:
    bench = held()
    bench.command(A)
    bench.fence(A, LATER_FENCE)
    hold = bench.record(LAMP).hold
    assert hold is not None
    steps = (StepState(0, None, ""),)
    assert bench.take(Fenced) == [
        Fenced(A, 1, LATER_FENCE, (FencedDevice(LAMP, hold.stamp, steps),), FIRST_ERA)
    ]
    bench.command(A, step=1, fence=FENCE)
    assert outcomes(bench) == [Outcome.REFUSED]
    bench.fence(A, FENCE)
    assert not bench.take(Fenced)
    bench.command(A, step=1, fence=LATER_FENCE)
    assert len(bench.take_done(CommandDevice)) == 2


def test_a_command_raises_the_fence_too() -> None:
    bench = held()
    bench.command(A, fence=LATER_FENCE)
    bench.command(A, step=1, fence=FENCE)
    assert outcomes(bench) == [Outcome.REFUSED]


def test_fencing_says_what_is_not_held() -> None:
    bench = held()
    bench.fence(B, FENCE)
    assert [fenced.devices[0].held for fenced in bench.take(Fenced)] == [None]
    bench.fence(A, FENCE, attempt=2)
    assert [fenced.devices[0].held for fenced in bench.take(Fenced)] == [None]


def test_without_a_lease_it_waits_for_one() -> None:
    bench = held()
    bench.serving.lease_until_ms = bench.now_ms
    bench.command(A)
    bench.run(5000)
    assert not bench.take_done(CommandDevice)
    bench.serving.lease_until_ms = bench.now_ms + 1000
    bench.run(200)
    command = bench.sent_command()
    bench.answer(command.call, LAMP, error="too late")
    assert bench.sent_command().call != command.call
    assert not outcomes(bench)


def test_a_command_that_never_left_ends_with_its_run() -> None:
    bench = held()
    bench.serving.lease_until_ms = bench.now_ms
    bench.command(A)
    bench.lock(B)
    bench.release(A)
    assert bench.has(B)
    bench.serving.lease_until_ms = float("inf")
    bench.run(5000)
    assert not bench.take_done(CommandDevice)


def test_after_a_timeout_the_device_is_not_granted_until_the_flight_ends() -> None:
    bench = held()
    bench.command(A)
    left_ms = bench.now_ms
    bench.run(TIMEOUT_MS - 10)
    assert not outcomes(bench)
    bench.run(20)
    assert outcomes(bench) == [Outcome.UNKNOWN]
    bench.lock(B)
    bench.release(A)
    bench.run(left_ms + LANDING_MS - 10 - bench.now_ms)
    assert bench.record(LAMP).hold is None
    assert bench.devices.busy
    bench.run(20)
    assert bench.has(B)
    assert [state.run for state in bench.take(LockState)] == [B]
    assert bench.record(LAMP).calls == ()


def test_no_answer_of_the_driver_is_unknown_at_once() -> None:
    bench = held()
    bench.command(A)
    bench.answer(bench.sent_command().call, LAMP, error="no answer")
    assert outcomes(bench) == [Outcome.UNKNOWN]
    assert not bench.record(LAMP).calls[0].landed


def test_a_late_answer_frees_the_device_and_keeps_the_outcome() -> None:
    bench = held()
    bench.command(A)
    command = bench.sent_command()
    bench.run(TIMEOUT_MS + 10)
    assert outcomes(bench) == [Outcome.UNKNOWN]
    bench.lock(B)
    bench.release(A)
    bench.answer(command.call, LAMP, {"on": True})
    assert bench.has(B)
    assert not outcomes(bench)


def test_a_release_with_a_command_under_way_waits_for_its_answer() -> None:
    bench = held()
    bench.command(A)
    command = bench.sent_command()
    bench.lock(B)
    bench.release(A)
    assert bench.record(LAMP).hold is None
    bench.answer(command.call, LAMP, {"on": True})
    assert bench.has(B)
    assert not outcomes(bench)


def test_an_uncommitted_command_does_not_leave_after_its_release() -> None:
    bench = held()
    bench.commits = False
    bench.command(A)
    bench.release(A)
    bench.commit()
    bench.run(1000)
    assert not bench.take_done(CommandDevice)
    assert bench.record(LAMP).calls == ()


# -- after a change of leader --------------------------------------------------------------------------------


def test_a_new_leader_counts_the_whole_flight_before_it_grants() -> None:
    bench = held()
    bench.command(A)
    bench.run(LANDING_MS - 1000)
    bench.lock(B)
    bench.release(A)
    bench.lead(Ballot(1, 0))
    bench.run(LANDING_MS - 10)
    assert bench.record(LAMP).hold is None
    bench.run(20)
    assert bench.has(B)


@pytest.mark.parametrize("shown", [True, False])
def test_an_open_call_is_read_back_and_repeated_at_once_but_stays_open(shown: bool) -> None:
    """The run goes on; the device is nobody else's as long as what the leader before sent may land."""
    bench = held()
    bench.command(A, expects={"on": True})
    bench.take_done(CommandDevice)
    bench.answering[LAMP] = {"on": shown}
    bench.lead(Ballot(1, 0))
    bench.run(10)
    if not shown:
        bench.answer(bench.sent_command().call, LAMP, {"on": True})
    assert outcomes(bench) == [Outcome.DONE]
    assert not bench.take_done(CommandDevice)
    bench.lock(B)
    bench.release(A)
    bench.run(LANDING_MS - 100)
    assert bench.record(LAMP).hold is None
    bench.run(200)
    hold = bench.record(LAMP).hold
    assert hold is not None and hold.run == B


def test_the_answer_of_a_device_that_fences_is_final() -> None:
    bench = held()
    bench.serving.program.devices[LAMP] = replace(bench.serving.program.devices[LAMP], fences=True)
    bench.command(A, expects={"on": True})
    first = bench.sent_command()
    bench.answering[LAMP] = {"on": False}
    bench.lead(Ballot(1, 0))
    bench.run(10)
    again = bench.sent_command()
    assert first.origin is not None and first.origin.grant is not None
    assert again.origin is not None and again.origin.grant is not None
    assert again.origin.grant > first.origin.grant
    bench.answer(again.call, LAMP, {"on": True})
    bench.lock(B)
    bench.release(A)
    hold = bench.record(LAMP).hold
    assert hold is not None and hold.run == B


def test_a_call_that_may_still_land_counts_as_sent() -> None:
    """The new leader could not repeat the command without a lease, and the run gives back."""
    bench = held()
    bench.command(A, expects={"on": True})
    bench.take_done(CommandDevice)
    bench.answering[LAMP] = {"on": False}
    bench.lead(Ballot(1, 0))
    bench.run(10)
    bench.serving.lease_until_ms = bench.now_ms
    bench.answer(bench.sent_command().call, LAMP, error=TOO_LATE)
    assert not bench.take_done(CommandDevice)
    bench.lock(B)
    bench.release(A)
    bench.run(LANDING_MS - 100)
    assert bench.record(LAMP).hold is None
    bench.run(200)
    hold = bench.record(LAMP).hold
    assert hold is not None and hold.run == B


def test_an_error_of_a_node_is_no_answer_of_the_device() -> None:
    bench = held()
    bench.serving.program.devices[LAMP] = replace(bench.serving.program.devices[LAMP], fences=True)
    bench.command(A, expects={"on": True})
    bench.take_done(CommandDevice)
    bench.answering[LAMP] = {"on": False}
    bench.lead(Ballot(1, 0))
    bench.run(10)
    bench.answer(bench.sent_command().call, LAMP, error="too many calls are open")
    assert outcomes(bench) == [Outcome.UNKNOWN]
    bench.lock(B)
    bench.release(A)
    bench.run(LANDING_MS - 100)
    assert bench.record(LAMP).hold is None


def test_the_next_step_waits_for_commands_of_a_former_leader() -> None:
    bench = held()
    bench.command(A, expects={"on": True})
    bench.take_done(CommandDevice)
    bench.answering[LAMP] = {"on": True}
    bench.lead(Ballot(1, 0))
    bench.run(10)
    assert outcomes(bench) == [Outcome.DONE]
    bench.command(A, step=1)
    assert not bench.take_done(CommandDevice)
    bench.run(LANDING_MS + 10)
    assert bench.sent_origin().step == 1


@pytest.mark.parametrize("expects", [{"on": True}, None])
def test_an_unconfirmed_command_that_is_not_idempotent_is_unknown(expects: dict[str, Value] | None) -> None:
    bench = held()
    bench.command(A, expects=expects, idempotent=False)
    bench.take_done(CommandDevice)
    bench.lead(Ballot(1, 0))
    bench.run(LANDING_MS + 10)
    assert outcomes(bench) == [Outcome.UNKNOWN]
    assert all(call.landed for call in bench.record(LAMP).calls)
    assert not bench.take_done(CommandDevice)


def test_a_step_that_its_run_has_passed_is_not_repeated() -> None:
    bench = held()
    bench.command(A, expects={"on": True})
    bench.command(A, step=1, idempotent=False)
    bench.take_done(CommandDevice)
    bench.lead(Ballot(1, 0))
    bench.run(2 * LANDING_MS)
    assert outcomes(bench) == [Outcome.UNKNOWN]
    assert bench.record(LAMP).calls[0].detail == "the run went on"
    assert not bench.take_done(CommandDevice)


def test_a_device_that_cannot_be_read_back_is_commanded_again_if_that_is_harmless() -> None:
    bench = held()
    bench.command(A, expects={"on": True})
    bench.take_done(CommandDevice)
    del bench.answering[LAMP]
    bench.lead(Ballot(1, 0))
    bench.run(10)
    assert not bench.take_done(CommandDevice)
    reads = bench.take_done(ReadDevice)
    bench.run(6000)
    command = bench.sent_command()
    for read in reads:
        bench.answer(read.call, LAMP, {"on": False})
    assert not outcomes(bench)
    bench.answer(command.call, LAMP, {"on": True})
    assert outcomes(bench) == [Outcome.DONE]


def test_an_open_call_whose_run_released_meanwhile_is_only_waited_for() -> None:
    bench = held()
    bench.command(A, expects={"on": True})
    bench.take_done(CommandDevice)
    del bench.answering[LAMP]
    bench.lead(Ballot(1, 0))
    bench.release(A)
    bench.run(LANDING_MS + 10)
    assert not bench.take_done(CommandDevice)
    assert not outcomes(bench)
    assert bench.record(LAMP).calls == ()
    assert not bench.devices.busy
