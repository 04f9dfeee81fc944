"""Draws what docs/protocol.md shows of the code's own tables: `python docs/diagrams.py` writes them there.

Each block stands between two markers, `<!-- drawn: name -->` and `<!-- end -->`. tests/docs fails when a
block is not what the code says, so that the page cannot fall behind.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import msgspec

from comesh.core import group_messages, journal, records, work_messages
from comesh.core.group import phases
from comesh.core.group.phases import Role
from comesh.core.group.replica import BALLOT_RULES
from comesh.core.program import ProtocolSettings
from comesh.core.routines import stages

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "protocol.md"
CORE = ROOT / "src" / "comesh" / "core"
_BLOCK = re.compile(r"(<!-- drawn: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


# -- diagrams ----------------------------------------------------------------------------------------------


def _name(state: Enum | None) -> str:
    if state is None:
        return "[*]"
    return str(state.name if isinstance(state.value, int) else state.value).replace(" ", "_")


def _diagram(does: Iterable[Enum], ways: Iterable[tuple[tuple[Enum | None, Enum | None], str]]) -> str:
    """A state diagram in Mermaid's words."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {_name(state)}" for state in does]
    # A colon ends the label's own part, and a semicolon the line.
    lines += [
        f"    {_name(before)} --> {_name(after)}: {why.replace(';', ',').replace(':', ',')}"
        for (before, after), why in ways
    ]
    return "\n".join([*lines, "```", ""])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*lines, ""])


def role_diagram() -> str:
    """Ways to `retired` leave from every role; they are one line of text, not nine arrows."""
    ways = [
        ((before, after), str(trigger))
        for (before, trigger), after in phases.TRANSITIONS.items()
        if after is not Role.RETIRED or before is Role.HANDING_OFF
    ]
    return _diagram(phases.DOES, ways)


def role_table() -> str:
    rows = []
    for role, does in phases.DOES.items():
        ways = phases.TRANSITIONS.items()
        leaves = [f"{trigger} → {after}" for (before, trigger), after in ways if before is role]
        rows.append((f"**{role}**", does, "; ".join(leaves) or "never"))
    return _table(("role", "does", "leaves when"), rows)


def ballot_table() -> str:
    """Which ballot each message must have."""
    rows: dict[str, list[str]] = {}
    for message, rule in BALLOT_RULES.items():
        rows.setdefault(str(rule), []).append(f"`{message.__name__}`")
    return _table(("message", "its ballot"), ((", ".join(names), rule) for rule, names in rows.items()))


def stage_diagram() -> str:
    return _diagram(stages.DOES, list(stages.TRANSITIONS.items()))


def stage_table() -> str:
    return _table(("stage", "does"), ((stage.name, does) for stage, does in stages.DOES.items()))


# -- structs -----------------------------------------------------------------------------------------------


def _first_sentence(of: type) -> str:
    """A struct without a docstring of its own inherits none here."""
    doc = " ".join((of.__doc__ or "").split())
    return "" if not doc or "Struct" in doc else doc


def _struct_rows(of: Iterable[type]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in of:
        info: Any = msgspec.inspect.type_info(one)
        fields = ", ".join(f"`{field.name}`" for field in info.fields)
        rows.append((str(info.tag), f"**{one.__name__}**", fields or "none", _first_sentence(one)))
    return rows


def _structs(*unions: Any) -> str:
    found = [one for union in unions for one in get_args(union)]
    return _table(("tag", "message", "fields", "meaning"), _struct_rows(found))


def group_messages_table() -> str:
    return _structs(group_messages.Body)


def work_messages_table() -> str:
    return _structs(work_messages.Work)


def records_table() -> str:
    rows = [
        (row[1], row[2], row[3])
        for row in _struct_rows(
            [*get_args(records.Record), records.Hold, records.Waiter, records.Call, records.ReleaseMark]
        )
    ]
    return _table(("record", "fields", "meaning"), rows)


# -- settings ----------------------------------------------------------------------------------------------


def settings_table() -> str:
    """Every knob with its default; what it means stands beside it in the code."""
    info: Any = msgspec.inspect.type_info(ProtocolSettings)
    rows = []
    for field in info.fields:
        default = field.default
        shown = default.value if isinstance(default, Enum) else default
        rows.append((f"`{field.name}`", f"{shown:g}" if isinstance(shown, float) else str(shown)))
    return _table(("setting", "default"), rows)


# -- the journal -------------------------------------------------------------------------------------------


class _Writes(ast.NodeVisitor):
    """Every `Persist(record, flush)` of a module, by the function that it is in."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str]] = []
        self._function = ""
        self._made: dict[str, str] = {}
        self._constant: dict[str, str] = {}
        """Methods that only return a constant: rules that tests break by overriding them."""

    def visit_Module(self, node: ast.Module) -> None:
        for one in ast.walk(node):
            if isinstance(one, ast.FunctionDef) and isinstance(one.body[-1], ast.Return):
                value = one.body[-1].value
                if len(one.body) == 1 and isinstance(value, ast.Constant):
                    self._constant[f"self.{one.name}()"] = str(value.value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before, self._function = (self._function, self._made), node.name
        self._made = {argument.arg: _annotated(argument) for argument in node.args.args}
        self.generic_visit(node)
        self._function, self._made = before

    def visit_Assign(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        pairs = (
            zip(target.elts, value.elts, strict=True)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            else [(target, value)]
        )
        for name, made in pairs:
            if isinstance(name, ast.Name):
                known = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else ""
                self._made[name.id] = known or ast.unparse(made)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "Persist":
            given = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "flush")]
            self.found.append((self._record(node.args[0]), self._when(given), self._function))
        self.generic_visit(node)

    def _record(self, node: ast.expr) -> str:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id
        return self._made.get(ast.unparse(node), ast.unparse(node))

    def _when(self, given: list[ast.expr]) -> str:
        if not given:
            return "at once"
        text = ast.unparse(given[0])
        text = self._made.get(text, self._constant.get(text, text))
        return {"True": "at once", "False": "with the next flush"}.get(text, f"at once if `{text}`")


def _annotated(argument: ast.arg) -> str:
    return argument.arg if argument.annotation is None else ast.unparse(argument.annotation)


def journal_table() -> str:
    """What is written where, and whether it is flushed before the next effect, read off the source."""
    rows = []
    for path in sorted(CORE.rglob("*.py")):
        writes = _Writes()
        writes.visit(ast.parse(path.read_text(encoding="utf-8")))
        where = path.relative_to(CORE).as_posix()
        rows += [(record, when, f"`{where}`: `{function}`") for record, when, function in writes.found]
    order = [one.__name__ for one in get_args(journal.JournalRecord)]
    rows.sort(key=lambda row: order.index(row[0]))
    return _table(("journal record", "flushed", "where"), rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "role-diagram": role_diagram,
    "role-table": role_table,
    "ballots": ballot_table,
    "stage-diagram": stage_diagram,
    "stage-table": stage_table,
    "journal": journal_table,
    "group-messages": group_messages_table,
    "work-messages": work_messages_table,
    "records": records_table,
    "settings": settings_table,
}


def drawn(page: str) -> str:
    """The page with every block as the code says now. KeyError: there is no block of that name."""
    return _BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]]() + found[4], page)


def blocks_of(page: str) -> list[str]:
    return [found[2] for found in _BLOCK.finditer(page)]


def main() -> int:
    before = PAGE.read_text(encoding="utf-8")
    after = drawn(before)
    PAGE.write_text(after, encoding="utf-8")
    print("drawn anew" if after != before else "nothing changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
