"""`fit`: train an attention classifier on a corpus. The loop emits events; everything else observes."""

import inspect
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.config import HEAD, ModelSettings, TrainingSettings
from heedful.errors import ConfigError
from heedful.models.classifier import Classifier
from heedful.models.frozen import FrozenTransformer, find_reader
from heedful.models.interface import Interface
from heedful.models.kernels import limited_threads as limited_threads
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import Batch, bucketed, shuffled
from heedful.text.vectors import Vectors, initial_vectors
from heedful.traces import Trace
from heedful.training.epoch import Step, by_compiled_steps, closed_form_epoch
from heedful.training.events import EpochDone, Event, Observer, Recorder, StepDone, TextsRead, hears_steps
from heedful.training.objectives import Aim, Objective, alignment_penalty, cross_entropy, evaluate, make_aim
from heedful.training.optimizers import clip_gradients, make_dense, needs_dense
from heedful.training.state import TrainingState

CHECKPOINT_SECONDS = 10.0
"""A checkpoint is written after the first epoch that ends this long after the last one."""


def fit(
    corpus: Corpus,
    *,
    structure: str = "flat",
    attention: str = "dot",
    attention_weights: str | Mapping[str, Trace] = "learned",
    normaliser: str = "softmax",
    encoder: str = "none",
    encoder_path: Path | str | None = None,
    encoder_layer: int | None = None,
    widths: Sequence[int] = (3, 5),
    score_scale: float = 10.0,
    embedding_size: int = 100,
    hidden_size: int = 100,
    context_size: int | None = None,
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
    amsgrad: bool = False,
    learning_rate: float = 0.02,
    learning_rate_decay: float = 0.001,
    weight_decay: float = 0.0,
    decayed: str = "layers",
    alignment_penalty: float = 0.0,
    batch_size: int = 100,
    epochs: int = 40,
    ties: str = "loss",
    patience: int | None = None,
    plateau: int | None = None,
    clip: float | None = None,
    seed: int = 0,
    threads: int = 1,
    device: str = "cpu",
    objective: str | Objective = "cross_entropy",
    objective_weight: float = 1.0,
    base: Mapping[str, Trace] | None = None,
    impermissible: Collection[str] = (),
    observers: Sequence[Observer] = (),
) -> Classifier:
    """Train a classifier with attention; returns it as it was after the epoch with the best dev accuracy.

        e_j  →  h_j = encoder(e)_j  →  a_j = score(h_j) / λ  →  α = softmax(a)  →  logits = W Σ α_j h_j + b

    The defaults reproduce the published figures of Sun & Lu 2020 (section 3); HAN and FLAN of Serrano & Smith 2019 have
    additive attention, the encoder gru, conv or none, and both biases. The same corpus and settings give the same bits.

    The result reads text (`model.predict`, `model.predict_proba`), and `model.history` is a table with a row per epoch:
    epoch, train_loss, dev_loss, dev_accuracy (of an adversary also dev_objective), kept (true of the epoch that the
    model is of).

    What it learns from
        corpus: labelled texts, from `heedful.load_corpus`; the train split is learned, the dev split picks the epoch.
        vectors: of the tokens at first: "random" draws them, "word2vec" learns them from the training texts, "glove"
            reads them from the data folder, anything else is the path of a GloVe file, as text or .npz.

    The model
        structure: "flat" attends to the words of a text, "hierarchical" to those of each sentence, then to sentences.
        attention: "dot" scores a = hᵀV/λ, "additive" a = tanh(M h)ᵀV/λ.
        attention_weights: "learned"; "uniform", all alike; "frozen", as the first values give them, however the rest is
            trained; or those of another model, its traces {"train": …, "dev": …} of both splits.
        normaliser: what makes weights of scores: "softmax", or "sparsemax" and "entmax15", which give most words none.
        encoder: "none" h = e, "affine" h = M e, "tanh" h = tanh(M e + c); "lstm", "gru" and "conv" also see a word's
            neighbours; "transformer" takes what a frozen one makes of each word in its text.
        encoder_path: of "transformer", a local folder with config.json, model.safetensors and tokenizer.json; a base
            model or a classifier, whose head is left. What it makes of the train and dev split is computed first. Of
            score_scale, dropout, readout_bias and what is said below of how it learns, whatever is left at its default
            is that of `heedful.config.HEAD`, as embeddings that learn along and a head alone are trained differently.
        encoder_layer: the layer whose vectors are taken, 0 is the embeddings; None is two thirds of the way up.
        widths: of the windows of "conv", in words; each has an equal part of the hidden size.
        score_scale: λ, a divisor; 10 is √d for the default size and keeps scores of order one.
        embedding_size: d, the numbers per word.
        hidden_size: the numbers per hidden vector, half of them in each direction of an lstm or gru; "none" has d.
        context_size: the numbers of the tanh layer of additive attention; None is as many as a hidden vector has.
        attention_bias: whether the tanh layer of additive attention has a bias; by default it has none.
        readout_bias: whether the readout has a bias b; by default it has none.

    How it begins
        embedding_range: embeddings are drawn uniformly from ± this.
        context_deviation: V is drawn from N(0, this²); a longer V develops attention faster.
        readout_range: W is drawn uniformly from ± this; None is 1/√(size of h).

    Dropout: the share of numbers set to zero while training
        dropout: on the embeddings.
        document_dropout: on the document vector Σ α h; None is the same as on the embeddings.
        sentence_dropout: on the sentence vectors of a hierarchical model; 0 is none.
        logit_dropout: on the logits, as Serrano & Smith's runs had it; 0 is none.
        dropout_mask: "token" draws one mask for all occurrences of a token in a batch, "occurrence" one for each.

    How it learns
        optimizer: "adagrad", "sgd" or "adam".
        amsgrad: whether Adam divides by the largest second moment so far (Reddi et al. 2018).
        learning_rate: of the first step.
        learning_rate_decay: the rate of step t is learning_rate / (1 + decay · t).
        weight_decay: how fast weights decay; 0 is not at all.
        decayed: "layers" decays the weights of the encoder and of additive attention, "all but attention" all others.
        objective: the loss: "cross_entropy"; "adversary", the outputs of another model with another attention, whose
            smallest value on dev picks the epoch (Wiegreffe & Pinter 2019); "deceptive", cross-entropy with attention
            kept from some words (Pruthi et al. 2020); "diverse", cross-entropy with hidden vectors kept from pointing
            the same way (Mohankumar et al. 2020); or a function of model, batch and output
            (`heedful.training.objectives`).
        objective_weight: λ, what the attention or the hidden vectors count beside the outputs in those three.
        base: of "adversary", the traces {"train": …, "dev": …} of the other model.
        impermissible: of "deceptive", the words.
        alignment_penalty: c of the penalty c·|VᵀW|, which keeps V and W at right angles; 0 is none.
        batch_size: texts per step.
        epochs: passes over the training split, at most.
        ties: of epochs with equal dev accuracy "loss" keeps that with the smallest dev loss, "first" the first, as the
            papers do.
        patience: stop after so many epochs without a better one; None never stops early.
        plateau: halve the rate after so many epochs without a better dev accuracy; None never does.
        clip: the largest norm of a gradient, longer ones are shortened; None clips nothing.

    Where it runs
        seed: of every draw: first values, order of texts, dropout.
        threads: of torch while training; sums, and so the last bits, depend on it. Compiled steps take one.
        device: "cpu", or one that torch knows, such as "cuda".
        observers: functions that are told of every step and epoch (`heedful.training.events`); none by default.
            One whose attribute `hears_steps` is False is told of epochs only, which costs no time.

    >>> import heedful
    >>> texts = [f"{word} {thing}" for word in ("good", "bad") for thing in ("film", "plot", "cast", "play", "song")]
    >>> corpus = heedful.load_corpus((texts, ["positive"] * 5 + ["negative"] * 5))
    >>> model = heedful.fit(corpus, embedding_size=8, epochs=5, learning_rate=0.5, batch_size=1)
    >>> model.predict(["a good evening", "bad"])
    ['positive', 'negative']
    >>> model.predict_proba(["a good evening", "bad"]).shape
    (2, 2)
    >>> list(model.history)
    ['epoch', 'train_loss', 'dev_loss', 'dev_accuracy', 'kept']
    """
    given: dict[str, Any] = dict(locals()) | ({"objective": "cross_entropy"} if callable(objective) else {})
    if encoder == "transformer":
        usual = inspect.signature(fit).parameters
        head = {place.partition(".")[2]: value for place, value in HEAD.items()}
        given |= {name: value for name, value in head.items() if given[name] == usual[name].default}
    weights = None
    if isinstance(attention_weights, Mapping):
        weights, given["attention_weights"] = attention_weights, "given"
    model = ModelSettings.of({name: given[name] for name in ModelSettings.model_fields})
    training = TrainingSettings.of({name: given[name] for name in TrainingSettings.model_fields})
    words = torch.tensor([token in impermissible for token in corpus.vocabulary.tokens])
    aim = Aim(train=objective) if callable(objective) else make_aim(training, base=base, impermissible=words)
    return train(corpus, model, training, weights=weights, aim=aim, observers=observers)


