"""What property tests draw: texts, rows of a file, ragged lengths, scores and seeds. One place, so that rooms agree."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis.strategies import (
    SearchStrategy,
    booleans,
    characters,
    fixed_dictionaries,
    floats,
    integers,
    lists,
    randoms,
    sampled_from,
    text,
    tuples,
)

Value = TypeVar("Value")

flags = booleans()
shuffles = randoms(use_true_random=False)
texts = text(characters(exclude_categories=["Cs"]), max_size=60)

few_seeds = integers(0, 5)
seeds = integers(0, 10**6)

lengths = lists(integers(1, 6), min_size=1, max_size=12)
"""How many units each document has."""

sizes = integers(1, 40)
"""Of corpora."""

small_numbers = integers(1, 10)
"""Sizes of batches and pools, counts of distinct tokens."""

sample = lists(integers(-3, 3), min_size=1, max_size=12)
"""Few values, so that ties abound."""

repeated_texts = lists(integers(0, 12), min_size=20, max_size=60)
"""Which of thirteen texts each row of a file has."""

rows_of_files = lists(
    fixed_dictionaries(
        {
            "text": sampled_from(["good", "good film 🙂", "bad", "so, it\ngoes", "dull", "naïve", "...", "", " ", "NA"])
            | text(characters(exclude_categories=["Cs", "Cc"]), max_size=6),
            "label": sampled_from(["yes", "no", "no", "yes", "yes", "NaN", "none", None]),
            "split": sampled_from(["train", "train", "train", "dev", "test", "unused"]),
        }
    ),
    min_size=1,
    max_size=60,
)
"""Rows with copies of texts, texts without a token, labels that are none, and a split that nobody told."""

labelled_texts = lists(tuples(integers(0, 3), integers(0, 9)), min_size=20, max_size=80)
"""The class of each row, and which of its ten texts it has."""


def one_of(*values: Value) -> SearchStrategy[Value]:
    return sampled_from(values)


def score(size: float) -> SearchStrategy[float]:
    """A score between −size and size."""
    return floats(-size, size)


def ragged_scores(size: float) -> SearchStrategy[list[list[float]]]:
    """The scores of the units of one to six documents."""
    return lists(lists(score(size), min_size=1, max_size=6), min_size=1, max_size=6)


def token_lists(tokens: Sequence[int], *, longest: int) -> SearchStrategy[list[int]]:
    """The tokens of one document."""
    return lists(sampled_from(tokens), min_size=1, max_size=longest)


def documents(tokens: Sequence[int]) -> SearchStrategy[list[list[int]]]:
    """One to three short documents."""
    return lists(token_lists(tokens, longest=4), min_size=1, max_size=3)
