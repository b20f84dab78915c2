"""Tables of a sweep, memory and time: numbers that can be done by hand."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from heedful.config import RunSettings
from heedful.errors import InputError
from heedful.files import write_table
from heedful.store import RUN, Store, write_manifest
from heedful.sweep.loop import (
    BASE_BYTES,
    available_bytes,
    cores,
    fitting_workers,
    seconds_left,
    worker_bytes,
)
from heedful.sweep.tables import metric_names, summarize, table_of


def manifest(scale: float, seed: int, accuracy: float) -> dict[str, Any]:
    settings = RunSettings().change({"model.score_scale": scale, "training.seed": seed})
    metrics = {"test_accuracy": accuracy, "test_accuracy_low": 0.0, "alignment": [1.0, 2.0], "epochs": 40}
    values = {"settings": settings.model_dump(mode="json"), "metrics": metrics}
    return {"digest": f"{scale}{seed}", "corpus": "made", "seconds": 80.0 * seed, "version": "0", **values}


RUNS = [("a", manifest(1, 0, 0.25)), ("b", manifest(1, 1, 0.75)), ("c", manifest(10, 0, 0.5))]


def test_the_table_has_means_and_student_intervals_over_seeds() -> None:
    runs = table_of(RUNS)
    metrics = metric_names(found for _, found in RUNS)
    assert metrics == ["test_accuracy", "alignment.0", "alignment.1", "epochs"]
    table = summarize(runs, ["model.score_scale", "training.seed"], metrics)
    rows = table[table["metric"] == "test_accuracy"]
    assert rows["model.score_scale"].tolist() == [1.0, 10.0]
    half = 12.7062047362 * 0.25  # the t quantile of one degree of freedom, times the standard error
    numbers = rows[["mean", "low", "high", "seeds"]].to_numpy(float).tolist()
    assert 0.5 - half < 0 < 1 < 0.5 + half  # more than a share can be
    assert numbers[0] == [0.5, 0.0, 1.0, 2]
    assert numbers[1] == pytest.approx([0.5, math.nan, math.nan, 1], nan_ok=True)  # one seed tells no spread
    epochs = runs.loc[runs["model.score_scale"] == 1.0, "epochs"]
    spread = 12.7062047362 * epochs.std() / math.sqrt(2)
    row = table[(table["metric"] == "epochs") & (table["model.score_scale"] == 1.0)].iloc[0]
    assert [row["low"], row["high"]] == pytest.approx([epochs.mean() - spread, epochs.mean() + spread])
    assert list(table.columns[:4]) == ["data.source", "model.attention", "model.encoder", "model.score_scale"]


def test_the_tables_of_a_sweep_hold_no_times() -> None:
    assert not {"seconds", "version"} & set(table_of(RUNS, timed=False).columns)


def test_no_finished_run_is_an_empty_table() -> None:
    assert list(summarize(table_of([]), ["training.seed"], []).columns[-5:]) == [
        "metric",
        "mean",
        "low",
        "high",
        "seeds",
    ]


def test_tables_are_csv_or_parquet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"written as \.csv or \.parquet, not as 'table\.xls'"):
        write_table(tmp_path / "table.xls", table_of(RUNS))


def test_time_is_estimated_from_the_runs_that_are_most_alike(tmp_path: Path) -> None:
    store = Store(tmp_path)
    lstm = RunSettings().change({"model.encoder": "lstm", "training.epochs": 10})
    assert seconds_left([lstm], store, 2) is None
    for name, found in RUNS:  # medians of 0, 2 and 0 seconds per epoch
        store.keep(RUN, name, partial(write_manifest, manifest=found))
    assert seconds_left([], store, 2) == 0
    assert seconds_left([lstm], store, 2) == 0
    slow = {**RUNS[0][1], "settings": lstm.model_dump(mode="json"), "seconds": 120}
    store.keep(RUN, "d", partial(write_manifest, manifest=slow))
    assert seconds_left([lstm] * 4, store, 2) == pytest.approx(4 * 10 * 3 / 2)


def test_workers_are_as_many_as_fit() -> None:
    needed = worker_bytes(RunSettings(), vocabulary=100_000, traced_units=1_000_000)
    assert needed == BASE_BYTES + 12 * 4 * 100_000 * 100 + 250 * 1_000_000
    assert fitting_workers(8, 1000, None) == 8
    assert fitting_workers(8, 1000, 4000) == 3
    assert fitting_workers(8, 1000, 10) == 1
    assert cores() >= 1
    assert (available_bytes() or 1) > 0


def test_words_among_the_metrics_are_not_summarised() -> None:
    """Runs that began with word vectors say where these came from."""
    metrics = {"test_accuracy": 0.5, "vectors": {"source": "word2vec", "found": 7}}
    assert metric_names([{"metrics": metrics}]) == ["test_accuracy", "vectors.found"]


def test_a_setting_of_several_numbers_tells_rows_apart() -> None:
    wide = manifest(1, 0, 0.5)
    wide["settings"]["model"]["widths"] = [1, 3, 5, 7]
    runs = table_of([RUNS[0], ("wide", wide)])
    assert runs["model.widths"].tolist() == ["3, 5", "1, 3, 5, 7"]
    table = summarize(runs, ["model.widths"], ["test_accuracy"])
    assert table["mean"].tolist() == [0.25, 0.5]
