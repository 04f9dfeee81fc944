"""Asks any node by its HTTP interface, with the requests that `client.Client` gives a node on this machine.

A node is known by its certificate, which an authority of the deployment has signed, and which is not on the
list of revoked ones beside the keys; the token goes to no other. Beyond this machine only with TLS.
"""

import http.client
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from comesh.queries.answers import ERRORS, Error, Lost, News, raised
from comesh.queries.requests import BASE, Query, answer_type, name_of, path_names
from comesh.runtime.client import MARGIN_S, NoAnswerError
from comesh.runtime.credentials import CredentialsError
from comesh.runtime.options import is_loopback
from comesh.runtime.revocation import is_revoked

TOKEN: Final = "COMESH_TOKEN"
SILENT_S: Final = 60.0
"""A stream of events says something at least every 15 s."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_NODE_URI: Final = "comesh:node:"
A = TypeVar("A")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP interface of a node."""

    host: str
    port: int
    tls: bool
    node: str | None = None
    """The node that must be there; None: any node of the deployment."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def read_token(file: Path | None, *, operator: bool = False) -> str:
    """From the file, else from the environment. operator: no other role will do."""
    try:
        token = (os.environ.get(TOKEN, "") if file is None else file.read_text()).strip()
    except (OSError, UnicodeDecodeError) as wrong:
        raise NoAnswerError(f"the token cannot be read from {file} ({wrong})") from None
    if not token:
        where = f"{TOKEN} is not set" if file is None else f"{file} is empty"
        whose, role = ("an operator's", " --role operator") if operator else ("a", "")
        raise NoAnswerError(
            f"{whose} token is needed to ask over HTTP, and {where}. Make one "
            f"where the node's keys are with `comesh keys token NAME{role}`, and give "
            f"it as {TOKEN}=TOKEN, or with --token-file FILE"
        )
    if not (token.isascii() and token.isprintable()):
        raise NoAnswerError("the token has characters that no token has; was it copied as a whole?")
    return token


class RemoteClient:
    def __init__(self, target: Target, token: str, keys: Path) -> None:
        if not target.tls and not is_loopback(target.host):
            raise NoAnswerError(
                f"{target} is asked without TLS, so everybody on the way could read the token; write https://"
            )
        self._target = target
        self._token = token
        self._keys = keys
        self._context = _context(keys) if target.tls else None
        self._open: http.client.HTTPConnection | None = None

    def __enter__(self) -> "RemoteClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def ask(self, query: Query[A]) -> A:
        route, kind = query.http, type(query)
        if route is None:
            raise NoAnswerError(
                f"{name_of(kind)!r} cannot be asked over HTTP; ask on the machine of the node"
            )
        named = path_names(kind)
        path = BASE + route.path.format(**{name: quote(str(getattr(query, name)), safe="") for name in named})
        rest = {
            field.name: value
            for field in msgspec.structs.fields(kind)
            if field.name not in named and (value := getattr(query, field.name)) != field.default
        }
        body = None
        if route.method == "POST":
            body = msgspec.json.encode(rest)
        elif rest:
            path += "?" + urlencode(rest)
        response = self._request(route.method, path, body, within_s=query.within_s + MARGIN_S)
        answer: A = self._decoded(self._body(response), answer_type(kind))
        return answer

    def watch(self) -> Iterator[News | Lost]:
        response = self._request("GET", f"{BASE}/events", within_s=SILENT_S)
        while line := self._line(response):
            name, _, value = line.rstrip(b"\r\n").partition(b": ")
            if name == b"data":
                news: News | Lost = self._decoded(value, News | Lost)
                yield news

    # -- inside ------------------------------------------------------------------------------------------

    def _request(
        self, method: str, path: str, body: bytes | None = None, *, within_s: float
    ) -> http.client.HTTPResponse:
        self.close()
        connection = self._open = self._connection(within_s)
        headers = {"authorization": f"Bearer {self._token}", "accept": "*/*"}
        try:
            connection.connect()
            self._check_node(connection)
            connection.request(method, path, body, headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as wrong:
            self._not_reached(wrong)
        if response.status != http.HTTPStatus.OK:
            self._refused(response.status, self._body(response))
        return response

    def _connection(self, within_s: float) -> http.client.HTTPConnection:
        target = self._target
        if self._context is None:
            return http.client.HTTPConnection(target.host, target.port, timeout=within_s)
        return http.client.HTTPSConnection(target.host, target.port, timeout=within_s, context=self._context)

    def _check_node(self, connection: http.client.HTTPConnection) -> None:
        """Before the token is sent."""
        wanted = self._target.node
        if not isinstance(connection.sock, ssl.SSLSocket):
            return
        try:
            if is_revoked(self._keys, connection.sock.getpeercert(binary_form=True) or b""):
                raise NoAnswerError(f"{self._target} shows a revoked certificate: it is told nothing")
        except CredentialsError as wrong:
            raise NoAnswerError(str(wrong)) from None
        if wanted is None:
            return
        shown: dict[str, Any] = dict(connection.sock.getpeercert() or {})
        found = [str(value) for kind, value in shown.get("subjectAltName", ()) if kind == "URI"]
        if _NODE_URI + wanted not in found:
            there = found[0].removeprefix(_NODE_URI) if found else "no node"
            raise NoAnswerError(
                f"{self._target} is {there}, not {wanted}; is the address of {wanted} right in the document?"
            )

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read(MAX_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as wrong:
            self._not_reached(wrong)

    def _line(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.readline()
        except (OSError, http.client.HTTPException) as wrong:
            self._not_reached(wrong)

    def _decoded(self, body: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise NoAnswerError(
                f"{self._target} says what this command does not understand ({wrong}): is it a node, and "
                "this the comesh of its version?"
            ) from None

    def _refused(self, status: int, body: bytes) -> NoReturn:
        try:
            error = msgspec.json.decode(body, type=Error)
        except (msgspec.DecodeError, UnicodeDecodeError):
            error = Error(error=f"status {status}: is this the HTTP interface of a node?")
        if error.kind in ERRORS:
            raise raised(error)
        raise NoAnswerError(f"{self._target}: {error.error}")

    def _not_reached(self, wrong: Exception) -> NoReturn:
        raise NoAnswerError(_why(self._target, self._keys, wrong)) from wrong


def _context(keys: Path) -> ssl.SSLContext:
    """Trusts the authority of the deployment, and nobody else. Nodes are known by name, not by address."""
    authority = keys / "authority.crt"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    try:
        context.load_verify_locations(authority)
    except FileNotFoundError:
        raise NoAnswerError(
            f"{authority} is missing, so nobody can tell a node of this deployment from others; copy it from "
            "where it was made, or say where it is with --keys"
        ) from None
    except (OSError, ssl.SSLError) as wrong:
        raise NoAnswerError(f"{authority} cannot be used ({wrong})") from None
    return context


def _why(target: Target, keys: Path, wrong: Exception) -> str:
    match wrong:
        case ssl.SSLCertVerificationError(verify_code=9 | 10):
            return f"the certificate of {target} is not valid now: renew it, or set the clock of this machine"
        case ssl.SSLCertVerificationError():
            return (
                f"the certificate of {target} is not of this deployment: {keys / 'authority.crt'} did not "
                f"sign it ({wrong.verify_message}). Is it another mesh, or are this one's keys elsewhere "
                "(--keys)?"
            )
        case ssl.SSLError():
            return (
                f"{target} does not speak TLS ({wrong.reason}); is the port right? Without TLS it is http://"
            )
        case TimeoutError():
            return f"{target} did not answer in time; is its machine on, and reached from here?"
        case ConnectionRefusedError():
            return f"nothing listens at {target}; does the node run, with its HTTP interface there (--api)?"
        case http.client.HTTPException() | ConnectionError():
            return f"{target} broke the connection off ({wrong}); if it has TLS, write https://"
        case OSError():
            return f"{target} is not reached: {wrong.strerror or wrong}"
        case _:
            return f"{target} is not reached: {wrong}"
