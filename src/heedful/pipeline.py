"""One run: settings in; a fitted model, a trace and tables out, into the store."""

import platform
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from heedful.analysis.statistics import share
from heedful.analysis.tokens import mean_weights
from heedful.config import RunSettings
from heedful.errors import StoreError
from heedful.files import replacing, write_json
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import FlatClassifier
from heedful.probes.scores import token_scores
from heedful.store import Store, read_manifest
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.events import Observer
from heedful.training.loop import train
from heedful.version import __version__


@dataclass(frozen=True)
class Run:
    """A finished run in the store; its parts are read when they are asked for."""

    path: Path

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

    def model(self) -> FlatClassifier:
        return load_model(self.path / "model")

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables: history, tokens, weights."""
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
) -> Run:
    """Train, trace and tabulate, once: a finished run of the same settings and data is returned as it is."""
    data = corpus or read_corpus(settings)
    digest = settings.digest(data.fingerprint)
    found = store.find(digest)
    if found and not fresh:
        return Run(found)
    started = time.monotonic()
    work = store.workplace(digest)
    if fresh:
        shutil.rmtree(work, ignore_errors=True)
    checkpoint = work / "training.safetensors"
    model = train(data, settings.model, settings.training, observers=observers, checkpoint=checkpoint)
    written = work / "run"
    shutil.rmtree(written, ignore_errors=True)
    metrics = _write(written, model, data)
    write_json(written / "settings.json", settings.model_dump(mode="json"))
    write_json(written / "environment.json", environment())
    manifest = {
        "digest": digest,
        "fingerprint": data.fingerprint,
        "corpus": data.name,
        "settings": settings.model_dump(mode="json"),
        "metrics": metrics,
        "notices": data.notices,
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
    }
    path = store.publish(written, f"{digest[:12]}_{run_name(settings, data)}", manifest)
    shutil.rmtree(work, ignore_errors=True)
    return Run(path)


def run_name(settings: RunSettings, corpus: Corpus) -> str:
    """Model and corpus, for people who look into the folder."""
    model = settings.model
    name = "".join(character if character.isalnum() or character in "-." else "-" for character in corpus.name)
    return f"{model.attention}-{model.encoder}-{model.score_scale:g}_{name[:40]}_{settings.training.seed}"


def _write(folder: Path, model: FlatClassifier, corpus: Corpus) -> dict[str, Any]:
    """All parts of a run but the manifest; returns its summary numbers."""
    tokens = token_scores(model, corpus)
    found = trace(model, corpus.test)
    groups = [str(group) for group in tokens["group"]]
    weights = mean_weights(found, corpus.test.tokens.numbers, corpus.vocabulary.tokens, groups)
    save_model(model, folder / "model")
    write_table(folder / "history.parquet", model.history)
    write_table(folder / "tokens.parquet", tokens)
    write_table(folder / "weights.parquet", weights)
    found.save(folder / "trace.safetensors")
    return _metrics(model, found, tokens)


def _metrics(model: FlatClassifier, found: Trace, tokens: pd.DataFrame) -> dict[str, Any]:
    assert found.labels is not None
    right = int((found.predictions == found.labels).sum())
    accuracy = share(right, len(found))
    best = model.history.iloc[int(model.history["dev_accuracy"].argmax())]
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
