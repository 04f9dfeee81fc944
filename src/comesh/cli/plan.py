"""`comesh plan FILE`: shows the groups of a deployment, their members and loads, and what outages stop."""

from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.text import Text

from comesh.cli.documents import DocumentFile, read_deployment
from comesh.cli.outputs import Force, check_output, is_svg
from comesh.cli.tables import ListTable
from comesh.cli.terminal import Exit, fail, out, plain, print_json
from comesh.core.ids import GroupId, NodeId
from comesh.core.plan import DEPLOYMENT, Plan
from comesh.core.selection import PlanningError
from comesh.deployment.model import Deployment
from comesh.deployment.outlook import (
    DomainLoss,
    Members,
    NodeLoad,
    ShortGroup,
    dark_words,
    domain_losses,
    domain_warnings,
    forecast,
    group_order,
    hosts_of,
    lone_losses,
    node_loads,
    short_groups,
    short_warnings,
    spans,
)
from comesh.deployment.picture import draw
from comesh.deployment.planning import plan_of
from comesh.deployment.problems import did_you_mean

MAX_GROUPS_SHOWN = 20
MAX_NODES_SHOWN = 20
MAX_DARK_SHOWN = 12

_Epochs = Annotated[int, typer.Option(min=1, max=1000, help="Number of epochs to look ahead.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_Svg = Annotated[
    Path | None,
    typer.Option(
        "--svg", metavar="OUT.svg", help="Draw the floors from above into this file.", show_default=False
    ),
]
_Without = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="NODE", help="A node that fails after epoch 0; repeatable."),
]
_Alive = Annotated[
    list[str] | None,
    typer.Option("--alive", metavar="NODE", help="A node that stays while all others fail; repeatable."),
]


def plan(
    file: DocumentFile,
    *,
    epochs: _Epochs = 5,
    json: _Json = False,
    svg: _Svg = None,
    without: _Without = None,
    alive: _Alive = None,
    force: Force = False,
) -> None:
    """Show clusters, groups, loads, and what outages would stop."""
    deployment = read_deployment(file)
    if svg is not None:
        check_output(svg, reads=[file], ours=is_svg, kind="picture", force=force)
    try:
        made = plan_of(deployment)
    except PlanningError as wrong:
        fail(f"{file}: {wrong}", Exit.NO)
    gone = _absent(made, without or [], alive or [])
    ahead = forecast(made, epochs, gone)
    hosts = hosts_of(deployment)
    outlook = _Outlook(
        deployment,
        made,
        ahead,
        gone,
        short_groups(ahead, gone),
        node_loads(made, ahead),
        domain_losses(made, ahead, hosts),
        lone_losses(made, ahead, hosts),
    )
    if svg is not None:
        shown = min(1, epochs - 1) if gone else 0
        _write(svg, draw(made, ahead[shown], f"{deployment.name or file.name}, epoch {shown}"))
    if json:
        print_json(_as_json(outlook))
        return
    _show(outlook)
    if svg is not None:
        out.print(f"drew {svg}")


class _Outlook(NamedTuple):
    """Everything that is shown."""

    deployment: Deployment
    plan: Plan
    ahead: list[Members]
    gone: list[NodeId]
    short: tuple[ShortGroup, ...]
    loads: tuple[NodeLoad, ...]
    losses: tuple[DomainLoss, ...]
    lone: tuple[DomainLoss, ...]
    """Losses of nodes without a named domain that host devices."""


def _show(outlook: _Outlook) -> None:
    _show_summary(outlook.plan)
    _show_clusters(outlook.plan)
    _show_groups(outlook)
    for warning in short_warnings(outlook.short):
        out.print(f"warning: {warning}", markup=False)
    _show_loads(outlook.plan, outlook.loads, outlook.gone)
    _show_losses(outlook.losses, outlook.lone)


