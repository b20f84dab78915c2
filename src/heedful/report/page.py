"""The page: all that an audit, a study or an erasure shows, as one value. HTML, terminal and JSON are its views."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.claims import Decision, Verdict, Verdicts
from heedful.claims.answer import Answer, Question
from heedful.claims.scores import SURE
from heedful.figures.picture import Picture
from heedful.notebook import View
from heedful.report import plain
from heedful.report.instances import Instances
from heedful.report.strips import Example
from heedful.report.vocabulary import Vocabulary
from heedful.version import __version__

FORMAT = 2  # of the page as JSON: raised when a name goes or changes its meaning; new names may come without


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table as it is shown, its cells words, and the numbers behind it."""

    name: str
    cells: pd.DataFrame
    data: pd.DataFrame | None = None
    """None where the cells are all there is."""
    title: str = ""
    note: str = ""
    lead: str = ""
    """What it comes to, in one sentence."""

    @property
    def numbers(self) -> pd.DataFrame:
        return self.cells if self.data is None else self.data


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the claims came to on one data set."""

    dataset: str
    verdicts: Sequence[Verdict]

    def of(self, claim: str) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if verdict.claim == claim), None)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page: a sentence, and what of verdicts, tables, pictures and texts it has."""

    name: str
    title: str
    lead: str = ""
    verdicts: Sequence[Verdict] = ()
    judged: Sequence[Judged] = ()
    """Verdicts by data set, which are shown beside each other."""
    tables: Sequence[PageTable] = ()
    note: str = ""
    """What to know of the tables."""
    pictures: Sequence[Picture] = ()
    texts: Sequence[Example] = ()
    key: str = ""
    """What the strips of its texts show, as of the page."""
    timeline: str = ""
    """A training to be moved through by hand: HTML of our own making."""
    vocabulary: Vocabulary | None = None
    """Every token as a point, to be moved over and searched."""
    instances: Instances | None = None
    """Many texts, to be searched and looked into."""
    question: str = ""
    """The name of the question that its verdicts answer."""
    on_terminal: bool = True

    @property
    def tally(self) -> dict[Decision, int]:
        """How many of its own verdicts say what."""
        said = [verdict.decision for verdict in self.verdicts]
        decisions: tuple[Decision, ...] = ("yes", "no", "not shown")
        return {decision: said.count(decision) for decision in decisions if decision in said}

    def claims(self) -> dict[str, str]:
        """Every claim that was judged on some data set, with its statement."""
        return {verdict.claim: verdict.statement for one in self.judged for verdict in one.verdicts}


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is shown, in its order."""

    title: str
    headline: str
    answer: Answer | None = None
    worth: str = ""
    """How good the model is, in a sentence."""
    unit: str = ""
    """What has the weights: words or sentences; empty where that is not one thing."""
    opening: Sequence[Example] = ()
    """A few texts that are seen before all else."""
    rule: str = ""
    """How they were chosen."""
    key: str = ""
    """What their strips show, where that is not what the strips of a trace show."""
    sections: Sequence[Section] = ()
    notices: Sequence[str] = ()
    numbers: Mapping[str, object] = field(default_factory=dict)
    """Numbers of the whole, by name."""
    facts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """How it was made."""
    places: Mapping[str, Path] = field(default_factory=dict)
    """Where the page and what belongs to it lie."""

    def answering(self, question: str) -> Section | None:
        """The first section whose verdicts answer one of the questions."""
        return next((section for section in self.sections if section.question == question), None)

    def asked(self, section: Section) -> Question | None:
        """The question that a section answers."""
        known = self.answer.questions if self.answer else ()
        return next((question for question in known if question.name == section.question), None)

    def deciding(self, section: Section) -> list[Verdict]:
        """The verdicts of a section that its question rests on."""
        question = self.asked(section)
        return [verdict for verdict in section.verdicts if question and verdict.claim in question.rests_on]

    def further(self, section: Section) -> list[Verdict]:
        """The other verdicts of a section."""
        deciding = {verdict.claim for verdict in self.deciding(section)}
        return [verdict for verdict in section.verdicts if verdict.claim not in deciding]

    def section(self, name: str) -> Section:
        return next(section for section in self.sections if section.name == name)

    def verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """All verdicts with the data set that they are of, which is empty where there is one only."""
        for section in self.sections:
            yield from (("", verdict) for verdict in section.verdicts)
            yield from ((one.dataset, verdict) for one in section.judged for verdict in one.verdicts)

    def tables(self) -> dict[str, pd.DataFrame]:
        """The numbers of all tables by name."""
        shown = [table for section in self.sections for table in section.tables]
        return {table.name: table.numbers for table in shown}

    def pictures(self) -> Iterator[Picture]:
        for section in self.sections:
            yield from section.pictures


def page_view(page: Page) -> View:
    """What there is to see of a page at first sight: its answer, how good the model is, and where the report lies."""
    verdicts = Verdicts(verdict for _, verdict in page.verdicts())
    first = View(title=page.headline) if page.answer is None else page.answer.view
    report = [f"Report: {page.places['report']}"] if "report" in page.places else []
    told = [page.worth] if page.worth else []
    return replace(first, sentences=[*told, *first.sentences, *report], drawing="verdicts", data=verdicts.view.data)


def verdicts_section(verdicts: Sequence[Verdict]) -> Section:
    """All verdicts of a page in one table, to be sorted and saved."""
    data = pd.DataFrame([verdict.row() for verdict in verdicts])
    cells = pd.DataFrame(
        {
            "claim": [verdict.claim for verdict in verdicts],
            "verdict": [verdict.decision for verdict in verdicts],
            "states": [verdict.statement for verdict in verdicts],
            "number": [one.interval.partition(" ")[0] or "–" for one in verdicts],
            "interval": [one.interval.partition(" ")[2] or "–" for one in verdicts],
            "yes above": [f"{verdict.threshold:.3g}" for verdict in verdicts],
        }
    )
    table = PageTable(name="verdicts", cells=cells, data=data)
    own = f", that of M1 at {100 * SURE:g} %" if any(verdict.claim == "M1" for verdict in verdicts) else ""
    note = f"Intervals are at the 95 % level{own}."
    return Section(name="all-verdicts", title="All verdicts in a table", tables=[table], note=note, on_terminal=False)


def payload(page: Page) -> dict[str, Any]:
    """The page as plain data: answer, verdicts, tables by name, sections that refer to them, texts, facts, places."""
    value: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "heedful": __version__,
            "title": page.title,
            "headline": page.headline,
            "answer": None if page.answer is None else asdict(page.answer),
            "worth": page.worth,
            "opening": [asdict(text) for text in page.opening],
            "rule": page.rule,
            **page.places,
            "metrics": page.numbers,
            "notices": page.notices,
            "verdicts": [{"dataset": dataset or None, **verdict.row()} for dataset, verdict in page.verdicts()],
            "tables": page.tables(),
            "sections": [_section(section) for section in page.sections],
            "facts": page.facts,
        }
    )
    return value


def _section(section: Section) -> dict[str, object]:
    said = ("name", "title", "note", "lead")
    return {
        **{name: getattr(section, name) for name in ("name", "title", "lead", "note")},
        "claims": [verdict.claim for verdict in section.verdicts] or list(section.claims()),
        "tables": [{name: getattr(table, name) for name in said} for table in section.tables],
        "pictures": {picture.name: picture.legend for picture in section.pictures},
        "texts": [asdict(text) for text in section.texts],
    }
