"""What is answered when something cannot be: a status, and in plain words what happened and what to do."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from comesh.api.answers import Error
from comesh.runtime.reading import UnknownError

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
JSON = "application/json"
MEANT = "did you mean '"
"""How a hint begins that is one name."""


class RefusedError(Exception):
    def __init__(
        self,
        status: int,
        error: str,
        *,
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        problems: tuple[str, ...] = (),
    ) -> None:
        super().__init__(error)
        self.status = status
        self.error = Error(error=error, did_you_mean=hint, problems=problems)
        self.headers = dict(headers or {})


def unknown_here(wrong: UnknownError) -> RefusedError:
    meant = wrong.hint.removeprefix(MEANT)
    return RefusedError(404, str(wrong), hint="" if meant == wrong.hint else meant.rstrip("'?"))


def as_json(answer: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(answer), status, headers={**HEADERS, **(headers or {})}, media_type=JSON
    )


def as_error(refused: RefusedError) -> Response:
    return as_json(refused.error, refused.status, refused.headers)
