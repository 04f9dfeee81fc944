"""Deployments for the tests of selection: grids as in the paper, and drawn ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st

from comesh.core import arithmetic as core_arithmetic
from comesh.core.arithmetic import Arithmetic
from comesh.core.draws import Draws
from comesh.core.ids import DeviceId, NodeId, RoutineId
from comesh.core.plan import (
    Locality,
    Lsh,
    Place,
    Plan,
    PlannedDevice,
    PlannedNode,
    PlannedRoutine,
    SelectionSettings,
)
from comesh.core.selection import make_plan
from comesh.sim.vectorised import Vectorised

ARITHMETICS = (Arithmetic(), Vectorised())


@contextmanager
def computed_by(arithmetic: Arithmetic) -> Iterator[None]:
    """Plans of every size are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_arithmetic, "PLAIN", arithmetic)
        patch.setattr(core_arithmetic, "_large", [])
        yield


def node(name: str, x_mm: int = 0, y_mm: int = 0, z_mm: int = 0, domain: str | None = None) -> PlannedNode:
    return PlannedNode(id=NodeId(name), place=Place(x_mm, y_mm, z_mm), power_domain=domain)


def device(name: str, x_mm: int = 0, y_mm: int = 0, z_mm: int = 0) -> PlannedDevice:
    return PlannedDevice(id=DeviceId(name), place=Place(x_mm, y_mm, z_mm))


def routine(name: str, *touches: str) -> PlannedRoutine:
    return PlannedRoutine(id=RoutineId(name), touches=tuple(DeviceId(one) for one in sorted(touches)))


def grid(count: int, seed: int) -> tuple[list[PlannedNode], list[PlannedDevice]]:
    """A three-dimensional grid of 1 m; a node at 40 % of the places."""
    side = next(side for side in range(1, count + 1) if side**3 >= count)
    at = [(1000 * (i % side), 1000 * (i // side % side), 1000 * (i // side**2)) for i in range(count)]
    smart = sorted(Draws(seed).sample(range(count), count * 2 // 5))
    return [node(f"n{i}", *at[i]) for i in smart], [device(f"d{i}", *at[i]) for i in range(count)]


def grid_plan(count: int, seed: int, **settings: object) -> Plan:
    return make_plan(1, SelectionSettings(seed=seed, **settings), *grid(count, seed), [])


_places = st.tuples(st.integers(-60, 60), st.integers(-60, 60), st.integers(0, 3))
_policies = st.sampled_from(Locality)


@st.composite
def settings(draw: st.DrawFn) -> SelectionSettings:
    return SelectionSettings(
        f=draw(st.integers(0, 3)),
        seed=draw(st.integers(0, 2**64 - 1)),
        cluster_size=draw(st.integers(1, 8)),
        clusters=draw(_policies),
        members=draw(_policies),
        leaders=draw(_policies),
        power_domain_rule=draw(st.booleans()),
        lsh=Lsh(
            m=draw(st.integers(1, 3)),
            l=draw(st.integers(1, 3)),
            r_milli=draw(st.sampled_from((500, 2000, 4000, 9000))),
            jitter_milli=draw(st.sampled_from((0, 0, 700))),
        ),
    )


@st.composite
def plans(draw: st.DrawFn, nodes_at_least: int = 1) -> Plan:
    nodes = [
        node(f"n{i}", 500 * x, 500 * y, 3000 * z, domain)
        for i, ((x, y, z), domain) in enumerate(
            draw(
                st.lists(
                    st.tuples(_places, st.sampled_from((None, "east", "west", "ups"))),
                    min_size=nodes_at_least,
                    max_size=14,
                )
            )
        )
    ]
    devices = [
        device(f"d{i}", 500 * x, 500 * y, 3000 * z)
        for i, (x, y, z) in enumerate(draw(st.lists(_places, min_size=1, max_size=20)))
    ]
    return make_plan(1, draw(settings()), nodes, devices, [])


@st.composite
def situations(
    draw: st.DrawFn, nodes_at_least: int = 1
) -> tuple[Plan, int, list[NodeId], dict[str, tuple[str, ...]]]:
    """A plan, an epoch, who is alive, and a table that need not make sense."""
    plan = draw(plans(nodes_at_least))
    ids = [one.id for one in plan.nodes]
    dead = draw(st.sets(st.sampled_from(ids), max_size=len(ids)))
    names = [*ids, NodeId("stranger")]
    groups = [cluster.group for cluster in plan.clusters] + ["gone"]
    table = draw(
        st.dictionaries(
            st.sampled_from(groups),
            st.lists(st.sampled_from(names), max_size=5, unique=True).map(tuple),
            max_size=6,
        )
    )
    return plan, draw(st.integers(0, 10**9)), [one for one in ids if one not in dead], table
