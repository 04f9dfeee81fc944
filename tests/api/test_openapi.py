"""The OpenAPI document: complete, valid, and what real nodes do; whatever is sent, no fault of the server."""

from collections.abc import Iterator

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from real_mesh import DEVICES, Asked
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

EXAMPLES = 15
PUBLIC = ("/health", "/api/v1/invitations/{invitation}/take")
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]


def test_the_document_is_complete(asked: Asked) -> None:
    told = asked.client().get("/openapi.json").json()
    operations = {
        (method, path): operation
        for path, methods in told["paths"].items()
        for method, operation in methods.items()
    }
    assert {path for (_, path), one in operations.items() if one["security"] == []} == set(PUBLIC)
    for (_, path), operation in operations.items():
        assert operation["security"] == ([] if path in PUBLIC else [{"token": []}])
        assert operation["summary"]
        assert ("401" in operation["responses"]) == (path not in PUBLIC)
    assert told["components"]["schemas"]["Error"]["required"] == ["error"]
    text = msgspec.json.encode(told).decode()
    for name in told["components"]["schemas"]:
        assert f"#/components/schemas/{name}" in text or name in ("News", "Lost")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_whatever_is_sent_is_answered_as_the_document_says(asked: Asked, mode: GenerationMode) -> None:
    """NEGATIVE: what the document does not allow."""
    told = asked.client().get("/openapi.json").json()
    del told["paths"]["/api/v1/events"]  # it never ends
    headers = {"authorization": f"Bearer {asked.operator}"}
    tried = set()
    for found in schemathesis.openapi.from_dict(told).get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not (
            operation.query or operation.body or operation.path_parameters
        ):
            continue  # nothing of it can be wrong
        tried.add((operation.method, operation.path))

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: schemathesis.Case) -> None:
            response = case.call(base_url=asked.url("n2"), headers=headers, timeout=60)
            case.validate_response(response, checks=CHECKS)

        one()
    everything = {(method, path) for path, methods in told["paths"].items() for method in methods}
    plain = {one for one in everything if one[0] == "get" and "{" not in one[1]}
    if mode is GenerationMode.POSITIVE:
        assert tried == everything
    else:
        assert tried >= everything - plain, "all that has a body or a name in its path"


@pytest.fixture(autouse=True)
def _as_it_was(asked: Asked) -> Iterator[None]:
    """Whatever was ordered meanwhile is lifted."""
    yield
    assert asked.client().post("/api/v1/resume").status_code == 200
    for device in DEVICES:
        asked.client().post(f"/api/v1/devices/{device}/maintain", json={"on": False})
