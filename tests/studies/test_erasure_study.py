"""Erasure for people: one text, a run's trace and a foreign trace, by function and by command."""

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from heedful.cli import app
from heedful.cli.text_views import print_erased
from heedful.config import RunSettings
from heedful.errors import UnknownName
from heedful.models.classifier import Classifier
from heedful.pipeline import run
from heedful.report.terminal import print_page
from heedful.store import Store
from heedful.studies.erase import erase_trace
from heedful.studies.explain import Course, ErasedText, erase_text
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.traces import Trace
from heedful.tracing import trace_texts
from heedful.training.loop import fit

FOREIGN: dict[str, Any] = {
    "offsets": [0, 3, 5],
    "attention_weights": [0.5, 0.25, 0.25, 0.5, 0.5],
    "polarity_scores": [[0, 4], [0, 1], [0, -2], [0, 1], [0, -3]],
    "bias": [0, 0],
}


def test_the_tables_of_a_hand_made_trace() -> None:
    """Instance 0 is for class 1 by .5·4 + .25·1 − .25·2: only without its first unit is it for class 0.

    Instance 1 is for class 0: erasing its second unit leaves class 1. Its weights are equal, so attention erases the
    first unit first, and then everything, which leaves the bias: class 0 again.
    """
    tables = erase_trace(Trace.from_arrays(**FOREIGN)).tables()
    assert tables["minimum"]["positions"].tolist() == [[0], [1]]
    assert tables["minimum"]["verified"].all()
    assert tables["flips-attention"]["erased"].tolist()[0] == 1
    assert tables["flips-attention"]["erased"].isna().tolist() == [False, True]
    assert tables["flips-margin"]["erased"].tolist() == [1, 1]
    quality = tables["quality"].set_index("ranking")
    assert quality.loc["margin", "attained"] == 1.0
    assert quality.loc["attention", "attained"] == 0.5


def test_a_text_loses_its_units_along_every_ranking(small_model: Classifier, small_corpus: Corpus) -> None:
    found = erase_text(small_model, small_corpus.test.texts[0])
    assert len(found.units) == 12
    for course in found.courses:
        assert sorted(course.order) == list(range(12))
        assert course.erased is None or found.minimum is None or course.erased >= len(found.minimum)
    screen = Console(record=True, width=200, file=io.StringIO())
    print_erased(found, screen)
    assert "minimum" in screen.export_text()


def test_what_steers_a_terminal_is_not_printed(reviewer: Classifier) -> None:
    screen = Console(record=True, width=200, file=io.StringIO(), force_terminal=False)
    print_erased(erase_text(reviewer, "The [food]\x1b[31m was \u202epoor \udcff. Good."), screen)
    shown = screen.export_text()
    assert not {"\x1b", "\u202e", "\udcff"} & set(shown)
    assert "words are not in the model's vocabulary" in shown


def printed(erasure: ErasedText, *, everything: bool = False) -> list[str]:
    screen = Console(record=True, width=10**7, file=io.StringIO())
    print_erased(erasure, screen, everything=everything)
    return screen.export_text().splitlines()


def long_erasure(erased: int | None) -> ErasedText:
    """A thousand units that go from the last to the first."""
    order = list(range(999, -1, -1))
    course = Course(ranking="attention", order=order, erased=erased, flipped_to=None if erased is None else "b")
    units = [f"u{number}" for number in range(1000)]
    return ErasedText(units=units, predicted="a", courses=[course], minimum=[998, 500], minimum_to="b")


def test_of_a_long_text_what_goes_first_is_shown() -> None:
    _, attention, minimum, said = printed(long_erasure(300))
    assert attention.split()[:6] == ["attention", "300", "of", "1,000", "→", "b"]
    assert attention.split()[6:] == ["…", *(f"{1000 - unit}⟦u{unit}⟧" for unit in range(800, 1000))]
    assert minimum.split()[6:] == [
        *(f"u{unit}" for unit in range(198)), "…", "2⟦u500⟧", "…", "1⟦u998⟧", "…"
    ]  # fmt: skip
    assert said == "of 1,000 units each row shows 200 at most, what goes first; --all shows all"


def test_a_long_text_that_never_flips_is_shown_from_its_beginning() -> None:
    attention = printed(long_erasure(None))[1]
    assert attention.split() == ["attention", "never", "flips", *(f"u{unit}" for unit in range(200)), "…"]


def test_all_of_a_long_text_is_shown_when_it_is_asked_for() -> None:
    lines = printed(long_erasure(300), everything=True)
    assert len(lines) == 3
    assert lines[1].split()[6:] == [
        *(f"u{unit}" for unit in range(700)), *(f"{1000 - unit}⟦u{unit}⟧" for unit in range(700, 1000))
    ]  # fmt: skip


def test_a_short_text_is_shown_as_a_whole(small_model: Classifier) -> None:
    shown = printed(erase_text(small_model, "word " * 200))
    assert not any("…" in line or "--all" in line for line in shown)


def test_the_command_reads_a_foreign_trace_and_writes_every_table(tmp_path: Path) -> None:
    Trace.from_arrays(**FOREIGN).save(tmp_path / "foreign.parquet")
    done = CliRunner().invoke(
        app, ["erase", "--trace", str(tmp_path / "foreign.parquet"), "--out", str(tmp_path / "out"), "--json"]
    )
    assert done.exit_code == 0, done.output
    quality = {row["ranking"]: row["attained"] for row in json.loads(done.stdout)["tables"]["quality"]}
    assert quality["margin"] == 1.0
    assert pd.read_parquet(tmp_path / "out" / "minimum.parquet")["erased"].tolist() == [1, 1]
    assert (tmp_path / "out" / "flips-attention.tex").is_file()


