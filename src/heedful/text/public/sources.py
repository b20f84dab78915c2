"""Where corpora live publicly: addresses, checksums, and how their files become tables of the data folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from heedful.errors import DataError
from heedful.text.public import conversion
from heedful.text.public.conversion import BROKEN, Convert, Rows


@dataclass(frozen=True)
class PublicFile:
    """A file that can be downloaded, and what it is called in the data folder."""

    name: str
    address: str
    checksum: str | None = None
    """Algorithm and digest: `sha256:…` or `md5:…`."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Public files, and the tables of the data folder that are made from them."""

    title: str
    home: str
    """The page that tells people about the data and their terms of use."""
    files: tuple[PublicFile, ...]
    makes: tuple[str, ...]
    convert: Convert

    def rows(self, paths: Sequence[Path]) -> Rows:
        """The rows of the downloaded files; what a damaged one raises, at whatever place, becomes one sentence."""
        try:
            yield from self.convert(paths)
        except BROKEN as error:
            said, names = str(error) or type(error).__name__, ", ".join(path.name for path in paths)
            raise DataError(
                f"'{names}' cannot be read: {said}. Is it complete? Delete it and fetch it again."
            ) from error

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
    """A file that keeps its name."""
    return _files(folder, {name: name})


def _zhang(title: str, name: str) -> Source:
    """An archive of Zhang et al. 2015."""
    return Source(
        title=f"{title} (Zhang et al. 2015)",
        home="https://github.com/zhangxiangxiao/Crepe",
        files=_same("https://s3.amazonaws.com/fast-ai-nlp", f"{name}_csv.tgz"),
        makes=(f"{name}.parquet",),
        convert=partial(conversion.csv_rows, f"{name}.parquet"),
    )


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
    title="Stanford Sentiment Treebank (Socher et al. 2013)",
    home=f"{_STANFORD}/",
    files=_same(_STANFORD, "trainDevTestTrees_PTB.zip"),
    makes=(conversion.SST_2, conversion.SST_5),
    convert=conversion.treebank_rows,
)

IMDB = Source(
    title="Large Movie Review Dataset (Maas et al. 2011)",
    home=f"{_IMDB}/",
    files=_same(_IMDB, "aclImdb_v1.tar.gz"),
    makes=("imdb_train.jsonl.gz", "imdb_test.jsonl.gz"),
    convert=conversion.imdb_rows,
)

NEWSGROUPS = Source(
    title="20 Newsgroups, sorted by date",
    home="http://qwone.com/~jason/20Newsgroups/",
    files=_files("https://ndownloader.figshare.com/files", {"20news-bydate.tar.gz": "5975967"}),
    makes=("20news_bydate_5cat.jsonl.gz",),
    convert=conversion.newsgroup_rows,
)

AG_NEWS = Source(
    title="AG News (Zhang et al. 2015)",
    home="https://github.com/mhjabreel/CharCnn_Keras",
    files=_files(_AG_NEWS, {"ag_news_train.csv": "train.csv", "ag_news_test.csv": "test.csv"}),
    makes=tuple(conversion.NEWS_FILES.values()),
    convert=partial(conversion.news_rows, conversion.news_csv_lines),
)

AG_NEWS_PARQUET = Source(
    title="AG News (Zhang et al. 2015), Hugging Face",
    home=f"{_HUGGING_FACE}/fancyzhx/ag_news",
    files=_files(_AG_NEWS_PARQUET, {"ag_news_train.parquet": _TRAIN, "ag_news_test.parquet": _TEST}),
    makes=AG_NEWS.makes,
    convert=partial(conversion.news_rows, conversion.parquet_lines),
)

YELP = _zhang("Yelp reviews, full", "yelp_review_full")
AMAZON = _zhang("Amazon reviews, full", "amazon_review_full")
YAHOO = _zhang("Yahoo! Answers topics", "yahoo_answers")

YELP_PARQUET = Source(
    title="Yelp reviews, full (Zhang et al. 2015), Hugging Face",
    home=f"{_HUGGING_FACE}/Yelp/yelp_review_full",
    files=_files(_YELP_PARQUET, {"yelp_train.parquet": _TRAIN, "yelp_test.parquet": _TEST}),
    makes=YELP.makes,
    convert=partial(conversion.star_rows, YELP.makes[0]),
)

IMDB_TEN = Source(
    title="IMDB reviews with ten ratings (Diao et al. 2014)",
    home="https://github.com/nihalb/JMARS",
    files=_files("https://www.dropbox.com/s/0oea49j7j30y671", {"jmars_data.json": "data.json?dl=1"}),
    makes=("imdb10.parquet",),
    convert=conversion.ten_star_rows,
)

AMAZON_MULTI = Source(
    title="Multilingual Amazon reviews, English (Keung et al. 2020)",
    home=f"{_HUGGING_FACE}/mteb/amazon_reviews_multi",
    files=_files(_AMAZON_MULTI, {f"amazon_multi_en_{part}.jsonl": f"{part}.jsonl" for part in ("validation", "test")}),
    makes=("amazon_multi_en_stars.jsonl.gz",),
    convert=conversion.json_star_rows,
)

SCALE = Source(
    title="Film reviews with ratings (Pang & Lee 2005)",
    home=f"{_CORNELL}/",
    files=_same(_CORNELL, "scale_data.tar.gz"),
    makes=("pl_scale.jsonl.gz",),
    convert=conversion.scale_rows,
)
