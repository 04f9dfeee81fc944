"""Messages in words: what members of a config say to each other, and what groups do, each on one line."""

from entry_words import RunNames, config_name, config_words, era_words, stage_words, try_words

from comesh.core.group_messages import (
    Answer,
    Ask,
    Body,
    Claim,
    Gap,
    GiveUp,
    Installed,
    Invite,
    Moved,
    Promise,
    Pull,
    Ready,
    Recover,
    Refuse,
    Retire,
    SeatGiven,
    Start,
    State,
    Sync,
)
from comesh.core.stamps import NO_BALLOT
from comesh.core.work_messages import (
    Command,
    CommandState,
    DeviceEvents,
    FenceAsked,
    Fenced,
    Fire,
    LockAnswer,
    LockRequest,
    LockState,
    NotLeader,
    Ordered,
    Release,
    Released,
    RunQuery,
    RunState,
    StepState,
    Work,
    Wound,
)


def body_words(body: Body) -> str:
    """A message between members of a config."""
    return _of_elections(body) or _of_handoffs(body) or type(body).__name__


def _of_elections(body: Body) -> str:
    match body:
        case Ask(ballot=ballot) if ballot == NO_BALLOT:
            return "Ask: do you lead?"
        case Ask() | Claim() | GiveUp():
            return f"{type(body).__name__} {body.ballot}"
        case Answer():
            would = "would" if body.would else "would not"
            heard = "" if body.leader is None else f", hears rank {body.leader}"
            return f"Answer {body.ballot}: {would}{'' if body.whole else ', not whole'}{heard}"
        case Promise():
            whole = "" if body.whole else ", not whole"
            return f"Promise {body.ballot}: has {body.number} of ballot {body.accepted}{whole}"
        case Refuse():
            lease = f", the lease runs {body.lease_left_ms:.0f} ms" if body.lease_left_ms > 0 else ""
            return f"Refuse {body.ballot}: promised {body.promised}{lease}"
        case Pull():
            return f"Pull: has {body.number} of ballot {body.accepted}"
        case State():
            since = "whole" if body.base < 0 else f"since {body.base}"
            return f"State {body.number} of ballot {body.accepted}, {since}"
        case Sync():
            return f"Sync {body.ballot} at {body.number}"
        case Gap():
            return f"Gap: has {body.number} of ballot {body.accepted}"
        case Recover():
            return f"Recover: promised {body.promised}"
        case _:
            return ""


def _of_handoffs(body: Body) -> str:
    match body:
        case Invite():
            base = "as you have it" if body.records is None else "with the state"
            return f"Invite to {config_words(body.successor).replace('?', '')} at {body.number}, {base}"
        case Ready():
            return "Ready" if body.number >= 0 else "Ready, but the base is missing"
        case Start():
            given = "with all of it" if body.base < 0 else f"from {body.base} on"
            return f"Start {config_words(body.successor)} at {body.number}, {given}"
        case Installed():
            return f"Installed at {body.number}"
        case Retire():
            return f"Retire for {config_name(body.successor.group, body.successor.number)}"
        case Moved():
            return f"Moved to {config_words(body.newest)}"
        case SeatGiven():
            return f"SeatGiven in {config_words(body.config)}"
        case _:
            return ""


def work_words(body: Work, runs: RunNames) -> str:
    """A letter between groups."""
    return f"{type(body).__name__} {_of_locks(body, runs) or _of_runs(body, runs)}".rstrip()


def _of_locks(body: Work, runs: RunNames) -> str:
    match body:
        case LockRequest():
            asked = f"{try_words(runs(body.run), body.attempt)} wants {', '.join(body.devices)}"
            return f"{asked} ({body.strategy})"
        case LockState():
            answers = ", ".join(map(_lock_answer, body.answers))
            return f"{try_words(runs(body.run), body.attempt)}: {answers}"
        case Release() | Released() | FenceAsked():
            fence = f" fence {body.fence.config}:{body.fence.ballot}" if isinstance(body, FenceAsked) else ""
            devices = ", ".join(body.devices)
            return f"{try_words(runs(body.run), body.attempt)}: {devices}{fence}"
        case Fenced():
            return f"{try_words(runs(body.run), body.attempt)}: {_fenced(body)}"
        case Command():
            origin = body.origin
            asked = f"{body.device} {body.action}"
            return f"{try_words(runs(origin.run), origin.attempt)} step {origin.step}: {asked}"
        case CommandState():
            run = try_words(runs(body.run), body.attempt)
            return f"{run} {body.device} {_step_state(body.state)}"
        case Wound():
            return f"{try_words(runs(body.run), body.attempt)}: give {body.device} back"
        case _:
            return ""


def _of_runs(body: Work, runs: RunNames) -> str:
    match body:
        case RunQuery():
            era = "" if body.era is None else f", era {era_words(body.era)}"
            whose = runs(body.run) if body.run is not None else f"any run of {body.routine}"
            return f"{whose}: has it {', '.join(body.devices)}?{era}"
        case RunState():
            held = ", ".join(one.device for one in body.held) or "nothing"
            whose = runs(body.run) if body.run is not None else f"any run of {body.routine}"
            return f"{whose}: {stage_words(body.stage)}, has {held}"
        case DeviceEvents():
            return f"{body.device}: {', '.join(str(one.sequence) for one in body.events)}"
        case Fire():
            return f"{body.routine} (request {body.request})"
        case Ordered():
            return f"not: {body.why_not}"
        case NotLeader():
            return f"of {body.group}; ask {body.leader or 'somebody else'}"
        case _:
            return ""


def _lock_answer(answer: LockAnswer) -> str:
    if answer.granted is not None:
        return f"{answer.device} granted"
    return f"{answer.device} {f'refused ({answer.refused})' if answer.refused else 'queued'}"


def _step_state(state: StepState) -> str:
    detail = f" ({state.detail})" if state.detail else ""
    return f"step {state.step} {state.outcome or 'under way'}{detail}"


def _fenced(body: Fenced) -> str:
    return "; ".join(
        f"{one.device} {'still its own' if one.held is not None else 'not its own'}"
        + "".join(f", {_step_state(state)}" for state in one.steps)
        for one in body.devices
    )
