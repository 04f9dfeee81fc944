"""`comesh availability`: do all groups keep a majority when more nodes fail at once than one group survives?

By the paper's formula; and, where draws are asked for, over groups as nodes would really select them.
"""

from typing import Annotated, Any, NamedTuple

import typer

from comesh.cli.own_policies import Names, Plugins
from comesh.cli.tables import table
from comesh.cli.terminal import fail, number, out, print_json
from comesh.core.streams import stream
from comesh.deployment.planning import selection_settings
from comesh.deployment.settings import MAX_F, Settings
from comesh.experiments.measures.availability import LEVELS, Sizes, curve, tolerated
from comesh.experiments.measures.outages import (
    Borne,
    alone,
    by_domain,
    failures_borne,
    in_power_domains,
    mesh_of,
    seats_over_epochs,
)
from comesh.experiments.measures.selections import plan_of
from comesh.sim.topology import Shape, TopologyError

DOWN_TO = 0.01
"""Minimum chance that is listed."""
MAX_ROWS = 60
EPOCHS = 8
"""Number of epochs whose selections the draws are spread over."""
_MAX_SMART = 10_000
_MAX_GROUPS = 10_000
_MAX_DRAWS = 1_000_000
_MAX_DRAWN = 200_000_000
"""Maximum nodes times draws: some minutes."""
_DEFAULT_POLICY = "lsh-mix"

_Smart = Annotated[int, typer.Option(min=1, max=_MAX_SMART, help="Number of nodes.")]
_Groups = Annotated[int, typer.Option(min=1, max=_MAX_GROUPS, help="Number of groups.")]
_F = Annotated[
    int, typer.Option("--f", min=0, max=MAX_F, help="Failures that one group survives; it has 2f+1 members.")
]
_Draws = Annotated[
    int,
    typer.Option(
        "--monte-carlo",
        metavar="DRAWS",
        min=0,
        max=_MAX_DRAWS,
        help="Also draw this many orders of failures over groups as nodes select them, spread evenly over "
        f"{EPOCHS} epochs.",
    ),
]
_Topology = Annotated[Shape, typer.Option("--topology", help="Shape of the mesh, with --monte-carlo.")]
_Members = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="How members are selected, with --monte-carlo: lsh-mix, random, or your own policy.",
    ),
]
_Domains = Annotated[
    int,
    typer.Option(
        "--power-domains",
        metavar="DOMAINS",
        min=0,
        help="Also draw failures of whole power domains, this many, with --monte-carlo.",
    ),
]
_Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def availability(
    *,
    smart: _Smart = 100,
    groups: _Groups = 30,
    f: _F = 5,
    monte_carlo: _Draws = 0,
    topology: _Topology = Shape.GRID,
    members: _Members = _DEFAULT_POLICY,
    power_domains: _Domains = 0,
    plugin: Plugins = None,
    seed: _Seed = 1,
    json: _Json = False,
) -> None:
    """Compute how many failures all groups of a mesh survive."""
    Names(members=members).checked(plugin)
    if power_domains and not monte_carlo:
        fail("--power-domains are drawn: say how often, such as --monte-carlo 2000")
    if (topology is not Shape.GRID or members != _DEFAULT_POLICY) and not monte_carlo:
        fail(
            "--topology and --members are of a mesh that is drawn over: say how often, as --monte-carlo 2000"
        )
    if power_domains > smart:
        fail(f"--power-domains {power_domains}: there are only {number(smart, 'node')}")
    if smart * monte_carlo > _MAX_DRAWN:
        fail(f"--monte-carlo {monte_carlo}: with {smart} nodes at most {_MAX_DRAWN // smart} draws")
    try:
        sizes = Sizes(smart=smart, groups=groups, f=f)
        drawing = _Drawing(sizes, topology, members, monte_carlo, seed)
        nodes = drawing.nodes() if monte_carlo else None
        domains = (
            [drawing.domains(power_domains, rule=rule) for rule in (True, False)] if power_domains else []
        )
    except (ValueError, TopologyError) as wrong:
        fail(str(wrong))
    told = _Told(sizes, list(curve(sizes, down_to=DOWN_TO)), nodes, domains)
    if json:
        print_json(_as_json(told))
    else:
        _show(told)


