"""What devices report and take: one value of one reading, or the argument of a command."""

Value = bool | int | float | str


def shown(value: Value | None) -> str:
    """As the document has it: true, and not True."""
    if value is None:
        return "unknown"
    return str(value).lower() if isinstance(value, bool) else str(value)
