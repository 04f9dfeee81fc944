"""Tests that words of the vocabulary are numbers on the wire and words for people."""

import msgspec
import pytest

from comesh.core.records import Outcome, Status
from comesh.core.strategies import LOCK_STRATEGIES, Strategy


@pytest.mark.parametrize("word", [*Strategy, *Status, *Outcome])
def test_a_word_is_one_byte_between_nodes_and_a_word_for_people(word: Strategy | Status | Outcome) -> None:
    data = msgspec.msgpack.encode(word)
    assert len(data) == 1
    assert msgspec.msgpack.decode(data, type=type(word)) is word
    assert str(word) == f"{word}" == word.name.lower()
    assert f"{word:>12}" == word.name.lower().rjust(12)


def test_each_word_of_a_strategy_is_a_registered_name() -> None:
    assert {str(one) for one in Strategy} <= set(LOCK_STRATEGIES.names())
