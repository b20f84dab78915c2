"""Corpora by name: sizes and classes of the real ones, and what is done to their texts, by hand."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from heedful.errors import DataError
from heedful.papers.sun2020 import GROUP_SIZES, TABLE_1
from heedful.studies.corpora import corpus_statistics
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.published import parse_tree
from heedful.text.recipes import (
    DATASETS,
    RECIPES,
    clean_message,
    counted_words,
    draw,
    mask_numbers,
    plain_news,
    without_breaks,
    without_footer,
    without_header,
    without_quotes,
)
from heedful.text.splits import Selection
from heedful.text.tables import read_table

RECIPE = {recipe.name: recipe for recipe in RECIPES}

SIZES = {
    "sst": ([3310, 3610], [428, 444], [912, 909]),
    "sst-5": ([1092, 2218, 1624, 2322, 1288], [139, 289, 229, 279, 165], [279, 633, 389, 510, 399]),
    "imdb": ([8673, 8539], [2191, 2113], [2189, 2174]),
    "20news-1": ([612, 624], [154, 156], [192, 195]),
    "20news-2": ([794, 790, 716], [91, 70, 79], [84, 100, 90]),
    "agnews": ([3389, 5505, 3111, 4216], [376, 612, 346, 468], [1900] * 4),
    "amazon-multi": ([900] * 5, [100] * 5, [1000] * 5),
}
TOTALS = {
    "imdb-ratings": [22_500, 2_500, 25_000],
    "yelp10k": [8_100, 900, 1_000],
    "yahoo-1k": [810, 90, 100],
    "pl-scale": [4_056, 450, 500],
}


Select = Callable[..., Selection]


def taken(name: str, table: pd.DataFrame, seed: int) -> Selection:
    how = RECIPE[name].how
    assert not isinstance(how, str)
    return how(table, seed)


@pytest.fixture(scope="session")
def select(data_folder: Path) -> Select:
    """The documents of a corpus without their tokens, which take most of the time; each is read once."""

    @cache
    def table(files: tuple[str, ...]) -> pd.DataFrame:
        return pd.concat([read_table(data_folder / file) for file in files], ignore_index=True)

    @cache
    def chosen(name: str, seed: int = 0) -> Selection:
        return taken(name, table(RECIPE[name].files), seed)

    return chosen


def counts(selection: Selection) -> list[list[int]]:
    classes = len(selection.class_names)
    return [np.bincount(labels, minlength=classes).tolist() for _, labels in selection.splits.values()]


@pytest.mark.parametrize("name", list(SIZES))
def test_splits_and_classes_are_as_stated(select: Select, name: str) -> None:
    assert counts(select(name)) == list(SIZES[name])


@pytest.mark.parametrize("name", list(TOTALS))
def test_drawn_splits_are_a_tenth_each(select: Select, name: str) -> None:
    """Copies of a text move together, so that a tenth is met within a few documents."""
    found = [sum(split) for split in counts(select(name))]
    assert sum(found) == sum(TOTALS[name])
    assert np.abs(np.array(found) - TOTALS[name]).max() <= 6


def test_every_sample_of_the_data_folder_has_its_sizes_stated(data_folder: Path) -> None:
    at_hand = {name for name, recipe in RECIPE.items() if all((data_folder / file).is_file() for file in recipe.files)}
    assert at_hand <= {*SIZES, *TOTALS}


def test_imdb_has_no_tags_and_no_test_review_that_was_trained_on(select: Select) -> None:
    chosen = select("imdb")
    assert not any("<br" in text for texts, _ in chosen.splits.values() for text in texts)
    assert set(chosen.splits["test"][0]).isdisjoint(chosen.splits["train"][0])
    assert chosen.notices[0] == "6,753 reviews of 400 words or more left out."


@pytest.mark.parametrize("name", ["sst", "imdb", "20news-1", "20news-2"])
def test_sizes_are_those_of_table_1(select: Select, name: str) -> None:
    chosen = select(name)
    for split, row in zip(chosen.splits, counts(chosen), strict=True):
        assert dict(zip(chosen.class_names, row, strict=True)) == TABLE_1[name].sizes[split]


def test_a_seed_draws_other_messages_in_the_same_sizes(select: Select) -> None:
    first, second = select("20news-1"), select("20news-1", 1)
    assert counts(first) == counts(second)
    assert first.splits["test"][0] != second.splits["test"][0]
    assert set(first.splits["test"][0]).isdisjoint(first.splits["train"][0])


def test_newsgroup_vocabulary_is_of_the_training_split(data_folder: Path) -> None:
    assert data_folder.is_dir()
    corpus = load_corpus("20news-1")
    assert len(corpus.vocabulary) - 1 == len(
        {token for row in range(len(corpus.train)) for token in _tokens(corpus, row)}
    )
    found = corpus_statistics(corpus)["paper"]["columns"]
    assert found[1]["why"].startswith("Ours is the training split's; of all three splits")
    assert "qqq" in corpus.vocabulary
    assert not any(any(map(str.isdigit, token)) for token in corpus.vocabulary.tokens)


def _tokens(corpus: Corpus, row: int) -> list[str]:
    return [token.lower() for token in corpus.train.surface(row)]


def test_samples_stand_beside_the_second_paper(data_folder: Path) -> None:
    assert data_folder.is_dir()
    paper = corpus_statistics(load_corpus("yahoo-1k"))["paper"]
    assert paper["table"] == "Serrano & Smith 2019, Table 1, yahoo"
    assert [line["paper"] for line in paper["columns"]] == ["104 ± 114", "6.2 ± 5.9", "1,400,000", "50,000", "10"]
    assert paper["remark"] == "A sample of the paper's corpus."


def test_the_paper_groups_sst_by_words_without_punctuation(select: Select) -> None:
    """Evidence for what `heedful data stats sst` says: \\w+ tokens give the published vocabulary and groups."""
    splits = select("sst").splits
    everything = {word for texts, _ in splits.values() for text in texts for word in re.findall(r"\w+", text.lower())}
    assert len(everything) + 3 == TABLE_1["sst"].vocabulary  # with tokens for padding, the unknown and one more
    frequency: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text, label in zip(*splits["train"], strict=True):
        frequency[label].update(re.findall(r"\w+", text.lower()))
    groups = Counter(_group(frequency[1][word], frequency[0][word]) for word in {*frequency[0], *frequency[1]})
    assert {name: groups[name] for name in GROUP_SIZES["sst"]} == GROUP_SIZES["sst"]


def _group(positive: int, negative: int) -> str:
    association = (positive - negative) / (positive + negative)
    if abs(association) < 0.1 and abs(positive - negative) < 5:
        return "neutral"
    return (
        "positive" if association > 0.5 and positive > 5 else "negative" if association < -0.5 and negative > 5 else ""
    )


def test_trees_written_from_the_real_phrases_are_read_back(data_folder: Path) -> None:
    with gzip.open(data_folder / "sst5_tree.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for _, line in zip(range(500), lines, strict=False)]
    for row in rows:
        tree = parse_tree(_brackets(row["phrases"], row["text"].split()))
        assert " ".join(tree.tokens) == row["text"]
        assert [list(phrase) for phrase in tree.phrases] == row["phrases"]
        assert tree.label == row["label"]


def _brackets(phrases: list[list[int]], tokens: list[str]) -> str:
    """The tree in the treebank's notation; phrases come parents first."""
    todo = iter(phrases)

    def write() -> str:
        label, start, end = next(todo)
        if end - start == 1:
            word = tokens[start].replace("(", "-LRB-").replace(")", "-RRB-").replace("/", "\\/").replace("*", "\\*")
            return f"({label} {word})"
        held = write()
        return f"({label} {held} {write()})"

    return write()


