"""Every node loses power at once, and with it what was not flushed.

Disks are made slow, or flushes that nobody waits for rare, so that much is lost: a node that relied on what
it had not flushed would show.
"""

import time
from typing import Final

from comesh.core.ids import GroupId
from comesh.lab.mesh import MeshError, now_us
from comesh.lab.scenarios.documents import five_rooms
from comesh.lab.scenarios.play import Play, Stage
from comesh.runtime.journal.opening import unflushed_bytes

FLUSH_MS: Final = 2000.0
SLOW_MS: Final = 40.0
"""A flush, on a slow disk."""
TAIL_S: Final = 10.0
"""Within this some node has something that is not flushed yet."""
FLUSH_TAKES_MS: Final = 500.0
"""At most, on a disk that others use too."""
COLD_S: Final = 90.0
"""Time for groups that lost something: they wait for 30 s in case anybody comes back who has it."""


def all_go_dark_strict(stage: Stage) -> None:
    """Under `strict` nothing is lost or repeated, though every node loses what it had not flushed."""
    with stage.mesh(five_rooms(), flush_ms=FLUSH_MS, flush_takes_ms=SLOW_MS) as play:
        stages = ("EXECUTING", "ACQUIRING_LOCKS", "RELEASING_LOCKS")
        lost_bytes = sum(_go_dark(play, when) for when in (stages if stage.long else stages[:1]))
        play.must(f"{lost_bytes} bytes were lost, on which nobody had relied", lost_bytes > 0)
        play.figure("lost_bytes", lost_bytes)
        play.must("no group says that it lost anything", not play.watch.look().lossy)


def _go_dark(play: Play, when: str) -> int:
    """While a run is in that stage, if that is seen; and on again. How many bytes were lost."""
    runs = [play.fire("across"), play.fire("back"), play.fire("across")]
    play.until(f"one is {when}, or all ended", lambda: _is_any(play, runs, when))
    fired = set(play.watch.look().fired)
    _wait_for_tail(play)
    lost_bytes = play.mesh.power_loss(*play.mesh.nodes)
    play.say(f"all nodes lost power, and {lost_bytes} bytes of their journals")
    play.until("the mesh is whole", play.is_whole)
    play.ends(*runs)
    play.until(
        f"all {len(fired)} runs that had fired have ended",
        lambda: all(run in play.watch.look().ended or play.is_forgotten(run) for run in fired),
    )
    play.goes_on("tick", "tock")
    return lost_bytes


def all_go_dark_batched(stage: Stage) -> None:
    """Under `batched` at most what was committed in the last flush interval is lost, and it is reported;
    promises 1, 2 and 6 hold."""
    with stage.mesh(five_rooms(durability="batched"), flush_ms=FLUSH_MS, may_lose=True) as play:
        run = play.fire("across")
        play.goes_on("tick", "tock", more=3)
        play.fire("across")
        commits = {group: list(times) for group, times in play.watch.look().commits.items()}
        dark_us = now_us()
        lost_bytes = play.mesh.power_loss(*play.mesh.nodes)
        play.say(f"all nodes lost power, and {lost_bytes} bytes of their journals")
        play.must("something was not flushed", lost_bytes > 0)
        play.figure("lost_bytes", lost_bytes)
        play.until("the mesh is whole", play.is_whole, bound_s=COLD_S)
        play.must(f"{run} had ended", run in play.watch.look().ended)
        play.goes_on("tick", "tock")
        play.say(f"went on with what was left, and said so: {', '.join(sorted(play.watch.look().lossy))}")
    _lost_little(play, stage, commits, dark_us)


def _lost_little(play: Play, stage: Stage, commits: dict[GroupId, list[int]], dark_us: int) -> None:
    """Every entry that is gone was committed shortly before."""
    verdict = stage.verdicts[-1]
    for loss in verdict.losses:
        times = commits.get(loss.group, [])
        oldest_us = times[-min(loss.entries, len(times))] if times else dark_us
        age_ms = (dark_us - oldest_us) / 1000
        play.say(f"{loss.group} lost {loss.entries} entries of the last {age_ms:.0f} ms, as it reported")
        if age_ms > FLUSH_MS + FLUSH_TAKES_MS:
            raise MeshError(
                f"{loss.group} lost an entry that was {age_ms:.0f} ms old: it was flushed by then"
            )
        stage.figures[f"lost_ms {loss.group}"] = age_ms


def _wait_for_tail(play: Play) -> None:
    """Waits until some node has written what is not flushed yet: that is so for a moment only."""
    directories = [play.mesh.data_of(node) for node in play.mesh.nodes]
    until = time.monotonic() + TAIL_S
    while time.monotonic() < until:
        if any(map(unflushed_bytes, directories)):
            return


def _is_any(play: Play, runs: list[str], when: str) -> bool:
    play.watch.look()
    return any(play.stage_of(run) == when for run in runs) or all(run in play.watch.ended for run in runs)
