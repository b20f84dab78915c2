"""The six models of Serrano & Smith 2019, with the study's own settings, beside a literal forward pass.

What is dropped where is checked twice: every mask against the literal pass, and by hand on a model of one feature.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.config import RunSettings
from heedful.models.classifier import Classifier, FlatClassifier, HierarchicalClassifier, make_classifier
from heedful.studies.serrano2019.runs import MODELS
from tests.models.test_classifier import make_model
from tests.models.test_hierarchical import documents_of_sentences
from tests.oracles.classifiers import Dropouts, literal_logits

pytestmark = pytest.mark.usefixtures("one_thread")

DOCUMENTS = [[[1, 2, 2], [5]], [[3, 1, 4, 1, 5, 9]], [[9], [9, 2], [6, 5, 3]], [[7]]]

DROPOUTS = {"dropout": 0.4445, "sentence_dropout": 0.2202, "document_dropout": 0.25, "logit_dropout": 0.5}
NOTHING = dict.fromkeys(DROPOUTS, 0.0)
SEEDS = range(3)

six_models = pytest.mark.parametrize("name", MODELS)
two_and_three = pytest.mark.parametrize("classes", [2, 3])


def small(name: str, classes: int = 3, **changes: Any) -> Classifier:
    """One of the study's models in a small size and double precision, its parameters so large that attention tells."""
    sizes = {"model.embedding_size": 4, "model.hidden_size": 6}
    changed = {f"model.{setting}": value for setting, value in (NOTHING | changes).items()}
    settings = RunSettings().change({**MODELS[name], **sizes, **changed}).model
    generator = torch.Generator().manual_seed(7)
    model = make_classifier(make_model(classes).interface, settings, generator).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1, generator=generator)
    return model


def literal(model: Classifier, documents: list[list[list[int]]], generator: torch.Generator | None = None) -> Tensor:
    settings = model.settings
    assert settings.document_dropout is not None
    dropouts = Dropouts(
        words=settings.dropout,
        sentences=settings.sentence_dropout,
        documents=settings.document_dropout,
        logits=settings.logit_dropout,
    )
    parameters = dict(model.named_parameters())
    return literal_logits(
        parameters,
        documents,
        encoder=settings.encoder,
        hierarchical=settings.structure == "hierarchical",
        dropouts=dropouts,
        generator=generator,
    )


def assert_same_draws(model: Classifier, seed: int) -> tuple[Tensor, Tensor]:
    """The logits with dropout are the literal ones, and both have drawn equally much; returns the two."""
    ours, theirs = (torch.Generator().manual_seed(seed) for _ in range(2))
    found, expected = model(documents_of_sentences(DOCUMENTS), ours).logits, literal(model, DOCUMENTS, theirs)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert torch.equal(ours.get_state(), theirs.get_state())
    return found, expected


def coins(values: Tensor, seed: int) -> Tensor:
    """What a dropout of a half keeps of up to 64 values, when it is the first to draw: one bit each."""
    word = torch.empty(1, dtype=torch.int64).random_(-(2**63), None, generator=torch.Generator().manual_seed(seed))
    return torch.tensor([int(word) >> place & 1 for place in range(values.numel())]).reshape(values.shape)


def gradients(model: Classifier, logits: Tensor) -> dict[str, Tensor]:
    """Of a sum with different weights, for every parameter, dense."""
    direction = torch.linspace(-1, 2, logits.numel(), dtype=torch.float64).reshape(logits.shape)
    named = dict(model.named_parameters())
    found = torch.autograd.grad((logits * direction).sum(), list(named.values()))
    return {name: value.to_dense() for name, value in zip(named, found, strict=True)}


@six_models
@two_and_three
def test_logits_without_dropout_are_those_of_the_formulas(name: str, classes: int) -> None:
    model = small(name, classes)
    found = model(documents_of_sentences(DOCUMENTS)).logits
    torch.testing.assert_close(found, literal(model, DOCUMENTS), atol=1e-12, rtol=0)
    assert found.shape == (4, classes)


@six_models
@two_and_three
def test_without_a_generator_nothing_is_dropped(name: str, classes: int) -> None:
    batch = documents_of_sentences(DOCUMENTS)
    assert torch.equal(small(name, classes, **DROPOUTS)(batch).logits, small(name, classes)(batch).logits)


@six_models
@two_and_three
def test_all_dropouts_act_where_the_literal_pass_has_them(name: str, classes: int) -> None:
    """Logits for some draws, and for the last of them the gradient of every parameter."""
    model = small(name, classes, **DROPOUTS)
    plain = model(documents_of_sentences(DOCUMENTS)).logits
    for seed in SEEDS:
        found, expected = assert_same_draws(model, seed)
        assert not torch.allclose(found, plain)
    ours, theirs = gradients(model, found), gradients(model, expected)
    for parameter, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[parameter], atol=1e-12, rtol=0)