def _absent(plan: Plan, without: list[str], alive: list[str]) -> list[NodeId]:
    """Returns the nodes that are taken to have failed."""
    if without and alive:
        fail("--without and --alive say the same thing in two ways; use one of them")
    known = [node.id for node in plan.nodes]
    for name in (*without, *alive):
        if name not in known:
            fail(f"no node {name!r} in this document; {did_you_mean(name, known)}")
    return [node for node in known if (node not in alive if alive else node in without)]


def _write(svg: Path, picture: str) -> None:
    try:
        svg.write_text(picture, encoding="utf-8")
    except OSError as wrong:
        fail(f"cannot write {svg}: {wrong.strerror}")


def _show_summary(plan: Plan) -> None:
    settings = plan.settings
    size = len(plan.genesis[DEPLOYMENT])
    out.print(
        f"{_count(len(plan.devices), 'device')} and {_count(len(plan.routines), 'routine')} in "
        f"{_count(len(plan.clusters), 'cluster')}; {_count(len(plan.nodes), 'node')}, "
        f"{plan.spacing_mm / 1000:.1f} m apart on average; f = {settings.f}, so {size} members per group"
    )


def _show_clusters(plan: Plan) -> None:
    """Shows the contents of each cluster; a routine with the device that decides where it belongs."""
    if not plan.clusters:
        return
    table = ListTable(folds=True, title="Clusters")
    table.add_column("cluster", no_wrap=True)
    table.add_column("devices", overflow="fold", ratio=1)
    table.add_column("routines (and their anchors)", overflow="fold", ratio=1)
    clusters = sorted(plan.clusters, key=lambda cluster: group_order(cluster.group))
    for cluster in clusters[:MAX_GROUPS_SHOWN]:
        routines = [f"{routine} ({plan.anchors[routine]})" for routine in cluster.routines]
        table.add_row(cluster.group, ", ".join(cluster.devices), "\n".join(routines) or "none")
    out.print()
    out.print(table)
    if len(clusters) > MAX_GROUPS_SHOWN:
        out.print(f"... and {len(clusters) - MAX_GROUPS_SHOWN} more clusters; --json has them all")


def _show_groups(outlook: _Outlook) -> None:
    ahead = outlook.ahead
    table = ListTable(folds=True, title="Groups in the next epochs")
    table.add_column("group", no_wrap=True)
    table.add_column("epoch", justify="right")
    table.add_column("leader", overflow="fold")
    table.add_column("other members", overflow="fold")
    short = {(one.group, one.epoch): one for one in outlook.short}
    groups = sorted(ahead[0], key=group_order)
    for group in groups[:MAX_GROUPS_SHOWN]:
        for epoch, members_of in enumerate(ahead):
            gone = outlook.gone if epoch else []
            leader, *others = (_marked(node, gone) for node in members_of[group])
            members = Text(", ".join(others))
            if (group, epoch) in short:
                one = short[group, epoch]
                told = f"cannot act: {one.left} of {one.members} members left"
                members.append(f"\n{told}" if members else told, style="red")
            table.add_row("" if epoch else group, str(epoch), leader, members)
    out.print()
    out.print(table)
    if len(groups) > MAX_GROUPS_SHOWN:
        out.print(f"... and {len(groups) - MAX_GROUPS_SHOWN} more groups; --json has them all")
    out.print(f"{DEPLOYMENT}: the group that commits changes of this document; it has no devices.")


def _marked(node: NodeId, gone: list[NodeId]) -> str:
    return f"{node} (gone)" if node in gone else node


