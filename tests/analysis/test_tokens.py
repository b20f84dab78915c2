"""Counts, association and groups by hand; the published group sizes of SST."""

import math

import pytest
import torch

from heedful.analysis.tokens import GroupRule, associations, class_counts, mean_weights, token_groups
from heedful.traces import Trace


def test_counts_per_class_by_hand() -> None:
    found = class_counts(torch.tensor([2, 2, 0, 2]), torch.tensor([1, 1, 0, 0]), vocabulary_size=3, class_count=2)
    assert found.tolist() == [[1, 0], [0, 0], [1, 2]]


def test_association_by_hand() -> None:
    found = associations(torch.tensor([[1, 3], [4, 4], [0, 2], [0, 0]]))
    assert found[:3].tolist() == [0.5, 0.0, 1.0]
    assert math.isnan(found[3])
    assert associations(torch.tensor([[6, 3, 1]])).tolist() == [0.6]


@pytest.mark.parametrize(
    ("negative", "positive", "group"),
    [
        (0, 6, "positive"),  # γ = 1 is included, although the paper prints an open interval
        (0, 5, "none"),  # not more than five
        (2, 6, "none"),  # γ = .5 is not above .5
        (1, 6, "positive"),
        (6, 0, "negative"),
        (5, 5, "neutral"),
        (1, 1, "neutral"),
        (9, 11, "none"),  # |γ| = .1 is not below .1
        (100, 104, "neutral"),
        (100, 105, "none"),  # five more is too many
        (0, 0, "none"),
    ],
)
def test_groups_of_two_classes(negative: int, positive: int, group: str) -> None:
    assert token_groups(torch.tensor([[negative, positive]]), ("negative", "positive")) == [group]


@pytest.mark.parametrize(
    ("counts", "group"),
    [
        ((9, 1, 0), "a"),
        ((8, 2, 1), "none"),
        ((5, 0, 0), "none"),
        ((0, 0, 6), "c"),
        ((4, 3, 3), "neutral"),
        ((5, 3, 2), "none"),
    ],
)
def test_groups_of_three_classes(counts: tuple[int, int, int], group: str) -> None:
    assert token_groups(torch.tensor([counts]), ("a", "b", "c")) == [group]


def test_a_class_called_neutral_does_not_become_the_neutral_group() -> None:
    counts = torch.tensor([[0, 9, 0], [3, 3, 3]])
    assert token_groups(counts, ("bad", "neutral", "good")) == ["neutral (class)", "neutral"]


def test_a_minimum_count_thins_out_neutral_tokens_only() -> None:
    counts = torch.tensor([[1, 1], [4, 4], [0, 6]])
    assert token_groups(counts, ("n", "p"), GroupRule(min_count=8)) == ["none", "neutral", "positive"]


def test_mean_weights_by_hand() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 2, 4], attention_weights=[0.25, 0.75, 0.5, 0.5], polarity_scores=torch.zeros(4, 2), bias=[0, 0]
    )
    table = mean_weights(trace, torch.tensor([1, 2, 1, 1]), ["<unk>", "x", "y"], ["none", "positive", "neutral"])
    assert table.to_dict("records") == [
        {"token": "x", "group": "positive", "occurrences": 3, "weight": pytest.approx(1.25 / 3)},
        {"token": "y", "group": "neutral", "occurrences": 1, "weight": 0.75},
    ]
