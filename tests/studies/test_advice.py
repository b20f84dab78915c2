"""Advice on λ when trainings fail, and what it says of a penalty."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from heedful.config import RunSettings
from heedful.errors import ConfigError, StoreError
from heedful.pipeline import Run
from heedful.pipeline import run as true_run
from heedful.store import Store
from heedful.studies import advice as module
from heedful.studies.advice import PENALTY, advice_words, recommend_scale, sweep_settings
from heedful.text.corpus import Corpus

SMALL = RunSettings().change({"model.embedding_size": 4, "training.batch_size": 100, "training.epochs": 1})

Fails = Callable[[RunSettings], bool]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Fails, Exception], None]:
    """Let some trainings end in an error."""

    def install(fails: Fails, error: Exception) -> None:
        def run(settings: RunSettings, *arguments: Any, **options: Any) -> Run:
            if fails(settings):
                raise error
            return true_run(settings, *arguments, **options)

        monkeypatch.setattr(module, "run", run)

    return install


def test_a_scale_that_fails_is_left_out_and_said(
    failing: Callable[[Fails, Exception], None], small_corpus: Corpus, tmp_path: Path
) -> None:
    failing(lambda settings: settings.model.score_scale == 1, ConfigError("Training diverged."))
    found = recommend_scale(SMALL, Store(tmp_path), corpus=small_corpus)
    assert set(found.table["scale"]) == {10.0, 100.0}
    assert [one.settings.model.score_scale for one in found.runs] == [10.0, 100.0]
    assert found.words.endswith("λ = 1 could not be tried: Training diverged.")


def test_where_no_scale_can_be_tried_there_is_no_advice(
    failing: Callable[[Fails, Exception], None], small_corpus: Corpus, tmp_path: Path
) -> None:
    failing(lambda _: True, ConfigError("Training diverged."))
    with pytest.raises(ConfigError, match=r"No λ could be tried\. Training diverged\."):
        recommend_scale(SMALL, Store(tmp_path), corpus=small_corpus)


def test_a_store_that_cannot_be_written_is_no_failure_of_a_scale(
    failing: Callable[[Fails, Exception], None], small_corpus: Corpus, tmp_path: Path
) -> None:
    failing(lambda settings: settings.model.score_scale == 100, StoreError("The disk is full."))
    with pytest.raises(StoreError, match="The disk is full"):
        recommend_scale(SMALL, Store(tmp_path), corpus=small_corpus)


def test_a_penalty_that_cannot_be_tried_is_said(
    failing: Callable[[Fails, Exception], None],
    small_corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PARTED", -1.0)
    failing(lambda settings: settings.training.alignment_penalty > 0, ConfigError("Training diverged."))
    found = recommend_scale(SMALL, Store(tmp_path), corpus=small_corpus)
    assert not found.penalise
    assert found.words.endswith("A penalty on VᵀW could not be tried: Training diverged.")
    assert "no need to penalise" not in found.words


def test_the_sweep_shares_all_but_the_scale() -> None:
    swept = sweep_settings(SMALL, (100.0, 1.0, 100.0), epochs=50)
    assert [one.model.score_scale for one in swept] == [1.0, 100.0]
    assert {one.training for one in swept} == {SMALL.training}
    assert sweep_settings(RunSettings(), (1.0,), epochs=3)[0].training.epochs == 3


def table_of(*rows: tuple[float, float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["scale", "penalty", "dev_accuracy", "separation"])


def test_the_words_name_the_scale_its_accuracy_and_its_separation() -> None:
    table = table_of((1.0, 0.0, 0.80, 0.7), (10.0, 0.0, 0.79, 0.9))
    words = advice_words(table, table.iloc[1], 0.02, penalise=False, penalised=True)
    assert words == (
        "Of λ = 1, 10, take λ = 10: dev accuracy 79.0%, within 2.0% of the best, and of the accurate ones its "
        "attention separates polar from neutral words best (AUC 0.90). There is no need to penalise VᵀW."
    )


@pytest.mark.parametrize(
    ("penalise", "said"),
    [(True, "Penalise VᵀW (training.alignment_penalty=0.001)"), (False, "does not halve that without a loss")],
)
def test_the_words_say_whether_to_penalise(penalise: bool, said: str) -> None:
    table = table_of((10.0, 0.0, 0.8, 0.9), (10.0, PENALTY, 0.9, 0.9))
    words = advice_words(table, table.iloc[0], 0.02, penalise=penalise, penalised=True)
    assert "dev accuracy 80.0%, the best" in words  # of the λ; the penalised run is another question
    assert said in words


def test_a_summary_is_plain_data(small_corpus: Corpus, tmp_path: Path) -> None:
    summary = recommend_scale(SMALL, Store(tmp_path), corpus=small_corpus, scales=(10.0,)).summary()
    assert summary["scale"] == 10.0
    assert type(summary["penalise"]) is bool
    assert isinstance(summary["runs"], list)
