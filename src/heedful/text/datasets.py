"""The one door to all data, `load_corpus`; and corpora kept in a store, tokenised once, one copy for many workers.

A file is never held in memory as a whole: it is read twice, batch by batch, and becomes a folder that is mapped
(`heedful.text.cached`). A small corpus is then read from that folder.
"""

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from heedful.config import DataSettings
from heedful.errors import DataError, UnknownName
from heedful.files import digest_of, exists, explained, file_hash, is_file, read_json
from heedful.store import CORPUS, Store
from heedful.text.cached import FACTS, FORMAT, CorpusFacts, facts_of, open_corpus, stream_corpus, write_corpus
from heedful.text.columns import SplitValues
from heedful.text.corpus import Corpus, build_corpus, with_min_count
from heedful.text.recipes import DATASETS, data_folder, find_dataset
from heedful.text.splits import Labelling, divide, label_rows, select
from heedful.text.tables import open_table, table_of, writable
from heedful.text.tokenize import Tokenizer
from heedful.version import RESULTS_VERSION, __version__

Source = str | os.PathLike[str] | pd.DataFrame | tuple[Sequence[str], Sequence[object]]

MOST_HELD = 2**26
"""Bytes of a corpus that is read into memory; a larger one is mapped from files that no folder lists any more."""

COLUMNS = ("text_column", "label_column", "split_column", "split_values", "missing_labels")


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
    checked = DataSettings.of({"seed": seed, "lowercase": lowercase, "min_count": min_count})
    seed, lowercase, min_count = checked.seed, checked.lowercase, checked.min_count
    columns: dict[str, Any] = {
        "text_column": text_column,
        "label_column": label_column,
        "split_column": split_column,
        "split_values": split_values,
        "missing_labels": missing_labels,
    }
    if named := find_dataset(source):
        _refuse(named.name, {**columns, "tokenizer": tokenizer, "lowercase": lowercase, "encoding": encoding})
        return with_min_count(named.load(seed), min_count)
    cut = Tokenizer(tokenizer, lowercase)
    how: dict[str, Any] = {"columns": columns, "seed": seed, "cut": cut, "min_count": min_count}
    frame, name = _frame(source)
    if frame is not None:
        return _of_frame(frame, name, **how)
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder, explained(Path(folder)):
        place = Path(folder) / "corpus"
        _write_file(place, Path(name), encoding, **how)
        return open_corpus(place, held=sum(path.stat().st_size for path in place.iterdir()) < MOST_HELD)


def _of_frame(
    frame: pd.DataFrame, name: str, *, columns: Mapping[str, Any], seed: int, cut: Tokenizer, min_count: int
) -> Corpus:
    labelling = label_rows(table_of(frame), **columns)
    with _saying(labelling):
        documents = vars(select(frame, labelling, seed=seed))
        return build_corpus(name=name, **documents, tokenizer=cut, min_count=min_count)


def _write_file(
    place: Path,
    path: Path,
    encoding: str,
    *,
    columns: Mapping[str, Any],
    seed: int,
    cut: Tokenizer,
    min_count: int,
    key: str = "",
) -> None:
    """The corpus of a file into a folder; the file is read twice, and never held in memory."""
    table = open_table(path, encoding=encoding)
    labelling = label_rows(table, **columns)
    with _saying(labelling):
        division = divide(labelling, seed=seed)
        stream_corpus(
            place, table, labelling.text_column, division, name=path.name, cut=cut, min_count=min_count, key=key
        )


@contextmanager
def _saying(labelling: Labelling) -> Iterator[None]:
    """The rows that were left out may be why the others are too few."""
    try:
        yield
    except DataError as error:
        raise DataError(" ".join([str(error), *labelling.notices])) from error


def _refuse(name: str, options: Mapping[str, Any]) -> None:
    """Options that are not as usual, of a corpus that can only be read in its own way."""
    usual = DataSettings().model_dump()
    if said := ", ".join(option for option, value in options.items() if value != usual[option]):
        raise DataError(f"The corpus '{name}' comes with its columns and tokens: {said} cannot be set.")


def _frame(source: Source) -> tuple[pd.DataFrame | None, str]:
    """Rows that are in memory and what they are called; or the path of a file."""
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
    if isinstance(source, str) and not exists(path) and path.suffix == "" and len(path.parts) == 1:
        raise UnknownName("corpus or file", source, DATASETS)
    return None, str(path)


def _pair(source: tuple[Sequence[str], Sequence[object]]) -> pd.DataFrame:
    if len(source) != 2:
        raise DataError(f"A tuple of data is (texts, labels); got one of {len(source)}.")
    for part in source:
        if isinstance(part, (str, bytes)) or not (hasattr(part, "__len__") and hasattr(part, "__iter__")):
            raise DataError(f"Texts and labels are two lists; got {type(part).__name__}.")
    texts, labels = source
    if len(texts) != len(labels):
        raise DataError(f"Texts and labels go together one by one; got {len(texts)} texts, {len(labels)} labels.")
    return pd.DataFrame({"text": map(writable, texts), "label": map(writable, labels)})


def cache_corpus(data: DataSettings, store: Store) -> CorpusFacts:
    """Make sure that the store holds the corpus, tokenised and written on first use, and say what it is."""
    key = corpus_key(data)

    def make(place: Path) -> None:
        if find_dataset(data.source):
            write_corpus(load_corpus(**data.model_dump()), key, place)
        else:
            _write_file(place, Path(_frame(data.source)[1]), data.encoding, **_how(data), key=key)
        with suppress(OSError, AttributeError):  # tokenising leaves free pages; a worker that goes on keeps none
            ctypes.CDLL("libc.so.6").malloc_trim(0)

    return CorpusFacts.model_validate(read_json(store.keep(CORPUS, key, make)[0] / FACTS))


def _how(data: DataSettings) -> dict[str, Any]:
    """How a file becomes a corpus."""
    columns = {name: getattr(data, name) for name in COLUMNS}
    cut = Tokenizer(data.tokenizer, data.lowercase)
    return {"columns": columns, "seed": data.seed, "cut": cut, "min_count": data.min_count}


def corpus_facts(data: DataSettings, store: Store) -> CorpusFacts:
    """As `cache_corpus`, but writes nothing."""
    key = corpus_key(data)
    if place := store.find(key, CORPUS):
        return CorpusFacts.model_validate(read_json(place / FACTS))
    return facts_of(load_corpus(**data.model_dump()), key)


def corpus_key(data: DataSettings) -> str:
    """The identity of a cached corpus: how it is read, the bytes it is read from, and by which version."""
    known = find_dataset(data.source)
    paths = [data_folder() / name for name in known.files] if known else [Path(data.source)]
    content = {
        "data": data.model_dump(mode="json"),
        "bytes": [file_hash(path, "sha256") for path in paths if is_file(path)],  # `load_corpus` complains of others
        "version": [FORMAT, RESULTS_VERSION, __version__],
    }
    return digest_of(content)[:24]
