"""The corpora that have a name. Of those that are found: which rows of which files, which classes, which splits.

Splits that a paper prints are drawn in its sizes, with the seed; all others are official or drawn as for any table.
"""

import html
import os
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heedful.errors import DataError
from heedful.papers.sun2020 import TABLE_1
from heedful.text import published as sources
from heedful.text import synthetic
from heedful.text.columns import NONE
from heedful.text.corpus import Corpus, Labelled, build_corpus
from heedful.text.published import SST_2, SST_5, Source
from heedful.text.splits import Selection, label_rows, select
from heedful.text.tables import read_table, table_of
from heedful.text.tokenize import Tokenizer

DATA_VARIABLE = "HEEDFUL_DATA"
WORDS = Tokenizer("words")
PLAIN = Tokenizer("alphanumeric")
"""How Sun & Lu cut their four corpora, found by trial: on SST it gives their vocabulary and three marks of their own,
their mean length and their groups of tokens; other ways to cut miss them."""

MOST_WORDS = 400  # Sun & Lu keep IMDB reviews with fewer words than this

YAHOO_TOPICS = (
    *("society", "science", "health", "education", "computers"),
    *("sports", "business", "entertainment", "family", "politics"),
)

NUMBER = "qqq"
"""Stands for every token with a digit, as in the preprocessing of Jain & Wallace 2019 that Sun & Lu follow."""

_BREAK = re.compile(r"<br\s*/?>")
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation.replace("'", ""), " "))
_ENTITY = re.compile(r" ?(?:#(\d+)|\b(quot|amp|lt|gt));")
_QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")
_WITH_DIGIT = re.compile(r"\w*\d\w*(?:[.,]\d+)*")


Select = Callable[[pd.DataFrame, int], Selection]  # what is taken from a table with a seed


@dataclass(frozen=True)
class Dataset:
    """A corpus by name: what it is, how to get it, and where its files come from, the first choice first."""

    name: str
    about: str
    how: str | Select
    """The description of a corpus that is made on the spot, or what is taken from the table in the files."""
    sources: tuple[Source, ...] = ()
    only: tuple[str, ...] = ()  # the files that it is read from, where they are not all that the first source makes
    tokenizer: Tokenizer = WORDS

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the data folder that it is read from; none where it is made."""
        return self.only or tuple(name for source in self.sources[:1] for name in source.makes)

    @property
    def available(self) -> bool:
        return all((data_folder() / name).is_file() for name in self.files)

    def load(self, seed: int) -> Corpus:
        """Make the corpus, or read it from its files, in their order."""
        if isinstance(self.how, str):
            return synthetic.described(self.how, seed, name=self.name)
        paths = [data_folder() / name for name in self.files]
        if absent := [path for path in paths if not path.is_file()]:
            raise DataError(
                f"The file '{absent[0].name}' is not in the data folder '{data_folder()}'. Fetch it (`heedful data "
                f"fetch`), put it there, or set {DATA_VARIABLE} to the folder that holds it."
            )
        chosen = self.how(pd.concat([read_table(path) for path in paths], ignore_index=True), seed)
        return build_corpus(name=self.name, tokenizer=self.tokenizer, **vars(chosen))


def data_folder() -> Path:
    """Where files of named corpora lie: $HEEDFUL_DATA, or the user's cache."""
    given = os.environ.get(DATA_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "heedful" / "data"


def without_breaks(text: str) -> str:
    """A review without its line-break tags."""
    return " ".join(_BREAK.sub(" ", text).split())


def counted_words(text: str) -> int:
    """Words as Sun & Lu's IMDB counts them: no punctuation, but each `<br />` is the word `br`.

    Found by trial: the reviews of the training half with fewer than 400 of these are as many of either class as the
    paper has in train and dev together; other ways to count miss both numbers.
    """
    return len(text.translate(_PUNCTUATION).split())


def plain_news(text: str) -> str:
    """AG News with its HTML codes read (`Web #39;s` → `Web's`) and its backslash line breaks as spaces."""
    read = _ENTITY.sub(lambda code: html.unescape(f"&#{code[1]};" if code[1] else f" &{code[2]};"), text)
    return " ".join(read.replace("\\", " ").split())


def clean_message(message: str) -> str:
    """The writer's own words: no header, no signature, no quoted lines, `qqq` for numbers.

    The rules are those that scikit-learn documents for `remove=("headers", "footers", "quotes")`, which the papers of
    this field use: what identifies the writer rather than the topic should not help a classifier.
    """
    return mask_numbers(without_quotes(without_footer(without_header(message)))).strip()


def without_header(message: str) -> str:
    """What follows the first empty line."""
    return message.partition("\n\n")[2]


def without_footer(message: str) -> str:
    """What stands before the last line that is empty or made of hyphens; all of it where there is no such line. A
    message of several paragraphs without a signature loses its last paragraph: the known price of this rule."""
    lines = message.strip().split("\n")
    bounds = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: bounds[-1]]) if bounds and bounds[-1] > 0 else message


