"""What differs between two documents, and what follows for a mesh that runs: in words."""

import pytest

from comesh.core.program import Program
from comesh.deployment.changes import Orders, changes, consequences
from comesh.deployment.edits import EditError, without_node
from comesh.deployment.load import load_bytes
from comesh.deployment.model import Deployment
from comesh.deployment.program import load_program

BEFORE = """
name: Hall
settings: {f: 1, epoch: 60s, selection: {cluster_size: 2}}  # small groups
nodes:
  n1: {place: [0m, 0m]}
  n2: {place: [1m, 0m]}
  n3: {place: [2m, 0m]}  # in the attic
  n4: {place: [3m, 0m]}
devices:
  lamp: {place: [0m, 1m], readings: {on: bool}, commands: {set: {argument: bool, sets: on, takes: 1s}}}
  horn: {place: [0m, 2m], commands: {blow: {idempotent: false}}}
routines:
  light: {every: 10s, do: [{device: lamp, command: set, argument: true}]}
  noise: {every: 1m, do: [{device: horn, command: blow}, {device: lamp, command: set, argument: false}]}
"""


def deployment(text: str) -> Deployment:
    outcome = load_bytes(text.encode())
    assert outcome.deployment is not None, outcome.errors
    return outcome.deployment


def told(*replaced: tuple[str, str], orders: Orders | None = None) -> tuple[list[str], tuple[str, ...]]:
    """The differences, and what they mean."""
    after = BEFORE
    for old, new in replaced:
        assert old in after
        after = after.replace(old, new)
    found = changes(deployment(BEFORE), deployment(after))
    first: Program = load_program(BEFORE)
    return [str(one) for one in found], consequences(first, load_program(after, 2, first), found, orders)


def test_the_same_meaning_is_no_change() -> None:
    assert told(("# small groups", "# other words"), ("epoch: 60s", "epoch: 1m")) == ([], ())


def test_settings_are_reported_as_people_write_them() -> None:
    found, means = told(("epoch: 60s", "epoch: 90s, membership_period: 2s"), ("name: Hall", "name: Big hall"))
    assert found == [
        "document name: Hall -> Big hall",
        "setting epoch: 1m -> 1m30s",
        "setting membership_period: 1s -> 2s",
    ]
    assert means == ("setting membership_period counts for each node from its next start",)


def test_other_sizes_of_groups() -> None:
    found, means = told(("f: 1", "f: 0"))
    assert found == ["setting f: 1 -> 0"]
    assert means == ("groups have 1 member instead of 3",)


def test_nodes() -> None:
    found, means = told(("  n4: {place: [3m, 0m]}", "  n5: {place: [9m, 0m], power_domain: a}"))
    assert found == ["node n4 removed", "node n5 added\n  place: [9m, 0m]\n  power_domain: a"]
    assert means == (
        "node n4 hands its seats over, and ends by itself",
        "node n5 gets seats once it runs: start it from `comesh versions --export FILE`",
    )
    assert told(("n4:", "n6:"))[0] == ["node n4 renamed to n6"]


def test_devices_keep_their_group_where_they_are_moved() -> None:
    found, means = told(("place: [0m, 2m]", "place: [90m, 2m]"))
    assert found == ["device horn changed\n  place: [0m, 2m] -> [90m, 2m]"]
    assert means == ()


def test_devices_that_come_and_go() -> None:
    found, means = told(
        ("routines:", "  bell: {place: [1m, 1m], commands: {ring: {}}}\nroutines:"),
    )
    assert found == [
        "device bell added\n  place: [1m, 1m]\n  commands: ring.idempotent true, ring.takes 0s",
    ]
    assert [one.split(";")[0] for one in means] == ["group c2 is new: bell"]
    found, means = told(
        (
            "  horn: {place: [0m, 2m], commands: {blow: {idempotent: false}}}",
            "  hooter: {place: [0m, 2m], commands: {blow: {idempotent: false}}}",
        ),
        ("device: horn", "device: hooter"),
    )
    assert found == [
        "device horn renamed to hooter",
        "routine noise changed\n  do: horn blow -> hooter blow",
    ]
    assert means == (
        "device horn: runs that hold or wait for it are served first, and nobody new",
        "device hooter is looked after by group c1",
        "routine noise: a live run finishes with the commands that it began with",
        "device horn: maintenance of it does not go over to hooter",
    )


def test_what_a_device_can_do() -> None:
    found, _ = told(("takes: 1s", "takes: 2s"), ("readings: {on: bool}", "readings: {on: bool, watt: float}"))
    assert found == [
        "device lamp changed\n  readings.watt: nothing -> a number\n  commands.set.takes: 1s -> 2s"
    ]


def test_routines() -> None:
    found, means = told(("  light: {every: 10s, do: [{device: lamp, command: set, argument: true}]}\n", ""))
    assert found == ["routine light removed"]
    assert means == ("routine light: a live run finishes; firings that wait behind it are dropped, and told",)
    found, _ = told(("every: 1m", "when: lamp.on, for: 5s"))
    assert found == [
        "routine noise changed\n  when: nothing -> lamp.on\n  for: nothing -> 5s\n  every: 1m -> nothing"
    ]


RENAMED = (("  light:", "  shine:"),)
GONE = (("  light: {every: 10s, do: [{device: lamp, command: set, argument: true}]}\n", ""),)


@pytest.mark.parametrize(
    ("replaced", "orders", "says"),
    [
        (RENAMED, None, "routine light: a pause of it does not go over to shine"),
        (RENAMED, Orders(paused={"light": None}), "routine light: a pause of it does not go over to shine"),
        (
            RENAMED,
            Orders(paused={"light": "ann"}),
            "routine light is paused, by ann: shine will not be; order it again for shine",
        ),
        (
            GONE,
            Orders(paused={"light": "ann"}),
            "routine light is paused, by ann: if light comes back with a later version it will not be",
        ),
    ],
)
def test_orders_that_do_not_go_over(
    replaced: tuple[tuple[str, str], ...], orders: Orders | None, says: str
) -> None:
    assert told(*replaced, orders=orders)[1][-1] == says


@pytest.mark.parametrize("replaced", [RENAMED, GONE, ()])
def test_lapsed_and_kept_orders_are_not_reported(
    replaced: tuple[tuple[str, str], ...],
) -> None:
    orders = Orders(paused={"noise": "ann"}, maintained={"lamp": "ann"})
    assert not [one for one in told(*replaced, orders=orders)[1] if "ann" in one or "go over" in one]


def test_a_node_is_taken_out_and_comments_stay() -> None:
    after = without_node(BEFORE, "n4")
    assert [str(one) for one in changes(deployment(BEFORE), deployment(after))] == ["node n4 removed"]
    assert "# small groups" in after
    assert "# in the attic" in after


def test_a_node_that_cannot_be_taken_out_is_reported_with_what_to_do() -> None:
    with pytest.raises(EditError, match="no node 'n9'"):
        without_node(BEFORE, "n9")
    hosted = BEFORE.replace("horn: {place: [0m, 2m]", "horn: {on: n4")
    with pytest.raises(EditError, match="horn: part of n4, and gone with it"):
        without_node(hosted, "n4")
