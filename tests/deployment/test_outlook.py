"""What a plan means: forecasts, load, outages, and the picture."""

from xml.etree import ElementTree

import pytest

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId
from comesh.core.plan import Place, Plan, PlannedDevice, PlannedNode, PlannedRoutine, SelectionSettings
from comesh.core.selection import Selector, make_plan
from comesh.deployment.outlook import (
    dark_words,
    domain_losses,
    domain_warnings,
    forecast,
    group_order,
    node_loads,
    short_groups,
    short_warnings,
    spans,
)
from comesh.deployment.picture import draw


def office(domains: list[str | None], f: int = 1, floors: int = 1) -> Plan:
    nodes = [
        PlannedNode(
            id=NodeId(f"node_{i}"), place=Place(4000 * i, 0, 3000 * (i % floors)), power_domain=domain
        )
        for i, domain in enumerate(domains)
    ]
    devices = [
        PlannedDevice(id=DeviceId(f"lamp_{i}"), place=Place(900 * i, 500, 3000 * (i % floors)))
        for i in range(24)
    ]
    routines = [
        PlannedRoutine(id=RoutineId("night"), touches=(DeviceId("lamp_1"), DeviceId("lamp_9"))),
        PlannedRoutine(id=RoutineId("noon"), touches=(DeviceId("lamp_2"),)),
    ]
    return make_plan(1, SelectionSettings(f=f, cluster_size=8), nodes, devices, routines)


def test_a_forecast_begins_with_genesis_and_feeds_each_epoch_into_the_next() -> None:
    plan = office([None] * 7)
    ahead = forecast(plan, 4)
    assert ahead[0] == plan.genesis
    selector = Selector(plan)
    for epoch in (1, 2, 3):
        assert ahead[epoch] == selector.select_all(epoch, selector.node_ids, ahead[epoch - 1])
    assert forecast(plan, 1) == [plan.genesis]


def test_a_node_that_fails_is_in_no_later_epoch() -> None:
    plan = office([None] * 7)
    ahead = forecast(plan, 6, without=[NodeId("node_3")])
    assert all("node_3" not in members for epoch in ahead[1:] for members in epoch.values())


def test_the_loads_add_up() -> None:
    plan = office([None] * 7)
    ahead = forecast(plan, 10)
    loads = node_loads(plan, ahead)
    assert [load.node for load in loads] == [node.id for node in plan.nodes]
    assert sum(load.led_devices for load in loads) == pytest.approx(24)
    assert sum(load.held_devices for load in loads) == pytest.approx(3 * 24)
    assert all(load.led_devices <= load.held_devices for load in loads)
    assert max(load.groups_at_most for load in loads) <= 3
    assert all(0 <= load.member_share <= 1 for load in loads)


def test_enough_domains_survive_any_outage() -> None:
    plan = office(["east", "west", "ups", "east", "west", "ups", None])
    losses = domain_losses(plan, forecast(plan, 20))
    assert [loss.domain for loss in losses] == ["east", "ups", "west"]
    assert all(not loss.stops for loss in losses)
    assert any(loss.leaderless for loss in losses)
    assert domain_warnings(plan) == []


def test_one_domain_for_all_stops_everything() -> None:
    (warning,) = domain_warnings(office(["mains"] * 5))
    assert "'mains' (5 of 5 nodes) would stop clusters c1, c2, c3 and changes of the deployment" in warning
    assert "in some epochs" not in warning


def test_two_domains_are_not_enough_and_the_warning_names_groups_and_epochs() -> None:
    plan = office(["mains", "mains", "mains", "mains", "solar", "solar"])
    warnings = domain_warnings(plan)
    assert len(warnings) == 2
    losses = {loss.domain: loss for loss in domain_losses(plan, forecast(plan, 10))}
    for domain, warning in zip(("mains", "solar"), warnings, strict=True):
        assert f"power domain {domain!r}" in warning
        for group in losses[domain].stops:
            assert group == "deployment" or group in warning
    every = [set(losses[domain].stops) for domain in losses]
    assert set.union(*every) == {"c1", "c2", "c3", "deployment"}


def test_hosted_devices_go_dark_with_their_domain_and_hit_routines() -> None:
    plan = office(["east", "west", "ups", "east", "west", "ups", None])
    hosts = {DeviceId("lamp_9"): NodeId("node_0"), DeviceId("lamp_4"): NodeId("node_3")}
    hosts[DeviceId("lamp_5")] = NodeId("node_1")
    east, ups, west = domain_losses(plan, forecast(plan, 3), hosts)
    assert (east.dark, east.routines_hit) == (("lamp_4", "lamp_9"), ("night",))
    assert (ups.dark, ups.routines_hit) == ((), ())
    assert (west.dark, west.routines_hit) == (("lamp_5",), ())
    assert dark_words(east) == "2 devices go dark: lamp_4, lamp_9; routines hit: night"
    assert dark_words(west) == "1 device goes dark: lamp_5"
    assert dark_words(ups) == ""


def test_groups_without_a_majority_are_reported() -> None:
    plan = office([None] * 5)
    gone = [node.id for node in plan.nodes[1:]]
    ahead = forecast(plan, 3, gone)
    short = short_groups(ahead, gone)
    assert {(one.group, one.epoch) for one in short} == {(group, n) for group in ahead[0] for n in (1, 2)}
    assert all(one.left <= 1 and one.members == 3 for one in short)
    assert any("c1 cannot act in epoch" in warning for warning in short_warnings(short))
    assert short_groups(forecast(plan, 3, gone[:1]), gone[:1]) == ()


def test_spans_are_short() -> None:
    assert spans([0, 2, 3, 4, 7]) == "0, 2-4, 7"


def test_groups_are_listed_as_people_count() -> None:
    groups = [GroupId(name) for name in ("deployment", "c10", "c2")]
    assert sorted(groups, key=group_order) == ["c2", "c10", "deployment"]


@pytest.mark.parametrize("floors", (1, 3))
def test_the_picture_is_well_formed_and_names_everything(floors: int) -> None:
    plan = office(["east", "west", "<ups> & co", None, "east", "west", None, None, None], floors=floors)
    picture = draw(plan, title="A & B")
    root = ElementTree.fromstring(picture)
    assert picture == draw(plan, plan.genesis, "A & B")
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"A & B", "<ups> & co: 1 node", "c1: 8 devices " + f"({plan.genesis[GroupId('c1')][0]})"} <= texts
    assert {node.id for node in plan.nodes} <= texts
    assert {"from a leader to its members", "area of a cluster's devices"} <= texts
    titles = " ".join(title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title"))
    assert all(device.id in titles for device in plan.devices)
    assert sum("floor at" in (text or "") for text in texts) == (floors if floors > 1 else 0)


def test_the_picture_leaves_out_what_xml_forbids() -> None:
    plan = office(["\x1b[31m", "tab\tbed", "\ufffe", None, None])
    root = ElementTree.fromstring(draw(plan, title="a\x07b\x00\ud800c \U0001f600"))
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"abc \U0001f600", "[31m: 1 node", "tab\tbed: 1 node", ": 1 node"} <= texts


def test_a_plan_without_devices_or_with_one_place_can_be_drawn() -> None:
    lone = PlannedNode(id=NodeId("hub"), place=Place(5, 5))
    for devices in ([], [PlannedDevice(id=DeviceId(f"d{i}"), place=Place(5, 5)) for i in range(12)]):
        ElementTree.fromstring(draw(make_plan(1, SelectionSettings(f=0), [lone], devices, [])))
