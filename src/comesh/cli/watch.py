"""`comesh watch`: what happens in the mesh, as it happens."""

from typing import Annotated

import msgspec
import typer

from comesh.cli.nodes_here import DataDirectory, NodeName, connect
from comesh.cli.terminal import Exit, fail, out, plain
from comesh.cli.trace import clock, readable
from comesh.runtime.client import NoAnswerError
from comesh.runtime.view import News

_STYLES = {"leader": "cyan", "device": "yellow", "member": "magenta", "trouble": "red"}


def watch(
    *,
    data: DataDirectory = None,
    node: NodeName = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """Leaders, devices, runs and members, from all nodes, until Ctrl-C."""
    try:
        with connect(data, node) as client:
            for news in client.watch(News):
                if json:
                    typer.echo(msgspec.json.encode(news).decode())
                else:
                    out.print(plain(words(news), _STYLES.get(news.kind, "")))
    except NoAnswerError as wrong:
        fail(str(wrong))
    fail("the node that was asked has ended; call this again to ask another one, if there is one", Exit.NO)


def words(news: News) -> str:
    detail = f" ({readable(news.detail)})" if news.detail else ""
    return f"{clock(news.wall_ms)} {news.node:<16} {news.kind} {news.about} {news.what}{detail}"
