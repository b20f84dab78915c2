"""HAN and FLAN beside a literal forward pass, their traces, and what they learn."""

from typing import Any

import pytest
import torch

from heedful.config import ModelSettings
from heedful.errors import InputError
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import Classifier, HierarchicalClassifier, Interface, make_classifier
from heedful.models.layers import AdditiveAttention
from heedful.probes.scores import token_scores
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.ragged import Batch, Sentences, offsets_of
from heedful.tracing import trace, trace_texts, word_weights
from heedful.training.loop import fit
from tests.models.test_classifier import LITERAL_ENCODERS, TRAINED, literal_pooling, make_model
from tests.oracles import classifiers

pytestmark = pytest.mark.xdist_group("hierarchical")  # one worker trains the model that these tests share

WORDS: dict[str, Any] = {
    "structure": "hierarchical",
    "attention": "additive",
    "attention_bias": True,
    "readout_bias": True,
}


def han(encoder: str, classes: int = 3) -> HierarchicalClassifier:
    plain = make_model(classes)
    settings = ModelSettings.of(
        {"embedding_size": 4, "hidden_size": 6, "encoder": encoder, "score_scale": 1.0, **WORDS}
    )
    generator = torch.Generator().manual_seed(3)
    model = make_classifier(plain.interface, settings, generator).double()
    assert isinstance(model, HierarchicalClassifier)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-0.5, 0.5, generator=generator)
    return model


def documents_of_sentences(documents: list[list[list[int]]]) -> Batch:
    sentences = [sentence for document in documents for sentence in document]
    tokens = torch.tensor([token for sentence in sentences for token in sentence])
    lengths = torch.tensor([sum(map(len, document)) for document in documents])
    return Batch(
        tokens=tokens,
        offsets=offsets_of(lengths),
        labels=torch.zeros(len(documents), dtype=torch.int64),
        instances=torch.arange(len(documents)),
        sentences=Sentences(
            bounds=offsets_of(torch.tensor([len(sentence) for sentence in sentences])),
            offsets=offsets_of(torch.tensor([len(document) for document in documents])),
        ),
    )


