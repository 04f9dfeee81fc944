"""Firing a routine over HTTP: once per request id, however often, and at whichever node, it is asked."""

import asyncio
import secrets
from typing import cast

import msgspec
from starlette.requests import Request

from comesh.api.answers import FireAnswer, FireWish
from comesh.api.bodies import read_body
from comesh.api.errors import RefusedError, unknown_here
from comesh.api.limits import MAX_FIRINGS, MAX_REQUEST_ID
from comesh.core.ids import RoutineId
from comesh.queries.answers import Fired
from comesh.runtime.assembly import Assembly
from comesh.runtime.reading import unknown

SHAPE = 'the body is a JSON object such as {"request": "an id of your own"}, or nothing'


class Firing:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._open: dict[str, tuple[RoutineId, asyncio.Task[Fired]]] = {}
        """By request id: the same one that is asked again while it is open waits for the same answer."""

    async def fire(self, request: Request) -> FireAnswer:
        routine = RoutineId(request.path_params["routine"])
        wish = await _wish(request)
        known = self._assembly.deployment.routines
        if routine not in known:
            raise unknown_here(unknown("routine", routine, known))
        wished = secrets.token_hex(16) if wish.request is None else wish.request
        fired = await self._fire(routine, wished, f"{request.state.token_name} (token)")
        if fired.run is None:
            raise RefusedError(
                503,
                f"{routine} was not fired: {fired.why_not}. Ask again with the same request id: it is fired "
                "at most once",
                headers={"retry-after": "1"},
            )
        return FireAnswer(routine=routine, request=wished, run=fired.run)

    async def _fire(self, routine: RoutineId, request: str, by: str) -> Fired:
        of, task = self._open.get(request, (routine, None))
        if of != routine:
            raise RefusedError(409, f"the request id is in use for the routine {of}; take another one")
        if task is None:
            if len(self._open) >= MAX_FIRINGS:
                raise RefusedError(
                    503, f"{MAX_FIRINGS} firings wait for their answers here; ask again", headers=SOON
                )
            task = asyncio.create_task(self._ask(routine, request, by))
            self._open[request] = (routine, task)
            task.add_done_callback(lambda _: self._open.pop(request, None))
        return await asyncio.shield(task)  # who asked may go; the firing goes on

    async def _ask(self, routine: RoutineId, request: str, by: str) -> Fired:
        asked = {"ask": "fire", "routine": routine, "request": request, "by": by}
        return cast(Fired, await self._assembly.inquiries.answer(asked))


SOON = {"retry-after": "1"}


async def _wish(request: Request) -> FireWish:
    body = await read_body(request)
    if not body:
        return FireWish()
    try:
        wish = msgspec.json.decode(body, type=FireWish)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise RefusedError(400, f"{SHAPE} ({wrong})") from None
    if wish.request is not None and not (
        0 < len(wish.request) <= MAX_REQUEST_ID and wish.request.isascii() and wish.request.isprintable()
    ):
        raise RefusedError(
            400, f"a request id is 1 to {MAX_REQUEST_ID} printable ASCII characters; take a UUID"
        )
    return wish
