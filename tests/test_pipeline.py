"""One run: interrupted and resumed to the same bits, found and not computed again, locked against others."""

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

PARTS = ("model/model.safetensors", "history.parquet", "tokens.parquet", "weights.parquet")


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