def _show_loads(plan: Plan, loads: tuple[NodeLoad, ...], gone: list[NodeId]) -> None:
    """Shows devices led and held at a time, the share of epochs in any group, the most groups at once."""
    title = f"Load of nodes, the busiest first (the group {DEPLOYMENT} is not counted)"
    table = ListTable(folds=True, title=title)
    table.add_column("node", overflow="fold")
    table.add_column("power domain", overflow="fold")
    for title in ("devices\nled", "devices\nheld", "in a group\n(% of time)", "groups\nat once"):
        table.add_column(title, justify="right", no_wrap=True)
    domain_of = {node.id: node.power_domain for node in plan.nodes}
    figures_of = {
        load.node: (load.led_devices, load.held_devices, 100 * load.member_share, float(load.groups_at_most))
        for load in sorted(loads, key=lambda load: (-load.held_devices, -load.led_devices, load.node))
    }
    for node in list(figures_of)[:MAX_NODES_SHOWN]:
        table.add_row(_marked(node, gone), plain(domain_of[node] or "its own"), *_figures(figures_of[node]))
    columns = tuple(zip(*figures_of.values(), strict=True))
    table.add_row("mean", "", *_figures(tuple(map(fmean, columns))))
    table.add_row("maximum", "", *_figures(tuple(map(max, columns))))
    out.print()
    out.print(table)
    if len(loads) > MAX_NODES_SHOWN:
        out.print(f"... and {len(loads) - MAX_NODES_SHOWN} more nodes; --json has them all")


def _figures(figures: tuple[float, ...]) -> tuple[str, ...]:
    led, held, share, at_once = figures
    return f"{led:.1f}", f"{held:.1f}", f"{share:.0f}", f"{at_once:.1f}"


def _show_losses(losses: tuple[DomainLoss, ...], lone: tuple[DomainLoss, ...]) -> None:
    if not losses:
        out.print("No node names a power domain: each is taken to lose power alone.")
    if not (losses or lone):
        return
    table = ListTable(folds=True, title="If a power domain goes out")
    table.add_column("power domain", no_wrap=True)
    table.add_column("nodes", justify="right", no_wrap=True)
    table.add_column("stops\n(in epochs)", overflow="fold")
    table.add_column("elects another leader\n(in epochs)", overflow="fold")
    for loss in (*losses, *lone):
        stops = [Text(_when(loss.stops), style="red")] if loss.stops else []
        stops += [Text(_shortened(loss))] if loss.dark else []
        table.add_row(
            plain(f"{loss.domain} alone" if loss in lone else loss.domain),
            str(len(loss.nodes)),
            Text("\n").join(stops) if stops else "nothing",
            _when(loss.leaderless) or "nowhere",
        )
    out.print()
    out.print(table)
    out.print("A device goes dark with the node that hosts it; others have no power domain.")


def _shortened(loss: DomainLoss) -> str:
    """Says which devices go dark and which routines that hits; of many the first."""
    words = dark_words(loss)
    if max(len(loss.dark), len(loss.routines_hit)) > MAX_DARK_SHOWN:
        some = msgspec.structs.replace(
            loss, dark=loss.dark[:MAX_DARK_SHOWN], routines_hit=loss.routines_hit[:MAX_DARK_SHOWN]
        )
        count = f"{len(loss.dark)} devices go dark, {_count(len(loss.routines_hit), 'routine')} hit; such as"
        words = f"{count} {dark_words(some)}; --json has them all"
    return words


def _when(epochs_of: dict[GroupId, tuple[int, ...]]) -> str:
    """Formats groups with their epochs, one per line: `c1 (0, 2-4)`."""
    return "\n".join(f"{group} ({spans(epochs)})" for group, epochs in epochs_of.items())


def _count(count: int, kind: str) -> str:
    return f"{count} {kind}" if count == 1 else f"{count} {kind}s"


def _as_json(outlook: _Outlook) -> dict[str, Any]:
    plan = outlook.plan
    settings = msgspec.to_builtins(plan.settings)
    settings["members"] = outlook.deployment.settings.selection.members
    return {
        "version": plan.version,
        "settings": settings,
        "spacing_mm": plan.spacing_mm,
        "clusters": msgspec.to_builtins(plan.clusters),
        "anchors": plan.anchors,
        "epochs": outlook.ahead,
        "gone": outlook.gone,
        "cannot_act": msgspec.to_builtins(outlook.short),
        "loads": msgspec.to_builtins(outlook.loads),
        "power_domains": msgspec.to_builtins(outlook.losses),
        "nodes_alone": msgspec.to_builtins(outlook.lone),
        "warnings": [*domain_warnings(plan), *short_warnings(outlook.short)],
    }
