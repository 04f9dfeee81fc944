"""A node that missed a deployment version hears of it from any message, not only from gossip: a notice does
not outlive an outage of all nodes, and the version must."""

from staging import NODES, Stage, lights

from comesh.core.effects import Send
from comesh.core.events import MessageReceived
from comesh.core.messages import Gossip, Rumours
from comesh.core.work_messages import DocumentAsked

N1, N2 = NODES[:2]


def _asks(stage: Stage, *, version: int) -> list[tuple[str, DocumentAsked]]:
    """What n1 asks when n2, which works by that version, says something."""
    machine, other = stage.world.machines[N1], stage.world.machines[N2]
    assert machine.process is not None
    assert other.process is not None
    event = MessageReceived(
        sender=N2,
        incarnation=other.process.node.node.membership.incarnation,
        deployment=version,
        message=Gossip(Rumours()),
    )
    now_ms = machine.clock.monotonic_ms(stage.world.now_ms)
    effects = machine.process.node.step(event, now_ms, now_ms)
    sent = [one for one in effects if isinstance(one, Send)]
    return [(one.to, one.message) for one in sent if isinstance(one.message, DocumentAsked)]


def test_who_hears_of_a_newer_version_asks_for_the_next_one() -> None:
    stage = Stage(lights("evening", "kettle"))
    assert _asks(stage, version=1) == []
    assert _asks(stage, version=3) == [(N2, DocumentAsked(2))]


def test_it_does_not_ask_again_at_once() -> None:
    stage = Stage(lights("evening", "kettle"))
    assert _asks(stage, version=2) != []
    assert _asks(stage, version=2) == []
