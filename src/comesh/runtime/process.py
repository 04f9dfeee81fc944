"""The process of a node: `python -m comesh.runtime.process OPTIONS`, options as JSON.

`comesh node` checks what it is told and turns into this, so that a node carries neither a command line nor a
terminal library with it. Nor a second OpenSSL: nodes speak through the one inside of `cryptography`, and
asyncio and hashlib do well without theirs. That is 17 MB less on a small computer. Only a node whose HTTP
interface has TLS needs it.
"""

import json
import sys
from importlib import import_module
from typing import Any, cast

NOT_NEEDED = ("ssl", "_hashlib")
INTERRUPTED = 130


def leave_out() -> None:
    """Before anything else is imported."""
    for name in NOT_NEEDED:
        cast(Any, sys.modules)[name] = None  # whoever tries to import it takes it for not installed


def main() -> int:
    if json.loads(sys.argv[1]).get("api_cert") is None:
        leave_out()
    try:
        code: int = import_module("comesh.runtime.running").run(sys.argv[1])
    except KeyboardInterrupt:  # before the node listened to signals: there is nothing to hand over yet
        return INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