def test_the_command_reads_a_run(small_corpus: Corpus, tmp_path: Path) -> None:
    settings = RunSettings.of({"model": {"embedding_size": 8}, "training": {"epochs": 1}})
    made = run(settings, Store(tmp_path), corpus=small_corpus)
    whole = CliRunner().invoke(app, ["erase", "--run", str(made.path)])
    one = CliRunner().invoke(app, ["erase", small_corpus.test.texts[0], "--run", str(made.path), "--json"])
    assert "is minimal" in whole.stdout
    assert json.loads(one.stdout)["units"] == small_corpus.test.texts[0].split()


@pytest.fixture(scope="module")
def reviewer() -> Classifier:
    """A hierarchical model that reads two sentences of which one decides; a few epochs."""
    texts = [f"We came on day {row}. The food was {'fine' if row % 2 else 'poor'}." for row in range(80)]
    corpus = load_corpus((texts, ["good" if row % 2 else "bad" for row in range(80)]))
    return fit(corpus, structure="hierarchical", encoder="gru", embedding_size=8, hidden_size=8, epochs=2)


def test_the_sentences_of_a_text_leave_it_along_every_ranking(reviewer: Classifier) -> None:
    """Beside a reading of every shortened text; one without sentences is decided by the bias."""
    names = reviewer.interface.class_names
    found = erase_text(reviewer, "We came on day 3. The food was poor. It was day 4.", inputs="delete")
    for course in found.courses:
        decided = []
        for gone in range(1, 4):
            rest = " ".join(unit for number, unit in enumerate(found.units) if number not in course.order[:gone])
            logits = trace_texts(reviewer, [rest])[0].logits[0] if rest else reviewer.bias()
            decided.append(names[int(logits.argmax())])
        flips = [gone for gone, name in enumerate(decided, start=1) if name != found.predicted]
        assert course.erased == (flips[0] if flips else None)
    assert found.summary()["level"] == "delete"
    assert "minimum" not in found.summary()
    assert {word["sentence"] for word in found.summary()["words"]} == {0, 1, 2}


def test_what_leaves_the_text_is_printed_without_a_minimum(reviewer: Classifier) -> None:
    screen = Console(record=True, width=200, file=io.StringIO())
    print_erased(erase_text(reviewer, "The food was poor. It was day 4.", inputs="mask"), screen)
    shown = screen.export_text()
    assert "what leaves the text (mask)" in shown
    assert "minimum" not in shown
    assert "attended to most within each sentence" in shown


def test_the_command_compares_words_and_weights_of_a_run(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    rows = [f"day {row} was {'fine' if row % 2 else 'poor'} here,{'good' if row % 2 else 'bad'}" for row in range(60)]
    file.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    settings = RunSettings.of(
        {"data": {"source": str(file)}, "model": {"embedding_size": 8}, "training": {"epochs": 2}}
    )
    made = run(settings, Store(tmp_path / "store"))
    arguments = ["erase", "--run", str(made.path), "--input", "delete", "--out", str(tmp_path / "out")]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said.output
    assert "medians over those that both flip" in " ".join(said.stdout.split())
    table = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["tables"]["inputs"]
    assert [row["equal"] for row in table] == [1.0] * 4
    assert pd.read_csv(tmp_path / "out" / "inputs-delete.csv")["ranking"].tolist() == [r["ranking"] for r in table]
    assert set(pd.read_csv(tmp_path / "out" / "input-flips-delete.csv")["level"]) == {"attention", "delete"}
    wrong = CliRunner().invoke(app, ["erase", "--run", str(made.path), "--input", "remove"])
    assert isinstance(wrong.exception, UnknownName)
    assert str(wrong.exception) == "There is no way to take units away 'remove'. Known: attention, delete, mask."


def test_reading_again_needs_a_model() -> None:
    done = CliRunner().invoke(app, ["erase", "--trace", "x.parquet", "--input", "delete"])
    assert done.exit_code == 2
    assert "needs a model to read again" in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize("arguments", [[], ["a text"], ["a text", "--trace", "x.parquet"]])
def test_half_a_question_is_a_usage_error(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, ["erase", *arguments])
    assert done.exit_code == 2
    assert "give a TEXT with --run" in done.output


def test_tables_can_be_shown_where_nothing_flips() -> None:
    stubborn = Trace.from_arrays(offsets=[0, 1], attention_weights=[1.0], polarity_scores=[[1, 0]], bias=[1, 0])
    screen = Console(record=True, width=120, file=io.StringIO())
    print_page(erase_trace(stubborn), screen)
    assert "Of 1 in all, 1 have one unit only, 0 flip only when everything is erased, or never" in " ".join(
        screen.export_text().split()
    )


def test_printed_json_has_null_where_there_is_no_number(tmp_path: Path) -> None:
    stubborn = Trace.from_arrays(offsets=[0, 1], attention_weights=[1.0], polarity_scores=[[1, 0]], bias=[1, 0])
    stubborn.save(tmp_path / "one.safetensors")
    done = CliRunner().invoke(app, ["erase", "--trace", str(tmp_path / "one.safetensors"), "--json"])
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found["tables"]["summary"][0]["mean_fraction"] is None
