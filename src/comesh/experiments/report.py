"""What a reproduction came to: figures, tables and bars, as Markdown and as one HTML page.

- OUT/report.md, report.html: the report; the page has its figures inside and loads nothing
- OUT/figures/P1.png, P1.svg: one figure per experiment
- OUT/tables/NAME.csv: all measurements of a campaign, one row each, with their parameters
- OUT/bars.csv: every bar, with its value and its limit

A report has no findings: people write them (docs/results/findings.md).
"""

import io
import os
import platform
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import msgspec
from matplotlib import rc_context
from matplotlib.figure import Figure

from comesh.experiments.reproduction import Result
from comesh.experiments.stage import Bar, Scale, Table, Value, number

DOTS_PER_INCH = 110
MAX_VALUES = 12
"""Values of a parameter that are listed one by one."""
READING = (
    "Each experiment has a figure, tables, and bars: numbers that this project holds itself to. The report "
    "says whether they are met and draws no conclusions. Where the paper states a number it stands in a "
    "column `paper`.",
    "Presets: `paper` has the paper's settings and switches off what CoMesh does beyond it and can be "
    "switched off; `default` is what a deployment gets that sets nothing. N: devices, 40 % of which are "
    "nodes; f: failures that a group bears; k = 2f+1: its members. SLA (sequential) asks for locks one "
    "after the other, OLA (optimistic) for all at once. Times are in hops of the mesh where they can be. "
    "`3.4 [3.1, 3.8]`: a mean, or a ratio of means, and the interval that holds the true one in 95 of 100 "
    "tries; a mesh (a seed) counts once.",
)
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem; }
table { border-collapse: collapse; font-size: 14px; margin: 1rem 0; } img { max-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem; border-bottom: 1px solid #e5e5e5; }
code { background: #f4f4f4; padding: 0 .2rem; }
"""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """How a report came to be."""

    command: str
    scale: Scale
    version: str
    day: str
    commit: str

    @property
    def line(self) -> str:
        return (
            f"Made by `{self.command}` with CoMesh {self.version} (commit {self.commit}) on {self.day}, "
            f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores."
        )


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment in a report."""

    result: Result
    png: bytes
    failed: list[str]

    @property
    def heading(self) -> str:
        return f"{self.result.experiment.id}. {self.result.experiment.title}"

    @property
    def verdict(self) -> str:
        """Its bars, and what has to be known of it, in a few words."""
        bars = self.result.bars
        missed, unjudged = (sum(one.met is what for one in bars) for what in (False, None))
        met = len(bars) - missed - unjudged
        counts = {"met": met, "MISSED": missed, "not judged": unjudged}
        told = [f"{count} {what}" for what, count in counts.items() if count]
        failed = [f"failed: {len(self.failed)}"] if self.failed else []
        return "; ".join(filter(None, (", ".join(told), *failed, self.result.remark)))


def write(results: Sequence[Result], out: Path, made: Made) -> list[Section]:
    """All files of a reproduction."""
    for name in ("figures", "tables"):
        (out / name).mkdir(parents=True, exist_ok=True)
    sections = [_section(result, out) for result in results]
    (out / "bars.csv").write_text(bars_of(results).csv())
    blocks = _blocks(sections, made)
    (out / "report.md").write_text("\n\n".join(blocks) + "\n")
    figures = {one.result.experiment.id: one.png for one in sections}
    (out / "report.html").write_text(_page(blocks, figures))
    return sections


def bars_of(results: Sequence[Result]) -> Table:
    return Table(
        {
            "experiment": result.experiment.id,
            "bar": bar.name,
            "value": bar.value,
            "sense": bar.sense,
            "limit": bar.limit,
            "verdict": bar.verdict,
        }
        for result in results
        for bar in result.bars
    )


def _section(result: Result, out: Path) -> Section:
    experiment = result.experiment
    failed = [one.short for one in result.failed]
    png = b""
    if len(result.table):
        (out / "tables" / f"{experiment.campaign.name}.csv").write_text(result.table.csv())
        try:
            looked_at = [one for one in result.table if experiment.looks_at(one)]
            png = _write_figure(experiment.draw(Table(looked_at)), out / "figures" / experiment.id)
        except Exception as wrong:  # its figure is missing, and the rest is there
            failed.append(f"drawing: {type(wrong).__name__}: {wrong}")
    return Section(result=result, png=png, failed=failed)


def _write_figure(figure: Figure, path: Path) -> bytes:
    with rc_context({"svg.hashsalt": path.name}):  # equal figures are equal files
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=DOTS_PER_INCH)
    path.with_suffix(".png").write_bytes(picture.getvalue())
    return picture.getvalue()


def parameters_of(result: Result) -> str:
    """What was varied, and how far; how long it took, and which commits measured it."""
    experiment = result.experiment
    cases = [case for case in result.cases if experiment.looks_at(case)]
    names = list(dict.fromkeys(name for case in cases for name in case))
    told = [f"{name} {_values([case[name] for case in cases if name in case])}" for name in names]
    of = (
        ""
        if len(cases) == len(result.cases)
        else f" of the {len(result.cases)} of {experiment.campaign.name}"
    )
    minutes = result.took_s / 60
    took = f"{minutes:.1f} minutes" if minutes >= 1 else f"{result.took_s:.1f} s"
    counted = f"{len(cases)} case{'' if len(cases) == 1 else 's'}{of}"
    all_of = "all of " if of else ""
    commits = " and ".join(result.commits)
    return f"{'; '.join(told)}. {counted}, {all_of}which took {took}, measured at commit {commits}."


def _values(values: Sequence[Value]) -> str:
    distinct = [one for one in dict.fromkeys(values) if one != ""]
    whole = [one for one in distinct if type(one) is int]
    if len(whole) == len(distinct) > 2 and whole == list(range(whole[0], whole[-1] + 1)):
        return f"{whole[0]} to {whole[-1]}"
    listed = ", ".join(str(one) for one in distinct[:MAX_VALUES])
    return listed if len(distinct) <= MAX_VALUES else f"{listed} and {len(distinct) - MAX_VALUES} more"


# -- Markdown, and the page that is made of it --------------------------------------------------------------


def _blocks(sections: Sequence[Section], made: Made) -> list[str]:
    index = Table(
        {
            "": f"[{one.heading}](#{_anchor(one.heading)})",
            "bars": one.verdict or "none",
            "measured at commit": ", ".join(one.result.commits),
        }
        for one in sections
    )
    title = "# The paper's evaluation, from our core"
    return [title, made.line, *READING, _table(index), *(block for one in sections for block in _told(one))]


def _told(section: Section) -> list[str]:
    result = section.result
    experiment = result.experiment
    is_ours = re.fullmatch(r"P\d+", experiment.id) is None
    blocks = [
        f"## {section.heading}",
        f"**{'The question' if is_ours else 'The paper'}.** {experiment.paper}",
        *(f"**How.** {experiment.about}".strip().split("\n\n") if experiment.about else ()),
    ]
    if section.png:
        blocks.append(f"![{experiment.title}](figures/{experiment.id}.png)")
    for caption, table in result.tables.items():
        blocks += [f"*{caption}*", _table(table)] if caption else [_table(table)]
    if result.bars:
        blocks.append(_table(Table(_bar(one) for one in result.bars)))
    blocks += [f"failed: {one}" for one in section.failed]
    csv = f"tables/{experiment.campaign.name}.csv"
    return [*blocks, f"Parameters: {parameters_of(result)} All measurements: [{csv}]({csv})."]


def _bar(bar: Bar) -> dict[str, Value]:
    limit = f"{bar.sense} {number(bar.limit)}"
    return {"bar": bar.name, "value": bar.value, "limit": limit, "verdict": bar.verdict}


def _table(table: Table) -> str:
    lines = [table.columns, ["---"] * len(table.columns)]
    lines += [[_cell(row.get(name)).replace("|", "\\|") for name in table.columns] for row in table]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Value) -> str:
    return "" if value is None else number(value) if isinstance(value, float) else str(value)


