"""Published files as rows of labelled text, each with the file of the data folder that it belongs to.

Archives are read without writing any member to the disk. One from elsewhere is not trusted: a member that would land
outside its folder, or that is no plain file, is refused even though nothing here unpacks it, because such an archive is
not what its publisher made.
"""

import csv
import io
import json
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import pyarrow
import pyarrow.parquet

from heedful.errors import DataError

Rows = Iterator[tuple[str, dict[str, Any]]]
Convert = Callable[[Sequence[Path]], Rows]
"""From downloaded files to rows."""

BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError),
    *(UnicodeDecodeError, csv.Error, KeyError),
)
"""What is raised on an archive that is cut off, damaged, locked with a password, or of other content."""

NEWS_FILES = {"train": "agnews_train_pool.jsonl.gz", "test": "agnews_official_test.jsonl.gz"}
NEWS_TOPICS = ("world", "sports", "business", "scitech")

GROUPS = ("rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey", "sci.med", "talk.politics.guns")
"""The newsgroups that the corpora use."""

SST_2, SST_5 = "sst2_tree.jsonl.gz", "sst5_tree.jsonl.gz"
MIDDLE = 2
"""Of the labels 0 … 4 of the treebank; the binary task leaves such sentences out."""

_IMDB_REVIEW = re.compile(r"(?:^|/)aclImdb/(train|test)/(pos|neg)/(\d+)_(\d+)\.txt$")
_MESSAGE = re.compile(r"(?:^|/)20news-bydate-(train|test)/([^/]+)/(\d+)$")
_TREES = re.compile(r"(?:^|/)trees/(train|dev|test)\.txt$")
_TABLE = re.compile(r"(?:^|/)(train|test)\.csv$")
_SCALE_COLUMN = re.compile(r"(?:^|/)scaledata/([^/]+)/(subj|rating|label\.3class|label\.4class)\.[^/]+$")
_PIECE = re.compile(r"\(\s*([0-4])(?=[\s()])|(\))|([^\s()]+)|\S")
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "\\/": "/", "\\*": "*"}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPES)))


def _members(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[re.Match[str], IO[bytes]]]:
    """The files of an archive with such names, in its order; a content is to be read before the next one."""
    for name, content in _zip_members(path) if zipfile.is_zipfile(path) else _tar_members(path):
        match = wanted.search(name)
        if match:
            yield match, content


def _zip_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            _refuse(path, info.filename, "is a link" if stat.S_ISLNK(info.external_attr >> 16) else None)
            if not info.is_dir():
                with archive.open(info) as content:
                    yield info.filename, content


def _tar_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for info in archive:
            _refuse(path, info.name, None if info.isfile() or info.isdir() else "is a link or a device")
            content = archive.extractfile(info)
            if content is not None:
                yield info.name, content


def _refuse(path: Path, name: str, why: str | None) -> None:
    """A member that is no plain file, or whose path leads outside, as this system or Windows would read it."""
    for pure in (PurePosixPath(name), PureWindowsPath(name)):
        if pure.is_absolute() or pure.drive or ".." in pure.parts:
            why = "would lie outside the folder"
    if why:
        raise DataError(
            f"The archive '{path.name}' is refused: its member '{name}' {why}. "
            "This is not the published archive; delete it, and get it from another place."
        )


def imdb_rows(paths: Sequence[Path]) -> Rows:
    """The 50,000 labelled reviews of aclImdb_v1.tar.gz (Maas et al. 2011)."""
    for match, content in _members(paths[0], _IMDB_REVIEW):
        split, side, number, rating = match.groups()
        row = {"text": content.read().decode("utf-8"), "label": int(side == "pos"), "rating": int(rating)}
        yield f"imdb_{split}.jsonl.gz", {**row, "id": int(number), "split": split}


def newsgroup_rows(paths: Sequence[Path]) -> Rows:
    """The raw messages of the five groups in 20news-bydate.tar.gz, with their part of the split by date."""
    for match, content in _members(paths[0], _MESSAGE):
        if match[2] in GROUPS:
            text = content.read().decode("latin-1").replace("\r\n", "\n")
            row = {"text": text, "label": match[2], "id": int(match[3]), "split": match[1]}
            yield "20news_bydate_5cat.jsonl.gz", row


def csv_rows(target: str, paths: Sequence[Path]) -> Rows:
    """Rows of a Zhang et al. 2015 archive: train.csv and test.csv of class number from 1, then fields of text."""
    for match, content in _members(paths[0], _TABLE):
        for label, fields in _csv_lines(match.string, io.TextIOWrapper(content, encoding="utf-8", newline="")):
            yield target, {"text": "\n".join(filter(None, fields)), "label": label, "split": match[1]}


def star_rows(target: str, paths: Sequence[Path]) -> Rows:
    """The same from two Parquet files, train and test, with `text` and a `label` that counts from 0."""
    for split, path in zip(("train", "test"), paths, strict=True):
        for label, text in parquet_lines(path):
            yield target, {"text": text, "label": label + 1, "split": split}


