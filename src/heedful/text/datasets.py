"""Named corpora, and the one door to all data: `load_corpus`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heedful.errors import DataError, UnknownName
from heedful.text import synthetic
from heedful.text.corpus import Corpus, build_corpus, with_min_count
from heedful.text.named import RECIPES, with_seed
from heedful.text.readers import read_table, writable
from heedful.text.sources import Source as PublicSource
from heedful.text.splits import divide, label_rows
from heedful.text.tokenize import Tokenizer

Source = str | os.PathLike[str] | pd.DataFrame | tuple[Sequence[str], Sequence[object]]

DATA_VARIABLE = "HEEDFUL_DATA"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A corpus by name: what it is, and how to get it with a seed."""

    name: str
    about: str
    load: Callable[[int], Corpus]
    needs: str | None = None
    """The file of the data folder that it is read from; None for a corpus that is made on the spot."""
    also: tuple[str, ...] = ()
    """Further files that it is read from."""
    sources: tuple[PublicSource, ...] = ()
    """Where those files come from, the first choice first."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files of the data folder that it is read from."""
        return (self.needs, *self.also) if self.needs else ()

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
    tokenizer: str = "words",
    lowercase: bool = True,
    min_count: int = 1,
    encoding: str = "utf-8",
) -> Corpus:
    """A corpus from a known name, a file (CSV, TSV, JSON lines, Parquet), a data frame or a pair (texts, labels).

    Columns are recognised by their usual names unless given. Splits are read from a column that names them; missing
    ones are drawn from the training rows, stratified by class, with the seed. The seed also draws synthetic corpora.
    """
    if isinstance(source, str) and source in DATASETS:
        columns = {"text_column": text_column, "label_column": label_column, "split_column": split_column}
        reading = {"tokenizer": tokenizer != "words", "lowercase": not lowercase, "encoding": encoding != "utf-8"}
        _refuse(source, [name for name, given in (columns | reading).items() if given])
        return with_min_count(DATASETS[source].load(seed), min_count)
    table, name = _table(source, encoding)
    labelling = label_rows(table, text_column=text_column, label_column=label_column, split_column=split_column)
    splits, notices = divide(labelling, seed=seed)
    return build_corpus(
        name=name,
        splits=splits,
        class_names=labelling.class_names,
        tokenizer=Tokenizer(tokenizer, lowercase),
        min_count=min_count,
        notices=[*labelling.notices, *notices],
    )


def _refuse(name: str, options: Sequence[str]) -> None:
    if options:
        raise DataError(f"The corpus '{name}' comes with its columns and tokens: {', '.join(options)} cannot be set.")


def _table(source: Source, encoding: str) -> tuple[pd.DataFrame, str]:
    if isinstance(source, pd.DataFrame):
        return source, "table"
    if isinstance(source, tuple):
        texts, labels = source
        if len(texts) != len(labels):
            raise DataError(f"Texts and labels go together one by one; got {len(texts)} texts, {len(labels)} labels.")
        return pd.DataFrame({"text": map(writable, texts), "label": map(writable, labels)}), "lists"
    path = Path(source)
    if not path.exists() and path.suffix == "" and len(path.parts) == 1:
        raise UnknownName("corpus or file", source, DATASETS)
    return read_table(path, encoding=encoding), path.name.split(".")[0]


def _data_file(name: str) -> Path:
    path = data_folder() / name
    if path.is_file():
        return path
    raise DataError(
        f"The file '{name}' is not in the data folder '{data_folder()}'. "
        f"Fetch it (`heedful data fetch`), put it there, or set {DATA_VARIABLE} to the folder that holds it."
    )


DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="synthetic-1",
            about="Data I: two classes, 50 planted words each, 1,000 neutral words",
            load=lambda seed: synthetic.binary(name="synthetic-1", seed=seed),
        ),
        Dataset(
            name="synthetic-2",
            about="Data II: as Data I, and one text in twenty has the other class's words",
            load=lambda seed: synthetic.binary(name="synthetic-2", seed=seed, noise=0.05),
        ),
        Dataset(
            name="synthetic-skew",
            about="as Data I, with nine positive texts for each negative one",
            load=lambda seed: synthetic.binary(name="synthetic-skew", seed=seed, positive_share=0.9),
        ),
        Dataset(
            name="synthetic-multi",
            about="three classes with 50 planted words each, 1,000 neutral words",
            load=lambda seed: synthetic.multi(name="synthetic-multi", seed=seed),
        ),
        *(
            Dataset(
                name=recipe.name,
                about=recipe.about,
                load=with_seed(recipe, _data_file),
                needs=recipe.files[0],
                also=recipe.files[1:],
                sources=recipe.sources,
            )
            for recipe in RECIPES
        ),
    )
}
