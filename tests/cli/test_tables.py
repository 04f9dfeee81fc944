"""What commands that list things show, and of what."""

from comesh.cli.runs import chosen
from comesh.core.ids import NodeId
from comesh.runtime.seen import TraceLine


def line(run: str, what: str) -> TraceLine:
    return TraceLine(0.0, NodeId("n1"), run, what, "")


def test_runs_that_ended_or_never_began_are_not_live() -> None:
    ended = [line(f"a#{what}", what) for what in ("finished", "failed", "dropped", "ignored")]
    live = [line("a#1", "fired"), line("b#2", "executing")]
    assert chosen([*ended, *live], None, live=True, failed=False) == live
    assert chosen([*ended, *live], "b", live=True, failed=False) == live[1:]
    assert chosen([*ended, *live], None, live=False, failed=True) == [ended[1]]
