"""What people do with a report, in a real browser without a network: by mouse, by touch, by keyboard, on a phone."""

import csv
import io
import json
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from heedful.figures.style import ATTENDED, AWAY, TOWARDS
from heedful.report.html import write_html
from heedful.spreadsheets import inert
from tests.browsing import browsing, needs_browser
from tests.report.made import CLASSES, IMAGE, SCRIPT, TEXTS, TOKENS, made_page

AXE = Path(__file__).parents[2] / ".cache" / "axe-core-4.14.0" / "axe.min.js"
SAVED = """
window.saved = [];
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { window.saved.push(blob); return make(blob); };
HTMLAnchorElement.prototype.click = function () { window.names = [...(window.names ?? []), this.download]; };
"""
"""What is saved is kept for the test to see, not written."""

pytestmark = [pytest.mark.xdist_group("report use"), needs_browser]


class Report:
    """What is on the screen."""

    def __init__(self, driver: webdriver.Chrome, file: Path) -> None:
        self.driver, self.file = driver, file

    def open(self, hash_: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.file.as_uri()}{hash_}")
        self.run(SAVED)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [one.text for one in self.all(selector)]

    def run(self, script: str, *given: object) -> Any:
        return self.driver.execute_script(script, *given)

    def until(self, holds: Callable[[], object]) -> None:
        WebDriverWait(self.driver, 10, 0.05, ignored_exceptions=[Exception]).until(lambda _: holds())

    def section(self, name: str) -> None:
        """Open a section, and wait until what it draws is there."""
        self.one(f"#{name} > summary").click()
        self.until(lambda: not self.all(f"#{name} [data-load]"))

    def open_all(self) -> None:
        self.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        self.until(lambda: not self.all("[data-load]"))

    def sized(self, width: int, *, dark: bool = False, media: str = "") -> None:
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})

    def saved(self) -> tuple[str, str]:
        """The name of the last file that was saved, and what is in it."""
        self.until(lambda: self.run("return window.saved.length > 0"))
        content = self.driver.execute_async_script(
            "const done = arguments[0]; window.saved.at(-1).arrayBuffer().then((bytes) => done("
            "window.saved.at(-1).type === 'image/png' ? [...new Uint8Array(bytes.slice(0, 8))].join(' ') "
            ": new TextDecoder().decode(bytes)))"
        )
        return str(self.run("return window.names.at(-1)")), str(content)

    def click(self, selector: str) -> None:
        """Where the way to it is free of what sticks to the top."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.one(selector))
        self.one(selector).click()

    def more_saved(self, than: int) -> bool:
        return bool(self.run("return window.saved.length") > than)

    def complaints(self) -> Any:
        return self.driver.execute("getLog", {"type": "browser"})["value"]

    def press(self, *keys: str) -> WebElement:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)
        return self.driver.switch_to.active_element


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A browser that reaches no network."""
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        found.execute_cdp_cmd("Network.enable", {})
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        found.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "report.html"
    write_html(made_page(), path)
    return path


@pytest.fixture
def report(driver: webdriver.Chrome, file: Path) -> Iterator[Report]:
    """The report, freshly opened; whatever was done with it, its scripts had nothing to complain about."""
    found = Report(driver, file)
    found.sized(1280)
    found.open()
    yield found
    assert found.complaints() == []
    assert found.all("img, iframe, object, embed") == []


def test_nothing_is_asked_of_any_network(report: Report) -> None:
    report.complaints()
    report.driver.execute("getLog", {"type": "performance"})  # what the browser asked for before
    report.open()
    report.open_all()
    events = [
        json.loads(one["message"])["message"]
        for one in report.driver.execute("getLog", {"type": "performance"})["value"]
    ]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert asked
    assert {url.split(":")[0] for url in asked} <= {"file", "data", "about", "blob"}
    assert {url for url in asked if url.startswith("file")} == {report.file.as_uri()}


def test_names_that_would_run_code_are_shown_as_they_are(report: Report) -> None:
    report.open_all()
    said = report.one("main").text
    assert all(f"run {name}" in said for name in (SCRIPT, IMAGE, "{{ 7 * 7 }}"))
    assert report.driver.title == f"made {SCRIPT}: can you trust attention?"
    assert report.run("return [...document.scripts].filter((one) => /^alert/.test(one.textContent)).length") == 0