def test_a_tree_by_hand() -> None:
    tree = parse_tree("(3 (2 It) (4 (2 is) (4 and\\/or -LRB-)))")
    assert tree.tokens == ("It", "is", "and/or", "(")
    assert tree.phrases == ((3, 0, 4), (2, 0, 1), (4, 1, 4), (2, 1, 2), (4, 2, 4))
    assert tree.label == 3


@pytest.mark.parametrize("line", ["", "(3", "(3 (2 It)", "(3 a))", "(7 a)", "a (3 b)", "(3)", "(3 a) (2 b)"])
def test_broken_trees_are_refused(line: str) -> None:
    with pytest.raises(DataError, match="This is not a sentiment tree"):
        parse_tree(line)


MESSAGE = """From: goalie@rink.org (A Goalie)
Subject: Re: Playoffs
Lines: 12

In article <1993Apr5@rink.org> fan@stands.edu writes:
>Who won game 7?
>
| I missed it.

The Leafs won 4-3 in 1992.
fan@stands.edu (A Fan) wrote: something
They had 1,500.50 fans.

--
A Goalie, Rink 12
"""


def test_a_message_by_hand() -> None:
    assert clean_message(MESSAGE) == "The Leafs won qqq-qqq in qqq.\nThey had qqq fans."


def test_the_parts_of_a_message_go_one_by_one() -> None:
    assert without_header(MESSAGE).startswith("In article")
    assert without_header("no empty line") == ""
    assert without_footer("Hello.\n\n--\nMe") == "Hello.\n"
    assert without_footer("Hello.\n-----\nMe") == "Hello."
    assert without_footer("One paragraph,\ntwo lines.") == "One paragraph,\ntwo lines."
    assert (
        without_quotes("> quoted\nown\n| quoted\nIn article <1> x\nHe said: yes\nwriters write") == "own\nwriters write"
    )
    assert mask_numbers("the 3rd of 20 in Win95, 2.5 and 7.") == "the qqq of qqq in qqq, qqq and qqq."


