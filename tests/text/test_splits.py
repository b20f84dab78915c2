"""Splits that a table names, and splits that are drawn."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given

from heedful.errors import DataError
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.splits import hold_out
from tests import strategies


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


@given(strategies.repeated_texts, strategies.few_seeds)
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


@pytest.mark.parametrize("seed", range(5))
def test_no_text_with_two_labels_is_ever_drawn(seed: int) -> None:
    """Forty texts are both 'a' and 'b'; dev and test are drawn from the four that are one of them."""
    torn = [f"torn{number}" for number in range(40)]
    own = [f"own{number}" for number in range(8)]
    corpus = load(["a"] * 44 + ["b"] * 44, texts=[*torn, *own[:4], *torn, *own[4:]], seed=seed)
    for split in (corpus.dev, corpus.test):
        assert set(split.texts) <= set(own)
        assert set(split.labels.tolist()) == {0, 1}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("different", [2, 3, 5])
def test_the_last_text_of_a_class_stays_in_training(different: int, seed: int) -> None:
    """However large the share that is to be held out, and however often texts are copied."""
    for copies in (1, 4):
        texts = [f"{label}{number}" for label in "ab" for number in range(different)] * copies
        labels = [0 if text[0] == "a" else 1 for text in texts]
        held = hold_out(texts, labels, share=0.99, seed=seed)
        kept = {text for text, out in zip(texts, held, strict=True) if not out}
        assert sorted(text[0] for text in kept) == ["a", "b"]


@pytest.mark.parametrize("rare", [1, 2])
def test_a_class_seen_once_or_twice_stays_in_training(rare: int) -> None:
    corpus = load(["a"] * 20 + ["b"] * 20 + ["rare"] * rare)
    assert corpus.train.labels.bincount().tolist()[2] == rare


def shares(corpus: Corpus) -> list[float]:
    """Of dev and test, in rows of the whole."""
    return [size / sum(sizes(corpus)) for size in sizes(corpus)[1:]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [2, 40, 300])
def test_copies_do_not_change_the_shares(most: int, seed: int) -> None:
    """Of both classes half of the rows are copies: every text twice, or a few texts very often."""
    copies = [
        f"{label} {number // 2 if most == 2 else number % (300 // most)}" for label in "ab" for number in range(300)
    ]
    texts = [*copies, *(f"{label} own {number}" for label in "ab" for number in range(300))]
    labels = [text[0] for text in texts]
    corpus = load(labels, texts=texts, seed=seed)
    assert shares(corpus) == pytest.approx([0.09, 0.1], abs=0.005)
    for split in corpus.splits().values():
        assert split.labels.bincount().tolist() == pytest.approx([len(split) / 2] * 2, rel=0.06)
    assert all(notice.endswith(f"seed {seed}).") for notice in corpus.notices)


def test_texts_with_many_copies_are_passed_over() -> None:
    """A tenth of a hundred rows each: of 'a' ten rows of texts that occur once, never the one that occurs 60 times."""
    texts = [*["a"] * 60, *(f"a{row}" for row in range(40)), *(f"b{row}" for row in range(100))]
    for seed in range(10):
        corpus = load(["a"] * 100 + ["b"] * 100, texts=texts, seed=seed)
        assert Counter(corpus.train.texts)["a"] == 60
        assert corpus.test.labels.bincount().tolist() == [10, 10]
        assert corpus.dev.labels.bincount().tolist() == [7, 9]  # no more than a quarter of 30 different texts


def test_a_share_that_cannot_be_had_is_said() -> None:
    """Four texts, 25 copies of each: one goes to test, one to dev."""
    texts = [f"{label}{row % 4}" for label in "ab" for row in range(100)]
    corpus = load([text[0] for text in texts], texts=texts)
    assert sizes(corpus) == (100, 50, 50)
    assert corpus.notices == (
        "The test split was drawn from the training rows (stratified, 10%, seed 0). It has 25% of them, as copies of a "
        "text stay together and classes are to be in every split.",
        "The dev split was drawn from the training rows (stratified, 10%, seed 0). It has 33% of them, as copies of a "
        "text stay together and classes are to be in every split.",
    )


@pytest.mark.parametrize("few", [3, 4, 5, 9])
def test_a_class_with_three_texts_is_in_every_split(few: int) -> None:
    corpus = load(["a"] * 100 + ["b"] * 100 + ["few"] * few)
    assert [split.labels.bincount().tolist()[2] for split in (corpus.dev, corpus.test)] == [1, 1]
    assert not any("lack" in notice for notice in corpus.notices)


@given(strategies.labelled_texts, strategies.few_seeds)
def test_every_class_with_three_different_texts_is_in_every_split(rows: list[tuple[int, int]], seed: int) -> None:
    texts = [f"{label} {number}" for label, number in rows]
    different = Counter(text[0] for text in set(texts))
    if len(different) < 2 or max(different.values()) < 3:
        return
    corpus = load([text[0] for text in texts], texts=texts, seed=seed)
    for number, name in enumerate(corpus.class_names):
        inside = [number in split.labels.tolist() for split in corpus.splits().values()]
        assert inside == ([True] * 3 if different[name] >= 3 else [True, False, False])


def test_a_class_that_cannot_be_held_out_is_said() -> None:
    corpus = load(["a"] * 50 + ["b"] * 50 + ["rare"] * 2 + ["copied"] * 9, texts=[
        *(f"text{row}" for row in range(102)), *["the same"] * 9,
    ])  # fmt: skip
    assert corpus.notices[2:] == (
        "The test and dev splits lack the classes 'copied' and 'rare': a class is drawn from if it has 3 different "
        "texts of its own.",
    )


def test_a_class_that_a_given_split_lacks_is_said() -> None:
    table = table_with_splits(["train"] * 40 + ["test"] * 5)
    table.loc[40:, "label"] = 1
    table.loc[:1, "label"] = 2
    assert load_corpus(table).notices[1:] == ("The test split lacks the classes '0' and '2'.",)


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


WORDS = ["NaN", "nan", "null", "NULL", "N/A", "n/a", "<NA>", "#N/A", " NaN "]


def with_words(words: Sequence[str]) -> pd.DataFrame:
    """Twenty rows of two classes, and one for each of the words."""
    labels = ["a", "b"] * 10 + list(words)
    return pd.DataFrame({"text": [f"text{row}" for row in range(len(labels))], "label": labels})


@pytest.mark.parametrize("word", WORDS)
def test_a_word_for_no_label_is_no_class(word: str) -> None:
    corpus = load_corpus(with_words([word] * 3))
    assert corpus.class_names == ("a", "b")
    assert sum(sizes(corpus)) == 20
    assert corpus.notices[0] == (
        f"3 rows left out: column 'label' holds '{word.strip()}', which is taken for no label. If it is a class, keep "
        "it with --missing-labels keep, in Python missing_labels='keep'."
    )


@pytest.mark.parametrize("word", ["nano", "nothing", "0", "unknown", "false", "-"])
def test_other_words_are_classes(word: str) -> None:
    corpus = load_corpus(with_words([word] * 3))
    assert set(corpus.class_names) == {"a", "b", word}
    assert len(corpus.notices) == 2


@pytest.mark.parametrize("word", ["none", "None", "NA", "na"])
def test_a_word_that_may_be_a_class_is_taken_for_one_and_said(word: str) -> None:
    corpus = load_corpus(with_words([word] * 3))
    assert set(corpus.class_names) == {"a", "b", word}
    assert corpus.notices[0] == (
        f"Column 'label' holds '{word}' in 3 rows, taken for a class. If that means that there is no label, remove "
        "these rows."
    )


def test_a_word_for_no_label_is_a_class_where_that_is_said() -> None:
    corpus = load_corpus(with_words(["none"] * 4 + ["NaN"] * 4), missing_labels="keep")
    assert corpus.class_names == ("NaN", "a", "b", "none")
    assert not any("left out" in notice for notice in corpus.notices)


def test_an_empty_label_is_never_a_class() -> None:
    table = with_words(["", " ", "none", "none", "none"])
    table.loc[0, "label"] = None
    corpus = load_corpus(table, missing_labels="keep")
    assert corpus.class_names == ("a", "b", "none")
    assert corpus.notices[0] == "3 rows left out: column 'label' holds no label."


def test_only_skip_or_keep_can_be_said() -> None:
    with pytest.raises(DataError, match=r"told by skip or keep \(missing_labels\), not 'drop'\."):
        load_corpus(with_words([]), missing_labels="drop")


MISSING = "2 rows left out: column 'label' holds no label."
SAID = "3 rows left out: column 'label' holds 'NaN' and 'null', which is taken for no label."


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet", "frame", "lists"])
def test_every_form_of_data_says_the_same_of_missing_labels(kind: str, tmp_path: Path) -> None:
    """Two labels are missing, three are words."""
    table = with_words(["NaN", "null", "NaN", "", ""])
    table["label"] = table["label"].where(table["label"] != "", None)
    path = tmp_path / f"x.{kind}"
    write = {
        "csv": lambda: table.to_csv(path, index=False),
        "tsv": lambda: table.to_csv(path, sep="\t", index=False),
        "jsonl": lambda: table.to_json(path, orient="records", lines=True),
        "json": lambda: table.to_json(path, orient="records"),
        "parquet": lambda: table.to_parquet(path),
    }
    if kind in write:
        write[kind]()
    source: Any = {"frame": table, "lists": (table["text"].tolist(), table["label"].tolist())}.get(kind, path)
    corpus = load_corpus(source)
    assert corpus.class_names == ("a", "b")
    assert corpus.notices[0] == MISSING
    assert corpus.notices[1].startswith(SAID)
    assert load_corpus(source, missing_labels="keep").notices[0] == MISSING


def test_a_table_of_one_row_is_too_small_and_not_one_of_measurements() -> None:
    with pytest.raises(DataError, match=r"At least 10 labelled texts are needed, there are 1\."):
        load_corpus(pd.DataFrame({"text": ["x"], "label": [1]}))
