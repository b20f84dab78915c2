"""`fit`: train an attention classifier on a corpus. The loop emits events; everything else observes."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from heedful.config import ModelSettings, TrainingSettings
from heedful.errors import ConfigError
from heedful.models.classifier import Classifier, Interface
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import Batch, bucketed, shuffled
from heedful.text.vectors import Vectors, initial_vectors
from heedful.training.events import EpochDone, Event, Observer, StepDone
from heedful.training.metrics import evaluate
from heedful.training.optimizers import clip_gradients, make_dense
from heedful.training.state import TrainingState

CHECKPOINT_SECONDS = 10.0
"""A checkpoint is written after the first epoch that ends this long after the last one."""


def fit(
    corpus: Corpus,
    *,
    structure: str = "flat",
    attention: str = "dot",
    encoder: str = "none",
    score_scale: float = 10.0,
    embedding_size: int = 100,
    hidden_size: int = 100,
    dropout: float = 0.5,
    document_dropout: float | None = None,
    sentence_dropout: float = 0.0,
    logit_dropout: float = 0.0,
    dropout_mask: str = "token",
    attention_bias: bool = False,
    readout_bias: bool = False,
    embedding_range: float = 0.1,
    vectors: str = "random",
    context_deviation: float = 1.0,
    readout_range: float | None = None,
    optimizer: str = "adagrad",
    learning_rate: float = 0.02,
    learning_rate_decay: float = 0.001,
    weight_decay: float = 0.0,
    alignment_penalty: float = 0.0,
    batch_size: int = 100,
    epochs: int = 40,
    patience: int | None = None,
    plateau: int | None = None,
    clip: float | None = None,
    seed: int = 0,
    threads: int = 1,
    device: str = "cpu",
    observers: Sequence[Observer] = (),
) -> Classifier:
    """Train a classifier and return it as it was after the first epoch with the best dev accuracy.

    The settings are described in `heedful.config`; `model.history` has one row per epoch.
    """
    given: dict[str, Any] = {name: value for name, value in locals().items() if name not in {"corpus", "observers"}}
    model = ModelSettings.of({name: given[name] for name in ModelSettings.model_fields})
    training = TrainingSettings.of({name: given[name] for name in TrainingSettings.model_fields})
    return train(corpus, model, training, observers=observers)


def train(
    corpus: Corpus,
    model: ModelSettings,
    training: TrainingSettings,
    *,
    vectors: Vectors | None = None,
    observers: Sequence[Observer] = (),
    checkpoint: Path | None = None,
) -> Classifier:
    """`fit` with settings as values; with a checkpoint path, an interrupted training goes on where it was.

    Initial vectors that the settings ask for are made here unless they are given.
    """
    interface = Interface(vocabulary=corpus.vocabulary, tokenizer=corpus.tokenizer, class_names=corpus.class_names)
    first = vectors or initial_vectors(corpus, model.vectors, size=model.embedding_size, seed=training.seed)
    with limited_threads(training.threads):
        state = TrainingState.start(interface, model, training, first)
        if checkpoint is not None and checkpoint.is_file():
            state.restore(checkpoint)
        saved = time.monotonic()
        while not _finished(state, training):
            _run_epoch(state, corpus, training, observers)
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                state.save(checkpoint)
                saved = time.monotonic()
    state.model.load_state_dict(state.best)
    state.model.history = pd.DataFrame(state.rows)
    return state.model.eval()


def _finished(state: TrainingState, training: TrainingSettings) -> bool:
    waited = state.epoch - state.best_epoch
    return state.epoch >= training.epochs or (training.patience is not None and waited >= training.patience)


def _run_epoch(state: TrainingState, corpus: Corpus, training: TrainingSettings, observers: Sequence[Observer]) -> None:
    state.epoch += 1
    loss = 0.0
    for rows in _batches(corpus.train, state, training):
        batch = corpus.train.batch(rows, sentences=state.model.hierarchical).to(training.device)
        step_loss = training_step(state, batch, training)
        loss += step_loss * len(batch)
        _tell(
            observers,
            StepDone(epoch=state.epoch, step=state.step, loss=step_loss, batch=batch, model=state.model),
        )
    loss /= len(corpus.train)
    if not math.isfinite(loss):
        raise ConfigError(
            f"Training diverged: the loss of epoch {state.epoch} is {loss}. Lower the learning rate "
            f"({training.learning_rate}) or clip the gradient."
        )
    dev = evaluate(state.model, corpus.dev)
    state.rows.append({"epoch": state.epoch, "train_loss": loss, "dev_loss": dev.loss, "dev_accuracy": dev.accuracy})
    best = state.keep_if_best()
    event = EpochDone(epoch=state.epoch, epochs=training.epochs, row=state.rows[-1], best=best, model=state.model)
    _tell(observers, event)


def _batches(split: Split, state: TrainingState, training: TrainingSettings) -> Iterator[Int[Tensor, " rows"]]:
    """Similar lengths together for recurrent encoders, whose steps are as many as the longest document has words."""
    if state.model.contextual:
        return bucketed(split.lengths, training.batch_size, state.order)
    return shuffled(len(split), training.batch_size, state.order)


def training_step(state: TrainingState, batch: Batch, training: TrainingSettings) -> float:
    """One update on mean cross-entropy plus c·Σ|VᵀW|; returns the loss without the penalty."""
    parameters = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
    for parameter in parameters:
        parameter.grad = None
    loss = F.cross_entropy(state.model(batch, state.dropout), batch.labels)
    objective = loss
    if training.alignment_penalty:
        objective = loss + training.alignment_penalty * state.model.alignment().abs().sum()
    objective.backward()
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad._coalesced_(True)  # its rows are distinct; autograd forgets it, and summing again costs
    if training.clip is not None:
        clip_gradients(state.model, training.clip)
    if training.optimizer == "adam":
        make_dense(state.model)
    rate = (
        training.learning_rate / (1 + training.learning_rate_decay * state.step) / 2 ** state.halvings(training.plateau)
    )
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    state.optimizer.step()
    state.step += 1
    return float(loss.detach())


def _tell(observers: Sequence[Observer], event: Event) -> None:
    for observer in observers:
        observer(event)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Run with so many threads, then as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
