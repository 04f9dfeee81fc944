"""Errors over HTTP: each class of `QueryError` has its status; here are those that only HTTP has."""

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from comesh.queries.answers import QueryError

HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
JSON: Final = "application/json"
_BY_STATUS: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"www-authenticate": 'Bearer realm="comesh"'},
    408: {"connection": "close"},
    413: {"connection": "close"},
    431: {"connection": "close"},
    503: {"retry-after": "1"},
}


class NoSuchPathError(QueryError):
    kind, status = "no_such_path", 404


class NoSuchMethodError(QueryError):
    kind, status = "no_such_method", 405


class SlowBodyError(QueryError):
    kind, status = "slow_body", 408


class TooLongError(QueryError):
    kind, status = "too_long", 413


class HeadersTooLongError(QueryError):
    kind, status = "headers_too_long", 431


def as_json(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(answer), status, headers={**HEADERS, **(headers or {})}, media_type=JSON
    )


def as_error(wrong: QueryError, headers: Mapping[str, str] | None = None) -> Response:
    return as_json(wrong.as_error(), wrong.status, {**_BY_STATUS.get(wrong.status, {}), **(headers or {})})
