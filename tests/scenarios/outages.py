"""More than one node at a time, and what the paper does not look at: partitions, power, wounds, copied
cards."""

import msgspec
from repertoire import scenario
from staging import CALM, HALL, KITCHEN, NODES, Stage, Wanted, commands, commits, lights, proposes, sends

from comesh.core.records import DeviceRecord, Record, RunRecord
from comesh.core.records import Stage as RunStage
from comesh.core.strategies import Strategy
from comesh.core.work_messages import LockRequest

DOMAINS = {"left": ("n1", "n4"), "middle": ("n2", "n5"), "right": ("n3", "n6")}


@scenario("partition-two-leaders")
def partition_two_leaders() -> Stage:
    """Beyond the paper: the hall's leader n4 is cut off from its members, but not from the lamp nor from the
    routine's leader. It goes on believing that it leads while n5 is elected. What it proposes is never
    committed, so that it commands nothing; when the partition heals, the run goes on through n5."""
    stage = Stage(lights("evening", "kettle", "lamp", fades=True))
    stage.fire("evening")
    stage.run(seconds=0.5)
    stage.cut("n3", "n5", "n6")
    stage.run(seconds=8.0)
    stage.heal()
    stage.run(seconds=16.0)
    return stage


@scenario("partition-heals")
def partition_heals() -> Stage:
    """Beyond the paper: the hall is cut off for 40 s while `evening` switches its kettle on, and the lamp is
    next. That command is repeated, after longer and longer pauses; when n1 hears that the hall's nodes live,
    it is said again at once, and not when the next pause would be over."""
    stage = Stage(lights("evening", "kettle", "lamp", fades=True))
    stage.fire("evening")
    stage.run(seconds=0.5)
    stage.cut("n4", "n5", "n6")
    stage.run(seconds=40.0)
    stage.heal()
    stage.run(seconds=8.0)
    return stage


@scenario("paused-leader")
def paused_leader() -> Stage:
    """Beyond the paper: the hall's leader n4 stands still while a command comes for it, and while n5 is
    elected. When it wakes, all that waited comes to it at once: it proposes the command, its members
    refuse it, and it commands nothing."""
    stage = Stage(lights("evening", "kettle", "lamp", fades=True))
    stage.fire("evening")
    stage.run(seconds=2.0)
    stage.pause("n4", for_ms=4000.0)
    stage.run(seconds=16.0)
    return stage


@scenario("deposed-leader-returns")
def deposed_leader_returns() -> Stage:
    """Beyond the paper: the hall's leader n4 has the grant in its journal, and its process ends before
    anybody else has it. When it is back with its whole journal, another leader has gone on without that
    entry: it takes that leader's state in the place of its own."""
    stage = Stage(lights("evening", "lamp"))
    stage.dies_instead(proposes(_granted, of=HALL), "n4", power=False)
    stage.fire("evening")
    stage.run(seconds=8.0)
    stage.start("n4")
    stage.run(seconds=5.0)
    return stage


def _granted(record: Record) -> bool:
    return isinstance(record, DeviceRecord) and record.hold is not None


@scenario("power-domain-lost")
def power_domain_lost() -> Stage:
    """Beyond the paper: a power domain goes dark with both leaders in it. No group has more than f members in
    one domain, so that each has a quorum left. When power is back, the two are members again."""
    domains = {name: tuple(node for node in NODES if node in nodes) for name, nodes in DOMAINS.items()}
    stage = Stage(lights("evening", "kettle", "lamp"), power_domains=domains)
    stage.after(commits(_executing, of=KITCHEN), lambda: stage.crash("n1", "n4"))
    stage.fire("evening")
    stage.run(seconds=9.0)
    stage.start("n1", "n4")
    stage.run(seconds=6.0)
    return stage


def _executing(record: Record) -> bool:
    return isinstance(record, RunRecord) and record.stage is RunStage.EXECUTING


def _outage(wanted: Wanted, *, strict: bool = False, seed: int = 1) -> Stage:
    settings = msgspec.structs.replace(CALM, strict=strict, cold_wait_ms=6700.0)
    stage = Stage(lights("evening", "lamp"), settings=settings, seed=seed, journal=True)
    stage.after(wanted, lambda: stage.crash(*NODES))
    stage.fire("evening")
    stage.run(seconds=1.0)
    stage.telling.journal = False
    stage.start(*NODES)
    stage.run(seconds=25.0)
    return stage


@scenario("outage-batched")
def outage_batched() -> Stage:
    """Beyond the paper: all nodes lose power right after the run was committed as EXECUTING, with
    `durability: batched`. What was written in the last 50 ms may be lost, here that entry everywhere: a lossy
    election opens a new era, and devices and runs are reconciled before anybody commands anything."""
    return _outage(commits(_executing, of=KITCHEN), seed=4)


@scenario("outage-batched-command")
def outage_batched_command() -> Stage:
    """Beyond the paper: all nodes lose power right after a command left, and the entry that announced it is
    on no disk. The lamp acts all the same. In the new era the run is asked what it has, its device is fenced,
    and the command, which only sets, is sent once more."""
    return _outage(commands("lamp"), seed=25)


@scenario("outage-strict")
def outage_strict() -> Stage:
    """Beyond the paper: the same outage with `durability: strict`. Everything acknowledged was flushed,
    so that nothing is lost, there is no new era, and the run goes on where it was."""
    return _outage(commits(_executing, of=KITCHEN), strict=True)


@scenario("wound")
def wound() -> Stage:
    """Beyond the paper (`priority`): the older `evening` has the kettle and wants the lamp; the younger
    `movie` has the lamp, because the request of `evening` was lost, and wants the kettle. The hall wounds
    `movie`, which gives its whole attempt back; no deadlock."""
    stage = Stage(
        *(lights(name, "kettle", "lamp", strategy=Strategy.PRIORITY) for name in ("evening", "movie"))
    )
    stage.lose(sends(LockRequest, by="n1"))
    stage.fire("evening")
    stage.run(seconds=0.2)
    stage.fire("movie", "two")
    stage.run(seconds=8.0)
    return stage


@scenario("copied-card")
def copied_card() -> Stage:
    """Beyond the paper: the card of n5 is copied and started elsewhere, so that two processes have one
    name. To its new machine the journal is a stranger's: it has no seat. The older process stops itself, the
    run is not disturbed, and the seat that was lost is filled by a new config."""
    settings = msgspec.structs.replace(CALM, replace_after_ms=2000.0)
    stage = Stage(lights("evening", "kettle", "lamp", fades=True), settings=settings)
    stage.fire("evening")
    stage.run(seconds=0.5)
    stage.say("** the card of n5 is copied, and n5.copy1 starts where the fan is")
    stage.world.copy_card(NODES[4], stage.topology.station("fan"))
    stage.run(seconds=20.0)
    return stage
