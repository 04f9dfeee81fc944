"""The cases of the proof of safety (paper, appendix A, theorem 1): the leader of a device's group dies.

`evening` (the paper's R1) and `movie` (R2) both want the lamp, whose group is the hall, led by n4 (the
paper's L_k). The next leader is n5 (L_n).
"""

from collections.abc import Callable

from repertoire import scenario
from staging import HALL, Stage, commits, lights, proposes, sends

from comesh.core.records import DeviceRecord, Record
from comesh.core.strategies import Strategy
from comesh.core.work_messages import LockState, Release


def _lamp(is_it: Callable[[DeviceRecord], bool]) -> Callable[[Record], bool]:
    return lambda record: isinstance(record, DeviceRecord) and record.device == "lamp" and is_it(record)


def _held_by(routine: str) -> Callable[[Record], bool]:
    return _lamp(lambda lamp: lamp.hold is not None and lamp.hold.run.routine == routine)


_QUEUED = _lamp(lambda lamp: bool(lamp.queue))
_FREED = _lamp(lambda lamp: lamp.hold is None and "evening" in lamp.released)


def _two_routines() -> Stage:
    """`evening` keeps the lamp for a while, so that `movie` has to wait for it."""
    return Stage(lights("evening", "lamp", fades=True), lights("movie", "lamp"))


def _play(stage: Stage, *, movie_after: float | None = None) -> Stage:
    stage.fire("evening")
    if movie_after is not None:
        stage.run(seconds=movie_after)
        stage.fire("movie", "two")
    stage.run(seconds=12.0)
    return stage


def _one_routine(strategy: Strategy) -> Stage:
    return Stage(lights("evening", "lamp", strategy=strategy))


# -- SLA ---------------------------------------------------------------------------------------------------


@scenario("safety-sla-1")
def safety_sla_1() -> Stage:
    """Appendix A, theorem 1, SLA, case 1: L_k fails before it has replicated R1's request to a quorum. Nobody
    knows of it; R1's leader sends it again after a timeout."""
    stage = _one_routine(Strategy.SEQUENTIAL)
    stage.dies_instead(proposes(_held_by("evening"), of=HALL), "n4")
    return _play(stage)


@scenario("safety-sla-2")
def safety_sla_2() -> Stage:
    """Appendix A, theorem 1, SLA, case 2: L_k fails after it has replicated R2's request, which waits in the
    queue behind R1. L_n has the queue: R2 is granted when R1 releases."""
    stage = _two_routines()
    stage.dies_after(commits(_QUEUED, of=HALL), "n4")
    return _play(stage, movie_after=1.0)


@scenario("safety-sla-3a")
def safety_sla_3a() -> Stage:
    """Appendix A, theorem 1, SLA, case 3a: R2 is at the top of the queue, a quorum has its grant, and L_k
    fails before it says so. L_n holds the grant, and R2's leader hears of it."""
    stage = _two_routines()
    stage.dies_after(commits(_held_by("movie"), of=HALL), "n4")
    return _play(stage, movie_after=1.0)


@scenario("safety-sla-3b")
def safety_sla_3b() -> Stage:
    """Appendix A, theorem 1, SLA, case 3b: R2 is at the top of the queue, and L_k fails before a quorum
    has its grant (or R1's release, which is the same entry). L_n has R2 in the queue still; the release
    comes again."""
    stage = _two_routines()
    stage.dies_instead(proposes(_held_by("movie"), of=HALL), "n4")
    return _play(stage, movie_after=1.0)


@scenario("safety-sla-4")
def safety_sla_4() -> Stage:
    """Appendix A, theorem 1, SLA, case 4: L_k fails after it told R1's leader that the lamp is R1's. L_n
    holds the grant as well; R1 goes on, and its command waits for L_n."""
    stage = _one_routine(Strategy.SEQUENTIAL)
    stage.dies_after(sends(LockState, by="n4"), "n4")
    return _play(stage)


# -- OLA ---------------------------------------------------------------------------------------------------


@scenario("safety-ola-1")
def safety_ola_1() -> Stage:
    """Appendix A, theorem 1, OLA, case 1: L_k fails before a quorum has R1's pre-lock. L_n has no record
    of it; R1's leader sends the request again."""
    stage = _one_routine(Strategy.OPTIMISTIC)
    stage.dies_instead(proposes(_held_by("evening"), of=HALL), "n4")
    return _play(stage)


@scenario("safety-ola-2")
def safety_ola_2() -> Stage:
    """Appendix A, theorem 1, OLA, case 2: L_k fails after a quorum has R1's pre-lock, before it hears further
    from R1. L_n knows of the lock: asked again it says so, and R2 is refused."""
    stage = Stage(*(lights(name, "lamp", strategy=Strategy.OPTIMISTIC) for name in ("evening", "movie")))
    stage.dies_after(commits(_held_by("evening"), of=HALL), "n4")
    return _play(stage, movie_after=1.8)


@scenario("safety-ola-3")
def safety_ola_3() -> Stage:
    """Appendix A, theorem 1, OLA, case 3: L_k fails after it heard R1's release, before a quorum has it. The
    release is sent again to L_n."""
    stage = _one_routine(Strategy.OPTIMISTIC)
    stage.dies_instead(proposes(_FREED, of=HALL), "n4")
    return _play(stage)


@scenario("safety-ola-4")
def safety_ola_4() -> Stage:
    """Appendix A, theorem 1, OLA, case 4: L_k fails after it told R1's leader that the lamp is R1's. L_n
    holds the lock as well, and R1 executes through it."""
    stage = _one_routine(Strategy.OPTIMISTIC)
    stage.dies_after(sends(LockState, by="n4"), "n4")
    return _play(stage)


@scenario("late-release")
def late_release() -> Stage:
    """Beyond the paper: a copy of R1's first release comes late, when the next run of R1 has the lamp. It
    names an older run, so that it frees nothing."""
    stage = Stage(lights("evening", "lamp", fades=True))
    stage.hold(sends(Release, by="n1"), for_ms=3000.0)
    stage.fire("evening")
    stage.run(seconds=5.0)
    stage.fire("evening", "two")
    stage.run(seconds=8.0)
    return stage
