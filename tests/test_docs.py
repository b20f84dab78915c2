"""The documentation: links and anchors, generated pages, the commands and code of every page, and the site made of it.

Code that is long to run has a test of its own, named in `RUN_ELSEWHERE`.
"""

import doctest
import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import heedful
from heedful.training.loop import limited_threads
from pages import PAGES as MADE
from pages import made
from pages.pictures import PICTURES, hand_trace, twelve_units
from tests import tiny_transformers
from tests.browsing import browsing, needs_browser
from tests.commands import Call, write_corpus
from tests.documents import DOCS, PAGES, ROOT, anchors, blocks, command_of, links, parsed, prose, text_of

RUN_ELSEWHERE = {
    "explainers.md": "explainers/test_explaining.py",
    "faithfulness.md": "studies/test_suite_command.py",
    "traces.md": "test_trace_files.py",
    "your-model.md": "test_your_model.py",
}
"""Pages whose Python is run by another test."""

TUTORIALS = ("csv.md", "transformer.md", "trace.md")
MADE_UP = ("yours.csv", "./your-folder")
"""What stands in a command for what the reader has."""

OUTPUT = {"", "text"}
OTHER_PROGRAMS = {".", "curl", "npm"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@each_page
def test_what_a_page_links_to_is_there(page: Path) -> None:
    for target in links(page):
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in anchors(found), f"{name_of(page)} links to {target}"
        assert page.is_relative_to(DOCS) <= found.is_relative_to(DOCS), f"{target} is no part of the site"


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Some *words*, `code`\n[a](gone.md) ![b](#some-words-code) `[c](d.md)`\n```\n[e](f.md)\n```\n")
    assert list(links(page)) == ["gone.md", "#some-words-code"]
    assert anchors(page) == {"some-words-code"}


def test_every_page_is_in_the_navigation_once() -> None:
    told = re.findall(r"^ +- .*: ([\w/-]+\.md)$|^  - .*: ([\w/-]+\.md)$", text_of(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert sorted(one or other for one, other in told) == sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")
    )


@pytest.mark.parametrize("name", MADE)
def test_a_page_that_is_made_from_the_code_is_what_the_code_makes(name: str) -> None:
    assert text_of(DOCS / name) == made(name), f"docs/{name} is behind the code: make pages"


def test_the_reference_has_every_public_name() -> None:
    headings = re.findall(r"^### heedful\.(\w+)$", text_of(DOCS / "api.md"), re.MULTILINE)
    assert sorted([*headings, "__version__"]) == sorted(heedful.__all__)


def test_every_concept_has_its_picture_theorem_and_proof() -> None:
    concepts = {page.stem: text_of(page) for page in (DOCS / "concepts").glob("*.md")}
    assert set(concepts) == set(PICTURES)
    for name, words in concepts.items():
        assert f"../images/concepts/{name}.svg" in words
        assert "## The theorem" in words
        assert re.search(r"\*Proof\.\*.*∎", words)
    drawn = {path.stem for path in (DOCS / "images" / "concepts").iterdir()}
    assert drawn == set(PICTURES)


def test_pictures_show_what_their_pages_say() -> None:
    """The minimum of the twelve units and what attention needs; the words of the hand trace."""
    trace = twelve_units()
    needs = (heedful.minimum_flips(trace)["erased"][0], heedful.first_flips(trace)["erased"][0])
    assert needs == (4, 9)
    assert "here 4; attention needs 9" in text_of(DOCS / "concepts" / "minimum-set.md")
    numbers = re.findall(r"^ +((?:attention_weights|polarity_scores)=.*)$", inspect.getsource(hand_trace), re.MULTILINE)
    for page in ("trace.md", "erasure.md", "minimum-set.md", "adversary.md"):
        assert all(line in text_of(DOCS / "concepts" / page) for line in numbers)


@each_page
def test_commands_of_a_page_are_commands(page: Path) -> None:
    """Options and subcommands exist, files to make and extras too; outputs hide no command."""
    for block in blocks(page):
        assert block.language in {*OUTPUT, "python", "pycon", "sh", "console", "toml"}
        if block.language in OUTPUT:
            assert not re.search(r"^(\$ )?(heedful|pip|make) ", block.code, re.MULTILINE), block.code
        if block.language in {"sh", "console"}:
            for words in block.commands:
                check(words)


def check(words: list[str]) -> None:
    program, *rest = words
    if re.match(r"[A-Z_]+=", program):
        return check(rest)
    if program == "heedful":
        parsed(rest)
        check_settings(rest)
    elif program == "make":
        assert re.search(rf"^{rest[0]}:", text_of(ROOT / "Makefile"), re.MULTILINE), rest
    elif program == "pip":
        project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
        extras = [extra for one in rest for found in re.findall(r"\[(.*)\]", one) for extra in found.split(",")]
        assert rest[0] == "install"
        assert set(extras) <= set(project["optional-dependencies"])
    elif program == "python":
        assert rest[0] in {"make_reviews.py", "-m"}
    else:
        assert program in OTHER_PROGRAMS, words
    return None


@each_page
def test_commands_between_the_lines_are_commands(page: Path) -> None:
    """`heedful attack RUN --determined` in a sentence: the subcommand and its options exist."""
    for said in re.findall(r"`heedful ([a-z][^`]*)`", prose(page).replace("\n", " ")):
        command, rest = command_of([word for word in said.split() if word != "…"])
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word.partition("=")[0] for word in rest if word.startswith("--")} - {"--help"} <= known, said
        check_settings(rest)


def check_settings(words: list[str]) -> None:
    """What is set by `--set` is a setting, and takes that value."""
    heedful.RunSettings().override([one for before, one in pairwise(words) if before == "--set" and "=" in one])


def test_a_command_that_is_none_is_seen() -> None:
    with pytest.raises(AssertionError, match="there is no command heedful … adit"):
        check(["heedful", "adit", "sst"])
    with pytest.raises(Exception, match=r"No such option.*--sede"):
        check(["heedful", "audit", "sst", "--sede", "1"])
    with pytest.raises(AssertionError):
        check(["pip", "install", "heedful[webs]"])


@pytest.mark.parametrize("page", RUN_ELSEWHERE)
def test_python_that_is_run_elsewhere_is(page: str) -> None:
    test = text_of(ROOT / "tests" / RUN_ELSEWHERE[page])
    assert f'"{page}"' in test
    assert "```python" in test


def has_python(page: Path) -> bool:
    return page.name not in RUN_ELSEWHERE and page.parent.name != "tutorials" and page.name != "api.md"


@pytest.fixture(scope="module")
def given_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what code of pages takes as given: a file of reviews, a folder of a transformer."""
    folder = tmp_path_factory.mktemp("things")
    write_corpus(folder / "reviews.csv", texts=120)
    model, tokenizer = tiny_transformers.made("bert")
    model.save_pretrained(folder / "my-model")
    tokenizer.save_pretrained(folder / "my-model")
    return folder


WITH_PYTHON = [
    page for page in PAGES if has_python(page) and any(b.language in {"python", "pycon"} for b in blocks(page))
]


@pytest.mark.usefixtures("undrawn", "one_thread")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_of_a_page_runs(page: Path, given_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(given_files)
    names = given(page)
    for block in blocks(page):
        if block.language == "python":
            exec(compile(block.code, name_of(page), "exec"), names)
        if block.language == "pycon":
            session = doctest.DocTestParser().get_doctest(block.code, names, name_of(page), name_of(page), 0)
            told: list[str] = []
            result = doctest.DocTestRunner(verbose=False).run(session, out=told.append, clear_globs=False)
            names = session.globs
            assert not result.failed, "".join(told)


def given(page: Path) -> dict[str, Any]:
    """The names that the code of a page is about."""
    if page.name == "README.md":
        return {"texts": ["a good film"], "a": [0.0, 1.0, 2.0], "z": [[0, 1], [0, -2], [0, 3]], "b": [0, 0]}
    if page.name == "export.md":
        return exported()
    return {}


def exported() -> dict[str, Any]:
    corpus = heedful.load_corpus("reviews.csv")
    small = heedful.RunSettings().change({"training.epochs": 2, "model.embedding_size": 8})
    model = heedful.fit(corpus, epochs=2, embedding_size=8)
    reading = heedful.subject(model).read(["a good film"])
    audit = heedful.audit(corpus, settings=small, advice=False)
    return {
        "heedful": heedful,
        "corpus": corpus,
        "model": model,
        "trace": heedful.trace(model, corpus.test),
        "reading": reading,
        "audit": audit,
    }


def of_tutorial(name: str, kind: str) -> list[str]:
    return [block.code for block in blocks(DOCS / "tutorials" / name) if block.language == kind]


def commands_of(name: str, run: str = "") -> Iterator[list[str]]:
    """The `heedful` commands of a tutorial, but those on the reader's own files."""
    for block in blocks(DOCS / "tutorials" / name):
        for words in block.commands if block.language == "sh" else ():
            if words[0] == "heedful" and not set(words) & set(MADE_UP):
                yield [run if word == "RUN" else word for word in words[1:]]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the reader of the first two tutorials, after making the reviews."""
    folder = tmp_path_factory.mktemp("reader")
    (making,) = of_tutorial("csv.md", "python")
    subprocess.run([sys.executable, "-c", making], cwd=folder, check=True)
    return folder


@pytest.mark.usefixtures("undrawn")
def test_the_tutorial_on_a_csv_comes_out_as_planted(reviews: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(reviews)
    stats, audit = list(commands_of("csv.md"))[:2]
    assert call(*stats).code == 0
    with limited_threads(1):
        done = call(*audit, "--json").json
    said = {question["name"]: question["decision"] for question in done["answer"]["questions"]}
    assert said == {"corpus": "yes", "decision": "not shown", "story": "yes"}
    run = Path(done["report"]).parent
    tokens = pd.read_csv(run / "tables" / "tokens.csv").query("beyond_chance").set_index("token")
    planted = re.findall(r'(?:GOOD|BAD) = "(.*)"', of_tutorial("csv.md", "python")[0])
    good, bad = (set(words.split()) for words in planted)
    assert set(tokens.index) == {*good, *bad, "sponsored"}
    assert set(tokens.index[tokens["polarity"] > 0]) == {*good, "sponsored"}
    assert tokens["polarity"].idxmax() == "sponsored"
    explain, erase, attack = (call(*words, "--json").json for words in list(commands_of("csv.md", run.name[:12]))[2:])
    used = {row["token"]: row["contribution"] for row in explain["tokens"]}
    assert explain["predicted"] == "good"
    assert used["dull"] < -1 < 1 < min(used["superb"], used["witty"])
    assert {row["ranking"]: row["erased"] for row in erase["rankings"]}["attention"] == 2
    assert erase["minimum"] == {"positions": [1, 3], "flipped_to": "bad"}
    assert (attack["exact"], attack["tvd"]) == (True, 0.0)
    assert attack["jsd"] > 0.5


@pytest.mark.usefixtures("undrawn", "one_thread")
def test_the_tutorial_on_a_transformer_comes_out_as_planted(
    reviews: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reviews)
    training, explaining = of_tutorial("transformer.md", "python")
    exec(compile(training, "transformer.md", "exec"), {})
    (audit,) = commands_of("transformer.md")
    assert audit[-2] == "--texts"
    few = ("8", "--by", "attention,leave_one_out,random", "--metrics", "aopc,correlation", "--json")
    done = call(*audit[:-1], *few).json
    decided = {row["claim"]: row["verdict"] for row in done["verdicts"]}
    assert (decided["M1"], decided["D1"], decided["C8c"]) == ("yes", "yes", "yes")
    names: dict[str, Any] = {}
    exec(compile(explaining, "transformer.md", "exec"), names)
    attention, alone = (
        dict(zip(names[name].shown, names[name].scores.tolist(), strict=True)) for name in ("attention", "alone")
    )
    assert attention["dull"] > 3 * attention["ending"]
    assert alone["dull"] < 0.1 < 0.5 < min(alone["superb"], alone["witty"])


@pytest.mark.usefixtures("undrawn")
def test_the_tutorial_on_a_trace_comes_out_as_planted(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    making, writing, flips, other = of_tutorial("trace.md", "python")
    for code in (making, writing):
        exec(compile(code, "trace.md", "exec"), names)
    erase, attack = commands_of("trace.md")
    erased, attacked = call(*erase), call(*attack)
    page = text_of(DOCS / "tutorials" / "trace.md")
    for row in re.findall(r"^  (?:attention|minimum|random|the very same) .*%$", page, re.MULTILINE):
        assert row in erased.out + attacked.out
    capsys.readouterr()
    for code in (flips, other):
        exec(compile(code, "trace.md", "exec"), names)
    first, words, second = capsys.readouterr().out.splitlines()
    assert (first, second) == ("8.0 2.0", "0.61 0")
    assert set(eval(words)) <= set(names["PUSH"])


def test_the_plan_of_the_recipe_is_a_plan(given_files: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(given_files)
    plan, commands = blocks(DOCS / "how-to" / "several-seeds.md")[:2]
    Path("seeds.toml").write_text(plan.code, encoding="utf-8")
    found = call(*commands.commands[0][1:], "--json").json
    assert (found["total"], found["varied"]) == (10, ["model.attention", "training.seed"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` makes."""
    folder = tmp_path_factory.mktemp("site")
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = r'<(?:script|img|iframe|source)[^>]* src="https?:|<link[^>]* href="https?:|url\(["\']?https?:|@import'
    files = [path for path in site.rglob("*") if path.suffix in {".html", ".css"}]
    assert len(files) > len(MADE)
    for path in files:
        assert not re.search(loads, path.read_text(encoding="utf-8")), path


@needs_browser
def test_the_site_is_searched_without_a_server(site: Path, tmp_path: Path) -> None:
    with browsing(tmp_path) as browser:
        browser.get((site / "index.html").as_uri())
        field = browser.find_element(By.CSS_SELECTOR, "input[data-md-component=search-query]")
        browser.execute_script("document.querySelector('#__search').click()")
        WebDriverWait(browser, 20).until(lambda _: field.is_displayed())
        field.send_keys("adversary")
        found = WebDriverWait(browser, 20).until(
            lambda _: browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        )
        assert any("concepts/adversary.html" in (one.get_attribute("href") or "") for one in found)
        logged = browser.get_log("browser")  # type: ignore[no-untyped-call]
        errors = [entry["message"] for entry in logged if entry["level"] == "SEVERE"]
    assert errors == []
