"""The classifier beside a literal forward pass, and the properties that no encoder or an encoder must have."""

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.config import ModelSettings
from heedful.models.classifier import FlatClassifier, Interface
from heedful.models.layers import ENCODERS, GRUEncoder, LSTMEncoder
from heedful.text.ragged import Batch, offsets_of
from heedful.text.tokenize import Tokenizer, Vocabulary
from tests.covering import covers

KINDS = [(attention, encoder) for attention in ("dot", "additive") for encoder in ENCODERS]


def make_model(classes: int = 2, **settings: Any) -> FlatClassifier:
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{n}" for n in range(9)),
        tokenizer=Tokenizer(),
        class_names=tuple(f"c{n}" for n in range(classes)),
    )
    chosen = ModelSettings.of({"embedding_size": 4, "hidden_size": 6, **settings})
    return FlatClassifier(interface, chosen, torch.Generator().manual_seed(1)).double()


def make_batch(*documents: list[int]) -> Batch:
    lengths = torch.tensor([len(document) for document in documents])
    return Batch(
        tokens=torch.tensor([token for document in documents for token in document]),
        offsets=offsets_of(lengths),
        labels=torch.zeros(len(documents), dtype=torch.int64),
        instances=torch.arange(len(documents)),
    )


def literal_convolution(model: FlatClassifier, embedded: Tensor) -> Tensor:
    """Each position's own window, zeros beyond the ends, weight by weight."""
    outputs = []
    for place in range(len(embedded)):
        parts = []
        for convolution in model.encoder.convolutions:  # type: ignore[union-attr]
            half = convolution.weight.shape[2] // 2
            total = convolution.bias.clone()
            for step in range(-half, half + 1):
                if 0 <= place + step < len(embedded):
                    total = total + convolution.weight[:, :, step + half] @ embedded[place + step]
            parts.append(total.clamp(min=0))
        outputs.append(torch.cat(parts))
    return torch.stack(outputs)


def literal_logits(model: FlatClassifier, tokens: list[int]) -> list[float]:
    """One document by the formulas, with torch's own LSTM on an unpacked sequence."""
    embedded = model.embedding[torch.tensor(tokens)]
    hidden: Tensor = embedded
    if model.settings.encoder == "affine":
        hidden = torch.stack([model.encoder.projection @ e for e in embedded])
    if model.settings.encoder in {"lstm", "gru"}:
        hidden = model.encoder.recurrent(embedded)[0]  # type: ignore[operator]
    if model.settings.encoder == "conv":
        hidden = literal_convolution(model, embedded)
    seen = hidden
    if model.settings.attention == "additive":
        seen = torch.stack([torch.tanh(model.attention.projection @ h) for h in hidden])
    scores = torch.stack([h @ model.attention.context_vector for h in seen]) / model.settings.score_scale
    document = torch.softmax(scores, 0) @ hidden
    outputs = (model.readout_weight @ document).tolist()
    return [0.0, *outputs] if model.classes == 2 else list(outputs)


@covers(encoder=("none", "affine", "lstm", "gru", "conv"), attention=("dot", "additive"))
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("attention", "encoder"), KINDS)
def test_logits_are_those_of_the_formulas(attention: str, encoder: str, classes: int) -> None:
    model = make_model(classes, attention=attention, encoder=encoder)
    documents = [[1, 2, 2, 5], [3], [9, 1, 0, 4, 1, 1, 8]]
    found = model(make_batch(*documents)).logits
    expected = torch.tensor([literal_logits(model, document) for document in documents], dtype=torch.float64)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", [LSTMEncoder, GRUEncoder])
