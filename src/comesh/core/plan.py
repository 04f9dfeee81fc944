"""The plan: computed once from a deployment and held by every node, the input of selection.

Everything is an integer or an id, sorted by id, so that machines of different make agree to the bit.
`core/selection` makes plans and reads them; docs/selection.md says why.
"""

from enum import StrEnum

import msgspec

from comesh.core.ids import DeviceId, GroupId, NodeId, RoutineId

DEPLOYMENT = GroupId("deployment")
"""The group that commits the chain of deployment versions: in every plan, without devices or routines,
all nodes eligible, members and leader by hash."""


class Place(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Where something is, in millimetres from the deployment's origin."""

    x_mm: int
    y_mm: int
    z_mm: int = 0


class Locality(StrEnum):
    """A choice that the paper compares: near, or anywhere. One each for clusters, members, leaders."""

    LOCALITY = "locality"
    RANDOM = "random"


class Lsh(msgspec.Struct, frozen=True, kw_only=True):
    """Locality-sensitive hashing: l tables of m concatenated hashes, buckets r mean spacings wide."""

    m: int = 2
    l: int = 2
    r_milli: int = 4000
    """Bucket width in thousandths of the mean spacing between neighbouring places."""
    jitter_milli: int = 0
    """Seeded noise added to a node's vector, in thousandths of the mean spacing; spreads load."""


class SelectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a deployment's settings that decides who is in which group."""

    f: int = 1
    seed: int = 0
    cluster_size: int = 25
    clusters: Locality = Locality.LOCALITY
    members: str = Locality.LOCALITY
    leaders: str = Locality.LOCALITY
    """Both by the names that `core/selection/policies.py` has registered."""
    power_domain_rule: bool = True
    lsh: Lsh = Lsh()

    @property
    def k(self) -> int:
        return 2 * self.f + 1


class PlannedNode(msgspec.Struct, frozen=True, kw_only=True):
    id: NodeId
    place: Place
    power_domain: str | None = None
    """Nodes of one domain lose power together. None: a domain of its own."""


class PlannedDevice(msgspec.Struct, frozen=True, kw_only=True):
    id: DeviceId
    place: Place


class PlannedRoutine(msgspec.Struct, frozen=True, kw_only=True):
    id: RoutineId
    touches: tuple[DeviceId, ...]
    """Every device of its trigger or its commands, sorted, no duplicates, at least one."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Devices near each other and the routines anchored among them; one group looks after it."""

    group: GroupId
    devices: tuple[DeviceId, ...]
    routines: tuple[RoutineId, ...]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Each tuple is sorted by id; genesis holds the first members of each group, in rank order. Made by
    `core.selection.make_plan` only."""

    version: int
    settings: SelectionSettings
    nodes: tuple[PlannedNode, ...]
    devices: tuple[PlannedDevice, ...]
    routines: tuple[PlannedRoutine, ...]
    clusters: tuple[Cluster, ...]
    anchors: dict[RoutineId, DeviceId]
    genesis: dict[GroupId, tuple[NodeId, ...]]
    """The first members of each cluster's group and of `deployment`; what it says of a group never changes
    in later versions, also where a node named here has left since."""
    spacing_mm: int
    """The mean spacing of the nodes, which the LSH's bucket width is a multiple of."""
    groups_made: int
    """How many clusters this deployment ever had. The next is named by the next number: a group's name is
    never used again, because its tombstones stay."""