@pytest.mark.parametrize("encoder", TRAINED)
@pytest.mark.parametrize("classes", [2, 3])
def test_logits_are_those_of_two_levels_of_attention(encoder: str, classes: int) -> None:
    model = han(encoder, classes)
    documents = [[[1, 2, 2], [5]], [[3, 1, 4, 1]], [[9], [9, 2], [6, 5, 3]]]
    found = model(documents_of_sentences(documents)).logits
    read = LITERAL_ENCODERS[encoder]
    for row, document in enumerate(documents):
        words = [read(model.word_encoder, model.embedding[torch.tensor(sentence)]) for sentence in document]
        sentences = torch.stack([literal_pooling(model.word_attention, "additive", hidden) for hidden in words])
        vector = literal_pooling(model.attention, "additive", read(model.encoder, sentences))
        outputs = model.readout_weight @ vector + model.state_dict()["readout_bias"]
        expected = torch.cat([torch.zeros(1), outputs]) if classes == 2 else outputs
        torch.testing.assert_close(found[row], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("encoder", ["none", "gru", "conv"])
def test_word_weights_are_the_softmax_within_each_sentence(encoder: str) -> None:
    model = han(encoder)
    documents = [[[1, 2, 2], [5]], [[3, 1, 4, 1]]]
    found = model.word_units(documents_of_sentences(documents)).attention_weights
    parameters, attention = dict(model.named_parameters()), model.word_attention
    assert isinstance(attention, AdditiveAttention)
    assert attention.bias is not None
    expected = []
    for sentence in (sentence for document in documents for sentence in document):
        words = [model.embedding[token] for token in sentence]
        hidden = classifiers.encode(words, parameters, "word_encoder", encoder)
        scores = [torch.tanh(attention.projection @ h + attention.bias) @ attention.context_vector for h in hidden]
        expected.append(torch.softmax(torch.stack(scores), 0))
    torch.testing.assert_close(found, torch.cat(expected), atol=1e-12, rtol=0)


def test_word_masks_of_a_batch_are_drawn_from_the_generator() -> None:
    model = han("conv")
    batch = documents_of_sentences([[[1, 2], [3]], [[4, 5, 6]]])
    first, second, third = (model(batch, torch.Generator().manual_seed(seed)).logits for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@pytest.fixture(scope="module")
def reviews() -> Corpus:
    """The second of two sentences decides."""
    days = ("monday", "tuesday", "friday", "sunday")
    texts = [
        f"We came on {day} at {hour}. The food was {word}."
        for day in days
        for hour in range(24)
        for word in ("fine", "poor")
    ]
    return load_corpus((texts, ["good" if "fine" in text else "bad" for text in texts]))


@pytest.fixture(scope="module")
def model(reviews: Corpus) -> Classifier:
    return fit(
        reviews, **WORDS, encoder="gru", score_scale=1.0, embedding_size=10, hidden_size=10, context_deviation=0.3,
        dropout=0.2, sentence_dropout=0.1, logit_dropout=0.2, optimizer="adam", learning_rate=0.01,
        learning_rate_decay=0.0, epochs=12, batch_size=10, clip=10.0, plateau=2,
    )  # fmt: skip


def test_the_words_of_one_document_have_their_weights_and_places(reviews: Corpus, model: Classifier) -> None:
    words = word_weights(model, reviews.test, 1)
    text = reviews.test.texts[1]
    assert [text[start:end] for start, end in words.spans.tolist()] == reviews.test.surface(1)
    sums = torch.zeros(2, dtype=torch.float64).index_add_(0, words.sentences, words.weights)
    torch.testing.assert_close(sums, torch.ones(2, dtype=torch.float64))
    assert words.relative[words.sentences == 1].max() == 1
    alone, split = trace_texts(model, [text])
    assert torch.equal(word_weights(model, split, 0).weights, words.weights)
    assert len(alone) == 1


def test_only_a_hierarchical_model_has_words_in_sentences(small_model: Classifier, small_corpus: Corpus) -> None:
    with pytest.raises(InputError, match="this one is flat"):
        word_weights(small_model, small_corpus.test, 0)


def test_a_han_learns_and_its_units_are_sentences(reviews: Corpus, model: Classifier) -> None:
    found = trace(model, reviews.test)
    assert found.accuracy() == 1.0
    assert found.lengths.unique().tolist() == [2]
    assert found.units is not None
    assert found.units[1].startswith("The food was")
    logits = model.double()(reviews.test.batch(torch.arange(len(reviews.test)), sentences=True)).logits.detach()
    torch.testing.assert_close(found.logits, logits, atol=1e-10, rtol=0)
    model.float()


def test_a_han_explains_a_text_and_scores_words_alone(reviews: Corpus, model: Classifier) -> None:
    found, _ = trace_texts(model, ["One word"])
    assert found.lengths.tolist() == [1]
    assert len(token_scores(model, reviews)) == len(reviews.vocabulary)
    with pytest.raises(InputError, match="no local scores of words"):
        token_scores(model, reviews, "local")


def test_a_han_is_saved_and_loaded(model: Classifier, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("han")
    save_model(model, folder)
    loaded = load_model(folder)
    assert isinstance(loaded, HierarchicalClassifier)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name])


def test_the_rate_is_halved_after_a_plateau() -> None:
    from heedful.config import TrainingSettings
    from heedful.training.state import TrainingState

    interface: Interface = make_model().interface
    state = TrainingState.start(interface, ModelSettings(), TrainingSettings())
    accuracies = [0.5, 0.6, 0.6, 0.6, 0.7, 0.1, 0.2, 0.3, 0.4]
    state.rows = [{"epoch": n + 1, "dev_accuracy": a} for n, a in enumerate(accuracies)]
    assert [state.halvings(plateau) for plateau in (None, 1, 2, 5)] == [0, 6, 3, 0]
