"""Invitations: sealed bundles that wait here for new machines. An operator brings one, its token takes it.

Rules: this node cannot read what it keeps. Whoever asks with a wrong proof is not told whether there is such
an invitation, and after some wrong proofs there is none. They lie in the data directory until they end.
"""

import asyncio
import hmac
import re
from pathlib import Path
from typing import Annotated, Final

import msgspec
from starlette.requests import Request

from comesh.api.edge import Endpoint, read_as
from comesh.core.ids import NodeId
from comesh.queries.answers import ForbiddenError, RefusedError, UnavailableError
from comesh.queries.mesh import misnamed
from comesh.queries.requests import BASE, Role
from comesh.runtime.assembly import Assembly
from comesh.runtime.credentials import CredentialsError, make_directory, write_file
from comesh.runtime.invitation import MAX_SEALED_BYTES, verifier_of

DIRECTORY: Final = "invitations"
MAX_INVITATIONS: Final = 32
MAX_HOURS: Final = 720
MAX_WRONG: Final = 10
"""Proofs; then the invitation is gone."""
MAX_INVITATION_BYTES: Final = MAX_SEALED_BYTES * 4 // 3 + 1024
"""As the body of a request, and as a file."""
MAX_LINE_BYTES: Final = 1024
HOUR_MS: Final = 3_600_000.0
REFUSED: Final = (
    "there is no such invitation here, it was taken or has ended, or the token is not right; make a new one "
    "with `comesh keys invite`"
)
_ID: Final = re.compile(r"[0-9a-f]{24}")
_NOBODY: Final = "0" * 64


Hex64 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class InvitationWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{24}$")]
    node: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    """For whom; the document has it."""
    verifier: Hex64
    """The SHA-256 of the proof that takes it."""
    hours: Annotated[float, msgspec.Meta(gt=0, le=MAX_HOURS)]
    sealed: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SEALED_BYTES * 4 // 3 + 4)]
    """The bundle, encrypted, in base64."""


class InvitationMade(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    node: NodeId
    ends_ms: float


class TakeWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    proof: Hex64


class InvitationTaken(msgspec.Struct, frozen=True, kw_only=True):
    node: NodeId
    sealed: str


class Waiting(msgspec.Struct, kw_only=True):
    """The first line of a file; the sealed bundle follows."""

    node: NodeId
    verifier: str
    ends_ms: float
    wrong: int = 0
    """Proofs since this process began."""


class Invitations:
    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._directory = assembly.options.data / DIRECTORY
        self._one_at_a_time = asyncio.Lock()
        self._known: dict[str, Waiting] | None = None

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                name="invite",
                method="POST",
                path=f"{BASE}/invitations",
                summary="Keep a sealed bundle for a new machine, which takes it once",
                handler=self.make,
                role=Role.OPERATOR,
                answer=InvitationMade,
                body=InvitationWish,
                errors=(400, 404, 408, 409, 413, 503),
            ),
            Endpoint(
                name="take_invitation",
                method="POST",
                path=f"{BASE}/invitations/{{invitation}}/take",
                summary="Take the sealed bundle, with the proof that its token gives",
                handler=self.take,
                role=None,
                answer=InvitationTaken,
                body=TakeWish,
                errors=(400, 403, 408, 413, 503),
            ),
        ]

    async def make(self, request: Request) -> InvitationMade:
        wish = await read_as(request, InvitationWish, MAX_INVITATION_BYTES)
        if wish.node not in self._assembly.deployment.nodes:
            what = f"the mesh's document has no node '{wish.node}' (a new node comes with: comesh apply FILE)"
            raise misnamed(what, wish.node, self._assembly.deployment.nodes)
        ends_ms = self._now_ms() + wish.hours * HOUR_MS
        waiting = Waiting(node=NodeId(wish.node), verifier=wish.verifier, ends_ms=ends_ms)
        async with self._one_at_a_time:
            await asyncio.to_thread(self._put, wish.id, waiting, wish.sealed)
        self._assembly.log.say(f"an invitation of {waiting.node} waits here")
        return InvitationMade(id=wish.id, node=waiting.node, ends_ms=ends_ms)

    async def take(self, request: Request) -> InvitationTaken:
        wish = await read_as(request, TakeWish)
        name: str = request.path_params["invitation"]
        async with self._one_at_a_time:
            taken = await asyncio.to_thread(self._take, name, wish.proof)
        if taken is None:
            self._assembly.host.counters["invitations refused"] += 1
            raise ForbiddenError(REFUSED)
        self._assembly.host.counters["invitations taken"] += 1
        where = "" if request.client is None else f" by {request.client.host}"
        self._assembly.log.say(f"the invitation of {taken.node} was taken{where}")
        return taken

    def _now_ms(self) -> float:
        return self._assembly.clock.wall_ms()

    # -- files, in a thread, one request at a time -------------------------------------------------------

    def _put(self, name: str, waiting: Waiting, sealed: str) -> None:
        known = self._waiting()
        if name in known:
            raise RefusedError("there is an invitation with this id already; draw another one")
        if len(known) >= MAX_INVITATIONS:
            raise RefusedError(
                f"{MAX_INVITATIONS} invitations wait here; let some be taken or end, or ask another node",
            )
        try:
            make_directory(self._directory)
            content = msgspec.json.encode(waiting) + b"\n" + sealed.encode()
            write_file(self._directory / name, content, 0o600)
        except CredentialsError as wrong:
            raise UnavailableError(f"{wrong}; ask another node") from None
        known[name] = waiting

    def _take(self, name: str, proof: str) -> InvitationTaken | None:
        known = self._waiting()
        waiting = known.get(name)
        is_right = hmac.compare_digest(verifier_of(proof), _NOBODY if waiting is None else waiting.verifier)
        if waiting is None:
            return None
        if not is_right:
            waiting.wrong += 1
            if waiting.wrong >= MAX_WRONG:
                self._remove(name)
                self._assembly.log.warn(
                    f"the invitation of {waiting.node} is removed after {MAX_WRONG} wrong proofs"
                )
            return None
        try:
            sealed = (self._directory / name).read_bytes().partition(b"\n")[2].decode()
        except (OSError, UnicodeError) as wrong:
            raise UnavailableError(f"the invitation cannot be read ({wrong}); make a new one") from None
        self._remove(name)
        return InvitationTaken(node=waiting.node, sealed=sealed)

    def _waiting(self) -> dict[str, Waiting]:
        """All that can still be taken. Files are looked at once, so that strangers cost no reading."""
        if self._known is None:
            paths = sorted(self._directory.iterdir()) if self._directory.is_dir() else []
            read = {path.name: _read(path) for path in paths if _ID.fullmatch(path.name)}
            self._known = {name: one for name, one in read.items() if one is not None}
        now_ms = self._now_ms()
        for name in [name for name, one in self._known.items() if one.ends_ms <= now_ms]:
            self._remove(name)
        return self._known

    def _remove(self, name: str) -> None:
        if self._known is not None:
            self._known.pop(name, None)
        (self._directory / name).unlink(missing_ok=True)


def _read(path: Path) -> Waiting | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.readline(MAX_LINE_BYTES), type=Waiting)
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
