"""Reading the body of a request, with a bound on its length and on the time it may take."""

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import Request

from comesh.api.errors import RefusedError
from comesh.api.limits import BODY_S, MAX_BODY_BYTES

_T = TypeVar("_T")


async def read_as(request: Request, kind: type[_T], max_bytes: int = MAX_BODY_BYTES) -> _T:
    """What the body says; an empty one says nothing."""
    try:
        return msgspec.json.decode(await read_body(request, max_bytes) or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise RefusedError(400, f"the body is not as /openapi.json has it ({wrong})") from None


async def read_body(request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """All of it, if it is not too long and comes in time."""
    too_long = RefusedError(
        413, f"the body is longer than {max_bytes} bytes", headers={"connection": "close"}
    )
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
        raise RefusedError(
            408, f"the body did not come within {BODY_S:.0f} s", headers={"connection": "close"}
        ) from None
    return bytes(body)