def test_a_section_opens_at_a_click_and_by_its_link(report: Report) -> None:
    assert report.all("details.section[open]") == []
    report.one(".question:nth-child(2) .why a").click()
    report.until(lambda: report.one("#erasure").get_property("open"))
    report.open("#examples")
    report.until(lambda: report.texts("#examples .list b"))
    report.one("nav .tools button").click()
    assert len(report.all("details.section[open]")) == len(report.all("details.section"))
    report.one("nav .tools button").click()
    assert report.all("details.section[open]") == []


def test_a_word_says_its_number_when_it_is_pointed_at_tapped_or_reached_by_keys(report: Report) -> None:
    tip, word = report.one("body > .tip"), report.one("#opening .u.m")
    ActionChains(report.driver).move_to_element(word).perform()
    assert tip.text == "good: attention weight 0.500"
    ActionChains(report.driver).move_to_element(report.one("h1")).perform()
    assert not tip.is_displayed()
    report.sized(360)
    word.click()
    assert tip.text == "good: attention weight 0.500"
    left, right = report.run("const box = arguments[0].getBoundingClientRect(); return [box.left, box.right]", tip)
    assert 0 <= left < right <= 360
    report.run("document.querySelector('#opening .text').focus()")
    report.press(Keys.ARROW_RIGHT)  # from the word that was tapped
    assert tip.text == "😀: attention weight 0.250"
    report.press(Keys.HOME)
    assert tip.text == "A: attention weight 0.125"
    report.press(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_texts_are_searched_filtered_and_ordered(report: Report) -> None:
    report.section("examples")
    assert report.texts("#examples .list b") == [text.strip() for text in TEXTS]
    search = report.one("#examples input[type=search]")
    search.send_keys("GOOD")
    report.until(lambda: report.texts("#examples .list b") == [TEXTS[0], TEXTS[2]])
    search.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
    report.until(lambda: len(report.all("#examples .list b")) == 4)
    assert report.texts("#examples .chip") == ["wrongly decided (1)", f"one {SCRIPT} (2)"]
    report.one("#examples .chip").click()
    report.until(lambda: report.texts("#examples .list b") == [TEXTS[2]])
    assert report.texts("#examples .list small") == [f"{CLASSES[1]} 85 % label sad"]
    told = report.one("#examples .instances > .numbers").text
    assert told == "1 text of 4. wrongly decided: the decision is not the label."
    report.all("#examples .chip")[1].click()
    report.until(lambda: report.one("#examples .detail").text == "No text is like this.")
    for chip in report.all("#examples .chip"):
        chip.click()
    Select(report.one("#examples select[aria-label=order]")).select_by_visible_text("longest first")
    report.until(lambda: report.texts("#examples .list b")[:2] == [TEXTS[0], TEXTS[1]])
    Select(report.one("#examples select[aria-label=decision]")).select_by_visible_text("sad")
    report.until(lambda: report.texts("#examples .list b") == [TEXTS[1], TEXTS[3]])


def test_a_text_is_looked_into(report: Report) -> None:
    report.section("examples")
    report.all("#examples .list button")[1].click()
    strips = report.all("#examples .detail .strip")
    assert [strip.find_element(By.CLASS_NAME, "name").text for strip in strips] == [
        "attention",
        "used here",
        "would push",
    ]
    assert {strip.find_element(By.CLASS_NAME, "text").get_property("textContent") for strip in strips} == {TEXTS[1]}
    words = strips[1].find_elements(By.CLASS_NAME, "u")
    assert [word.get_attribute("data-note") for word in words] == [
        "gave +0.000 to the decision", "gave +2.000 to the decision", "gave +0.000 to the decision",
    ]  # fmt: skip
    assert [word.get_attribute("class") for word in words] == ["u towards", "u towards m", "u towards"]
    said = report.one("#examples .detail").text
    assert "The decision flips when so many words are erased: by attention 1, by gradient 1." in said
    assert "Framed: 1 of 3 words, provably the smallest set that flips the decision." in said
    report.all("#examples .list button")[3].click()
    said = report.one("#examples .detail").text
    assert said.endswith("Nothing flips this decision but erasing everything, if even that.")
    assert "null" not in said


def test_the_map_finds_tokens_by_pointer_keys_and_search(report: Report) -> None:
    report.section("figures")
    told, canvas = report.one("#figures .told"), report.one("#figures canvas")
    report.run("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", canvas)
    report.press(Keys.ARROW_RIGHT)  # the first from the left
    assert told.text == "bad: negative, in the training split 9 times; attention score 1.25, pushes -3.00"
    report.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert told.text.startswith("the: neutral")
    place = report.run("const tip = document.querySelector('#figures .tip'); return [tip.style.left, tip.style.top]")
    report.press(Keys.ARROW_UP)
    assert told.text.startswith(f"{SCRIPT}: none")
    x, y = (float(one.removesuffix("px")) for one in place)
    box = canvas.size
    move = ActionChains(report.driver).move_to_element_with_offset(
        canvas, round(x - box["width"] / 2), round(y - box["height"] / 2)
    )
    move.perform()
    report.until(lambda: told.text.startswith("the: "))
    report.one("#figures input[type=search]").send_keys("scr")
    report.until(lambda: report.texts("#figures .found button") == [f"{SCRIPT[:23]}…"])
    assert told.text.startswith(SCRIPT)


def test_the_map_shows_groups_and_rectangles_and_says_how_many_tokens(report: Report) -> None:
    report.section("figures")
    canvas = report.one("#figures canvas")
    assert "All 5 tokens;" in report.texts("#figures .numbers")[-1]
    painted = "return document.querySelector('#figures canvas').toDataURL()"
    before = report.run(painted)
    report.one("#figures .chip").click()
    assert report.run(painted) != before
    report.one("#figures .chip").click()
    report.until(lambda: report.run(painted) == before)
    closer, whole = report.all("#figures .controls > button")[:2]
    assert not whole.is_displayed()
    ActionChains(report.driver).move_to_element(canvas).click_and_hold().move_by_offset(120, 90).release().perform()
    report.until(whole.is_displayed)
    whole.click()
    report.until(lambda: not whole.is_displayed() and report.run(painted) == before)
    closer.click()
    report.until(whole.is_displayed)


def test_tables_are_sorted_by_numbers_and_by_words(report: Report) -> None:
    report.section("erasure")

    def first() -> list[str]:
        return report.texts("#erasure table.sortable td:first-child")

    share = report.all("#erasure th button")[1]
    share.click()
    assert first() == ["gradient", "attention", SCRIPT]
    assert report.one("#erasure th[aria-sort]").get_attribute("aria-sort") == "descending"
    share.click()
    assert first() == [SCRIPT, "attention", "gradient"]
    report.all("#erasure th button")[0].click()
    assert first() == [SCRIPT, "attention", "gradient"]


def rows(content: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content)))


