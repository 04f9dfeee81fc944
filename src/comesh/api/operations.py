"""Orders over HTTP: pause, maintenance, commands by hand, broken locks; and who did what.

An order is carried out once per request id, at whichever node it is asked. What no group answers may still be
carried out later: ask again with the same id, and be told the same.
"""

import asyncio
import secrets
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request

from comesh.api.bodies import read_as
from comesh.api.endpoints import BASE, Endpoint
from comesh.api.errors import RefusedError, unknown_here
from comesh.api.limits import BODY_S, MAX_FIRINGS, MAX_REQUEST_ID, MAX_RUNS, USUAL_RUNS
from comesh.api.tokens import Role
from comesh.core.values import Value
from comesh.queries.answers import Audit, Done
from comesh.runtime.assembly import Assembly
from comesh.runtime.operations import WAIT_S
from comesh.runtime.reading import UnknownError

ERRORS: Final = (400, 404, 408, 409, 413, 503)
SOON: Final = {"retry-after": "1"}
RequestId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REQUEST_ID, pattern="^[ -~]+$")]
LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_RUNS, "default": USUAL_RUNS}


class OrderWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    request: RequestId | None = None
    """An id of your own: the same one is carried out once."""


class MaintainWish(OrderWish, frozen=True, kw_only=True):
    on: bool = True
    """False: the maintenance is over."""


class CommandWish(OrderWish, frozen=True, kw_only=True):
    command: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    argument: Value | None = None


class UnlockWish(OrderWish, frozen=True, kw_only=True):
    run: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    """The holder that is meant: if another one holds the device by then, nothing is done."""


class OrderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    request: str
    run: str | None
    """The run that it started, if any."""
    groups: int
    """That carried it out."""


class Operating:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._open: set[asyncio.Task[Any]] = set()

    def endpoints(self) -> list[Endpoint]:
        return [
            self._order("pause_all", "pause", "Stop everything: no routine fires, what runs ends", OrderWish),
            self._order("resume_all", "resume", "Let all routines fire again", OrderWish),
            self._order("pause", "routines/{routine}/pause", "Stop a routine: it does not fire", OrderWish),
            self._order("resume", "routines/{routine}/resume", "Let a routine fire again", OrderWish),
            self._order(
                "maintain",
                "devices/{device}/maintain",
                "Put a device into maintenance, or back: routines leave it alone",
                MaintainWish,
            ),
            self._order(
                "set", "devices/{device}/command", "Command a device by hand, through its lock", CommandWish
            ),
            self._order(
                "unlock",
                "devices/{device}/unlock",
                "Break a device's lock: the run that holds it is stopped first",
                UnlockWish,
            ),
            Endpoint(
                name="audit",
                path=f"{BASE}/audit",
                summary="Who did what, newest first, from the logs of all groups",
                handler=self.audit,
                answer=Audit,
                query={"limit": LIMIT},
                errors=(400,),
            ),
        ]

    def _order(self, name: str, path: str, summary: str, wish: type[OrderWish]) -> Endpoint:
        async def handler(request: Request) -> OrderAnswer:
            given = await read_as(request, wish)
            about = {key: value for key, value in msgspec.to_builtins(given).items() if value is not None}
            asked = {"ask": name.removesuffix("_all"), **about, **request.path_params, "by": who(request)}
            return await self._carry_out(asked)

        return Endpoint(
            name=name,
            method="POST",
            path=f"{BASE}/{path}",
            summary=summary,
            handler=handler,
            role=Role.OPERATOR,
            answer=OrderAnswer,
            body=wish,
            errors=ERRORS,
            within_s=WAIT_S + BODY_S,
        )

    async def _carry_out(self, asked: dict[str, Any]) -> OrderAnswer:
        if len(self._open) >= MAX_FIRINGS:
            raise RefusedError(
                503, f"{MAX_FIRINGS} orders wait for their answers here; ask again", headers=SOON
            )
        asked.setdefault("request", secrets.token_hex(16))
        task = asyncio.create_task(self._assembly.inquiries.operations.answer(asked))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            done = await asyncio.shield(task)  # who asked may go; the order goes on
        except UnknownError as wrong:
            raise unknown_here(wrong) from None
        except ValueError as wrong:
            raise RefusedError(400, str(wrong)) from None
        assert isinstance(done, Done)
        if done.why_not:
            raise _refusal(done)
        return OrderAnswer(request=done.request, run=done.run, groups=done.groups)

    async def audit(self, request: Request) -> Audit:
        text = request.query_params.get("limit", str(USUAL_RUNS))
        if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MAX_RUNS):
            raise RefusedError(400, f"limit is a number from 1 to {MAX_RUNS}")
        log = await self._assembly.inquiries.operations.audit()
        return Audit(entries=log.entries[: int(text)], unheard=log.unheard)


def who(request: Request) -> str:
    """Whose token was shown, for the audit log."""
    return f"{request.state.token_name} (token)"


def _refusal(done: Done) -> RefusedError:
    failed = "; ".join(f"{group}: {why}" for group, why in sorted(done.failed.items()))
    what = done.why_not + (f": {failed}" if failed else "")
    if done.unanswered:
        return RefusedError(503, f"{what}. Ask again with the request id {done.request}", headers=SOON)
    return RefusedError(409, what)
