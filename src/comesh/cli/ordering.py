"""What the commands that order something share: asking, waiting for what comes of it, and saying it."""

import threading
import time
from typing import Annotated, Any, Final

import typer

from comesh.cli.terminal import Exit, err, fail, out, plain, print_json
from comesh.queries.answers import Done, RunAnswer
from comesh.runtime.client import AnyClient, SaidNoError
from comesh.runtime.operations import WAIT_S

LOOK_S: Final = 0.1
SILENT_S: Final = 3.0
SILENT: Final = (
    f"no answer yet: a group that is concerned may not be served (see: comesh status); it is tried for "
    f"{WAIT_S:.0f} s"
)
FOLLOW_S: Final = 60.0
"""How long the end of a run is waited for."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Request = Annotated[
    str | None,
    typer.Option("--request", help="Your own id of the request: repeating it never acts twice."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def order(client: AnyClient, ask: str, request: str | None, **about: Any) -> Done:
    if request is not None:
        about["request"] = request
    client.wait(WAIT_S + 5.0)
    silence = threading.Timer(SILENT_S, lambda: err.print(SILENT))
    silence.daemon = True
    silence.start()
    try:
        return client.ask(Done, ask, **about)
    finally:
        silence.cancel()


def say(done: Done, what: str, *, json: bool) -> None:
    """What was ordered, or why it is not done; ends the command."""
    if json:
        print_json(done)
    elif done.why_not:
        for group, why in sorted(done.failed.items()):
            err.print(f"{group}: {why}")
        fail(done.why_not + ("; it may be done later" if done.unanswered else ""), Exit.NO)
    else:
        out.print(plain(what))
    raise typer.Exit(int(Exit.NO if done.why_not else Exit.OK))


def followed(client: AnyClient, run: str) -> RunAnswer | None:
    """A run once it has ended; None: it did not in time, or nobody knows it any more."""
    ends = time.monotonic() + FOLLOW_S
    while time.monotonic() < ends:
        try:
            answer = client.ask(RunAnswer, "run", run=run)
        except SaidNoError:  # its leader may have changed meanwhile
            answer = None
        if answer is not None and answer.ended:
            return answer
        time.sleep(LOOK_S)
    return None
