"""The audit of models that were not trained here: functions and modules whose truth is known, transformers, runs."""

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.adapters.asking import SubjectError
from heedful.adapters.modules import Parts
from heedful.errors import DataError
from heedful.explanations import Explanation
from heedful.models.classifier import Classifier
from heedful.studies.foreign import ForeignAudit, audit_foreign
from heedful.studies.models import cut_said, distinct_rows, drawn_rows, drawn_texts, match_classes, subject_of
from heedful.studies.removed import remove_units
from heedful.subjects import DELETE, Subject
from heedful.text.corpus import Corpus
from tests.adapters import hostile
from tests.tiny_transformers import tiny

pytestmark = [pytest.mark.xdist_group("foreign"), pytest.mark.usefixtures("one_thread")]

CHEAP: dict[str, Any] = {"texts": 24, "metrics": ["aopc", "correlation", "deletion", "entropy"]}


def planted_effect(corpus: Corpus, token: str) -> float:
    assert corpus.planted is not None
    return {"positive": 2.0, "negative": -2.0}.get(corpus.planted.get(token, ""), 0.0)


def finder(corpus: Corpus) -> Subject:
    """A function that adds up the planted words: it has no attention, and leaving out one at a time is the truth."""

    def finds(texts: list[str]) -> list[float]:
        odds = [sum(planted_effect(corpus, word) for word in text.lower().split()) for text in texts]
        return [1 / (1 + math.exp(-number)) for number in odds]

    return heedful.subject(finds, name="finder", class_names=corpus.class_names)


class Pooling(nn.Module):
    """A planted classifier: every token has an attention score and a polarity; nothing else happens."""

    def __init__(self, scores: Tensor, polarity: Tensor) -> None:
        super().__init__()
        self.scores, self.vectors = nn.Embedding(len(scores), 1), nn.Embedding(len(polarity), 1)
        self.readout, self.weights = nn.Linear(1, 2), nn.Softmax(dim=1)
        with torch.no_grad():
            self.scores.weight[:] = scores[:, None]
            self.vectors.weight[:] = polarity[:, None]
            self.readout.weight[:] = torch.tensor([[-1.0], [1.0]])
            self.readout.bias[:] = torch.tensor([0.05, 0.0])

    def forward(self, numbers: Tensor) -> Tensor:
        weights = self.weights(self.scores(numbers).squeeze(2))
        return torch.as_tensor(self.readout((weights[..., None] * self.vectors(numbers)).sum(1)))


def pooling(corpus: Corpus, strength: float) -> Subject:
    """A planted module whose attention goes to planted words, or with a negative strength away from them."""
    chance = torch.Generator().manual_seed(0)
    effects = torch.tensor([planted_effect(corpus, token) for token in corpus.vocabulary.tokens])
    noise = 0.3 * torch.rand(2, len(effects), generator=chance)
    module = Pooling(strength * effects.abs() + noise[0], effects + 0.2 * (noise[1] - 0.15))

    def encode(text: str) -> list[tuple[int, tuple[int, int]]]:
        found = corpus.tokenizer.encode([text], corpus.vocabulary)
        return [(number, (a, b)) for number, (a, b) in zip(found.numbers.tolist(), found.spans.tolist(), strict=True)]

    parts = Parts(attention="weights", values="vectors", readout="readout")
    return heedful.subject(module, encode, class_names=corpus.class_names, parts=parts, name="planted module")


