"""Versions of the document over HTTP: which there are, what a new one would change, and applying it.

A version is applied once per request id, at whichever node it is asked. Which group works by it by now is in
`GET /api/v1/groups`.
"""

import asyncio
import secrets
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request

from comesh.api.bodies import read_as
from comesh.api.endpoints import BASE, Endpoint
from comesh.api.errors import RefusedError, unknown_here
from comesh.api.limits import BODY_S, MAX_FIRINGS
from comesh.api.operations import SOON, RequestId, who
from comesh.api.tokens import Role
from comesh.deployment.tree import MAX_BYTES
from comesh.queries.answers import ApplyDone, ChainText, Preview, Reaching, Versions, VersionText
from comesh.runtime.applying import MAX_VERSION
from comesh.runtime.assembly import Assembly
from comesh.runtime.operations import WAIT_S
from comesh.runtime.reading import NotReachedError, UnknownError

MAX_TEXT_BYTES: Final = 2 * MAX_BYTES + 4096
"""Of a body with a document in it, each of its characters in two at most."""
ERRORS: Final = (400, 408, 413, 503)


class PreviewWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    """The document, as YAML."""


class ApplyWish(PreviewWish, frozen=True, kw_only=True):
    base: Annotated[int, msgspec.Meta(ge=1, le=MAX_VERSION)]
    """The version that it was compared with: if another one came since, it is refused."""
    why: Annotated[str, msgspec.Meta(max_length=500)] = ""
    now: bool = False
    """Have all groups hand off at once."""
    request: RequestId | None = None
    """An id of your own: the same one is applied once."""


class ApplyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    request: str
    version: int
    """That the document became."""


class Changing:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._open: set[asyncio.Task[Any]] = set()

    def endpoints(self) -> list[Endpoint]:
        path = f"{BASE}/versions"
        apply = "Have the mesh run by another document; refused where the base is not the newest version"
        return [
            Endpoint(
                name="versions",
                path=path,
                summary="All versions of the document: who applied which, and how many groups work by it",
                handler=self.versions,
                answer=Versions,
            ),
            Endpoint(
                name="version",
                path=f"{path}/{{version}}",
                summary="The document of a version",
                handler=self.version,
                answer=VersionText,
                errors=(404,),
            ),
            Endpoint(
                name="chain",
                path=f"{BASE}/chain",
                summary="All versions in one text, which a new node begins from",
                handler=self.chain,
                answer=ChainText,
            ),
            Endpoint(
                name="preview",
                method="POST",
                path=f"{BASE}/preview",
                summary="What a document would change, and what follows",
                handler=self.preview,
                answer=Preview,
                body=PreviewWish,
                errors=ERRORS,
                within_s=WAIT_S + BODY_S,
            ),
            Endpoint(
                name="apply",
                method="POST",
                path=path,
                summary=apply,
                handler=self.apply,
                role=Role.OPERATOR,
                answer=ApplyAnswer,
                body=ApplyWish,
                errors=(*ERRORS, 409, 422),
                within_s=WAIT_S + BODY_S,
            ),
            Endpoint(
                name="reach",
                method="POST",
                path=f"{path}/{{version}}/reach",
                summary="Have all groups that work by an older version hand off to this one now",
                handler=self.reach,
                role=Role.OPERATOR,
                answer=Reaching,
                errors=(404,),
            ),
        ]

    async def versions(self, request: Request) -> Versions:
        return await self._assembly.inquiries.applying.versions()

    async def version(self, request: Request) -> VersionText:
        try:
            return self._assembly.inquiries.applying.text(_number(request))
        except UnknownError as wrong:
            raise unknown_here(wrong) from None

    async def chain(self, request: Request) -> ChainText:
        return self._assembly.inquiries.applying.chain()

    async def reach(self, request: Request) -> Reaching:
        number = (await self.version(request)).version
        return self._assembly.inquiries.applying.reach(number, who(request))

    async def preview(self, request: Request) -> Preview:
        wish = await read_as(request, PreviewWish, MAX_TEXT_BYTES)
        try:
            return await self._assembly.inquiries.applying.preview(wish.text)
        except NotReachedError as wrong:
            raise RefusedError(503, str(wrong), headers=SOON) from None

    async def apply(self, request: Request) -> ApplyAnswer:
        wish = await read_as(request, ApplyWish, MAX_TEXT_BYTES)
        if len(self._open) >= MAX_FIRINGS:
            raise RefusedError(503, f"{MAX_FIRINGS} others wait for their answers here", headers=SOON)
        applying, by = self._assembly.inquiries.applying, who(request)
        wished = wish.request or secrets.token_hex(16)
        task = asyncio.create_task(applying.apply(wish.base, wish.text, request=wished, by=by, why=wish.why))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        done = await asyncio.shield(task)  # who asked may go; it is applied nevertheless
        if done.version is None:
            raise _refusal(done)
        if wish.now:
            applying.reach(done.version, by)
        return ApplyAnswer(request=done.request, version=done.version)


def _refusal(done: ApplyDone) -> RefusedError:
    if done.problems:
        return RefusedError(422, done.why_not, problems=done.problems)
    if done.stale:
        return RefusedError(409, done.why_not)
    return RefusedError(503, f"{done.why_not}. Request id: {done.request}", headers=SOON)


def _number(request: Request) -> int:
    text = request.path_params["version"]
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise RefusedError(404, "a version is a number")
    return int(text)