def test_reviews_by_hand() -> None:
    assert without_breaks("Good.<br /><br />Bad.<br>  End") == "Good. Bad. End"
    assert counted_words("It's a well-made film!<br />Really (really).") == 8  # it's a well made film br really really


def test_news_by_hand() -> None:
    assert plain_news("Oil #39;s price  quot;up quot;\\says AT amp;T  #36;10") == 'Oil\'s price "up " says AT &T $10'


def test_a_draw_by_hand() -> None:
    pools = {"a": [f"a{n}" for n in range(10)], "b": [f"b{n}" for n in range(20)]}
    drawn = draw(pools, {"train": {"b": 8, "a": 4}, "test": {"b": 3, "a": 2}}, np.random.default_rng(0))
    assert [np.bincount(labels).tolist() for _, labels in drawn.values()] == [[4, 8], [2, 3]]
    texts = [*drawn["train"][0], *drawn["test"][0]]
    assert len(set(texts)) == 17
    assert all(
        (text[0] == "b") == label for texts, labels in drawn.values() for text, label in zip(texts, labels, strict=True)
    )


def test_a_draw_keeps_copies_together_and_shares_what_there_is() -> None:
    pool = [f"text {n // 2}" for n in range(20)]
    for seed in range(20):
        drawn = draw({"a": pool}, {"train": {"a": 60}, "test": {"a": 40}}, np.random.default_rng(seed))
        assert [len(texts) for texts, _ in drawn.values()] == [12, 8]
        assert set(drawn["train"][0]).isdisjoint(drawn["test"][0])


def test_a_file_with_other_classes_is_refused() -> None:
    table = pd.DataFrame({"text": [f"t {n}" for n in range(20)], "label": [n % 3 for n in range(20)], "split": "all"})
    with pytest.raises(DataError, match="5 classes were expected, the file has 3"):
        taken("yelp10k", table, 0)


def test_recipes_and_datasets_are_the_same_corpora() -> None:
    assert set(RECIPE) == {name for name, dataset in DATASETS.items() if dataset.files}
    assert all(DATASETS[name].files == recipe.files for name, recipe in RECIPE.items())