def without_quotes(message: str) -> str:
    """Without the lines that quote another message or announce a quotation."""
    return "\n".join(line for line in message.split("\n") if not _QUOTE.search(line))


def mask_numbers(message: str) -> str:
    """`qqq` for every word with a digit: 4 goals in 1992-93 → qqq goals in qqq-qqq."""
    return _WITH_DIGIT.sub(NUMBER, message)


def draw(
    pools: Mapping[str, Sequence[str]], sizes: Mapping[str, Mapping[str, int]], rng: np.random.Generator
) -> dict[str, Labelled]:
    """Splits of the given sizes from the texts of each class, in random order; copies of a text stay together. Where a
    class has too few texts, every split gets its share of what there is."""
    taken: dict[str, list[tuple[str, int]]] = {split: [] for split in sizes}
    for label, (name, pool) in enumerate(pools.items()):
        copies = pd.Series(pool, dtype=object).value_counts(sort=False)
        texts = [text for one in rng.permutation(len(copies)) for text in [copies.index[one]] * copies.iloc[one]]
        total, available = sum(size[name] for size in sizes.values()), len(texts)
        for split, size in sizes.items():
            count = min(size[name], size[name] * available // total)
            taken[split] += [(text, label) for text in texts[:count]]
            texts = texts[count:]
    mixed = {split: [rows[place] for place in rng.permutation(len(rows))] for split, rows in taken.items()}
    return {split: ([text for text, _ in rows], [label for _, label in rows]) for split, rows in mixed.items()}


def _pools(table: pd.DataFrame, classes: Mapping[Any, str]) -> dict[str, list[str]]:
    """The texts of each class, by its name, given the labels that stand for them."""
    return {name: table.loc[table["label"] == label, "text"].tolist() for label, name in classes.items()}


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Rows by class and number, so that a draw does not depend on the order in which a file lists them."""
    return table.sort_values(["split", "label", "id"], kind="stable") if "id" in table else table


def _labelled(
    table: pd.DataFrame, seed: int, *, label: str = "label", classes: Sequence[str] = (), notices: Sequence[str] = ()
) -> Selection:
    """The table's own splits, missing ones drawn, and readable names for classes that are numbers."""
    splits = "split" if "train" in set(table["split"]) else NONE
    labelling = label_rows(table_of(table), text_column="text", label_column=label, split_column=splits)
    if classes and len(classes) != len(labelling.class_names):
        raise DataError(f"{len(classes)} classes were expected, the file has {len(labelling.class_names)}.")
    divided = select(table, labelling, seed=seed)
    return replace(divided, class_names=classes or divided.class_names, notices=[*notices, *divided.notices])


def _imdb(table: pd.DataFrame, seed: int) -> Selection:
    """Sun & Lu's IMDB: short reviews; train and dev from the training half, test from the test half."""
    short = _in_order(table[[counted_words(text) < MOST_WORDS for text in table["text"]]])
    short = short.assign(text=[without_breaks(text) for text in short["text"]])
    training, test = short[short["split"] == "train"], short[short["split"] == "test"]
    fresh = test[~test["text"].isin(set(training["text"]))]
    rng, classes, sizes = np.random.default_rng(seed), {0: "negative", 1: "positive"}, TABLE_1["imdb"].sizes
    splits = draw(_pools(training, classes), {name: sizes[name] for name in ("train", "dev")}, rng)
    splits |= draw(_pools(fresh, classes), {"test": sizes["test"]}, rng)
    notices = [
        f"{len(table) - len(short):,} reviews of {MOST_WORDS} words or more left out.",
        f"{len(test) - len(fresh):,} test reviews left out: they also occur in the training half.",
        f"Splits were drawn in the sizes of the paper (seed {seed}); test reviews come from the test half.",
    ]
    return Selection(splits=splits, class_names=[*classes.values()], notices=notices)


def _groups(name: str, groups: Mapping[str, str], table: pd.DataFrame, seed: int) -> Selection:
    """Groups as classes under shorter names, messages cleaned, splits drawn from both parts of the split by date."""
    chosen = _in_order(table[table["label"].isin(list(groups))])
    cleaned = chosen.assign(text=[clean_message(text) for text in chosen["text"]])
    filled = cleaned[cleaned["text"].str.contains(r"\w")]
    splits = draw(_pools(filled, groups), TABLE_1[name].sizes, np.random.default_rng(seed))
    used = sum(len(texts) for texts, _ in splits.values())
    notices = [
        f"{len(chosen) - len(filled):,} messages left out: nothing but header, signature and quotes.",
        f"Splits were drawn from both parts of the split by date: {used:,} of {len(filled):,} (seed {seed}).",
    ]
    return Selection(splits=splits, class_names=[*groups.values()], notices=notices)


def _ag_news(table: pd.DataFrame, seed: int) -> Selection:
    """News with its HTML codes read; the title stands before the text without a mark of its own."""
    titles = table["title"] if "title" in table else pd.Series("", index=table.index)
    starts = [(f"{title} . ", f"{title} ") if title else ("", "") for title in titles.fillna("")]
    both = zip(table["text"], starts, strict=True)
    texts = [plain_news(new + text[len(old) :] if text.startswith(old) else text) for text, (old, new) in both]
    training = int((table["split"] == "train").sum())
    part = [f"{training:,} of the official 120,000 training rows."] if training < 120_000 else []
    return _labelled(table.assign(text=texts), seed, notices=part)


def _ratings(table: pd.DataFrame, seed: int) -> Selection:
    """All IMDB reviews with the stars their writers gave; 5 and 6 do not occur."""
    texts = [without_breaks(text) for text in table["text"]]
    return _labelled(_in_order(table.assign(text=texts)), seed, label="rating")


def _validation(table: pd.DataFrame, seed: int) -> Selection:
    """The validation part is trained on: the training part of 200,000 Amazon reviews is not used."""
    return STARS(table.assign(split=table["split"].replace({"val": "train"})), seed)


SST = partial(_labelled, classes=("negative", "positive"))
DEGREES = partial(_labelled, classes=("very negative", "negative", "neutral", "positive", "very positive"))
STARS = partial(_labelled, classes=("1", "2", "3", "4", "5"))
LEVELS = partial(_labelled, classes=("low", "middle", "high"), label="label3")
TOPICS = partial(_labelled, classes=YAHOO_TOPICS)
SPORTS = partial(_groups, "20news-1", {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"})
TALK = partial(_groups, "20news-2", {"rec.motorcycles": "motorcycles", "sci.med": "med", "talk.politics.guns": "guns"})
plain = partial(Dataset, tokenizer=PLAIN)

MADE = (
    Dataset("synthetic-1", "Data I: two classes, 50 planted words each, 1,000 neutral words", "synthetic:"),
    Dataset(
        "synthetic-2", "Data II: as Data I, and one text in twenty has the other class's words", "synthetic:noise=0.05"
    ),
    Dataset(
        "synthetic-skew", "as Data I, with nine positive texts for each negative one", "synthetic:positive_share=0.9"
    ),
    Dataset("synthetic-multi", "three classes with 50 planted words each, 1,000 neutral words", "synthetic:classes=3"),
)
RECIPES: tuple[Dataset, ...] = (
    plain("sst", "Stanford Sentiment Treebank, positive or negative sentences", SST, (sources.TREEBANK,), (SST_2,)),
    plain(
        "sst-5",
        "Stanford Sentiment Treebank, five degrees from very negative to very positive",
        DEGREES,
        (sources.TREEBANK,),
        (SST_5,),
    ),
    plain(
        "imdb", "film reviews under 400 words, positive or negative, in the sizes of Sun & Lu", _imdb, (sources.IMDB,)
    ),
    Dataset("imdb-ratings", "all film reviews of IMDB with their ratings 1–4 and 7–10", _ratings, (sources.IMDB,)),
    plain(
        "20news-1", "newsgroup messages on baseball or hockey, in the sizes of Sun & Lu", SPORTS, (sources.NEWSGROUPS,)
    ),
    plain(
        "20news-2",
        "newsgroup messages on motorcycles, medicine or guns, in the sizes of Sun & Lu",
        TALK,
        (sources.NEWSGROUPS,),
    ),
    Dataset("agnews", "news in four topics", _ag_news, (sources.AG_NEWS, sources.AG_NEWS_PARQUET)),
    Dataset("yelp10k", "10,000 Yelp reviews with stars 1–5, unbalanced", STARS, only=("yelp10k_stars.jsonl.gz",)),
    Dataset(
        "amazon-multi", "10,000 English Amazon reviews with stars 1–5, balanced", _validation, (sources.AMAZON_MULTI,)
    ),
    Dataset("yahoo-1k", "1,000 Yahoo! Answers questions in ten topics", TOPICS, only=("yahoo10_1k.jsonl.gz",)),
    Dataset("pl-scale", "5,006 film reviews of four critics, low, middle or high rating", LEVELS, (sources.SCALE,)),
    Dataset("yahoo", "Yahoo! Answers, 1,460,000 questions in ten topics", TOPICS, (sources.YAHOO,)),
    Dataset("imdb-10", "IMDB reviews of Diao et al. with ratings 1–10", _labelled, (sources.IMDB_TEN,)),
    Dataset("amazon", "3,650,000 Amazon reviews with stars 1–5", STARS, (sources.AMAZON,)),
    Dataset("yelp", "700,000 Yelp reviews with stars 1–5", STARS, (sources.YELP, sources.YELP_PARQUET)),
)
DATASETS: Mapping[str, Dataset] = {one.name: one for one in (*MADE, *RECIPES)}


def find_dataset(source: object) -> Dataset | None:
    if isinstance(source, str) and source.startswith(synthetic.DESCRIBED):
        return Dataset(source, "made as described", source)
    return DATASETS.get(source) if isinstance(source, str) else None
