"""What an audit answers, and the tables it shows and saves."""

import html
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from heedful.analysis.separation import group_measures
from heedful.analysis.tokens import group_of_class
from heedful.config import ModelSettings, RunSettings
from heedful.errors import ConfigError, InputError
from heedful.pipeline import Run, run
from heedful.probes.scores import token_scores
from heedful.report.exports import LATEX_ROWS, as_latex, save_table
from heedful.report.terminal import interval_words, print_page
from heedful.store import Store
from heedful.studies import advice as advice_module
from heedful.studies import one_attention as one_attention_module
from heedful.studies.advice import in_words, scaling_claims, too_much
from heedful.studies.attack import attack_trace
from heedful.studies.audit import Audit, audit
from heedful.studies.corpora import corpus_statistics
from heedful.studies.erase import erase_trace
from heedful.studies.one_attention import NO_SCORES, PICTURE, drawn_texts, has_word_scores, one_attention
from heedful.studies.wording import class_naming, left_out_classes, strongest_in_words, strongest_tokens
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.training.loop import fit
from tests.commands import Call
from tests.covering import covers
from tests.verdicts import verdict

pytestmark = pytest.mark.xdist_group("audit")  # one worker makes what these tests share


def test_the_strongest_tokens_push_towards_their_class_and_are_not_rare() -> None:
    tokens = pd.DataFrame(
        {
            "token": ["good", "x" * 40, "bad", "rare"],
            "count_no": [0, 3, 9, 1],
            "count_yes": [7, 3, 0, 4],
            "polarity": [2.0, 0.5, -1.0, 9.0],
            "attention": [1.0, 0.0, 0.25, 5.0],
        }
    )
    found = strongest_tokens(tokens, ["no", "yes"])
    assert found["yes"]["token"].tolist() == ["good", "x" * 40]
    assert found["no"].iloc[0].tolist() == ["bad", -1.0, 0.25, 9]
    assert strongest_in_words(found["yes"])["token"].tolist() == ["good", "x" * 23 + "…"]
    assert strongest_in_words(found["no"]).iloc[0].tolist() == ["bad", "-1.00", "+0.25", 9]


def test_the_strongest_tokens_of_several_classes_have_a_table_each() -> None:
    tokens = pd.DataFrame(
        {
            "token": ["one", "two"],
            **{f"count_{name}": [9, 9] for name in "abc"},
            "polarity_a": [1.0, -1.0],
            "polarity_b": [-1.0, 1.0],
            "polarity_c": [0.0, 0.5],
            "attention": [0.0, 0.0],
        }
    )
    found = strongest_tokens(tokens, list("abc"))
    assert {name: table["token"].tolist() for name, table in found.items()} == {
        "a": ["one"],
        "b": ["two"],
        "c": ["two"],
    }


def test_statistics_count_texts_classes_and_unknown_tokens(small_corpus: Corpus) -> None:
    found = corpus_statistics(small_corpus)
    assert found["splits"]["train"]["per_class"] == [300, 300]
    assert found["splits"]["train"]["mean_length"] == 12.0
    assert found["splits"]["train"]["unknown_tokens"] == 0.0
    assert found["vocabulary"] == len(small_corpus.vocabulary)


def test_latex_is_escaped() -> None:
    table = pd.DataFrame({"a_b": ["50 % & $x$ {#} ~^\\"], "value": [0.123456]})
    assert as_latex(table).splitlines() == [
        r"\begin{tabular}{ll}",
        r"\toprule",
        r"a\_b & value \\",
        r"\midrule",
        r"50 \% \& \$x\$ \{\#\} \textasciitilde{}\textasciicircum{}\textbackslash{} & 0.1235 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_long_table_is_cut_in_latex_only(tmp_path: Path) -> None:
    table = pd.DataFrame({"number": range(LATEX_ROWS + 50)})
    save_table(table, tmp_path / "long")
    lines = as_latex(table).splitlines()
    assert len(lines) == LATEX_ROWS + 7
    assert lines[-3] == f"% the first {LATEX_ROWS} of {len(table)} rows; the CSV and Parquet files have all"
    assert len(pd.read_csv(tmp_path / "long.csv")) == LATEX_ROWS + 50
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "long.parquet"), table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "long.parquet", "long.tex"]


