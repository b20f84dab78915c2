"""Named corpora, and the one door to all data: `load_corpus`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.config import DataSettings
from heedful.errors import DataError, UnknownName
from heedful.text import synthetic
from heedful.text.columns import SplitValues
from heedful.text.corpus import Corpus, build_corpus, with_min_count
from heedful.text.public.recipes import RECIPES, Recipe
from heedful.text.public.sources import Source as PublicSource
from heedful.text.splits import divide, label_rows
from heedful.text.tables import read_table, writable
from heedful.text.tokenize import Tokenizer

Source = str | os.PathLike[str] | pd.DataFrame | tuple[Sequence[str], Sequence[object]]

DATA_VARIABLE = "HEEDFUL_DATA"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A corpus by name: what it is, and how to get it with a seed."""

    name: str
    about: str
    load: Callable[[int], Corpus]
    files: tuple[str, ...] = ()
    """The files of the data folder that it is read from; none for a corpus that is made on the spot."""
    sources: tuple[PublicSource, ...] = ()
    """Where those files come from, the first choice first."""

    @property
    def available(self) -> bool:
        return all((data_folder() / name).is_file() for name in self.files)


def data_folder() -> Path:
    """Where files of named corpora lie: $HEEDFUL_DATA, or the user's cache."""
    given = os.environ.get(DATA_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "heedful" / "data"


def load_corpus(
    source: Source,
    *,
    seed: int = 0,
    text_column: str | None = None,
    label_column: str | None = None,
    split_column: str | None = None,
    split_values: SplitValues = None,
    missing_labels: str = "skip",
    tokenizer: str = "words",
    lowercase: bool = True,
    min_count: int = 1,
    encoding: str = "utf-8",
) -> Corpus:
    """A corpus from a known name, a file, a data frame or a pair (texts, labels).

    source: a name that `heedful data list` shows; the path of a CSV, TSV, JSON, JSON lines (all of them also .gz) or
        Parquet file; a pandas data frame; or a tuple of texts and labels. A CSV may be divided by commas, semicolons,
        tabs or vertical bars. What is read from a file is called by the file's name, `reviews.csv`. A description
        such as `synthetic:classes=3,noise=0.05` makes a corpus (keys: classes, noise, positive_share, size, seed).
    seed: draws the splits that the data do not name, and made corpora such as synthetic-1; default 0.
    text_column, label_column: where the text and the label are; by default the first of the usual names (text, review,
        sentence …; label, class, category, stars …), and a notice says so where several columns have one.
    split_column: the column that says whether a row is train, dev or test; by default one that is called split, fold,
        partition, subset or set and names training rows. "none" uses no column. Splits that are missing are drawn from
        the training rows: a tenth of the rows of each class, one text at least where it has three different ones,
        copies of a text together.
    split_values: what the values of that column mean, where they are not train, dev, test or spelled like it:
        {"validate": "dev", "held-out": "test", "unused": "skip"}; skip leaves the rows out. Also as on the command
        line, "dev=validate,test=held-out,skip=unused". By default nothing is added to the usual spellings.
    missing_labels: what becomes of rows whose label is a word for none, such as NaN, null or N/A: "skip" leaves
        them out and says so (default), "keep" takes the word for a class.
    tokenizer: "words" (default: words and marks), "alphanumeric" (runs of letters and digits) or "whitespace".
    lowercase: whether Good and good are one token; default True.
    min_count: tokens that are rarer in the training split become the unknown token; default 1, all are kept.
    encoding: of the file, "utf-8" by default; Parquet needs none.

    Rows without a text or a label are left out; `notices` of the corpus say how many, and what else was done. A named
    corpus comes with its columns and tokens: only `seed` and `min_count` can be set. What cannot be read raises a
    HeedfulError that says what to do.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5), seed=1)
    >>> corpus.class_names
    ('negative', 'positive')
    >>> [len(split) for split in (corpus.train, corpus.dev, corpus.test)]
    [6, 2, 2]
    >>> corpus.notices[0]
    'The test split was drawn from the training rows (stratified, 10%, seed 1). It has 20% of them, ...'

    A table whose column says which rows are which, in words of its own:

    >>> import pandas as pd
    >>> parts = ["rest"] * 6 + ["held-out"] * 2 + ["validate"] * 2
    >>> table = pd.DataFrame({"review": texts, "stars": [1, 5] * 5, "part": parts})
    >>> told = {"rest": "train", "validate": "dev", "held-out": "test"}
    >>> heedful.load_corpus(table, split_column="part", split_values=told).dev.texts
    ('bad play', 'bad song')
    """
    columns: dict[str, Any] = {
        "text_column": text_column,
        "label_column": label_column,
        "split_column": split_column,
        "split_values": split_values,
        "missing_labels": missing_labels,
    }
    named = find_dataset(source)
    if named is not None:
        _refuse(named.name, {**columns, "tokenizer": tokenizer, "lowercase": lowercase, "encoding": encoding})
        return with_min_count(named.load(seed), min_count)
    table, name = _table(source, encoding)
    labelling = label_rows(table, **columns)
    try:
        documents = vars(divide(labelling, seed=seed))
        cut = Tokenizer(tokenizer, lowercase)
        return build_corpus(name=name, **documents, tokenizer=cut, min_count=min_count)
    except DataError as error:  # the rows left out may be why the others are too few
        raise DataError(" ".join([str(error), *labelling.notices])) from error


def find_dataset(source: Source) -> Dataset | None:
    """The corpus that a text names or describes."""
    if isinstance(source, str) and source.startswith(synthetic.DESCRIBED):
        return Dataset(name=source, about="made as described", load=partial(synthetic.described, source))
    return DATASETS.get(source) if isinstance(source, str) else None


def _refuse(name: str, options: Mapping[str, Any]) -> None:
    """Options that are not as usual, of a corpus that can only be read in its own way."""
    said = [option for option, value in options.items() if value != DataSettings.model_fields[option].default]
    if said:
        raise DataError(f"The corpus '{name}' comes with its columns and tokens: {', '.join(said)} cannot be set.")


def _table(source: Source, encoding: str) -> tuple[pd.DataFrame, str]:
    """The rows and what they are called: a file by its whole name, which no named corpus has."""
    if isinstance(source, pd.DataFrame):
        return source, "table"
    if isinstance(source, tuple):
        return _pair(source), "lists"
    if not isinstance(source, (str, os.PathLike)):
        raise DataError(
            "Data are a corpus name, the path of a file, a pandas data frame or a tuple (texts, labels); "
            f"got {type(source).__name__}."
        )
    path = Path(source)
    if isinstance(source, str) and not path.exists() and path.suffix == "" and len(path.parts) == 1:
        raise UnknownName("corpus or file", source, DATASETS)
    return read_table(path, encoding=encoding), path.name


def _pair(source: tuple[Sequence[str], Sequence[object]]) -> pd.DataFrame:
    if len(source) != 2:
        raise DataError(f"A tuple of data is (texts, labels); got one of {len(source)}.")
    texts, labels = source
    if len(texts) != len(labels):
        raise DataError(f"Texts and labels go together one by one; got {len(texts)} texts, {len(labels)} labels.")
    return pd.DataFrame({"text": map(writable, texts), "label": map(writable, labels)})


def _load(recipe: Recipe, seed: int) -> Corpus:
    folder = data_folder()
    for name in recipe.files:
        if not (folder / name).is_file():
            raise DataError(
                f"The file '{name}' is not in the data folder '{folder}'. "
                f"Fetch it (`heedful data fetch`), put it there, or set {DATA_VARIABLE} to the folder that holds it."
            )
    return recipe.load([folder / name for name in recipe.files], seed)


MADE = {
    "synthetic-1": ("synthetic:", "Data I: two classes, 50 planted words each, 1,000 neutral words"),
    "synthetic-2": ("synthetic:noise=0.05", "Data II: as Data I, and one text in twenty has the other class's words"),
    "synthetic-skew": ("synthetic:positive_share=0.9", "as Data I, with nine positive texts for each negative one"),
    "synthetic-multi": ("synthetic:classes=3", "three classes with 50 planted words each, 1,000 neutral words"),
}
"""Names for corpora that are made on the spot: their description, and what they are."""

DATASETS: Mapping[str, Dataset] = {
    **{
        name: Dataset(name=name, about=about, load=partial(synthetic.described, text, name=name))
        for name, (text, about) in MADE.items()
    },
    **{
        one.name: Dataset(
            name=one.name, about=one.about, load=partial(_load, one), files=one.files, sources=one.sources
        )
        for one in RECIPES
    },
}
