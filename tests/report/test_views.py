"""The terminal and the JSON of a page say what the page says."""

import io
import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pandas as pd
from rich.console import Console

from heedful.analysis.statistics import Estimate
from heedful.claims import Verdict
from heedful.report import plain
from heedful.report.html import render_html
from heedful.report.page import FORMAT, Judged, Page, PageTable, Section, payload
from heedful.report.terminal import print_page
from heedful.report.timeline import SCRIPT as TIMELINE

VERDICT = Verdict(
    claim="S1",
    statement="It matters.",
    decision="yes",
    statistic="share",
    estimate=Estimate(value=0.75, low=0.5, high=0.875, count=8),
    threshold=0.25,
    words="It does.",
    sides=("texts",),
)
TABLE = PageTable(
    name="table2",
    title="Table 2",
    cells=pd.DataFrame({"data": ["a|b\x1b"], "DP": ["82.0"]}),
    data=pd.DataFrame({"dataset": ["a|b"], "accuracy": [82.0], "paper": [float("nan")]}),
    lead="Near.",
)
PAGE = Page(
    title="a study",
    headline="Of 1 claims 1 are shown.",
    sections=[
        Section(name="verdicts", title="Verdicts", judged=[Judged(dataset="SST", verdicts=[VERDICT])]),
        Section(name="tables", title="Tables", tables=[TABLE]),
        Section(name="hidden", title="Only on the page", lead="Not here.", on_terminal=False),
    ],
    notices=["A run failed: no memory."],
    numbers={"accuracy": float("inf")},
    places={"page": Path("study/study.html")},
)


def printed(page: Page) -> list[str]:
    screen = Console(record=True, width=100, file=io.StringIO())
    print_page(page, screen)
    return [line.strip() for line in screen.export_text().splitlines() if line.strip()]


def test_the_terminal_shows_a_page_section_by_section() -> None:
    assert printed(PAGE) == [
        "Of 1 claims 1 are shown.",
        "note: A run failed: no memory.",
        "Verdicts",
        "SST",
        "S1    It matters. yes",
        "It does. (0.750 [0.500, 0.875]; yes above 0.25; 8 texts)",
        "Tables",
        "Table 2",
        "data    DP",
        "a|b   82.0",
        "Near.",
        "Claims: S after Serrano & Smith 2019.",
        "page study/study.html",
    ]


def test_the_payload_is_strict_json_of_numbers() -> None:
    value = payload(PAGE)
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert (value["format"], value["page"], value["metrics"]) == (FORMAT, "study/study.html", {"accuracy": None})
    assert value["tables"] == {"table2": [{"dataset": "a|b", "accuracy": 82.0, "paper": None}]}
    assert [(row["dataset"], row["claim"], row["verdict"]) for row in value["verdicts"]] == [("SST", "S1", "yes")]
    assert [(one["name"], one["claims"], one["tables"]) for one in value["sections"]] == [
        ("verdicts", ["S1"], []),
        ("tables", [], [{"name": "table2", "title": "Table 2", "note": "", "lead": "Near."}]),
        ("hidden", [], []),
    ]


def test_what_json_cannot_hold_is_null_and_numbers_of_numpy_are_numbers() -> None:
    table = pd.DataFrame({"count": pd.array([1, None], dtype="Int64"), "share": [0.5, float("nan")]})
    assert plain(table) == [{"count": 1, "share": 0.5}, {"count": None, "share": None}]
    assert plain({1: (Path("a"), float("nan"), table["share"].to_numpy()[0])}) == {"1": ["a", None, 0.5]}


def policy_of(html: str) -> str:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert found
    return found[1].replace("&#39;", "'")


def test_a_page_runs_its_own_scripts_and_no_others() -> None:
    """The script of every page, and that of a timeline where there is one: the policy names them by what they are."""
    moving = Section(
        name="training", title="Training", timeline=f"<figure id='one'><script>{TIMELINE}</script></figure>"
    )
    for sections, count in (([], 1), ([moving], 2)):
        html = render_html(Page(title="a study", headline="<lead>", sections=sections))
        scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
        allowed = {f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts}
        assert len(allowed) == count
        policy, _, named = policy_of(html).partition("; script-src ")
        assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
        assert set(named.split()) == allowed
        assert "&lt;lead&gt;" in html
