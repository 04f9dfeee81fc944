"""Tests of the marks of configs in journals and of their addresses in messages."""

from comesh.core.group.config import Config, Seat
from comesh.core.ids import GroupId, NodeId


def config(group: str, number: int, *nodes: str) -> Config:
    return Config(GroupId(group), number, 0, tuple(Seat(NodeId(node), 1) for node in nodes), 1000, 1)


MANY = [
    config(group, number, *nodes)
    for group in ("hall", "cellar")
    for number in range(50)
    for nodes in (("n1", "n2", "n3"), ("n1", "n2", "n4"))
]


def test_marks_are_long_enough_to_identify_a_journal() -> None:
    marks = {one.mark for one in MANY}
    assert len(marks) == len(MANY)
    assert max(marks) >> 48, "a node keeps some configs of every epoch, for years"


def test_an_address_is_short_and_contains_group_and_number() -> None:
    assert len({one.address for one in MANY}) == len(MANY)
    assert all(one.address.check < 1 << 32 for one in MANY)
    assert all((one.address.group, one.address.number) == (one.group, one.number) for one in MANY)
