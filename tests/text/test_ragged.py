"""Ragged arrays against loops over documents."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.special import softmax

from heedful.text.ragged import (
    Batch,
    bucketed,
    in_order,
    lengths_of,
    offsets_of,
    positions_of,
    segment_softmax,
    segment_sum,
    segments_of,
    shuffled,
)
from tests import strategies


def test_offsets_are_where_documents_begin() -> None:
    assert offsets_of(torch.tensor([3, 1, 2])).tolist() == [0, 3, 4, 6]
    assert lengths_of(torch.tensor([0, 3, 4, 6])).tolist() == [3, 1, 2]
    assert segments_of(torch.tensor([0, 3, 4, 6])).tolist() == [0, 0, 0, 1, 2, 2]


def test_no_document_has_one_offset() -> None:
    assert offsets_of(torch.tensor([], dtype=torch.int64)).tolist() == [0]


def test_positions_follow_the_order_asked_for() -> None:
    offsets = torch.tensor([0, 3, 4, 6])
    assert positions_of(offsets, torch.tensor([2, 0])).tolist() == [4, 5, 0, 1, 2]
    assert positions_of(offsets, torch.tensor([1, 1])).tolist() == [3, 3]
    assert positions_of(offsets, torch.tensor([], dtype=torch.int64)).tolist() == []


@given(strategies.lengths, strategies.shuffles)
def test_positions_equal_a_loop_over_documents(sizes: list[int], chance: random.Random) -> None:
    rows = list(range(len(sizes)))
    chance.shuffle(rows)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    expected = [place for row in rows for place in range(starts[row], starts[row + 1])]
    assert positions_of(offsets_of(torch.tensor(sizes)), torch.tensor(rows)).tolist() == expected


def test_segment_sums_are_sums_of_each_document() -> None:
    sums = segment_sum(torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0, 1, 4]))
    assert sums.tolist() == [1.0, 14.0]


@given(strategies.ragged_scores(2000))
def test_segment_softmax_equals_scipy_for_each_document(documents: list[list[float]]) -> None:
    scores = torch.tensor([score for document in documents for score in document], dtype=torch.float64)
    offsets = offsets_of(torch.tensor([len(document) for document in documents]))
    expected = np.concatenate([softmax(document) for document in documents])
    np.testing.assert_allclose(segment_softmax(scores, offsets).numpy(), expected, rtol=1e-12, atol=1e-300)


def test_segment_softmax_is_safe_at_scores_of_two_thousand() -> None:
    scores = torch.tensor([2000.0, -2000.0, -2000.0, -2000.0], dtype=torch.float64)
    assert segment_softmax(scores, torch.tensor([0, 2, 4])).tolist() == [1.0, 0.0, 0.5, 0.5]


@given(strategies.sizes, strategies.small_numbers, strategies.few_seeds)
def test_shuffled_batches_cover_every_row_once(count: int, size: int, seed: int) -> None:
    batches = list(shuffled(count, size, torch.Generator().manual_seed(seed)))
    assert sorted(torch.cat(batches).tolist()) == list(range(count))
    assert all(len(batch) == size for batch in batches[:-1])


@given(strategies.lengths, strategies.small_numbers, strategies.small_numbers, strategies.few_seeds)
def test_bucketed_batches_cover_every_row_once(sizes: list[int], size: int, pool: int, seed: int) -> None:
    batches = list(bucketed(torch.tensor(sizes), size, torch.Generator().manual_seed(seed), pool=pool))
    assert sorted(torch.cat(batches).tolist()) == list(range(len(sizes)))
    assert all(len(batch) <= size for batch in batches)


def test_bucketed_batches_hold_documents_of_similar_length() -> None:
    sizes = torch.tensor([9, 1, 9, 1, 9, 1])
    batches = list(bucketed(sizes, 3, torch.Generator().manual_seed(0)))
    assert sorted(sizes[batch].tolist() for batch in batches) == [[1, 1, 1], [9, 9, 9]]


def test_batches_are_shuffled() -> None:
    """Which texts stand together, and of those of similar length which batch comes first."""
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.cat(list(shuffled(50, 7, generator))).tolist() for _ in range(2))
    assert list(range(50)) != first != second != list(range(50))
    alike = [{tuple(sorted(batch.tolist())) for batch in bucketed(torch.ones(60).long(), 6, generator)} for _ in "ab"]
    assert not alike[0] & alike[1]
    longest = [int(batch.max()) for batch in bucketed(torch.arange(60), 6, generator)]
    assert sorted(longest) == list(range(5, 60, 6))
    assert longest != sorted(longest)


@given(strategies.lengths, strategies.small_numbers)
def test_in_order_keeps_the_order_and_the_limit(sizes: list[int], most: int) -> None:
    batches = list(in_order(torch.tensor(sizes), most))
    assert torch.cat(batches).tolist() == list(range(len(sizes)))
    assert all(len(batch) == 1 or sum(sizes[row] for row in batch.tolist()) <= most for batch in batches)


def test_the_same_seed_gives_the_same_batches() -> None:
    first, second = ([batch.tolist() for batch in shuffled(20, 6, torch.Generator().manual_seed(7))] for _ in range(2))
    assert first == second


def test_a_batch_knows_how_many_documents_it_has() -> None:
    batch = Batch(
        tokens=torch.tensor([5, 6, 7]),
        offsets=torch.tensor([0, 1, 3]),
        labels=torch.tensor([0, 1]),
        instances=torch.tensor([8, 9]),
    )
    assert len(batch) == 2
    assert batch.to("cpu").tokens.tolist() == [5, 6, 7]


def test_shapes_that_do_not_fit_are_refused_while_tests_run() -> None:
    with pytest.raises(Exception, match="units"):
        segment_softmax(torch.zeros(2, 2), torch.tensor([0, 2]))
