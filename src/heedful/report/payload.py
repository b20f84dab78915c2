"""The page as plain data for programs: one versioned JSON value."""

from dataclasses import asdict
from typing import Any

from heedful.report.page import Page, Section
from heedful.report.plain import plain
from heedful.version import __version__

FORMAT = 1
"""Raised when a name goes or changes its meaning; new names may come without."""


def payload(page: Page) -> dict[str, Any]:
    """The page: answer, verdicts, tables by name, sections that refer to them, texts, notices, facts, places."""
    value: dict[str, Any] = plain(
        {
            "format": FORMAT,
            "heedful": __version__,
            "title": page.title,
            "headline": page.headline,
            "answer": None if page.answer is None else asdict(page.answer),
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
    return {
        "name": section.name,
        "title": section.title,
        "lead": section.lead,
        "note": section.note,
        "claims": [verdict.claim for verdict in section.verdicts] or list(section.claims()),
        "tables": [
            {name: getattr(table, name) for name in ("name", "title", "note", "lead")} for table in section.tables
        ],
        "pictures": {picture.name: picture.legend for picture in section.pictures},
        "texts": [asdict(text) for text in section.texts],
    }
