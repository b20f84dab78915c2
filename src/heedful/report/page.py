"""The report: one HTML file that needs nothing else, everything in it escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful.analysis.statistics import Estimate
from heedful.claims import Verdict
from heedful.claims.answer import Answer
from heedful.figures.style import ATTENDED, AWAY, TOWARDS
from heedful.files import write_text
from heedful.report.strips import Example, Piece
from heedful.report.timeline import CONTENT_POLICY

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a page may load and run: nothing but its own styles and pictures."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A drawn figure and the sentence that says what to see in it."""

    title: str
    caption: str
    svg: str
    wide: bool = False
    """Too wide to be read when it is shrunk to a narrow screen: it scrolls there."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A section of its own: a sentence, and what of verdicts, table and pictures it has."""

    name: str
    title: str
    lead: str
    verdicts: Sequence[Verdict] = ()
    tables: Sequence[pd.DataFrame] = ()
    """Cells are words."""
    note: str = ""
    """What to know of the tables."""
    pictures: Sequence[Picture] = ()
    fragment: str = ""
    """A timeline: HTML of our own making."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that the page shows, in its order."""

    title: str
    answer: Answer
    verdicts: Sequence[Verdict]
    accuracy: Estimate
    baseline: float
    """The accuracy of always guessing the commonest class."""
    worth: Sequence[Verdict]
    """Whether the model does better than that."""
    pictures: Sequence[Picture]
    strongest: Mapping[str, pd.DataFrame]
    examples: Sequence[Example]
    notices: Sequence[str]
    facts: Mapping[str, Mapping[str, object]]
    naming: str = ""
    """Which class is called positive, where that is not plain."""
    erasure: Part | None = None
    advice: Part | None = None
    training: Part | None = None

    @property
    def policy(self) -> str:
        """The Content-Security-Policy of the page: a timeline's script is the only one that may run."""
        return f"{POLICY}; {CONTENT_POLICY}" if self.training and self.training.fragment else POLICY


def write_report(report: Report, path: Path) -> None:
    write_text(path, render(report))


def render(report: Report) -> str:
    return make_environment().get_template("report.html").render(report=report)


def make_environment() -> Environment:
    """Templates that escape everything but our own figures, and refuse names they do not know."""
    environment = Environment(
        loader=PackageLoader("heedful.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["attention_style"] = _attention_style
    environment.filters["decision_style"] = _decision_style
    environment.filters["place"] = _place
    environment.filters["mark"] = {"yes": "holds", "no": "fails", "not shown": "open"}.__getitem__
    environment.filters["svg"] = Markup  # figures and timelines are ours; everything else is escaped
    return environment


def _place(verdict: Verdict, value: float, from_right: bool = False) -> str:
    """Where a value stands on the scale of a claim, in per cent of its width; beyond the ends, at the end."""
    low, high = verdict.span
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return f"{100 * (1 - share if from_right else share):.2f}"


def _attention_style(piece: Piece) -> str:
    """One hue: the darker, the more attention."""
    assert piece.shade is not None
    return f"background:rgba({_rgb(ATTENDED)},{max(0.0, piece.shade):.3f})"


def _decision_style(piece: Piece) -> str:
    """Green speaks for the decision, purple against it."""
    assert piece.shade is not None
    return f"background:rgba({_rgb(TOWARDS if piece.shade >= 0 else AWAY)},{0.8 * min(1.0, abs(piece.shade)):.3f})"


def _rgb(colour: str) -> str:
    """#E69F00 as 230,159,0."""
    return ",".join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))
