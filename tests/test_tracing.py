"""From model and text to trace: batched equals one by one, logits equal the model's, equal tokens tie exactly."""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

import heedful.models.classifier
from heedful.analysis.tokens import GroupRule
from heedful.errors import InputError
from heedful.models.classifier import Classifier
from heedful.probes.scores import token_scores
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.synthetic import binary
from heedful.tracing import trace, trace_texts, trace_vocabulary
from heedful.training.loop import fit
from tests.models.test_classifier import TRAINED

pytestmark = pytest.mark.usefixtures("one_thread")

EVERY = pytest.mark.parametrize("encoder", TRAINED)
BOTH = pytest.mark.parametrize("structure", ["flat", "hierarchical"])


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return binary(name="small", seed=0, size=300)


@pytest.fixture(scope="module")
def stories() -> Corpus:
    """Texts of one to four sentences of the made corpus."""
    made = binary(name="small", seed=0, size=300).train
    texts = [" ".join(f"{text.capitalize()}." for text in made.texts[row : row + 1 + row % 4]) for row in range(200)]
    return load_corpus((texts, [str(label) for label in made.labels[:200].tolist()]))


def quick(corpus: Corpus, encoder: str, structure: str = "flat") -> Classifier:
    return fit(corpus, encoder=encoder, structure=structure, embedding_size=12, hidden_size=10, epochs=2)


@BOTH
@EVERY
def test_a_batched_trace_equals_the_trace_of_each_document_alone(
    stories: Corpus, encoder: str, structure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = quick(stories, encoder, structure)
    monkeypatch.setattr(heedful.models.classifier, "UNITS_AT_ONCE", 100)
    whole = trace(model, stories.train)
    for number in range(0, len(stories.train), 17):
        alone, _ = trace_texts(model, [stories.train.texts[number]])
        place = whole.instance(number)
        torch.testing.assert_close(alone.attention_scores, whole.attention_scores[place], atol=1e-9, rtol=0)
        torch.testing.assert_close(alone.polarity_scores, whole.polarity_scores[place], atol=1e-9, rtol=0)
        torch.testing.assert_close(alone.logits[0], whole.logits[number], atol=1e-9, rtol=0)


@BOTH
@EVERY
def test_the_trace_gives_the_models_own_logits_in_order_from_float64_copies(
    stories: Corpus, encoder: str, structure: str
) -> None:
    model, split = quick(stories, encoder, structure), stories.train
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = trace(model, split)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert found.logits.dtype == torch.float64
    batch = split.batch(torch.arange(len(split)), sentences=structure == "hierarchical")
    coarse = model(batch).logits.detach().double()
    exact = model.double()(batch)
    torch.testing.assert_close(found.logits, exact.logits.detach(), atol=1e-10, rtol=0)
    torch.testing.assert_close(found.attention_weights, exact.units.attention_weights.detach(), atol=1e-12, rtol=0)
    torch.testing.assert_close(found.logits, coarse, atol=1e-4, rtol=0)
    assert not torch.equal(found.logits, coarse)
    assert found.labels is not None
    assert found.labels.tolist() == split.labels.tolist()
    assert found.units is not None
    for number in (0, 5, 100):
        units = list(found.units[found.instance(number)])
        whole = [sentence.strip() for sentence in re.findall(r"[^.]+\.", split.texts[number])]
        assert units == (whole if structure == "hierarchical" else split.surface(number))


def test_equal_tokens_tie_exactly_without_context(corpus: Corpus) -> None:
    found = trace(quick(corpus, "affine"), corpus.test)
    numbers = corpus.test.tokens.numbers
    repeated = numbers.bincount().argmax()
    assert len(found.attention_scores[numbers == repeated].unique()) == 1
    assert len(found.polarity_scores[numbers == repeated].unique(dim=0)) == 1


def test_global_scores_are_those_of_the_formulas(corpus: Corpus) -> None:
    model = quick(corpus, "none")
    table = token_scores(model, corpus)
    embedding = model.embedding.detach().double()
    attention = embedding @ model.attention.context_vector.detach().double() / 10
    polarity = embedding @ model.readout_weight.detach().double()[0]
    assert table["attention"].tolist() == pytest.approx(attention.tolist(), abs=1e-12)
    assert table["polarity"].tolist() == pytest.approx(polarity.tolist(), abs=1e-12)


def test_local_scores_are_means_over_occurrences(corpus: Corpus) -> None:
    model = quick(corpus, "lstm")
    table = token_scores(model, corpus, "local")
    found = trace(model, corpus.train)
    for number in (1, 17, 400):
        here = corpus.train.tokens.numbers == number
        assert table["attention"][number] == pytest.approx(float(found.attention_scores[here].mean()), abs=1e-12)
        assert table["polarity"][number] == pytest.approx(float(found.polarity_scores[here, 1].mean()), abs=1e-12)
    assert table.loc[0, ["attention", "polarity"]].isna().all()


def test_local_and_global_scores_agree_without_context(corpus: Corpus) -> None:
    model = quick(corpus, "none")
    both = [token_scores(model, corpus, scope)["polarity"][1:].tolist() for scope in ("global", "local")]
    assert both[0] == pytest.approx(both[1], abs=1e-10)


def test_the_vocabulary_is_traced_as_documents_of_one_unit(corpus: Corpus) -> None:
    found = trace_vocabulary(quick(corpus, "lstm"))
    assert len(found) == len(corpus.vocabulary)
    assert found.attention_weights.unique().tolist() == [1.0]


def test_a_text_without_a_word_is_refused(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="A text needs at least one word"):
        trace_texts(quick(corpus, "none"), ["   "])


def test_strings_are_traced_as_a_split_is_but_have_no_labels(corpus: Corpus) -> None:
    model = quick(corpus, "lstm")
    whole, texts = trace(model, corpus.test), trace(model, corpus.test.texts)
    assert torch.equal(texts.attention_scores, whole.attention_scores)
    assert torch.equal(texts.logits, whole.logits)
    assert texts.units == whole.units
    assert texts.labels is None


def test_one_string_is_one_instance(corpus: Corpus) -> None:
    model, text = quick(corpus, "none"), corpus.test.texts[3]
    found = trace(model, text)
    assert len(found) == 1
    assert found.units == text.split()
    assert torch.equal(found.logits, trace(model, [text]).logits)


def test_an_empty_text_is_named(corpus: Corpus) -> None:
    with pytest.raises(InputError) as caught:
        trace(quick(corpus, "none"), ["window", "letter", "\n"])
    assert str(caught.value) == (
        "A text needs at least one word; number 2 (the first is 0), '\\n', has none. Leave it out."
    )


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, np.array, iter])
def test_texts_come_in_any_list(corpus: Corpus, kind: Callable[[list[str]], object]) -> None:
    split = quick(corpus, "none").interface.read(kind(["silk", "tuna"]))
    assert list(split.texts) == ["silk", "tuna"]