def train(
    corpus: Corpus,
    model: ModelSettings,
    training: TrainingSettings,
    *,
    weights: Mapping[str, Trace] | None = None,
    aim: Aim | None = None,
    vectors: Vectors | None = None,
    reader: FrozenTransformer | None = None,
    observers: Sequence[Observer] = (),
    checkpoint: Path | None = None,
) -> Classifier:
    """`fit` with settings as values; with a checkpoint path, an interrupted training goes on where it was.

    Initial vectors, the aim and the frozen transformer that the settings ask for are made here unless they are given.
    """
    given, wanted = weights or {}, aim or make_aim(training)
    if model.attention_weights == "given" and not {"train", "dev"} <= set(given):
        raise ConfigError(
            "Given attention weights are traces of both splits that training reads; give them in Python, "
            'heedful.fit(corpus, attention_weights={"train": …, "dev": …}), or name the run that they are of by '
            "settings, such as base.model.encoder=lstm."
        )
    interface = Interface(vocabulary=corpus.vocabulary, tokenizer=corpus.tokenizer, class_names=corpus.class_names)
    first = vectors or initial_vectors(corpus, model.vectors, size=model.embedding_size, seed=training.seed)
    known = reader or find_reader(model)
    if known is not None:
        keep_vectors(known, {"train": corpus.train, "dev": corpus.dev}, observers)
    with limited_threads(training.threads):
        state = TrainingState.start(interface, model, training, first, known)
        state.recorders = [observer for observer in observers if isinstance(observer, Recorder)]
        if checkpoint is not None and checkpoint.is_file():
            state.restore(checkpoint)
        saved = time.monotonic()
        while not _finished(state, training):
            loss = _run_epoch(state, corpus.train, training, wanted.train, given.get("train"), observers)
            dev = evaluate(state.model, corpus.dev, given.get("dev"), wanted.dev)
            row = {"epoch": state.epoch, "train_loss": loss, "dev_loss": dev.loss, "dev_accuracy": dev.accuracy}
            row |= {} if dev.objective is None else {"dev_objective": dev.objective}
            state.rows.append(row)
            done = EpochDone(
                epoch=state.epoch,
                epochs=training.epochs,
                row=row,
                best=state.keep_if_best(training.ties),
                model=state.model,
                last=_finished(state, training),
            )
            _tell(observers, done)
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                state.save(checkpoint)
                saved = time.monotonic()
    state.model.load_state_dict(state.best)
    state.model.history = pd.DataFrame(state.rows).assign(kept=lambda rows: rows["epoch"] == state.best_epoch)
    return state.model.eval()


