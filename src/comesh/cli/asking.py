"""Options that choose the node to ask, and the client for it: a node on this machine, or any node over HTTP.

    @asking
    def nodes(client: AnyClient, name: str | None = None, *, json: bool = False) -> None: ...

gives the command the options --data, --node, --file, --keys and --token-file, and the client that they mean.
A node that does not answer ends the command with 2, one that says no with 1.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, overload

import typer

from comesh.cli.completion import complete_nodes
from comesh.cli.nodes_here import WHICH_NODE, DataDirectory, clients_here, name_of, places
from comesh.cli.terminal import Exit, err, fail, plain, print_json
from comesh.deployment.problems import did_you_mean
from comesh.queries.answers import QueryError
from comesh.runtime.client import AnyClient, socket_of
from comesh.runtime.options import DEFAULT_API, is_loopback, parse_address

USUAL_FILE: Final = Path("deployment.yaml")
API_PORT: Final = parse_address(DEFAULT_API)[1]

_NodeName = Annotated[
    str | None,
    typer.Option(
        "--node",
        metavar="NODE|HOST:PORT",
        help="A node on this machine, https://HOST:PORT of any node's HTTP interface, or a node with an "
        "address in the document.  [default: the first one here that answers]",
        rich_help_panel=WHICH_NODE,
        autocompletion=complete_nodes,
    ),
]
_File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Document with the addresses of nodes.  [default: deployment.yaml, or the only .yaml here]",
        rich_help_panel=WHICH_NODE,
    ),
]
_Keys = Annotated[
    Path,
    typer.Option(
        "--keys",
        metavar="DIR",
        help="Directory with authority.crt, to ask nodes over HTTP.",
        rich_help_panel=WHICH_NODE,
    ),
]
_TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File with the token for HTTP.  [default: $COMESH_TOKEN]",
        rich_help_panel=WHICH_NODE,
    ),
]
_OPTIONS: Final = {
    "data": (DataDirectory, None),
    "node": (_NodeName, None),
    "file": (_File, None),
    "keys": (_Keys, Path("keys")),
    "token_file": (_TokenFile, None),
}


Command = Callable[..., None]
Otherwise = Callable[[Path | None], None]


@overload
def asking(command: Command) -> Command: ...
@overload
def asking(*, otherwise: Otherwise | None = None, but: str | None = None) -> Callable[[Command], Command]: ...
def asking(
    command: Command | None = None, *, otherwise: Otherwise | None = None, but: str | None = None
) -> Command | Callable[[Command], Command]:
    """Decorates a command with the options that choose a node, in the place of its first parameter, the
    client.

    otherwise: called with --file where nobody on this machine answers, after that was said. but: the
    parameter with the name of a node that is asked only where no other one here answers.
    """
    if command is None:
        return lambda given: _asking(given, otherwise, but)
    return _asking(command, otherwise, but)


def _asking(command: Command, otherwise: Otherwise | None, but: str | None) -> Command:
    _, *own = inspect.signature(command).parameters.values()
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]

    def asks(**given: Any) -> None:
        where = {name: given.pop(name) for name in _OPTIONS}
        try:
            last = None if but is None else given[but]
            with _connected(where, otherwise, last) as client:
                command(client, **given)
        except QueryError as wrong:
            tell_error(wrong, json=bool(given.get("json")))

    parameters = [*own, *options]
    asks.__name__, asks.__doc__ = command.__name__, command.__doc__
    asks.__annotations__ = {one.name: one.annotation for one in parameters}
    asks.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect, and so by typer
    return asks


def tell_error(wrong: QueryError, *, json: bool = False) -> NoReturn:
    """Say why a request has no answer, and end the command."""
    if json:
        print_json(wrong.as_error())
    for problem in wrong.problems:
        err.print(plain(problem))
    fail(str(wrong), Exit(wrong.exit_code))


def _connected(where: dict[str, Any], otherwise: Otherwise | None, last: str | None) -> AnyClient:
    try:
        return connect(**where, last=last)
    except typer.Exit:
        if otherwise is not None and where["node"] is None:
            otherwise(where["file"])
        raise


def connect(
    data: Path | None,
    node: str | None,
    file: Path | None,
    keys: Path,
    token_file: Path | None,
    *,
    last: str | None = None,
) -> AnyClient:
    """Returns a client of the chosen node. NoAnswerError: it cannot be asked. Ends the command with what to
    do where no node is found.

    last: the node that is asked only where no other one answers.
    """
    if node is None:
        return next(clients_here(data, sorted(places(data), key=lambda place: name_of(place) == last)))
    if ":" in node:
        return _remote(_target(node), keys, token_file)
    here = [place for place in places(data) if name_of(place) == node]
    if here:
        return next(clients_here(data, here))
    if file is None and data is None:
        file = one_document()
    if file is None:
        known = sorted(name_of(place) for place in places(data) if socket_of(place) is not None)
        hint = did_you_mean(node, known)
        among = f"; {hint}" if hint else ""
        fail(
            f"no node {node!r} runs here{among}. Elsewhere: --node HOST:PORT, or --file FILE with its address"
        )
    return _remote(import_module("comesh.cli.node_addresses").api_of(file, node, API_PORT), keys, token_file)


def _remote(target: Any, keys: Path, token_file: Path | None) -> AnyClient:
    """Returns a client over HTTP, whose code is loaded only where it is needed."""
    remote = import_module("comesh.runtime.remote")
    client: AnyClient = remote.RemoteClient(target, remote.read_token(token_file), keys)
    return client


def _target(text: str) -> Any:
    """Reads `https://HOST:PORT`, `http://HOST:PORT`, or `HOST:PORT`: with TLS, unless it is this machine."""
    remote = import_module("comesh.runtime.remote")
    scheme, there, address = text.rpartition("://")
    if there and scheme not in ("http", "https"):
        fail(f"--node {text}: write https://HOST:PORT, or HOST:PORT")
    address = address.rstrip("/")
    if ":" not in address.rpartition("]")[2]:
        address += f":{API_PORT}"
    try:
        host, port = parse_address(address)
    except ValueError as wrong:
        fail(f"--node {text}: {wrong}")
    return remote.Target(host=host, port=port, tls=scheme == "https" or not (there or is_loopback(host)))


def one_document() -> Path | None:
    if USUAL_FILE.is_file():
        return USUAL_FILE
    found = sorted(Path().glob("*.yaml"))
    return found[0] if len(found) == 1 else None
