"""The papers' numbers as data, spot-checked against what the notes on the papers say."""

import pytest

from heedful.papers import serrano2019, sun2020
from heedful.papers.sun2020 import GROUP_SIZES, MODELS, SCALES, TABLE_1, TABLE_2, accuracy
from heedful.text.recipes import DATASETS


def test_table_1_has_the_sizes_of_the_notes() -> None:
    totals = {name: [sum(split.values()) for split in row.sizes.values()] for name, row in TABLE_1.items()}
    assert totals["sst"] == [6920, 872, 1821]
    assert totals["imdb"] == [17_212, 4_304, 4_363]
    assert totals["20news-1"] == [1_236, 310, 387]
    assert totals["20news-2"] == [2_300, 240, 274]
    assert [row.vocabulary for row in TABLE_1.values()] == [16_174, 63_311, 17_584, 29_433]
    assert [row.mean_length for row in TABLE_1.values()] == [18, 183, 185, 187]


def test_table_2_is_complete() -> None:
    assert set(TABLE_2) == set(TABLE_1) == set(GROUP_SIZES)
    assert SCALES == (0.001, 1.0, 10.0, 20.0, 50.0, 100.0, 10_000.0)
    for models in TABLE_2.values():
        assert tuple(models) == MODELS
        assert all(len(row) == len(SCALES) and all(30 < value < 96 for value in row) for row in models.values())


@pytest.mark.parametrize(
    ("corpus", "model", "score_scale", "printed"),
    [
        ("sst", "DP", 10.0, 82.2),
        ("sst", "DP", 0.001, 55.3),
        ("sst", "AD", 10_000.0, 80.8),
        ("imdb", "DP-L", 50.0, 87.2),
        ("imdb", "DP-A", 20.0, 89.6),
        ("20news-1", "AD", 0.001, 49.4),
        ("20news-1", "DP-L", 1.0, 93.0),
        ("20news-2", "DP", 0.001, 31.8),
        ("20news-2", "AD", 50.0, 93.8),
    ],
)
def test_cells_of_table_2(corpus: str, model: str, score_scale: float, printed: float) -> None:
    assert accuracy(corpus, model, score_scale) == printed


def test_cells_that_the_paper_does_not_have_are_none() -> None:
    assert accuracy("sst", "DP", 5.0) is None
    assert accuracy("agnews", "DP", 10.0) is None
    assert accuracy("sst", "HAN", 10.0) is None


def test_group_sizes_are_those_of_the_notes() -> None:
    assert tuple(GROUP_SIZES["sst"].values()) == (412, 265, 1384)
    assert tuple(GROUP_SIZES["imdb"].values()) == (2163, 1900, 5968)
    assert tuple(GROUP_SIZES["20news-1"].values()) == (957, 557, 1011)
    assert GROUP_SIZES["20news-2"] == {"motorcycles": 49, "med": 268, "guns": 192, "neutral": 164}


def test_every_corpus_of_the_papers_has_a_name_here() -> None:
    assert set(sun2020.TABLE_1) <= set(DATASETS)
    assert set(sun2020.WHAT_DIFFERS) == set(sun2020.TABLE_1)
    assert set(serrano2019.TABLE_1) <= set(DATASETS)
    assert set(serrano2019.STANDS_FOR) <= set(DATASETS)
    assert set(serrano2019.STANDS_FOR.values()) == set(serrano2019.TABLE_1)


def test_table_1_of_the_second_paper() -> None:
    assert [row.words for row in serrano2019.TABLE_1.values()] == [104, 395, 73, 125]
    assert [row.test for row in serrano2019.TABLE_1.values()] == [50_000, 13_548, 650_000, 50_000]
