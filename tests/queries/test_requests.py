"""The union of requests: complete, light, and understood by nodes and commands of other versions."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from comesh.queries import node_reads, requests
from comesh.queries.answers import Audit, Error, MeshStatus, RunAnswer, Runs
from comesh.queries.mesh import ORDER_HANDLERS, QUERY_HANDLERS
from comesh.queries.requests import REQUESTS, Order, Query, Request, Role, answer_type, name_of, path_names
from comesh.queries.table import HANDLER_MODULES

ROOT = Path(__file__).parent.parent.parent
LIGHT = {
    "comesh",
    "comesh.core",
    "comesh.core.ids",
    "comesh.core.traces",
    "comesh.core.values",
    "comesh.deployment",
    "comesh.deployment.change",
    "comesh.queries",
    "comesh.queries.answers",
    "comesh.queries.requests",
}


def test_every_request_has_exactly_one_handler() -> None:
    """A second one is an error of the decorator; `table` imports all that declare one."""
    assert HANDLER_MODULES
    assert {*QUERY_HANDLERS, *ORDER_HANDLERS} == set(REQUESTS)
    assert set(ORDER_HANDLERS) == {kind for kind in REQUESTS if issubclass(kind, Order)}
    assert not QUERY_HANDLERS.keys() & ORDER_HANDLERS.keys()


def test_every_request_of_the_module_is_in_the_union() -> None:
    declared = {
        one
        for one in vars(requests).values()
        if isinstance(one, type) and issubclass(one, Query) and one not in (Query, Order)
    }
    assert declared == set(REQUESTS)


def test_every_node_read_answers_by_itself() -> None:
    declared = {
        one
        for one in vars(node_reads).values()
        if isinstance(one, type) and issubclass(one, node_reads.NodeRead) and one is not node_reads.NodeRead
    }
    assert declared == set(get_args(node_reads.AnyRead))
    assert all("answer" in vars(one) for one in declared)


def test_importing_requests_loads_no_core() -> None:
    """Every command imports them."""
    program = "import sys, comesh.queries.requests; print(*(one for one in sys.modules if 'comesh' in one))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) == LIGHT


@pytest.mark.parametrize("kind", REQUESTS, ids=name_of)
def test_a_request_says_what_adapters_need_and_never_who_sends_it(kind: type[Query[object]]) -> None:
    fields = {one.name for one in msgspec.structs.fields(kind)}
    assert not fields & {"by", "asker", "user", "token"}
    assert set(path_names(kind)) <= fields
    assert answer_type(kind)
    assert kind.__doc__ if kind.http is None else kind.http.summary
    assert (kind.role is Role.OPERATOR) == issubclass(kind, Order)


def test_names_and_paths_are_of_one_request_each() -> None:
    assert len({name_of(kind) for kind in REQUESTS}) == len(REQUESTS)
    routes = [(kind.http.method, kind.http.path) for kind in REQUESTS if kind.http is not None]
    assert len(set(routes)) == len(routes)


# -- other versions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "means"),
    [
        (b'{"ask":"device","device":"lamp"}', requests.ShowDevice(device="lamp")),
        (b'{"ask":"device","device":"lamp","since":7}', requests.ShowDevice(device="lamp")),
        (b'{"ask":"runs"}', requests.ListRuns(limit=50)),
        (b'{"ask":"maintain","device":"lamp"}', requests.MaintainDevice(device="lamp", on=True)),
        (
            b'{"ask":"set","device":"lamp","command":"set","argument":true,"request":"a"}',
            requests.SetDevice(device="lamp", command="set", argument=True, request="a"),
        ),
    ],
)
def test_earlier_and_later_requests_are_understood(line: bytes, means: Query[object]) -> None:
    assert msgspec.json.decode(line, type=Request) == means
    assert msgspec.json.decode(msgspec.json.encode(means), type=Request) == means


@pytest.mark.parametrize(
    "line",
    [
        b'{"ask":"weather"}',
        b'{"ask":"device"}',
        b'{"ask":"runs","limit":0}',
        b'{"ask":"runs","limit":501}',
        b'{"ask":"pause","routine":"light","request":""}',
        b'{"ask":"apply","base":0,"text":""}',
        b'{"ask":"names","kind":"house"}',
    ],
)
def test_what_no_request_may_say_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=Request)


@pytest.mark.parametrize(
    ("line", "kind", "means"),
    [
        (
            b'{"as_of_ms":1.0,"answered_by":"n1","runs":[]}',
            Runs,
            Runs(as_of_ms=1.0, answered_by="n1", runs=()),
        ),
        (
            b'{"run":"a#1","routine":"a","as_of_ms":1.0,"answered_by":"n1","ended":true,"trace":[],"later":1}',
            RunAnswer,
            RunAnswer(run="a#1", routine="a", as_of_ms=1.0, answered_by="n1", ended=True, trace=()),
        ),
        (b'{"entries":[]}', Audit, Audit(entries=())),
        (b'{"asked":"n1","nodes":{"n2":null}}', MeshStatus, MeshStatus(asked="n1", nodes={"n2": None})),
        (b'{"error":"no","later":[]}', Error, Error(error="no")),
    ],
)
def test_earlier_and_later_answers_are_understood(line: bytes, kind: type[object], means: object) -> None:
    assert msgspec.json.decode(line, type=kind) == means


def test_the_example_in_architecture_is_the_code() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("### Adding a question\n")[2]
    blocks = re.findall(r"# (queries/\w+\.py)[^\n]*\n(.*?)(?=\n\n\n#|```)", page, re.DOTALL)
    assert len(blocks) == 3
    for file, shown in blocks:
        assert shown.strip() in (ROOT / "src" / "comesh" / file).read_text(), file
