"""One HTML file that needs nothing else, escapes everything, and shows the verdicts first."""

import json
import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from heedful.analysis.statistics import Estimate
from heedful.claims import Verdict
from heedful.claims.answer import answer
from heedful.figures.picture import Picture
from heedful.report.html import render_html
from heedful.report.page import Judged, PageTable, Section
from heedful.report.page import Page as Shown
from heedful.report.strips import Example, Piece, Strip
from heedful.studies.audit import Audit
from tests.verdicts import verdict

pytestmark = pytest.mark.xdist_group("report")  # one worker makes the report

VOID = {"meta", "br", "img", "link", "hr", "input", "use", "image", "path"}
SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'


@dataclass
class Page(HTMLParser):
    """What a page holds: elements, attributes and text; an element that is closed out of turn is an error."""

    open_elements: list[str] = field(default_factory=list)
    elements: Counter[str] = field(default_factory=Counter)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, html: str) -> "Page":
        page = cls()
        page.feed(html)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open_elements.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open_elements.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open_elements[-1:] not in (["script"], ["style"]):
            self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


@pytest.fixture(scope="module")
def html(hostile_page: Path) -> str:
    return hostile_page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page.of(html)


def test_the_page_names_no_address(html: str, page: Page) -> None:
    assert not re.search(r"(https?|ftp|wss?|javascript):", html)
    leading = {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}
    addresses = [value for name, value in page.attributes if name in leading]
    assert addresses
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert not re.search(r"@import|url\((?!#)", html)


