"""`comesh audit`: lists actions of people, from the logs of all groups."""

import time
from typing import Annotated

import msgspec
import typer

from comesh.cli.asking import asking
from comesh.cli.ordering import Json
from comesh.cli.tables import names_text, table
from comesh.cli.terminal import Exit, number, out, plain, print_json
from comesh.queries.answers import AuditSeen
from comesh.queries.requests import MAX_LISTED, ListAudit
from comesh.runtime.client import AnyClient


@asking
def audit(
    client: AnyClient,
    *,
    by: Annotated[
        str, typer.Option("--by", metavar="TEXT", help="Only entries of people whose name contains this.")
    ] = "",
    about: Annotated[
        str, typer.Option("--about", metavar="TEXT", help="Only entries that contain this.")
    ] = "",
    last: Annotated[
        int, typer.Option("--last", min=1, max=MAX_LISTED, help="Maximum number of entries.")
    ] = 20,
    json: Json = False,
) -> None:
    """List who fired, paused, commanded or changed what.

    The newest come first; each group keeps its latest 64 entries. Exit code 0: the logs of all groups were
    read; 1: some could not be.
    """
    log = client.ask(ListAudit(limit=MAX_LISTED))
    found = tuple(one for one in log.entries if by in one.by and about in one.what)[:last]
    if json:
        print_json(msgspec.structs.replace(log, entries=found))
    else:
        if found:
            out.print(table(("time", "who", "action", "run", "group"), map(_row, found)))
        unheard = f"; not reached: the logs of {names_text(log.unheard)}" if log.unheard else ""
        out.print(plain(f"{number(len(found), 'entry').replace('entrys', 'entries')}{unheard}"))
    raise typer.Exit(int(Exit.NO if log.unheard else Exit.OK))


def _row(one: AuditSeen) -> list[str]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.wall_ms / 1000))
    return [at, plain(one.by).plain, plain(one.what).plain, one.run or "", one.group]
