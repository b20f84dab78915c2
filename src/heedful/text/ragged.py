"""Ragged batches: flat arrays plus offsets, never padded.

Document t of a ragged array is `values[offsets[t]:offsets[t + 1]]`. Padding bugs cannot exist, and a long document
costs what it holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Documents as sentences: sentence s owns the units bounds[s] …, document t the sentences offsets[t] …."""

    bounds: Int[Tensor, " sentence_bounds"]
    offsets: Int[Tensor, " bounds"]

    def to(self, device: torch.device | str) -> "Sentences":
        return Sentences(bounds=self.bounds.to(device), offsets=self.offsets.to(device))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Some documents of a split: their tokens, where each begins, and which instances of the split they are."""

    tokens: Int[Tensor, " units"]
    offsets: Int[Tensor, " bounds"]
    labels: Int[Tensor, " documents"]
    instances: Int[Tensor, " documents"]
    sentences: Sentences | None = None  # for hierarchical models; others do not ask for them
    vectors: Float[Tensor, "units features"] | None = None  # of the words, where a frozen transformer read the texts

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to(self, device: torch.device | str) -> "Batch":
        return replace(self, **{name: part.to(device) for name, part in vars(self).items() if part is not None})


def lengths_of(offsets: Int[Tensor, " bounds"]) -> Int[Tensor, " documents"]:
    """How many units each document has."""
    return offsets[1:] - offsets[:-1]


def offsets_of(lengths: Int[Tensor, " documents"]) -> Int[Tensor, " bounds"]:
    """Where each document begins, given how long each is."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def segments_of(offsets: Int[Tensor, " bounds"]) -> Int[Tensor, " units"]:
    """For every unit the number of its document."""
    documents = torch.arange(len(offsets) - 1, device=offsets.device)
    return torch.repeat_interleave(documents, lengths_of(offsets), output_size=int(offsets[-1]))


def positions_of(offsets: Int[Tensor, " bounds"], rows: Int[Tensor, " rows"]) -> Int[Tensor, " units"]:
    """Where in the flat array the units of the chosen documents lie, document after document."""
    begins = offsets.index_select(0, rows)
    lengths = offsets.index_select(0, rows + 1) - begins
    starts = offsets_of(lengths)
    count = int(starts[-1])
    shifts = torch.repeat_interleave(begins - starts[:-1], lengths, output_size=count)
    return shifts + torch.arange(count, device=offsets.device)


def segment_sum(values: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, " documents"]:
    """Σ over the units of each document."""
    return values.new_zeros(len(offsets) - 1).index_add_(0, segments_of(offsets), values)


def segment_softmax(
    scores: Float[Tensor, " units"], offsets: Int[Tensor, " bounds"], segments: Int[Tensor, " units"] | None = None
) -> Float[Tensor, " units"]:
    """α_j = exp(a_j) / Σ exp(a_j') within each document, safe for scores of any size."""
    owners = segments_of(offsets) if segments is None else segments
    largest = torch.segment_reduce(scores, "max", offsets=offsets)
    shifted = (scores - largest.index_select(0, owners)).exp()
    sums = shifted.new_zeros(len(largest)).index_add_(0, owners, shifted)
    return shifted / sums.index_select(0, owners)


def shuffled(count: int, batch_size: int, generator: torch.Generator) -> Iterator[Int[Tensor, " rows"]]:
    """The numbers 0 … count − 1 in random order, in batches."""
    yield from torch.randperm(count, generator=generator).split(batch_size)


def bucketed(
    lengths: Int[Tensor, " documents"], batch_size: int, generator: torch.Generator, *, pool: int = 50
) -> Iterator[Int[Tensor, " rows"]]:
    """Random batches of documents of similar length: a recurrent encoder takes as many steps as the longest has words.

    Shuffles, sorts by length within pools of `pool` batches, cuts, and shuffles the batches. Each document comes once.
    """
    order = torch.randperm(len(lengths), generator=generator)
    batches = [
        batch
        for chunk in order.split(batch_size * pool)
        for batch in chunk[lengths[chunk].argsort(stable=True)].split(batch_size)
    ]
    for number in torch.randperm(len(batches), generator=generator).tolist():
        yield batches[number]


def in_order(lengths: Int[Tensor, " documents"], most_units: int) -> Iterator[Int[Tensor, " rows"]]:
    """All documents in their order, cut so that a batch holds at most `most_units` units (or one longer document)."""
    start = held = 0
    for row, length in enumerate(lengths.tolist()):
        if row > start and held + length > most_units:
            yield torch.arange(start, row)
            start, held = row, 0
        held += length
    if start < len(lengths):
        yield torch.arange(start, len(lengths))


def equal_lengths(lengths: Int[Tensor, " rows"], most: int) -> Iterator[Int[Tensor, " rows"]]:
    """Rows of equal length together, so many units at once at most, or one row."""
    for length in lengths.unique().tolist():
        yield from (lengths == length).nonzero().squeeze(1).split(max(1, most // max(1, length)))
