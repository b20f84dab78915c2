"""One run: interrupted and resumed to the same bits, found and not computed again, locked against others."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from heedful.config import RunSettings
from heedful.errors import StoreBusy
from heedful.pipeline import Run, run
from heedful.store import Store
from heedful.text.corpus import Corpus
from heedful.training import loop
from heedful.training.events import EpochDone, Event

PARTS = ("model/model.safetensors", "history.parquet", "tokens.parquet", "weights.parquet", "moments.parquet")
FLOW = tuple(f"flow_{name}" for name in ("model", "groups", "pairs", "signs", "tokens", "scores", "accuracy"))


def settings(**changes: Any) -> RunSettings:
    small = {"model.embedding_size": 8, "model.hidden_size": 8, "training.epochs": 5, "training.batch_size": 50}
    return RunSettings().change({**small, **{name.replace("__", "."): value for name, value in changes.items()}})


def same_bits(first: Run, second: Run) -> bool:
    """The same bytes; of the trace the same arrays, for safetensors writes its metadata in any order."""
    traces = [load_file(found.path / "trace.safetensors") for found in (first, second)]
    same_trace = all(torch.equal(array, traces[1][name]) for name, array in traces[0].items())
    return same_trace and all((first.path / part).read_bytes() == (second.path / part).read_bytes() for part in PARTS)


class Interrupted(Exception):
    """Stands for whatever ends a training early."""


def stop_after(epoch: int) -> Any:
    def observe(event: Event) -> None:
        if isinstance(event, EpochDone) and event.epoch == epoch:
            raise Interrupted

    return observe


@pytest.mark.parametrize("encoder", ["none", "lstm"])
@pytest.mark.parametrize("optimizer", ["adagrad", "sgd", "adam"])
def test_an_interrupted_training_resumes_and_ends_with_the_same_bits(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, encoder: str, optimizer: str
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    wanted = settings(model__encoder=encoder, training__optimizer=optimizer, training__clip=1.0)
    whole = run(wanted, Store(tmp_path / "whole"), corpus=small_corpus)
    broken = Store(tmp_path / "broken")
    for epoch in (3, 4):  # epoch 3 is lost and repeated: the checkpoint is of epoch 2
        with pytest.raises(Interrupted):
            run(wanted, broken, corpus=small_corpus, observers=[stop_after(epoch)])
    assert broken.finished() == []
    epochs: list[int] = []
    resumed = run(wanted, broken, corpus=small_corpus, observers=[lambda event: epochs.append(event.epoch)])
    assert set(epochs) == {4, 5}
    assert same_bits(whole, resumed)
    assert whole.metrics == resumed.metrics
    assert list((tmp_path / "broken" / ".work").iterdir()) == []


@pytest.mark.parametrize("patience", [None, 1])
def test_what_is_recorded_survives_an_interruption_to_the_last_bit(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, patience: int | None
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    wanted = settings(
        model__encoder="affine",
        model__readout_range=1.0,
        training__epochs=8,
        training__optimizer="sgd",
        training__learning_rate=1.0,
        training__patience=patience,
        record__flow=7,  # out of step with the epochs
        record__pairs=3,
    )
    whole = run(wanted, Store(tmp_path / "whole"), corpus=small_corpus)
    epochs = whole.metrics["epochs"]
    assert (epochs < 8) == (patience is not None)
    broken = Store(tmp_path / "broken")
    for epoch in (2, epochs):  # the second time after the last epoch was seen, and before its checkpoint
        with pytest.raises(Interrupted):
            run(wanted, broken, corpus=small_corpus, observers=[stop_after(epoch)])
    resumed = run(wanted, broken, corpus=small_corpus)
    assert same_bits(whole, resumed)
    for name in FLOW:
        part = f"{name}.parquet"
        assert (whole.path / part).read_bytes() == (resumed.path / part).read_bytes()
    steps = [1, *range(7, 12 * epochs + 1, 7)]
    assert resumed.table("flow_model")["step"].tolist() == steps
    assert resumed.table("moments")["time"].unique().tolist() == list(range(1, epochs + 1))
    assert len(resumed.table("flow_accuracy")) == 1


def test_a_training_that_was_killed_after_its_last_checkpoint_keeps_what_was_recorded(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    store, wanted = Store(tmp_path / "broken"), settings(record__flow=20)

    def die(*_: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr("heedful.pipeline._write", die)
        with pytest.raises(Interrupted):
            run(wanted, store, corpus=small_corpus)
    resumed = run(wanted, store, corpus=small_corpus, observers=[lambda _: pytest.fail("a training ran")])
    assert resumed.table("moments").equals(
        run(settings(), Store(tmp_path / "plain"), corpus=small_corpus).table("moments")
    )
    assert len(resumed.table("flow_scores")) == len(small_corpus.vocabulary)


def test_what_is_recorded_is_part_of_the_identity_and_changes_nothing_else(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    store = Store(tmp_path)
    silent, usual, watched = (
        run(settings(**changes), store, corpus=small_corpus)
        for changes in ({"record__scores": False}, {}, {"record__flow": 30, "record__tokens": False})
    )
    assert len({silent.path, usual.path, watched.path}) == 3
    assert [one.has("moments") for one in (silent, usual, watched)] == [False, True, True]
    assert [watched.has(name) for name in FLOW] == [name != "flow_tokens" for name in FLOW]
    for part in PARTS[:-1]:
        assert (
            (silent.path / part).read_bytes() == (usual.path / part).read_bytes() == (watched.path / part).read_bytes()
        )


def test_a_run_of_results_version_5_is_read_and_not_taken_for_one_of_today(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    store = Store(tmp_path)
    made = run(settings(), store, corpus=small_corpus)
    values = settings().model_dump(mode="json", exclude={"record"})
    manifest = {**made.manifest, "digest": "5" * 64, "settings": values}
    old = store.root / ("5" * 12 + "_old")
    made.path.rename(old)
    (old / "manifest.json").write_text(json.dumps(manifest))
    (old / "moments.parquet").unlink()
    found = Run(store.resolve("5555"))
    assert found.settings == settings(record__scores=False)
    assert not found.has("moments")
    assert len(found.table("tokens")) == len(small_corpus.vocabulary)
    assert run(settings(), store, corpus=small_corpus).new


def test_a_finished_run_is_found_and_not_computed_again(tmp_path: Path, small_corpus: Corpus) -> None:
    store = Store(tmp_path)
    first = run(settings(), store, corpus=small_corpus)
    written = (first.path / "manifest.json").stat()
    again = run(settings(), store, corpus=small_corpus, observers=[stop_after(1)])
    assert again.path == first.path
    assert (again.path / "manifest.json").stat() == written


def test_fresh_computes_again_to_the_same_bits(tmp_path: Path, small_corpus: Corpus) -> None:
    first = run(settings(), Store(tmp_path / "first"), corpus=small_corpus)
    for _ in range(2):
        second = run(settings(), Store(tmp_path / "second"), corpus=small_corpus, fresh=True)
    assert same_bits(first, second)
    assert [path.name for path in (tmp_path / "second").glob(".*.old")] == []


def test_a_run_that_another_process_computes_is_busy(tmp_path: Path, small_corpus: Corpus) -> None:
    store, wanted = Store(tmp_path), settings()
    digest = wanted.digest(small_corpus.fingerprint)
    with store.lock(digest), pytest.raises(StoreBusy, match=r"is being computed by process \d+ on .*Wait for it"):
        run(wanted, store, corpus=small_corpus, wait=False)
    assert run(wanted, store, corpus=small_corpus, wait=False).manifest["digest"] == digest


def test_a_checkpoint_that_cannot_be_read_does_not_stop_the_run(tmp_path: Path, small_corpus: Corpus) -> None:
    store, wanted = Store(tmp_path / "broken"), settings()
    work = store.workplace(wanted.digest(small_corpus.fingerprint))
    work.mkdir(parents=True)
    (work / "training.safetensors").write_bytes(b"no checkpoint")
    found = run(wanted, store, corpus=small_corpus)
    assert same_bits(found, run(wanted, Store(tmp_path / "whole"), corpus=small_corpus))


def test_a_run_directory_holds_everything(tmp_path: Path, small_corpus: Corpus) -> None:
    found = run(settings(), Store(tmp_path), corpus=small_corpus)
    names = {str(path.relative_to(found.path)) for path in found.path.rglob("*") if path.is_file()}
    assert names == {
        *PARTS,
        "trace.safetensors",
        "model/model.json",
        "settings.json",
        "environment.json",
        "manifest.json",
    }
    assert found.settings == settings() == RunSettings.read(found.path / "settings.json")
    assert len(found.table("history")) == found.metrics["epochs"] == 5
