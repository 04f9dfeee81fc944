"""Texts of the core as people read them: values as the document has them, numbers as short as they may be.

The core writes what it traces as it is cheapest; its texts become TraceLine, News and AuditSeen through here.
"""

import re
from typing import Final

_VALUES: Final = {"True": "true", "False": "false", "None": "unknown"}
_ODD: Final = re.compile(
    r"(?<==)(?P<reading>True|False|None)(?=[,;]|$)"
    r"|^(?P<command>(?:step \d+: \S+|set \S+:) \S+) (?P<argument>True|False)$"
    r"|\b(?P<one>1 step)s\b"
    r"|(?<=cooldown for )(?P<seconds>\d[\d.e+-]*)(?= s more)"
)


def in_words(text: str) -> str:
    return _ODD.sub(_reworded, text)


def _reworded(found: re.Match[str]) -> str:
    if found["reading"]:
        return _VALUES[found["reading"]]
    if found["argument"]:
        return f"{found['command']} {_VALUES[found['argument']]}"
    if found["one"]:
        return found["one"]
    seconds = float(found["seconds"])
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"
