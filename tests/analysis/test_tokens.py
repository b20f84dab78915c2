"""Counts, association and groups by hand; the published group sizes of SST."""

import math

import pandas as pd
import pytest
import torch

from heedful.analysis.tokens import (
    AS_PRINTED,
    GroupRule,
    associations,
    class_counts,
    compared_classes,
    mean_weights,
    token_groups,
)
from heedful.traces import Trace


def test_counts_per_class_by_hand() -> None:
    found = class_counts(torch.tensor([2, 2, 0, 2]), torch.tensor([1, 1, 0, 0]), vocabulary_size=3, class_count=2)
    assert found.tolist() == [[1, 0], [0, 0], [1, 2]]


def test_association_by_counts_by_hand() -> None:
    found = associations(torch.tensor([[1, 3], [4, 4], [0, 2], [0, 0]]), "counts")
    assert found[:3].tolist() == [0.5, 0.0, 1.0]
    assert math.isnan(found[3])
    assert associations(torch.tensor([[6, 3, 1]]), "counts").tolist() == [0.6]


def test_association_by_rates_by_hand() -> None:
    """Classes of 10 and 40 tokens: 4 of 10 against 4 of 40 is γ = (.1 − .4) / .5, not none."""
    found = associations(torch.tensor([[4, 4], [1, 12], [5, 24], [0, 0]]))
    assert found[:3].tolist() == pytest.approx([-0.6, (0.3 - 0.1) / 0.4, (0.6 - 0.5) / 1.1])
    assert math.isnan(found[3])
    assert associations(torch.tensor([[2, 3, 4], [8, 27, 16]])).tolist() == pytest.approx([0.2 / 0.5, 0.9 / 2.5])


def test_where_classes_are_equally_large_rates_are_counts_to_the_last_bit() -> None:
    counts = torch.randint(0, 30, (500, 2), generator=torch.Generator().manual_seed(0))
    short = counts.sum(0).max() - counts.sum(0)
    even = torch.cat([counts, short[None]])
    assert torch.equal(associations(even).nan_to_num(), associations(even, "counts").nan_to_num())
    assert token_groups(even, ("n", "p")) == token_groups(even, ("n", "p"), AS_PRINTED)


def test_a_larger_class_does_not_own_the_words_that_both_use_alike() -> None:
    """Nine times as many positive tokens: 90 and 10 is neutral, 30 and 0 says nothing yet, 60 and 0 is positive."""
    words = [[10, 90], [0, 30], [0, 60], [6, 0], [5, 0], [10, 20]]
    rest = [[1000 - sum(row[0] for row in words), 9000 - sum(row[1] for row in words)]]
    counts = torch.tensor(words + rest)
    assert token_groups(counts, ("n", "p"))[:-1] == ["neutral", "none", "positive", "negative", "none", "negative"]
    assert token_groups(counts, ("n", "p"), AS_PRINTED)[:2] == ["positive", "positive"]


def test_of_several_classes_one_that_is_hardly_there_does_not_judge_the_words_of_the_others() -> None:
    """100, 100 and 2 tokens: a word that the two large ones share is neutral, one of the first is the first's."""
    counts = torch.tensor([[30, 30, 0], [20, 1, 0], [50, 69, 2]])
    assert compared_classes(counts).tolist() == [True, True, False]
    assert token_groups(counts, ("a", "b", "rare")) == ["neutral", "a", "neutral"]


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
    assert token_groups(torch.tensor([[negative, positive]]), ("negative", "positive"), AS_PRINTED) == [group]


@pytest.mark.parametrize(
    ("counts", "group"),
    [
        ((9, 1, 0), "a"),
        ((8, 2, 1), "none"),
        ((5, 0, 0), "none"),
        ((0, 0, 6), "c"),
        ((4, 3, 3), "neutral"),
        ((5, 3, 2), "none"),
        ((9, 3, 0), "none"),  # a share of .75 is not above .75
        ((10, 3, 0), "a"),
    ],
)
def test_groups_of_three_classes(counts: tuple[int, int, int], group: str) -> None:
    assert token_groups(torch.tensor([counts]), ("a", "b", "c"), AS_PRINTED) == [group]


def test_a_share_that_lies_a_tenth_from_an_even_one_is_not_neutral() -> None:
    counts = torch.tensor([[3, 5, 6, 6], [31, 49, 60, 60]])
    assert token_groups(counts, ("a", "b", "c", "d"), AS_PRINTED) == ["none", "neutral"]


def test_a_class_called_neutral_does_not_become_the_neutral_group() -> None:
    counts = torch.tensor([[0, 9, 0], [3, 3, 3]])
    assert token_groups(counts, ("bad", "neutral", "good"), AS_PRINTED) == ["neutral (class)", "neutral"]


def test_a_minimum_count_thins_out_neutral_tokens_only() -> None:
    counts = torch.tensor([[1, 1], [4, 4], [0, 6]])
    assert token_groups(counts, ("n", "p"), GroupRule(min_count=8, by="counts")) == ["none", "neutral", "positive"]


def test_mean_weights_by_hand() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 2, 4], attention_weights=[0.25, 0.75, 0.5, 0.5], polarity_scores=torch.zeros(4, 2), bias=[0, 0]
    )
    scored = pd.DataFrame({"token": ["<unk>", "x", "y"], "group": ["none", "positive", "neutral"]})
    table = mean_weights(
        trace,
        torch.tensor([1, 2, 1, 1]),
        scored.assign(beyond_chance=True, count=9, even=False, group_by_counts="none"),
    )
    assert table.to_dict("records") == [
        {
            "token": "x",
            "group": "positive",
            "beyond_chance": True,
            "count": 9,
            "even": False,
            "group_by_counts": "none",
            "occurrences": 3,
            "weight": pytest.approx(1.25 / 3),
            "lift": pytest.approx(2.5 / 3),
        },
        {
            "token": "y",
            "group": "neutral",
            "beyond_chance": True,
            "count": 9,
            "even": False,
            "group_by_counts": "none",
            "occurrences": 1,
            "weight": 0.75,
            "lift": 1.5,
        },
    ]


def test_a_lift_does_not_depend_on_how_long_a_text_is() -> None:
    """Even weights of a short and of a long text: the weights differ, the lifts are one."""
    trace = Trace.from_arrays(
        offsets=[0, 2, 10], attention_scores=torch.zeros(10), polarity_scores=torch.zeros(10, 2), bias=[0, 0]
    )
    scored = pd.DataFrame(
        {
            "token": ["a", "b"],
            "group": "none",
            "beyond_chance": False,
            "count": 9,
            "even": False,
            "group_by_counts": "none",
        }
    )
    table = mean_weights(trace, torch.tensor([0] * 2 + [1] * 8), scored)
    assert table["weight"].tolist() == pytest.approx([0.5, 0.125])
    assert table["lift"].tolist() == pytest.approx([1.0, 1.0])
