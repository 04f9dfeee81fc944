"""Shows and confirms changes of a document, and follows them until every group runs by them.

For `apply`, `leave` and `versions`.
"""

import time
from collections.abc import Iterable
from typing import Final

import typer
from rich.progress import BarColumn, Progress, TextColumn

from comesh.cli.terminal import Exit, err, number, out, plain
from comesh.core.ids import GroupId
from comesh.deployment.change import Change, What
from comesh.queries.answers import GroupSeen, Preview
from comesh.queries.requests import ListGroups
from comesh.runtime.client import AnyClient

LOOK_S: Final = 0.2
STYLES: Final = {What.ADDED: "green", What.REMOVED: "red", What.CHANGED: "yellow", What.RENAMED: "yellow"}


def show_changes(found: Iterable[Change]) -> None:
    for one in found:
        for line in str(one).splitlines():
            out.print(plain(line, STYLES[one.what]))


def show_preview(preview: Preview) -> None:
    show_changes(preview.changes)
    if preview.means:
        out.print("what follows:")
    for what in preview.means:
        out.print(plain(f"  {what}"))


def end_with_problems(problems: Iterable[str]) -> None:
    """Prints the problems of a document and ends the command, if there are any."""
    told = list(problems)
    for problem in told:
        err.print(plain(problem))
    if told:
        raise typer.Exit(int(Exit.NO))


def follow(client: AnyClient, version: int, *, within_s: float, quiet: bool = False) -> dict[GroupId, bool]:
    """Waits until every group runs by the version, or the time is over. Returns which groups do."""
    ends = time.monotonic() + within_s
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total}")
    )
    done: set[GroupId] = set()
    shown = not quiet and out.is_terminal
    with bar if shown else _Silent():
        count = len(client.ask(ListGroups()).groups)
        task = bar.add_task(f"groups at version {version}", total=count) if shown else None
        while True:
            seen = client.ask(ListGroups()).groups
            new = [one for one in seen if one.version >= version and one.group not in done]
            done.update(one.group for one in new)
            if task is not None:
                bar.update(task, completed=len(done), total=len(seen))
            elif not quiet:
                for one in new:
                    out.print(plain(_words(one)))
            if all(one.group in done for one in seen) or time.monotonic() > ends:
                return {one.group: one.group in done for one in seen}
            time.sleep(LOOK_S)


class _Silent:
    def __enter__(self) -> None:
        """Nothing is shown."""

    def __exit__(self, *_: object) -> None:
        """And nothing is left."""


def _words(one: GroupSeen) -> str:
    led = "" if one.leader is None else f", led by {one.leader}"
    return f"{one.group} works by version {one.version}{led}"


def show_followed(reached: dict[GroupId, bool], version: int, took_s: float) -> Exit:
    behind = sorted(group for group, is_there in reached.items() if not is_there)
    if not behind:
        out.print(f"all {number(len(reached), 'group')} work by version {version}, after {took_s:.1f} s")
        return Exit.OK
    err.print(
        plain(
            f"version {version} is applied, but not yet what {', '.join(behind)} works by. It will be at the "
            "next handoff; `comesh status` says whether somebody serves it, `comesh versions` how many follow"
        )
    )
    return Exit.NO