def _anchor(heading: str) -> str:
    kept = "".join(one for one in heading.lower() if one.isalnum() or one in " -")
    return kept.replace(" ", "-")


def _page(blocks: Sequence[str], figures: Mapping[str, bytes]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{blocks[0][2:]}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(_html(one, figures) for one in blocks)}</body></html>\n"
    )


def _html(block: str, figures: Mapping[str, bytes]) -> str:
    if heading := re.match("(#+) (.*)", block):
        level, text = len(heading[1]), heading[2]
        return f'<h{level} id="{_anchor(text)}">{escape(text)}</h{level}>'
    if figure := re.match(r"!\[(.*)\]\(figures/(.*)\.png\)", block):
        data = b64encode(figures[figure[2]]).decode()
        return f'<p><img alt="{escape(figure[1])}" src="data:image/png;base64,{data}"></p>'
    if not block.startswith("| "):
        return f"<p>{_marked(block)}</p>"
    head, _, *rows = (re.split(r" (?<!\\)\| ", line[2:-2]) for line in block.splitlines())
    lines = [("th", head), *(("td", row) for row in rows)]
    return f"<table>{''.join(f'<tr>{_cells(tag, row)}</tr>' for tag, row in lines)}</table>"


def _cells(tag: str, row: Sequence[str]) -> str:
    return "".join(f"<{tag}>{_marked(cell.replace(chr(92) + '|', '|'))}</{tag}>" for cell in row)


def _marked(text: str) -> str:
    """The little Markdown that reports use: code, strong, emphasis and links."""
    text = escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    text = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', text)
