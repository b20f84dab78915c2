"""Instances of similar length side by side, so that sorting and summing within instances are plain tensor operations.

Ragged arrays have no cumulative sum per instance: one sum over everything, less an offset, would cancel. A block holds
instances whose lengths differ by a fifth or a few units, and about as many units as a cache does. What lies beyond the
end of an instance is marked by `inside` and never counted.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from heedful.text.ragged import lengths_of

S = TypeVar("S")
T = TypeVar("T")

THREADS = "heedful-analysis"
MOST_UNITS, SHARE = 65_536, 50_000
LEAST_FILLED, SHORT = 0.8, 16


@dataclass(frozen=True, kw_only=True)
class Block:
    """`units[i, p]` is where unit p of instance `rows[i]` lies in the flat arrays, as far as `inside[i, p]`."""

    rows: Int[Tensor, " rows"]
    units: Int[Tensor, "rows width"]
    inside: Bool[Tensor, "rows width"]
    full: bool

    @property
    def width(self) -> int:
        return self.units.shape[1]

    def flat(self, values: Shaped[Tensor, "rows width"]) -> Shaped[Tensor, " units"]:
        """Only what lies inside, instance after instance."""
        return values.reshape(-1) if self.full else values[self.inside]


def blocks(offsets: Int[Tensor, " bounds"], rows: Int[Tensor, " rows"]) -> Iterator[Block]:
    """The chosen instances, each once, from the longest to the shortest."""
    for some, lengths in _similar(lengths_of(offsets)[rows]):
        places, inside = _grid(lengths)
        units = offsets[rows[some]][:, None] + places
        yield Block(rows=rows[some], units=units, inside=inside, full=bool(lengths[-1] == lengths[0]))


def _similar(lengths: Int[Tensor, " rows"]) -> Iterator[tuple[Int[Tensor, " some"], Int[Tensor, " some"]]]:
    """Numbers and lengths of the rows that have any, longest first, cut where they become too many or too short.

    About equal parts, each of MOST_UNITS at most.
    """
    lengths, order = lengths.sort(descending=True, stable=True)
    start, stop, total = 0, int((lengths > 0).sum()), int(lengths.sum())
    most = MOST_UNITS if total <= MOST_UNITS else -(-total // -(-total // MOST_UNITS))
    while start < stop:
        longest = int(lengths[start])
        similar = int(torch.searchsorted(-lengths, SHORT - int(LEAST_FILLED * longest), right=True))
        end = min(start + max(1, most // longest), similar, stop)
        yield order[start:end], lengths[start:end]
        start = end


def _grid(lengths: Int[Tensor, " rows"]) -> tuple[Int[Tensor, "rows width"], Bool[Tensor, "rows width"]]:
    """The places 0, 1, … of every row and whether they lie inside; outside the place is 0 again."""
    places = torch.arange(int(lengths[0]), device=lengths.device)
    if lengths[0] == lengths[-1]:
        return places.expand(len(lengths), -1), torch.ones(1, dtype=torch.bool).expand(len(lengths), len(places))
    inside = places < lengths[:, None]
    return places * inside, inside


@contextmanager
def one_thread() -> Iterator[None]:
    """Blocks are small: beside other work the threads of one operation wait for each other longer than they compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def each(function: Callable[[S], T], some: Sequence[S]) -> list[T]:
    """The function of every part, of several at a time: parts are independent, and the heavy work needs no lock.

    Parts of a part are done where they are: threads that waited for threads would wait for ever.
    """
    if len(some) < 2 or threading.current_thread().name.startswith(THREADS):
        return [function(part) for part in some]
    return list(_threads().map(function, some))


def shares_of_rows(rows: int, units: int) -> list[slice]:
    """The rows in parts, each of about so many units as are worth a thread."""
    step = max(1, -(-rows * SHARE // max(units, 1)))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that wait for work: to start them anew would take as long as the work."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix=THREADS)


os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not live on in a copy of the process
