"""A model asked for classes: the trace's numbers, in the order of the texts, however they come."""

import numpy as np
import pytest

from heedful.errors import InputError
from heedful.models import classifier
from heedful.models.classifier import Classifier
from heedful.text.corpus import Corpus
from heedful.text.synthetic import binary, multi
from heedful.tracing import trace
from heedful.training.loop import fit

KINDS = [("flat", "none"), ("flat", "lstm"), ("hierarchical", "gru")]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return binary(name="small", seed=0, size=300)


def quick(corpus: Corpus, structure: str = "flat", encoder: str = "none") -> Classifier:
    return fit(corpus, structure=structure, encoder=encoder, embedding_size=12, hidden_size=10, epochs=2)


@pytest.mark.parametrize(("structure", "encoder"), KINDS)
def test_predictions_are_those_of_the_trace(
    corpus: Corpus, structure: str, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifier, "UNITS_AT_ONCE", 100)
    model, texts = quick(corpus, structure, encoder), corpus.test.texts[:40]
    found = trace(model, texts)
    chances = model.predict_proba(texts)
    assert chances.dtype == np.float64
    assert np.array_equal(chances, found.probabilities.numpy())
    assert model.predict(texts) == [corpus.class_names[k] for k in found.predictions.tolist()]


def test_a_split_is_predicted_as_its_texts_are(corpus: Corpus) -> None:
    model = quick(corpus)
    assert np.array_equal(model.predict_proba(corpus.test), model.predict_proba(corpus.test.texts))


def test_the_order_of_texts_is_kept(corpus: Corpus) -> None:
    model, texts = quick(corpus), list(corpus.test.texts)
    assert model.predict(texts[::-1]) == model.predict(texts)[::-1]
    assert np.allclose(model.predict_proba(texts[::-1]), model.predict_proba(texts)[::-1], rtol=0, atol=1e-12)


def test_one_string_is_a_list_of_one(corpus: Corpus) -> None:
    model, text = quick(corpus), corpus.test.texts[0]
    assert model.predict(text) == model.predict([text])
    assert model.predict_proba(text).shape == (1, 2)


def test_columns_are_in_the_order_of_the_classes() -> None:
    corpus = multi(name="three", seed=0, size=300)
    model = quick(corpus)
    chances = model.predict_proba(corpus.test)
    assert chances.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert [model.interface.class_names[k] for k in chances.argmax(1)] == model.predict(corpus.test)


def test_asking_changes_nothing(corpus: Corpus) -> None:
    model = quick(corpus).train()
    before = model.embedding.clone()
    model.predict("silk")
    assert model.training
    assert model.embedding.dtype == before.dtype
    assert model.embedding.equal(before)


def test_a_text_without_a_word_is_refused(corpus: Corpus) -> None:
    with pytest.raises(InputError, match="A text needs at least one word; this one has none"):
        quick(corpus).predict("")
