"""The report as one HTML page that needs nothing else: figures are inside, nothing is loaded."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from comesh.experiments.campaign import Comparison
from comesh.experiments.section import READING, Section

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem; }
table { border-collapse: collapse; width: 100%; font-size: 14px; } img { max-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #e5e5e5; }
.agrees, .better, .met { color: #1a7f37; } .differs, .missed, .failed { color: #b35900; }
.ours { color: #555; }
.small { color: #666; font-size: 13px; } code { background: #f4f4f4; padding: 0 .2rem; }
"""


def html_page(sections: Sequence[Section], made: str) -> str:
    index = "".join(
        f'<tr><td><a href="#{one.id}">{one.id}</a></td><td>{escape(one.title)}</td>'
        f"<td>{escape(one.verdict)}</td><td>{_coded(one.differs)}</td></tr>"
        for one in sections
    )
    body = "".join(map(_section, sections))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The paper's evaluation, from our core</title><style>{STYLE}</style></head><body>"
        f"<h1>The paper's evaluation, from our core</h1><p>{_coded(made)}</p>"
        f"{''.join(f'<p>{_coded(paragraph)}</p>' for paragraph in READING)}"
        "<table><tr><th></th><th>what</th><th>verdict</th><th>where it differs</th></tr>"
        f"{index}</table>{body}</body></html>\n"
    )


def _section(one: Section) -> str:
    parts = [
        f'<h2 id="{one.id}">{escape(one.heading)}</h2>',
        f"<p><strong>{'Asked' if one.is_ours else 'The paper'}.</strong> {_coded(one.paper)}</p>",
    ]
    if one.about:
        parts.append(f"<p><strong>How.</strong> {_coded(one.about)}</p>")
    if one.png:
        data = b64encode(one.png).decode()
        parts.append(f'<p><img alt="{escape(one.title)}" src="data:image/png;base64,{data}"></p>')
    if one.comparisons:
        rows = "".join(map(_compared, one.comparisons))
        head = "<tr><th>what</th><th>ours</th><th>paper</th><th>verdict</th><th>why</th></tr>"
        parts.append(f"<table>{head}{rows}</table>")
    parts += [f'<p class="failed">failed: {escape(why)}</p>' for why in one.failed]
    parts.append(f'<p class="small">Parameters: {escape(one.parameters)}</p>')
    return "".join(parts)


def _compared(one: Comparison) -> str:
    bar = ""
    if one.held:
        bar = f'<br><span class="{one.held.lower()}">{escape(one.bar)}: {one.held}</span>'
    return (
        f"<tr><td>{_coded(one.what)}</td><td>{_coded(one.ours)}</td><td>{_coded(one.paper)}</td>"
        f'<td><span class="{one.verdict}">{one.verdict}</span>{bar}</td><td>{_coded(one.why)}</td></tr>'
    )


def _coded(text: str) -> str:
    """With what stands between backticks as code, and between asterisks with emphasis."""
    parts = map(escape, text.split("`"))
    return "".join(f"<code>{part}</code>" if at % 2 else _stressed(part) for at, part in enumerate(parts))


def _stressed(text: str) -> str:
    return "".join(f"<em>{part}</em>" if at % 2 else part for at, part in enumerate(text.split("*")))
