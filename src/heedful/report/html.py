"""The page as one HTML file that needs nothing else, everything in it escaped.

Its script, which is in it, draws maps and texts from the numbers that stand in it, sorts tables and saves figures. What
is not drawn by the script is there without it.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful.claims import Verdict, source
from heedful.claims.claim import sentence
from heedful.files import write_text
from heedful.report.page import Page, PageTable
from heedful.report.terminal import line_words
from heedful.report.timeline import SCRIPT as TIMELINE
from heedful.spreadsheets import as_csv

MARKS = {"yes": "holds", "no": "fails", "not shown": "open"}

CSV_ROWS = 5_000  # of a table that a page holds to be saved; the files beside it have all


def write_html(page: Page, path: Path) -> None:
    write_text(path, render_html(page))


def render_html(page: Page) -> str:
    """Templates escape everything but our own figures, timelines and script, and refuse names they do not know."""
    loader = PackageLoader("heedful.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"place": _place, "kind": _kind, "mark": MARKS.__getitem__, "ours": Markup, "cut": _cut}
    environment.filters |= {
        "line": line_words,
        "data": _data,
        "csv": _csv,
        "cut": _cut,
        "source": _source,
        "code": _code,
    }
    script = files("heedful.report").joinpath("templates/page.js").read_text(encoding="utf-8")
    moving = [TIMELINE] if any(section.timeline for section in page.sections) else []
    return environment.get_template("page.html").render(page=page, script=script, policy=_policy([script, *moving]))


def _policy(scripts: Sequence[str]) -> str:
    """What a page may load and run: its own styles, pictures and scripts, nothing else."""
    known = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {known}"


def _place(verdict: Verdict, value: float, from_right: bool = False) -> str:
    """Where a value stands on the scale of a claim, in per cent of its width; beyond the ends, at the end."""
    low, high = verdict.span
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return f"{100 * (1 - share if from_right else share):.2f}"


def _kind(shade: float, signed: bool) -> str:
    """Attention, or what speaks for the decision or against it."""
    return "attended" if not signed else "towards" if shade >= 0 else "away"


def _source(claim: str) -> str:
    return sentence(source(claim)) + "."


def _code(words: str) -> Markup:
    """What stands between backticks as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(words.split("`"))
    )


def _data(value: object) -> Markup:
    """Plain data for the script, in which no markup begins."""
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(written)


def _csv(table: PageTable) -> Markup:
    """The numbers behind a table as the text of a CSV file."""
    return _data(as_csv(table.numbers.head(CSV_ROWS)))


def _cut(table: PageTable) -> str:
    """What is said where that file has not all of them."""
    rows = len(table.numbers)
    return (
        f"CSV: the first {CSV_ROWS:,} of {rows:,} rows; the files beside the page have all." if rows > CSV_ROWS else ""
    )