def test_latex_sets_signs_and_what_is_missing() -> None:
    table = pd.DataFrame({"Δα": ["λ ≥ 1", None], "share": [float("nan"), 0.25]})
    assert as_latex(table).splitlines()[2:6] == [
        r"$\Delta$$\alpha$ & share \\", r"\midrule", r"$\lambda$ $\geq$ 1 & -- \\", r"-- & 0.25 \\",
    ]  # fmt: skip


SMALL = RunSettings().change({"model.embedding_size": 8, "training.batch_size": 100, "training.epochs": 2})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def waiting(small_corpus: Corpus, store: Store) -> tuple[Audit, int]:
    """A first audit, and how many runs it left; every training is too much for other λ to be tried unasked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(advice_module, "MOST_WORK", 0.0)
        done = audit(SMALL, store, corpus=small_corpus)
    return done, len(store.finished())


@pytest.fixture(scope="module")
def examined(small_corpus: Corpus, store: Store, waiting: tuple[Audit, int]) -> Audit:
    """An audit of the small corpus with everything in it."""
    done = audit(SMALL, store, corpus=small_corpus, advice=True)
    assert done.run == waiting[0].run
    return done


def claims_of(done: Audit) -> list[str]:
    return [found.claim for found in done.verdicts]


def test_an_audit_judges_the_run_its_erasures_and_the_sweep(examined: Audit) -> None:
    assert claims_of(examined)[:6] == ["C1", "C2", "C2b", "C8", "C8b", "C8c"]
    assert claims_of(examined)[-4:] == ["C3", "C4", "C11", "C11b"]
    assert {"S1", "S6", "S9", "S11", "S13", "J2", "J3", "J3b"} <= set(claims_of(examined))
    assert sorted(set(examined.advice.table["scale"])) == [1.0, 10.0, 100.0]
    assert examined.advice.runs[1].path == examined.run.path  # the audited λ is not trained again


def test_an_audit_keeps_its_tables_and_its_recording(examined: Audit) -> None:
    tables = {path.stem for path in (examined.report.parent / "tables").glob("*.csv")}
    assert {"tokens", "verdicts", "flips", "single", "erasure", "advice", "scaling", "moments"} <= tables
    assert {"adversary", "permutation", "other-attention", "shuffled-attention"} <= tables
    recorded = examined.run.table("moments")
    assert recorded["time"].unique().tolist() == [1, 2]
    page = examined.report.read_text(encoding="utf-8")
    assert all(f'class="section" id="{name}"' in page for name in ("erasure", "attack", "advice", "training"))


def test_a_second_audit_trains_nothing_and_finds_the_same(examined: Audit, small_corpus: Corpus, store: Store) -> None:
    def fail(_: object) -> None:
        pytest.fail("a training ran")

    figures = examined.report.parent / "figures"
    assert {path.suffix for path in figures.iterdir()} == {".svg"}
    again = audit(SMALL, store, corpus=small_corpus, observers=[fail], figures=["png", "svg"])
    assert {path.suffix for path in figures.iterdir()} == {".svg", ".png"}
    assert again.summary() == examined.summary()
    assert again.run.has("moments")


def test_an_unknown_format_of_figures_is_refused_before_anything_is_trained(
    small_corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="There is no format of pictures 'jpg'"):
        audit(SMALL, tmp_path, corpus=small_corpus, figures=["jpg"])
    assert list(tmp_path.iterdir()) == []


def test_where_trainings_are_large_advice_waits_until_it_is_asked_for(
    waiting: tuple[Audit, int], examined: Audit
) -> None:
    first, runs = waiting
    assert not first.advice.tried
    assert "more than 0e+00 is done only when --advice asks for it" in first.advice.words
    assert runs == 1
    assert examined.advice.tried


def test_a_run_that_was_trained_before_its_audit_shows_its_training(small_corpus: Corpus, tmp_path: Path) -> None:
    run(SMALL, Store(tmp_path), corpus=small_corpus)
    done = audit(SMALL, Store(tmp_path), corpus=small_corpus, advice=False)
    assert 'class="section" id="training"' in done.report.read_text(encoding="utf-8")


def test_without_advice_or_a_recording_their_parts_are_left_out(small_corpus: Corpus, tmp_path: Path) -> None:
    unrecorded = SMALL.change({"record.scores": False})
    done = audit(unrecorded, Store(tmp_path), corpus=small_corpus, advice=False)
    page = done.report.read_text(encoding="utf-8")
    assert not any(part in page for part in ('id="training"', 'class="timeline"'))
    assert not done.advice.tried
    assert "advice" not in done.summary()["tables"]
    assert done.advice.words == "Other λ were not tried: --no-advice was given."
    assert done.advice.words in page
    assert [claim for claim in claims_of(done) if claim[0] == "C"] == ["C1", "C2", "C2b", "C8", "C8b", "C8c"]


@pytest.mark.parametrize("wanted", [False, None])
def test_advice_that_costs_nothing_stays_in_the_report(
    wanted: bool | None, examined: Audit, small_corpus: Corpus, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without advice, and where the training is a large one: its runs are in the store."""
    monkeypatch.setattr(advice_module, "MOST_WORK", 0.0)
    before = examined.report.read_text(encoding="utf-8")
    again = audit(SMALL, store, corpus=small_corpus, advice=wanted, observers=[lambda _: pytest.fail("a training ran")])
    assert again.summary() == examined.summary()
    assert again.report.read_text(encoding="utf-8") == before