@pytest.fixture(scope="module")
def of_function(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> ForeignAudit:
    folder = tmp_path_factory.mktemp("function")
    return audit_foreign(small_corpus, finder(small_corpus), lambda _: folder, **CHEAP)


def decision(done: ForeignAudit, claim: str) -> str:
    return next(verdict.decision for verdict in done.verdicts if verdict.claim == claim)


def test_audits_of_other_models_of_the_same_name_lie_beside_each_other(small_corpus: Corpus, tmp_path: Path) -> None:
    def place(least: float) -> Path:
        asked = heedful.subject(
            lambda texts: [least if len(text) % 2 else 0.8 for text in texts],
            class_names=list(small_corpus.class_names),
            name="mine",
        )
        options: dict[str, Any] = {"texts": 4, "by": ["leave_one_out", "random"], "metrics": ["aopc"]}
        return heedful.audit(small_corpus, tmp_path, model=asked, **options).report

    first, again, other = place(0.2), place(0.2), place(0.3)
    assert first == again
    assert first != other
    assert first.is_file()
    assert other.is_file()


def test_of_a_function_it_is_said_what_decides_and_that_there_is_no_attention(of_function: ForeignAudit) -> None:
    assert of_function.answer is None
    assert of_function.page.headline.startswith("There is no attention to judge")
    assert (decision(of_function, "M1"), decision(of_function, "D1")) == ("yes", "yes")
    assert of_function.compared.choice is not None
    assert of_function.compared.choice.areas["explanation"].iloc[-1] == "random"
    why = of_function.page.section("not-asked").tables[0].cells.set_index("section")["why"]
    assert "trace" in why["Whether attention explains (C8c, D2, S4, S6b, D3, D4)"]


def test_the_words_that_give_most_are_the_planted_ones(of_function: ForeignAudit, small_corpus: Corpus) -> None:
    for name, sign in (("positive", 1), ("negative", -1)):
        tables = of_function.page.section("words").tables
        table = next(table for table in tables if table.title.endswith(name))
        assert all(sign * planted_effect(small_corpus, word) > 0 for word in table.cells["word"].tolist())


def test_the_smallest_sets_are_those_that_follow_by_hand(of_function: ForeignAudit) -> None:
    """Every planted word counts the same, so that taking the difference of both kinds turns the decision."""
    assert of_function.removed is not None
    reading, sets = of_function.removed.tables["smallest"], of_function.removed.sets
    assert bool(sets.proven[sets.found].any())
    flips = of_function.removed.tables["flips"]
    own = flips[flips["ranking"] == "leave_one_out"].set_index("instance")["erased"]
    found = reading.set_index("instance")["erased"]
    assert (own.dropna() == found[own.dropna().index]).all()


def test_the_report_is_one_file_that_needs_nothing_else(of_function: ForeignAudit) -> None:
    text = of_function.report.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", text)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    shown = html.unescape(text)
    for section in of_function.page.sections:
        assert section.title in shown
    assert "smallest set" in shown
    saved = {path.stem for path in (of_function.report.parent / "tables").glob("*.parquet")}
    assert {"words", "faithfulness", "faithfulness-texts", "flips", "smallest", "verdicts"} <= saved
    assert (of_function.report.parent / "figures" / "explanations-by-metrics.svg").is_file()


def test_the_summary_is_plain_data(of_function: ForeignAudit) -> None:
    found = json.loads(json.dumps(of_function.summary(), allow_nan=False))
    assert found["answer"] is None
    assert {row["claim"] for row in found["verdicts"]} >= {"M1", "D1"}
    rows = pd.DataFrame(found["tables"]["faithfulness"])
    assert set(rows["metric"]) == set(CHEAP["metrics"])
    assert len(found["sections"][4]["texts"]) >= 2


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("strength", "corpus_says", "decision_says"), [(2.0, "yes", "yes"), (-0.5, "no", "no")])
def test_of_a_module_with_parts_the_truth_is_told_exactly(
    small_corpus: Corpus, tmp_path: Path, strength: float, corpus_says: str, decision_says: str
) -> None:
    done = audit_foreign(small_corpus, pooling(small_corpus, strength), lambda _: tmp_path, **CHEAP)
    assert done.answer is not None
    assert done.examined is not None
    assert done.removed is None
    assert done.answer.question("corpus").decision == corpus_says
    assert done.answer.question("decision").decision == decision_says
    assert {"S13", "J3b", "D1", "D2", "C8c"} <= {verdict.claim for verdict in done.verdicts}
    assert set(done.compared.measured.table["metric"]) == set(CHEAP["metrics"])
    assert done.page.section("erasure").title == "Erase attention"


def explained_by(reading: Any, scores: Tensor) -> Explanation:
    decided = reading.decisions
    return Explanation.on(reading.units, scores, decided, reading.class_names, method="attention", signed=False)


@pytest.mark.parametrize(("turned", "says"), [(False, "yes"), (True, "no")])
def test_attention_that_is_true_is_told_from_attention_that_is_not(
    small_corpus: Corpus, turned: bool, says: str
) -> None:
    reading = finder(small_corpus).read(list(small_corpus.test.texts[:60]))
    sign = 2.0 * reading.decisions.double()[reading.units.segments] - 1
    true = sign * torch.tensor([planted_effect(small_corpus, name) for name in reading.units.shown]).double()
    attention = explained_by(reading, (true.max() - true if turned else true).clamp(min=0))
    found = remove_units(reading, [attention], how=DELETE)
    assert {verdict.claim: verdict.decision for verdict in found.verdicts}["D3"] == says
    assert {verdict.claim: verdict.decision for verdict in found.verdicts}["S6b"] == says
    assert set(found.decisions["found"]) <= {says, "not shown"}


TINY = [f"{a} {b} film" for a in ("good", "dull", "a", "well") for b in ("good", "dull", "the", "made")]


@pytest.fixture(scope="module")
def tiny_corpus() -> Corpus:
    texts = [f"{text} {extra}" for text in TINY for extra in ("", "the", "well", "made a")]
    return heedful.load_corpus((texts, [("no", "yes", "perhaps")[number % 3] for number in range(len(texts))]))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_transformer_is_audited_with_every_section(family: str, tiny_corpus: Corpus, tmp_path: Path) -> None:
    model, tokenizer = tiny(family)
    names = ["attention", "attention_layers", "leave_one_out", "random"]
    subject = heedful.subject(model, tokenizer, name=family)
    done = audit_foreign(tiny_corpus, subject, lambda _: tmp_path, texts=6, by=names, metrics=["aopc", "gini"])
    assert done.answer is not None
    why = done.page.section("not-asked").tables[0].cells.set_index("section")["why"]
    assert why.iloc[2].startswith("Not asked: its logits are not known to be an affine function of its attention")
    assert {"M1", "D1", "C8c", "D2", "S4", "S6b", "D3", "D4"} == {one.claim for one in done.verdicts}
    assert done.page.section("explanations").lead.startswith("Nothing is chosen: the model is not shown to tell the")
    assert [one.method for one in done.compared.explanations] == names
    assert next(strip.name for strip in done.page.section("examples").texts[0].strips) == "attention"
    assert done.page.numbers["test_accuracy"] == pytest.approx(float(np.mean(_right(done, tiny_corpus))))


