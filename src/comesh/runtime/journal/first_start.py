"""The permission to begin a deployment: a file outside of the data directory that is used up by one start.

A journal that was there when the deployment was initialised holds the genesis rights (core/events.Started).
A node whose disk was wiped looks exactly like one that never ran, and must not get them a second time: with
the old members alive it would begin a second history. So the right does not follow from an empty directory.
It follows from a person, or a program for them, who says once that this is the first start:

- `grant(path)` when a deployment is set up on this machine (`comesh up` that creates its run directory, a
  node's credentials being written);
- `take(path)` when a process starts without a journal. It deletes the file, and flushes that, before any
  right is written: if the machine fails in between, the node begins without rights, which is safe;
- a flag such as `--init`, given by hand and not written into a service, is the same for one start.
"""

import os
from pathlib import Path

from comesh.runtime.journal.files import sync_directory


def grant(path: Path) -> None:
    """Allow one first start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    sync_directory(path.parent)


def take(path: Path) -> bool:
    """Whether it was allowed; it is not any more. An OSError: the permission cannot be used up."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    return True