def copied(store: Store, place: Path) -> Store:
    shutil.copytree(store.root, place)
    return Store(place)


def test_advice_whose_runs_are_gone_is_named(
    examined: Audit, small_corpus: Corpus, store: Store, tmp_path: Path
) -> None:
    other = copied(store, tmp_path / "store")
    other.remove(examined.advice.runs[0].path.name)
    done = audit(SMALL, other, corpus=small_corpus, advice=False)
    table = done.run.path / "tables" / "advice.csv"
    assert not done.advice.tried
    assert done.advice.words == (
        "Other λ were not tried: --no-advice was given. An earlier audit tried them, but 1 of its runs is no longer in "
        f"the store; what it found is kept in {table}."
    )
    assert len(pd.read_csv(table)) == 6
    assert html.escape(done.advice.words) in done.report.read_text(encoding="utf-8")
    assert done.page.section("advice").lead == done.advice.words


def test_advice_without_a_training_that_failed_stays_too(
    examined: Audit, small_corpus: Corpus, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = copied(store, tmp_path / "store")
    other.remove(examined.advice.runs[0].path.name)

    def diverge(settings: RunSettings, *where: Any, **how: Any) -> Run:
        if other.find(settings.digest(small_corpus.fingerprint)) is None:
            raise ConfigError("The loss is not a number.")
        return run(settings, *where, **how)

    with monkeypatch.context() as patch:
        patch.setattr(advice_module, "run", diverge)
        first = audit(SMALL, other, corpus=small_corpus, advice=True)
    again = audit(SMALL, other, corpus=small_corpus, advice=False)
    pd.testing.assert_frame_equal(again.advice.table, first.advice.table)
    assert again.advice.words.endswith(
        "λ = 1 could not be tried: it is not in the store, and nothing was to be trained."
    )


def test_an_audit_of_another_run_in_the_same_place_says_nothing_of_the_first(
    examined: Audit, small_corpus: Corpus, store: Store, tmp_path: Path
) -> None:
    first = audit(SMALL, store, corpus=small_corpus, out=tmp_path / "page")
    assert first.run == examined.run
    assert (tmp_path / "page" / "tables" / "advice.csv").is_file()
    other = SMALL.change({"training.seed": 1})
    done = audit(other, store, corpus=small_corpus, out=tmp_path / "page", advice=False)
    assert done.advice.words == "Other λ were not tried: --no-advice was given."


TEXTS = [f"{'superb' if row % 2 else 'awful'} film number {row}" for row in range(40)]
LABELS = ["good" if row % 2 else "bad" for row in range(40)]


@pytest.fixture
def reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file in the working directory, which has no store yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEEDFUL_STORE", raising=False)
    pd.DataFrame({"text": TEXTS, "label": LABELS}).to_csv("reviews.csv", index=False)
    return "reviews.csv"


def test_a_path_alone_is_audited_as_on_the_command_line(reviews: str, call: Call) -> None:
    done = audit(reviews, settings=SMALL, advice=False)
    assert done.report == Path("runs") / done.run.path.name / "report.html"
    assert done.run.settings.data.source == "reviews.csv"
    options = ["--epochs", 2, "--set", "model.embedding_size=8", "--no-advice", "--json"]
    said = call("audit", reviews, *options)
    assert said.json["run"] == str(done.run.path)
    brief, everything = (call("audit", reviews, *options[:-1], *more).out for more in ([], ["--all"]))
    assert len(brief.splitlines()) <= 25
    assert len(everything.splitlines()) > 60
    for output in (brief, everything):
        assert " ".join(done.answer.headline.split()) in " ".join(output.split())
        assert output.splitlines()[-1] == f"report {done.report}"
    assert audit(Path(reviews), settings=SMALL, advice=False).run == done.run


def test_a_corpus_alone_is_audited_and_bears_its_name(reviews: str) -> None:
    corpus = load_corpus(reviews)
    done = audit(corpus, settings=SMALL, advice=False)
    assert done.run == audit(reviews, settings=SMALL, advice=False).run
    assert str(done) == f"Audit({done.answer.headline} Report: {done.report})"


@pytest.mark.usefixtures("reviews")
@pytest.mark.parametrize("form", ["lists", "table"])
def test_lists_and_data_frames_are_audited(form: str) -> None:
    """Other λ are tried here: no other process could read them."""
    source: Any = (TEXTS, LABELS) if form == "lists" else pd.DataFrame({"text": TEXTS, "mark": LABELS})
    settings = SMALL.change({"data.label_column": None if form == "lists" else "mark", "training.epochs": 1})
    done = audit(source, "elsewhere", settings=settings, advice=True, workers=2)
    assert done.run.settings.data.source == form
    assert done.run.path.parent == Path("elsewhere")
    assert done.advice.tried
    assert len(done.advice.table) == 6
    assert not Path("runs").exists()


def test_the_store_of_the_environment_is_the_usual_one(reviews: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_STORE", "kept")
    assert audit(reviews, settings=SMALL, advice=False).run.path.parent == Path("kept")


def test_the_settings_may_come_first_or_by_name(reviews: str) -> None:
    named = SMALL.change({"data.source": reviews})
    first = audit(named, Store("runs"), corpus=load_corpus(reviews), advice=False)
    assert audit(settings=named, store=Store("runs"), advice=False).run == first.run


def test_what_is_given_twice_is_refused(reviews: str) -> None:
    with pytest.raises(
        ConfigError, match=r"gives the settings already\. Leave `settings` away, or the first argument\."
    ):
        audit(SMALL, settings=SMALL)
    with pytest.raises(ConfigError, match=r"gives the corpus already\. Leave `corpus` away, or the first argument\."):
        audit(reviews, corpus=load_corpus(reviews))


def test_labels_that_are_noise_leave_nothing_to_explain(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 200, 12)) for _ in range(600)]
    corpus = load_corpus((texts, rng.integers(0, 2, 600).tolist()))
    done = audit(SMALL, Store(tmp_path), corpus=corpus, advice=True)
    assert done.answer.headline.startswith("Not shown: the model is not shown to tell the classes apart")
    assert done.advice.tried
    assert done.advice.scale is None
    labels = corpus.test.labels
    common = int(corpus.train.labels.mode().values)
    assert done.summary()["metrics"]["majority_accuracy"] == float((labels == common).double().mean())
    assert "The model tells the classes apart better than guessing does." in done.report.read_text(encoding="utf-8")
    assert done.page.deciding(done.page.section("verdicts")) == []