def _right(done: ForeignAudit, corpus: Corpus) -> list[bool]:
    """Label by label, by the subject itself."""
    rows = distinct_rows(corpus.test.texts)
    said = done.model.read([corpus.test.texts[row] for row in rows]).decisions.tolist()
    labels = [corpus.class_names[int(corpus.test.labels[row])] for row in rows]
    return [done.model.class_names[one] == label for one, label in zip(said, labels, strict=True)]


@pytest.mark.usefixtures("undrawn")
def test_heedfuls_own_model_has_the_exact_sections(
    small_corpus: Corpus, small_model: Classifier, tmp_path: Path
) -> None:
    done = heedful.audit(small_corpus, model=small_model, out=tmp_path, texts=10, metrics="aopc")
    assert {"C1", "C2b", "C8c", "D2", "S6b", "S13", "J3b"} <= {verdict.claim for verdict in done.verdicts}
    assert done.examined is not None
    assert done.page.section("attack").title
    assert done.report == tmp_path / "report.html"
    assert repr(done).startswith("ForeignAudit(")


def test_too_long_texts_are_refused_and_cut_only_when_asked(tmp_path: Path) -> None:
    model, tokenizer = tiny("bert")
    rows = [(text, ("no", "yes", "perhaps")[number % 3], "train") for number, text in enumerate(TINY)]
    rows += [("a film", "no", "dev"), ("good " * 80, "yes", "test")]
    corpus = heedful.load_corpus(pd.DataFrame(rows, columns=["text", "label", "split"]))
    with pytest.raises(SubjectError, match="--truncate"):
        audit_foreign(corpus, heedful.subject(model, tokenizer), lambda _: tmp_path / "none", texts=9)
    assert not (tmp_path / "none").exists()
    cut = subject_of(heedful.subject(model, tokenizer), truncate=True)
    units = cut.read(["good " * 80, "a film"]).units
    assert int(units.lengths[0]) < 80
    assert cut_said(units) == ["Of 1 text only the beginning was read: the model cannot read more."]
    assert cut_said(heedful.subject(model, tokenizer).read(["a film  "]).units) == []


@pytest.mark.parametrize("number", range(12))
def test_a_model_that_answers_nonsense_is_a_sentence_and_leaves_nothing(
    number: int, small_corpus: Corpus, tmp_path: Path
) -> None:
    generator = np.random.default_rng(number)
    predictor = hostile.EARLY[number % len(hostile.EARLY)](generator)

    def late(texts: list[str]) -> Any:
        return predictor(texts) if len(texts) > 3 else [[0.25, 0.75]] * len(texts)

    subject = heedful.subject(late, class_names=small_corpus.class_names)
    with pytest.raises(SubjectError) as told:
        audit_foreign(small_corpus, subject, lambda _: tmp_path / "none", **CHEAP)
    assert str(told.value).endswith(".")
    assert not (tmp_path / "none").exists()


def test_classes_are_matched_by_name_else_by_order_and_nothing_is_guessed() -> None:
    assert match_classes(["bad", "good"], ["GOOD", "Bad"], "it").numbers.tolist() == [1, 0]
    by_order = match_classes(["bad", "good"], ["LABEL_0", "LABEL_1"], "it")
    assert by_order.numbers.tolist() == [0, 1]
    assert by_order.notices[0].startswith("No label is called like a class of it, so they are matched by order: bad")
    with pytest.raises(SubjectError, match=r"it has 3 classes .* the data have 2 labels"):
        match_classes(["bad", "good"], ["bad", "good", "perhaps"], "it")
    with pytest.raises(SubjectError, match=r"it has 2 classes .* the data have 3 labels"):
        match_classes(["bad", "good", "odd"], ["bad", "good"], "it")
    with pytest.raises(SubjectError, match="it does not know the labels odd"):
        match_classes(["bad", "odd"], ["bad", "good"], "it")


def test_texts_are_drawn_once_each_and_what_is_left_out_is_said(small_corpus: Corpus) -> None:
    assert distinct_rows(["a", "b", "a", "c", "b"]) == [0, 1, 3]
    assert drawn_rows(5, 9, 0).tolist() == [0, 1, 2, 3, 4]
    texts, said = drawn_texts(small_corpus, 7, 1)
    again, _ = drawn_texts(small_corpus, 7, 1)
    assert texts.texts == again.texts
    assert len(set(texts.texts)) == 7
    assert said[-1].endswith("7 were read, drawn by seed 1.")
    with pytest.raises(DataError, match="One test text or more"):
        drawn_texts(small_corpus, 0, 0)
