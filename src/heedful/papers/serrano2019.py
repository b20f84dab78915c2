"""The numbers that Serrano & Smith 2019 print: Tables 1, 2 and 3, Figure 13, and the caption of Figure 6.

What the text says in numbers of all models is in `heedful.claims.erasure`, whose claims are judged by it. Corpora go by
the names they have here, models by the paper's. Figures 9 and 12, the tables of the other models for attention and
gradient tops, are pictures whose numbers are not at hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass

CITATION = "Serrano & Smith 2019, Is Attention Interpretable?, ACL 2019, pages 2931–2951"

MODELS = ("HANrnn", "HANconv", "HANnoenc", "FLANrnn", "FLANconv", "FLANnoenc")

NAMES: Mapping[str, str] = {"yahoo": "Yahoo Answers", "imdb-10": "IMDB", "amazon": "Amazon", "yelp": "Yelp"}
"""The data sets of the paper and what it calls them."""


@dataclass(frozen=True)
class Table1Row:
    """A corpus as the paper describes it, its columns in the paper's order."""

    words: int
    words_deviation: int
    sentences: float
    sentences_deviation: float
    training: int
    """Documents to train and to select on."""
    test: int
    classes: int


TABLE_1: Mapping[str, Table1Row] = {
    "yahoo": Table1Row(104, 114, 6.2, 5.9, 1_400_000, 50_000, 10),
    "imdb-10": Table1Row(395, 259, 16.2, 10.7, 122_121, 13_548, 10),
    "amazon": Table1Row(73, 48, 4.3, 2.6, 3_000_000, 650_000, 5),
    "yelp": Table1Row(125, 109, 7.0, 5.6, 650_000, 50_000, 5),
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
"""Why documents are not the paper's."""

CELLS = ("both", "only top", "only other", "neither")
"""Of two erasures, that of the top unit and that of another: which flip the decision."""

Cells = tuple[float, float, float, float]

TABLE_2: Mapping[str, Cells] = {
    "yahoo": (0.5, 8.7, 1.3, 89.6),
    "imdb-10": (2.2, 12.2, 1.4, 84.2),
    "amazon": (2.7, 7.6, 2.7, 87.1),
    "yelp": (1.5, 8.9, 1.9, 87.7),
}
"""Per cent of the test instances in each of `CELLS` for the HANrnn and the unit of largest attention."""

FIGURE_13: Mapping[str, Mapping[str, Cells]] = {
    model: dict(zip(NAMES, cells, strict=True))
    for model, cells in {
        "HANrnn": ((1.3, 9.5, 0.5, 88.7), (2.9, 15.5, 0.6, 81.0), (4.5, 10.5, 0.8, 84.2), (2.7, 11.3, 0.8, 85.3)),
        "FLANrnn": ((0.6, 13.2, 0.0, 86.2), (0.2, 18.3, 0.1, 81.5), (0.9, 10.5, 0.1, 88.5), (0.4, 10.6, 0.1, 88.9)),
        "HANconv": ((2.8, 5.1, 0.4, 91.7), (5.0, 20.5, 0.9, 73.6), (8.8, 18.2, 1.0, 72.0), (6.3, 16.0, 0.8, 76.9)),
        "FLANconv": ((1.1, 19.3, 0.0, 79.6), (0.5, 26.7, 0.0, 72.8), (2.7, 32.7, 0.2, 64.3), (1.3, 20.4, 0.2, 78.1)),
        "HANnoenc": ((5.6, 23.1, 0.6, 70.7), (9.2, 42.9, 0.8, 47.1), (18.4, 33.9, 1.5, 46.2), (11.9, 27.8, 1.6, 58.7)),
        "FLANnoenc": ((1.8, 19.4, 0.0, 78.8), (0.6, 36.2, 0.1, 63.1), (3.8, 35.9, 0.3, 60.0), (2.3, 26.3, 0.3, 71.1)),
    }.items()
}
"""The same for every model and the unit whose product of attention and gradient is largest; corpora as in `NAMES`."""

TABLE_3: Mapping[str, tuple[float, ...]] = {
    "yahoo": (74.6, 72.8, 73.1, 75.5, 73.1, 72.3),
    "imdb-10": (50.3, 48.9, 46.1, 49.1, 48.2, 45.4),
    "amazon": (56.9, 55.3, 51.2, 56.6, 54.4, 50.2),
    "yelp": (63.0, 61.0, 58.6, 62.3, 60.7, 58.2),
}
"""Test accuracy in per cent: a corpus, and one number for each of `MODELS`."""

OVER_HALF: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("amazon", "FLANnoenc"): {"random": 12.4, "attention": 2.8, "gradient": 0.9, "product": 0.5}
}
"""Per cent of the instances that lose more than half of their units before they flip (caption of Figure 6)."""


def counterpart(dataset: str) -> str | None:
    """The paper's corpus that a data set is or stands for; None where there is none."""
    meant = STANDS_FOR.get(dataset, dataset)
    return meant if meant in TABLE_3 else None


def accuracy(dataset: str, model: str) -> float | None:
    """A cell of Table 3 in per cent; None where the paper has none."""
    meant = counterpart(dataset)
    return TABLE_3[meant][MODELS.index(model)] if meant and model in MODELS else None


def flip_cells(dataset: str, model: str, ranking: str) -> Mapping[str, float] | None:
    """The paper's flip table by cell in per cent; None where its numbers are not at hand."""
    tables: Mapping[str, Cells] = {}
    if ranking == "product":
        tables = FIGURE_13.get(model, {})
    elif ranking == "attention" and model == "HANrnn":
        tables = TABLE_2
    cells = tables.get(counterpart(dataset) or "")
    return dict(zip(CELLS, cells, strict=True)) if cells else None


def over_half(dataset: str, model: str, ranking: str) -> float | None:
    """Per cent of instances that lose more than half, where the paper says it."""
    return OVER_HALF.get((counterpart(dataset) or "", model), {}).get(ranking)
