"""Numbers of this node in the text format of Prometheus; docs/api.md lists the names.

Labels have few values: names of endpoints, statuses of answers, what the node counts. Nothing that a client
sends becomes a label.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from comesh.api.limits import MAX_COUNTERS
from comesh.queries.answers import NodeStatus
from comesh.runtime.assembly import Assembly

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

Sample = tuple[Mapping[str, str], float]


class Times:
    """How long the answers of one endpoint took."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def add(self, took_s: float) -> None:
        self.counts[bisect_left(BUCKETS_S, took_s)] += 1
        self.sum_s += took_s


class Metrics:
    def __init__(
        self,
        assembly: Assembly,
        *,
        connections: Callable[[], int],
        event_clients: Callable[[], int],
        events_lost: Callable[[], int],
    ) -> None:
        self._assembly = assembly
        self._connections = connections
        self._event_clients = event_clients
        self._events_lost = events_lost
        self._answers: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, Times] = {}

    def answered(self, endpoint: str, status: int, took_s: float) -> None:
        self._answers[endpoint, status] += 1
        self._times.setdefault(endpoint, Times()).add(took_s)

    def text(self) -> str:
        status = self._assembly.view.status()
        lines: list[str] = []
        for name, kind, what, samples in (*self._of_node(status), *self._of_api()):
            lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {value:.17g}" for labels, value in samples]
        lines += self._histogram()
        return "\n".join(lines) + "\n"

    def _of_node(self, status: NodeStatus) -> Iterable[tuple[str, str, str, list[Sample]]]:
        served = [one for one in status.groups if one.serves]
        states = Counter(one.status for one in status.devices)
        info = {"node": status.node, "software": status.software, "deployment": status.deployment}
        live = sum(one.live is not None for one in status.routines)
        yield "comesh_info", "gauge", "Which node this is.", [(info, 1)]
        yield "comesh_ready", "gauge", "1: it takes part in the mesh.", _one(status.ready)
        yield "comesh_trouble", "gauge", "How many things need a person.", _one(len(status.trouble))
        yield "comesh_deployment_version", "gauge", "Of the deployment it goes by.", _one(status.version)
        deployed = len(self._assembly.deployment.nodes)
        yield "comesh_nodes_deployed", "gauge", "Nodes of the deployment.", _one(deployed)
        yield "comesh_nodes_living", "gauge", "Nodes that live, as this one knows.", _one(len(status.living))
        yield "comesh_groups_served", "gauge", "Groups that this node leads.", _one(len(served))
        without = sum(one.leader is None for one in status.groups)
        yield "comesh_groups_without_leader", "gauge", "Groups whose leader it does not know.", _one(without)
        devices: list[Sample] = [({"status": name}, count) for name, count in sorted(states.items())]
        yield "comesh_devices", "gauge", "Devices of the groups that it leads.", devices
        yield "comesh_runs_live", "gauge", "Runs of the groups that it leads.", _one(live)
        waiting = sum(one.waiting for one in status.routines)
        yield "comesh_firings_waiting", "gauge", "Firings behind those runs.", _one(waiting)
        yield "comesh_memory_bytes", "gauge", "Resident memory.", _one(1024 * status.memory_kb)
        yield "comesh_cpu_seconds_total", "counter", "Processor time of the process.", _one(status.cpu_s)
        yield "comesh_counted_total", "counter", "What the node counts.", _counted(status.counters)

    def _of_api(self) -> Iterable[tuple[str, str, str, list[Sample]]]:
        answers: list[Sample] = [
            ({"endpoint": endpoint, "status": str(code)}, count)
            for (endpoint, code), count in sorted(self._answers.items())
        ]
        yield "comesh_api_answers_total", "counter", "Answers over HTTP.", answers
        yield "comesh_api_connections", "gauge", "Connections that are open.", _one(self._connections())
        clients, lost = self._event_clients(), self._events_lost()
        yield "comesh_api_event_clients", "gauge", "Clients that follow events.", _one(clients)
        yield "comesh_api_events_lost_total", "counter", "Events that clients did not read.", _one(lost)

    def _histogram(self) -> list[str]:
        name = "comesh_api_answer_seconds"
        lines = [f"# HELP {name} How long answers took.", f"# TYPE {name} histogram"]
        for endpoint, times in sorted(self._times.items()):
            below = 0
            for bucket_s, count in zip((*BUCKETS_S, "+Inf"), times.counts, strict=True):
                below += count
                lines.append(f"{name}_bucket{_labels({'endpoint': endpoint, 'le': str(bucket_s)})} {below}")
            lines.append(f"{name}_sum{_labels({'endpoint': endpoint})} {times.sum_s:.9g}")
            lines.append(f"{name}_count{_labels({'endpoint': endpoint})} {below}")
        return lines


def _one(value: float) -> list[Sample]:
    return [({}, float(value))]


def _counted(counters: Mapping[str, int]) -> list[Sample]:
    ordered = sorted(counters.items())
    samples: list[Sample] = [({"what": name}, count) for name, count in ordered[:MAX_COUNTERS]]
    rest = sum(count for _, count in ordered[MAX_COUNTERS:])
    return [*samples, ({"what": "all others"}, rest)] if rest else samples


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
