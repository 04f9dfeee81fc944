"""Whether a node's HTTP interface may open, and how. A node goes on without it, and its log says why.

Beyond this machine only with TLS: tokens would be read on the way otherwise.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from comesh.runtime.options import OWN_CERTIFICATE, NodeOptions, is_loopback

if TYPE_CHECKING:
    from comesh.api.server import Server
    from comesh.runtime.assembly import Assembly

NEEDED: Final = ("starlette", "uvicorn", "h11")
NOT_INSTALLED: Final = (
    "no HTTP interface: it is not installed here. `pip install 'comesh[web]'` brings it; --api off says that "
    "you do not want it"
)
NEEDS_TLS: Final = (
    "no HTTP interface: {at} can be reached from other machines, and that needs TLS. Give --api-cert FILE "
    "and --api-key FILE, or --api-cert own for this node's own certificate, or keep it on this machine with "
    "--api 127.0.0.1:{port}"
)


class CannotOpenError(Exception):
    """str() says why, and what to do."""


def installed() -> bool:
    return all(find_spec(name) is not None for name in NEEDED)


def certificate(options: NodeOptions) -> tuple[Path, Path] | None:
    """The files of certificate and key; None: without TLS."""
    (host, port), cert, key = options.api or ("", 0), options.api_cert, options.api_key
    if cert == OWN_CERTIFICATE:
        if key is not None:
            raise CannotOpenError("no HTTP interface: --api-cert own brings its key; leave --api-key out")
        return options.keys / f"{options.name}.crt", options.keys / f"{options.name}.key"
    if (cert is None) != (key is None):
        raise CannotOpenError("no HTTP interface: --api-cert and --api-key belong together; give both files")
    if cert is not None and key is not None:
        return Path(cert), Path(key)
    if not is_loopback(host):
        raise CannotOpenError(NEEDS_TLS.format(at=f"{host}:{port}", port=port))
    return None


class Api:
    """The interface of one node, as the process of the node opens and closes it."""

    def __init__(self, assembly: "Assembly") -> None:
        self._assembly = assembly
        self._server: Server | None = None

    @property
    def port(self) -> int | None:
        """None: it is not open."""
        return None if self._server is None else self._server.port

    async def open(self) -> None:
        options, log = self._assembly.options, self._assembly.log
        if options.api is None:
            return
        try:
            files = certificate(options)
            tls = None if files is None else _tls(*files)
            server: Server = _server().Server(self._assembly, options.api, tls)
            await server.open()
            self._server = server
            if files is not None and options.api_cert == OWN_CERTIFICATE:
                self._assembly.trust.on_credentials.append(lambda: self._renew(tls, *files))
        except CannotOpenError as wrong:
            log.error(str(wrong))
        except OSError as wrong:
            host, port = options.api
            why = f"cannot listen on {host}:{port} ({wrong.strerror})"
            log.error(f"no HTTP interface: {why}; choose another address with --api")

    def _renew(self, tls: Any, cert: Path, key: Path) -> None:
        """The node has new keys: who connects from now on sees them."""
        try:
            _load(tls, cert, key)
        except CannotOpenError as wrong:
            self._assembly.log.error(str(wrong))

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()


def api_of(assembly: "Assembly") -> Api | None:
    """None: it is not installed. What it needs is loaded here, before the node has anything to do."""
    if not load():
        assembly.log.warn(NOT_INSTALLED)
        return None
    return Api(assembly)


def load() -> bool:
    """False: it is not installed."""
    if installed():
        _server()
        return True
    return False


def _server() -> Any:
    """Nodes leave Python's own ssl out; uvicorn wants to import it, also where it is not used."""
    if sys.modules.get("ssl", sys) is None:
        del sys.modules["ssl"]
    return import_module("comesh.api.server")


def _tls(cert: Path, key: Path) -> Any:
    ssl = import_module("ssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, cert, key)
    return context


def _load(context: Any, cert: Path, key: Path) -> None:
    ssl = import_module("ssl")
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as wrong:
        raise CannotOpenError(
            f"no HTTP interface: {cert} and {key} cannot be used ({wrong.strerror or wrong}); both are PEM "
            "files, and the key has no password"
        ) from None
