"""Where corpora live publicly, addresses and checksums, and how their files become tables of the data folder.

Rows of labelled text are read from the published files, each with the file of the data folder that it belongs to.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import pyarrow.parquet

from heedful.errors import DataError, border

Rows = Iterator[tuple[str, dict[str, Any]]]
Convert = Callable[[Sequence[Path]], Rows]  # from downloaded files to rows
Lines = Iterator[tuple[int, str, Mapping[str, Any]]]
ReadLines = Callable[[Path], Lines]

NEWS_FILES = {"train": "agnews_train_pool.jsonl.gz", "test": "agnews_official_test.jsonl.gz"}
NEWS_TOPICS = ("world", "sports", "business", "scitech")

GROUPS = ("rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey", "sci.med", "talk.politics.guns")
"""The newsgroups that the corpora use."""

SST_2, SST_5 = "sst2_tree.jsonl.gz", "sst5_tree.jsonl.gz"
MIDDLE = 2  # of the labels 0 … 4 of the treebank; the binary task leaves such sentences out
SCALE_COLUMNS = ("subj", "rating", "label.3class", "label.4class")
_IMDB_REVIEW = re.compile(r"(?:^|/)aclImdb/(train|test)/(pos|neg)/(\d+)_(\d+)\.txt$")
_MESSAGE = re.compile(r"(?:^|/)20news-bydate-(train|test)/([^/]+)/(\d+)$")
_TREES = re.compile(r"(?:^|/)trees/(train|dev|test)\.txt$")
_TABLE = re.compile(r"(?:^|/)(train|test)\.csv$")
_SCALE_COLUMN = re.compile(rf"(?:^|/)scaledata/([^/]+)/({'|'.join(map(re.escape, SCALE_COLUMNS))})\.[^/]+$")
_PIECE = re.compile(r"\(\s*([0-4])(?=[\s()])|(\))|([^\s()]+)|\S")
STRANGE = "is a link or a device"
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "\\/": "/", "\\*": "*"}
_ESCAPE = re.compile("|".join(map(re.escape, _ESCAPES)))


def _members(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[re.Match[str], IO[bytes]]]:
    """The files of an archive with such names, in its order; a content is to be read before the next one."""
    for name, content in _zip_members(path) if zipfile.is_zipfile(path) else _tar_members(path):
        if match := wanted.search(name):
            yield match, content


def _zip_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)  # zero where the archive was not made on Unix
            _refuse(path, info.filename, None if kind in {0, stat.S_IFREG, stat.S_IFDIR} else STRANGE)
            if not info.is_dir():
                with archive.open(info) as content:
                    yield info.filename, content


def _tar_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for info in archive:
            _refuse(path, info.name, None if info.isfile() or info.isdir() else STRANGE)
            if (content := archive.extractfile(info)) is not None:
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


def split_rows(read: ReadLines, targets: Mapping[str, str], topics: Sequence[str], paths: Sequence[Path]) -> Rows:
    """From a file for each split, given how class numbers from 0, texts and what else is kept are read from it. Classes
    are called by their topics; without topics they are stars, which count from 1."""
    for (split, target), path in zip(targets.items(), paths, strict=True):
        for label, text, kept in read(path):
            if topics and not 0 <= label < len(topics):
                raise DataError(f"'{path.name}' holds the class number {label + 1}; AG News has 1 to {len(topics)}.")
            yield target, {"text": text, "label": topics[label] if topics else label + 1, "split": split, **kept}


def news_csv_lines(path: Path) -> Lines:
    """Class number from 1, title, description."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from ((label - 1, " ".join(fields), {}) for label, fields in _csv_lines(path.name, lines))


def parquet_lines(path: Path) -> Lines:
    """`label`, which counts from 0, and `text`."""
    with pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["text", "label"]):
            yield from ((int(row["label"]), row["text"], {}) for row in batch.to_pylist())


