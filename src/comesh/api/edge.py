"""From an HTTP request to the Struct that it means: its path, its query or its body; and what an endpoint is.

Rules: what is unknown here is refused, also a parameter of the query; nodes among themselves ignore it. A
body has a bound on its length and on the time that it may take.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from comesh.api.errors import SlowBodyError, TooLongError
from comesh.api.limits import ANSWER_S, BODY_S, MAX_BODY_BYTES
from comesh.deployment.problems import shorten
from comesh.queries.answers import MalformedError, UnknownNameError
from comesh.queries.mesh import Asker
from comesh.queries.requests import BASE, REQUESTS, Order, Query, Role, answer_type, name_of, path_names
from comesh.queries.table import Table

T = TypeVar("T", bound=msgspec.Struct)
Q = TypeVar("Q", bound=Query[Any])
Handler = Callable[[Request], Awaitable[object]]
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A path, and what answers it."""

    name: str
    """In metrics, and as the id of the operation."""
    method: str = "GET"
    path: str
    summary: str
    handler: Handler
    role: Role | None = Role.VIEWER
    """None: no token is needed."""
    answer: Any = None
    """The type of the JSON that it answers; None: other content."""
    content: str = "application/json"
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    """The parameters of the query."""
    errors: tuple[int, ...] = ()
    """Beside those that every endpoint may answer."""
    within_s: float | None = ANSWER_S
    """In which an answer must be there; None: its handler sees to that."""
    status_of: Callable[[Any], int] | None = None
    """The status of an answer; left out: 200."""


def endpoints_of(table: Table) -> list[Endpoint]:
    """All requests of the table that have a path."""
    return [_endpoint(kind, table) for kind in REQUESTS if kind.http is not None]


def _endpoint(kind: type[Query[Any]], table: Table) -> Endpoint:
    http = kind.http
    assert http is not None
    has_body = http.method == "POST"
    rest = rest_of(kind)

    async def handle(request: Request) -> object:
        return await table.answer(await read_request(kind, request), asker_of(request))

    return Endpoint(
        name=name_of(kind),
        method=http.method,
        path=BASE + http.path,
        summary=http.summary,
        handler=handle,
        role=kind.role,
        answer=answer_type(kind),
        body=rest if has_body else None,
        query=None if has_body else rest,
        errors=(
            400,
            *((404,) if path_names(kind) else ()),
            *((408, 413) if has_body else ()),
            *((409, 503) if issubclass(kind, Order) else ()),
            *http.errors,
        ),
        within_s=None,
    )


@cache
def rest_of(kind: type[Query[Any]]) -> type[msgspec.Struct]:
    """What the query or the body may say: the fields that the path does not name, and nothing else."""
    named = path_names(kind)
    fields: list[Any] = []
    for one in msgspec.structs.fields(kind):
        if one.name in named:
            continue
        if one.required:
            fields.append((one.name, one.type))
        elif one.default_factory is not msgspec.NODEFAULT:
            fields.append((one.name, one.type, msgspec.field(default_factory=one.default_factory)))
        else:
            fields.append((one.name, one.type, one.default))
    return msgspec.defstruct(f"{kind.__name__}Wish", fields, kw_only=True, forbid_unknown_fields=True)


async def read_request(kind: type[Q], request: Request) -> Q:
    """MalformedError, UnknownNameError: what is wrong with it."""
    named = {name: _named(kind, name, request.path_params[name]) for name in path_names(kind)}
    if request.method == "POST":
        if request.query_params:
            raise MalformedError("what this path takes goes into the body, as /openapi.json has it")
        rest = await read_as(request, rest_of(kind), kind.max_bytes)
    else:
        rest = _parameters(request, rest_of(kind))
    return kind(**named, **{name: getattr(rest, name) for name in rest.__struct_fields__})


def _named(kind: type[Query[Any]], name: str, text: str) -> Any:
    (field,) = (one for one in msgspec.structs.fields(kind) if one.name == name)
    try:
        return msgspec.convert(text, field.type, strict=False)
    except msgspec.ValidationError:
        raise UnknownNameError(f"there is no {name} '{shorten(text)}' here") from None


def _parameters(request: Request, kind: type[T]) -> T:
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MalformedError(f"the query has {shorten(twice)} more than once")
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as wrong:
        raise MalformedError(f"the query is not as /openapi.json has it ({wrong})") from None


async def read_as(request: Request, kind: type[T], max_bytes: int = MAX_BODY_BYTES) -> T:
    """What the body says; an empty one says nothing."""
    try:
        return msgspec.json.decode(await read_body(request, max_bytes) or b"{}", type=kind)
    except _UNREADABLE as wrong:
        shape = ", ".join(one.name for one in msgspec.structs.fields(kind))
        raise MalformedError(
            f"the body is not as /openapi.json has it: a JSON object with {shape} ({wrong})"
        ) from None


async def read_body(request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """All of it, if it is not too long and comes in time."""
    too_long = TooLongError(f"the body is longer than {max_bytes} bytes")
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length[:20]) > max_bytes:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > max_bytes:
                    raise too_long
    except TimeoutError:
        raise SlowBodyError(f"the body did not come within {BODY_S:.0f} s") from None
    return bytes(body)


def asker_of(request: Request) -> Asker:
    """Whose token was shown."""
    asker: Asker = request.state.asker
    return asker


def as_text(text: Callable[[], str], content: str) -> Handler:
    async def answer(_: Request) -> Response:
        return Response(text(), media_type=None, headers={"content-type": content})

    return answer
