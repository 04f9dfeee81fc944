"""What commands that list things show, and of what."""

from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from comesh.cli.runs import chosen
from comesh.cli.tables import table
from comesh.core.ids import NodeId
from comesh.core.traces import ByHand, Dropped, Executing, Failed, Finished, Fired, Ignored, Trace
from comesh.queries.answers import TraceLine


def line(run: str, trace: Trace) -> TraceLine:
    return TraceLine(0.0, NodeId("n1"), run, trace)


def test_runs_that_ended_or_never_began_are_not_live() -> None:
    by_hand = ByHand("ann")
    ends = (Finished(), Failed("no answer"), Dropped("paused"), Ignored(by_hand))
    ended = [line(f"a#{number}", trace) for number, trace in enumerate(ends)]
    live = [line("a#1", Fired(by_hand)), line("b#2", Executing(1, 1))]
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


def plain_lines(made: Table, *, terminal: bool = False) -> list[str]:
    written = StringIO()
    Console(file=written, force_terminal=terminal, width=80, color_system=None).print(made)
    return written.getvalue().splitlines()


def test_a_table_has_no_blanks_at_its_edges() -> None:
    lines = plain_lines(table(("node", "leads"), [("a", "c1"), ("longer", "")]))
    assert lines == ["node    leads", "a       c1", "longer"]
    assert plain_lines(table(("node",), [])) == ["node"]


def test_a_column_with_nothing_in_it_is_not_shown() -> None:
    rows = [("lamp", "", Text("")), ("door", "", Text(""))]
    assert plain_lines(table(("device", "held by", ""), rows)) == ["device", "lamp", "door"]


def test_colour_is_for_terminals_only() -> None:
    written = StringIO()
    Console(file=written, force_terminal=False, width=80).print(table(("node",), [(Text("a", style="red"),)]))
    assert "\x1b" not in written.getvalue()
