"""Instances of similar length side by side, so that sorting and summing within instances are plain tensor operations.

Ragged arrays have no cumulative sum per instance: one sum over everything, less an offset, would cancel. A block holds
instances whose lengths differ by a fifth at most and about as many units as a cache does. What lies beyond the end of
an instance is marked by `inside` and never counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.text.ragged import lengths_of

MOST_UNITS = 16_384
LEAST_FILLED = 0.8


@dataclass(frozen=True, kw_only=True)
class Block:
    """`units[i, p]` is where unit p of instance `rows[i]` lies in the flat arrays, as far as `inside[i, p]`."""

    rows: Int[Tensor, " rows"]
    units: Int[Tensor, "rows width"]
    inside: Bool[Tensor, "rows width"]


def blocks(offsets: Int[Tensor, " instances+1"], rows: Int[Tensor, " rows"]) -> Iterator[Block]:
    """The chosen instances, each once, from the longest to the shortest."""
    lengths, order = lengths_of(offsets)[rows].sort(descending=True)
    start = 0
    while start < len(order):
        longest = int(lengths[start])
        similar = int(torch.searchsorted(-lengths, -LEAST_FILLED * longest, right=True))
        stop = min(start + max(1, MOST_UNITS // longest), max(similar, start + 1))
        yield _block(offsets, rows[order[start:stop]], longest)
        start = stop


def _block(offsets: Int[Tensor, " instances+1"], rows: Int[Tensor, " rows"], width: int) -> Block:
    places = torch.arange(width, device=offsets.device)
    inside = places < lengths_of(offsets)[rows][:, None]
    return Block(rows=rows, units=offsets[rows][:, None] + places * inside, inside=inside)
