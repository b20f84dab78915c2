"""One run: settings in; a fitted model, a trace and tables out, into the store."""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.analysis.statistics import share
from heedful.analysis.tokens import mean_weights, words_of_a_class
from heedful.config import RunSettings
from heedful.errors import CheckpointError, StoreError, border
from heedful.files import is_folder, write_json, write_table
from heedful.models.checkpoint import load_model, save_model
from heedful.models.classifier import Classifier
from heedful.models.frozen import find_reader
from heedful.probes.recording import recorders
from heedful.probes.scores import token_scores
from heedful.store import RUN, Store, check_part, read_manifest, write_manifest
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.text.vectors import initial_vectors
from heedful.traces import Trace
from heedful.tracing import tokens_alone, trace
from heedful.training.events import Observer
from heedful.training.loop import keep_vectors, limited_threads, train
from heedful.training.objectives import make_aim
from heedful.version import __version__

CHECKPOINT = "training.safetensors"
Tables = dict[str, pd.DataFrame]
Traces = dict[str, Trace]
"""By the names of the splits."""


@dataclass(frozen=True)
class Run:
    """A finished run in the store; its parts are read when they are asked for."""

    path: Path
    new: bool = field(default=False, compare=False)
    """Whether it was computed by the call that returned it, and not found."""

    def __post_init__(self) -> None:
        if not is_folder(self.path):
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
        self._part("model/model.json"), self._part("model/model.safetensors")
        return load_model(self.path / "model", store=Store(self.path.parent))

    def has(self, name: str) -> bool:
        """Whether the run has such a table: a hierarchical model has no weights of words, and not all is recorded."""
        return (self.path / f"{name}.parquet").is_file()

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables: history, tokens, weights; with a contextual encoder also tokens_local; and what was
        recorded, moments and flow_… (`heedful.probes.recording`)."""
        path = self._part(f"{name}.parquet")
        with border(f"The table '{path}'", StoreError):
            return pd.read_parquet(path)

    def trace(self) -> Trace:
        return Trace.load(self._part("trace.safetensors"))

    def _part(self, name: str) -> Path:
        return check_part(self.path, self.manifest, name)

    def traces(self, corpus: Corpus, store: Store) -> Traces:
        """Traces of all splits of the corpus that it was trained on; given weights are those of its base."""
        given = base_traces(self.settings, corpus, store) if self.settings.model.attention_weights == "given" else {}
        model = self.model()
        with limited_threads(self.settings.training.threads):
            return {name: trace(model, split, weights=given.get(name)) for name, split in corpus.splits().items()}


def read_corpus(settings: RunSettings) -> Corpus:
    """The corpus that the settings name."""
    return load_corpus(**settings.data.model_dump())


def base_traces(settings: RunSettings, corpus: Corpus, store: Store, observers: Sequence[Observer] = ()) -> Traces:
    """What the base of a run does on each split; none where it has no base. The base is found, or computed first.

    Another process that computes the base is waited for.
    """
    return (
        {}
        if settings.base is None
        else run(settings.base, store, corpus=corpus, observers=observers).traces(corpus, store)
    )


def run(
    settings: RunSettings,
    store: Store,
    *,
    corpus: Corpus | None = None,
    observers: Sequence[Observer] = (),
    fresh: bool = False,
    wait: bool = True,
) -> Run:
    """Train, trace and tabulate, once: a finished run of the same settings and data is returned as it is. The run that
    its settings have as their base is computed before it, before the same observers, and kept too. A run that another
    process computes is waited for, or, without `wait`, a StoreBusy."""
    data = corpus or read_corpus(settings)
    digest = settings.digest(data.fingerprint)
    make = partial(_compute, settings, data, store, observers, digest)
    path, new = store.keep(RUN, digest, make, name=run_name(settings, data), fresh=fresh, wait=wait)
    return Run(path, new)


def _compute(
    settings: RunSettings, corpus: Corpus, store: Store, observers: Sequence[Observer], digest: str, folder: Path
) -> None:
    """The run itself, from its last checkpoint on; all sums with the number of threads that is part of its identity."""
    base = base_traces(settings, corpus, store, observers)
    started = time.monotonic()
    values = settings.model_dump(mode="json")
    vectors = initial_vectors(
        corpus, settings.model.vectors, size=settings.model.embedding_size, seed=settings.training.seed, store=store
    )
    reader = find_reader(settings.model, store)
    if reader is not None:
        keep_vectors(reader, {**corpus.splits(), "vocabulary": tokens_alone(corpus.vocabulary)}, observers)
    given = base if settings.model.attention_weights == "given" else {}
    with limited_threads(settings.training.threads):
        begin = partial(
            train,
            corpus,
            settings.model,
            settings.training,
            weights=given,
            aim=make_aim(settings.training, base=base, impermissible=_impermissible(settings, corpus)),
            vectors=vectors,
            reader=reader,
            checkpoint=folder.parent / CHECKPOINT,
        )
        model, recorded = _train(begin, settings, corpus, observers, folder.parent / CHECKPOINT)
        metrics = _write(folder, model, corpus, recorded, given.get("test"))
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


def _impermissible(settings: RunSettings, corpus: Corpus) -> Bool[Tensor, " vocab"] | None:
    """The tokens that a deceptive attention leaves: those that belong to a class in the training split."""
    return words_of_a_class(corpus) if settings.training.objective == "deceptive" else None


def _train(
    begin: Callable[..., Classifier],
    settings: RunSettings,
    corpus: Corpus,
    observers: Sequence[Observer],
    checkpoint: Path,
) -> tuple[Classifier, Tables]:
    """The model and what was recorded. Goes on from the checkpoint; one that cannot be read is worth less than a
    training that ends."""
    recording = recorders(settings.record, corpus)
    try:
        model = begin(observers=[*recording, *observers])
    except CheckpointError:
        checkpoint.unlink()
        recording = recorders(settings.record, corpus)
        model = begin(observers=[*recording, *observers])
    return model, {name: table for recorder in recording for name, table in recorder.tables().items()}


def run_name(settings: RunSettings, corpus: Corpus) -> str:
    """Model, the models that it rests on, and corpus, for people who look into the folder."""
    name = "".join(character if character.isalnum() or character in "-." else "-" for character in corpus.name)
    kinds, base = [_kind(settings)], settings.base
    while base is not None:
        kinds, base = [*kinds, _kind(base)], base.base
    return f"{'-on-'.join(kinds)[:120]}_{name[:40]}_{settings.training.seed}"


def _kind(settings: RunSettings) -> str:
    """The model in a few words: what is unusual about it, attention, encoder, scale, penalty."""
    model, training = settings.model, settings.training
    parts = [
        "" if training.objective == "cross_entropy" else f"{training.objective}-{training.objective_weight:g}",
        "hierarchical" if model.structure == "hierarchical" else "",
        "" if model.attention_weights == "learned" else model.attention_weights,
        "" if model.normaliser == "softmax" else model.normaliser,
        f"{model.attention}-{model.encoder}-{model.score_scale:g}",
        f"penalty-{training.alignment_penalty:g}" if training.alignment_penalty else "",
    ]
    return "-".join(filter(None, parts))


def _write(
    folder: Path, model: Classifier, corpus: Corpus, recorded: Tables, weights: Trace | None = None
) -> dict[str, Any]:
    """All parts of a run but the manifest; returns its summary numbers."""
    tokens = token_scores(model, corpus)
    traced = trace(model, corpus.test, weights=weights)
    tables = {"history": model.history, "tokens": tokens, **recorded}
    if not model.hierarchical:  # its weights are those of sentences
        tables["weights"] = mean_weights(traced, corpus.test.tokens.numbers, tokens)
        if model.contextual and _has_own_scores(model):  # elsewhere a token's scores are the same in every text
            tables["tokens_local"] = token_scores(model, corpus, scope="local")
    save_model(model, folder / "model")
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", table)
    traced.save(folder / "trace.safetensors")
    return _metrics(model, traced, tokens)


def _has_own_scores(model: Classifier) -> bool:
    """Whether every word has a score of the model's own, in every text: others are given, or are −∞ without weight."""
    return model.settings.attention_weights != "given" and model.settings.normaliser == "softmax"


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
