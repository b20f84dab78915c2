"""One run: settings in; a fitted model, a trace and tables out, into the store."""

import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from heedful.analysis.statistics import share
from heedful.analysis.tokens import mean_weights
from heedful.config import RunSettings
from heedful.errors import CheckpointError, StoreError
from heedful.files import replacing, write_json
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import Classifier
from heedful.probes.scores import token_scores
from heedful.store import PREFIX, Store, read_manifest
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.vectors import Vectors, initial_vectors
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.events import Observer
from heedful.training.loop import limited_threads, train
from heedful.version import __version__

VECTORS = ".vectors"
"""Where a store keeps the word vectors that its runs began with."""


@dataclass(frozen=True)
class Run:
    """A finished run in the store; its parts are read when they are asked for."""

    path: Path
    new: bool = field(default=False, compare=False)
    """Whether it was computed by the call that returned it, and not found."""

    def __post_init__(self) -> None:
        if not self.path.is_dir():
            raise StoreError(f"There is no run '{self.path}'. `heedful train` or `heedful audit` makes one.")

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return read_manifest(self.path)

    @property
    def settings(self) -> RunSettings:
        return RunSettings.of(self.manifest["settings"])

    @property
    def metrics(self) -> dict[str, Any]:
        metrics: dict[str, Any] = self.manifest["metrics"]
        return metrics

    def notices(self, corpus: Corpus) -> tuple[str, ...]:
        """What to know of the data as they are now (a found run may be older), and of the run's first vectors."""
        of_vectors = self.manifest["notices"][-1:] if "vectors" in self.metrics else []  # said last of a run
        return (*corpus.notices, *of_vectors)

    def model(self) -> Classifier:
        return load_model(self.path / "model")

    def has(self, name: str) -> bool:
        """Whether the run has such a table: a hierarchical model has no weights of words."""
        return (self.path / f"{name}.parquet").is_file()

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables: history, tokens, weights; with a contextual encoder also tokens_local."""
        return pd.read_parquet(self.path / f"{name}.parquet")

    def trace(self) -> Trace:
        """The trace of the test split."""
        return Trace.load(self.path / "trace.safetensors")


def read_corpus(settings: RunSettings) -> Corpus:
    """The corpus that the settings name."""
    return load_corpus(**settings.data.model_dump())


def run(
    settings: RunSettings,
    store: Store,
    *,
    corpus: Corpus | None = None,
    observers: Sequence[Observer] = (),
    fresh: bool = False,
    wait: bool = True,
) -> Run:
    """Train, trace and tabulate, once: a finished run of the same settings and data is returned as it is.

    A run that another process computes is waited for, or, without `wait`, a StoreBusy.
    """
    data = corpus or read_corpus(settings)
    digest = settings.digest(data.fingerprint)
    found = None if fresh else store.find(digest)
    if found:
        return Run(found)
    with store.lock(digest, wait=wait):
        found = None if fresh else store.find(digest)  # whoever held the lock may have finished it
        return Run(found) if found else Run(_compute(settings, store, data, observers, fresh), new=True)


def _compute(settings: RunSettings, store: Store, corpus: Corpus, observers: Sequence[Observer], fresh: bool) -> Path:
    """The run itself, from its last checkpoint on; all sums with the number of threads that is part of its identity."""
    started = time.monotonic()
    digest = settings.digest(corpus.fingerprint)
    work = store.workplace(digest)
    if fresh:
        shutil.rmtree(work, ignore_errors=True)
    vectors = initial_vectors(
        corpus,
        settings.model.vectors,
        size=settings.model.embedding_size,
        seed=settings.training.seed,
        cache=store.root / VECTORS,
    )
    with limited_threads(settings.training.threads):
        model = _train(settings, corpus, vectors, observers, work / "training.safetensors")
        written = work / "run"
        shutil.rmtree(written, ignore_errors=True)
        metrics = _write(written, model, corpus)
    if vectors is not None:
        metrics["vectors"] = vectors.metrics
    write_json(written / "settings.json", settings.model_dump(mode="json"))
    write_json(written / "environment.json", environment())
    manifest = {
        "digest": digest,
        "fingerprint": corpus.fingerprint,
        "corpus": corpus.name,
        "settings": settings.model_dump(mode="json"),
        "metrics": metrics,
        "notices": (*corpus.notices, *([vectors.notice] if vectors else [])),
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
    }
    path = store.publish(written, f"{digest[:PREFIX]}_{run_name(settings, corpus)}", manifest)
    store.forget_failure(digest)
    shutil.rmtree(work, ignore_errors=True)
    return path


def _train(
    settings: RunSettings, corpus: Corpus, vectors: Vectors | None, observers: Sequence[Observer], checkpoint: Path
) -> Classifier:
    """Go on from the checkpoint; one that cannot be read is worth less than a training that ends."""
    begin = partial(
        train,
        corpus,
        settings.model,
        settings.training,
        vectors=vectors,
        observers=observers,
        checkpoint=checkpoint,
    )
    try:
        return begin()
    except CheckpointError:
        checkpoint.unlink()
        return begin()


def run_name(settings: RunSettings, corpus: Corpus) -> str:
    """Model and corpus, for people who look into the folder."""
    model = settings.model
    name = "".join(character if character.isalnum() or character in "-." else "-" for character in corpus.name)
    sentences = "hierarchical-" if model.structure == "hierarchical" else ""
    penalty = settings.training.alignment_penalty
    scale = f"{model.score_scale:g}-penalty-{penalty:g}" if penalty else f"{model.score_scale:g}"
    return f"{sentences}{model.attention}-{model.encoder}-{scale}_{name[:40]}_{settings.training.seed}"


def _write(folder: Path, model: Classifier, corpus: Corpus) -> dict[str, Any]:
    """All parts of a run but the manifest; returns its summary numbers."""
    tokens = token_scores(model, corpus)
    found = trace(model, corpus.test)
    save_model(model, folder / "model")
    write_table(folder / "history.parquet", model.history)
    write_table(folder / "tokens.parquet", tokens)
    if model.contextual and not model.hierarchical:  # elsewhere a token's scores are the same in every text
        write_table(folder / "tokens_local.parquet", token_scores(model, corpus, scope="local"))
    if not model.hierarchical:  # its weights are those of sentences
        write_table(folder / "weights.parquet", mean_weights(found, corpus.test.tokens.numbers, tokens))
    found.save(folder / "trace.safetensors")
    return _metrics(model, found, tokens)


def _metrics(model: Classifier, found: Trace, tokens: pd.DataFrame) -> dict[str, Any]:
    assert found.labels is not None
    right = int((found.predictions == found.labels).sum())
    accuracy = share(right, len(found))
    best = model.history[model.history["kept"]].iloc[0]
    return {
        "test_accuracy": accuracy.value,
        "test_accuracy_low": accuracy.low,
        "test_accuracy_high": accuracy.high,
        "dev_accuracy": float(best["dev_accuracy"]),
        "best_epoch": int(best["epoch"]),
        "epochs": len(model.history),
        "alignment": model.alignment().detach().double().tolist(),
        "groups": {str(name): int(count) for name, count in tokens["group"].value_counts().items()},
    }


def write_table(path: Path, table: pd.DataFrame) -> None:
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def environment() -> dict[str, str]:
    """Versions that a reader of the results may want to know."""
    return {
        "heedful": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
    }
