"""An epoch of FLANrnn by our ragged loop against padded batches, on documents with long-tailed lengths.

The textbook's loop takes documents in random order, pads each batch to its longest document and gives it to nn.GRU,
either as it is or packed. Same sizes, dropout, clipping and Adam, one thread; the time is the processor's, which other
processes do not lengthen.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from heedful.config import ModelSettings, TrainingSettings
from heedful.models.classifier import Interface
from heedful.text.corpus import Split
from heedful.text.ragged import bucketed, offsets_of, shuffled
from heedful.text.tokenize import Tokenizer, Tokens, Vocabulary
from heedful.training.loop import training_step
from heedful.training.state import TrainingState

EMBEDDING, HALF, CLASSES, BATCH, CLIP, DROPOUT = 200, 50, 5, 64, 10.0, 0.4
DOCUMENTS, VOCABULARY = 512, 8000
ROUNDS = 3


def long_tailed(*, documents: int, median: float, spread: float, longest: int) -> Split:
    """Documents whose lengths are log-normal, as those of reviews are, with word frequencies like those of text."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(median), spread, documents).astype(int), 1, longest)
    shares = 1 / np.arange(1, VOCABULARY + 1)
    tokens = rng.choice(VOCABULARY, int(lengths.sum()), p=shares / shares.sum())
    held = Tokens(
        numbers=torch.from_numpy(tokens),
        offsets=offsets_of(torch.from_numpy(lengths)),
        spans=torch.zeros(len(tokens), 2, dtype=torch.int32),
    )
    return Split(texts=[""] * documents, labels=torch.from_numpy(rng.integers(0, CLASSES, documents)), tokens=held)


class PaddedFlan(nn.Module):
    """FLANrnn on a padded batch; token 0 is padding, so vocabulary numbers are raised by one."""

    def __init__(self, *, packed: bool) -> None:
        super().__init__()
        self.packed = packed
        self.embedding = nn.Embedding(VOCABULARY + 1, EMBEDDING, padding_idx=0)
        self.encoder = nn.GRU(EMBEDDING, HALF, bidirectional=True, batch_first=True)
        self.projection = nn.Linear(2 * HALF, 2 * HALF)
        self.context_vector = nn.Parameter(0.1 * torch.randn(2 * HALF))
        self.readout = nn.Linear(2 * HALF, CLASSES)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        embedded = self.dropout(self.embedding(tokens))
        if self.packed:
            found, _ = self.encoder(pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False))
            hidden, _ = pad_packed_sequence(found, batch_first=True)
        else:
            hidden, _ = self.encoder(embedded)
        scores = torch.tanh(self.projection(hidden)) @ self.context_vector
        weights = scores.masked_fill(tokens == 0, -torch.inf).softmax(1)
        logits: Tensor = self.readout((weights.unsqueeze(-1) * hidden).sum(1))
        return logits


def padded_epoch(split: Split, *, packed: bool) -> Callable[[], None]:
    model = PaddedFlan(packed=packed)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)

    def epoch() -> None:
        for rows in shuffled(len(split), BATCH, torch.Generator().manual_seed(0)):
            batch = split.batch(rows)
            lengths = split.lengths[rows]
            tokens = pad_sequence(list((batch.tokens + 1).split(lengths.tolist())), batch_first=True)
            optimizer.zero_grad()
            F.cross_entropy(model(tokens, lengths), batch.labels).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()

    return epoch


def our_epoch(split: Split) -> Callable[[], None]:
    interface = Interface(
        vocabulary=Vocabulary.of(f"w{number}" for number in range(VOCABULARY - 1)),
        tokenizer=Tokenizer(),
        class_names=tuple(str(number) for number in range(CLASSES)),
    )
    model = ModelSettings(
        attention="additive",
        encoder="gru",
        score_scale=1.0,
        embedding_size=EMBEDDING,
        hidden_size=2 * HALF,
        dropout=DROPOUT,
        document_dropout=0.0,
        attention_bias=True,
        readout_bias=True,
    )
    training = TrainingSettings(
        optimizer="adam", learning_rate=4e-4, learning_rate_decay=0.0, batch_size=BATCH, clip=CLIP
    )
    state = TrainingState.start(interface, model, training)

    def epoch() -> None:
        for rows in bucketed(split.lengths, BATCH, torch.Generator().manual_seed(0)):
            training_step(state, split.batch(rows), training)

    return epoch


def seconds(epochs: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The median of some epochs of each, in turn, after a first that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in epochs}
    for number in range(ROUNDS + 1):
        for name, epoch in epochs.items():
            begun = time.process_time()
            epoch()
            if number:
                times[name].append(time.process_time() - begun)
    return {name: statistics.median(found) for name, found in times.items()}


def compare(name: str, split: Split) -> dict[str, str]:
    found = seconds(
        {
            "padded": padded_epoch(split, packed=False),
            "packed": padded_epoch(split, packed=True),
            "ours": our_epoch(split),
        }
    )
    return {
        "what": name,
        "padded s": f"{found['padded']:.1f}",
        "padded, packed s": f"{found['packed']:.1f}",
        "ours s": f"{found['ours']:.1f}",
        "padded / ours": f"{found['padded'] / found['ours']:.1f}",
        "packed / ours": f"{found['packed'] / found['ours']:.1f}",
        "needed": "≥ 1.5",
    }


def rows() -> list[dict[str, str]]:
    """Lengths as those of Yelp reviews (125 ± 109 words)."""
    torch.set_num_threads(1)
    reviews = long_tailed(documents=DOCUMENTS, median=95.0, spread=0.75, longest=1200)
    return [compare(f"FLANrnn epoch, {DOCUMENTS} documents, {_lengths(reviews)}", reviews)]


def _lengths(split: Split) -> str:
    lengths = split.lengths.double()
    return f"length {float(lengths.mean()):.0f} ± {float(lengths.std()):.0f}, longest {int(lengths.max()):,}"