@six_models
@pytest.mark.parametrize("place", DROPOUTS)
def test_each_dropout_alone_acts_where_the_literal_pass_has_it(name: str, place: str) -> None:
    model = small(name, classes=3, **{place: DROPOUTS[place]})
    plain = model(documents_of_sentences(DOCUMENTS)).logits
    drawn = [assert_same_draws(model, seed)[0] for seed in SEEDS]
    flat_sentences = place == "sentence_dropout" and isinstance(model, FlatClassifier)
    assert all(torch.equal(logits, plain) for logits in drawn) == flat_sentences


@six_models
@two_and_three
def test_a_dropped_logit_is_zero_and_a_kept_one_is_doubled_bias_and_all(name: str, classes: int) -> None:
    model = small(name, classes, logit_dropout=0.5)
    batch = documents_of_sentences(DOCUMENTS)
    plain = model(batch).logits
    for seed in SEEDS:
        found = model(batch, torch.Generator().manual_seed(seed)).logits
        assert torch.equal(found, 2 * coins(plain, seed) * plain)


@six_models
def test_dropped_document_vectors_leave_the_weights_of_attention_and_the_bias(name: str) -> None:
    """b + W (m ∘ h), where h is the document vector as it is without any dropout."""
    model = small(name, document_dropout=0.5)
    batch = documents_of_sentences(DOCUMENTS)
    document, b, w = model.units(batch).pooled(), model.bias(), model.readout_weight
    for seed in SEEDS:
        assert torch.equal(model.units(batch, torch.Generator().manual_seed(seed)).pooled(), document)
        found = model(batch, torch.Generator().manual_seed(seed)).logits
        expected = b + (2 * coins(document, seed) * document) @ w.T
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_the_dropout_of_documents_is_that_of_words_where_it_is_not_set() -> None:
    batch = documents_of_sentences(DOCUMENTS)
    unset, given = (small("FLANrnn", dropout=0.25, document_dropout=value) for value in (None, 0.25))
    assert torch.equal(*(model(batch, torch.Generator().manual_seed(1)).logits for model in (unset, given)))


@pytest.mark.parametrize(
    ("name", "place", "outcomes"),
    [
        ("HANnoenc", "logit_dropout", [0, 25]),
        ("HANnoenc", "document_dropout", [10, 15]),
        ("HANnoenc", "sentence_dropout", [10, 11, 14, 15]),
        ("HANnoenc", "dropout", [10, 11, 11.5, 12.5, 13.5, 14, 15]),
        ("FLANnoenc", "logit_dropout", [0, 26]),
        ("FLANnoenc", "document_dropout", [10, 16]),
        ("FLANnoenc", "sentence_dropout", [13]),
        ("FLANnoenc", "dropout", [10, 10 + 2 / 3, 12, 10 + 8 / 3, 10 + 10 / 3, 14, 10 + 16 / 3, 16]),
    ],
)
def test_what_can_come_of_each_dropout_by_hand(name: str, place: str, outcomes: list[float]) -> None:
    """Words 1 | 3 5 in two sentences, one feature, equal weights of attention, W = 1, b = 10; what is kept is doubled.

    HAN: sentence vectors 1 and 4, document 2.5, output 12.5. FLAN: document 3, output 13.
    """
    model = small(name, classes=2, embedding_size=1, **{place: 0.5})
    with torch.no_grad():
        for part, parameter in model.named_parameters():
            parameter.fill_({"readout_weight": 1.0, "readout_bias": 10.0}.get(part, 0.0))
        model.embedding[:6, 0] = torch.arange(6.0)
    batch = documents_of_sentences([[[1], [3, 5]]])
    drawn = [model(batch, torch.Generator().manual_seed(seed)).logits[0].tolist() for seed in range(80)]
    assert {first for first, _ in drawn} == {0.0}
    assert sorted({round(second, 9) for _, second in drawn}) == pytest.approx(outcomes, abs=1e-9)


@pytest.mark.parametrize("name", ["HANconv", "HANrnn"])
def test_words_see_nothing_beyond_their_sentence(name: str) -> None:
    """Other words in the sentences around change no weight of attention within a sentence."""
    model = small(name)
    assert isinstance(model, HierarchicalClassifier)
    first = model.word_units(documents_of_sentences([[[1, 2], [3, 4], [5, 6]], [[7, 8]]])).attention_weights
    second = model.word_units(documents_of_sentences([[[9, 9], [3, 4], [1, 1]], [[7, 8]]])).attention_weights
    assert torch.equal(first[[2, 3, 6, 7]], second[[2, 3, 6, 7]])
    assert (first[[0, 4]] - second[[0, 4]]).abs().min() > 1e-3


@six_models
def test_documents_see_nothing_of_each_other(name: str) -> None:
    model = small(name)
    batch = model(documents_of_sentences(DOCUMENTS)).logits
    for row, document in enumerate(DOCUMENTS):
        alone = model(documents_of_sentences([document])).logits
        torch.testing.assert_close(batch[row], alone[0], atol=1e-14, rtol=0)


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("FLAN")])
def test_a_flat_model_reads_on_across_the_ends_of_sentences(name: str) -> None:
    model = small(name)
    split, whole = (model(documents_of_sentences([document])).logits for document in ([[1, 2], [3, 4]], [[1, 2, 3, 4]]))
    assert torch.equal(split, whole)
