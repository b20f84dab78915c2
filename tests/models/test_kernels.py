"""Pooling by hand and against a loop over tokens; distinct tokens, gathered rows and dropout masks."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from torch import Tensor

from heedful.errors import InputError
from heedful.models.kernels import distinct_tokens, gather_rows, keep_mask, pool_attention, pool_by_operations
from heedful.text.ragged import offsets_of
from tests import strategies


def test_pooling_by_hand() -> None:
    """Two documents: (a, b) with scores 0 and ln 3, so weights 1/4 and 3/4; and (a) alone."""
    hidden = torch.tensor([[4.0, 0.0], [0.0, 8.0]], dtype=torch.float64)
    scores = torch.tensor([0.0, math.log(3)], dtype=torch.float64)
    pooled = pool_attention(hidden, scores, torch.tensor([0, 1, 0]), torch.tensor([0, 2, 3]))
    torch.testing.assert_close(pooled, torch.tensor([[1.0, 6.0], [4.0, 0.0]], dtype=torch.float64))


def looped_pooling(hidden: Tensor, scores: Tensor, index: Tensor, offsets: Tensor) -> Tensor:
    """Document by document, token by token, through autograd."""
    documents = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        weights = torch.softmax(torch.stack([scores[index[j]] for j in range(start, end)]), 0)
        documents.append(sum(weights[j - start] * hidden[index[j]] for j in range(start, end)))
    return torch.stack([torch.as_tensor(document) for document in documents])


@pytest.mark.parametrize("pooling", [pool_attention, pool_by_operations])
@given(
    lengths=strategies.lengths,
    distinct=strategies.small_numbers,
    spread=strategies.one_of(0.01, 1.0, 300.0),
    seed=strategies.seeds,
)
def test_pooling_and_its_closed_form_gradient_equal_autograd_of_a_loop(
    pooling: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
    lengths: list[int],
    distinct: int,
    spread: float,
    seed: int,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(0, distinct, (sum(lengths),), generator=generator)
    offsets = offsets_of(torch.tensor(lengths))
    hidden = torch.randn(distinct, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    scores = (torch.randn(distinct, dtype=torch.float64, generator=generator) * spread).requires_grad_()
    direction = torch.randn(len(lengths), 3, dtype=torch.float64, generator=generator)
    ours, literal = (pool(hidden, scores, index, offsets) for pool in (pooling, looped_pooling))
    torch.testing.assert_close(ours, literal, atol=1e-12, rtol=0)
    mine = torch.autograd.grad((ours * direction).sum(), (hidden, scores))
    theirs = torch.autograd.grad((literal * direction).sum(), (hidden, scores), allow_unused=True)
    for got, expected in zip(mine, theirs, strict=True):
        torch.testing.assert_close(got, torch.zeros_like(got) if expected is None else expected, atol=1e-10, rtol=0)


def test_pooling_of_a_transposed_array_has_its_gradient() -> None:
    """Rows that do not lie one after the other in memory."""
    flat = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    index, offsets, scores = torch.tensor([0, 3, 1]), torch.tensor([0, 2, 3]), torch.zeros(4, dtype=torch.float64)
    found = []
    for hidden in (flat.T, flat.T.contiguous()):
        leaf = hidden.detach().requires_grad_()
        (pool_attention(leaf, scores, index, offsets) ** 2).sum().backward()
        assert leaf.grad is not None
        found.append(leaf.grad)
    torch.testing.assert_close(found[0], found[1], atol=0, rtol=0)
    assert found[0].abs().sum() > 0


def test_half_precision_is_pooled_by_tensor_operations() -> None:
    hidden = torch.tensor([[1.0], [3.0]], dtype=torch.bfloat16)
    pooled = pool_attention(hidden, torch.zeros(2, dtype=torch.bfloat16), torch.tensor([0, 1]), torch.tensor([0, 2]))
    assert pooled.tolist() == [[2.0]]


def test_tokens_of_another_vocabulary_are_refused() -> None:
    with pytest.raises(InputError, match=r"Token 9 is not in the model's vocabulary of 5 tokens"):
        distinct_tokens(torch.tensor([1, 9]), 5)


@given(strategies.token_lists(range(31), longest=40))
def test_distinct_tokens_are_those_of_torch_unique(tokens: list[int]) -> None:
    given_tokens = torch.tensor(tokens)
    distinct, index = distinct_tokens(given_tokens, 31)
    expected, inverse = torch.unique(given_tokens, return_inverse=True)
    assert distinct.tolist() == expected.tolist()
    assert index.tolist() == inverse.tolist()


def test_gathered_rows_have_a_sparse_gradient_with_the_dense_values() -> None:
    table = torch.randn(5, 3, requires_grad=True)
    rows = torch.tensor([0, 3])
    (gather_rows(table, rows) ** 2).sum().backward()
    assert table.grad is not None
    assert table.grad.is_sparse
    expected = torch.zeros(5, 3).index_copy_(0, rows, 2 * table.detach()[rows])
    torch.testing.assert_close(table.grad.to_dense(), expected)


@pytest.mark.parametrize("dropout", [0.5, 0.25, 0.1, 0.3])
def test_keep_masks_drop_the_asked_share_and_keep_the_mean(dropout: float) -> None:
    mask = keep_mask(torch.Size([400, 500]), dropout, torch.Generator().manual_seed(0))
    kept = mask.unique().tolist()
    assert kept[0] == 0.0
    assert kept[1:] == [pytest.approx(1 / (1 - dropout), rel=1e-4)]
    assert (mask == 0).double().mean().item() == pytest.approx(dropout, abs=5 * math.sqrt(0.25 / 200_000))
    neighbours = ((mask[:, 1:] > 0) == (mask[:, :-1] > 0)).double().mean().item()
    assert neighbours == pytest.approx(dropout**2 + (1 - dropout) ** 2, abs=0.006)


def test_equal_generators_draw_equal_masks() -> None:
    first, second = (keep_mask(torch.Size([7, 9]), 0.5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
