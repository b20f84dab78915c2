"""The numbers that Sun & Lu 2020 print: Table 1, Table 2, the supplement's group sizes, its course on Data I.

Corpora go by the names they have here, models by the paper's, classes by ours: the paper's positive newsgroup is
hockey, its negative one baseball.
"""

from collections.abc import Mapping
from dataclasses import dataclass

CITATION = "Sun & Lu 2020, Understanding Attention for Text Classification, ACL 2020, pages 3418–3428"

MODELS = ("DP", "DP-L", "DP-A", "AD")
"""Dot product on embeddings, on an LSTM, on an affine layer; additive attention on embeddings."""

SCALES = (0.001, 1.0, 10.0, 20.0, 50.0, 100.0, 10000.0)  # the values of λ in Table 2


@dataclass(frozen=True)
class Table1Row:
    """A corpus as the paper describes it."""

    mean_length: int
    vocabulary: int
    documents: Mapping[str, tuple[int, int, int]]
    """Of each class, for training, development and test."""

    @property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Documents by split and class."""
        splits = enumerate(("train", "dev", "test"))
        return {split: {name: sizes[place] for name, sizes in self.documents.items()} for place, split in splits}


TABLE_1: Mapping[str, Table1Row] = {
    "sst": Table1Row(18, 16_174, {"positive": (3610, 444, 909), "negative": (3310, 428, 912)}),
    "imdb": Table1Row(183, 63_311, {"positive": (8539, 2113, 2174), "negative": (8673, 2191, 2189)}),
    "20news-1": Table1Row(185, 17_584, {"hockey": (624, 156, 195), "baseball": (612, 154, 192)}),
    "20news-2": Table1Row(187, 29_433, {"motorcycles": (794, 91, 84), "med": (790, 70, 100), "guns": (716, 79, 90)}),
}

WHAT_DIFFERS: Mapping[str, str] = {
    "sst": "The paper counts three marks of its own in its vocabulary.",
    "imdb": (
        "The paper's reviews keep each <br /> as the word br; counted like this, under 400 words, the training half "
        "has exactly its train and dev reviews. Which of them are dev, and which reviews of the test half are test, is "
        "not known."
    ),
    "20news-1": "The paper does not say which messages it leaves out.",
    "20news-2": "The paper does not say which messages it leaves out.",
}
"""What is known of the reasons why tokens and documents are not the paper's."""

TABLE_2: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "sst": {
        "DP": (55.3, 74.4, 82.2, 81.4, 80.8, 81.2, 79.6),
        "DP-L": (79.8, 81.2, 81.7, 80.9, 82.0, 81.1, 81.4),
        "DP-A": (67.9, 73.4, 80.8, 81.0, 81.5, 80.7, 79.3),
        "AD": (62.8, 73.4, 80.3, 81.2, 79.9, 80.8, 80.8),
    },
    "imdb": {
        "DP": (55.5, 79.5, 89.2, 89.6, 89.8, 89.3, 89.3),
        "DP-L": (87.7, 88.2, 87.8, 88.1, 87.2, 88.3, 88.4),
        "DP-A": (73.3, 85.4, 89.6, 89.6, 89.1, 89.2, 88.9),
        "AD": (69.8, 83.7, 88.2, 89.6, 88.5, 88.8, 88.9),
    },
    "20news-1": {
        "DP": (54.8, 88.4, 92.8, 93.5, 93.3, 92.8, 92.8),
        "DP-L": (88.6, 93.0, 91.2, 92.2, 92.3, 91.2, 92.0),
        "DP-A": (78.6, 85.3, 92.8, 93.5, 92.2, 92.8, 93.0),
        "AD": (49.4, 87.6, 92.0, 91.2, 91.7, 93.3, 92.0),
    },
    "20news-2": {
        "DP": (31.8, 85.4, 93.4, 94.9, 94.9, 94.9, 94.5),
        "DP-L": (90.1, 92.3, 93.4, 94.2, 92.3, 93.1, 93.8),
        "DP-A": (64.6, 88.3, 91.7, 93.3, 92.9, 92.9, 92.5),
        "AD": (59.2, 86.7, 90.0, 92.1, 93.8, 92.9, 92.9),
    },
}
"""Test accuracy in per cent: a corpus, a model, and one number for each of `SCALES`. One run per cell, no intervals."""

GROUP_SIZES: Mapping[str, Mapping[str, int]] = {
    "sst": {"positive": 412, "negative": 265, "neutral": 1384},
    "imdb": {"positive": 2163, "negative": 1900, "neutral": 5968},
    "20news-1": {"positive": 957, "negative": 557, "neutral": 1011},
    "20news-2": {"motorcycles": 49, "med": 268, "guns": 192, "neutral": 164},
}
"""How many tokens the paper examines in each group (supplement, Table 1)."""

PUBLISHED_LOSS: Mapping[int, float] = {0: 0.694, 100: 0.505, 200: 0.206, 300: 0.073, 400: 0.036, 490: 0.020}
"""Training loss of the paper's run on Data I, by epoch."""

PUBLISHED_SCORES: Mapping[tuple[str, str], tuple[float, float | None]] = {
    ("polarity", "positive"): (15.0, None),
    ("polarity", "negative"): (-14.5, None),
    ("polarity", "neutral"): (0.0, None),
    ("attention", "positive"): (0.71, 0.65),
    ("attention", "negative"): (0.66, 0.60),
    ("attention", "neutral"): (-0.07, None),
    ("dot product", "pos-pos"): (1.7, None),
    ("dot product", "neg-neg"): (1.85, None),
    ("dot product", "pos-neg"): (-1.05, None),
}
"""Means at the end of the paper's run on Data I and, where five runs of its recipe are known, their mean: attention
scores depend on the initialisation, so that means over seeds compare with means over seeds."""


def accuracy(corpus: str, model: str, score_scale: float) -> float | None:
    """A cell of Table 2 in per cent; None where the paper has none."""
    row = TABLE_2.get(corpus, {}).get(model)
    return row[SCALES.index(score_scale)] if row and score_scale in SCALES else None
