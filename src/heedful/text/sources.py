"""Where corpora live publicly: addresses, checksums, and how their files become tables of the data folder.

A checksum stands here where it could be found published by others who read the same file; None says that none was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.text import newsgroups, reviews, trees
from heedful.text.archives import readable
from heedful.text.reviews import Convert


@dataclass(frozen=True, kw_only=True)
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

    def rows(self, paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of the downloaded files, each with the table it belongs to."""
        return readable(self.convert(paths), ", ".join(path.name for path in paths))

    def at(self, base: str) -> "Source":
        """The same files under another address: a mirror that keeps their names."""
        moved = [replace(file, address=f"{base.rstrip('/')}/{file.name}") for file in self.files]
        return replace(self, files=tuple(moved))


TREEBANK = Source(
    title="Stanford Sentiment Treebank (Socher et al. 2013)",
    home="https://nlp.stanford.edu/sentiment/",
    files=(
        PublicFile(
            name="trainDevTestTrees_PTB.zip",
            address="https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
            checksum="sha256:5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
        ),
    ),
    makes=("sst2_tree.jsonl.gz", "sst5_tree.jsonl.gz"),
    convert=trees.treebank_rows,
)

IMDB = Source(
    title="Large Movie Review Dataset (Maas et al. 2011)",
    home="https://ai.stanford.edu/~amaas/data/sentiment/",
    files=(
        PublicFile(
            name="aclImdb_v1.tar.gz",
            address="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            checksum="md5:7c2ac02c03563afcf9b574c7e56c153a",
        ),
    ),
    makes=("imdb_train.jsonl.gz", "imdb_test.jsonl.gz"),
    convert=reviews.imdb_rows,
)

