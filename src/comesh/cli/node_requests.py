"""Sends one request to the HTTP interface of a node that may be on another machine."""

import http.client
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from comesh.runtime.credentials import CredentialsError
from comesh.runtime.options import is_loopback
from comesh.runtime.revocation import is_revoked

MAX_ANSWER_BYTES: Final = 2_000_000
WITHIN_S: Final = 30.0
PORT: Final = 8460


class NoNodeError(Exception):
    """Raised when the node cannot be asked, or refuses; str() says why, and what to do."""


def post(
    at: str, path: str, body: object, *, bearer: str = "", trusted: Path | None = None, any_name: bool = False
) -> Any:
    """Posts a JSON body, and returns the JSON of the answer.

    trusted: who must have signed its certificate; None: anybody, for what needs no protection on its way.
    any_name: a node's certificate has its name in the document, not the host it is reached by.
    """
    connection = _connection(at, trusted, any_name=any_name, secret=bool(bearer))
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {bearer}"} if bearer else {})
    try:
        connection.connect()
        _refuse_revoked(at, connection.sock, trusted if any_name else None)
        connection.request("POST", path, msgspec.json.encode(body), headers)
        answer = connection.getresponse()
        content = answer.read(MAX_ANSWER_BYTES + 1)
    except ssl.SSLCertVerificationError as wrong:
        raise NoNodeError(
            f"{at} shows a certificate that is not trusted here ({wrong.verify_message})"
        ) from None
    except ssl.SSLError:
        raise NoNodeError(f"{at} does not speak TLS; is the port right? Without TLS write http://") from None
    except (OSError, http.client.HTTPException) as wrong:
        raise NoNodeError(f"{at} does not answer ({wrong}); is this its HTTP interface?") from None
    finally:
        connection.close()
    try:
        said = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise NoNodeError(f"{at} answers what no node would; is this its HTTP interface?") from None
    if answer.status != http.HTTPStatus.OK:
        why = said.get("error", "") if isinstance(said, dict) else ""
        raise NoNodeError(f"{at} refuses ({answer.status}): {why}")
    return said


def _refuse_revoked(at: str, sock: object, authority: Path | None) -> None:
    """Refuses a revoked certificate: a node may show any other one of the authority."""
    if authority is None or not isinstance(sock, ssl.SSLSocket):
        return
    try:
        if is_revoked(authority.parent, sock.getpeercert(binary_form=True) or b""):
            raise NoNodeError(f"{at} shows a revoked certificate: it is told nothing")
    except CredentialsError as wrong:
        raise NoNodeError(str(wrong)) from None


def _connection(at: str, trusted: Path | None, *, any_name: bool, secret: bool) -> http.client.HTTPConnection:
    parts = urlsplit(at if "://" in at else f"https://{at}")
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port = None, 0
    if parts.scheme not in ("http", "https") or not host or parts.path.strip("/"):
        raise NoNodeError(
            f"{at!r} is not the address of a node; write https://HOST:PORT, such as https://hall-pi:8460"
        )
    if parts.scheme == "http" and secret and not is_loopback(host):
        raise NoNodeError(f"{at} would be told a token that others on the way can read; use https://")
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=WITHIN_S)
    if trusted is None:
        context = ssl._create_unverified_context()
    else:
        try:
            context = ssl.create_default_context(cafile=trusted)
        except (OSError, ssl.SSLError) as wrong:
            raise NoNodeError(f"{trusted} cannot be used ({wrong}); it holds certificates, as PEM") from None
        context.check_hostname = not any_name
    return http.client.HTTPSConnection(host, port, timeout=WITHIN_S, context=context)
