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
