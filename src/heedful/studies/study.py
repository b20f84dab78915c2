"""What every study of a paper shares: runs that are found or made, saved figures, verdicts, and the parts of its page.

A study directory holds

    tables/     every table as CSV, Parquet and LaTeX, the verdicts among them
    figures/    each figure as SVG, PDF and PNG
    figures.md  the figures with what to see in them
    study.html  all of it on one page
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from heedful.claims import verdict_table
from heedful.errors import HeedfulError
from heedful.figures.style import inline_svg, save_figure
from heedful.files import write_text
from heedful.report.page import Picture
from heedful.report.study import Judged
from heedful.store import Store
from heedful.studies.runs import Runs
from heedful.studies.tables import save_table
from heedful.sweep.loop import Failure, SweepEvent, sweep
from heedful.sweep.plan import Plan

MOST_NOTICES = 10
WIDE = 10.0
"""Inches from which a figure is too wide for a narrow screen."""


@dataclass(frozen=True, kw_only=True)
class Captioned:
    """A figure by its name in the paper: its title, its caption, and one sentence of what to see in it."""

    name: str
    title: str
    caption: str
    see: str


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure that was saved: its files, and itself as an element of a page."""

    figure: Captioned
    stem: Path
    svg: str
    wide: bool

    def picture(self) -> Picture:
        caption = f"{self.figure.title}. {self.figure.caption} What to see: {self.figure.see}"
        return Picture(title=self.figure.title, caption=caption, svg=self.svg, wide=self.wide)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A finished study: its verdicts and figures, what failed, and where the page lies."""

    out: Path
    judged: tuple[Judged, ...]
    drawn: tuple[Drawn, ...]
    missing: tuple[str, ...]
    """Figures that could not be drawn because runs failed."""
    failures: tuple[Failure, ...]

    @property
    def page(self) -> Path:
        return self.out / "study.html"

    def verdicts(self) -> pd.DataFrame:
        """One row per data set and claim."""
        tables = [verdict_table(list(one.verdicts)).assign(dataset=one.dataset) for one in self.judged]
        if not tables:
            return pd.DataFrame()
        table = pd.concat(tables, ignore_index=True)
        return table[["dataset", *(column for column in table if column != "dataset")]]

    def summary(self) -> dict[str, object]:
        """The study as plain data."""
        return {
            "page": str(self.page),
            "verdicts": plain(self.verdicts()),
            "figures": {one.figure.name: f"{one.stem}.svg" for one in self.drawn},
            "missing_figures": list(self.missing),
            "failed": [failure.payload() for failure in self.failures],
        }

    def words(self) -> list[str]:
        """What is printed before the verdicts: the tables, a line for each row."""
        return []

    def lead(self) -> str:
        """How many verdicts hold, or else how many figures there are."""
        verdicts = [verdict.decision for one in self.judged for verdict in one.verdicts]
        if not verdicts:
            return f"{len(self.drawn)} figures."
        shown, refuted = verdicts.count("yes"), verdicts.count("no")
        still = len(verdicts) - shown - refuted
        return f"Of {len(verdicts)} claims {shown} are shown (yes), {refuted} refuted (no), {still} not shown."

    def notices(self) -> list[str]:
        """What failed, for the top of the page."""
        failed = [f"A run failed: {failure.message}" for failure in self.failures[:MOST_NOTICES]]
        return [*failed, *(f"Figure {name} is not drawn: it needs runs that failed." for name in self.missing)]


def make_runs(
    plan: Plan | None,
    store: Store,
    *,
    on: str = "local",
    workers: int | None = None,
    watch: Callable[[SweepEvent], None] | None = None,
) -> tuple[Runs, tuple[Failure, ...]]:
    """The runs of a study, computed where they are missing, and those that failed. Without a plan there are none."""
    if plan is None:
        return Runs([]), ()
    done = sweep(plan, store, on=on, workers=workers, watch=watch)
    if done.runs.empty:
        raise HeedfulError(f"No run of the study could be computed: {done.failures[0].message}")
    return Runs.of(store, done.runs["run"]), done.failures


def save_drawn(figure: Captioned, picture: Figure, folder: Path) -> Drawn:
    """Save a picture as SVG, PDF and PNG."""
    stem = folder / f"figure-{figure.name}"
    saved = save_figure(picture, stem)
    return Drawn(figure=figure, stem=stem, svg=inline_svg(saved[0]), wide=bool(picture.get_figwidth() > WIDE))


def figure_index(title: str, lead: str, drawn: Iterable[Drawn]) -> str:
    """A page of documentation that shows every figure with one sentence of what to see."""
    parts = [f"# {title}", lead]
    for one in drawn:
        image = f"![{one.figure.title}](figures/{one.stem.name}.png)"
        parts.append(f"## {one.figure.title}\n\n{one.figure.caption}\n\n*What to see:* {one.figure.see}\n\n{image}")
    return "\n\n".join(parts) + "\n"


def write_parts(outcome: Outcome, tables: Mapping[str, pd.DataFrame], index: str) -> None:
    """Every table that has rows, the verdicts, and the index of the figures."""
    for name, table in {**tables, "verdicts": outcome.verdicts()}.items():
        if len(table):
            save_table(table, outcome.out / "tables" / name)
    if outcome.drawn:
        write_text(outcome.out / "figures.md", index)


def plain(table: pd.DataFrame) -> list[dict[str, object]]:
    """Rows as plain data, with None for what is not there."""
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in record.items()} for record in records]


def place_of(claim: str) -> tuple[int, str]:
    """Claims in the order of their numbers: C4b after C4 and before C8."""
    return int("".join(letter for letter in claim if letter.isdigit())), claim