def test_what_a_sweep_would_take_is_said() -> None:
    assert too_much(1.26e11, 6) == (
        "Other λ were not tried: tokens × epochs × numbers per token are 1.3e+11 for each of 6 trainings, and more "
        "than 5e+10 is done only when --advice asks for it."
    )


def test_a_class_that_is_hardly_there_is_named() -> None:
    texts = [f"{'good' if row % 2 else 'bad'} word{row} and more of it" for row in range(200)] + ["odd", "strange"]
    corpus = load_corpus((texts, ["yes" if row % 2 else "no" for row in range(200)] + ["rare", "rare"]))
    assert left_out_classes(corpus) == [
        "Too small to compare its words with those of other classes: rare. It has no group of words."
    ]


def test_the_claims_of_a_sweep_depend_on_model_and_classes() -> None:
    def model(**changes: str) -> ModelSettings:
        return ModelSettings.of(changes)

    assert scaling_claims(model(), 2) == ("C3", "C4", "C11", "C11b")
    assert scaling_claims(model(), 5) == ("C4", "C11")
    assert scaling_claims(model(encoder="affine"), 2) == scaling_claims(model(attention="additive"), 2) == ()
    assert scaling_claims(model(encoder="lstm"), 2) == ("C12",)
    assert scaling_claims(model(encoder="gru"), 2) == ()


