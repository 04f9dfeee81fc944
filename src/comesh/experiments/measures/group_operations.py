"""How long the operations of groups take, read off what nodes wrote and told (P16).

- quorum: the leader writes an entry -> it counts it as committed;
- election: a candidate writes its claim -> it serves;
- state transfer: the leader of a config proposes its end -> the leader of the next one serves.

The group of the deployment, which the paper has not, is left out.
"""

from collections.abc import Iterable, Sequence

from comesh.core.effects import Committed, LeaderChanged
from comesh.core.ids import NodeId
from comesh.core.journal import Appended, Promised
from comesh.core.plan import DEPLOYMENT
from comesh.experiments.measures.histories import Moment, Sample
from comesh.experiments.measures.leading import Change, Proposals, handoffs


def quorums(moments: Iterable[Moment]) -> list[Sample]:
    found: list[Sample] = []
    proposals = Proposals()
    for at_ms, who, what in moments:
        if isinstance(what, Appended):
            proposals.written(at_ms, NodeId(who), what)
        elif isinstance(what, Committed) and what.group != DEPLOYMENT:
            commit = proposals.committed(at_ms, NodeId(who), what)
            if commit is not None:
                found.append(Sample(at_ms, at_ms - commit.proposed_ms))
    return found


def elections(moments: Sequence[Moment]) -> list[Sample]:
    found: list[Sample] = []
    claimed: dict[tuple[str, int, object], float] = {}
    for at_ms, who, what in moments:
        if isinstance(what, Promised):
            claimed.setdefault((who, what.mark, what.ballot), at_ms)
        elif isinstance(what, LeaderChanged) and what.state == "serving" and what.ballot.round > 0:
            began_ms = claimed.get((who, what.config.mark, what.ballot))
            if began_ms is not None and what.group != DEPLOYMENT:
                found.append(Sample(at_ms, at_ms - began_ms))
    return found


def transfers(moments: Iterable[Moment]) -> list[Sample]:
    changes = (
        Change(at_ms, NodeId(who), what)
        for at_ms, who, what in moments
        if isinstance(what, LeaderChanged) and what.group != DEPLOYMENT
    )
    return [Sample(serving.at_ms, serving.at_ms - ending.at_ms) for ending, serving in handoffs(changes)]
