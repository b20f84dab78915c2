"""Splits that a table names, and splits that are drawn."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus


def load(labels: list[str], *, seed: int = 0, texts: list[str] | None = None) -> Corpus:
    return load_corpus((texts or [f"text{number}" for number in range(len(labels))], labels), seed=seed)


def table_with_splits(splits: Sequence[str | None]) -> pd.DataFrame:
    rows = range(len(splits))
    return pd.DataFrame({"text": [f"text{row}" for row in rows], "label": [row % 2 for row in rows], "split": splits})


def sizes(corpus: Corpus) -> tuple[int, int, int]:
    return len(corpus.train), len(corpus.dev), len(corpus.test)


def test_drawn_splits_are_stratified() -> None:
    corpus = load(["a"] * 200 + ["b"] * 100)
    assert corpus.test.labels.bincount().tolist() == [20, 10]
    assert corpus.dev.labels.bincount().tolist() == [18, 9]
    assert corpus.train.labels.bincount().tolist() == [162, 81]
    assert corpus.notices == (
        "The test split was drawn from the training rows (stratified, 10%, seed 0).",
        "The dev split was drawn from the training rows (stratified, 10%, seed 0).",
    )


def test_the_same_seed_draws_the_same_splits_and_another_seed_others() -> None:
    first, again, other = (load(["a", "b"] * 50, seed=seed) for seed in (1, 1, 2))
    assert first.test.texts == again.test.texts
    assert first.dev.texts == again.dev.texts
    assert first.test.texts != other.test.texts


def test_rows_keep_their_order_within_a_drawn_split() -> None:
    corpus = load(["a", "b"] * 50)
    for split in corpus.splits().values():
        numbers = [int(text.removeprefix("text")) for text in split.texts]
        assert numbers == sorted(numbers)


@given(st.lists(st.integers(0, 12), min_size=20, max_size=60), st.integers(0, 3))
def test_every_row_is_in_one_split_and_no_text_in_two(repeats: list[int], seed: int) -> None:
    texts = [f"text{number}" for number in repeats]
    labels = ["a" if number % 2 else "b" for number in repeats]
    if len(set(labels)) < 2 or len(set(texts)) < 6:
        return
    corpus = load(["a", "b", *labels], texts=["text-a", "text-b", *texts], seed=seed)
    parts = [set(split.texts) for split in corpus.splits().values()]
    assert sum(sizes(corpus)) == len(texts) + 2
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]


def test_a_text_with_two_labels_stays_in_training() -> None:
    texts = ["torn"] * 10 + [f"text{number}" for number in range(20)]
    corpus = load(["a", "b"] * 15, texts=texts)
    assert Counter(corpus.train.texts)["torn"] == 10


@pytest.mark.parametrize("rare", [1, 2])
def test_a_class_seen_once_or_twice_stays_in_training(rare: int) -> None:
    corpus = load(["a"] * 20 + ["b"] * 20 + ["rare"] * rare)
    assert corpus.train.labels.bincount().tolist()[2] == rare


def test_the_smallest_table_gives_one_row_to_dev_and_test() -> None:
    assert sizes(load(["a", "b", "c", "d", "e"] * 2)) == (8, 1, 1)


def test_named_splits_are_read() -> None:
    corpus = load_corpus(table_with_splits(["train"] * 6 + ["Validation"] * 3 + [" test "] * 2))
    assert sizes(corpus) == (6, 3, 2)
    assert corpus.dev.texts == ("text6", "text7", "text8")
    assert corpus.notices == ()


def test_a_missing_split_is_drawn_from_the_training_rows() -> None:
    corpus = load_corpus(table_with_splits(["train"] * 40 + ["test"] * 5))
    assert sizes(corpus) == (36, 4, 5)
    assert corpus.test.texts == tuple(f"text{row}" for row in range(40, 45))
    assert corpus.notices == ("The dev split was drawn from the training rows (stratified, 10%, seed 0).",)


def test_another_column_may_name_the_splits() -> None:
    table = table_with_splits(["train"] * 8 + ["dev"] * 2 + ["test"] * 2).rename(columns={"split": "part"})
    assert sizes(load_corpus(table, split_column="part")) == (8, 2, 2)


def test_test_texts_that_occur_in_training_are_said() -> None:
    table = table_with_splits(["train"] * 8 + ["dev"] * 2 + ["test"] * 2)
    table.loc[11, "text"] = "text3"
    assert load_corpus(table).notices == ("1 test text also occurs in the training split.",)
