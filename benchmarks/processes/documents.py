"""Deployment documents for the benchmarks."""


def locks_document(devices: int, *, nodes: int = 3, lease: str = "1s") -> str:
    """One cluster of devices that nobody uses, and nodes that all sit in its group; strict durability."""
    lines = [
        "name: locks",
        f"settings: {{f: 1, epoch: 1h, lease: {lease}, durability: strict, hop: 1ms,",
        f"  selection: {{cluster_size: {devices}}}}}",
        "nodes:",
        *(f"  n{number}: {{place: [{number}m, 0m]}}" for number in range(1, nodes + 1)),
        "devices:",
        *(
            f"  d{number}: {{place: [{number % 10}m, 1m], readings: {{on: bool}}, "
            "commands: {set: {argument: bool, sets: on}}}"
            for number in range(devices)
        ),
    ]
    return "\n".join(lines) + "\n"


def firing_document(buttons: int, *, clusters: int = 1, together: bool = False, lease: str = "1s") -> str:
    """Buttons, each of which switches five lamps of its own; k=3, everything near.

    clusters 5: the lamps of a button stand in five clusters, far apart.
    """
    lines = [
        "name: firings",
        f"settings: {{f: 1, epoch: 1h, lease: {lease}, hop: 1ms, locks: {{strategy: sequential}},",
        f"  selection: {{cluster_size: {6 * buttons if clusters == 1 else 2 * buttons}}}}}",
        "nodes:",
        *(f"  n{number}: {{place: [{number}m, 0m]}}" for number in range(1, 4)),
        "devices:",
    ]
    for button in range(buttons):
        lines.append(
            f"  b{button}: {{place: [0m, {button % 10}m], event: true, readings: {{press: [single, long]}}}}"
        )
        lines += [
            f"  l{button}_{lamp}: {{place: [{1 + lamp if clusters == 1 else 100 * lamp}m, {button % 10}m], "
            "readings: {on: bool}, commands: {set: {argument: bool, sets: on}}}"
            for lamp in range(5)
        ]
    lines.append("routines:")
    for button in range(buttons):
        steps = ", ".join(
            f"{{device: l{button}_{lamp}, command: set, argument: true"
            + (", together: true}" if together and lamp else "}")
            for lamp in range(5)
        )
        lines.append(f"  r{button}: {{on_event: b{button}.press == 'single', do: [{steps}]}}")
    return "\n".join(lines) + "\n"


def failover_document(*, lease: str, nodes: int = 5, steps: int = 40) -> str:
    """One cluster, and a routine by hand that switches lamps for many seconds, one every 0.2 s."""
    lines = [
        "name: failover",
        f"settings: {{f: 1, epoch: 1h, lease: {lease}, hop: 1ms, selection: {{cluster_size: 10}}}}",
        "nodes:",
        *(f"  n{number}: {{place: [{number}m, 0m]}}" for number in range(1, nodes + 1)),
        "devices:",
        *(
            f"  l{lamp}: {{place: [{lamp}m, 1m], readings: {{on: bool}}, "
            "commands: {set: {argument: bool, sets: on, takes: 200ms}}}"
            for lamp in range(5)
        ),
        "routines:",
        "  long:",
        "    do:",
        *(
            f"      - {{device: l{step % 5}, command: set, argument: {'true' if step // 5 % 2 else 'false'}}}"
            for step in range(steps)
        ),
    ]
    return "\n".join(lines) + "\n"


def idle_document(nodes: int, *, lease: str = "1s", epoch: str = "1h") -> str:
    """Nodes in a row, each with a sensor that nobody reads."""
    lines = [
        "name: idle",
        f"settings: {{f: 1, epoch: {epoch}, lease: {lease}, hop: 1ms}}",
        "nodes:",
        *(f"  n{number:02d}: {{place: [{number}m, 0m]}}" for number in range(1, nodes + 1)),
        "devices:",
        *(
            f"  s{number:02d}: {{place: [{number}m, 1m], readings: {{on: bool}}}}"
            for number in range(1, nodes + 1)
        ),
    ]
    return "\n".join(lines) + "\n"