def test_every_table_is_saved_as_csv(report: Report) -> None:
    report.open_all()
    report.click("button[aria-label='save the table ranks as CSV']")
    name, content = report.saved()
    assert (name, rows(content)) == (
        "ranks.csv", [["ranking", "share"], ["attention", "0.095"], ["gradient", "0.1"], [SCRIPT, ""]],
    )  # fmt: skip
    report.click("button[aria-label='save the table judged as CSV']")
    name, content = report.saved()
    assert (name, rows(content)[0]) == (
        "judged.csv",
        ["Claim", *(f"run {one}" for one in (SCRIPT, IMAGE, "{{ 7 * 7 }}"))],
    )
    assert rows(content)[1][:2] == ["S6b Says S6b.", "yes 0.750 [0.650, 0.850], yes above 0.5"]
    tables = len(report.all("main table"))
    assert len(report.all("button[aria-label^='save the table']")) == tables
    report.click("#figures .controls button[aria-label*=CSV]")
    name, content = report.saved()
    assert name.endswith("-tokens.csv")
    saved = {row[0]: row[1:] for row in rows(content)}
    assert saved["token"] == ["group", "count", "attention", "polarity"]
    assert saved["good"] == ["positive", "10", "1.5", "2"]
    assert set(saved) == {"token", *TOKENS["token"]}
    report.click("#examples .controls button[aria-label*=CSV]")
    _, content = report.saved()
    assert [row[1] for row in rows(content)] == ["text", *TEXTS]


