"""The deployments that scenarios run: small, quick to react, with conflicts, timers and things done once."""

from comesh.lab.shapes import Shape, paper_places

_LAMP = """
x-lamp: &lamp
  readings: {on: bool}
  commands:
    set: {argument: bool, sets: on, takes: 50ms}
    work: {idempotent: false, takes: %(work)s}
    blink: {idempotent: false, takes: 20ms}
"""
_ROOMS = """\
devices:
  east1: {place: [40m, 1m], <<: *lamp}
  east2: {place: [40m, 2m], <<: *lamp}
  door: {place: [40m, 3m], readings: {open: bool}}
  west1: {place: [0m, 1m], <<: *lamp}
  west2: {place: [0m, 2m], <<: *lamp}
routines:
  across:
    do:
      - {device: west1, command: work}
      - {device: east1, command: work}
  back:
    do:
      - {device: west1, command: set, argument: false}
      - {device: east1, command: blink}
  tick:
    every: 1s
    do:
      - {device: west2, command: blink}
  tock:
    every: 1s
    do:
      - {device: east2, command: blink}
  guard:
    when: door.open
    for: 3s
    do:
      - {device: east2, command: set, argument: true}
"""


def five_rooms(
    *,
    durability: str = "strict",
    lease: str = "400ms",
    work: str = "800ms",
    epoch: str = "1h",
    domains: str = "",
    f: int = 1,
) -> str:
    """Five nodes on a corridor; the devices at each end are a group of their own.

    across and back conflict and span both groups; each ends with a command in the group of its routine, so
    that the other group's lock waits for its release. tick goes on for ever; guard is a timer. domains:
    letters of the nodes' power domains.
    """
    nodes = "\n".join(
        f"  n{number}: {{place: [{10 * (number - 1)}m, 0m]"
        + (f", power_domain: {domains[number - 1]}}}" if domains else "}")
        for number in range(1, 6)
    )
    return f"""
name: Five rooms
settings:
  f: {f}
  epoch: {epoch}
  monitoring: 200ms
  lease: {lease}
  membership_period: 500ms
  hop: 1ms
  command_timeout: 2s
  flight_limit: 1s
  durability: {durability}
  selection: {{cluster_size: 3, members: random}}
{_LAMP % {"work": work}}
nodes:
{nodes}
{_ROOMS}"""


def paper_rooms(shape: Shape, seed: int, *, epoch: str = "15s") -> str:
    """The paper's eleven nodes, with a lamp beside each, and routines that reach over several of them."""
    places = paper_places(shape, seed)
    nodes = "\n".join(f"  {name}: {{place: [{x}m, {y}m]}}" for name, (x, y) in places.items())
    lamps = "\n".join(
        f"  lamp{name[1:]}: {{place: [{x}m, {y}.2m], <<: *lamp}}" for name, (x, y) in places.items()
    )
    names = [name[1:] for name in places]
    routines = "\n".join(
        f"  r{number}:\n    every: 2s\n    do:\n"
        + "\n".join(
            f"      - {{device: lamp{names[(first + 3 * step) % len(names)]}, command: blink}}"
            for step in range(3)
        )
        for number, first in enumerate(range(0, len(names), 2), start=1)
    )
    return f"""
name: The paper's {shape}
settings:
  f: 1
  epoch: {epoch}
  monitoring: 1s
  lease: 1s
  hop: 2ms
  command_timeout: 2s
  flight_limit: 1s
  selection: {{cluster_size: 4}}
{_LAMP % {"work": "300ms"}}
nodes:
{nodes}
devices:
{lamps}
routines:
{routines}
"""
