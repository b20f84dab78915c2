"""What is asked of a reading: its texts without some sets of units, each set once, in few large batches.

A model is read again for every set, so all metrics of all explanations note first what they want to know, and what
they share is asked once. A trace answers along an order from cumulative sums, whatever the length of its texts.
"""

from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.erasure_loops import arrays, each, one_thread, shares
from heedful.analysis.flips import TraceReading
from heedful.analysis.violation import add
from heedful.compiled import compiled
from heedful.errors import InputError
from heedful.subjects import ATTENTION, Reading, Units, check_way
from heedful.text.ragged import in_order, offsets_of, positions_of
from heedful.traces import Trace

MOST_PLACES = 4_000_000
"""Units, of all texts that are asked about at once."""

SUM_TOLERANCE = 1e-3
"""How far the probabilities of a text may be from summing to one: what half precision leaves."""


class ReadingError(InputError):
    """A reading whose answers are no probabilities."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sets:
    """Sets of units that go together: set s takes the marked ones from text rows[s].

    `gone` has the marks of the units of the rows, row after row, as `Reading.without` wants them.
    """

    rows: Int[Tensor, " sets"]
    gone: Bool[Tensor, " places"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Prefixes:
    """The first sizes[s] units of text rows[s] in an order are gone; with `kept` all the others are.

    `places` has the place of every unit in the order of its text, from 0 on.
    """

    places: Int[Tensor, " units"]
    rows: Int[Tensor, " sets"]
    sizes: Int[Tensor, " sets"]
    kept: bool = False

    def sets(self, units: Units) -> Sets:
        sizes = torch.repeat_interleave(self.sizes, units.lengths[self.rows])
        first = self.places[units.of_rows(self.rows)] < sizes
        return Sets(rows=self.rows, gone=~first if self.kept else first)


Question = Sets | Prefixes


def singles(units: Units) -> Sets:
    """Every unit gone alone; set u takes unit u."""
    rows = units.segments
    starts = offsets_of(units.lengths[rows])[:-1]
    gone = torch.zeros(int(units.lengths[rows].sum()), dtype=torch.bool)
    gone[starts + torch.arange(len(rows)) - units.offsets[rows]] = True
    return Sets(rows=rows, gone=gone)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn(Sets):
    """Sets drawn by chance; `weights` sum to one over those of a text."""

    weights: Float[Tensor, " sets"]


def drawn(units: Units, chances: Float[Tensor, " units"], *, draws: int, seed: int) -> Drawn:
    """Sets that hold every unit with its own chance, `draws` of each text.

    Texts that have no more sets than that get all of them with their probabilities: what is a mean over draws
    elsewhere is an expectation there. The same seed draws the same numbers whatever the chances, so that explanations
    are compared on common ones.
    """
    lengths, most = units.lengths, draws.bit_length() - 1
    long = (lengths > most).nonzero().squeeze(1).repeat_interleave(draws)
    where = units.of_rows(long)
    numbers = torch.from_numpy(np.random.default_rng(seed).random(len(where)))
    parts = [Drawn(rows=long, gone=numbers < chances[where], weights=torch.full((len(long),), 1 / draws).double())]
    for length in lengths[lengths <= most].unique().tolist():
        parts.append(_all_sets(units, chances, (lengths == length).nonzero().squeeze(1)))
    names = ("rows", "gone", "weights")
    return Drawn(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def _all_sets(units: Units, chances: Float[Tensor, " units"], rows: Int[Tensor, " rows"]) -> Drawn:
    """All sets of texts of the same length, with their probabilities; those that never come are left out."""
    length = int(units.lengths[rows[0]])
    marks, own = every_set(length), chances[units.of_rows(rows)].reshape(len(rows), 1, length)
    weights = torch.where(marks, own, 1 - own).prod(2)
    row, one = (weights > 0).nonzero().unbind(1)
    return Drawn(rows=rows[row], gone=marks[one].flatten(), weights=weights[row, one])


def every_set(units: int) -> Bool[Tensor, "sets units"]:
    """All sets of so many units; set s holds unit i where bit i of s is set."""
    return (torch.arange(2**units)[:, None] >> torch.arange(units)) % 2 == 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Noted:
    """A question by the numbers of its sets among all that are asked; by itself where a trace needs no asking."""

    asked: Int[Tensor, " sets"] | Prefixes

    @property
    def passes(self) -> int:
        """How many different changed texts it is about."""
        return len(self.asked.rows) if isinstance(self.asked, Prefixes) else len(self.asked.unique())


class Asked:
    """What a reading says of its texts without sets of units, each asked about once: note all questions, then hear.

    The one value here that remembers. Sets are told apart by two sums of random 64-bit numbers of their units: among a
    million sets two would be taken for one with a probability of 10⁻²⁶.
    """

    def __init__(self, reading: Reading, how: str | None = None) -> None:
        self.reading, self.how = reading, reading.ways[0] if how is None else how
        check_way(self.how, reading)
        self.units, self._threads = reading.units, torch.get_num_threads()
        self.whole = checked(reading.probabilities, len(self.units), len(reading.class_names))
        self._codes = np.random.default_rng(0).integers(0, 2**64, (len(self.units.segments), 2), dtype=np.uint64)
        self._row_codes = np.random.default_rng(1).integers(0, 2**64, (len(self.units), 2), dtype=np.uint64)
        self._numbers: dict[bytes, int] = {}
        self._waiting: list[Sets] = []
        self._answers = self.whole[:0]

    @property
    def trace(self) -> Trace | None:
        """The trace whose weights are erased, where this is about one."""
        return self.reading.trace if isinstance(self.reading, TraceReading) and self.how == ATTENTION else None

    @property
    def passes(self) -> int:
        """How many different changed texts the reading was asked about."""
        return len(self._numbers)

    def note(self, question: Question) -> Noted:
        """Keep a question to be asked with others."""
        if isinstance(question, Sets):
            return Noted(asked=self._add(question))
        return Noted(asked=self._add(question.sets(self.units)) if self.trace is None else question)

    def hear(self, noted: Noted) -> Float[Tensor, "sets classes"]:
        """The answers to a question, after everything that waits was asked."""
        if isinstance(noted.asked, Prefixes):
            assert self.trace is not None
            return _along(self.trace, noted.asked)
        if self._waiting:
            rows, gone = (torch.cat([getattr(sets, name) for sets in self._waiting]) for name in ("rows", "gone"))
            self._answers = torch.cat([self._answers, self._ask(Sets(rows=rows, gone=gone))])
            self._waiting.clear()
        return self._answers[noted.asked]

    def _add(self, sets: Sets) -> Int[Tensor, " sets"]:
        """The numbers of these sets; those that are new wait to be asked."""
        starts, known, numbers = offsets_of(self.units.lengths[sets.rows]), len(self._numbers), self._numbers
        found = [numbers.setdefault(key, len(numbers)) for key in self._keys(sets, starts)]
        _, first = np.unique(found, return_index=True)
        new = torch.from_numpy(first[len(first) - (len(numbers) - known) :])
        self._waiting.append(Sets(rows=sets.rows[new], gone=sets.gone[positions_of(starts, new)]))
        return torch.tensor(found, dtype=torch.int64)

    def _keys(self, sets: Sets, starts: Int[Tensor, " bounds"]) -> list[bytes]:
        """What tells sets apart: a code of the text, and the sum of those of the units that are gone."""
        if not len(sets.rows):
            return []
        rows, begins = arrays(sets.rows, starts[:-1])
        codes = self._codes[self.units.of_rows(sets.rows).numpy()] * sets.gone.numpy()[:, None]
        sums = np.ascontiguousarray(np.add.reduceat(codes, begins) + self._row_codes[rows])
        found: list[bytes] = sums.view("V16").ravel().tolist()
        return found

    def _ask(self, sets: Sets) -> Float[Tensor, "sets classes"]:
        """What the reading says, a few million units at a time, checked."""
        lengths, classes = self.units.lengths[sets.rows], self.whole.shape[1]
        starts, parts = offsets_of(lengths), [self.whole[:0]]
        for part in in_order(lengths, MOST_PLACES):
            gone = sets.gone[positions_of(starts, part)]
            with one_thread(self._threads):  # the model's part is not small
                after = self.reading.without(sets.rows[part], gone, self.how)
            parts.append(checked(after, len(part), classes))
        return torch.cat(parts)


def checked(given: Any, rows: int, classes: int) -> Float[Tensor, "rows classes"]:
    """Probabilities in double precision; refused with a sentence if they are none."""
    expected = f"A reading must answer with probabilities [texts, classes], here {[rows, classes]}"
    if not isinstance(given, Tensor) or not given.is_floating_point():
        raise ReadingError(f"{expected}; it gave {_kind(given)}. Give a tensor of floating-point numbers.")
    if list(given.shape) != [rows, classes]:
        raise ReadingError(f"{expected}; it gave {list(given.shape)}.")
    found = given.detach().cpu().double()
    wrong = (~found.isfinite()).any(1) | (found < -SUM_TOLERANCE).any(1) | ((found.sum(1) - 1).abs() > SUM_TOLERANCE)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        values = ", ".join(f"{value:.4g}" for value in found[row].tolist()[:6])
        raise ReadingError(
            f"{expected}, each row not negative and of sum one; row {row} of the answer is {values}. "
            "Is the model in evaluation mode, and are its outputs made probabilities (softmax)?"
        )
    return found


def _kind(given: Any) -> str:
    return f"a tensor of {given.dtype}" if isinstance(given, Tensor) else f"a {type(given).__name__}"


def _along(trace: Trace, question: Prefixes) -> Float[Tensor, "sets classes"]:
    """What a trace says when the first units of an order are erased, or all others."""
    curves = prefix_logits(trace, question.places, kept=question.kept)
    return curves[trace.offsets[question.rows] + question.rows + question.sizes].softmax(1)


def prefix_logits(trace: Trace, places: Int[Tensor, " units"], *, kept: bool) -> Float[Tensor, "prefixes classes"]:
    """The logits of every prefix of an order, text after text, each from 0 units on to all.

    b + Σ α_i z_i / Σ α_i        over the first k units (kept), or over all but them; b where no weight is left
    """
    order = torch.empty_like(places)
    order[trace.offsets[trace.segments] + places] = torch.arange(len(places))
    found = np.zeros((len(places) + len(trace), len(trace.bias)))
    own = arrays(trace.offsets, order, trace.attention_scores, trace.polarity_scores)
    each(lambda part: _prefixes(*part, *own, kept, found), shares(len(trace), len(places)))
    return torch.from_numpy(found) + trace.bias.cpu()


@compiled
@no_type_check
def _prefixes(start, stop, offsets, order, scores, polarity, kept, found):
    """Attended means along orders, summed from the first unit on or from the last, relative to the largest score."""
    sums = np.empty(polarity.shape[1])
    for t in range(start, stop):
        begin, n = offsets[t], offsets[t + 1] - offsets[t]
        top, total = -np.inf, 0.0
        sums[:] = 0.0
        for k in range(1, n + 1):
            i = order[begin + k - 1] if kept else order[begin + n - k]
            top, total = add(scores[i], 1.0, polarity[i], top, total, sums)
            if total > 0:
                found[begin + t + (k if kept else n - k)] = sums / total
