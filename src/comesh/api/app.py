"""The app: around each endpoint, who may ask, how long it may take, and errors as JSON."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from comesh.api.edge import Endpoint, as_text, endpoints_of
from comesh.api.errors import (
    HEADERS,
    HeadersTooLongError,
    NoSuchMethodError,
    NoSuchPathError,
    as_error,
    as_json,
)
from comesh.api.events import Events
from comesh.api.invitations import Invitations
from comesh.api.limits import MAX_HEADER_BYTES
from comesh.api.metrics import CONTENT_TYPE, Metrics
from comesh.api.openapi import document
from comesh.api.tokens import KnownTokens, Token
from comesh.queries.answers import (
    InternalError,
    MalformedError,
    QueryError,
    TooSlowError,
    UnauthenticatedError,
)
from comesh.queries.mesh import Asker
from comesh.queries.requests import BASE, Role
from comesh.runtime.assembly import Assembly

NO_TOKEN = "a token is needed: make one with `comesh keys token NAME`, send it as Authorization: Bearer TOKEN"
BAD_TOKEN = "this token is not known here, or has expired; `comesh keys tokens` on this node lists them"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    alive: bool
    ready: bool
    """It takes part in the mesh."""


class App:
    def __init__(self, assembly: Assembly, connections: Callable[[], int]) -> None:
        self._assembly = assembly
        self._tokens = KnownTokens(assembly.options.keys)
        self._told_trouble = ""
        self.events = Events(assembly.news)
        self._metrics = Metrics(
            assembly,
            connections=connections,
            event_clients=lambda: self.events.clients,
            events_lost=lambda: assembly.news.lost,
        )
        self.endpoints = [
            *endpoints_of(assembly.table),
            *Invitations(assembly).endpoints(),
            *self._own_endpoints(),
        ]
        self._routed = Starlette(
            routes=[
                Route(one.path, self._around(one), methods=[one.method], name=one.name)
                for one in self.endpoints
            ],
            exception_handlers={HTTPException: _no_such_path},
        )
        self._routed.router.redirect_slashes = False

    def _own_endpoints(self) -> list[Endpoint]:
        """What no table of requests has."""
        return [
            Endpoint(
                name="health",
                path="/health",
                summary="Whether this node is alive, and takes part in the mesh (200) or not yet (503)",
                handler=self._health,
                role=None,
                answer=Health,
                status_of=lambda health: 200 if health.ready else 503,
            ),
            Endpoint(
                name="events",
                path=f"{BASE}/events",
                summary="What happens in the whole mesh, as server-sent events, for ever",
                handler=self.events.follow,
                content="text/event-stream",
                errors=(503,),
            ),
            Endpoint(
                name="metrics",
                path="/metrics",
                summary="Numbers of this node, for Prometheus",
                handler=as_text(self._metrics.text, CONTENT_TYPE),
                content="text/plain",
            ),
            Endpoint(
                name="openapi",
                path="/openapi.json",
                summary="This document",
                handler=as_text(self._document, "application/json"),
                answer=dict[str, Any],
            ),
        ]

    async def _health(self, request: Request) -> Health:
        return Health(alive=True, ready=self._assembly.view.ready)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = len(scope["raw_path"]) + len(scope["query_string"])
        if length + sum(len(name) + len(value) for name, value in scope["headers"]) <= MAX_HEADER_BYTES:
            await self._routed(scope, receive, send)
            return
        wrong = HeadersTooLongError(f"path and headers are longer than {MAX_HEADER_BYTES} bytes")
        await as_error(wrong)(scope, receive, send)

    def _document(self) -> str:
        return msgspec.json.encode(document(self.endpoints)).decode()

    def _around(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            began = time.perf_counter()
            try:
                response = await self._answer(endpoint, request)
            except QueryError as wrong:
                response = as_error(wrong)
            self._metrics.answered(endpoint.name, response.status_code, time.perf_counter() - began)
            return response

        return answer

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        if endpoint.role is not None:
            self._check_token(request, endpoint.role)
        if request.method == "HEAD" and endpoint.answer is None:
            return Response(headers={**HEADERS, "content-type": endpoint.content})
        try:
            async with asyncio.timeout(endpoint.within_s):
                answer = await endpoint.handler(request)
        except TimeoutError:
            raise TooSlowError(
                f"no answer within {endpoint.within_s:.0f} s; is this node very busy? Ask another one"
            ) from None
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except QueryError:
            raise
        except Exception as wrong:
            self._assembly.log.error(
                f"HTTP interface: {endpoint.name} broke: {type(wrong).__name__}: {wrong}"
            )
            raise InternalError(
                "this node has a fault and could not answer; its log has more, please report it"
            ) from wrong
        if isinstance(answer, Response):
            return answer
        return as_json(answer, 200 if endpoint.status_of is None else endpoint.status_of(answer))

    def _who(self, shown: str) -> Token | None:
        return self._tokens.who(shown, self._assembly.clock.wall_ms())

    def _check_token(self, request: Request, needed: Role) -> None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not shown.strip():
            raise UnauthenticatedError(NO_TOKEN)
        token = self._who(shown.strip())
        if self._tokens.trouble != self._told_trouble:
            self._told_trouble = self._tokens.trouble
            if self._told_trouble:
                self._assembly.log.error(f"nobody may ask over HTTP: {self._told_trouble}")
        if token is None:
            raise UnauthenticatedError(BAD_TOKEN)
        request.state.asker = Asker(by=f"{token.name} (token)", role=token.role)
        request.state.may_ask = lambda: self._who(shown.strip()) is not None
        request.state.asker.check(needed)


async def _no_such_path(request: Request, wrong: Exception) -> Response:
    headers = dict(wrong.headers or {}) if isinstance(wrong, HTTPException) else {}
    match wrong:
        case HTTPException(status_code=404):
            told: QueryError = NoSuchPathError(
                "there is nothing at this path; /openapi.json lists all of them"
            )
        case HTTPException(status_code=405):
            told = NoSuchMethodError("method not allowed here; /openapi.json has the methods of each path")
        case _:
            told = MalformedError("this cannot be asked; /openapi.json lists what can")
    return as_error(told, headers)
