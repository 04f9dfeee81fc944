"""What a reproduction came to: figures, tables of measurements, a report as Markdown and as one HTML page.

- OUT/report.md, report.html: the report; the page has its figures inside
- OUT/figures/P1.png, P1.svg: one figure per experiment
- OUT/tables/NAME.csv, NAME.parquet: all measurements of a campaign, one row each, with their parameters
- OUT/cases/NAME.jsonl: what each case came to, which a later run goes on from
"""

import io
from collections.abc import Sequence
from pathlib import Path

import pyarrow
from matplotlib import rc_context
from matplotlib.figure import Figure
from pyarrow import parquet

from comesh.experiments.campaign import Comparison, Verdict
from comesh.experiments.page import html_page
from comesh.experiments.reproduction import Result
from comesh.experiments.section import READING, Made, Section
from comesh.experiments.table import Table, Value

DOTS_PER_INCH = 110
MAX_VALUES = 12
"""Of a parameter that are listed one by one."""


def write(results: Sequence[Result], out: Path, made: Made) -> list[Section]:
    """All files of a reproduction."""
    for name in ("figures", "tables"):
        (out / name).mkdir(parents=True, exist_ok=True)
    sections = [_section(result, out) for result in results]
    (out / "report.md").write_text(markdown(sections, made))
    (out / "report.html").write_text(html_page(sections, made.line))
    return sections


def _section(result: Result, out: Path) -> Section:
    experiment, table = result.experiment, result.table
    name = experiment.campaign.name
    failed = [one.short for one in result.failed]
    png = b""
    if len(table):
        try:
            _write_table(table, out / "tables" / name)
        except pyarrow.ArrowException as wrong:  # of two codes, a column may be of two kinds
            failed.append(f"writing its table: {wrong}")
    if result.comparisons:
        try:
            png = _write_figure(experiment.draw(table), out / "figures" / experiment.id)
        except Exception as wrong:  # its figure is missing, and the rest is there
            failed.append(f"drawing: {type(wrong).__name__}: {wrong}")
    return Section(
        id=experiment.id,
        title=experiment.title,
        paper=experiment.paper,
        about=experiment.about,
        figure=experiment.id if png else "",
        png=png,
        comparisons=result.comparisons,
        parameters=parameters_of(result),
        table=f"tables/{name}.csv",
        failed=failed,
        differs=_what_differs(result.comparisons),
        note=result.note,
    )


def _what_differs(comparisons: Sequence[Comparison]) -> str:
    """In the words of the rows that do; each sentence once."""
    differing = [one for one in comparisons if one.verdict is Verdict.DIFFERS]
    return " ".join(dict.fromkeys(one.in_short or f"See: {one.what}." for one in differing))


def _write_figure(figure: Figure, path: Path) -> bytes:
    with rc_context({"svg.hashsalt": path.name}):  # equal figures are equal files
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=DOTS_PER_INCH)
    path.with_suffix(".png").write_bytes(picture.getvalue())
    return picture.getvalue()


def _write_table(table: Table, path: Path) -> None:
    path.with_suffix(".csv").write_text(table.csv())
    columns = {name: [row.get(name) for row in table] for name in table.columns}
    parquet.write_table(pyarrow.table(columns), path.with_suffix(".parquet"))


def parameters_of(result: Result) -> str:
    """What was varied, and how far; and what it took."""
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
    code = " and ".join(result.codes)
    counted = f"{len(cases)} case{'' if len(cases) == 1 else 's'}{of}"
    all_of = "all of " if of else ""
    return f"{'; '.join(told)}. {counted}, {all_of}which took {took}, measured with code {code}."


def _values(values: Sequence[Value]) -> str:
    distinct = [one for one in dict.fromkeys(values) if one != ""]
    whole = [one for one in distinct if type(one) is int]
    if len(whole) == len(distinct) > 2 and whole == list(range(whole[0], whole[-1] + 1)):
        return f"{whole[0]} to {whole[-1]}"
    listed = ", ".join(str(one) for one in distinct[:MAX_VALUES])
    return listed if len(distinct) <= MAX_VALUES else f"{listed} and {len(distinct) - MAX_VALUES} more"


# -- Markdown ----------------------------------------------------------------------------------------------


def markdown(sections: Sequence[Section], made: Made) -> str:
    lines = [
        "# The paper's evaluation, from our core",
        "",
        made.line,
        "",
        *(line for paragraph in READING for line in (paragraph, "")),
        "| | what | verdict | where it differs |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| [{one.id}](#{_anchor(one)}) | {one.title} | {one.verdict} | {one.differs} |" for one in sections
    ]
    for one in sections:
        lines += ["", *_told(one)]
    return "\n".join(lines) + "\n"


def _anchor(section: Section) -> str:
    kept = "".join(one for one in section.heading.lower() if one.isalnum() or one in " -")
    return kept.replace(" ", "-")


def _told(section: Section) -> list[str]:
    lines = [
        f"## {section.heading}",
        "",
        f"**{'Asked' if section.is_ours else 'The paper'}.** {section.paper}",
    ]
    if section.about:
        lines += ["", f"**How.** {section.about}"]
    if section.figure:
        lines += ["", f"![{section.title}](figures/{section.figure}.png)"]
    if section.comparisons:
        lines += ["", "| what | ours | paper | verdict | why |", "| --- | --- | --- | --- | --- |"]
        lines += [_compared(one) for one in section.comparisons]
    lines += [f"\n- failed: {one}" for one in section.failed]
    lines += ["", f"Parameters: {section.parameters} All measurements: [{section.table}]({section.table})."]
    return lines


def _compared(one: Comparison) -> str:
    bar = f" ({one.bar}: {one.held})" if one.held else ""
    cells = (one.what, one.ours, one.paper, f"{one.verdict}{bar}", one.why)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
