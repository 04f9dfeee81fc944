"""The OpenAPI document, made of the table of endpoints and the types of their answers."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from comesh import __version__
from comesh.api.edge import Endpoint
from comesh.api.errors import JSON
from comesh.queries.answers import Error, Lost, News

EVERY: Final = (405, 431, 500, 504)
"""Errors that every endpoint may answer."""
WITH_TOKEN: Final = (401, 403)
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_REF: Final = "#/components/schemas/{name}"


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    types = [one for endpoint in endpoints for one in (endpoint.answer, endpoint.body) if one is not None]
    _, schemas = msgspec.json.schema_components([*types, Error, News, Lost], ref_template=_REF)
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CoMesh",
            "version": __version__,
            "description": "Any node of a mesh answers for all of it. Make a token with `comesh keys token`.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Error": {"description": "What happened, and what to do", "content": _json(Error)}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    codes = sorted({*endpoint.errors, *EVERY, *(WITH_TOKEN if endpoint.role else ())})
    responses: dict[str, Any] = {str(code): {"$ref": "#/components/responses/Error"} for code in codes}
    content = {endpoint.content: {}} if endpoint.answer is None else _json(endpoint.answer)
    answered = (200, 503) if endpoint.status_of else (200,)
    responses |= {
        str(code): {"description": HTTPStatus(code).phrase, "content": content} for code in answered
    }
    needs = f" (role {endpoint.role})" if endpoint.role else " (no token)"
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary + needs,
        "security": [{"token": []}] if endpoint.role else [],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in _PARAMETER.findall(endpoint.path)
        ]
        + [
            {"name": one.name, "in": "query", "required": one.required, "schema": _parameter(one)}
            for one in (() if endpoint.query is None else msgspec.structs.fields(endpoint.query))
        ],
        "responses": dict(sorted(responses.items())),
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": False, "content": _json(endpoint.body)}
    return operation


def _json(kind: Any) -> dict[str, Any]:
    return {JSON: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _parameter(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    schema = msgspec.json.schema(field.type)
    return schema if field.required else {**schema, "default": field.default}