def test_half_a_character_becomes_a_replacement(corpus: Corpus) -> None:
    assert quick(corpus, "none").interface.read("silk \ud83d").texts == ["silk \ufffd"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (5, "got int. Give strings; of a table, its column of texts."),
        (None, "or a split of a corpus (such as corpus.test); got NoneType."),
        (b"silk", "Expected a list of texts, one text, or a split of a corpus (such as corpus.test); got bytes."),
        ({"text": "silk"}, "got dict."),
        (pd.DataFrame({"text": ["silk"]}), "got DataFrame. Give strings; of a table, its column of texts."),
        (["silk", None], "Every text must be a string; number 1 (the first is 0), None, is none. Leave it out."),
        ([], "Expected at least one text, got an empty list."),
    ],
)
def test_what_is_no_text_is_refused_with_a_sentence(corpus: Corpus, given: object, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        quick(corpus, "none").interface.read(given)
    assert sentence in str(caught.value)


def test_a_corpus_is_refused_with_the_hint_to_take_a_split(corpus: Corpus) -> None:
    with pytest.raises(InputError, match=r"a split of a corpus \(such as corpus\.test\); got Corpus"):
        quick(corpus, "none").interface.read(corpus)


def test_neutral_tokens_can_be_asked_for_occurrences(corpus: Corpus) -> None:
    model = quick(corpus, "none")
    few, many = (token_scores(model, corpus, min_count=count) for count in (1, 4))
    counts = few["count_negative"] + few["count_positive"]
    assert few["group"].equals(token_scores(model, corpus)["group"])
    assert ((few["group"] == "neutral") & (counts < 4)).any()
    assert not ((many["group"] == "neutral") & (counts < 4)).any()
    kept = (few["group"] != "neutral") | (counts >= 4)
    assert few["group"][kept].equals(many["group"][kept])
    with pytest.raises(InputError, match="1 or more, not 0"):
        token_scores(model, corpus, min_count=0)


def test_a_minimum_count_joins_the_rule_that_is_given(corpus: Corpus) -> None:
    model, rule = quick(corpus, "none"), GroupRule(neutral_association=0.3, neutral_difference=50)
    given, joined = token_scores(model, corpus, rule=rule), token_scores(model, corpus, rule=rule, min_count=4)
    counts = given["count_negative"] + given["count_positive"]
    assert joined["group"].equals(given["group"].mask((given["group"] == "neutral") & (counts < 4), "none"))


@EVERY
def test_a_text_of_100_000_words_and_one_of_one_word_are_traced(corpus: Corpus, encoder: str) -> None:
    model = quick(corpus, encoder)
    found, split = trace_texts(model, ["window " * 100_000, "😀"])
    assert found.lengths.tolist() == [100_000, 1]
    assert float(found.attention_weights[:100_000].sum()) == pytest.approx(1, abs=1e-9)
    assert split.spans(1).tolist() == [[0, 1]]


def test_a_scale_of_a_thousandth_gives_a_trace_without_nan() -> None:
    corpus = load_corpus((["good film", "bad film", "fine plot", "poor plot"] * 8, ["p", "n"] * 16))
    found = trace(fit(corpus, score_scale=0.001, epochs=2), corpus.test)
    assert found.logits.isfinite().all()
    assert found.attention_weights.isfinite().all()
