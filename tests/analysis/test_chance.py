"""Words that belong to a class beyond chance: by hand, against an exact test, and never in shuffled labels."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from heedful.analysis.separation import polar
from heedful.analysis.tokens import (
    FALSE_DISCOVERIES,
    _chances,
    as_printed,
    beyond_chance,
    class_counts,
    effective_counts,
    token_groups,
    token_table,
)
from heedful.traces import Trace


def test_six_occurrences_in_one_text_are_worth_one_and_in_six_texts_six() -> None:
    tokens = torch.tensor([0] * 6 + [1] * 6 + [2, 2, 2, 2])
    documents = torch.tensor([0] * 6 + [0, 1, 2, 3, 4, 5] + [0, 0, 0, 1])
    found = effective_counts(tokens, documents, vocabulary_size=4)
    assert found.tolist() == pytest.approx([1.0, 6.0, 16 / 10, 0.0])


@pytest.mark.parametrize(("counts", "owner"), [([9, 1], 0), ([3, 7], 1), ([0, 4], 1), ([5, 5], 0), ([9, 1], -1)])
def test_the_chance_of_a_word_is_that_of_an_exact_binomial_test(counts: list[int], owner: int) -> None:
    sizes, trials = np.array([0.25, 0.75]), sum(counts)
    tail = 1.0 if owner < 0 else binomtest(counts[owner], trials, sizes[owner], "greater").pvalue
    found = _chances(np.array([counts], dtype=float), np.array([trials], dtype=float), np.array([owner]), sizes)
    assert found[0] == pytest.approx(min(1.0, 2 * tail), rel=1e-9)


def test_a_word_that_a_single_text_repeats_is_none_of_its_class() -> None:
    counts = torch.tensor([[30, 0], [30, 0], [500, 530]])
    spread, burst = torch.tensor([30.0, 30.0, 1030.0]), torch.tensor([30.0, 1.0, 1030.0])
    owners = torch.tensor([0, 0, -1])
    assert beyond_chance(counts, spread.double(), owners, more_than=5).tolist() == [True, True, False]
    assert beyond_chance(counts, burst.double(), owners, more_than=5).tolist() == [True, False, False]


def test_common_words_that_lean_a_little_do_not_let_rare_ones_through() -> None:
    """400 common words lean to a class and belong to none; some of 600 rare ones belong to it by chance alone."""
    rng = np.random.default_rng(0)
    common = rng.binomial(1000, 0.6, 400)
    rare = rng.binomial(8, 0.5, 600)
    counts = torch.from_numpy(np.array([*zip(1000 - common, common, strict=True), *zip(8 - rare, rare, strict=True)]))
    owners = torch.tensor([-1] * 400 + [1 if hits > 6 else -1 for hits in rare])
    assert int((owners == 1).sum()) >= 10
    assert int(beyond_chance(counts, counts.sum(1).double(), owners, more_than=5).sum()) == 0


def test_rare_words_are_not_tested_and_nothing_may_be_left_to_test() -> None:
    counts = torch.tensor([[5, 0], [0, 3]])
    owners = torch.tensor([0, 1])
    assert beyond_chance(counts, counts.sum(1).double(), owners, more_than=5).tolist() == [False, False]


def test_of_many_words_without_a_class_hardly_any_is_called_beyond_chance() -> None:
    """2,000 words that come in bursts, labels by the toss of a coin: groups are full of them, discoveries rare."""
    found, grouped = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        documents = np.repeat(np.arange(400), 40)
        tokens = rng.zipf(1.3, len(documents)) % 2000
        bursts = rng.random(len(documents)) < 0.3
        tokens[1:][bursts[1:]] = tokens[:-1][bursts[1:]]
        counts = class_counts(
            torch.from_numpy(tokens),
            torch.from_numpy(rng.integers(0, 2, 400)[documents]),
            vocabulary_size=2000,
            class_count=2,
        )
        effective = effective_counts(torch.from_numpy(tokens), torch.from_numpy(documents), vocabulary_size=2000)
        groups = token_groups(counts, ("n", "p"))
        owners = torch.tensor([{"negative": 0, "positive": 1}.get(group, -1) for group in groups])
        found += bool(beyond_chance(counts, effective, owners, more_than=5).any())
        grouped += int((owners >= 0).sum())
    assert grouped > 20 * 20  # the groups alone
    assert found <= 20 * FALSE_DISCOVERIES + 2  # worlds with any discovery at all


def test_claims_rest_on_words_beyond_chance_and_the_papers_tables_on_all() -> None:
    counts = torch.tensor([[0, 40], [40, 0], [6, 0], [20, 20]])
    trace = Trace.from_arrays(
        offsets=[0, 1, 2, 3, 4],
        attention_scores=[0.0] * 4,
        polarity_scores=[1.0, -1.0, -1.0, 0.0],
        bias=[0.0],
        units=["great", "dull", "chance", "the"],
        class_names=("negative", "positive"),
    )
    table = token_table(trace, counts, effective=torch.tensor([40.0, 40.0, 1.0, 40.0]).double())
    assert table["group"].tolist() == ["positive", "negative", "negative", "neutral"]
    assert polar(table)["token"].tolist() == ["great", "dull"]
    assert polar(as_printed(table))["token"].tolist() == ["great", "dull", "chance"]
