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

from comesh.api.endpoints import Endpoint, as_text, endpoints
from comesh.api.errors import HEADERS, RefusedError, as_error, as_json
from comesh.api.events import Events
from comesh.api.firing import Firing
from comesh.api.invitations import Invitations
from comesh.api.limits import ANSWER_S, MAX_HEADER_BYTES
from comesh.api.metrics import CONTENT_TYPE, Metrics
from comesh.api.openapi import document
from comesh.api.operations import Operating
from comesh.api.reading import Reading
from comesh.api.tokens import KnownTokens, Role, Token
from comesh.api.versions import Changing
from comesh.runtime.assembly import Assembly

NO_TOKEN = "a token is needed: make one with `comesh keys token NAME`, send it as Authorization: Bearer TOKEN"
BAD_TOKEN = "this token is not known here, or has expired; `comesh keys tokens` on this node lists them"


class App:
    def __init__(self, assembly: Assembly, connections: Callable[[], int]) -> None:
        self._assembly = assembly
        self._tokens = KnownTokens(assembly.options.keys)
        self._told_trouble = ""
        self.events = Events(assembly)
        self._metrics = Metrics(
            assembly,
            connections=connections,
            event_clients=lambda: self.events.clients,
            events_lost=lambda: self.events.lost,
        )
        table = endpoints(Reading(assembly), Firing(assembly), self.events)
        table += Invitations(assembly).endpoints()
        table += Operating(assembly).endpoints()
        table += Changing(assembly).endpoints()
        table += [
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
        self.table = table
        self._routed = Starlette(
            routes=[Route(one.path, self._around(one), methods=[one.method], name=one.name) for one in table],
            exception_handlers={HTTPException: _no_such_path},
        )
        self._routed.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = len(scope["raw_path"]) + len(scope["query_string"])
        if length + sum(len(name) + len(value) for name, value in scope["headers"]) <= MAX_HEADER_BYTES:
            await self._routed(scope, receive, send)
            return
        what = f"path and headers are longer than {MAX_HEADER_BYTES} bytes"
        await as_error(RefusedError(431, what, headers={"connection": "close"}))(scope, receive, send)

    def _document(self) -> str:
        return msgspec.json.encode(document(self.table)).decode()

    def _around(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            began = time.perf_counter()
            try:
                response = await self._answer(endpoint, request)
            except RefusedError as refused:
                response = as_error(refused)
            self._metrics.answered(endpoint.name, response.status_code, time.perf_counter() - began)
            return response

        return answer

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        if endpoint.role is not None:
            self._check_token(request, endpoint.role)
        if request.method == "HEAD" and endpoint.answer is None:
            return Response(headers={**HEADERS, "content-type": endpoint.content})
        within_s = ANSWER_S if endpoint.within_s is None else endpoint.within_s
        try:
            async with asyncio.timeout(within_s):
                answer = await endpoint.handler(request)
        except TimeoutError:
            raise RefusedError(
                504, f"no answer within {within_s:.0f} s; is this node very busy? Ask another one"
            ) from None
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except RefusedError:
            raise
        except Exception as wrong:
            self._assembly.log.error(
                f"HTTP interface: {endpoint.name} broke: {type(wrong).__name__}: {wrong}"
            )
            raise RefusedError(
                500, "this node has a fault and could not answer; its log has more, please report it"
            ) from wrong
        if isinstance(answer, Response):
            return answer
        return as_json(answer, 200 if endpoint.status_of is None else endpoint.status_of(answer))

    def _who(self, shown: str) -> Token | None:
        return self._tokens.who(shown, self._assembly.clock.wall_ms())

    def _check_token(self, request: Request, needed: Role) -> None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        asks = {"www-authenticate": 'Bearer realm="comesh"'}
        if scheme.lower() != "bearer" or not shown.strip():
            raise RefusedError(401, NO_TOKEN, headers=asks)
        token = self._who(shown.strip())
        if self._tokens.trouble != self._told_trouble:
            self._told_trouble = self._tokens.trouble
            if self._told_trouble:
                self._assembly.log.error(f"nobody may ask over HTTP: {self._told_trouble}")
        if token is None:
            raise RefusedError(401, BAD_TOKEN, headers=asks)
        request.state.token_name = token.name
        request.state.may_ask = lambda: self._who(shown.strip()) is not None
        if not token.role.may(needed):
            raise RefusedError(
                403,
                f"{token.name} is a {token.role}, and this needs an {needed}: make a token with `comesh keys "
                f"token NAME --role {needed}`",
            )


async def _no_such_path(request: Request, wrong: Exception) -> Response:
    status = wrong.status_code if isinstance(wrong, HTTPException) else 500
    headers = dict(wrong.headers or {}) if isinstance(wrong, HTTPException) else {}
    what = {
        404: "there is nothing at this path; /openapi.json lists all of them",
        405: "this path is asked with another method; /openapi.json says with which",
    }.get(status, "this cannot be asked; /openapi.json lists what can")
    return as_error(RefusedError(status, what, headers=headers))
