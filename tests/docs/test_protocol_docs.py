"""docs/protocol.md shows what the code's own tables say, and names what the code has."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from comesh.core import group_messages, journal, work_messages
from comesh.core.group.phases import DOES, TRANSITIONS, Role, Trigger
from comesh.core.records import Stage
from comesh.core.routines import stages

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def _diagrams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("protocol_diagrams", ROOT / "docs" / "diagrams.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


DIAGRAMS = _diagrams()


def test_the_page_shows_what_the_code_says() -> None:
    assert DIAGRAMS.drawn(PAGE) == PAGE, "run: python docs/diagrams.py"


def test_every_block_is_on_the_page_once() -> None:
    assert sorted(DIAGRAMS.blocks_of(PAGE)) == sorted(DIAGRAMS.BLOCKS)


def test_a_changed_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRANSITIONS, (Role.FOLLOWER, Trigger.WON), Role.SERVING)
    assert DIAGRAMS.drawn(PAGE) != PAGE


def test_every_write_to_the_journal_is_found() -> None:
    """The table is read off the source: a write in a form that it does not know must not go missing."""
    written = sum(
        len(re.findall(r"\bPersist\(", path.read_text(encoding="utf-8")))
        for path in (ROOT / "src" / "comesh" / "core").rglob("*.py")
        if path.name != "effects.py"
    )
    rows = DIAGRAMS.journal_table().splitlines()[2:]
    assert len(rows) == written
    known = {one.__name__ for one in get_args(journal.JournalRecord)}
    assert {row.split(" | ")[0].strip("| ") for row in rows} <= known


@pytest.mark.parametrize("union", [group_messages.Body, work_messages.Work])
def test_the_text_explains_every_message(union: object) -> None:
    """Besides the table that is drawn: each is named where its part of the protocol is told."""
    prose = re.sub(r"<!-- drawn: .*?<!-- end -->", "", PAGE, flags=re.DOTALL)
    unnamed = [one.__name__ for one in get_args(union) if not re.search(rf"`{one.__name__}\b", prose)]
    assert unnamed == []


def test_every_stage_and_role_has_its_words() -> None:
    assert set(stages.DOES) == set(Stage)
    assert set(DOES) == set(Role)


def test_every_role_can_be_reached_and_left() -> None:
    reached = set(TRANSITIONS.values()) | {Role.INVITED, Role.RECOVERING}
    left = {before for before, _ in TRANSITIONS} | {Role.RETIRED}
    assert reached == left == set(Role)
    assert {trigger for _, trigger in TRANSITIONS} == set(Trigger)


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
        if "://" not in target:
            assert (ROOT / "docs" / target).exists(), target