def keep_vectors(reader: FrozenTransformer, splits: Mapping[str, Split], observers: Sequence[Observer] = ()) -> None:
    """See that what a frozen transformer makes of these splits is at hand; observers are told while it reads."""
    for name, split in splits.items():

        def watch(done: int, total: int, name: str = name) -> None:
            _tell(observers, TextsRead(split=name, done=done, total=total))

        reader.keep(split, watch)


def _finished(state: TrainingState, training: TrainingSettings) -> bool:
    waited = state.epoch - state.best_epoch
    return state.epoch >= training.epochs or (training.patience is not None and waited >= training.patience)


def _run_epoch(
    state: TrainingState,
    split: Split,
    training: TrainingSettings,
    objective: Objective,
    weights: Trace | None,
    observers: Sequence[Observer],
) -> float:
    """One pass over the training split; returns the mean loss."""
    state.epoch += 1
    total = 0.0
    listening = [observer for observer in observers if hears_steps(observer)]
    steps: Iterator[Step]
    if by_compiled_steps(state, training, objective, weights):
        steps = closed_form_epoch(state, split, training, singly=bool(listening))
    else:
        steps = _differentiated_epoch(state, split, training, objective, weights)
    for rows, loss, read in steps:
        total += loss * len(rows)
        if listening:
            batch = read or state.model.batch(split, rows)
            _tell(listening, StepDone(epoch=state.epoch, step=state.step, loss=loss, batch=batch, model=state.model))
    mean = total / len(split)
    if not math.isfinite(mean):
        raise ConfigError(
            f"Training diverged: the loss of epoch {state.epoch} is {mean}. Lower the learning rate "
            f"({training.learning_rate}) or clip the gradient."
        )
    return mean


def _differentiated_epoch(
    state: TrainingState, split: Split, training: TrainingSettings, objective: Objective, weights: Trace | None
) -> Iterator[Step]:
    """One pass by autograd."""
    for rows in _batches(split, state, training):
        batch = state.model.batch(split, rows)
        yield rows, training_step(state, batch, training, objective, weights), batch


def _batches(split: Split, state: TrainingState, training: TrainingSettings) -> Iterator[Int[Tensor, " rows"]]:
    """Similar lengths together for recurrent encoders, whose steps are as many as the longest document has words."""
    if state.model.contextual:
        return bucketed(split.lengths, training.batch_size, state.order)
    return shuffled(len(split), training.batch_size, state.order)


def training_step(
    state: TrainingState,
    batch: Batch,
    training: TrainingSettings,
    objective: Objective = cross_entropy,
    weights: Trace | None = None,
) -> float:
    """One update on the objective plus the alignment penalty; returns the loss without the penalty."""
    parameters = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
    for parameter in parameters:
        parameter.grad = None
    loss = objective(state.model, batch, state.model(batch, state.dropout, weights=weights))
    penalty = training.alignment_penalty
    (loss + alignment_penalty(state.model, penalty) if penalty else loss).backward()
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad._coalesced_(True)  # its rows are distinct; autograd forgets it, and summing again costs
    if training.clip is not None:
        clip_gradients(state.model, training.clip)
    if needs_dense(training):
        make_dense(state.model)
    rate = training.learning_rate / (1 + training.learning_rate_decay * state.step)
    rate /= 2 ** state.halvings(training.plateau)
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    state.optimizer.step()
    state.step += 1
    return float(loss.detach())


def _tell(observers: Sequence[Observer], event: Event) -> None:
    for observer in observers:
        observer(event)
