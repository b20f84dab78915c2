"""Reviews, questions and news from the archives in which they are published, as rows of labelled text."""

import csv
import html
import io
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from heedful.errors import DataError
from heedful.text.archives import members

Rows = Iterator[tuple[str, dict[str, Any]]]
Convert = Callable[[Sequence[Path]], Rows]
"""From downloaded files to rows, each with the name of the file of the data folder that it belongs to."""

NEWS_TOPICS = ("world", "sports", "business", "scitech")
YAHOO_TOPICS = (
    *("society", "science", "health", "education", "computers"),
    *("sports", "business", "entertainment", "family", "politics"),
)

_BREAK = re.compile(r"<br\s*/?>")
_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation.replace("'", ""), " "))
_IMDB_MEMBER = re.compile(r"(?:^|/)aclImdb/(train|test)/(pos|neg)/(\d+)_(\d+)\.txt$")
_SCALE_MEMBER = re.compile(r"(?:^|/)scaledata/([^/]+)/(subj|rating|label\.3class|label\.4class)\.[^/]+$")
_ENTITY = re.compile(r" ?(?:#(\d+)|\b(quot|amp|lt|gt));")


def without_breaks(text: str) -> str:
    """A review without its line-break tags."""
    return " ".join(_BREAK.sub(" ", text).split())


def counted_words(text: str) -> int:
    """Words as Sun & Lu's IMDB counts them: no punctuation, but each `<br />` is the word `br`.

    Found by trial: under 400 of these, 10,652 positive and 10,864 negative reviews of the training half remain, which
    are the paper's 8,539 + 2,113 and 8,673 + 2,191 exactly; other ways to count miss both.
    """
    return len(text.translate(_PUNCTUATION).split())


def plain_news(text: str) -> str:
    """AG News with its HTML codes read (`Web #39;s` → `Web's`) and its backslash line breaks as spaces."""
    read = _ENTITY.sub(lambda found: html.unescape(f"&#{found[1]};" if found[1] else f" &{found[2]};"), text)
    return " ".join(read.replace("\\", " ").split())


def imdb_rows(paths: Sequence[Path]) -> Rows:
    """The 50,000 labelled reviews of aclImdb_v1.tar.gz (Maas et al. 2011)."""
    for name, content in members(paths[0]):
        found = _IMDB_MEMBER.search(name)
        if found:
            split, side, number, rating = found.groups()
            row = {"text": content.read().decode("utf-8"), "label": int(side == "pos"), "rating": int(rating)}
            yield f"imdb_{split}.jsonl.gz", {**row, "id": int(number), "split": split}


def csv_rows(target: str) -> Convert:
    """Rows of a Zhang et al. 2015 archive: train.csv and test.csv of class number from 1, then fields of text."""

    def convert(paths: Sequence[Path]) -> Rows:
        for name, content in members(paths[0]):
            split = name.rpartition("/")[2].removesuffix(".csv")
            if split in {"train", "test"}:
                lines = io.TextIOWrapper(content, encoding="utf-8", newline="")
                for label, fields in _csv_lines(name, lines):
                    yield target, {"text": "\n".join(filter(None, fields)), "label": label, "split": split}

    return convert


def star_rows(target: str) -> Convert:
    """The same from two Parquet files, train and test, with `text` and a `label` that counts from 0."""

    def convert(paths: Sequence[Path]) -> Rows:
        for split, path in zip(("train", "test"), paths, strict=True):
            for row in _parquet_lines(path):
                yield target, {"text": row["text"], "label": int(row["label"]) + 1, "split": split}

    return convert


def news_csv_rows(paths: Sequence[Path]) -> Rows:
    """AG News from train.csv and test.csv: class number from 1, title, description."""
    for (split, target), path in zip(_NEWS_FILES.items(), paths, strict=True):
        with path.open(encoding="utf-8", newline="") as lines:
            for label, fields in _csv_lines(path.name, lines):
                yield target, _news_row(label - 1, " ".join(fields), split, path)


def news_parquet_rows(paths: Sequence[Path]) -> Rows:
    """AG News from two Parquet files with `text` and a `label` that counts from 0."""
    for (split, target), path in zip(_NEWS_FILES.items(), paths, strict=True):
        for row in _parquet_lines(path):
            yield target, _news_row(int(row["label"]), row["text"], split, path)


def json_star_rows(paths: Sequence[Path]) -> Rows:
    """The English Amazon reviews of MTEB: JSON lines with `text`, `id` and a `label` that counts from 0."""
    for split, path in zip(("val", "test"), paths, strict=True):
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                row = _json(line, f"Line {number} of '{path.name}'")
                kept = {"text": row["text"], "label": int(row["label"]) + 1, "split": split, "id": row["id"]}
                yield "amazon_multi_en_stars.jsonl.gz", kept


def ten_star_rows(paths: Sequence[Path]) -> Rows:
    """The IMDB reviews of Diao et al. 2014: one JSON list of objects with `review` and `rating`, here 1 … 10."""
    for row in _json(paths[0].read_text(encoding="utf-8"), f"'{paths[0].name}'"):
        if str(row.get("rating")).isdigit() and 1 <= int(row["rating"]) <= 10:
            yield "imdb10.parquet", {"text": row["review"], "label": int(row["rating"]), "split": "all"}


def scale_rows(paths: Sequence[Path]) -> Rows:
    """The film reviews of Pang & Lee 2005: per author a file of texts and files of ratings, line by line."""
    columns: dict[str, dict[str, list[str]]] = {}
    for name, content in members(paths[0]):
        found = _SCALE_MEMBER.search(name)
        if found:
            columns.setdefault(found[1], {})[found[2]] = content.read().decode("latin-1").splitlines()
    for author, held in columns.items():
        for text, rating, three, four in _together(author, held):
            row = {"text": text, "label": round(float(rating), 1), "rating": float(rating)}
            kept = {**row, "label3": int(three), "label4": int(four), "author": author, "split": "all"}
            yield "pl_scale.jsonl.gz", kept


_NEWS_FILES = {"train": "agnews_train_pool.jsonl.gz", "test": "agnews_official_test.jsonl.gz"}


def _news_row(label: int, text: str, split: str, path: Path) -> dict[str, Any]:
    if not 0 <= label < len(NEWS_TOPICS):
        raise DataError(f"'{path.name}' holds the class number {label + 1}; AG News has 1 to {len(NEWS_TOPICS)}.")
    return {"text": text, "label": NEWS_TOPICS[label], "split": split}


def _csv_lines(name: str, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Class numbers and text fields; these files write a line break as backslash and n."""
    for number, line in enumerate(csv.reader(lines), 1):
        if len(line) < 2 or not line[0].isdigit():
            raise DataError(f"Line {number} of '{name}' is not a class number and a text: {str(line)[:60]}.")
        yield int(line[0]), [field.replace("\\n", "\n").strip() for field in line[1:]]


def _parquet_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["text", "label"]):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        raise DataError(f"'{path.name}' is not a Parquet file with text and label: {error}") from error


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} is not JSON: {error}. Delete the file and fetch it again.") from error


def _together(author: str, held: Mapping[str, list[str]]) -> Iterable[tuple[str, ...]]:
    wanted = ("subj", "rating", "label.3class", "label.4class")
    lengths = [len(held.get(name, ())) for name in wanted]
    if len(set(lengths)) != 1:
        raise DataError(f"The files of '{author}' do not belong together: {', '.join(wanted)} have {lengths} lines.")
    return zip(*(held[name] for name in wanted), strict=True)