def test_reading_in_stretches_is_reading_at_once(kind: type[LSTMEncoder] | type[GRUEncoder]) -> None:
    """Hidden vectors and gradients are those of torch's own pass over each document, around the ends of stretches."""
    encoder = kind(3, 4, torch.Generator().manual_seed(2)).double()
    lengths = [1, 17, 16, 40, 2, 33]
    words = torch.randn(sum(lengths), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    direction = torch.randn(sum(lengths), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    found = []
    for read in (
        lambda vectors: encoder(vectors, offsets_of(torch.tensor(lengths))),
        lambda vectors: torch.cat([encoder.recurrent(document)[0] for document in vectors.split(lengths)]),
    ):
        leaf = words.clone().requires_grad_()
        hidden = read(leaf)
        gradients = torch.autograd.grad((hidden * direction).sum(), [leaf, *encoder.parameters()])
        found.append([hidden, *gradients])
    for ours, torchs in zip(*found, strict=True):
        torch.testing.assert_close(ours, torchs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("encoder", ["none", "affine", "lstm", "gru", "conv"])
def test_a_batch_without_words_has_no_hidden_vectors(encoder: str) -> None:
    made = ENCODERS[encoder](3, 4, torch.Generator().manual_seed(0))
    assert len(made(torch.zeros(0, 3), torch.tensor([0, 0]))) == 0


@pytest.mark.parametrize("encoder", ["none", "affine"])
def test_without_context_the_order_of_words_does_not_matter(encoder: str) -> None:
    model = make_model(encoder=encoder)
    logits = model(make_batch([1, 2, 3, 4, 2], [2, 4, 3, 2, 1])).logits
    torch.testing.assert_close(logits[0], logits[1], atol=1e-14, rtol=0)


def test_with_an_lstm_the_order_of_words_matters() -> None:
    logits = make_model(encoder="lstm", embedding_range=1.0)(make_batch([1, 2, 3, 4], [4, 3, 2, 1])).logits
    assert abs(float((logits[0, 1] - logits[1, 1]).detach())) > 1e-4


def test_both_kinds_of_dropout_mask_agree_when_nothing_repeats() -> None:
    """With every token once in the batch, a mask per token is a mask per occurrence, drawn in another order."""
    batch = make_batch([1, 2, 3], [4, 5])
    token, occurrence = (make_model(dropout_mask=mask) for mask in ("token", "occurrence"))
    first, second = (model(batch, torch.Generator().manual_seed(5)).logits for model in (token, occurrence))
    torch.testing.assert_close(first, second, atol=1e-12, rtol=0)


def test_a_token_mask_is_shared_by_all_occurrences_and_an_occurrence_mask_is_not() -> None:
    """With V = 0 all weights are equal; a document of one repeated word is that word's masked vector."""
    batch = make_batch([1] * 400)
    for mask, distinct_values in (("token", 2), ("occurrence", 100)):
        model = make_model(dropout_mask=mask, embedding_size=1, dropout=0.5)
        with torch.no_grad():
            model.attention.context_vector.zero_()
            model.readout_weight.fill_(1.0)
        drawn = {round(model(batch, torch.Generator().manual_seed(n)).logits[0, 1].item(), 9) for n in range(200)}
        assert len(drawn) <= distinct_values * 2
        assert (len(drawn) > 3) == (mask == "occurrence")


def test_initial_values_have_the_stated_ranges() -> None:
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{n}" for n in range(2000)), tokenizer=Tokenizer(), class_names=("a", "b")
    )
    model = FlatClassifier(interface, ModelSettings(), torch.Generator().manual_seed(0))
    assert model.embedding.abs().max().item() == pytest.approx(0.1, abs=1e-4)
    assert model.readout_weight.abs().max().item() <= 0.1
    assert model.attention.context_vector.norm().item() == pytest.approx(10, abs=2.5)


def test_alignment_is_the_product_of_context_and_readout_and_of_their_images_with_an_affine_encoder() -> None:
    plain = make_model()
    expected = (plain.readout_weight[0] @ plain.attention.context_vector).item()
    assert plain.alignment().item() == pytest.approx(expected, abs=1e-14)
    affine = make_model(encoder="affine")
    m = affine.encoder.projection
    image = (m.T @ affine.attention.context_vector) @ (m.T @ affine.readout_weight[0])  # type: ignore[operator]
    assert affine.alignment().item() == pytest.approx(image.item(), abs=1e-14)
