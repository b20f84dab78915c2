"""The page as one HTML file that needs nothing else, everything in it escaped."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful.claims import Verdict
from heedful.figures.style import ATTENDED, AWAY, TOWARDS
from heedful.files import write_text
from heedful.report.page import Page
from heedful.report.timeline import CONTENT_POLICY

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a page may load and run: nothing but its own styles and pictures; a timeline's script is the only one."""

MARKS = {"yes": "holds", "no": "fails", "not shown": "open"}


def write_html(page: Page, path: Path) -> None:
    write_text(path, render_html(page))


def render_html(page: Page) -> str:
    """Templates escape everything but our own figures and timelines, and refuse names they do not know."""
    environment = Environment(
        loader=PackageLoader("heedful.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shade": _shade, "place": _place, "mark": MARKS.__getitem__, "ours": Markup}
    moving = any(section.timeline for section in page.sections)
    policy = f"{POLICY}; {CONTENT_POLICY}" if moving else POLICY
    return environment.get_template("page.html").render(page=page, policy=policy)


def _place(verdict: Verdict, value: float, from_right: bool = False) -> str:
    """Where a value stands on the scale of a claim, in per cent of its width; beyond the ends, at the end."""
    low, high = verdict.span
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return f"{100 * (1 - share if from_right else share):.2f}"


def _shade(shade: float, signed: bool) -> str:
    """The darker, the more attention; signed: green speaks for the decision, purple against it."""
    colour = ATTENDED if not signed else TOWARDS if shade >= 0 else AWAY
    strength = 0.8 * min(1.0, abs(shade)) if signed else max(0.0, shade)
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"background:rgba({red},{green},{blue},{strength:.3f})"
