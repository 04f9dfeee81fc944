"""`comesh status --wait`: waits until all is well, and the next node may be restarted."""

import time
from typing import Final

from comesh.cli.mesh_view import answering, attention, groups_of
from comesh.queries.answers import MeshStatus
from comesh.queries.requests import ShowMesh
from comesh.runtime.client import AnyClient

LOOK_S: Final = 0.3
STEADY: Final = 2
"""Number of checks in a row that must find all well: right after a node ended, others may not know."""


def unseated(mesh: MeshStatus) -> list[str]:
    """Returns members without a seat, or without the state: as long as there are, their group can lose one
    less."""
    seats = {(one.node, seen.group, seen.number): seen.role for one in answering(mesh) for seen in one.groups}
    return [
        f"{node}: has no state of {group} yet"
        for group, seen in groups_of(mesh).items()
        if seen.serves
        for node in seen.members
        if seats.get((node, group, seen.number), "") in ("", "recovering")
    ]


def wait_until_well(client: AnyClient, within_s: float) -> MeshStatus:
    """Waits until nothing needs attention and every member has its seat, or the time is over."""
    ends = time.monotonic() + within_s
    well = 0
    while True:
        mesh = client.ask(ShowMesh())
        well = 0 if attention(mesh) or unseated(mesh) else well + 1
        if well >= STEADY or time.monotonic() > ends:
            return mesh
        time.sleep(LOOK_S)
