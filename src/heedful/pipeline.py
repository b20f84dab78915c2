"""One run: settings in; a fitted model, a trace and tables out, into the store."""

import platform
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
from heedful.files import write_json, write_table
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import Classifier
from heedful.probes.recording import recorders
from heedful.probes.scores import token_scores
from heedful.store import RUN, Store, read_manifest, write_manifest
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.vectors import Vectors, initial_vectors
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.events import Observer
from heedful.training.loop import limited_threads, train
from heedful.version import __version__

CHECKPOINT = "training.safetensors"
Tables = dict[str, pd.DataFrame]


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

    @cached_property
    def settings(self) -> RunSettings:
        """Runs of results version 5 and before recorded nothing."""
        return RunSettings.of({"record": {"scores": False}, **self.manifest["settings"]})

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
        """Whether the run has such a table: a hierarchical model has no weights of words, and not all is recorded."""
        return (self.path / f"{name}.parquet").is_file()

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables: history, tokens, weights; with a contextual encoder also tokens_local; and what was
        recorded, moments and flow_… (`heedful.probes.recording`)."""
        return pd.read_parquet(self.path / f"{name}.parquet")

    def trace(self) -> Trace:
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
    """Train, trace and tabulate, once: a finished run of the same settings and data is returned as it is. A run that
    another process computes is waited for, or, without `wait`, a StoreBusy."""
    data = corpus or read_corpus(settings)
    digest = settings.digest(data.fingerprint)
    make = partial(_compute, settings, data, store, observers, digest)
    path, new = store.keep(RUN, digest, make, name=run_name(settings, data), fresh=fresh, wait=wait)
    return Run(path, new)


def _compute(
    settings: RunSettings, corpus: Corpus, store: Store, observers: Sequence[Observer], digest: str, folder: Path
) -> None:
    """The run itself, from its last checkpoint on; all sums with the number of threads that is part of its identity."""
    started = time.monotonic()
    values = settings.model_dump(mode="json")
    vectors = initial_vectors(
        corpus, settings.model.vectors, size=settings.model.embedding_size, seed=settings.training.seed, store=store
    )
    with limited_threads(settings.training.threads):
        model, recorded = _train(settings, corpus, vectors, observers, folder.parent / CHECKPOINT)
        metrics = _write(folder, model, corpus, recorded)
    if vectors is not None:
        metrics["vectors"] = vectors.metrics
    write_json(folder / "settings.json", values)
    write_json(folder / "environment.json", environment())
    manifest = {
        "digest": digest,
        "fingerprint": corpus.fingerprint,
        "corpus": corpus.name,
        "settings": values,
        "metrics": metrics,
        "notices": (*corpus.notices, *([vectors.notice] if vectors else [])),
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
    }
    write_manifest(folder, manifest)


def _train(
    settings: RunSettings, corpus: Corpus, vectors: Vectors | None, observers: Sequence[Observer], checkpoint: Path
) -> tuple[Classifier, Tables]:
    """The model and what was recorded. Goes on from the checkpoint; one that cannot be read is worth less than a
    training that ends."""
    recording = recorders(settings.record, corpus)
    begin = partial(train, corpus, settings.model, settings.training, vectors=vectors, checkpoint=checkpoint)
    try:
        model = begin(observers=[*recording, *observers])
    except CheckpointError:
        checkpoint.unlink()
        recording = recorders(settings.record, corpus)
        model = begin(observers=[*recording, *observers])
    return model, {name: table for recorder in recording for name, table in recorder.tables().items()}


def run_name(settings: RunSettings, corpus: Corpus) -> str:
    """Model and corpus, for people who look into the folder."""
    model = settings.model
    name = "".join(character if character.isalnum() or character in "-." else "-" for character in corpus.name)
    sentences = "hierarchical-" if model.structure == "hierarchical" else ""
    imposed = "" if model.attention_weights == "learned" else f"{model.attention_weights}-"
    penalty = settings.training.alignment_penalty
    scale = f"{model.score_scale:g}-penalty-{penalty:g}" if penalty else f"{model.score_scale:g}"
    return f"{sentences}{imposed}{model.attention}-{model.encoder}-{scale}_{name[:40]}_{settings.training.seed}"


def _write(folder: Path, model: Classifier, corpus: Corpus, recorded: Tables) -> dict[str, Any]:
    """All parts of a run but the manifest; returns its summary numbers."""
    tokens = token_scores(model, corpus)
    traced = trace(model, corpus.test)
    tables = {"history": model.history, "tokens": tokens, **recorded}
    if not model.hierarchical:  # its weights are those of sentences
        tables["weights"] = mean_weights(traced, corpus.test.tokens.numbers, tokens)
        if model.contextual:  # elsewhere a token's scores are the same in every text
            tables["tokens_local"] = token_scores(model, corpus, scope="local")
    save_model(model, folder / "model")
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", table)
    traced.save(folder / "trace.safetensors")
    return _metrics(model, traced, tokens)


def _metrics(model: Classifier, traced: Trace, tokens: pd.DataFrame) -> dict[str, Any]:
    assert traced.labels is not None
    accuracy = share(int((traced.predictions == traced.labels).sum()), len(traced))
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


def environment() -> dict[str, str]:
    """Versions that a reader of the results may want to know."""
    return {
        "heedful": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
    }
