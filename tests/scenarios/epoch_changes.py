"""From config to config: the end of an epoch, with somebody dying at each step (paper, appendix A, lemma
1).

The hall hands off from `hall` = n4 n5 n6 (the paper's old leader L_o is n4) to what `select` gives for
the next epoch, `hall/2` = n3 n2 n6 (the new leader L_n is n3), while `evening` has the lamp and waits for
its kettle.
"""

from collections.abc import Callable
from functools import partial

import msgspec
from repertoire import scenario
from staging import CALM, HALL, Stage, commits, lights, proposes, sends

from comesh.core.group_messages import Installed, Invite, Retire, Start
from comesh.core.records import HandoffRecord, Record

SETTINGS = msgspec.structs.replace(CALM, epoch_ms=30_000, ready_wait_ms=2000.0)
SEED = 195
"""With it, `select` gives two newcomers and an old member, and a newcomer leads."""
OLD, NEW = "n4", "n3"


def _is_handoff(record: Record) -> bool:
    return isinstance(record, HandoffRecord)


def _near_the_end(*waiting: str) -> Stage:
    """The lamp is held over the change, and these routines wait for it."""
    routines = [lights("evening", "kettle", "lamp", fades=True), *(lights(name, "lamp") for name in waiting)]
    stage = Stage(*routines, settings=SETTINGS, seed=SEED)
    stage.until_epoch_ends(HALL, before_ms=200.0)
    for number, routine in enumerate(("evening", *waiting)):
        stage.fire(routine, f"request {number}", "n1")
        stage.run(seconds=0.05)
    return stage


def _play(stage: Stage) -> Stage:
    stage.run(seconds=16.0)
    return stage


# -- the cases of lemma 1 ----------------------------------------------------------------------------------


@scenario("inheritance-1")
def inheritance_1() -> Stage:
    """Appendix A, lemma 1, case 1: no epoch ends, L_o fails. `evening` has the lamp; `movie` and `night`
    wait for it in this order. The next leader has exactly that queue."""
    routines = [
        lights("evening", "kettle", "lamp", fades=True),
        lights("movie", "lamp"),
        lights("night", "lamp"),
    ]
    stage = Stage(*routines)
    for number, routine in enumerate(("evening", "movie", "night")):
        stage.fire(routine, f"request {number}", "n1")
        stage.run(seconds=0.1)
    stage.crash(OLD)
    return _play(stage)


@scenario("inheritance-2a")
def inheritance_2a() -> Stage:
    """Appendix A, lemma 1, case 2a: an epoch ends, and L_o fails after the transfer began: all are Ready, the
    handoff entry is with the old members, and nobody was started. An old member that has the entry leads, and
    starts the new config with the queue of `movie`."""
    stage = _near_the_end("movie")
    stage.dies_after(commits(_is_handoff, of=HALL), OLD)
    return _play(stage)


@scenario("inheritance-2b")
def inheritance_2b() -> Stage:
    """Appendix A, lemma 1, case 2b: an epoch ends, and L_n fails before it has the state. Another new
    member is elected, with the state that L_o gave to all of them: `evening` has the lamp."""
    stage = _near_the_end()
    stage.after(sends(Start, to=NEW), lambda: stage.crash(NEW))
    return _play(stage)


@scenario("inheritance-2c")
def inheritance_2c() -> Stage:
    """Appendix A, lemma 1, case 2c: an epoch ends, and a member of the old config that does not lead
    fails: the transfer is not affected."""
    stage = _near_the_end("movie")
    stage.after(sends(Invite, to=NEW), lambda: stage.crash("n5"))
    return _play(stage)


@scenario("inheritance-2d")
def inheritance_2d() -> Stage:
    """Appendix A, lemma 1, case 2d: an epoch ends, and an invited member that would not lead fails before
    it is Ready. It is left out after a while, and another one is invited in its place."""
    stage = _near_the_end("movie")
    stage.after(sends(Invite, to="n2"), lambda: stage.crash("n2"))
    return _play(stage)


# -- either leader, at each step ---------------------------------------------------------------------------


def _dies(dies: str, step: str) -> Stage:
    stage = _near_the_end()
    cues: dict[tuple[str, str], Callable[[], None]] = {
        (OLD, "invite"): lambda: stage.dies_after(sends(Invite, by=OLD, to="n6"), OLD),
        (OLD, "proposed"): lambda: stage.dies_after(proposes(_is_handoff, of=HALL), OLD),
        (OLD, "committed"): lambda: stage.dies_after(sends(Start, by=OLD), OLD),
        (OLD, "installed"): lambda: stage.dies_instead(sends(Retire, by=OLD), OLD),
        (NEW, "invite"): lambda: stage.after(sends(Invite, to=NEW), lambda: stage.crash(NEW)),
        (NEW, "proposed"): lambda: stage.after(proposes(_is_handoff, of=HALL), lambda: stage.crash(NEW)),
        (NEW, "committed"): lambda: stage.after(sends(Start, to=NEW), lambda: stage.crash(NEW)),
        (NEW, "installed"): lambda: stage.dies_after(sends(Installed, by=NEW), NEW),
    }
    cues[dies, step]()
    return _play(stage)


_CASES = {
    (
        OLD,
        "invite",
    ): """right after its invitations: nothing is decided, and the old config serves on, under its
        next leader.""",
    (
        OLD,
        "proposed",
    ): """when one old member has the handoff entry: whoever leads next has it, and must carry it
        out.""",
    (
        OLD,
        "committed",
    ): """when only the new leader was sent its Start: that one opens, and gives the state
        to the others.""",
    (
        OLD,
        "installed",
    ): """when enough new members are installed, before it told any old one to retire: the others
        learn it when they ask.""",
    (NEW, "invite"): "before it is Ready: after a while it is left out, and another config is computed.",
    (
        NEW,
        "proposed",
    ): """when it is Ready and its seat is in the entry: the config is what it is, and the others
        of it elect.""",
    (NEW, "committed"): "before it has its first state: the others are started, and elect.",
    (NEW, "installed"): "right after it installed: the others hear nothing more of it, and elect.",
}

for (_who, _step), _then in _CASES.items():
    _name = "old" if _who == OLD else "new"
    _shows = f"An epoch ends, and the {_name} leader dies {_then}"
    scenario(f"epoch-{_name}-dies-{_step}", _shows)(partial(_dies, _who, _step))