def news_rows(read: Callable[[Path], Iterator[tuple[int, str]]], paths: Sequence[Path]) -> Rows:
    """AG News from a training and a test file, given how topic numbers from 0 and texts are read from each."""
    for (split, target), path in zip(NEWS_FILES.items(), paths, strict=True):
        for label, text in read(path):
            if not 0 <= label < len(NEWS_TOPICS):
                most = len(NEWS_TOPICS)
                raise DataError(f"'{path.name}' holds the class number {label + 1}; AG News has 1 to {most}.")
            yield target, {"text": text, "label": NEWS_TOPICS[label], "split": split}


def news_csv_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Class number from 1, title, description."""
    with path.open(encoding="utf-8", newline="") as lines:
        for label, fields in _csv_lines(path.name, lines):
            yield label - 1, " ".join(fields)


def parquet_lines(path: Path) -> Iterator[tuple[int, str]]:
    """`label`, which counts from 0, and `text`."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["text", "label"]):
                yield from ((int(row["label"]), row["text"]) for row in batch.to_pylist())
    except pyarrow.ArrowException as error:
        raise DataError(f"'{path.name}' is not a Parquet file with text and label: {error}") from error


def _csv_lines(name: str, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Class numbers and text fields; these files write a line break as backslash and n."""
    for number, line in enumerate(csv.reader(lines), 1):
        if len(line) < 2 or not line[0].isdigit():
            raise DataError(f"Line {number} of '{name}' is not a class number and a text: {str(line)[:60]}.")
        yield int(line[0]), [field.replace("\\n", "\n").strip() for field in line[1:]]


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


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} is not JSON: {error}. Delete the file and fetch it again.") from error


def scale_rows(paths: Sequence[Path]) -> Rows:
    """The film reviews of Pang & Lee 2005: per author a file of texts and files of ratings, line by line."""
    columns: dict[str, dict[str, list[str]]] = {}
    for match, content in _members(paths[0], _SCALE_COLUMN):
        columns.setdefault(match[1], {})[match[2]] = content.read().decode("latin-1").splitlines()
    for author, held in columns.items():
        for text, rating, three, four in _together(author, held):
            row = {"text": text, "label": round(float(rating), 1), "rating": float(rating)}
            kept = {**row, "label3": int(three), "label4": int(four), "author": author, "split": "all"}
            yield "pl_scale.jsonl.gz", kept


def _together(author: str, held: dict[str, list[str]]) -> Iterable[tuple[str, ...]]:
    wanted = ("subj", "rating", "label.3class", "label.4class")
    lengths = [len(held.get(name, ())) for name in wanted]
    if len(set(lengths)) != 1:
        raise DataError(f"The files of '{author}' do not belong together: {', '.join(wanted)} have {lengths} lines.")
    return zip(*(held[name] for name in wanted), strict=True)


def treebank_rows(paths: Sequence[Path]) -> Rows:
    """The sentences of trainDevTestTrees_PTB.zip: all of them with five labels, and the binary task's."""
    for match, content in _members(paths[0], _TREES):
        for tree in (parse_tree(line) for line in io.TextIOWrapper(content, encoding="utf-8") if line.strip()):
            row = {"text": " ".join(tree.tokens), "label": tree.label}
            yield SST_5, {**row, "split": match[1], "phrases": tree.phrases}
            if tree.label != MIDDLE:
                binary = {"label": int(tree.label > MIDDLE), "fine": tree.label, "split": match[1]}
                yield SST_2, {**row, **binary}


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A sentence of the Stanford Sentiment Treebank (Socher et al. 2013), a label on every phrase of its parse."""

    tokens: tuple[str, ...]
    phrases: tuple[tuple[int, int, int], ...]
    """(label, start, end) of each node over the tokens, a parent before its children; the first is the sentence."""

    @property
    def label(self) -> int:
        return self.phrases[0][0]


def parse_tree(line: str) -> Tree:
    """A tree from its brackets: `(3 (2 It) (4 (2 is) (4 great)))`."""
    tokens: list[str] = []
    phrases: list[tuple[int, int, int]] = []
    open_phrases: list[int] = []
    for label, end, word in _PIECE.findall(line):
        if label:
            open_phrases.append(len(phrases))
            phrases.append((int(label), len(tokens), -1))
        elif end and open_phrases:
            place = open_phrases.pop()
            phrases[place] = (*phrases[place][:2], len(tokens))
        elif word and open_phrases:
            tokens.append(_ESCAPE.sub(lambda written: _ESCAPES[written[0]], word))
        else:
            raise _no_tree(line)
    if open_phrases or not tokens or phrases[0][2] != len(tokens):
        raise _no_tree(line)
    return Tree(tokens=tuple(tokens), phrases=tuple(phrases))


def _no_tree(line: str) -> DataError:
    return DataError(
        f"This is not a sentiment tree: '{line.strip()[:60]}'. Each phrase is a label 0–4 and what it holds, in "
        "brackets: (3 (2 It) (4 works))."
    )
