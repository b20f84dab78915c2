"""The report in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.browsing import browsing, needs_browser

pytestmark = [pytest.mark.xdist_group("report"), needs_browser]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, hostile_page: Path) -> Iterator[webdriver.Chrome]:
    """A browser without a window that has opened the hostile report."""
    with browsing(tmp_path_factory.mktemp("browser")) as driver:
        driver.get(hostile_page.as_uri())
        yield driver


def test_the_answer_and_its_texts_come_first(browser: webdriver.Chrome) -> None:
    headings = [
        heading.text.split(" Texts of")[0]
        for heading in browser.find_elements(By.TAG_NAME, "h2")
        if heading.is_displayed()
    ]
    assert headings[:5] == [
        "Across the corpus, does attention point at the words that decide?",
        "For one decision, does attention find what decided it?",
        "Could another attention tell another story with the same output?",
        "What that looks like",
        "Is the model worth explaining?",
    ]
    assert browser.find_element(By.CLASS_NAME, "answer").text
    assert len(browser.find_elements(By.CSS_SELECTOR, "#answer .question")) == 3
    assert browser.find_elements(By.CSS_SELECTOR, "details.section[open]") == []
    claims = browser.find_elements(By.CSS_SELECTOR, "#verdicts .verdict")
    assert sorted(str(claim.get_attribute("data-claim")) for claim in claims) == ["C1", "C2", "C2b", "C8", "C8b", "C8c"]


def test_nothing_foreign_runs_and_nothing_complains(browser: webdriver.Chrome) -> None:
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert wait(browser, ".vocabulary canvas")
    assert wait(browser, ".instances .list button")
    assert browser.execute("getLog", {"type": "browser"})["value"] == []
    assert browser.find_elements(By.CSS_SELECTOR, "img, iframe, object, embed") == []
    assert browser.execute_script("return [...document.scripts].filter(s => s.src || s.type === 'module').length") == 0


def wait(browser: webdriver.Chrome, selector: str) -> list[WebElement]:
    """What the page draws as soon as it is seen."""
    WebDriverWait(browser, 10).until(lambda seen: seen.find_elements(By.CSS_SELECTOR, selector))
    return list(browser.find_elements(By.CSS_SELECTOR, selector))


def test_the_slider_moves_the_tokens_through_the_training(browser: webdriver.Chrome) -> None:
    def places() -> object:
        return browser.execute_script(
            "return [...document.querySelectorAll('.timeline circle')].map(c => [c.getAttribute('cx'), "
            "c.getAttribute('cy')])"
        )

    last = places()
    assert last
    browser.execute_script(
        "const slider = document.querySelector('.timeline input'); slider.value = 0;"
        "slider.dispatchEvent(new Event('input'))"
    )
    assert browser.find_element(By.CSS_SELECTOR, ".timeline output").text == "epoch 1"
    assert places() != last


def test_nothing_but_the_file_is_loaded(browser: webdriver.Chrome) -> None:
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert all(str(name).startswith("data:") for name in loaded)


def test_figures_are_drawn(browser: webdriver.Chrome) -> None:
    drawings = browser.find_elements(By.CSS_SELECTOR, "figure svg")
    assert len(drawings) == 9
    assert all(drawing.size["width"] > 200 and drawing.size["height"] > 100 for drawing in drawings)
    glyphs = browser.execute_script(
        "return [...document.querySelectorAll('figure svg use')].filter(use => use.getBBox().width > 0).length"
    )
    assert glyphs > 50


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_the_page_fits_its_width(browser: webdriver.Chrome, width: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    inner, content = browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
    assert inner == width
    assert content <= width
