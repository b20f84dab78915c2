"""The page of a study: verdicts by data set, tables, figures; one HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heedful.claims import Verdict
from heedful.files import write_text
from heedful.report.page import POLICY, Picture, make_environment
from heedful.report.timeline import CONTENT_POLICY


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the claims came to on one data set."""

    dataset: str
    verdicts: Sequence[Verdict]

    def of(self, claim: str) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if verdict.claim == claim), None)


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table as it is shown: cells are words."""

    title: str
    note: str
    table: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class StudyPage:
    """All that the page shows, in its order."""

    title: str
    lead: str
    judged: Sequence[Judged]
    tables: Sequence[PageTable]
    pictures: Sequence[Picture]
    notices: Sequence[str]
    facts: Mapping[str, Mapping[str, object]]
    timelines: Sequence[str] = ()
    """Trainings to be moved through by hand: HTML of our own making."""

    @property
    def policy(self) -> str:
        """The Content-Security-Policy of the page: a timeline's script is the only one that may run."""
        return f"{POLICY}; {CONTENT_POLICY}" if self.timelines else POLICY

    @property
    def claims(self) -> dict[str, str]:
        """Every claim that was judged somewhere, with its statement."""
        return {verdict.claim: verdict.statement for one in self.judged for verdict in one.verdicts}


def write_study(page: StudyPage, path: Path) -> None:
    write_text(path, render_study(page))


def render_study(page: StudyPage) -> str:
    return make_environment().get_template("study.html").render(page=page)
