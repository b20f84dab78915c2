"""Encoders and attention scores, by hand and beside torch's own networks."""

import math

import pytest
import torch
from torch import nn

from heedful.models.layers import (
    ENCODERS,
    ConvEncoder,
    GRUEncoder,
    LSTMEncoder,
    TanhEncoder,
    additive_scores,
    dot_scores,
)
from heedful.text.ragged import offsets_of


def test_dot_scores_by_hand() -> None:
    hidden = torch.tensor([[1.0, 2.0], [0.0, -1.0]], dtype=torch.float64)
    assert dot_scores(hidden, torch.tensor([3.0, 1.0], dtype=torch.float64), 10.0).tolist() == [0.5, -0.1]


def test_additive_scores_by_hand() -> None:
    hidden = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    projection = torch.tensor([[0.5, 9.0], [-0.25, 9.0]], dtype=torch.float64)
    found = additive_scores(hidden, projection, torch.tensor([2.0, 4.0], dtype=torch.float64), 2.0)
    assert found.item() == pytest.approx((2 * math.tanh(0.5) + 4 * math.tanh(-0.25)) / 2, abs=1e-15)


@pytest.mark.parametrize("kind", [LSTMEncoder, GRUEncoder])
def test_recurrent_weights_are_drawn_from_one_over_the_root_of_their_size(
    kind: type[LSTMEncoder] | type[GRUEncoder],
) -> None:
    """Uniformly from ± 1/√32, with 32 of the 64 hidden numbers in each direction, biases too."""
    for name, drawn in kind(50, 64, torch.Generator().manual_seed(1)).recurrent.named_parameters():
        largest = float(drawn.detach().abs().max())
        assert 0.9 * 32**-0.5 < largest <= 32**-0.5, name
        assert abs(float(drawn.detach().mean())) < 0.1 * 32**-0.5, name


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


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_batch_without_words_has_no_hidden_vectors(encoder: str) -> None:
    made = ENCODERS[encoder](3, 4, torch.Generator().manual_seed(0))
    assert len(made(torch.zeros(0, 3), torch.tensor([0, 0]))) == 0


def test_windows_of_three_and_five_end_with_their_document_by_hand() -> None:
    """With weights of one a hidden vector is the sum of its window, and negative sums are cut off."""
    encoder = ConvEncoder(1, 2, torch.Generator())
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
    words = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0], [64.0], [-9.0], [1.0]])
    found = encoder(words, offsets_of(torch.tensor([4, 1, 2, 2])))
    threes, fives = found.T.tolist()
    assert threes == [3, 7, 14, 12, 16, 96, 96, 0, 0]
    assert fives == [7, 15, 15, 14, 16, 96, 96, 0, 0]


def test_windows_have_the_widths_that_are_asked_for_by_hand() -> None:
    """Of one, of three and of seven tokens, a third of the hidden size each."""
    encoder = ConvEncoder(1, 7, torch.Generator(), widths=(1, 3, 7))
    assert encoder.size == 6
    with torch.no_grad():
        for name, parameter in encoder.named_parameters():
            parameter.fill_(0.0 if name.endswith("bias") else 1.0)
    words = torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0], [64.0]])
    ones, twice, threes, _, sevens, _ = encoder(words, offsets_of(torch.tensor([5, 2]))).T.tolist()
    assert ones == twice == [1, 2, 4, 8, 16, 32, 64]
    assert threes == [3, 7, 14, 28, 24, 96, 96]
    assert sevens == [15, 31, 31, 31, 30, 96, 96]


def test_the_tanh_encoder_by_hand() -> None:
    encoder = TanhEncoder(2, 1, torch.Generator()).double()
    with torch.no_grad():
        encoder.projection.copy_(torch.tensor([[0.5, -2.0]]))
        encoder.bias.fill_(0.25)
    found = encoder(torch.tensor([[1.0, 0.0], [2.0, 1.0]], dtype=torch.float64), torch.tensor([0, 1, 2]))
    assert found.flatten().tolist() == pytest.approx([math.tanh(0.75), math.tanh(-0.75)], abs=1e-15)


def test_windows_look_to_the_left_and_to_the_right() -> None:
    """The first weight belongs to the word before, the last to the word after."""
    encoder = ConvEncoder(1, 2, torch.Generator())
    with torch.no_grad():
        for convolution, weights in zip(encoder.convolutions, ([1, 10, 100], [1, 10, 100, 1000, 10000]), strict=True):
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            convolution.weight.copy_(torch.tensor(weights).reshape(1, 1, -1))
            convolution.bias.fill_(0.5)
    found = encoder(torch.tensor([[1.0], [2.0], [3.0], [7.0]]), torch.tensor([0, 3, 4]))
    assert found.T.tolist() == [[210.5, 321.5, 32.5, 70.5], [32100.5, 3210.5, 321.5, 700.5]]
