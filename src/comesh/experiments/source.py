"""What results are filed under, beside their parameters: the commit of the code that measured them.

- A checkout without changes: the last commit that changed the package, so that a commit of documentation or
  results keeps what was measured. `06b2f08cdc91`
- Uncommitted changes in the package: that commit and a digest of the package's files. The same changes find
  their results again; other changes, or none, do not. `06b2f08cdc91+5f2c90ab`
- No checkout: the version and that digest. `0.1.0+5f2c90ab`

Nothing looks into the code: a commit that changes a comment of the package is another commit. Who knows that
a commit changes nothing that is measured declares its results equal (`comesh reproduce --as-measured
COMMIT`). An experiment of somebody's own depends on plug-ins as well: `..., plugins 77d1e0a2`.
"""

import inspect
import subprocess
from collections.abc import Collection, Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import comesh
from comesh.experiments.catalogue import is_built_in, plugin_files
from comesh.experiments.stage import Campaign

PACKAGE = Path(comesh.__file__).parent


class Code(NamedTuple):
    commit: str
    digest: str
    """Of the files: workers compare it, wherever they run."""
    plugins: str = ""
    """A digest of the plug-ins that the results depend on, if on any."""

    @property
    def name(self) -> str:
        return self.called(self.commit)

    def called(self, commit: str) -> str:
        """What results of that commit with the same plug-ins are filed under."""
        return f"{commit}, plugins {self.plugins}" if self.plugins else commit


def code_of(campaign: Campaign, named: Collection[str] | None = None) -> Code:
    """The code that would measure the campaign now. named: of the plug-ins these alone."""
    return Code(commit(), package_digest(), plugins_digest(campaign, named))


def plugins_digest(campaign: Campaign, named: Collection[str] | None = None) -> str:
    if is_built_in(campaign):
        return ""
    module = inspect.getsourcefile(campaign.run)
    assert module is not None
    return _digest({Path(module), *plugin_files(named)})


@cache
def commit() -> str:
    last = commit_named("HEAD")
    if not last:
        return f"{comesh.__version__}+{package_digest()}"
    changed = _git("status", "--porcelain", "--", str(PACKAGE))
    return f"{last}+{package_digest()}" if changed else last


def commit_named(revision: str) -> str:
    """The last commit that changed the package as of a revision; empty: there is none."""
    if not _git("ls-files", "--error-unmatch", comesh.__file__):
        return ""
    return _git("log", "-1", "--format=%h", "--abbrev=12", revision, "--", str(PACKAGE))


@cache
def package_digest() -> str:
    return _digest(path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _digest(paths: Iterable[Path]) -> str:
    digest = blake2b(digest_size=4)
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _git(*words: str) -> str:
    """What it prints; empty: it cannot, or this is no checkout."""
    try:
        asked = subprocess.run(
            ["git", "-C", str(PACKAGE), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return asked.stdout.strip()
