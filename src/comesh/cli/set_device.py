"""`comesh set`: commands a device by hand, through its lock, and waits for the result."""

from typing import Annotated

import msgspec
import typer

from comesh.cli.asking import asking
from comesh.cli.completion import complete_devices
from comesh.cli.ordering import FOLLOW_S, Json, Request, followed, order, say
from comesh.cli.terminal import Exit, fail, out, plain, print_json
from comesh.core.ids import DeviceId
from comesh.core.traces import Dropped, Failed, Finished, what_of
from comesh.queries.answers import Done
from comesh.queries.requests import SetDevice
from comesh.queries.trace_text import text_of
from comesh.runtime.client import AnyClient


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of --json. ended None: it goes on."""

    request: str
    run: str
    ended: str | None = None
    reason: str = ""


@asking
def set_device(
    client: AnyClient,
    device: Annotated[
        str, typer.Argument(help="The device.", show_default=False, autocompletion=complete_devices)
    ],
    command: Annotated[str, typer.Argument(help="A command of the device.", show_default=False)],
    argument: Annotated[
        str | None, typer.Argument(help="The command's argument, if it takes one.", show_default=False)
    ] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the device has done it.")] = True,
    request: Request = None,
    json: Json = False,
) -> None:
    """Command a device by hand.

    The command waits until no run holds the device. Exit code 0: the device did it (with --no-wait: it will
    be tried); 1: it did not, with the reason.
    """
    given = SetDevice(device=DeviceId(device), command=command, argument=argument, request=request)
    done = order(client, given)
    if done.run is None or not wait:
        trace = f"{done.run} began; see what it does with: comesh trace '{done.run}'"
        say(done, trace, json=json)
        return
    _follow(client, done, done.run, f"{device} {command} {argument or ''}".rstrip(), json=json)


def _follow(client: AnyClient, done: Done, run: str, what: str, *, json: bool) -> None:
    answer = followed(client, run)
    last = None if answer is None else answer.trace[-1]
    finished = last is not None and isinstance(last.trace, Finished)
    if json:
        ended, reason = None if last is None else what_of(last.trace), ""
        if last is not None and isinstance(last.trace, Failed | Dropped):
            reason = last.trace.reason
        print_json(Outcome(request=done.request, run=run, ended=ended, reason=reason))
    elif last is None:
        fail(
            f"{what}: no end within {FOLLOW_S:.0f} s; see what it waits for with: comesh trace '{run}'",
            Exit.NO,
        )
    elif not finished:
        fail(f"{what}: {text_of(last.trace)}", Exit.NO)
    else:
        out.print(plain(f"{what}: done"))
    raise typer.Exit(int(Exit.OK if finished else Exit.NO))
