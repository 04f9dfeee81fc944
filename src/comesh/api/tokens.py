"""Tokens for HTTP: names with a role, as a file beside the keys. Tokens themselves are kept nowhere.

Rules: a token is 256 bits of randomness, so a plain hash of it cannot be turned back by trying, and only that
hash is written. The file belongs to its owner alone and is refused otherwise. All hashes are compared, each
in the same time whatever it holds.
"""

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from comesh.deployment.problems import did_you_mean
from comesh.queries.requests import Role

FILE: Final = "tokens.json"
MAX_TOKENS: Final = 256
MAX_FILE_BYTES: Final = 262_144
MAX_DAYS: Final = 36_500
DAY_MS: Final = 86_400_000.0
_PREFIX: Final = "comesh_"
_PERSON: Final = b"comesh api token"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What the file has of one token."""

    name: str
    role: Role
    hash: str
    made_ms: float
    expires_ms: float | None = None


class TokensError(Exception):
    """Tokens cannot be read or written; str() says where, what is wrong, and what to do."""


def create(directory: Path, name: str, role: Role, now_ms: float, days: int | None = None) -> str:
    """The new token, which is shown once."""
    if not _NAME.fullmatch(name):
        raise TokensError(f"{name!r} cannot name a token; take letters, digits, . _ -, at most 64 of them")
    if days is not None and not 1 <= days <= MAX_DAYS:
        raise TokensError(f"a token is valid for 1 to {MAX_DAYS} days, not for {days}")
    secret = _PREFIX + secrets.token_urlsafe(32)
    made = Token(
        name=name,
        role=role,
        hash=_hash(secret),
        made_ms=now_ms,
        expires_ms=None if days is None else now_ms + days * DAY_MS,
    )
    with _held(directory):
        known = read(directory)
        if any(one.name == name for one in known):
            raise TokensError(
                f"there is a token {name!r} already; remove it first with: comesh keys token {name} --remove"
            )
        if len(known) >= MAX_TOKENS:
            raise TokensError(f"there are {MAX_TOKENS} tokens already; remove those that nobody uses")
        _write(directory, (*known, made))
    return secret


def remove(directory: Path, name: str) -> None:
    with _held(directory):
        known = read(directory)
        left = tuple(one for one in known if one.name != name)
        if len(left) == len(known):
            hint = did_you_mean(name, [one.name for one in known]) or f"there are {len(known)}"
            raise TokensError(f"there is no token {name!r} in {directory / FILE}; {hint}")
        _write(directory, left)


def read(directory: Path) -> tuple[Token, ...]:
    """All of them; none where there is no file yet."""
    path = directory / FILE
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return ()
    except OSError as wrong:
        raise TokensError(f"{path} cannot be read ({wrong.strerror})") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise TokensError(f"{path} is open to others; keep it to its owner with: chmod 600 {path}")
    try:
        tokens = msgspec.json.decode(content, type=tuple[Token, ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        tokens = None
    if tokens is None or len(content) > MAX_FILE_BYTES or len(tokens) > MAX_TOKENS:
        raise TokensError(f"{path} is no list of tokens; remove it, and make them again: comesh keys token")
    return tokens


def match(tokens: tuple[Token, ...], shown: str, now_ms: float) -> Token | None:
    """Whose token it is; None: nobody's, or it has expired."""
    digest = _hash(shown)
    found: Token | None = None
    for one in tokens:
        if hmac.compare_digest(one.hash.encode(), digest.encode()):
            found = one
    return None if found is None or _expired(found, now_ms) else found


class KnownTokens:
    """The file as a node knows it: read anew when it has changed. One that cannot be read lets nobody in."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[Token, ...] = ()
        self.trouble = ""

    def who(self, shown: str, now_ms: float) -> Token | None:
        self.look()
        return match(self._tokens, shown, now_ms)

    def look(self) -> tuple[Token, ...]:
        seen = self._stamp()
        if seen is None or seen != self._seen:
            self._seen = seen
            try:
                self._tokens, self.trouble = read(self._directory), ""
            except TokensError as wrong:
                self._tokens, self.trouble = (), str(wrong)
        return self._tokens

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = (self._directory / FILE).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _expired(token: Token, now_ms: float) -> bool:
    return token.expires_ms is not None and now_ms >= token.expires_ms


def _hash(secret: str) -> str:
    return hashlib.blake2b(secret.encode(errors="replace"), digest_size=32, person=_PERSON).hexdigest()


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    """One command at a time changes the file."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as wrong:
        raise TokensError(
            f"{directory} cannot be used ({wrong.strerror}); --keys says where the node's keys are"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(directory: Path, tokens: tuple[Token, ...]) -> None:
    """The whole file or nothing; as root, for whoever owns the directory: the node must read it."""
    path = directory / FILE
    scratch = path.with_name(f".{FILE}.{os.getpid()}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            if os.geteuid() == 0:
                owner = directory.stat()
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            file.write(msgspec.json.format(msgspec.json.encode(tokens), indent=1) + b"\n")
            file.flush()
            os.fsync(descriptor)
        scratch.replace(path)
    except OSError as wrong:
        scratch.unlink(missing_ok=True)
        raise TokensError(f"{path} cannot be written ({wrong.strerror})") from None
