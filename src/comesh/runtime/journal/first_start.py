"""Whether `--init` counts: a mark beside a node's keys, not in its data directory, made by its first start.

A journal that was there when the deployment was initialised holds the genesis rights (core/events.Started).
A node whose data directory was wiped looks exactly like one that never ran, and must not get them a second
time: with the old members alive it would begin a second history. So the first start with `--init` leaves a
mark, flushed before any right is written, and a later one that finds it and no journal begins without rights.
If the machine fails between the two, the node also begins without, which is safe. A person who knows that the
deployment never ran removes the mark.
"""

import os
from pathlib import Path

from comesh.runtime.journal.files import sync_directory, trouble


def mark_of(keys: Path, name: str) -> Path:
    return keys / f"{name}.began"


def note_first_start(mark: Path) -> bool:
    """Make the mark; False: there is one already. JournalError: it cannot be made."""
    try:
        with mark.open("x") as file:
            os.fsync(file.fileno())
        sync_directory(mark.parent)
    except FileExistsError:
        return False
    except OSError as wrong:
        raise trouble(mark.parent, wrong, "note the first start (--init)") from wrong
    return True