class _Drawing(NamedTuple):
    """Failures drawn over the selections of one mesh."""

    sizes: Sizes
    shape: Shape
    members: str
    draws: int
    seed: int

    def nodes(self) -> Borne:
        return self._borne(0, rule=True)

    def domains(self, domains: int, *, rule: bool) -> Borne:
        return self._borne(domains, rule=rule)

    def _borne(self, domains: int, *, rule: bool) -> Borne:
        topology, cluster_size = mesh_of(self.sizes, self.shape, self.seed)
        if domains:
            topology = in_power_domains(topology, domains)
        policy = {"members": self.members, "cluster_size": cluster_size, "power_domain_rule": rule}
        settings = Settings.model_validate({"f": self.sizes.f, "seed": self.seed, "selection": policy})
        plan = plan_of(topology, selection_settings(settings))
        together = by_domain(plan, topology.power_domains.values()) if domains else alone(plan)
        epochs = min(EPOCHS, self.draws)
        seats = seats_over_epochs(plan, epochs)
        return failures_borne(seats, together, -(-self.draws // epochs), stream(self.seed, "what fails"))


class _Told(NamedTuple):
    sizes: Sizes
    formula: list[tuple[int, float]]
    nodes: Borne | None
    """Failures drawn one by one; None: nothing was drawn."""
    domains: list[Borne]
    """Failures of power domains, with the rule on power domains and without it; or none."""


def _show(told: _Told) -> None:
    sizes, nodes = told.sizes, told.nodes
    out.print(
        f"{number(sizes.smart, 'node')}, {number(sizes.groups, 'group')} of {sizes.k} (f = {sizes.f}): "
        f"with F nodes gone at once, all groups keep {sizes.f + 1} members with this chance"
    )
    every = -(-len(told.formula) // MAX_ROWS)
    rows = [
        [str(failures), _percent(chance), *([] if nodes is None else [_percent(nodes.mesh[failures])])]
        for failures, chance in told.formula
        if failures % every == 0 or failures == told.formula[-1][0]
    ]
    drawn = [] if nodes is None else ["drawn"]
    out.print(table(["F", "formula", *drawn], rows))
    for level in LEVELS:
        also = "" if nodes is None else f"; {nodes.tolerated(level)} as drawn"
        most = tolerated(sizes, level)
        out.print(f"at least {level:.0%} up to F = {most}{_in_f(most, sizes.f)}{also}")
    if nodes is not None:
        error = 100 / nodes.draws**0.5
        out.print(f"drawn: {nodes.draws} times over real groups, good to about {error:.1f} percentage points")
    if told.domains:
        _show_domains(told.domains)


def _show_domains(domains: list[Borne]) -> None:
    on, off = domains
    last = next(out for out, share in enumerate(on.mesh) if max(share, off.mesh[out]) < DOWN_TO)
    rows = [[str(gone), _percent(on.mesh[gone]), _percent(off.mesh[gone])] for gone in range(last + 1)]
    out.print(f"with whole power domains out, of {len(on.mesh) - 1}, as drawn:")
    out.print(table(["domains out", "rule on", "rule off"], rows[:MAX_ROWS]))
    out.print("rule: at most f members of a group from one power domain (selection.power_domain_rule)")


def _percent(chance: float) -> str:
    """Formats a chance, never as 100 % where it is not certain."""
    text = f"{100 * chance:.2f} %"
    return "> 99.99 %" if chance < 1 and text == "100.00 %" else text


def _in_f(failures: int, f: int) -> str:
    return f" ({failures / f:.1f} f)" if f else ""


def _as_json(told: _Told) -> dict[str, Any]:
    sizes, nodes = told.sizes, told.nodes
    return {
        "smart": sizes.smart,
        "groups": sizes.groups,
        "f": sizes.f,
        "members": sizes.k,
        "formula": [{"failures": failures, "availability": chance} for failures, chance in told.formula],
        "tolerated": [{"availability": level, "failures": tolerated(sizes, level)} for level in LEVELS],
        "drawn": None if nodes is None else _drawn_json(nodes),
        "power_domains": None
        if not told.domains
        else {"rule_on": _drawn_json(told.domains[0]), "rule_off": _drawn_json(told.domains[1])},
    }


def _drawn_json(borne: Borne) -> dict[str, Any]:
    return {
        "draws": borne.draws,
        "availability": [
            {"failures": failures, "availability": share} for failures, share in enumerate(borne.mesh)
        ],
        "tolerated": [{"availability": level, "failures": borne.tolerated(level)} for level in LEVELS],
    }
