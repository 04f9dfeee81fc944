"""Rules of a member that no swarm misses at once when they are gone, because others stand behind them
(docs/decisions/0014): each is tested here by itself, with a message that only it keeps out."""

import pytest
from staging import KITCHEN, NODES, Stage, lights, sends

from comesh.core.effects import Send
from comesh.core.events import MessageReceived
from comesh.core.group.config import OF_THE_SEAT
from comesh.core.group.replica import Replica
from comesh.core.group_messages import Ask, Body, Claim, InConfig, Promise, Refuse, State
from comesh.core.ids import NodeId
from comesh.core.messages import Message
from comesh.core.stamps import Ballot

N1, N2, N3 = NODES[:3]


@pytest.fixture
def stage() -> Stage:
    return Stage(lights("evening", "kettle"))


def replica_of(stage: Stage, node: str) -> Replica:
    process = stage.world.machines[node].process
    assert process is not None
    replicas = process.node.node.groups.replicas.values()
    return next(one for one in replicas if one.config.group == KITCHEN)


def answers(
    stage: Stage, body: Body, *, store: int | None = None, sender: str = N3, to: str = N2
) -> list[Body]:
    """What a member says at once to this message of another."""
    theirs = replica_of(stage, sender)
    seat = OF_THE_SEAT if store is None else store
    machine = stage.world.machines[to]
    assert machine.process is not None
    node = stage.world.machines[sender].process
    assert node is not None
    event = MessageReceived(
        sender=NODES[NODES.index(sender)],
        incarnation=node.node.node.membership.incarnation,
        deployment=1,
        message=InConfig(*theirs.address, seat, body),
    )
    now_ms = machine.clock.monotonic_ms(stage.world.now_ms)
    effects = machine.process.node.step(event, now_ms, now_ms)
    return [
        one.message.body
        for one in effects
        if isinstance(one, Send) and one.to == sender and isinstance(one.message, InConfig)
    ]


def test_a_member_does_not_hear_another_store_in_its_neighbours_seat(stage: Stage) -> None:
    ask = Ask(Ballot(1, 2))
    assert answers(stage, ask) != []
    assert answers(stage, ask, store=12345) == []


def test_a_member_promises_nobody_else_while_it_holds_a_lease(stage: Stage) -> None:
    (refused,) = answers(stage, Claim(Ballot(1, 2)))
    assert isinstance(refused, Refuse)


def test_a_member_promises_once_the_lease_is_over(stage: Stage) -> None:
    stage.crash(N1)
    stage.run(1.2)
    (promised,) = answers(stage, Claim(Ballot(1, 2)))
    assert isinstance(promised, Promise)


def test_only_the_answer_to_its_own_question_makes_a_member_whole(stage: Stage) -> None:
    """An answer to the question of an earlier life may lack what was acknowledged in between."""
    stage.crash(N3)
    stage.run(0.1)
    stage.hold(sends(State, to=N3, of=KITCHEN), for_ms=5000.0)
    stage.lose(sends(State, to=N3, of=KITCHEN), times=1000)
    stage.start(N3)
    stage.run(1.0)
    stage.crash(N3)
    stage.run(0.1)
    stage.start(N3)
    stage.run(6.0)
    assert any("sent long ago" in line for line in stage.telling.lines)
    assert not replica_of(stage, N3).whole


def test_a_claim_that_could_not_be_written_is_never_made(stage: Stage) -> None:
    """Who cannot write gives its election up, and another one leads."""
    claims: list[tuple[str, Ballot]] = []

    def hear(_: float, sender: NodeId, __: NodeId, message: Message, ___: int) -> None:
        if isinstance(message, InConfig) and isinstance(message.body, Claim) and message.group == KITCHEN:
            claims.append((sender, message.body.ballot))

    stage.world.senders.append(hear)
    stage.world.set_full(stage.world.machines[N2], True)
    stage.crash(N1)
    stage.run(20.0)
    assert {sender for sender, _ in claims} == {N3}
    assert replica_of(stage, N3).leadership is None, "n2 cannot acknowledge, so there is no quorum yet"
    stage.world.set_full(stage.world.machines[N2], False)
    stage.run(20.0)
    assert replica_of(stage, N3).leadership or replica_of(stage, N2).leadership
