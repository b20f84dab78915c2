"""A training step against the textbook step, and against one pass of memory bandwidth over the gathered embeddings."""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from benchmarks.baseline import PaddedClassifier, padded_step
from heedful.config import ModelSettings, TrainingSettings
from heedful.models.classifier import Interface
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import offsets_of, shuffled
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary
from heedful.training.loop import training_step
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
    times = []
    for _ in range(ROUNDS + 1):
        begun = time.perf_counter()
        for rows in batches:
            step(rows)
        times.append((time.perf_counter() - begun) / len(batches))
    return statistics.median(times[1:])


def our_step(split: Split, vocabulary_size: int, batch_size: int, mask: str) -> Callable[[Tensor], None]:
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{number}" for number in range(vocabulary_size - 1)),
        tokenizer=Tokenizer(),
        class_names=("negative", "positive"),
    )
    training = TrainingSettings(batch_size=batch_size)
    state = TrainingState.start(interface, ModelSettings.of({"dropout_mask": mask}), training)

    def step(rows: Tensor) -> None:
        training_step(state, split.batch(rows), training)

    return step


def their_step(split: Split, vocabulary_size: int) -> Callable[[Tensor], None]:
    model = PaddedClassifier(vocabulary_size, SIZE, 10.0)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02, lr_decay=0.001)

    def step(rows: Tensor) -> None:
        padded_step(model, optimizer, split, rows)

    return step


def bandwidth_seconds(split: Split, batch_size: int) -> float:
    """One pass over as many bytes as the embeddings of all occurrences of a batch take, at the measured copy rate."""
    source = torch.rand(50_000_000)
    target = torch.empty_like(source)
    target.copy_(source)
    begun = time.perf_counter()
    target.copy_(source)
    rate = source.numel() * 4 / (time.perf_counter() - begun)
    return float(split.lengths.double().mean()) * batch_size * SIZE * 4 / rate


def compare(name: str, split: Split, vocabulary_size: int, batch_size: int) -> dict[str, str]:
    theirs = seconds_per_step(their_step(split, vocabulary_size), split, batch_size)
    ours = seconds_per_step(our_step(split, vocabulary_size, batch_size, "token"), split, batch_size)
    occurrence = seconds_per_step(our_step(split, vocabulary_size, batch_size, "occurrence"), split, batch_size)
    return {
        "what": name,
        "textbook ms": f"{theirs * 1e3:.2f}",
        "ours ms": f"{ours * 1e3:.2f}",
        "ratio": f"{theirs / ours:.1f}",
        "ratio, mask per occurrence": f"{theirs / occurrence:.1f}",
        "× one bandwidth pass": f"{ours / bandwidth_seconds(split, batch_size):.1f}",
    }


def real_sst() -> Corpus | None:
    from heedful.text.datasets import load_corpus
    from heedful.text.recipes import DATASETS

    return load_corpus("sst") if DATASETS["sst"].available else None


def rows() -> list[dict[str, str]]:
    """One and two threads, on an IMDB-sized corpus and on SST (the real one where it is at hand)."""
    imdb = zipf_split(documents=3000, mean_length=183, longest=400, vocabulary_size=63_000)
    sst = real_sst()
    small = sst.train if sst else zipf_split(documents=6920, mean_length=19.3, longest=56, vocabulary_size=14_829)
    size = len(sst.vocabulary) if sst else 14_829
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(compare(f"SST, batch 100, {threads} thread(s)", small, size, 100))
        found.append(compare(f"IMDB-sized, batch 64, {threads} thread(s)", imdb, 63_000, 64))
    return found
