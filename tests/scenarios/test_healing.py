"""After a partition heals, what waited for the other side goes on as soon as that side is reached."""

import pytest
from staging import CALM, KITCHEN, Stage, commands, commits, lights

from comesh.core.records import Record, RunRecord

CUT_S = 40.0
"""By then requests are repeated every max_request_resend_ms only."""
SOON_S = 4.0
"""For members to find each other again, and a little more: less than half of such a pause."""
SEEDS = range(1, 9)


def _cut_off_hall(stage: Stage) -> None:
    stage.cut("n4", "n5", "n6")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_goes_on_soon_after_a_partition_heals(seed: int) -> None:
    assert CALM.max_request_resend_ms > 2 * 1000.0 * SOON_S
    stage = Stage(lights("evening", "kettle", "lamp", fades=True), seed=seed)
    commanded: list[float] = []
    stage.after(commands("lamp"), lambda: commanded.append(stage.world.now_ms))
    stage.fire("evening")
    stage.run(seconds=0.5)
    _cut_off_hall(stage)
    stage.run(seconds=CUT_S)
    assert not commanded
    stage.heal()
    stage.run(seconds=SOON_S)
    assert commanded


@pytest.mark.parametrize("seed", SEEDS)
def test_a_person_is_answered_soon_after_a_partition_heals(seed: int) -> None:
    stage = Stage(lights("evening", "kettle"), seed=seed)
    fired: list[float] = []

    def fires(record: Record) -> bool:
        return isinstance(record, RunRecord)

    stage.after(commits(fires, of=KITCHEN), lambda: fired.append(stage.world.now_ms))
    _cut_off_hall(stage)
    stage.fire("evening", node="n6")
    stage.run(seconds=CUT_S)
    assert not fired
    stage.heal()
    stage.run(seconds=SOON_S)
    assert fired
