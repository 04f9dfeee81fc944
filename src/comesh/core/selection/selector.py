"""`select`: a group's members in an epoch, from what every node holds (protocol, section 2).

`Selector` turns a plan into columns once. `Selector.at` adds what one node believes in one epoch: which
nodes are alive, and the table of the configs installed in the last epoch. The view that it returns
answers for one group in tens of microseconds, and for a group asked before at once.

Neither the order of `alive` nor that of `table` matters; nodes that the plan doesn't have are ignored.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from comesh.core.arithmetic import (
    PLAIN,
    Arithmetic,
    Buckets,
    Point,
    Words,
    arithmetic_for,
    point_of,
)
from comesh.core.ids import DeviceId, GroupId, NodeId
from comesh.core.plan import DEPLOYMENT, Cluster, Plan
from comesh.core.registry import Registry, Thing
from comesh.core.selection.hashing import chain, chain_on, id_hash
from comesh.core.selection.lsh import HashFamily
from comesh.core.selection.members import Draft, config_size, domain_cap
from comesh.core.selection.policies import (
    LEADER_POLICIES,
    MEMBER_POLICIES,
    Choice,
    Chosen,
    PolicyError,
)

Table: TypeAlias = Mapping[GroupId, Sequence[NodeId]]

NEIGHBOURS = 8
"""Number of places near the centre from which candidates are borrowed."""


class _Watched:
    """The data of one cluster that selection needs."""

    __slots__ = ("devices", "place_sum", "words")

    def __init__(self, cluster: Cluster, row_of: dict[DeviceId, int], points: Sequence[Point]) -> None:
        self.devices = [row_of[device] for device in cluster.devices]
        self.words = [id_hash("device", device) for device in cluster.devices]
        self.place_sum = [sum(axis) for axis in zip(*(points[row] for row in self.devices), strict=True)]


class Selector:
    """A plan as columns; nodes and devices are rows in order of their ids."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.arithmetic: Arithmetic = arithmetic_for(len(plan.nodes) + len(plan.devices))
        self.node_ids = [node.id for node in plan.nodes]
        self.node_words = [id_hash("node", node) for node in self.node_ids]
        self.node_points = [point_of(node.place) for node in plan.nodes]
        self.node_row = {node: row for row, node in enumerate(self.node_ids)}
        self.node_domains = _domain_numbers([node.power_domain for node in plan.nodes])
        self.words = self.arithmetic.words(self.node_words)
        self.places = self.arithmetic.places(self.node_points)
        self.device_ids = [device.id for device in plan.devices]
        self.device_points = [point_of(device.place) for device in plan.devices]
        self._device_places = self.arithmetic.places(self.device_points)
        row_of = {device: row for row, device in enumerate(self.device_ids)}
        self.watched = {
            cluster.group: _Watched(cluster, row_of, self.device_points) for cluster in plan.clusters
        }
        self.groups: tuple[GroupId, ...] = (*self.watched, DEPLOYMENT)
        self._group_words = {group: id_hash("group", group) for group in self.groups}
        self._neighbours: dict[int, list[int]] = {}

    def at(self, epoch: int, alive: Collection[NodeId], table: Table) -> "View":
        """Returns the selection of a node that believes this; keep it as long as the three stay the same."""
        return View(self, epoch, alive, table)

    def select(
        self, group: GroupId, epoch: int, alive: Collection[NodeId], table: Table
    ) -> tuple[NodeId, ...]:
        """The group's members, in rank order."""
        return self.at(epoch, alive, table).members(group)

    def select_all(
        self, epoch: int, alive: Collection[NodeId], table: Table
    ) -> dict[GroupId, tuple[NodeId, ...]]:
        """Every group's members, in rank order; the clusters' groups as in the plan, then `deployment`."""
        return self.at(epoch, alive, table).all_members()

    def candidates(
        self, group: GroupId, epoch: int, alive: Collection[NodeId], table: Table
    ) -> tuple[NodeId, ...]:
        """The nodes alive that share a bucket with the centre of the group's cluster."""
        return self.at(epoch, alive, table).candidates(group)

    def key(self, group: GroupId, epoch: int) -> int:
        """The chain of seed, epoch and group: Hash(epoch, S, D) but for S."""
        return chain(self.plan.settings.seed, epoch, self._group_words[group])

    def centre_row(self, group: GroupId, epoch: int) -> int:
        """The row of the cluster's device with the lowest hash."""
        key, watched = self.key(group, epoch), self.watched[group]
        hashes: list[int] = PLAIN.chain_each(key, watched.words)
        return watched.devices[hashes.index(min(hashes))]

    def centre(self, group: GroupId, epoch: int) -> DeviceId:
        """The device that stands for the cluster in an epoch."""
        return self.device_ids[self.centre_row(group, epoch)]

    def neighbour_rows(self, centre_row: int) -> list[int]:
        """The nearest devices at other places than the centre's, one per place; of equals the lowest ids."""
        known = self._neighbours.get(centre_row)
        if known is None:
            centre = self.device_points[centre_row]
            known = []
            seen = {centre}
            for row in self.arithmetic.by_distance(self._device_places, centre):
                if self.device_points[row] not in seen:
                    seen.add(self.device_points[row])
                    known.append(row)
                    if len(known) == NEIGHBOURS:
                        break
            self._neighbours[centre_row] = known
        return known

    def node_vectors(self, table: Table, family: HashFamily) -> list[list[int]]:
        """Each node's place, and the mean place of what it looked after in the last epoch; with jitter."""
        sums, counts = self.looked_after(table)
        vectors = []
        for row, point in enumerate(self.node_points):
            count = counts[row]
            before = [total // count for total in sums[row]] if count else point
            jitter = family.jitter(self.node_words[row])
            vector = [*point, *before]
            vectors.append([a + b for a, b in zip(vector, jitter, strict=True)] if jitter else vector)
        return vectors

    def looked_after(self, table: Table) -> tuple[list[list[int]], list[int]]:
        """Returns for each node, by the table, the sum of the places of its devices, and how many they
        are."""
        sums = [[0, 0, 0] for _ in self.node_ids]
        counts = [0] * len(self.node_ids)
        for group, members in table.items():
            watched = self.watched.get(group)
            if watched is None:
                continue
            x, y, z = watched.place_sum
            for row in {self.node_row[member] for member in members if member in self.node_row}:
                total = sums[row]
                total[0] += x
                total[1] += y
                total[2] += z
                counts[row] += len(watched.devices)
        return sums, counts


class View:
    """The selection of one node while its view of the others stays the same. Remembers its answers."""

    def __init__(self, selector: Selector, epoch: int, alive: Collection[NodeId], table: Table) -> None:
        self._selector = selector
        self.epoch = epoch
        settings = selector.plan.settings
        self._rows = sorted({selector.node_row[node] for node in alive if node in selector.node_row})
        self._arithmetic = selector.arithmetic
        self._words = self._arithmetic.rows(selector.words, self._rows)
        self._places = self._arithmetic.rows(selector.places, self._rows)
        self.domains = [selector.node_domains[row] for row in self._rows]
        self.size = config_size(settings.f, len(self._rows), len(selector.node_ids))
        capped = settings.power_domain_rule and len(self._rows) >= self.size
        self.cap = domain_cap(self.size, self.domains) if capped else self.size
        """At most so many members of one power domain; less than all of them only if that is possible."""
        self._take = _policy(MEMBER_POLICIES, settings.members)
        self._lead = _policy(LEADER_POLICIES, settings.leaders)
        self._table = dict(table)
        self._answers: dict[GroupId, tuple[NodeId, ...]] = {}

    def members(self, group: GroupId) -> tuple[NodeId, ...]:
        """The group's members in rank order."""
        answer = self._answers.get(group)
        if answer is None:
            answer = self._answers[group] = self._select(group)
        return answer

    def all_members(self) -> dict[GroupId, tuple[NodeId, ...]]:
        return {group: self.members(group) for group in self._selector.groups}

    def candidates(self, group: GroupId) -> tuple[NodeId, ...]:
        """The nodes that share a bucket with the centre of the group's cluster, by id."""
        return self._names(self.sharing(self.centre_row(group)))

    def _select(self, group: GroupId) -> tuple[NodeId, ...]:
        selector = self._selector
        key = selector.key(group, self.epoch)
        hashes = self._arithmetic.chain_each(key, self._words)
        draft = Draft(self.domains, self.cap, self.size)
        first: list[int] = []
        if group in selector.watched:
            first = self._by_policy(Choice(self, group, hashes), draft)
        else:
            draft.take(self.lowest_first(hashes), self.size)
        others = [position for position in draft.chosen if position not in first]
        ranked = self._names(first + self.by_hash(others, hashes))
        return ranked if len(ranked) == self.size else ranked + self._absent(key, self.size - len(ranked))

    def _by_policy(self, choice: Choice, draft: Draft) -> list[int]:
        """Fill the draft, and say who of it comes first."""
        settings = self._selector.plan.settings
        kind, name = MEMBER_POLICIES.kind, settings.members
        try:
            self._take(choice, draft)
            taken = tuple(draft.chosen)
            draft.take(choice.lowest(), self.size)
            kind, name = LEADER_POLICIES.kind, settings.leaders
            named = dict.fromkeys(self._lead(choice, Chosen(taken, tuple(draft.chosen))))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise PolicyError(f"{kind} {name!r} failed for {choice.group}: {what}") from error
        return [position for position in named if position in draft.chosen]

    def centre_row(self, group: GroupId) -> int:
        return self._selector.centre_row(group, self.epoch)

    def neighbour_rows(self, centre_row: int) -> list[int]:
        return self._selector.neighbour_rows(centre_row)

    def device_point(self, row: int) -> Point:
        return self._selector.device_points[row]

    @cached_property
    def points(self) -> list[Point]:
        """The places of the nodes alive."""
        return [self._selector.node_points[row] for row in self._rows]

    @cached_property
    def served(self) -> list[int]:
        """Returns how many devices each of the nodes alive looked after in the last epoch."""
        counts = self._selector.looked_after(self._table)[1]
        return [counts[row] for row in self._rows]

    @cached_property
    def led(self) -> list[int]:
        """Returns how many devices each of the nodes alive looked after as the first of a group's members."""
        first = {group: members[:1] for group, members in self._table.items()}
        counts = self._selector.looked_after(first)[1]
        return [counts[row] for row in self._rows]

    @cached_property
    def _family(self) -> HashFamily:
        plan = self._selector.plan
        return HashFamily(plan.settings.lsh, plan.settings.seed, self.epoch, plan.spacing_mm)

    @cached_property
    def _buckets(self) -> Buckets:
        """The buckets of the nodes alive."""
        vectors = self._selector.node_vectors(self._table, self._family)
        return self._arithmetic.buckets(self._family.functions, [vectors[row] for row in self._rows])

    def sharing(self, device_row: int) -> list[int]:
        """The positions of the nodes that share a bucket with a device."""
        point = self.device_point(device_row)
        return self._arithmetic.sharing(self._family.functions, self._buckets, (*point, *point))

    def nearest_first(self, among: Sequence[int], point: Point, hashes: Words) -> list[int]:
        return self._arithmetic.nearest_first(among, self._places, point, hashes)

    def lowest_first(self, hashes: Words) -> Iterator[int]:
        return self._arithmetic.lowest_first(hashes)

    def by_hash(self, positions: Iterable[int], hashes: Words) -> list[int]:
        return sorted(positions, key=lambda position: (int(hashes[position]), position))

    def _names(self, positions: Sequence[int]) -> tuple[NodeId, ...]:
        ids, rows = self._selector.node_ids, self._rows
        return tuple([ids[rows[position]] for position in positions])

    def _absent(self, key: int, count: int) -> tuple[NodeId, ...]:
        """Nodes that are not alive, by hash, for the places that those alive cannot fill."""
        selector = self._selector
        rows = sorted(set(range(len(selector.node_ids))).difference(self._rows))
        rows.sort(key=lambda row: chain_on(key, selector.node_words[row]))
        return tuple(selector.node_ids[row] for row in rows[:count])


def select(
    plan: Plan, group: GroupId, epoch: int, alive: Collection[NodeId], table: Table
) -> tuple[NodeId, ...]:
    """Selects one group's members in rank order. To ask more than once, keep a Selector."""
    return Selector(plan).select(group, epoch, alive, table)


def _policy(registry: Registry[Thing], name: str) -> Thing:
    found = registry.find(name)
    if found is None:
        raise PolicyError(f"unknown {registry.kind} {name!r}; known: {', '.join(registry.names())}")
    return found


def _domain_numbers(domains: list[str | None]) -> list[int]:
    """A number per node that is equal exactly for nodes of one domain."""
    names = sorted({name for name in domains if name is not None})
    number_of = {name: number for number, name in enumerate(names)}
    return [len(names) + row if name is None else number_of[name] for row, name in enumerate(domains)]
