"""What devices report and take: one value of one reading, or the argument of a command."""

Value = bool | int | float | str
