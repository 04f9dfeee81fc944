"""`comesh watch`: prints what happens in the mesh, as it happens."""

from typing import Annotated

import msgspec
import typer

from comesh.cli.asking import asking
from comesh.cli.terminal import Exit, err, fail, out, plain
from comesh.queries.answers import Lost, News
from comesh.queries.requests import ListNodes
from comesh.queries.trace_text import Telling
from comesh.runtime.client import AnyClient

_STYLES = {"leader": "cyan", "device": "yellow", "member": "magenta", "trouble": "red"}


@asking
def watch(
    client: AnyClient,
    *,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, for programs.")
    ] = False,
) -> None:
    """Follow leaders, devices, runs and members until Ctrl-C."""
    telling = Telling(time_zone="" if json else client.ask(ListNodes()).time_zone)
    for news in client.watch():
        if json:
            typer.echo(msgspec.json.encode(news).decode())
        elif isinstance(news, Lost):
            err.print(f"{news.lost} that happened are missing: they came faster than they were read")
        else:
            out.print(plain(words(news, telling), _STYLES.get(news.kind, "")))
    fail("the node that was asked has ended; call this again to ask another one, if there is one", Exit.NO)


def words(news: News, telling: Telling) -> str:
    if news.trace is None:
        what = news.what + (f" ({news.detail})" if news.detail else "")
    else:
        what = telling.text(news.about, news.node, news.wall_ms, news.trace)
    return f"{telling.clock(news.wall_ms)} {news.node:<16} {news.kind} {news.about} {what}"