def _csv_lines(name: str, lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Class numbers and text fields; these files write a line break as backslash and n."""
    for number, line in enumerate(csv.reader(lines), 1):
        if len(line) < 2 or not line[0].isdigit():
            raise DataError(f"Line {number} of '{name}' is not a class number and a text: {str(line)[:60]}.")
        yield int(line[0]), [field.replace("\\n", "\n").strip() for field in line[1:]]


def json_lines(path: Path) -> Lines:
    """JSON lines with `text`, `id` and a `label` that counts from 0, as MTEB has the English Amazon reviews."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row = _json(line, f"Line {number} of '{path.name}'")
            yield int(row["label"]), row["text"], {"id": row["id"]}


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
        lengths = [len(held.get(name, ())) for name in SCALE_COLUMNS]
        if len(set(lengths)) != 1:
            names = ", ".join(SCALE_COLUMNS)
            raise DataError(f"The files of '{author}' do not belong together: {names} have {lengths} lines.")
        for text, rating, three, four in zip(*(held[name] for name in SCALE_COLUMNS), strict=True):
            row = {"text": text, "label": round(float(rating), 1), "rating": float(rating)}
            kept = {**row, "label3": int(three), "label4": int(four), "author": author, "split": "all"}
            yield "pl_scale.jsonl.gz", kept


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


@dataclass(frozen=True)
class PublicFile:
    """A file that can be downloaded, and what it is called in the data folder."""

    name: str
    address: str
    checksum: str | None = None  # algorithm and digest: `sha256:…` or `md5:…`


@dataclass(frozen=True)
class Source:
    """Public files, and the tables of the data folder that are made from them."""

    title: str
    home: str  # the page that tells people about the data and their terms of use
    files: tuple[PublicFile, ...]
    makes: tuple[str, ...]
    convert: Convert

    def rows(self, paths: Sequence[Path]) -> Rows:
        """Of the downloaded files. Whatever is raised on one that is cut off, damaged, locked with a password or of
        other content becomes one sentence."""
        names = ", ".join(path.name for path in paths)
        with border(f"'{names}'", DataError, "Is it complete? Delete it and fetch it again."):
            for target, row in self.convert(paths):
                if not isinstance(row["text"], str):
                    raise DataError(f"'{names}' holds {type(row['text']).__name__} where a text should be.")
                yield target, row

    def at(self, base: str) -> "Source":
        """The same files under another address: a mirror that keeps their names."""
        moved = [replace(file, address=f"{base.rstrip('/')}/{file.name}") for file in self.files]
        return replace(self, files=tuple(moved))


CHECKSUMS = {
    "trainDevTestTrees_PTB.zip": "sha256:5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
    "aclImdb_v1.tar.gz": "md5:7c2ac02c03563afcf9b574c7e56c153a",
    "20news-bydate.tar.gz": "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    "ag_news_train.csv": "md5:b1a00f826fdfbd249f79597b59e1dc12",
    "ag_news_test.csv": "md5:d52ea96a97a2d943681189a97654912d",
    "ag_news_train.parquet": "sha256:fc508d6d9868594e3da960a8cfeb63ab5a4746598b93428c224397080c1f52ee",
    "ag_news_test.parquet": "sha256:71de87ec66bc5737752a2502204dfa6d7fe9856ade3ea444dc6317789a4f13fb",
    "yelp_review_full_csv.tgz": "sha256:56006b0a17a370f1e366504b1f2c3e3754e4a3dda17d3e718a885c552869a559",
    "amazon_review_full_csv.tgz": "sha256:4af62eeee139d0142e0747340b68646d23483d9475c33ea0641ee9175b423443",
    "yahoo_answers_csv.tgz": "sha256:2d4277855faf8b35259009425fa8f7fe1888b5644b47165508942d000f4c96ae",
}
"""By the name in the data folder: those that could be found published by others who read the same file."""


def _files(folder: str, names: Mapping[str, str]) -> tuple[PublicFile, ...]:
    """The files of a public folder, by their names in the data folder."""
    return tuple(PublicFile(name, f"{folder}/{there}", CHECKSUMS.get(name)) for name, there in names.items())


def _same(folder: str, name: str) -> tuple[PublicFile, ...]:
    return _files(folder, {name: name})


def _zhang(title: str, name: str) -> Source:
    """An archive of Zhang et al. 2015."""
    files, table = _same("https://s3.amazonaws.com/fast-ai-nlp", f"{name}_csv.tgz"), f"{name}.parquet"
    home = "https://github.com/zhangxiangxiao/Crepe"
    return Source(f"{title} (Zhang et al. 2015)", home, files, (table,), partial(csv_rows, table))


_STANFORD = "https://nlp.stanford.edu/sentiment"
_IMDB = "https://ai.stanford.edu/~amaas/data/sentiment"
_CORNELL = "https://www.cs.cornell.edu/people/pabo/movie-review-data"
_HUGGING_FACE = "https://huggingface.co/datasets"
_AG_NEWS = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"
_AG_NEWS_PARQUET = f"{_HUGGING_FACE}/fancyzhx/ag_news/resolve/eb185aade064a813bc0b7f42de02595523103ca4/data"
_YELP_PARQUET = f"{_HUGGING_FACE}/Yelp/yelp_review_full/resolve/main/yelp_review_full"
_AMAZON_MULTI = f"{_HUGGING_FACE}/mteb/amazon_reviews_multi/resolve/main/en"
_TRAIN, _TEST = "train-00000-of-00001.parquet", "test-00000-of-00001.parquet"

TREEBANK = Source(
    "Stanford Sentiment Treebank (Socher et al. 2013)",
    f"{_STANFORD}/",
    _same(_STANFORD, "trainDevTestTrees_PTB.zip"),
    (SST_2, SST_5),
    treebank_rows,
)
IMDB = Source(
    "Large Movie Review Dataset (Maas et al. 2011)",
    f"{_IMDB}/",
    _same(_IMDB, "aclImdb_v1.tar.gz"),
    ("imdb_train.jsonl.gz", "imdb_test.jsonl.gz"),
    imdb_rows,
)
NEWSGROUPS = Source(
    "20 Newsgroups, sorted by date",
    "http://qwone.com/~jason/20Newsgroups/",
    _files("https://ndownloader.figshare.com/files", {"20news-bydate.tar.gz": "5975967"}),
    ("20news_bydate_5cat.jsonl.gz",),
    newsgroup_rows,
)
AG_NEWS = Source(
    "AG News (Zhang et al. 2015)",
    "https://github.com/mhjabreel/CharCnn_Keras",
    _files(_AG_NEWS, {"ag_news_train.csv": "train.csv", "ag_news_test.csv": "test.csv"}),
    tuple(NEWS_FILES.values()),
    partial(split_rows, news_csv_lines, NEWS_FILES, NEWS_TOPICS),
)
AG_NEWS_PARQUET = Source(
    "AG News (Zhang et al. 2015), Hugging Face",
    f"{_HUGGING_FACE}/fancyzhx/ag_news",
    _files(_AG_NEWS_PARQUET, {"ag_news_train.parquet": _TRAIN, "ag_news_test.parquet": _TEST}),
    AG_NEWS.makes,
    partial(split_rows, parquet_lines, NEWS_FILES, NEWS_TOPICS),
)
YELP = _zhang("Yelp reviews, full", "yelp_review_full")
AMAZON = _zhang("Amazon reviews, full", "amazon_review_full")
YAHOO = _zhang("Yahoo! Answers topics", "yahoo_answers")
YELP_PARQUET = Source(
    "Yelp reviews, full (Zhang et al. 2015), Hugging Face",
    f"{_HUGGING_FACE}/Yelp/yelp_review_full",
    _files(_YELP_PARQUET, {"yelp_train.parquet": _TRAIN, "yelp_test.parquet": _TEST}),
    YELP.makes,
    partial(split_rows, parquet_lines, dict.fromkeys(("train", "test"), YELP.makes[0]), ()),
)
IMDB_TEN = Source(
    "IMDB reviews with ten ratings (Diao et al. 2014)",
    "https://github.com/nihalb/JMARS",
    _files("https://www.dropbox.com/s/0oea49j7j30y671", {"jmars_data.json": "data.json?dl=1"}),
    ("imdb10.parquet",),
    ten_star_rows,
)
AMAZON_MULTI = Source(
    "Multilingual Amazon reviews, English (Keung et al. 2020)",
    f"{_HUGGING_FACE}/mteb/amazon_reviews_multi",
    _files(_AMAZON_MULTI, {f"amazon_multi_en_{part}.jsonl": f"{part}.jsonl" for part in ("validation", "test")}),
    ("amazon_multi_en_stars.jsonl.gz",),
    partial(split_rows, json_lines, dict.fromkeys(("val", "test"), "amazon_multi_en_stars.jsonl.gz"), ()),
)
SCALE = Source(
    "Film reviews with ratings (Pang & Lee 2005)",
    f"{_CORNELL}/",
    _same(_CORNELL, "scale_data.tar.gz"),
    ("pl_scale.jsonl.gz",),
    scale_rows,
)
