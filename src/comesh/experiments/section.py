"""One experiment as it is told, and how a report came to be."""

import os
import platform
import re
from collections import Counter

import msgspec

from comesh.experiments.campaign import Comparison, Scale, Verdict

COMPARED = (Verdict.AGREES, Verdict.BETTER, Verdict.DIFFERS)


READING = (
    "A row of an experiment compares one thing. *Agrees*, *better* and *differs* are about what the "
    "paper states: a number, or a shape in words, after which stands, behind a colon, by what we "
    "judge it; delays of P15 and P16 are compared with the authors' program on one machine. *Ours* has "
    "nothing to be compared with, or nothing that it could be held to. A *bar* is what this project "
    "asks of itself; it is met or missed whatever the verdict is.",
    "Each experiment runs with two presets. `paper` has the paper's settings and switches off what we "
    "do beyond it and can be switched off; `default` is what a deployment gets that says nothing. In the "
    "name of a row these words are the preset, not who reports it. N: "
    "devices, 40 % of which are nodes; f: failures that a group bears; k = 2f+1: its members. SLA "
    "(sequential) asks for locks one after the other, OLA (optimistic) for all at once. Times are in "
    "hops of the mesh where they can be. Bands, where a figure has them, have the true mean in 95 of 100 "
    "tries (Student's t over meshes).",
)
"""At the head of a report, for who reads nothing else."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """How a report came to be."""

    command: str
    scale: Scale
    version: str
    day: str
    commit: str = ""
    """Of the checkout that it ran from, if it did."""

    @property
    def line(self) -> str:
        commit = f" (commit {self.commit})" if self.commit else ""
        return (
            f"Made by `{self.command}` with CoMesh {self.version}{commit} on {self.day}, Python "
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
    differs: str = ""
    """What of it differs, and why, in a few sentences; empty: nothing does."""
    note: str = ""
    """What has to be known of it beside its verdict."""

    @property
    def is_ours(self) -> bool:
        return re.fullmatch(r"P\d+", self.id) is None

    @property
    def heading(self) -> str:
        return f"{self.id}. {self.title}"

    @property
    def verdict(self) -> str:
        """In a few words."""
        failed = f"failed: {len(self.failed)}" if self.failed else ""
        counts = Counter(one.verdict for one in self.comparisons)
        told = ", ".join(f"{counts[one]} {one}" for one in COMPARED if counts[one])
        told = told or ("" if self.failed else "measured")
        missed = sum(one.met is False for one in self.comparisons)
        bars = f"bars missed: {missed}" if missed else ""
        return "; ".join(filter(None, (failed, told, bars, self.note)))
