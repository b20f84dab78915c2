"""A training step against the textbook step, and against one pass of memory bandwidth over the gathered embeddings.

Ours is timed over whole epochs, whose steps are made without leaving compiled code; theirs over steps.
"""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from benchmarks.baseline import PaddedClassifier, padded_step
from heedful.config import ModelSettings, TrainingSettings
from heedful.models.classifier import Interface
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import offsets_of, shuffled
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary
from heedful.training.epoch import closed_form_epoch, in_closed_form
from heedful.training.loop import training_step
from heedful.training.objectives import cross_entropy
from heedful.training.state import TrainingState

SIZE = 100
STEPS = 40
ROUNDS = 5


def zipf_split(*, documents: int, mean_length: float, longest: int, vocabulary_size: int) -> Split:
    """Documents with lengths and word frequencies like those of real text."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(mean_length) - 0.125, 0.5, documents).astype(int), 1, longest)
    shares = 1 / np.arange(1, vocabulary_size + 1)
    tokens = rng.choice(vocabulary_size, int(lengths.sum()), p=shares / shares.sum())
    held = Tokens(
        numbers=torch.from_numpy(tokens),
        offsets=offsets_of(torch.from_numpy(lengths)),
        spans=torch.zeros(len(tokens), 2, dtype=torch.int32),
    )
    return Split(texts=[""] * documents, labels=torch.from_numpy(rng.integers(0, 2, documents)), tokens=held)


def seconds_per_step(step: Callable[[Tensor], None], split: Split, batch_size: int) -> float:
    """The median over rounds of the mean over steps, after a first round that is not counted."""
    generator = torch.Generator().manual_seed(0)
    batches = [rows for rows in shuffled(len(split), batch_size, generator) if len(rows) == batch_size][:STEPS]

    def once() -> None:
        for rows in batches:
            step(rows)

    return median_seconds(once) / len(batches)


def median_seconds(action: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS + 1):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def our_state(vocabulary_size: int, classes: int, training: TrainingSettings, **model: str) -> TrainingState:
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{number}" for number in range(vocabulary_size - 1)),
        tokenizer=Tokenizer(),
        class_names=tuple(f"class {number}" for number in range(classes)),
    )
    return TrainingState.start(interface, ModelSettings.of(model), training)


def our_seconds(split: Split, vocabulary_size: int, batch_size: int, classes: int, kind: Mapping[str, str]) -> float:
    """Of a step in whole epochs, as `fit` makes them."""
    training = TrainingSettings(batch_size=batch_size)
    state = our_state(vocabulary_size, classes, training, **kind)
    assert in_closed_form(state, training, cross_entropy, None)

    def epoch() -> None:
        for _ in closed_form_epoch(state, split, training, singly=False):
            pass

    return median_seconds(epoch) / math.ceil(len(split) / batch_size)


def our_step(split: Split, vocabulary_size: int, batch_size: int, mask: str) -> Callable[[Tensor], None]:
    """A step by autograd."""
    training = TrainingSettings(batch_size=batch_size)
    state = our_state(vocabulary_size, 2, training, dropout_mask=mask)

    def step(rows: Tensor) -> None:
        training_step(state, split.batch(rows), training)

    return step


def their_step(
    split: Split, vocabulary_size: int, classes: int = 2, kind: Mapping[str, str] | None = None
) -> Callable[[Tensor], None]:
    model = PaddedClassifier(vocabulary_size, SIZE, 10.0, classes=classes, **(kind or {}))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02, lr_decay=0.001)

    def step(rows: Tensor) -> None:
        padded_step(model, optimizer, split, rows)

    return step


def differentiated_seconds(split: Split, vocabulary_size: int, batch_size: int, mask: str) -> float:
    """Of a step by autograd, with a mask for each token or each occurrence of one."""
    return seconds_per_step(our_step(split, vocabulary_size, batch_size, mask), split, batch_size)


def their_seconds(split: Split, vocabulary_size: int, batch_size: int, classes: int, kind: Mapping[str, str]) -> float:
    return seconds_per_step(their_step(split, vocabulary_size, classes, kind), split, batch_size)


def bandwidth_seconds(split: Split, batch_size: int) -> float:
    """One pass over as many bytes as the embeddings of all occurrences of a batch take, at the measured copy rate."""
    source = torch.rand(50_000_000)
    target = torch.empty_like(source)
    target.copy_(source)
    begun = time.perf_counter()
    target.copy_(source)
    rate = source.numel() * 4 / (time.perf_counter() - begun)
    return float(split.lengths.double().mean()) * batch_size * SIZE * 4 / rate


def compare(
    name: str, split: Split, vocabulary_size: int, batch_size: int, classes: int, kind: Mapping[str, str], needed: int
) -> dict[str, str]:
    theirs = their_seconds(split, vocabulary_size, batch_size, classes, kind)
    ours = our_seconds(split, vocabulary_size, batch_size, classes, kind)
    called = " ".join(kind.values()) or "dot"
    return _row(
        f"{name}, {called}, {classes} classes", theirs, ours, f"≥ {needed}", ours / bandwidth_seconds(split, batch_size)
    )


def _row(what: str, theirs: float, ours: float, needed: str = "", passes: float | None = None) -> dict[str, str]:
    return {
        "what": what,
        "textbook ms": f"{theirs * 1e3:.2f}",
        "ours ms": f"{ours * 1e3:.3f}",
        "ratio": f"{theirs / ours:.1f}",
        "needed": needed,
        "× one bandwidth pass": "" if passes is None else f"{passes:.1f}",
    }


def real_sst() -> Corpus | None:
    from heedful.text.datasets import load_corpus
    from heedful.text.recipes import DATASETS

    return load_corpus("sst") if DATASETS["sst"].available else None


KINDS: tuple[Mapping[str, str], ...] = ({}, {"attention": "additive"}, {"encoder": "affine"})
CLASSES = (2, 5)


def of_classes(split: Split, classes: int) -> Split:
    """The same texts with labels drawn from so many classes."""
    if classes == 2:
        return split
    drawn = torch.randint(classes, (len(split),), generator=torch.Generator().manual_seed(0))
    return replace(split, labels=drawn)


def rows() -> list[dict[str, str]]:
    """On SST (the real one where it is at hand) and an IMDB-sized corpus, one thread each; the dot product also with
    two threads for the textbook step, and by autograd."""
    imdb = zipf_split(documents=3000, mean_length=183, longest=400, vocabulary_size=63_000)
    sst = real_sst()
    small = sst.train if sst else zipf_split(documents=6920, mean_length=19.3, longest=56, vocabulary_size=14_829)
    size = len(sst.vocabulary) if sst else 14_829
    corpora = (("SST, batch 100", small, size, 100, 40), ("IMDB-sized, batch 64", imdb, 63_000, 64, 30))
    found = []
    torch.set_num_threads(1)
    for (name, split, vocabulary, batch, needed), classes, kind in itertools.product(corpora, CLASSES, KINDS):
        found.append(compare(name, of_classes(split, classes), vocabulary, batch, classes, kind, needed))
    for name, split, vocabulary, batch, _ in corpora:
        plain = their_seconds(split, vocabulary, batch, 2, {})
        for mask in ("token", "occurrence"):
            ours = differentiated_seconds(split, vocabulary, batch, mask)
            found.append(_row(f"{name}, by autograd, mask per {mask}", plain, ours))
    torch.set_num_threads(2)
    for name, split, vocabulary, batch, _ in corpora:
        theirs, ours = (seconds(split, vocabulary, batch, 2, {}) for seconds in (their_seconds, our_seconds))
        found.append(_row(f"{name}, textbook step with two threads", theirs, ours))
    return found
