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
