"""The table of requests: finds the function that answers each, and keeps its bounds. All adapters ask here.

Rules:
1. Every request has exactly one handler, and every answer its time. What goes wrong is a `QueryError`.
2. An order has its id before anything happens, and errors say it. An equal order with the id of one that is
   open joins it; another order with that id is refused.
3. An order goes on when its asker leaves.
"""

import asyncio
import traceback
from typing import Any, Final, TypeVar, cast

import msgspec

from comesh.queries import changes, orders, reads
from comesh.queries.answers import (
    ConflictError,
    InternalError,
    MalformedError,
    QueryError,
    TooSlowError,
    UnavailableError,
)
from comesh.queries.mesh import IN_USE, ORDER_HANDLERS, QUERY_HANDLERS, Asker, Mesh
from comesh.queries.requests import MAX_REQUEST_ID, Order, Query, name_of

MAX_OPEN_ORDERS: Final = 64
"""Orders that wait for their answers at once."""
BAD_ID: Final = f"a request id is 1 to {MAX_REQUEST_ID} printable ASCII characters; take a UUID"
HANDLER_MODULES: Final = (reads, orders, changes)
"""What declares handlers: imported, so that all are there."""

A = TypeVar("A")


class Table:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self._open: dict[str, tuple[Order[Any], asyncio.Task[Any]]] = {}

    async def answer(self, query: Query[A], asker: Asker) -> A:
        """The answer, in time. QueryError: why there is none."""
        asker.check(query.role)
        try:
            async with asyncio.timeout(query.within_s):
                if isinstance(query, Order):
                    return cast(A, await self._order(query, asker))
                return cast(A, await QUERY_HANDLERS[type(query)](query, self.mesh))
        except TimeoutError:
            raise TooSlowError(
                f"no answer within {query.within_s:.0f} s; is this node very busy? Ask another one"
            ) from None
        except QueryError:
            raise
        except Exception as wrong:
            told = "".join(traceback.format_exception(wrong))
            self.mesh.view.error(f"the request {name_of(type(query))} broke: {told}")
            raise InternalError(
                "this node has a fault and could not answer; its log has more, please report it"
            ) from wrong

    async def _order(self, order: Order[Any], asker: Asker) -> Any:
        request = self.mesh.view.new_request() if order.request is None else order.request
        order = msgspec.structs.replace(order, request=request)
        if not (0 < len(request) <= MAX_REQUEST_ID and request.isascii() and request.isprintable()):
            raise MalformedError(BAD_ID)
        known, task = self._open.get(request, (order, None))
        if known != order:
            raise ConflictError(IN_USE, request=request)
        if task is None:
            if len(self._open) >= MAX_OPEN_ORDERS:
                raise UnavailableError(
                    f"{MAX_OPEN_ORDERS} orders wait for their answers here; ask again", request=request
                )
            task = asyncio.create_task(self._carry_out(order, asker))
            self._open[request] = (order, task)
            task.add_done_callback(lambda _: self._open.pop(request))
        return await asyncio.shield(task)

    async def _carry_out(self, order: Order[Any], asker: Asker) -> Any:
        try:
            return await ORDER_HANDLERS[type(order)](order, self.mesh, asker)
        except QueryError as wrong:
            wrong.request = order.request or ""
            raise