def test_other_class_names_are_said() -> None:
    assert class_naming(["negative", "positive"]) == class_naming(["Negative", "Positive"]) == ""
    assert class_naming(["a", "b", "c"]) == ""
    assert class_naming(["positive", "negative"]) == "positive: towards negative, negative: towards positive"
    assert class_naming(["ham", "x" * 50]) == f"positive: towards {'x' * 39}…, negative: towards ham"


def test_the_terminal_shows_claim_decision_and_sentence_together(examined: Audit) -> None:
    assert interval_words(verdict("C1", "yes")) == "(0.500 [0.400, 0.600]; yes above 0.7; 9 tokens)"
    console = Console(width=100, record=True, file=io.StringIO())
    print_page(examined.page, console)
    said = " ".join(console.export_text().split())
    for found in examined.verdicts:
        shown = f"{found.claim} {found.statement} {found.decision} {found.words} {interval_words(found)}"
        assert shown.strip() in said
    for question in examined.answer.questions:
        assert f"{question.question} {question.decision} {question.words} {question.more}".rstrip() in said
    assert examined.answer.headline in said
    assert examined.erasure.words in said
    assert examined.advice.words in said


def test_report_terminal_and_json_say_the_same(examined: Audit) -> None:
    page = " ".join(re.sub(r"<[^>]+>", " ", examined.report.read_text(encoding="utf-8")).split())
    for row in examined.summary()["verdicts"]:
        assert f"{row['verdict']} {row['statement']} {row['claim']} {row['words']}" in html.unescape(page)
    for use in examined.answer.uses:
        assert f"{use.purpose} ? {use.decision} {use.words}" in html.unescape(page)
    assert examined.summary()["answer"] == json.loads(json.dumps(examined.answer.row()))


def test_audit_and_erase_print_the_same_numbers(examined: Audit) -> None:
    erased = erase_trace(examined.run.trace(), seed=examined.run.settings.training.seed)
    mine = {found.claim: found for found in examined.erasure.verdicts}
    assert {found.claim: found for _, found in erased.verdicts()} == mine
    both = erased.tables()["erasure"].merge(examined.erasure.resting, on="ranking", suffixes=("", "_audit"))
    assert len(both) == len(examined.erasure.resting)
    for column in ("instances", "median_fraction", "attained", "mean_ratio", "lead_taken"):
        pd.testing.assert_series_equal(both[column], both[f"{column}_audit"], check_names=False)
    shares = both.set_index("ranking")["attained"]
    for claim, name in (("S9", "attention"), ("S9b", "gradient"), ("S9c", "product"), ("S9d", "margin")):
        found = mine[claim].estimate
        assert found is not None
        assert found.value == pytest.approx(shares[name])
    lead = mine["S13"].estimate
    assert lead is not None
    assert lead.value == pytest.approx(both.set_index("ranking")["lead_taken"]["attention"])


def test_an_audit_shows_a_text_with_another_attention_and_attack_finds_the_same(examined: Audit) -> None:
    section, pair = examined.page.section("attack"), examined.page.opening[-1]
    assert pair.why == "And here another attention gives the same output"
    assert [strip.name for strip in pair.strips] == ["attention", "another", "would push"]
    assert pair.note.startswith("Chosen as the text of median JSD (")
    assert ". Attention is most on “" in pair.note
    assert [picture.name for picture in section.pictures] == ["other-attention", "shuffled-attention"]
    attacked = attack_trace(examined.run.trace(), seed=examined.run.settings.training.seed, unit="words")
    assert [found for _, found in attacked.verdicts()] == list(section.verdicts) == list(examined.attack.verdicts)
    for table in section.tables:
        pd.testing.assert_frame_equal(attacked.tables()[table.name], examined.page.tables()[table.name])
    story, share = (
        examined.answer.question("story"),
        examined.attack.others.set_index("kind").loc["without top", "exist"],
    )
    found = next(one for one in section.verdicts if one.claim == "J3b")
    assert found.estimate is not None
    assert (story.decision, story.rests_on, found.estimate.value) == (found.decision, ("J3b", "J3", "J4"), share)


