"""The page in a real browser: what people do with it, by mouse and by keyboard, on a desk and on a phone."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

import heedful
from heedful.figures.style import ATTENDED, AWAY, TOWARDS
from heedful.studies.explain import erase_text
from heedful.web.app import FILES
from heedful.web.asking import ServedSubject
from heedful.web.opening import serve_run
from heedful.web.served import NOT_HERE, ServedRun
from tests.browsing import browsing, needs_browser
from tests.web.conftest import WORDS, Site, running, train

AXE = Path(__file__).parents[2] / ".cache" / "axe-core-4.14.0" / "axe.min.js"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"

pytestmark = [pytest.mark.xdist_group("web page"), needs_browser]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


class Page:
    """What is on the screen."""

    def __init__(self, driver: webdriver.Chrome, site: Site) -> None:
        self.driver, self.site = driver, site

    def open(self, hash_: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.site.url}/{hash_}")
        self.until(lambda: self.one("#now").text != "")

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, holds: Callable[[], object]) -> None:
        WebDriverWait(self.driver, 20, 0.05, ignored_exceptions=[Exception]).until(lambda _: holds())

    def run(self, script: str, *given: object) -> Any:
        return self.driver.execute_script(script, *given)

    def type(self, text: str) -> None:
        """Type into the field, and wait until the words are shown."""
        field = self.one("#text")
        field.clear()
        field.send_keys(text)
        self.until(lambda: self.one(".strip").get_property("textContent") == text)
        self.until(lambda: "nothing erased" in self.one("#now").text)

    def slide(self, to: int) -> None:
        move = (
            "const s = document.getElementById('slider'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
        )
        self.run(move, to)

    def word(self, position: int) -> WebElement:
        return self.one(f"button.unit[data-position='{position}']")

    @property
    def gone(self) -> list[int]:
        return [int(str(one.get_attribute("data-position"))) for one in self.all("button.unit.gone")]

    @property
    def flipped(self) -> bool:
        return bool(self.all(".decision .badge"))

    def sized(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def complaints(self) -> Any:
        return self.driver.execute("getLog", {"type": "browser"})["value"]


@pytest.fixture
def page(driver: webdriver.Chrome, site: Site) -> Iterator[Page]:
    """The page, freshly opened; whatever was done with it, its scripts had nothing to complain about."""
    found = Page(driver, site)
    found.sized(1280)
    found.open()
    yield found
    assert found.complaints() == []


@pytest.fixture(scope="module")
def courses(models: list[ServedRun], text: str) -> dict[str, Any]:
    return erase_text(models[0].model, text).summary()


def course(courses: dict[str, Any], by: str) -> dict[str, Any]:
    return next(dict(one) for one in courses["rankings"] if one["ranking"] == by)


def test_it_opens_with_a_real_text_and_says_what_the_model_says(page: Page, models: list[ServedRun], text: str) -> None:
    assert page.one("#text").get_property("value") == text
    assert len(page.all(".example")) == 3
    told = models[0].explain(text, lambda: None)
    assert page.one(".said b").text == told["predicted"]
    shown = {row.text.split("\n")[0]: row.text.split("\n")[-1] for row in page.all(".bar")}
    assert shown == {name: f"{100 * share:.1f} %" for name, share in told["probabilities"].items()}
    notes = [one.get_attribute("title") for one in page.all("[data-kind=contribution] .unit")]
    signs = [("−" if value["contribution"] < 0 else "+") for value in told["tokens"]]
    assert notes == [
        f"gave {sign}{abs(value['contribution']):.2f} to the decision"
        for sign, value in zip(signs, told["tokens"], strict=True)
    ]


def test_strips_keep_the_text_as_it_was_typed(page: Page) -> None:
    text = "Good,  very\u2009good — a 🙂 film…\nor 'bad'?"
    page.run(
        "const f = document.getElementById('text'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))", text
    )
    page.until(lambda: "🙂" in page.one(".strip").text)
    for strip in page.all(".strip"):
        assert strip.get_property("textContent") == text
    assert "🙂" in [one.get_property("textContent") for one in page.all("button.unit")]


def test_typing_sliding_and_the_flip(page: Page, text: str, courses: dict[str, Any]) -> None:
    page.type(text + " ")
    margin = course(courses, "margin")
    page.one("input[value=margin]").click()
    units, flip = len(margin["order"]), margin["erased"]
    assert page.one("#slider").get_property("max") == str(units)
    assert page.one("#curve .mark").text == f"flips after {flip} → {margin['flipped_to']}"
    page.slide(flip - 1)
    page.until(lambda: len(page.gone) == flip - 1)
    assert not page.flipped
    page.slide(flip)
    page.until(lambda: page.flipped)
    assert page.one(".said b").text == margin["flipped_to"]
    assert sorted(page.gone) == sorted(margin["order"][:flip])
    assert f"flipped from {courses['predicted']}" in str(page.one("#live").get_property("textContent"))
    page.one("#restore").click()
    page.until(lambda: not page.flipped and page.gone == [])


def test_a_click_between_typing_and_reading_does_nothing(page: Page) -> None:
    page.word(1).click()
    page.until(lambda: page.gone == [1])
    page.run(
        "const f = document.getElementById('text'); f.value = 'good'; f.dispatchEvent(new Event('input'));"
        "document.querySelector(\"button.unit[data-position='2']\").click(); document.getElementById('minimum').click()"
    )
    page.until(lambda: page.one(".strip").get_property("textContent") == "good")
    page.until(lambda: "nothing erased" in page.one("#now").text)
    assert not page.one("#problem").is_displayed()


def test_a_text_that_is_taken_back_leaves_nothing_busy(page: Page) -> None:
    slow = "await new Promise((done) => setTimeout(done, 800))"
    page.run(f"const own = window.fetch; window.fetch = async (...given) => {{ {slow}; return own(...given); }}")
    page.one("#text").send_keys(" good")
    page.until(lambda: page.all("body.busy"))
    page.one("#text").send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)
    page.until(lambda: not page.one("#result").is_displayed())
    time.sleep(1)
    assert not page.all("body.busy")


def test_a_click_erases_a_word_and_another_one_restores_it(page: Page, site: Site, text: str) -> None:
    before = page.one("#now").text
    page.word(2).click()
    page.until(lambda: page.one("#now").text.startswith("1 of"))
    assert page.gone == [2]
    assert page.word(2).get_attribute("aria-pressed") == "true"
    told = site.post("erase", text=text, positions=[2], rankings=[]).json["after"]
    assert f"{100 * told['probabilities'][told['predicted']]:.1f} %" in page.one("#now").text
    page.word(2).click()
    page.until(lambda: page.one("#now").text == before)
    assert page.gone == []


def test_the_smallest_set_flips_at_a_button(page: Page, courses: dict[str, Any]) -> None:
    positions = courses["minimum"]["positions"]
    count = len(positions)
    assert page.one("#minimum").text == f"Smallest set that flips: {count} word{'' if count == 1 else 's'}"
    page.one("#minimum").click()
    page.until(lambda: page.flipped)
    assert page.gone == positions


def test_another_attention_stands_beside_the_original(page: Page, site: Site, text: str) -> None:
    page.one("#other-find").click()
    page.until(lambda: page.all("#other-found .number"))
    told = site.post("adversary", text=text).json
    assert page.one("#other-found .number").text == f"{told['jsd']:.2f}"
    titles = [one.text for one in page.all("#other-found .caption b")]
    assert titles == ["the model's own", "another one"]
    own, other = (
        [one.get_attribute("title") for one in strip.find_elements(By.CLASS_NAME, "unit")]
        for strip in page.all("#other-found .strip")
    )
    assert own == [f"attention weight {unit['attention_weight']:.3f}" for unit in told["units"]]
    assert other == [f"attention weight {unit['other_weight']:.3f}" for unit in told["units"]]


def test_models_are_switched_and_stand_side_by_side(page: Page, models: list[ServedRun], text: str) -> None:
    second = models[1].explain(text, lambda: None)
    Select(page.one("#beside")).select_by_value(models[1].name)
    page.until(lambda: len(page.all(".reading")) == 2)
    share = second["probabilities"][second["predicted"]]
    assert f"{100 * share:.1f} %" in page.all(".reading")[1].text
    page.word(0).click()
    page.until(lambda: len(page.all(".reading:nth-child(2) .stripe:first-child .gone")) == 1)
    Select(page.one("#beside")).select_by_value("")
    page.until(lambda: len(page.all(".reading")) == 1)
    Select(page.one("#model")).select_by_value(models[1].name)
    page.until(lambda: page.one(".reading h2").text == models[1].title and page.gone == [])
    page.until(lambda: f"{100 * share:.1f} %" in page.one(".reading").text)


def test_a_shared_address_brings_everything_back(page: Page, models: list[ServedRun], text: str) -> None:
    Select(page.one("#model")).select_by_value(models[1].name)
    page.until(lambda: page.one(".reading h2").text == models[1].title)
    page.one("input[value=polarity]").click()
    page.slide(3)
    page.until(lambda: len(page.gone) == 3)
    page.word(0 if 0 not in page.gone else page.gone[-1]).click()
    page.until(lambda: "toggled=" in page.driver.current_url)
    page.one("#other-find").click()
    page.until(lambda: page.all("#other-found .number"))
    page.until(lambda: "other=" in page.driver.current_url)
    address, gone, now = page.driver.current_url, page.gone, page.one("#now").text
    page.driver.get("about:blank")
    page.driver.get(address)
    page.until(lambda: page.gone == gone and page.one("#now").text == now)
    page.until(lambda: page.all("#other-found .number"))
    assert page.one("#text").get_property("value") == text
    assert Select(page.one("#model")).first_selected_option.get_attribute("value") == models[1].name
    assert page.one("input[value=polarity]").is_selected()
    assert page.one("#slider").get_property("value") == "3"
    assert page.driver.current_url == address


def test_an_address_that_makes_no_sense_is_read_as_far_as_it_does(page: Page) -> None:
    page.open("#text=good+film&model=none&beside=none&by=magic&gone=999&toggled=7,x,-1,1")
    page.until(lambda: page.one(".strip").text == "good film")
    assert page.one("#slider").get_property("value") == "2"


def test_columns_are_sorted_at_a_click(page: Page, models: list[ServedRun], text: str) -> None:
    page.one("#scores summary").click()
    page.one("#scores-table button[data-column='attention α']").click()
    weights = [one["attention_weight"] for one in models[0].explain(text, lambda: None)["tokens"]]
    shown = [row.find_elements(By.TAG_NAME, "td")[2].text for row in page.all("#scores-table tbody tr")]
    assert shown == [f"{weight:.3f}" for weight in sorted(weights, reverse=True)]
    assert page.one("#scores-table th[aria-sort]").get_attribute("aria-sort") == "descending"
    page.one("#scores-table button[data-column='attention α']").click()
    assert page.one("#scores-table th[aria-sort]").get_attribute("aria-sort") == "ascending"


def test_words_of_the_vocabulary_are_found(page: Page, models: list[ServedRun]) -> None:
    page.one("#words summary").click()
    page.until(lambda: page.all("#words-table tbody tr"))
    table = models[0].run.table("tokens")
    word = str(table["token"].iloc[5])
    page.one("#words-find").send_keys(word)
    page.until(lambda: all(word in row.text for row in page.all("#words-table tbody tr")))
    assert any(row.text.split()[0] == word for row in page.all("#words-table tbody tr"))


def test_everything_can_be_done_by_keyboard(page: Page, courses: dict[str, Any]) -> None:
    def press(*keys: str) -> WebElement:
        for key in keys:
            page.driver.switch_to.active_element.send_keys(key)
        return page.driver.switch_to.active_element

    page.one("#text").click()
    for _ in range(20):
        if "unit" in str(press(Keys.TAB).get_attribute("class")):
            break
    assert page.driver.switch_to.active_element.get_attribute("data-position") == "0"
    assert press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).get_attribute("data-position") == "2"
    press(Keys.ENTER)
    page.until(lambda: page.gone == [2])
    assert press(Keys.HOME).get_attribute("data-position") == "0"
    press(Keys.SPACE)
    page.until(lambda: page.gone == [0, 2])
    ids = [str(press(Keys.TAB).get_attribute("id")) for _ in range(2)]
    assert ids == ["minimum", "restore"]
    press(Keys.ENTER)
    page.until(lambda: page.gone == [])
    assert page.driver.switch_to.active_element.get_attribute("id") == "slider"
    press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.until(lambda: sorted(page.gone) == sorted(course(courses, "attention")["order"][:2]))
    assert press(Keys.SHIFT + Keys.TAB).get_attribute("name") == "ranking"
    assert press(Keys.ARROW_DOWN).get_attribute("value") == "gradient"
    page.until(lambda: sorted(page.gone) == sorted(course(courses, "gradient")["order"][:2]))
    outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_what_is_typed_is_shown_and_never_run(page: Page) -> None:
    page.type(f"good {MARKUP} film")
    assert page.all("img[src=x]") == []
    assert page.run("return document.scripts.length") == 1
    page.open("#text=" + MARKUP.replace(" ", "+") + "+good&beside=<b>&by=<i>")
    page.until(lambda: "alert" in page.one(".strip").text)
    assert page.all("img[src=x]") == []


def test_what_goes_wrong_is_said(page: Page) -> None:
    page.one("#text").clear()
    page.one("#text").send_keys("good " * 10)
    page.run(
        "const f = document.getElementById('text'); f.value = 'good '.repeat(2001);f.dispatchEvent(new Event('input'))"
    )
    page.until(lambda: page.one("#problem").is_displayed())
    assert page.one("#problem").text == "A text may have 2,000 words here; this one has 2,001."
    assert len([one for one in page.complaints() if "422" in one["message"]]) > 0  # the browser's own line on a refusal
    page.type("good film")
    assert not page.one("#problem").is_displayed()


def test_a_long_text_stays_usable(page: Page) -> None:
    words = ["good", "film", "and", "bad", "plot"] * 390
    begun = time.monotonic()
    page.run(
        "const f = document.getElementById('text'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))",
        " ".join(words),
    )
    page.until(lambda: page.run("return document.querySelectorAll('button.unit').length") == len(words))
    assert time.monotonic() - begun < 20
    page.slide(500)
    page.until(lambda: page.one("#now").text.startswith("500 of 1,950 words"))


SENTENCES = "good film here. bad plot, they say! a quiet end"


def finds_good(texts: list[str]) -> list[float]:
    return [0.75 if "good" in text else 0.25 for text in texts]


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A hierarchical model, and a function that can only be asked."""
    folder = tmp_path_factory.mktemp("others")
    rows = [f'"{"good" if number % 2 else "bad"} film. plot {number}! the end.",{number % 2}' for number in range(60)]
    (folder / "sentences.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    run = train(folder, folder / "sentences.csv", structure="hierarchical", attention="additive")
    own = heedful.subject(finds_good, class_names=["no", "yes"])
    function = ServedSubject(name="finds good", title="finds good", words=WORDS, subject=own)
    with running([serve_run(run, words=WORDS), function]) as found:
        yield found


def test_of_a_hierarchical_model_sentences_are_erased_and_words_shown_within_them(
    driver: webdriver.Chrome, others: Site
) -> None:
    page = Page(driver, others)
    page.sized(1280)
    page.open()
    page.type(SENTENCES)
    units = [one.get_property("textContent") for one in page.all("button.unit")]
    assert units == ["good film here.", "bad plot, they say!", "a quiet end"]
    names = [one.text for one in page.all(".caption b")]
    assert names == ["attention", "within sentences", "used here", "would push"]
    told = others.post("explain", text=SENTENCES).json
    shades = [one.get_attribute("style") for one in page.all(".inner .unit")]
    assert len(shades) == len(told["words"]) > 6
    page.word(1).click()
    page.until(lambda: page.one("#now").text.startswith("1 of 3 sentences erased"))
    assert page.one("#minimum").text.startswith(("Smallest set that flips: ", "No set flips it"))
    assert page.complaints() == []


def test_of_a_model_that_can_only_be_asked_the_page_says_what_it_does_not_have(
    driver: webdriver.Chrome, others: Site
) -> None:
    page = Page(driver, others)
    page.open("#model=finds+good&text=a+good+film")
    assert [one.text for one in page.all(".caption b")] == ["alone"]
    assert NOT_HERE["attention"] in page.one(".reading").text
    assert page.one("#other-lead").text == NOT_HERE["adversary"]
    assert not page.one("#other-find").is_enabled()
    assert not page.one("#minimum").is_enabled()
    assert not page.one("#words").is_displayed()
    assert [one.get_attribute("value") for one in page.all("input[name=ranking]")] == ["alone", "random"]
    page.word(1).click()
    page.until(lambda: page.flipped)
    assert "no 75.0 %" in page.one("#now").text
    assert page.complaints() == []


def colours(page: Page) -> tuple[str, str]:
    look = "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    ground, ink = page.run(look)
    return ground, ink


def lightness(colour: str) -> float:
    red, green, blue = (int(part) for part in colour.strip("rgb()").split(","))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_dark_follows_the_system_and_the_switch(page: Page) -> None:
    assert [lightness(colour) > 0.5 for colour in colours(page)] == [True, False]
    page.sized(1280, dark=True)
    page.until(lambda: page.one("#theme").text == "Light")
    assert [lightness(colour) > 0.5 for colour in colours(page)] == [False, True]
    page.one("#theme").click()
    assert [lightness(colour) > 0.5 for colour in colours(page)] == [True, False]


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_it_fits_its_width_with_everything_open(page: Page, models: list[ServedRun], width: int) -> None:
    page.sized(width)
    Select(page.one("#beside")).select_by_value(models[1].name)
    page.one("#other-find").click()
    page.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.until(lambda: page.all("#other-found .number") and page.all("#words-table tbody tr"))
    inner, content = page.run("return [innerWidth, document.documentElement.scrollWidth]")
    assert inner == width
    assert content <= width


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_stored(page: Page) -> None:
    loaded = page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert {str(name).removeprefix(page.site.url).partition("?")[0] for name in loaded} <= {
        *FILES,
        *(f"/api/v1/{name}" for name in ("runs", "explain", "erase")),
    }
    assert page.run("return [document.cookie, localStorage.length, sessionStorage.length]") == ["", 0, 0]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_accessibility_without_serious_findings(page: Page, models: list[ServedRun], width: int, dark: bool) -> None:
    if not AXE.is_file():
        pytest.skip(f"axe-core is not there ({AXE.name}): `make axe` fetches it")
    page.sized(width, dark=dark)
    Select(page.one("#beside")).select_by_value(models[1].name)
    page.one("#minimum").click()
    page.one("#other-find").click()
    page.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    page.until(lambda: page.flipped and page.all("#other-found .number") and page.all("#words-table tbody tr"))
    time.sleep(0.3)  # transitions of colours
    page.run(AXE.read_text(encoding="utf-8"))
    found = page.driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {resultTypes: ['violations']})"
        ".then((found) => done(found.violations), (error) => done([{id: String(error)}]))"
    )
    said = [(one["id"], one.get("impact"), [node["target"] for node in one.get("nodes", [])][:3]) for one in found]
    assert [one for one in said if one[1] not in ("minor", "moderate")] == [], json.dumps(said, indent=1)
    page.complaints()  # axe looks at style sheets in ways that the policy forbids


def test_the_colours_are_those_of_the_figures(page: Page) -> None:
    names = ("attended", "towards", "away")
    style = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])"
    assert [str(page.run(style, f"--{name}")).upper() for name in names] == [ATTENDED, TOWARDS, AWAY]
