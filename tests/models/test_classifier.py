"""The classifier beside a literal forward pass, and the properties that no encoder or an encoder must have."""

from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from heedful.config import ModelSettings
from heedful.models.classifier import FlatClassifier, Interface
from heedful.models.layers import ATTENTIONS, ENCODERS
from heedful.text.ragged import Batch, offsets_of
from heedful.text.tokenize import Tokenizer, Vocabulary
from tests.covering import covers

TRAINED = tuple(encoder for encoder in ENCODERS if encoder != "transformer")
"""All but the frozen one, which takes a folder (`test_frozen`)."""

KINDS = [(attention, encoder) for attention in ATTENTIONS for encoder in TRAINED]


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


def literal_convolution(encoder: Any, vectors: Tensor) -> Tensor:
    """Each position's own window, zeros beyond the ends, weight by weight."""
    outputs = []
    for place in range(len(vectors)):
        parts = []
        for convolution in encoder.convolutions:
            half = convolution.weight.shape[2] // 2
            total = convolution.bias.clone()
            for step in range(-half, half + 1):
                if 0 <= place + step < len(vectors):
                    total = total + convolution.weight[:, :, step + half] @ vectors[place + step]
            parts.append(total.clamp(min=0))
        outputs.append(torch.cat(parts))
    return torch.stack(outputs)


LITERAL_ENCODERS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "none": lambda _encoder, vectors: vectors,
    "affine": lambda encoder, vectors: torch.stack([encoder.projection @ e for e in vectors]),
    "tanh": lambda encoder, vectors: torch.stack([torch.tanh(encoder.projection @ e + encoder.bias) for e in vectors]),
    "lstm": lambda encoder, vectors: encoder.recurrent(vectors)[0],
    "gru": lambda encoder, vectors: encoder.recurrent(vectors)[0],
    "conv": literal_convolution,
}
"""The hidden vectors of one document; torch's own networks read the unpacked sequence."""


def literal_additive(attention: Any, h: Tensor) -> Tensor:
    seen = attention.projection @ h if attention.bias is None else attention.projection @ h + attention.bias
    score: Tensor = torch.tanh(seen) @ attention.context_vector / attention.score_scale
    return score


LITERAL_SCORES: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "dot": lambda attention, h: h @ attention.context_vector / attention.score_scale,
    "additive": literal_additive,
}
"""The score of one hidden vector."""


def literal_pooling(attention: Any, name: str, hidden: Tensor) -> Tensor:
    return torch.softmax(torch.stack([LITERAL_SCORES[name](attention, h) for h in hidden]), 0) @ hidden


def literal_logits(model: FlatClassifier, tokens: list[int]) -> list[float]:
    """One document by the formulas."""
    hidden = LITERAL_ENCODERS[model.settings.encoder](model.encoder, model.embedding[torch.tensor(tokens)])
    outputs = (model.readout_weight @ literal_pooling(model.attention, model.settings.attention, hidden)).tolist()
    return [0.0, *outputs] if model.classes == 2 else list(outputs)


def test_every_encoder_and_attention_has_a_literal_twin() -> None:
    assert LITERAL_ENCODERS.keys() == set(TRAINED)
    assert LITERAL_SCORES.keys() == ATTENTIONS.keys()
    settings = ModelSettings.model_fields
    assert set(get_args(settings["encoder"].annotation)) == set(ENCODERS)
    assert set(get_args(settings["attention"].annotation)) == set(ATTENTIONS)


@covers(encoder=("none", "affine", "tanh", "lstm", "gru", "conv"), attention=("dot", "additive"))
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("attention", "encoder"), KINDS)
def test_logits_are_those_of_the_formulas(attention: str, encoder: str, classes: int) -> None:
    model = make_model(classes, attention=attention, encoder=encoder)
    documents = [[1, 2, 2, 5], [3], [9, 1, 0, 4, 1, 1, 8]]
    found = model(make_batch(*documents)).logits
    expected = torch.tensor([literal_logits(model, document) for document in documents], dtype=torch.float64)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("encoder", ["tanh", "lstm", "conv"])
@pytest.mark.parametrize("attention", ["dot", "additive"])
def test_logits_of_jain_and_wallaces_models_are_those_of_the_formulas(attention: str, encoder: str) -> None:
    """Windows of one, three, five and seven tokens, a tanh layer of half the hidden size with a bias, λ = √H."""
    settings: dict[str, Any] = {"hidden_size": 8, "widths": [1, 3, 5, 7], "score_scale": 8**0.5}
    if attention == "additive":
        settings |= {"context_size": 4, "attention_bias": True, "score_scale": 1.0}
    model = make_model(attention=attention, encoder=encoder, **settings)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.uniform_(-1, 1, generator=torch.Generator().manual_seed(4))
    documents = [[1, 2, 2, 5], [3], [9, 1, 0, 4, 1, 1, 8, 7, 6, 2]]
    expected = torch.tensor([literal_logits(model, document) for document in documents], dtype=torch.float64)
    torch.testing.assert_close(model(make_batch(*documents)).logits, expected, atol=1e-12, rtol=0)
    assert len(model.attention.context_vector) == (4 if attention == "additive" else 8)


@pytest.mark.parametrize("encoder", ["none", "affine", "tanh"])
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


def test_alignment_with_a_context_of_its_own_size_is_along_the_first_order_of_the_score() -> None:
    """∇ tanh(N h)ᵀV at h = 0 is NᵀV."""
    model = make_model(3, attention="additive", context_size=2)
    h = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    (model.attention(h) * model.attention.score_scale).sum().backward()
    assert h.grad is not None
    torch.testing.assert_close(model.alignment(), model.readout_weight @ h.grad[0], atol=1e-14, rtol=0)
