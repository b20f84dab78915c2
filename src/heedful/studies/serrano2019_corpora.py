"""The corpora of Serrano & Smith 2019, Table 1, as data, and which samples stand for them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Table1Row:
    """A corpus as the paper describes it."""

    words: int
    words_deviation: int
    sentences: float
    sentences_deviation: float
    training: int
    """Documents to train and to select on."""
    test: int
    classes: int


TABLE_1: Mapping[str, Table1Row] = {
    "yahoo": Table1Row(
        words=104,
        words_deviation=114,
        sentences=6.2,
        sentences_deviation=5.9,
        training=1_400_000,
        test=50_000,
        classes=10,
    ),
    "imdb-10": Table1Row(
        words=395,
        words_deviation=259,
        sentences=16.2,
        sentences_deviation=10.7,
        training=122_121,
        test=13_548,
        classes=10,
    ),
    "amazon": Table1Row(
        words=73,
        words_deviation=48,
        sentences=4.3,
        sentences_deviation=2.6,
        training=3_000_000,
        test=650_000,
        classes=5,
    ),
    "yelp": Table1Row(
        words=125,
        words_deviation=109,
        sentences=7.0,
        sentences_deviation=5.6,
        training=650_000,
        test=50_000,
        classes=5,
    ),
}

STANDS_FOR: Mapping[str, str] = {
    "yahoo-1k": "yahoo",
    "imdb-ratings": "imdb-10",
    "amazon-multi": "amazon",
    "yelp10k": "yelp",
}
"""Samples that fit into a small machine, and the corpus of the paper that each resembles."""

WHAT_DIFFERS: Mapping[str, str] = {
    "yahoo": "The public file has 60,000 test questions; the paper uses 50,000 of them.",
    "imdb-10": "The public file has about 350,000 reviews; the paper does not say which it uses.",
    "yelp": "The public file is Zhang et al.'s of 2015; the paper's is of 2017.",
    "yahoo-1k": "A sample of the paper's corpus.",
    "imdb-ratings": "Other reviews of the same site (Maas et al. 2011), without the ratings 5 and 6.",
    "amazon-multi": "Other reviews of the same site (Keung et al. 2020).",
    "yelp10k": "Other reviews of the same site; their stars are not balanced.",
}
