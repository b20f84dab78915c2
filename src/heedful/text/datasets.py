"""The one door to all data, `load_corpus`; and corpora kept in a store, mapped into memory instead of read.

A corpus is tokenised once per store. Token numbers, places, offsets and labels are safetensors, texts are an Arrow
file; both are mapped, so their pages are shared by all processes of a machine and loaded when they are touched: many
workers, one copy. The fingerprint is kept beside them.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, overload

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel
from torch import Tensor

from heedful.config import DataSettings
from heedful.errors import DataError, StoreError, UnknownName
from heedful.files import below, digest_of, exists, explained, file_hash, hash_once, is_file, read_json, write_json
from heedful.store import CORPUS, Store
from heedful.tensor_files import load_tensors, save_tensors
from heedful.text.columns import SplitValues
from heedful.text.corpus import SPLITS, Corpus, Split, build_corpus, with_min_count
from heedful.text.recipes import DATASETS, data_folder, find_dataset
from heedful.text.splits import divide, label_rows
from heedful.text.tables import read_table, writable
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary
from heedful.version import RESULTS_VERSION, __version__

Source = str | os.PathLike[str] | pd.DataFrame | tuple[Sequence[str], Sequence[object]]

FORMAT = 3
"""Raised when the files of a cached corpus change, or how a table becomes a corpus; part of its key, so that other
versions do not see each other's."""

FACTS, ARRAYS, TEXTS = "corpus.json", "arrays.safetensors", "{}.arrow"
PARTS = ("numbers", "offsets", "spans")
_REMOVE = "Remove the folder: the corpus is cached again when it is needed."


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
    table, name = _table(source, encoding)
    labelling = label_rows(table, **columns)
    try:
        documents, cut = vars(divide(labelling, seed=seed)), Tokenizer(tokenizer, lowercase)
        return build_corpus(name=name, **documents, tokenizer=cut, min_count=min_count)
    except DataError as error:  # the rows left out may be why the others are too few
        raise DataError(" ".join([str(error), *labelling.notices])) from error


def _refuse(name: str, options: Mapping[str, Any]) -> None:
    """Options that are not as usual, of a corpus that can only be read in its own way."""
    usual = DataSettings().model_dump()
    if said := ", ".join(option for option, value in options.items() if value != usual[option]):
        raise DataError(f"The corpus '{name}' comes with its columns and tokens: {said} cannot be set.")


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
    if isinstance(source, str) and not exists(path) and path.suffix == "" and len(path.parts) == 1:
        raise UnknownName("corpus or file", source, DATASETS)
    return read_table(path, encoding=encoding), path.name


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


class CorpusFacts(BaseModel, frozen=True):
    """What can be known of a cached corpus without opening it."""

    key: str
    fingerprint: str
    units: int
    held_out_units: int  # tokens of the test split, which a run traces
    vocabulary: int


class MappedTexts(Sequence[str]):
    """Texts in a mapped Arrow file; each becomes a string when it is asked for."""

    def __init__(self, path: Path) -> None:
        with pa.memory_map(str(path)) as file:
            self._array = pa.ipc.open_file(file).get_batch(0).column(0)  # a view of the mapped file, not a copy

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return tuple(self[row] for row in range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(f"There are {len(self)} texts; number {place} is not among them.")
        return str(self._array[place].as_py(), "utf-8", "surrogatepass")


def cache_corpus(data: DataSettings, store: Store) -> CorpusFacts:
    """Make sure that the store holds the corpus, tokenised and written on first use, and say what it is."""
    key = corpus_key(data)

    def make(place: Path) -> None:
        _write(load_corpus(**data.model_dump()), key, place)
        with suppress(OSError, AttributeError):  # tokenising leaves free pages; a worker that goes on keeps none
            ctypes.CDLL("libc.so.6").malloc_trim(0)

    return CorpusFacts.model_validate(read_json(store.keep(CORPUS, key, make)[0] / FACTS))


def corpus_facts(data: DataSettings, store: Store) -> CorpusFacts:
    """As `cache_corpus`, but writes nothing."""
    key = corpus_key(data)
    if place := store.find(key, CORPUS):
        return CorpusFacts.model_validate(read_json(place / FACTS))
    return _facts_of(load_corpus(**data.model_dump()), key)


def corpus_key(data: DataSettings) -> str:
    """The identity of a cached corpus: how it is read, the bytes it is read from, and by which version."""
    known = find_dataset(data.source)
    paths = [data_folder() / name for name in known.files] if known else [Path(data.source)]
    content = {
        "data": data.model_dump(mode="json"),
        "bytes": [file_hash(path, "sha256") for path in paths if path.is_file()],  # `load_corpus` complains of others
        "version": [FORMAT, RESULTS_VERSION, __version__],
    }
    return digest_of(content)[:24]


def open_corpus(place: Path) -> Corpus:
    """A cached corpus, mapped into memory; refused where a file of it does not hold what was written to it."""
    arrays, checksums = load_tensors(place / ARRAYS, StoreError, _REMOVE)
    for name, known in checksums.items():
        if not is_file(place / name) or hash_once(place / name) != known:
            raise StoreError(f"'{place / name}' is damaged: it does not hold what was written to it. {_REMOVE}")
    facts = read_json(place / FACTS)
    splits: dict[str, Any] = {
        name: Split(
            texts=MappedTexts(place / TEXTS.format(name)),
            labels=arrays[f"{name}.labels"],
            tokens=Tokens(**{part: arrays[f"{name}.{part}"] for part in PARTS}),
        )
        for name in SPLITS
    }
    corpus = Corpus(
        name=facts["name"],
        **splits,
        class_names=tuple(facts["class_names"]),
        vocabulary=Vocabulary(tuple(facts["tokens"])),
        tokenizer=Tokenizer(**facts["tokenizer"]),
        planted=facts["planted"],
        notices=tuple(facts["notices"]),
    )
    vars(corpus)["fingerprint"] = facts["fingerprint"]  # fills the cached property: texts are not hashed again
    return corpus


def _write(corpus: Corpus, key: str, place: Path) -> None:
    with explained(place):
        place.mkdir()
        arrays: dict[str, Tensor] = {}
        for name, split in corpus.splits().items():
            arrays[f"{name}.labels"] = split.labels.contiguous()
            arrays |= {f"{name}.{part}": getattr(split.tokens, part).contiguous() for part in PARTS}
            _write_texts(place / TEXTS.format(name), split.texts)
        facts = {
            "format": FORMAT,
            "name": corpus.name,
            "class_names": corpus.class_names,
            "tokens": corpus.vocabulary.tokens,
            "tokenizer": asdict(corpus.tokenizer),
            "planted": corpus.planted,
            "notices": corpus.notices,
        }
        write_json(place / FACTS, facts | _facts_of(corpus, key).model_dump())
        save_tensors(place / ARRAYS, arrays, {path.name: hash_once(path) for path in below(place)})


def _write_texts(path: Path, texts: Sequence[str]) -> None:
    """Bytes, not Arrow strings, so that a text with a lone surrogate survives."""
    array = pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.large_binary())
    batch = pa.record_batch({"text": array})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def _facts_of(corpus: Corpus, key: str) -> CorpusFacts:
    units = {name: len(split.tokens.numbers) for name, split in corpus.splits().items()}
    return CorpusFacts(
        key=key,
        fingerprint=corpus.fingerprint,
        units=sum(units.values()),
        held_out_units=units["test"],
        vocabulary=len(corpus.vocabulary),
    )
