"""One experiment as it is told, and how a report came to be."""

import os
import platform
import re
from collections import Counter

import msgspec

from comesh.experiments.campaign import Comparison, Scale, Verdict

COMPARED = (Verdict.AGREES, Verdict.BETTER, Verdict.DIFFERS)


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """How a report came to be."""

    command: str
    scale: Scale
    version: str
    day: str

    @property
    def line(self) -> str:
        return (
            f"Made by `{self.command}` with CoMesh {self.version} on {self.day}, Python "
            f"{platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."
        )


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment, as it is told."""

    id: str
    title: str
    paper: str
    about: str
    figure: str
    """The name of its picture, without ending; empty: there is none."""
    png: bytes
    comparisons: list[Comparison]
    parameters: str
    table: str
    failed: list[str]

    @property
    def is_ours(self) -> bool:
        return re.fullmatch(r"P\d+", self.id) is None

    @property
    def heading(self) -> str:
        return f"{self.id}. {self.title}"

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.failed:
            return f"failed: {len(self.failed)}"
        counts = Counter(one.verdict for one in self.comparisons)
        told = ", ".join(f"{counts[one]} {one}" for one in COMPARED if counts[one]) or "measured"
        missed = sum(one.met is False for one in self.comparisons)
        return f"{told}; bars missed: {missed}" if missed else told
