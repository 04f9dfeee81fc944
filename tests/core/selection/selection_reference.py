"""Selection written again, from docs/selection.md only: plain integers, nothing vectorised, no haste.

What the fast code must agree with, and a pattern for other languages.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from math import isqrt

from comesh.core.plan import DEPLOYMENT, Locality, Place, Plan

MASK = 2**64 - 1


def mix64(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def id_hash(kind: str, name: str) -> int:
    return int.from_bytes(blake2b(f"{kind}:{name}".encode(), digest_size=8).digest(), "little")


def chain(*words: int) -> int:
    state = 0
    for word in words:
        state = mix64(state ^ (word & MASK))
    return state


def gaussian(*words: int) -> int:
    drawn = [chain(*words, part) for part in (0, 1, 2)]
    return sum((word >> shift) & 0xFFFF for word in drawn for shift in (0, 16, 32, 48)) - 6 * 65_535


def point(place: Place) -> tuple[int, int, int]:
    return place.x_mm, place.y_mm, place.z_mm


def squared(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


class Reference:
    def __init__(
        self, plan: Plan, epoch: int, alive: Collection[str], table: Mapping[str, Sequence[str]]
    ) -> None:
        self.plan, self.epoch, self.table = plan, epoch, table
        self.seed, self.lsh = plan.settings.seed, plan.settings.lsh
        self.node_at = {node.id: point(node.place) for node in plan.nodes}
        self.device_at = {device.id: point(device.place) for device in plan.devices}
        self.devices_of = {cluster.group: cluster.devices for cluster in plan.clusters}
        self.domain_of = {node.id: node.power_domain or f"\0{node.id}" for node in plan.nodes}
        self.alive = sorted(set(alive) & set(self.node_at))
        self.width = max(1, isqrt(2 * (self.lsh.r_milli * plan.spacing_mm * 65_536) ** 2) // 1000)
        self.tables = [
            [(self.direction(table, row), self.offset(table, row)) for row in range(self.lsh.m)]
            for table in range(self.lsh.l)
        ]
        self.node_buckets = {node: self.buckets(self.vector(node)) for node in self.node_at}
        self.size = self._size()
        self.cap = self._cap()

    def _size(self) -> int:
        def odd(count: int) -> int:
            return count if count % 2 else max(0, count - 1)

        k = 2 * self.plan.settings.f + 1
        return max(min(3, k, odd(len(self.node_at))), min(k, odd(len(self.alive))))

    def _cap(self) -> int:
        if not self.plan.settings.power_domain_rule or len(self.alive) < self.size:
            return self.size
        domains = [self.domain_of[node] for node in self.alive]
        for cap in range(max(1, self.size // 2), self.size):
            if sum(min(cap, domains.count(domain)) for domain in set(domains)) >= self.size:
                return cap
        return self.size

    def hash(self, group: str, kind: str, name: str) -> tuple[int, str]:
        return chain(self.seed, self.epoch, id_hash("group", group), id_hash(kind, name)), name

    def centre(self, group: str) -> str:
        return min(self.devices_of[group], key=lambda device: self.hash(group, "device", device))

    def vector(self, node: str) -> list[int]:
        place = self.node_at[node]
        watched = [
            self.device_at[device]
            for group, members in self.table.items()
            if node in members
            for device in self.devices_of.get(group, ())
        ]
        before = [sum(at[axis] for at in watched) // len(watched) for axis in range(3)] if watched else place
        reach = self.lsh.jitter_milli * self.plan.spacing_mm // 1000
        draws = [
            chain(self.seed, id_hash("draw", "jitter"), self.epoch, axis, id_hash("node", node)) >> 32
            for axis in range(6)
        ]
        return [
            entry + draw % (2 * reach + 1) - reach
            for entry, draw in zip([*place, *before], draws, strict=True)
        ]

    def direction(self, table: int, row: int) -> list[int]:
        tag = id_hash("draw", "gaussian")
        return [gaussian(self.seed, tag, self.epoch, table, row, axis) for axis in range(6)]

    def offset(self, table: int, row: int) -> int:
        return chain(self.seed, id_hash("draw", "offset"), self.epoch, table, row) * self.width >> 64

    def buckets(self, vector: Sequence[int]) -> list[list[int]]:
        return [
            [
                (sum(a * v for a, v in zip(direction, vector, strict=True)) + offset) // self.width
                for direction, offset in functions
            ]
            for functions in self.tables
        ]

    def candidates(self, device: str) -> list[str]:
        wanted = self.buckets(self.device_at[device] * 2)
        return [
            node
            for node in self.alive
            if any(a == b for a, b in zip(self.node_buckets[node], wanted, strict=True))
        ]

    def neighbours(self, centre: str) -> list[str]:
        seen = {self.device_at[centre]}
        found: list[str] = []
        for device in sorted(
            self.device_at, key=lambda one: (squared(self.device_at[one], self.device_at[centre]), one)
        ):
            if self.device_at[device] not in seen:
                seen.add(self.device_at[device])
                found.append(device)
        return found[:8]

    def members(self, group: str) -> tuple[str, ...]:
        settings = self.plan.settings
        chosen: list[str] = []

        def take(nodes: Sequence[str], until: int) -> None:
            for node in nodes:
                domain = self.domain_of[node]
                crowded = sum(self.domain_of[one] == domain for one in chosen) >= self.cap
                if len(chosen) < until and node not in chosen and not crowded:
                    chosen.append(node)

        def by_hash(nodes: Collection[str]) -> list[str]:
            return sorted(nodes, key=lambda node: self.hash(group, "node", node))

        def by_distance(nodes: Collection[str], place: Sequence[int]) -> list[str]:
            return sorted(
                nodes, key=lambda one: (squared(self.node_at[one], place), self.hash(group, "node", one))
            )

        local: list[str] = []
        majority = self.size // 2 + 1
        if group != DEPLOYMENT and settings.members == Locality.LOCALITY:
            centre = self.centre(group)
            for device in [centre, *self.neighbours(centre)]:
                take(by_distance(self.candidates(device), self.device_at[centre]), majority)
            local = list(chosen)
        take(by_hash(self.alive), self.size)
        if group != DEPLOYMENT and settings.members == Locality.RANDOM:
            local = by_distance(chosen, self.device_at[self.centre(group)])[:majority]
        if settings.leaders == Locality.RANDOM:
            local = []
        ranked = by_hash(local) + by_hash(set(chosen) - set(local))
        absent = by_hash(set(self.node_at) - set(self.alive))
        return tuple(ranked + absent[: self.size - len(ranked)])
