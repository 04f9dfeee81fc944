"""B: devices that tell changes by themselves against devices that are polled.

What is asked: how long after a change at the device does the first command leave, and what does it cost on
the air, per device and second? Each device has a reading that changes about every ten seconds besides the
signals that fire routines: a device tells every change, whether a routine asks for it or not.
"""

from collections.abc import Iterator

from matplotlib.figure import Figure

from comesh.core.strategies import Strategy
from comesh.experiments.campaign import Campaign, Comparison, Experiment, Parameters, Scale, Verdict
from comesh.experiments.measures.firings import measure, timed
from comesh.experiments.measures.presets import PRESETS, Preset
from comesh.experiments.plots import COLOURS, finish, new_figure
from comesh.experiments.table import Row, Table
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


def cases(scale: Scale) -> Iterator[Parameters]:
    full = scale is Scale.FULL
    for preset in PRESETS:
        ways = [way for way in WAYS if preset is Preset.DEFAULT or WAYS[way][1] != LONG]
        for way in ways:
            for seed in range(1, 6 if full else 2):
                yield {
                    "preset": str(preset),
                    "way": way,
                    "devices": DEVICES if full else QUICK_DEVICES,
                    "routines": ROUTINES if full else QUICK_ROUTINES,
                    "seed": seed,
                }


def run(case: Parameters) -> list[Row]:
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
    costs: Row = {
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


def compare(table: Table) -> list[Comparison]:
    found: list[Comparison] = []
    for preset in table.distinct("preset"):
        for way in table.where(preset=preset).distinct("way"):
            here = _counting_missed(table.where(preset=preset, way=way))
            found.append(
                Comparison(
                    what=f"{way}, {preset}",
                    ours=(
                        f"change to first command {here.mean('reaction_hops'):.0f} hops, of which "
                        f"{here.mean('polling_hops'):.0f} until it is noticed; per device and second "
                        f"{here.mean('messages_per_device_s'):.2f} messages, "
                        f"{here.mean('bytes_per_device_s'):.0f} bytes; "
                        f"{sum(here.numbers('lost')):.0f} of {len(here)} changes missed"
                    ),
                    verdict=Verdict.OURS,
                )
            )
    return found


def _counting_missed(table: Table) -> Table:
    """A change that was missed counts as long as it had, and as not noticed all the while."""
    return Table(
        {**row, "reaction_hops": row["window_hops"], "polling_hops": row["window_hops"]}
        if row["lost"]
        else row
        for row in table
    )


def draw(table: Table) -> Figure:
    presets = table.distinct("preset")
    figure, axes = new_figure(1, len(presets))
    for at, preset in enumerate(presets):
        for number, way in enumerate(WAYS):
            here = _counting_missed(table.where(preset=preset, way=way))
            if not len(here):
                continue
            axes[at].scatter(
                here.mean("bytes_per_device_s"),
                here.mean("reaction_hops"),
                color=COLOURS[number],
                label=way,
                marker="s" if WAYS[way][0] else "o",
            )
        finish(axes[at], x="bytes per device and second", y="change to first command (hops)", title=preset)
        axes[at].set_xlim(left=0)
    return figure


CAMPAIGN = Campaign("push", cases, run, about_s=lambda _: 10.0)
EXPERIMENT = Experiment(
    id="B",
    title="Push against polling",
    campaign=CAMPAIGN,
    paper="How much sooner does a run act if devices tell changes by themselves, and what does that cost?",
    compare=compare,
    draw=draw,
    about=(
        "OLA on a grid, nobody else active. A second is 100 hops. Messages and bytes are what devices and "
        "nodes send each other to read, subscribe and report, counted once where they are sent. With push "
        "a read only proves that the device lives, so it may be rarer; that a device died is then noticed "
        "later as well. A change that was missed counts as long as it had."
    ),
)
