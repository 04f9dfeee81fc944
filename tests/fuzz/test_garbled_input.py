"""Some thousands of bad inputs for each of what reads bytes from outside, and those that were kept."""

from collections import Counter
from pathlib import Path

import pytest
from campaign import CORPUS, case_of
from garbled_peers import mesh
from targets import GARBLED

from comesh.core.effects import Refused
from comesh.core.ids import NodeId
from comesh.runtime.history import MAX_REASONS, OTHER_REASONS, History

SEED = 1
KEPT = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("target", GARBLED)
def test_bad_input_is_refused_and_nothing_else(target: str) -> None:
    """Whatever else were raised, is."""
    became: Counter[str] = Counter()
    for number in range(GARBLED[target].quick):
        data = case_of(target, SEED, number)
        try:
            became[GARBLED[target].take(data)] += 1
        except Exception as wrong:
            wrong.add_note(f"again: python tests/fuzz/campaign.py {target} --case {SEED}:{number}")
            raise
    assert len(became) > 1, "input that all ends the same way tries nothing"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_kept(path: Path) -> None:
    GARBLED[path.parent.name].take(path.read_bytes())


def test_a_case_is_a_function_of_its_number() -> None:
    for target in GARBLED.keys() - {"session"}:
        assert case_of(target, SEED, 7) == case_of(target, SEED, 7)
        assert any(case_of(target, SEED, 7) != case_of(target, SEED, number) for number in range(8, 12))


def test_reasons_that_peers_make_up_are_bounded() -> None:
    view = History(mesh().nodes["n1"], lambda: 0.0)
    for version in range(3 * MAX_REASONS):
        view.on_observation(Refused(NodeId("n5"), f"deployment version {version}: it cannot be read"))
    assert len(view.refused) == MAX_REASONS + 1
    assert view.refused[OTHER_REASONS] == 2 * MAX_REASONS
