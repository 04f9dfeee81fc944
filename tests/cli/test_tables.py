"""What commands that list things show, and of what."""

from io import StringIO

from rich.console import Console

from comesh.cli.runs import chosen
from comesh.cli.tables import table
from comesh.core.ids import NodeId
from comesh.queries.answers import TraceLine


def line(run: str, what: str) -> TraceLine:
    return TraceLine(0.0, NodeId("n1"), run, what, "")


def test_runs_that_ended_or_never_began_are_not_live() -> None:
    ended = [line(f"a#{what}", what) for what in ("finished", "failed", "dropped", "ignored")]
    live = [line("a#1", "fired"), line("b#2", "executing")]
    assert chosen([*ended, *live], None, live=True, failed=False) == live
    assert chosen([*ended, *live], "b", live=True, failed=False) == live[1:]
    assert chosen([*ended, *live], None, live=False, failed=True) == [ended[1]]


def shown(*, terminal: bool) -> list[str]:
    written = StringIO()
    to = Console(file=written, force_terminal=terminal, width=80, soft_wrap=True, color_system=None)
    to.print(table(("run", "last"), [("evening#4:0.0:12", "long " * 40)]))
    return written.getvalue().splitlines()


def test_tables_in_files_and_pipes_are_as_wide_as_they_need() -> None:
    assert len(shown(terminal=False)) == 2
    assert len(shown(terminal=True)) > 2
