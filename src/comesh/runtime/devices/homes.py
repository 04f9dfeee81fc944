"""Decides on which node a device's driver runs.

- `on: node`: on that node; it is part of it, or wired to it, and gone with it;
- a virtual device in a `comesh virtual` process, or one of a real driver: on every node that asks;
- any other virtual device is part of the nearest node; of nodes as near, of the first by id.
"""

from comesh.core.ids import DeviceId, NodeId
from comesh.core.plan import Place
from comesh.deployment.model import Deployment
from comesh.drivers.registry import driver_type, outside_address


def home_of(
    deployment: Deployment, device_id: DeviceId, *, devices_at: str | None, stand_in: bool
) -> NodeId | None:
    """Returns the node through which all others reach the device; None: each reaches it by itself."""
    device = deployment.devices[device_id]
    if device.on is not None:
        return NodeId(device.on)
    if driver_type(device, stand_in) != "virtual" or outside_address(device, devices_at) is not None:
        return None
    return nearest_node(deployment, deployment.place_of(device_id))


def nearest_node(deployment: Deployment, place: Place) -> NodeId | None:
    """Returns the nearest node. Distances are whole square millimetres, so that all nodes agree."""
    return min(
        deployment.nodes,
        key=lambda node: (_squared_mm(deployment.nodes[node].place, place), node),
        default=None,
    )


def _squared_mm(one: Place, other: Place) -> int:
    return (one.x_mm - other.x_mm) ** 2 + (one.y_mm - other.y_mm) ** 2 + (one.z_mm - other.z_mm) ** 2