NEWSGROUPS = Source(
    title="20 Newsgroups, sorted by date",
    home="http://qwone.com/~jason/20Newsgroups/",
    files=(
        PublicFile(
            name="20news-bydate.tar.gz",
            address="https://ndownloader.figshare.com/files/5975967",
            checksum="sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ),
    ),
    makes=("20news_bydate_5cat.jsonl.gz",),
    convert=newsgroups.newsgroup_rows,
)

_AG_NEWS = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"
_AG_NEWS_PARQUET = (
    "https://huggingface.co/datasets/fancyzhx/ag_news/resolve/eb185aade064a813bc0b7f42de02595523103ca4/data"
)

AG_NEWS = Source(
    title="AG News (Zhang et al. 2015)",
    home="https://github.com/mhjabreel/CharCnn_Keras",
    files=(
        PublicFile(
            name="ag_news_train.csv",
            address=f"{_AG_NEWS}/train.csv",
            checksum="md5:b1a00f826fdfbd249f79597b59e1dc12",
        ),
        PublicFile(
            name="ag_news_test.csv",
            address=f"{_AG_NEWS}/test.csv",
            checksum="md5:d52ea96a97a2d943681189a97654912d",
        ),
    ),
    makes=("agnews_train_pool.jsonl.gz", "agnews_official_test.jsonl.gz"),
    convert=reviews.news_csv_rows,
)

AG_NEWS_PARQUET = Source(
    title="AG News (Zhang et al. 2015), Hugging Face",
    home="https://huggingface.co/datasets/fancyzhx/ag_news",
    files=(
        PublicFile(
            name="ag_news_train.parquet",
            address=f"{_AG_NEWS_PARQUET}/train-00000-of-00001.parquet",
            checksum="sha256:fc508d6d9868594e3da960a8cfeb63ab5a4746598b93428c224397080c1f52ee",
        ),
        PublicFile(
            name="ag_news_test.parquet",
            address=f"{_AG_NEWS_PARQUET}/test-00000-of-00001.parquet",
            checksum="sha256:71de87ec66bc5737752a2502204dfa6d7fe9856ade3ea444dc6317789a4f13fb",
        ),
    ),
    makes=AG_NEWS.makes,
    convert=reviews.news_parquet_rows,
)

_CREPE = "https://github.com/zhangxiangxiao/Crepe"
_CREPE_MIRROR = "https://s3.amazonaws.com/fast-ai-nlp"

YELP = Source(
    title="Yelp reviews, full (Zhang et al. 2015)",
    home=_CREPE,
    files=(
        PublicFile(
            name="yelp_review_full_csv.tgz",
            address=f"{_CREPE_MIRROR}/yelp_review_full_csv.tgz",
            checksum="sha256:56006b0a17a370f1e366504b1f2c3e3754e4a3dda17d3e718a885c552869a559",
        ),
    ),
    makes=("yelp_review_full.parquet",),
    convert=reviews.csv_rows("yelp_review_full.parquet"),
)

_YELP_PARQUET = "https://huggingface.co/datasets/Yelp/yelp_review_full/resolve/main/yelp_review_full"

YELP_PARQUET = Source(
    title="Yelp reviews, full (Zhang et al. 2015), Hugging Face",
    home="https://huggingface.co/datasets/Yelp/yelp_review_full",
    files=(
        PublicFile(name="yelp_train.parquet", address=f"{_YELP_PARQUET}/train-00000-of-00001.parquet"),
        PublicFile(name="yelp_test.parquet", address=f"{_YELP_PARQUET}/test-00000-of-00001.parquet"),
    ),
    makes=YELP.makes,
    convert=reviews.star_rows("yelp_review_full.parquet"),
)

AMAZON = Source(
    title="Amazon reviews, full (Zhang et al. 2015)",
    home=_CREPE,
    files=(
        PublicFile(
            name="amazon_review_full_csv.tgz",
            address=f"{_CREPE_MIRROR}/amazon_review_full_csv.tgz",
            checksum="sha256:4af62eeee139d0142e0747340b68646d23483d9475c33ea0641ee9175b423443",
        ),
    ),
    makes=("amazon_review_full.parquet",),
    convert=reviews.csv_rows("amazon_review_full.parquet"),
)

YAHOO = Source(
    title="Yahoo! Answers topics (Zhang et al. 2015)",
    home=_CREPE,
    files=(
        PublicFile(
            name="yahoo_answers_csv.tgz",
            address=f"{_CREPE_MIRROR}/yahoo_answers_csv.tgz",
            checksum="sha256:2d4277855faf8b35259009425fa8f7fe1888b5644b47165508942d000f4c96ae",
        ),
    ),
    makes=("yahoo_answers.parquet",),
    convert=reviews.csv_rows("yahoo_answers.parquet"),
)

IMDB_TEN = Source(
    title="IMDB reviews with ten ratings (Diao et al. 2014)",
    home="https://github.com/nihalb/JMARS",
    files=(PublicFile(name="jmars_data.json", address="https://www.dropbox.com/s/0oea49j7j30y671/data.json?dl=1"),),
    makes=("imdb10.parquet",),
    convert=reviews.ten_star_rows,
)

_AMAZON_MULTI = "https://huggingface.co/datasets/mteb/amazon_reviews_multi/resolve/main/en"

AMAZON_MULTI = Source(
    title="Multilingual Amazon reviews, English (Keung et al. 2020)",
    home="https://huggingface.co/datasets/mteb/amazon_reviews_multi",
    files=(
        PublicFile(name="amazon_multi_en_validation.jsonl", address=f"{_AMAZON_MULTI}/validation.jsonl"),
        PublicFile(name="amazon_multi_en_test.jsonl", address=f"{_AMAZON_MULTI}/test.jsonl"),
    ),
    makes=("amazon_multi_en_stars.jsonl.gz",),
    convert=reviews.json_star_rows,
)

SCALE = Source(
    title="Film reviews with ratings (Pang & Lee 2005)",
    home="https://www.cs.cornell.edu/people/pabo/movie-review-data/",
    files=(
        PublicFile(
            name="scale_data.tar.gz",
            address="https://www.cs.cornell.edu/people/pabo/movie-review-data/scale_data.tar.gz",
        ),
    ),
    makes=("pl_scale.jsonl.gz",),
    convert=reviews.scale_rows,
)
