"""One firing from its trigger to its end under each strategy, nothing going wrong (paper, section 3)."""

import msgspec
from repertoire import scenario
from staging import CALM, Stage, lights

from comesh.core.strategies import Batch, Strategy


@scenario("clean-sequential-cluster")
def clean_sequential_cluster() -> Stage:
    """Paper, 3.4 (SLA), with `batch: cluster`: a door opens; the locks of the hall are one request and one
    commit, and after them those of the kitchen, where the routine itself lives, cost no message."""
    stage = Stage(lights("evening", "lamp", "fan", "kettle"), door_opens_ms=500.0)
    stage.run(seconds=4.0)
    return stage


@scenario("clean-sequential-none")
def clean_sequential_none() -> Stage:
    """Paper, 3.4 (SLA), as written there (`batch: none`): one lock after the other, in one global order."""
    settings = msgspec.structs.replace(CALM, batch=Batch.NONE)
    stage = Stage(lights("evening", "lamp", "fan"), settings=settings)
    stage.fire("evening")
    stage.run(seconds=4.0)
    return stage


@scenario("clean-optimistic")
def clean_optimistic() -> Stage:
    """Paper, 3.4 (OLA): all locks at once. Two runs want the lamp: the second is refused, gives everything
    back, rests, and tries again with a new attempt."""
    evening = lights("evening", "lamp", "kettle", strategy=Strategy.OPTIMISTIC)
    movie = lights("movie", "lamp", "fan", strategy=Strategy.OPTIMISTIC)
    stage = Stage(evening, movie)
    stage.fire("evening")
    stage.fire("movie", "two")
    stage.run(seconds=4.0)
    return stage


@scenario("clean-priority")
def clean_priority() -> Stage:
    """Beyond the paper (`priority`): all locks at once, and who cannot have one waits by age of firing."""
    evening = lights("evening", "lamp", "kettle", strategy=Strategy.PRIORITY)
    movie = lights("movie", "lamp", "fan", strategy=Strategy.PRIORITY)
    stage = Stage(evening, movie)
    stage.fire("evening")
    stage.fire("movie", "two")
    stage.run(seconds=4.0)
    return stage
