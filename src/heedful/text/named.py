"""The named corpora that are found, not made: which rows, which classes, which splits.

A recipe says which files of the data folder a corpus is read from and what is taken from them. Splits that a paper
prints are drawn in its sizes, with the seed; all others are official or drawn as for any table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedful.errors import DataError
from heedful.text import sources
from heedful.text.corpus import Corpus, Labelled, build_corpus
from heedful.text.newsgroups import clean_message
from heedful.text.readers import read_table
from heedful.text.reviews import YAHOO_TOPICS, counted_words, plain_news, without_breaks
from heedful.text.sources import Source
from heedful.text.split_columns import NONE
from heedful.text.splits import divide, label_rows
from heedful.text.tokenize import Tokenizer

WORDS = Tokenizer("words")
PLAIN = Tokenizer("alphanumeric")
"""How Sun & Lu cut their four corpora, found by trial: on SST it gives their vocabulary (16,171 and three marks of
their own), their mean length of 17.5 and their groups of 412, 265 and 1,384 tokens; other ways to cut miss them."""

STARS = ("1", "2", "3", "4", "5")
MOST_WORDS = 400
"""Sun & Lu keep IMDB reviews with fewer words than this."""

Sizes = Mapping[str, Sequence[int]]
"""Documents per split and class, in the order of the class names."""

IMDB_SIZES: Sizes = {"train": (8673, 8539), "dev": (2191, 2113), "test": (2189, 2174)}
NEWS_1_SIZES: Sizes = {"train": (612, 624), "dev": (154, 156), "test": (192, 195)}
NEWS_2_SIZES: Sizes = {"train": (794, 790, 716), "dev": (91, 70, 79), "test": (84, 100, 90)}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The documents of a corpus before they are tokenised."""

    splits: Mapping[str, Labelled]
    class_names: tuple[str, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A found corpus: its files, where they come from, and what is taken from them with a seed."""

    name: str
    about: str
    files: tuple[str, ...]
    select: Callable[[pd.DataFrame, int], Selection]
    sources: tuple[Source, ...] = ()
    tokenizer: Tokenizer = WORDS

    def selection(self, paths: Sequence[Path], seed: int) -> Selection:
        """The documents, from the files in their order."""
        return self.select(pd.concat([read_table(path) for path in paths], ignore_index=True), seed)

    def load(self, paths: Sequence[Path], seed: int) -> Corpus:
        chosen = self.selection(paths, seed)
        return build_corpus(
            name=self.name,
            splits=chosen.splits,
            class_names=chosen.class_names,
            tokenizer=self.tokenizer,
            notices=chosen.notices,
        )


def draw(pools: Sequence[Sequence[str]], sizes: Sizes, rng: np.random.Generator) -> dict[str, Labelled]:
    """Splits of the given sizes from the texts of each class, in random order; copies of a text stay together.

    Where a class has too few texts, every split gets its share of what there is.
    """
    taken: dict[str, list[tuple[str, int]]] = {split: [] for split in sizes}
    for label, pool in enumerate(pools):
        texts = _shuffled(pool, rng)
        for split, count in _shares({split: sizes[split][label] for split in sizes}, len(texts)).items():
            taken[split] += [(text, label) for text in texts[:count]]
            texts = texts[count:]
    return {split: _unzip([rows[place] for place in rng.permutation(len(rows))]) for split, rows in taken.items()}


def _shuffled(texts: Sequence[str], rng: np.random.Generator) -> list[str]:
    """In random order, each text followed by its copies."""
    distinct = pd.Series(texts, dtype=object).value_counts(sort=False)
    return [text for place in rng.permutation(len(distinct)) for text in [distinct.index[place]] * distinct.iloc[place]]


def _shares(wanted: Mapping[str, int], available: int) -> dict[str, int]:
    total = sum(wanted.values())
    return {name: min(count, count * available // total) for name, count in wanted.items()}


def _unzip(rows: Sequence[tuple[str, int]]) -> Labelled:
    return [text for text, _ in rows], [label for _, label in rows]


def _labelled(
    table: pd.DataFrame,
    seed: int,
    *,
    label: str = "label",
    class_names: Sequence[str] = (),
    notices: Sequence[str] = (),
) -> Selection:
    """The table's own splits, missing ones drawn, and readable names for classes that are numbers."""
    splits = "split" if "train" in set(table["split"]) else NONE
    labelling = label_rows(table, text_column="text", label_column=label, split_column=splits)
    if class_names and len(class_names) != len(labelling.class_names):
        raise DataError(f"{len(class_names)} classes were expected, the file has {len(labelling.class_names)}.")
    divided, said = divide(labelling, seed=seed)
    names = tuple(class_names or labelling.class_names)
    return Selection(splits=divided, class_names=names, notices=(*notices, *labelling.notices, *said))


def _sst(table: pd.DataFrame, _seed: int) -> Selection:
    return _labelled(table, 0, class_names=("negative", "positive"))


def _sst_five(table: pd.DataFrame, _seed: int) -> Selection:
    names = ("very negative", "negative", "neutral", "positive", "very positive")
    return _labelled(table, 0, class_names=names)


def _imdb(table: pd.DataFrame, seed: int) -> Selection:
    """Sun & Lu's IMDB: short reviews; train and dev from the training half, test from the test half."""
    short = _in_order(table[[counted_words(text) < MOST_WORDS for text in table["text"]]])
    short = short.assign(text=[without_breaks(text) for text in short["text"]])
    training, test = short[short["split"] == "train"], short[short["split"] == "test"]
    fresh = test[~test["text"].isin(set(training["text"]))]
    rng = np.random.default_rng(seed)
    splits = draw(_pools(training, (0, 1)), {name: IMDB_SIZES[name] for name in ("train", "dev")}, rng)
    splits |= draw(_pools(fresh, (0, 1)), {"test": IMDB_SIZES["test"]}, rng)
    notices = (
        f"{len(table) - len(short):,} reviews of {MOST_WORDS} words or more left out.",
        f"{len(test) - len(fresh):,} test reviews left out: they also occur in the training half.",
        f"Splits were drawn in the sizes of the paper (seed {seed}); test reviews come from the test half.",
    )
    return Selection(splits=splits, class_names=("negative", "positive"), notices=notices)


def _newsgroups(groups: Mapping[str, str], sizes: Sizes) -> Callable[[pd.DataFrame, int], Selection]:
    """Groups as classes under shorter names, messages cleaned, splits drawn from both parts of the split by date."""

    def select(table: pd.DataFrame, seed: int) -> Selection:
        chosen = _in_order(table[table["label"].isin(list(groups))])
        cleaned = chosen.assign(text=[clean_message(text) for text in chosen["text"]])
        filled = cleaned[cleaned["text"].str.contains(r"\w")]
        splits = draw(_pools(filled, tuple(groups)), sizes, np.random.default_rng(seed))
        used = sum(len(texts) for texts, _ in splits.values())
        notices = (
            f"{len(chosen) - len(filled):,} messages left out: nothing but header, signature and quotes.",
            f"Splits were drawn from both parts of the split by date: {used:,} of {len(filled):,} (seed {seed}).",
        )
        return Selection(splits=splits, class_names=tuple(groups.values()), notices=notices)

    return select


def _ag_news(table: pd.DataFrame, seed: int) -> Selection:
    """News with its HTML codes read; the title stands before the text without a mark of its own."""
    titles = table["title"] if "title" in table else pd.Series("", index=table.index)
    texts = [_joined(text, title) for text, title in zip(table["text"], titles.fillna(""), strict=True)]
    training = int((table["split"] == "train").sum())
    part = (f"{training:,} of the official 120,000 training rows.",) if training < 120_000 else ()
    return _labelled(table.assign(text=texts), seed, notices=part)


def _joined(text: str, title: str) -> str:
    start = f"{title} . "
    return plain_news(f"{title} {text[len(start) :]}" if title and text.startswith(start) else text)


def _ratings(table: pd.DataFrame, seed: int) -> Selection:
    """All IMDB reviews with the stars their writers gave; 5 and 6 do not occur."""
    texts = [without_breaks(text) for text in table["text"]]
    return _labelled(_in_order(table.assign(text=texts)), seed, label="rating")


def _scale(table: pd.DataFrame, seed: int) -> Selection:
    return _labelled(table, seed, label="label3", class_names=("low", "middle", "high"))


def _stars(table: pd.DataFrame, seed: int) -> Selection:
    return _labelled(table, seed, class_names=STARS)


def _amazon_multi(table: pd.DataFrame, seed: int) -> Selection:
    """The validation part is trained on: the training part of 200,000 reviews is not used."""
    return _stars(table.assign(split=table["split"].replace({"val": "train"})), seed)


def _topics(table: pd.DataFrame, seed: int) -> Selection:
    return _labelled(table, seed, class_names=YAHOO_TOPICS)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows by class and number, so that a draw does not depend on the order in which a file lists them."""
    return table.sort_values(["split", "label", "id"], kind="stable") if "id" in table else table


def _pools(table: pd.DataFrame, labels: Sequence[Any]) -> list[list[str]]:
    return [table.loc[table["label"] == label, "text"].tolist() for label in labels]


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="sst",
        about="Stanford Sentiment Treebank, positive or negative sentences",
        files=("sst2_tree.jsonl.gz",),
        select=_sst,
        sources=(sources.TREEBANK,),
        tokenizer=PLAIN,
    ),
    Recipe(
        name="sst-5",
        about="Stanford Sentiment Treebank, five degrees from very negative to very positive",
        files=("sst5_tree.jsonl.gz",),
        select=_sst_five,
        sources=(sources.TREEBANK,),
        tokenizer=PLAIN,
    ),
    Recipe(
        name="imdb",
        about="film reviews under 400 words, positive or negative, in the sizes of Sun & Lu",
        files=("imdb_train.jsonl.gz", "imdb_test.jsonl.gz"),
        select=_imdb,
        sources=(sources.IMDB,),
        tokenizer=PLAIN,
    ),
    Recipe(
        name="imdb-ratings",
        about="all film reviews of IMDB with their ratings 1–4 and 7–10",
        files=("imdb_train.jsonl.gz", "imdb_test.jsonl.gz"),
        select=_ratings,
        sources=(sources.IMDB,),
    ),
    Recipe(
        name="20news-1",
        about="newsgroup messages on baseball or hockey, in the sizes of Sun & Lu",
        files=("20news_bydate_5cat.jsonl.gz",),
        select=_newsgroups({"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"}, NEWS_1_SIZES),
        sources=(sources.NEWSGROUPS,),
        tokenizer=PLAIN,
    ),
    Recipe(
        name="20news-2",
        about="newsgroup messages on motorcycles, medicine or guns, in the sizes of Sun & Lu",
        files=("20news_bydate_5cat.jsonl.gz",),
        select=_newsgroups(
            {"rec.motorcycles": "motorcycles", "sci.med": "med", "talk.politics.guns": "guns"}, NEWS_2_SIZES
        ),
        sources=(sources.NEWSGROUPS,),
        tokenizer=PLAIN,
    ),
    Recipe(
        name="agnews",
        about="news in four topics",
        files=("agnews_train_pool.jsonl.gz", "agnews_official_test.jsonl.gz"),
        select=_ag_news,
        sources=(sources.AG_NEWS, sources.AG_NEWS_PARQUET),
    ),
    Recipe(
        name="yelp10k",
        about="10,000 Yelp reviews with stars 1–5, unbalanced",
        files=("yelp10k_stars.jsonl.gz",),
        select=_stars,
    ),
    Recipe(
        name="amazon-multi",
        about="10,000 English Amazon reviews with stars 1–5, balanced",
        files=("amazon_multi_en_stars.jsonl.gz",),
        select=_amazon_multi,
        sources=(sources.AMAZON_MULTI,),
    ),
    Recipe(
        name="yahoo-1k",
        about="1,000 Yahoo! Answers questions in ten topics",
        files=("yahoo10_1k.jsonl.gz",),
        select=_topics,
    ),
    Recipe(
        name="pl-scale",
        about="5,006 film reviews of four critics, low, middle or high rating",
        files=("pl_scale.jsonl.gz",),
        select=_scale,
        sources=(sources.SCALE,),
    ),
    Recipe(
        name="yahoo",
        about="Yahoo! Answers, 1,460,000 questions in ten topics",
        files=("yahoo_answers.parquet",),
        select=_topics,
        sources=(sources.YAHOO,),
    ),
    Recipe(
        name="imdb-10",
        about="IMDB reviews of Diao et al. with ratings 1–10",
        files=("imdb10.parquet",),
        select=_labelled,
        sources=(sources.IMDB_TEN,),
    ),
    Recipe(
        name="amazon",
        about="3,650,000 Amazon reviews with stars 1–5",
        files=("amazon_review_full.parquet",),
        select=_stars,
        sources=(sources.AMAZON,),
    ),
    Recipe(
        name="yelp",
        about="700,000 Yelp reviews with stars 1–5",
        files=("yelp_review_full.parquet",),
        select=_stars,
        sources=(sources.YELP, sources.YELP_PARQUET),
    ),
)


def with_seed(recipe: Recipe, find: Callable[[str], Path]) -> Callable[[int], Corpus]:
    """The recipe as a function of the seed alone, given where files are found."""
    return lambda seed: recipe.load([find(name) for name in recipe.files], seed)
