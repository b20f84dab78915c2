"""Trainings on synthetic data that are watched, recorded once and found again.

A recording is a training with a `FlowRecorder` beside it. Its tables lie in the store,

    <store>/.recordings/<digest>/       whole or absent; recording.json says what it is
        model.parquet                   by moment: loss, mean β, VᵀW, norms
        groups.parquet                  by moment and group of tokens: mean scores and terms
        signs.parquet                   by moment and group: share of tokens for which each score or term is positive
        pairs.parquet                   by moment and pair of tokens: Ω and its rate (affine: Ω of hidden vectors)
        tokens.parquet                  by moment and token: polarity and attention
        scores.parquet                  at the end: counts and scores of every token
        history.parquet                 by epoch: loss and dev accuracy

Groups are the planted ones, whatever the counts say: on skewed data every neutral token leans to the larger class.
"""

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field

from heedful.analysis.dynamics import dot_products, see_tokens
from heedful.analysis.statistics import Numbers
from heedful.config import ModelSettings, Settings, TrainingSettings
from heedful.errors import HeedfulError
from heedful.files import locked, read_json, replacing, write_json
from heedful.probes.flow import FlowRecorder, parameters_of
from heedful.probes.scores import token_scores
from heedful.store import PREFIX, Store
from heedful.sweep.memory import BASE_BYTES, available_bytes, cores, fitting_workers
from heedful.text import synthetic
from heedful.text.corpus import Corpus
from heedful.training.events import EpochDone, Event, StepDone
from heedful.training.loop import train
from heedful.training.metrics import evaluate
from heedful.version import RESULTS_VERSION

FORMAT = 1
"""Raised when what a recording holds changes; part of its identity."""

RATE, BATCH = 0.015, 200
"""The paper's fixed learning rate and batch size."""

STEPS = synthetic.TRAIN_SIZE // BATCH
"""Steps of an epoch."""

EVERY = 5 * STEPS
"""Steps between the moments that are kept."""

PAIRS = 100
"""Pairs of tokens that are followed, for every two groups."""


class PlantedSettings(Settings):
    """A synthetic corpus: Data I by default, Data II with noise, skewed, or of several classes."""

    classes: int = Field(2, ge=2)
    noise: float = Field(0.0, ge=0, lt=1)  # share of texts with words of another class
    positive_share: float = Field(0.5, gt=0, lt=1)  # of two classes
    size: int = Field(synthetic.TRAIN_SIZE, ge=1)
    seed: int = Field(0, ge=0)  # of the data; trainings with other seeds share them


class RecordingSettings(Settings):
    """Everything that decides what a recording holds."""

    data: PlantedSettings = PlantedSettings()
    model: ModelSettings
    training: TrainingSettings
    every: int = Field(EVERY, ge=1)
    pairs: int = Field(PAIRS, ge=1)

    @property
    def digest(self) -> str:
        """The recording's identity; as for runs, a new setting whose default changes nothing leaves it as it is."""
        settings = self.model_dump(mode="json", exclude_defaults=True)
        content = {"settings": settings, "results": RESULTS_VERSION, "format": FORMAT}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A finished recording; its tables are read when they are asked for."""

    path: Path
    settings: RecordingSettings

    @property
    def seed(self) -> int:
        return self.settings.training.seed

    @property
    def facts(self) -> dict[str, Any]:
        """Train and test accuracy at the end."""
        facts: dict[str, Any] = read_json(self.path / "recording.json")["facts"]
        return facts

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables; `time` counts epochs of the paper's rate and batches, so that quick recordings compare."""
        table = pd.read_parquet(self.path / f"{name}.parquet")
        if "step" not in table:
            return table
        table.insert(2, "time", table["step"] * self.settings.training.learning_rate / (RATE * STEPS))
        return table


Recordings = Mapping[str, Sequence[Recording]]


def record(
    store: Store,
    wanted: Sequence[RecordingSettings],
    *,
    workers: int | None = None,
    watch: Callable[[Recording], None] | None = None,
) -> list[Recording]:
    """A recording for each of these settings, in their order; what the store holds is not computed again.

    Missing ones run in so many processes (by default as many as there are cores), one thread each, so that results do
    not depend on their number.
    """
    missing = [settings for settings in dict.fromkeys(wanted) if _find(store, settings) is None]
    most = workers or fitting_workers(cores(), BASE_BYTES, available_bytes())
    if most == 1 or len(missing) < 2:
        for settings in missing:
            _tell(watch, _record_one(store.root, settings))
    else:
        _record_in_processes(store, missing, min(most, len(missing)), watch)
    return [_must_find(store, settings) for settings in wanted]