def test_the_page_has_no_code_but_its_own(html: str, page: Page) -> None:
    assert page.elements["img"] == page.elements["iframe"] == 0
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    data = re.findall(r'<script type="application/json".*?>(.*?)</script>', html, re.DOTALL)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert page.elements["script"] == len(data) + len(scripts)
    assert len(scripts) == 2  # of the page and of its timeline
    assert [json.loads(one) for one in data]
    allowed = sorted(b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    (policy,) = [value for name, value in page.attributes if name == "content" and value.startswith("default-src")]
    begin, _, named = policy.partition("; script-src ")
    assert begin == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert sorted(named.replace("'sha256-", "").replace("'", "").split()) == allowed


def test_texts_and_class_names_are_shown_as_they_are(page: Page) -> None:
    assert f"towards {SCRIPT}" in page.text
    assert f"towards {IMAGE}" in page.text
    assert "towards {{ 7 * 7 }} & $x$" in page.text
    assert f"label {SCRIPT}" in page.text


def test_every_element_is_closed_in_its_turn(page: Page) -> None:
    assert page.open_elements == []
    assert page.elements["html"] == page.elements["main"] == 1
    assert page.elements["title"] == 1 + page.elements["circle"]  # of the page, and of each token of the slider


def test_no_name_is_given_twice(page: Page) -> None:
    counts = Counter(value for name, value in page.attributes if name == "id")
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_reference_within_the_page_has_its_target(html: str, page: Page) -> None:
    targets = {value for name, value in page.attributes if name == "id"}
    references = set(re.findall(r"url\(#([^)]+)\)", html)) | set(re.findall(r'href="#([^"]+)"', html))
    assert references
    assert references <= targets


def test_sections_come_in_their_order(html: str) -> None:
    found = re.findall(r'<(?:section|details class="section[ \w]*") id="(\w[\w-]*)"', html)
    assert found[:2] == ["answer", "opening"]
    assert found[2:6] == ["accuracy", "verdicts", "erasure", "attack"]
    assert found[-7:] == ["tokens", "training", "advice", "all-verdicts", "notices", "facts", "terms"]
    places = [html.index(f'id="{name}"') for name in found]
    assert places == sorted(places)
    assert html.index('class="answer"') < places[0]


def test_the_audit_leaves_tables_and_figures_beside_the_page(hostile_audit: Audit) -> None:
    folder = hostile_audit.report.parent
    tables = {path.name for path in (folder / "tables").iterdir()}
    assert {
        f"{name}.{kind}" for name in ("tokens", "erasure-curves", "verdicts") for kind in ("csv", "parquet", "tex")
    } <= tables
    assert [path.suffix for path in (folder / "figures").iterdir()] == [".svg"] * 8


VERDICT = Verdict(
    claim="C1",
    statement="Claims <b>this</b>.",
    decision="no",
    statistic="share",
    estimate=Estimate(value=0.25, low=0.125, high=0.5, count=8),
    threshold=0.9,
    words="Only a quarter.",
)
EXAMPLE = Example(
    strips=[
        Strip(
            name="attention",
            pieces=[Piece(text="a&b", shade=0.5, note="attention weight 0.500", marked=True), Piece(text="\n ")],
        ),
        Strip(
            name="used here",
            pieces=[Piece(text="a&b", shade=-1.0, note="gave -1.000 to the decision")],
            signed=True,
        ),
        Strip(name="would push", pieces=[Piece(text="a&b", shade=0.5, note="would push +1.00")], signed=True),
    ],
    predicted="positive",
    probability=0.875,
    label="negative",
    why="surest mistake",
    note="A note on it.",
    cut=1234,
)
PICTURE = Picture(name="one", title="A picture", caption="See.", stem="one", files={"svg": b"<svg></svg>"})
STRONGEST = PageTable(name="push", title="towards", cells=pd.DataFrame({"token": ["<br>"], "polarity": ["+1.00"]}))


def rendered(*sections: Section, **changes: object) -> str:
    """A page with a verdict, a picture, a table and a text, and with these sections."""
    usual = [
        Section(name="verdicts", title="The words", verdicts=[VERDICT]),
        Section(name="figures", title="Figures", pictures=[PICTURE]),
        Section(name="tokens", title="Tokens", tables=[STRONGEST]),
        Section(name="examples", title="Texts", texts=[EXAMPLE]),
    ]
    values: dict[str, object] = {
        "title": "a < b: can you trust attention",
        "headline": "In doubt.",
        "answer": answer([VERDICT]),
        "sections": [*usual, *sections],
        "notices": ["3 rows left out."],
        "facts": {"Data": {"source": "x.csv", "text_column": None}},
    }
    return render_html(Shown(**{**values, **changes}))  # type: ignore[arg-type]


def test_the_numbers_of_a_report_are_on_its_page() -> None:
    shown = Page.of(rendered()).text
    assert "no Claims <b>this</b>. C1 Only a quarter." in shown
    assert "share: 0.250 [0.125, 0.500], yes above 0.9; 8 tokens Claim C1, after Sun & Lu 2020." in shown
    assert "Across the corpus, does attention point at the words that decide? not shown The model itself is in" in shown
    assert "to explain one decision ? not shown Do not rest on the words with the largest weights" in shown
    assert "surest mistake predicted positive (87.5 %) label negative 1,234 more tokens are not shown" in shown
    assert "A note on it." in shown
    assert "3 rows left out." in shown
    assert "a < b: can you trust attention" in shown
    assert "text_column –" in shown


def test_words_are_shaded_by_their_strength_and_framed() -> None:
    html = rendered()
    assert '<span class="u attended m" style="--s:0.50" data-note="attention weight 0.500">a&amp;b</span>\n ' in html
    assert '<span class="u away" style="--s:1.00" data-note="gave -1.000 to the decision">a&amp;b</span>' in html
    assert '<span class="u towards" style="--s:0.50" data-note="would push +1.00">a&amp;b</span>' in html


def test_a_verdict_without_numbers_has_no_scale() -> None:
    empty = Verdict(
        claim="C2",
        statement="s",
        decision="not shown",
        statistic="AUC",
        estimate=None,
        threshold=0.7,
        words="There are too few words to tell.",
    )
    html = rendered(sections=[Section(name="one", title="One", verdicts=[empty])], notices=[])
    assert 'class="scale"' not in html
    assert "There are too few words to tell." in html
    assert 'id="notices"' not in html


def test_a_section_shows_its_sentence_its_table_and_its_note() -> None:
    table = pd.DataFrame({"λ": ["<1>", "10"], "dev accuracy": ["50.0%", "75.0%"]})
    tables = [PageTable(name="advice", cells=table)]
    section = Section(name="advice", title="Which λ?", lead="Take <10>.", tables=tables, note="A note.")
    whole = Page.of(rendered(section))
    assert "Which λ? Take <10>. λ dev accuracy <1> 50.0% 10 75.0% A note." in whole.text
    assert ("id", "advice") in whole.attributes
    assert ("href", "#advice") in whole.attributes
    assert ("id", "erasure") not in whole.attributes


def test_a_long_table_says_how_much_of_it_can_be_saved() -> None:
    shown = pd.DataFrame({"word": ["a"]})
    numbers = {"all": pd.DataFrame({"n": range(5_000)}), "more": pd.DataFrame({"n": range(5_001)})}
    tables = [PageTable(name=name, cells=shown, data=data) for name, data in numbers.items()]
    html = rendered(Section(name="tokens", title="Words", lead="", tables=tables))
    kept = [len(json.loads(text).splitlines()) - 1 for text in re.findall(r'class="csv">(.*?)</script>', html)]
    assert kept[-2:] == [5_000, 5_000]
    assert Page.of(html).text.count("the first 5,000 of 5,001 rows") == 1
    assert "of 5,000 rows" not in html


def test_verdicts_of_several_data_sets_stand_beside_each_other() -> None:
    judged = [Judged(dataset="<one>", verdicts=[VERDICT]), Judged(dataset="two", verdicts=[])]
    whole = Page.of(rendered(sections=[Section(name="verdicts", title="Verdicts", judged=judged)]))
    assert (
        "Claim <one> two C1 Claims <b>this</b>. no 0.250 [0.125, 0.500], yes above 0.9 – <one> in words" in whole.text
    )
    assert "no Claims <b>this</b>. C1 Only a quarter." in whole.text


def test_a_line_is_rounded_and_one_is_not_many() -> None:
    found = Verdict(
        claim="S3",
        statement="s",
        decision="yes",
        statistic="share",
        estimate=Estimate(value=0.75, low=0.7, high=0.8, count=1),
        threshold=2 / 3,
        words="w",
        sides=("runs",),
    )
    shown = Page.of(rendered(sections=[Section(name="one", title="One", verdicts=[found])], facts={})).text
    assert "share: 0.750 [0.700, 0.800], yes above 0.667; 1 run Claim S3, after Serrano & Smith 2019." in shown


def test_verdicts_that_a_question_rests_on_come_first() -> None:
    rests = [verdict("S6b", "yes"), verdict("S13", "no")]
    section = Section(name="erasure", title="Erase", verdicts=[verdict("S1", "yes"), *rests], question="decision")
    shown = Shown(title="t", headline="h", answer=answer(rests), sections=[section])
    assert [one.claim for one in shown.deciding(section)] == ["S6b", "S13"]
    assert [one.claim for one in shown.further(section)] == ["S1"]
    text = Page.of(render_html(shown)).text
    first, second = (
        text.index("For one decision, does attention find what decided it? no yes s S6b"),
        text.index("S13 w"),
    )
    assert first < second < text.index("Judged as well yes s S1")


def test_code_stands_as_code_and_stays_escaped() -> None:
    own = answer([VERDICT], scope="Try `--seed <b>` again.")
    assert "Try <code>--seed &lt;b&gt;</code> again." in rendered(answer=own)