def test_a_cell_is_a_text_for_a_spreadsheet_here_as_in_files(report: Report) -> None:
    """The line of the page's script, run by the browser, beside what Python writes."""
    script = files("heedful.report").joinpath("templates/page.js").read_text(encoding="utf-8")
    (line,) = [line for line in script.splitlines() if line.startswith("const inert = ")]
    line = line.partition("  // ")[0]
    texts = ["=1", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''@x", "--", "'-"]
    texts += ["good", "", "-", "'", "'tis", "-0.5", "+3", "-.9", "-1e-05", "a=1", " =1"]
    assert report.run(f"{line} return {json.dumps(texts)}.map(inert)") == [inert(text) for text in texts]


def test_every_figure_is_saved_as_svg_and_png(report: Report) -> None:
    report.open_all()
    for figure in ("curves", "moments"):
        report.click(f"button[aria-label='save the figure {figure} as SVG']")
        name, content = report.saved()
        assert name == f"{figure}.svg"
        assert ElementTree.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
    report.click("button[aria-label='save the map as SVG']")
    _, content = report.saved()
    drawing = ElementTree.fromstring(content)
    assert f"pushes towards {CLASSES[1]}" in ["".join(one.itertext()) for one in drawing.iter()]
    for what in ("figure curves", "figure moments", "map"):
        count = report.run("return window.saved.length")
        report.click(f"button[aria-label='save the {what} as PNG']")
        report.until(partial(report.more_saved, count))
        name, content = report.saved()
        assert (name[-4:], content) == (".png", "137 80 78 71 13 10 26 10")


def test_dark_follows_the_system_and_the_switch(report: Report) -> None:
    def light() -> list[bool]:
        look = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
        return [sum(int(part) for part in colour.strip("rgb()").split(",")) > 384 for colour in report.run(look)]

    assert light() == [True, False]
    report.sized(1280, dark=True)
    assert light() == [False, True]
    report.one("#theme").click()
    assert light() == [True, False]


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_its_width_with_everything_open(report: Report, width: int) -> None:
    report.sized(width)
    report.open_all()
    inner, content = report.run("return [innerWidth, document.documentElement.scrollWidth]")
    assert inner == width
    assert content <= width


def test_printed_everything_is_open_and_light(report: Report) -> None:
    report.sized(1280, dark=True)
    assert report.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    report.until(lambda: not report.all("details.section:not([open])"))
    report.sized(1280, dark=True, media="print")
    assert not report.one("nav").is_displayed()
    assert report.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_everything_can_be_done_by_keyboard(report: Report) -> None:
    report.run("document.querySelector('nav a').focus()")
    report.press(Keys.ENTER)
    report.until(lambda: report.one("#erasure").get_property("open"))
    seen = []
    for _ in range(60):
        focused = report.press(Keys.TAB)
        seen.append(focused.tag_name)
        if focused.tag_name == "canvas":
            break
        if focused.tag_name == "summary" and focused.find_element(By.XPATH, "..").get_property("open") is False:
            focused.send_keys(Keys.ENTER)
    assert seen[-1] == "canvas"
    assert {"summary", "button", "input", "select", "div"} <= set(seen)
    report.press(Keys.ARROW_RIGHT)
    assert report.one("#figures .told").text.startswith("bad: ")
    assert report.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_accessibility_without_serious_findings(report: Report, width: int, dark: bool) -> None:
    if not AXE.is_file():
        pytest.skip(f"axe-core is not there ({AXE.name}): `make axe` fetches it")
    report.sized(width, dark=dark)
    report.open_all()
    time.sleep(0.3)  # transitions
    report.run(AXE.read_text(encoding="utf-8"))
    found = report.driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {resultTypes: ['violations']})"
        ".then((found) => done(found.violations), (error) => done([{id: String(error)}]))"
    )
    said = [(one["id"], one.get("impact"), [node["target"] for node in one.get("nodes", [])][:3]) for one in found]
    assert [one for one in said if one[1] not in ("minor", "moderate")] == [], json.dumps(said, indent=1)
    report.complaints()  # axe looks at style sheets in ways that the policy forbids


def test_the_colours_of_words_are_those_of_the_figures(report: Report) -> None:
    style = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])"
    assert [str(report.run(style, f"--{name}")).upper() for name in ("attended", "towards", "away")] == [
        ATTENDED, TOWARDS, AWAY,
    ]  # fmt: skip