def _record_in_processes(
    store: Store, missing: Sequence[RecordingSettings], workers: int, watch: Callable[[Recording], None] | None
) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting: list[Future[Recording]] = [pool.submit(_record_one, store.root, settings) for settings in missing]
        try:
            for future in as_completed(waiting):
                _tell(watch, future.result())
        except BrokenProcessPool as error:
            raise HeedfulError(
                "A process that was recording died, perhaps because memory ran out. What is finished stays in the "
                "store; call again, or with fewer workers."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _tell(watch: Callable[[Recording], None] | None, done: Recording) -> None:
    if watch is not None:
        watch(done)


def _place(root: Path, settings: RecordingSettings) -> Path:
    return root / ".recordings" / settings.digest[:PREFIX]


def _find(store: Store, settings: RecordingSettings) -> Recording | None:
    path = _place(store.root, settings)
    return Recording(path=path, settings=settings) if path.is_dir() else None


def _must_find(store: Store, settings: RecordingSettings) -> Recording:
    found = _find(store, settings)
    if found is None:
        raise HeedfulError(f"Recording {settings.digest[:PREFIX]} vanished from '{store.root}'. Call again.")
    return found


def _record_one(root: Path, settings: RecordingSettings) -> Recording:
    """Train and write, unless another process just did."""
    path = _place(root, settings)
    with locked(path.with_name(f"{path.name}.lock"), f"Recording {path.name} of '{root}'"):
        if not path.is_dir():
            tables, facts = _watch_training(settings)
            with replacing(path) as temporary:
                temporary.mkdir()
                for name, table in tables.items():
                    table.to_parquet(temporary / f"{name}.parquet", index=False, compression="zstd")
                write_json(temporary / "recording.json", {"settings": settings.model_dump(mode="json"), "facts": facts})
    return Recording(path=path, settings=settings)


@lru_cache(maxsize=2)
def make_corpus(data: PlantedSettings) -> Corpus:
    """The corpus of some settings, kept for the next recording on it."""
    name = f"synthetic ({data.classes} classes, {data.positive_share:g} positive, noise {data.noise:g})"
    if data.classes > 2:
        return synthetic.multi(name=name, seed=data.seed, classes=data.classes, noise=data.noise, size=data.size)
    return synthetic.binary(
        name=name, seed=data.seed, noise=data.noise, positive_share=data.positive_share, size=data.size
    )


class _Watcher:
    """A FlowRecorder, and beside it what that does not keep: Ω of hidden vectors, and the scores at the very end.

    `train` gives back the best epoch on dev, which on these data comes early; the figures are about the last.
    """

    def __init__(self, settings: RecordingSettings) -> None:
        self.corpus = make_corpus(settings.data)
        assert self.corpus.planted is not None
        self.groups = [self.corpus.planted.get(token, "none") for token in self.corpus.vocabulary.tokens]
        self.flow = FlowRecorder(
            self.corpus, every=settings.every, groups=self.groups, pairs=settings.pairs, tokens=True
        )
        self._affine = settings.model.encoder == "affine"
        self._hidden: list[Numbers] = []
        self.scores = pd.DataFrame()
        self.facts: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        before = len(self.flow.records)
        self.flow(event)
        if isinstance(event, StepDone) and self._affine and len(self.flow.records) > before:
            hidden = see_tokens(parameters_of(event.model)).hidden
            self._hidden.append(dot_products(hidden, self.flow.pairs).numpy())
        if isinstance(event, EpochDone) and event.epoch == event.epochs:
            self._finish(event)

    def _finish(self, event: EpochDone) -> None:
        scores = token_scores(event.model, self.corpus)
        self.scores = scores.assign(group=self.groups).drop(columns="planted")
        self.facts = {
            "train_accuracy": evaluate(event.model, self.corpus.train).accuracy,
            "test_accuracy": evaluate(event.model, self.corpus.test).accuracy,
        }

    def tables(self) -> dict[str, pd.DataFrame]:
        tables = self.flow.tables()
        tokens = tables.pop("tokens")
        if self._hidden:
            tables["pairs"]["omega_hidden"] = np.concatenate(self._hidden)
        scores = [column for column in tokens if column == "attention" or _is_polarity(str(column))]
        kept = tokens[["epoch", "step", "token", "group", *scores]]
        return {
            **tables,
            "pairs": _single_precision(tables["pairs"]),
            "signs": _positive_shares(tokens),
            "tokens": _single_precision(kept),
            "scores": self.scores,
        }


def _is_polarity(column: str) -> bool:
    return column.startswith("polarity") and not column.startswith("polarity_rate")


def _single_precision(table: pd.DataFrame) -> pd.DataFrame:
    """Half of the bytes, where a picture is all that is made of the numbers."""
    return table.astype(dict.fromkeys(table.select_dtypes("float64").columns, "float32"))


def _positive_shares(tokens: pd.DataFrame) -> pd.DataFrame:
    """By moment and group, the share of tokens for which each number is positive."""
    keys = ["epoch", "step", "group"]
    positive = (tokens.drop(columns=[*keys, "token"]) > 0).astype(float)
    return positive.groupby([tokens[key] for key in keys]).mean().reset_index()


def _watch_training(settings: RecordingSettings) -> tuple[dict[str, pd.DataFrame], dict[str, float]]:
    watcher = _Watcher(settings)
    model = train(watcher.corpus, settings.model, settings.training, observers=[watcher])
    return {**watcher.tables(), "history": model.history}, watcher.facts
