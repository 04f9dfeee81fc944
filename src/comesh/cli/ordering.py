"""Shared by the commands that order something: they ask, wait for the result, and print it."""

import threading
import time
from typing import Annotated, Final, TypeVar

import typer

from comesh.cli.terminal import err, out, plain, print_json
from comesh.queries.answers import Done, QueryError, RunAnswer
from comesh.queries.requests import ORDER_WAIT_S, Order, ShowRun
from comesh.runtime.client import AnyClient

A = TypeVar("A")
LOOK_S: Final = 0.1
SILENT_S: Final = 3.0
SILENT: Final = (
    f"no answer yet: a group that is concerned may not be served (see: comesh status); it is tried for "
    f"{ORDER_WAIT_S:.0f} s"
)
FOLLOW_S: Final = 60.0
"""Maximum wait for the end of a run."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Request = Annotated[
    str | None,
    typer.Option("--request", help="Your own id of the request: repeating it never acts twice."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def order(client: AnyClient, given: Order[A]) -> A:
    """Give an order, and wait for what comes of it."""
    silence = threading.Timer(SILENT_S, lambda: err.print(SILENT))
    silence.daemon = True
    silence.start()
    try:
        return client.ask(given)
    finally:
        silence.cancel()


def say(done: Done, what: str, *, json: bool) -> None:
    """Prints what was ordered, or why it was not done; ends the command."""
    if json:
        print_json(done)
    else:
        out.print(plain(what))


def followed(client: AnyClient, run: str) -> RunAnswer | None:
    """Returns a run once it has ended; None: it did not in time, or nobody knows it any more."""
    ends = time.monotonic() + FOLLOW_S
    while time.monotonic() < ends:
        try:
            answer: RunAnswer | None = client.ask(ShowRun(run=run))
        except QueryError:  # its leader may have changed meanwhile
            answer = None
        if answer is not None and answer.ended:
            return answer
        time.sleep(LOOK_S)
    return None
