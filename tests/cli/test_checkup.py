"""What the doctor finds in what nodes say, each finding by itself."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from rich.console import Console

from comesh.cli.checkup import examine
from comesh.cli.doctor import show
from comesh.core.ids import GroupId, NodeId
from comesh.queries.answers import Checked, GroupSeen, Hears, MeshHealth, NodeHealth

NOW_MS = 1_800_000_000_000.0
DAY_MS = 86_400_000.0
NODES = tuple(map(NodeId, ("n1", "n2", "n3")))
FINE = Hears(living=True, connected=True, address="10.0.0.9:7440", round_trip_ms=1.0, why="")


def said(node: NodeId, **more: Any) -> NodeHealth:
    fine = NodeHealth(
        node=node,
        software="0.1.0",
        version=1,
        document="abc",
        machine_wall_ms=NOW_MS,
        clock_source="own",
        listens=("0.0.0.0:7440",),
        certificate_ends_ms=NOW_MS + 700 * DAY_MS,
        authority_ends_ms=NOW_MS + 3000 * DAY_MS,
        data="/var/lib/comesh",
        data_free_bytes=10_000_000_000,
        data_disk_bytes=30_000_000_000,
        journal_bytes=10_000,
        memory_kb=60_000,
        memory_free_kb=500_000,
        hears={other: FINE for other in NODES if other != node},
    )
    return msgspec.structs.replace(fine, **more)


def mesh(offset_ms: float = 0.0, **more: Any) -> MeshHealth:
    """All is fine, but for n3."""
    nodes: dict[NodeId, Checked | None] = {
        node: Checked(said=said(node), offset_ms=0.0, within_ms=1.0) for node in NODES[:2]
    }
    nodes[NODES[2]] = Checked(said=said(NODES[2], **more), offset_ms=offset_ms, within_ms=1.0)
    return MeshHealth(asked=NODES[0], as_of_ms=NOW_MS, nodes=nodes)


def group(serves: bool = True) -> GroupSeen:
    return GroupSeen(
        group=GroupId("c1"),
        number=1,
        epoch=0,
        members=NODES,
        leader=NODES[0] if serves else None,
        serves=serves,
    )


def test_nothing_is_found_where_all_is_fine() -> None:
    assert examine(mesh(), [group()]) == []


def hearing(**more: Any) -> dict[str, Any]:
    return {"hears": {NODES[0]: msgspec.structs.replace(FINE, **more), NODES[1]: FINE}}


@pytest.mark.parametrize(
    ("health", "about", "says"),
    [
        (lambda: mesh(5000.0), "clock", "n3: its clock is 5.0 s ahead of the median of all"),
        (lambda: mesh(-90_000.0), "clock", "n3: its clock is 90.0 s behind the median of all"),
        (lambda: mesh(clock_source="mesh"), "clock", "n3: it does not go by its own clock (mesh)"),
        (
            lambda: mesh(certificate_ends_ms=NOW_MS + 5 * DAY_MS),
            "certificate",
            "n3: its certificate ends in 5 days",
        ),
        (
            lambda: mesh(authority_ends_ms=NOW_MS - 2 * DAY_MS),
            "certificate",
            "n3: the authority's certificate ended 2 days ago",
        ),
        (lambda: mesh(data_free_bytes=20_000_000), "disk", "n3: 20 MB of 30 GB left at /var/lib/comesh"),
        (lambda: mesh(journal_bytes=100_000_000), "disk", "n3: its journal has 100 MB"),
        (lambda: mesh(memory_kb=300 * 1024), "memory", "n3: the process has 300 MB"),
        (lambda: mesh(memory_free_kb=20 * 1024), "memory", "n3: its machine has 20 MB left"),
        (lambda: mesh(software="0.2.0"), "version", "nodes run different software: 0.1.0: n1, n2; 0.2.0: n3"),
        (lambda: mesh(version=2), "version", "nodes go by different documents: version 1 (abc): n1, n2"),
        (lambda: mesh(**hearing(living=False, why="no answer")), "reach", "n3 does not hear n1: no answer"),
        (
            lambda: mesh(**hearing(connected=False, why="no answer from 10.0.0.9:7440")),
            "reach",
            "n3 reaches n1 only through others: no answer from 10.0.0.9:7440",
        ),
        (lambda: mesh(**hearing(round_trip_ms=900.0)), "reach", "n3 to n1 and back takes 900 ms"),
    ],
)
def test_each_thing_is_found_and_has_advice(health: Callable[[], MeshHealth], about: str, says: str) -> None:
    (found,) = examine(health(), [group()])
    assert (found.about, says in found.what) == (about, True), found
    assert found.advice


def test_silent_nodes_groups_and_troubles_are_found() -> None:
    fine = mesh()
    lost = msgspec.structs.replace(fine, nodes={**fine.nodes, NODES[2]: None}, silent={NODES[2]: "dead"})
    assert [one.what for one in examine(lost, [group()])] == [
        "n3: dead, as n1 knows",
        "c1: 2 of 3 members are left; gone: n3",
    ]
    assert [one.what for one in examine(lost, [group(serves=False)])][1] == "c1: nobody serves it; gone: n3"
    assert [one.what for one in examine(fine, [group()], ["n2: the disk is full"])] == [
        "n2: the disk is full"
    ]


def test_the_table_of_pairs_gives_way_where_it_has_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns, says in ((120, "hears, in ms"), (25, "round trips between")):
        monkeypatch.setattr("comesh.cli.doctor.out", Console(width=columns, soft_wrap=True))
        show(mesh())
        assert says in capsys.readouterr().out
