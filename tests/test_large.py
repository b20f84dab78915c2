"""The measurement of large data, on few."""

from pathlib import Path

import pandas as pd
import pytest

from benchmarks.large import STAGES, generate, measured, rows, words_of


def test_reviews_are_as_long_as_they_should_be_and_half_of_them_positive(tmp_path: Path) -> None:
    tokens = generate(tmp_path / "reviews.csv", 3000, words=500)
    table = pd.read_csv(tmp_path / "reviews.csv")
    assert tokens == sum(len(text.split()) for text in table["text"])
    assert tokens / 3000 == pytest.approx(73, rel=0.05)
    assert table["label"].value_counts(normalize=True)["positive"] == pytest.approx(0.5, abs=0.04)
    assert table["split"].value_counts(normalize=True)["test"] == pytest.approx(650 / 3000, abs=0.03)
    assert len(set(words_of(5000))) == 5000


def test_every_stage_is_done_and_measured(tmp_path: Path) -> None:
    generate(tmp_path / "reviews.csv", 300, words=200)
    found = {stage: measured(stage, tmp_path) for stage in STAGES if stage != "ray"}
    assert found["trace"]["texts"] == found["erasure"]["texts"]
    assert all(0 < found["erasure"]["minimum"] <= found["erasure"][by] <= 1 for by in ("attention", "random"))
    assert all(one["peak_mb"] >= one["own_mb"] for one in found.values())
    assert all(one["own_mb"] >= 0 for one in found.values())  # in one process a later stage may fit under the peak
    table = rows([{"reviews": 300, **one} for one in found.values()])
    assert table[0]["what"] == "300 reviews: corpus"