@covers(figure=("audit one-attention",))
def test_an_audit_says_what_one_attention_for_the_whole_corpus_could_do(examined: Audit, small_corpus: Corpus) -> None:
    section, tokens = examined.page.section("one-attention"), examined.run.table("tokens")
    again = one_attention(examined.run.model(), small_corpus, tokens, seed=examined.run.settings.training.seed)
    pd.testing.assert_frame_equal(again.tables["orders"], examined.page.tables()["orders"])
    (found,) = section.verdicts
    pairs = again.tables["orders"]
    assert found.estimate is not None
    assert (found.claim, found.estimate.value, found.estimate.count) == ("J4", pairs["reversed"].mean(), len(pairs))
    assert f"reverses the order of {pairs['reversed'].sum()} of {len(pairs)} pairs" in section.lead
    assert [picture.name for picture in section.pictures] == ["one-attention"]
    drawn = PICTURE.draw(again.tables)
    assert [axis.get_title(loc="left") for axis in drawn.axes] == ["The model's own", "Another, the same outputs"]
    points = [sum(len(np.asarray(part.get_offsets())) for part in axis.collections) for axis in drawn.axes]
    assert points == [len(again.tables["one-attention"])] * 2 == [2 * len(pairs)] * 2


def test_of_a_model_that_reads_neighbours_it_is_not_asked(small_corpus: Corpus) -> None:
    model = fit(small_corpus, encoder="lstm", embedding_size=4, hidden_size=4, epochs=1, batch_size=200)
    assert not has_word_scores(model)
    section = one_attention(model, small_corpus, token_scores(model, small_corpus)).section()
    assert (section.lead, section.verdicts, section.tables) == (NO_SCORES, (), ())


def test_of_many_texts_some_are_drawn_by_the_seed(small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    train = small_corpus.train
    assert drawn_texts(train, 2, 0) is train
    monkeypatch.setattr(one_attention_module, "MOST_NUMBERS", 2 * 12 * 30 + 5)  # thirty texts of twelve words
    some, other = drawn_texts(train, 2, 0), drawn_texts(train, 2, 1)
    assert (len(some), set(some.texts) <= set(train.texts)) == (30, True)
    assert some.texts == drawn_texts(train, 2, 0).texts != other.texts


def test_the_table_of_advice_is_in_words() -> None:
    table = pd.DataFrame(
        {
            "scale": [1.0, 10.0],
            "penalty": [0.0, 0.001],
            "dev_accuracy": [0.5, 0.755],
            "separation": [float("nan"), 0.9],
            "separation_low": [float("nan"), 0.85],
            "separation_high": [float("nan"), 0.95],
            "parting": [0.25, 0.1],
            "chosen": [False, True],
        }
    )
    assert in_words(table).to_numpy().tolist() == [
        ["1", "0", "50.0%", "–", "0.25", ""],
        ["10", "0.001", "75.5%", "0.90 [0.85, 0.95]", "0.10", "recommended"],
    ]


def test_a_hierarchical_model_is_examined_by_its_sentences(tmp_path: Path) -> None:
    texts = [f"{'superb' if row % 2 else 'awful'} place. The food was there {row}. We came back." for row in range(60)]
    corpus = load_corpus((texts, ["good" if row % 2 else "bad" for row in range(60)]))
    settings = SMALL.change({"model.structure": "hierarchical", "model.attention": "additive", "model.hidden_size": 8})
    done = audit(settings, Store(tmp_path), corpus=corpus, advice=True)
    assert claims_of(done)[:2] == ["C1", "C2"]
    assert not {"C8", "C4", "C9"} & set(claims_of(done))
    other = done.page.section("attack")
    assert "and take 2 sentences of a text at most" in other.lead
    strips = {
        strip.name: sum(piece.shade is not None for piece in strip.pieces) for strip in done.page.opening[-1].strips
    }
    assert strips == {"attention": 3, "within sentences": 13, "another": 3, "would push": 3}
    assert "sentences" in done.erasure.words
    assert set(done.erasure.tables["flips"]["units"]) == {3}
    assert done.advice.tried
    page = done.report.read_text(encoding="utf-8")
    assert "positive: towards good, negative: towards bad" in page
    assert "within sentences" in page


def test_a_class_called_neutral_is_measured_like_any_other() -> None:
    """Own score less the mean of the others: 3, 6 and 9, so 6 on average."""
    tokens = pd.DataFrame(
        {
            "group": ["negative", group_of_class("neutral"), "positive"],
            "polarity_negative": [3.0, 0.0, 0.0],
            "polarity_neutral": [0.0, 6.0, 0.0],
            "polarity_positive": [0.0, 0.0, 9.0],
            "attention": [0.0, 0.0, 0.0],
        }
    )
    found = group_measures(tokens)["magnitude"]
    assert found is not None
    assert found.value == 6.0
