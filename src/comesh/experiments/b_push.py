"""B: devices that tell changes by themselves against devices that are polled.

What is asked: how long after a change at the device does the first command leave, and what does it cost on
the air, per device and second? Each device has a reading that changes about every ten seconds besides the
signals that fire routines: a device tells every change, whether a routine asks for it or not.
"""

from comesh.core.strategies import Strategy
from comesh.experiments import stage
from comesh.experiments.measures.firings import measure, timed
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.sim.topology import Shape, make_topology

LONG = "5s"
"""Longer than an epoch of the preset `paper`: most devices would not be read once by a leader."""
WAYS = {
    "polled every 0.2 s": (False, "200ms"),
    "polled every 1 s": (False, "1s"),
    "polled every 5 s": (False, LONG),
    "push, polled every 1 s": (True, "1s"),
    "push, polled every 5 s": (True, LONG),
}
KINDS = ("ReadDevice", "DeviceAnswered", "Subscribe", "DeviceReported")
"""What goes between nodes and devices, but for commands."""
WINDOW_MS = 20_000.0
RESTLESS_MS = 10_000.0
DEVICES, QUICK_DEVICES = 250, 50
ROUTINES, QUICK_ROUTINES = 8, 4


def cases(scale: stage.Scale) -> stage.Cases:
    full = scale is stage.Scale.FULL
    for case in stage.combinations(
        preset=PRESETS,
        way=WAYS,
        devices=[DEVICES if full else QUICK_DEVICES],
        routines=[ROUTINES if full else QUICK_ROUTINES],
        seed=stage.seeds(scale, 1, 5),
    ):
        if case["preset"] == Preset.DEFAULT or WAYS[case["way"]][1] != LONG:
            yield case


def run(case: stage.Parameters) -> list[stage.Row]:
    push, monitoring = WAYS[case["way"]]
    devices = case["devices"]
    found = measure(
        make_topology(Shape.GRID, devices=devices, seed=case["seed"]),
        timed(case["preset"], case["seed"], monitoring=monitoring),
        strategy=Strategy.OPTIMISTIC,
        routines=case["routines"],
        seed=case["seed"],
        window_ms=WINDOW_MS,
        push=push,
        restless_ms=RESTLESS_MS,
    )
    traffic = found.mesh.world.traffic
    sent = [traffic.total(kind=kind).sent for kind in KINDS]
    device_seconds = devices * found.mesh.now_ms / 1000
    costs: stage.Row = {
        "messages_per_device_s": sum(one.messages for one in sent) / device_seconds,
        "bytes_per_device_s": sum(one.size_bytes for one in sent) / device_seconds,
    }
    return [
        {
            **row,
            **costs,
            "reaction_hops": None if row["client_hops"] is None else row["polling_hops"] + row["client_hops"],
        }
        for row in found.rows()
    ]


def _counting_missed(table: stage.Table) -> stage.Table:
    """A change that was missed counts as long as it had, and as not noticed all the while."""
    missed = {
        column: lambda row, column=column: row["window_hops"] if row["lost"] else row[column]
        for column in ("reaction_hops", "polling_hops")
    }
    return table.adding(**missed)


def tables(table: stage.Table) -> dict[str, stage.Table]:
    columns = {
        "reaction_hops": "change to first command, hops",
        "polling_hops": "until it is noticed",
        "messages_per_device_s": "messages per device and second",
        "bytes_per_device_s": "bytes",
        "lost": "missed",
    }
    return {
        "Missed: the share of the changes": stage.means(_counting_missed(table), ("preset", "way"), columns)
    }


def draw(table: stage.Table) -> stage.Figure:
    presets = _counting_missed(table).groups("preset")
    figure, axes = stage.new_figure(1, len(presets))
    for at, ((preset,), rows) in enumerate(presets):
        for number, way in enumerate(WAYS):
            here = rows.where(way=way)
            if len(here):
                place = here.mean("bytes_per_device_s"), here.mean("reaction_hops")
                marker = "s" if WAYS[way][0] else "o"
                axes[at].scatter(*place, color=stage.COLOURS[number], label=way, marker=marker)
        x, y = "bytes per device and second", "change to first command (hops)"
        stage.finish(axes[at], x=x, y=y, title=stage.named("preset", preset))
        axes[at].set_xlim(left=0)
    return figure


CAMPAIGN = stage.Campaign("push", cases, run, about_s=lambda _: 10.0)
EXPERIMENT = stage.Experiment(
    id="B",
    title="Push against polling",
    campaign=CAMPAIGN,
    paper="How much sooner does a run act if devices tell changes by themselves, and what does that cost?",
    tables=tables,
    draw=draw,
    about=__doc__,
)
