"""Models that read numbers: a tokenizer cuts texts into pieces, each with a number and the unit that it is part of.

A unit is **deleted** (its pieces leave, those behind move up), **masked** (another number stands in the place of each
piece), or **cut off from attention** (its pieces are there and not seen). Texts are read in batches of equal length and
never padded, since some models say other things of padded texts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.adapters.asking import (
    SAME,
    THREADS,
    AskedReading,
    SubjectError,
    Watch,
    checked_probabilities,
    in_a_sentence,
    probable,
)
from heedful.models.kernels import limited_threads
from heedful.notebook import counted
from heedful.subjects import ATTENTION, DELETE, MASK, Subject, Units
from heedful.text.ragged import equal_lengths, offsets_of, positions_of, segment_sum
from heedful.traces import Ragged

PIECES_AT_ONCE = 4_096

NO_UNIT = -1
"""The unit of a special token: it is part of none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces(Ragged):
    """What a tokenizer makes of texts: the number of each piece, and the place in its text of its unit."""

    numbers: Int[Tensor, " pieces"]
    owners: Int[Tensor, " pieces"]

    def of_row(self, row: int) -> Int[Tensor, " row_pieces"]:
        """The numbers of one text."""
        return self.numbers[int(self.offsets[row]) : int(self.offsets[row + 1])]


@dataclass(frozen=True, kw_only=True, eq=False)
class Changed(Ragged):
    """The pieces of changed texts, and which of them are seen."""

    numbers: Int[Tensor, " pieces"]
    seen: Bool[Tensor, " pieces"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PieceReading(AskedReading):
    """Texts as a model reads them that reads numbers."""

    subject: "PieceSubject"
    pieces: Pieces


@dataclass(frozen=True, kw_only=True, eq=False)
class PieceSubject(Subject, ABC):
    """A model that reads numbers; it is left as it was.

    mask: what stands in the place of a masked piece; None: pieces cannot be masked.
    nothing: what is read where no piece is left.
    at_once: how many pieces a batch has at most; a batch has one text or more.
    threads: of torch while it reads; afterwards there are as many as before.
    """

    name: str
    model: nn.Module
    class_names: tuple[str, ...]
    ways: tuple[str, ...] = (DELETE,)
    mask: int | None = None
    nothing: int = 0
    at_once: int = PIECES_AT_ONCE
    threads: int = THREADS
    watch: Watch | None = None

    @abstractmethod
    def cut(self, texts: object) -> tuple[Units, Pieces]:
        """The units of texts, and the pieces of each."""

    @abstractmethod
    def logits(self, numbers: Int[Tensor, "rows pieces"], seen: Bool[Tensor, "rows pieces"]) -> object:
        """What the model puts out for pieces of which only some are seen, [rows, outputs] if all is well."""

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """The model in evaluation mode, with its threads; afterwards both as they were."""
        with resting(self.model), limited_threads(self.threads):
            yield

    def reading(self, units: Units, pieces: Pieces) -> PieceReading:
        """Texts that are cut already; the model is asked when something is wanted."""

        def answer(
            rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
        ) -> Float[Tensor, "rows classes"]:
            return self.ask(changed(pieces, units, rows, gone, how, mask=self.mask, nothing=self.nothing))

        ways, names = self.ways, self.class_names
        return PieceReading(units=units, class_names=names, ways=ways, answer=answer, subject=self, pieces=pieces)

    def ask(self, texts: Changed) -> Float[Tensor, "rows classes"]:
        """What the model says of changed texts."""
        found = torch.empty(len(texts.lengths), len(self.class_names), dtype=torch.float64)
        done = 0
        for rows in equal_lengths(texts.lengths, self.at_once):
            where = positions_of(texts.offsets, rows).view(len(rows), -1)
            found[rows] = self.probabilities(texts.numbers[where], texts.seen[where])
            done += len(rows)
            if self.watch is not None:
                self.watch(done, len(found))
        return found

    def probabilities(
        self, numbers: Int[Tensor, "rows pieces"], seen: Bool[Tensor, "rows pieces"] | None = None
    ) -> Float[Tensor, "rows classes"]:
        """What it says of texts of equal length."""
        told = self.checked_logits(numbers, torch.ones_like(numbers, dtype=torch.bool) if seen is None else seen)
        return checked_probabilities(probable(told), len(numbers), len(self.class_names), self.name)

    def checked_logits(
        self, numbers: Int[Tensor, "rows pieces"], seen: Bool[Tensor, "rows pieces"]
    ) -> Float[Tensor, "rows outputs"]:
        """The logits in double precision; what goes wrong is said in a sentence."""
        doing = f"on {counted(len(numbers), 'text')} of {counted(numbers.shape[1], 'piece')}"
        with self.at_rest(), torch.no_grad(), in_a_sentence(self.name, doing):
            told = self.logits(numbers, seen)
        if not isinstance(told, Tensor) or told.ndim != 2 or len(told) != len(numbers):
            shape = list(told.shape) if isinstance(told, Tensor) else type(told).__name__
            raise SubjectError(
                f"{self.name} must give logits [texts, classes], a row for each text, here {len(numbers)}; got {shape}."
                " Take a model for the classification of whole texts."
            )
        return told.detach().cpu().double()


@contextmanager
def resting(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and afterwards as it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def changed(
    pieces: Pieces,
    units: Units,
    rows: Int[Tensor, " rows"],
    gone: Bool[Tensor, " places"],
    how: str,
    *,
    mask: int | None,
    nothing: int,
) -> Changed:
    """The pieces of each row when units are gone; where none is left there is one that stands for nothing."""
    where, lengths = positions_of(pieces.offsets, rows), pieces.lengths[rows]
    numbers, owners, offsets = pieces.numbers[where], pieces.owners[where], offsets_of(lengths)
    begins = torch.repeat_interleave(offsets_of(units.lengths[rows])[:-1], lengths)
    out = gone[begins + owners.clamp(min=0)] & (owners != NO_UNIT)
    if how == ATTENTION:
        return Changed(numbers=numbers, seen=~out, offsets=offsets)
    if how == MASK:
        assert mask is not None
        return Changed(numbers=numbers.masked_fill(out, mask), seen=torch.ones_like(out), offsets=offsets)
    left = segment_sum((~out).double(), offsets).long()
    instead = offsets[:-1][left == 0]
    numbers[instead], out[instead] = nothing, False
    return Changed(numbers=numbers[~out], seen=~out[~out], offsets=offsets_of(left.clamp(min=1)))


def reads_several(subject: PieceSubject, one: Int[Tensor, " pieces"]) -> bool:
    """Whether it says of texts side by side what it says of each.

    One that says something else of the same text when it is asked again is refused.
    """
    other = one.flip(0)
    alone, again = (torch.cat([subject.probabilities(text[None]) for text in (one, other)]) for _ in range(2))
    if not torch.allclose(alone, again, atol=SAME):
        raise SubjectError(
            f"{subject.name} says something else of the same text when it is asked again: take out what is random."
        )
    try:
        return torch.allclose(subject.probabilities(torch.stack([one, other])), alone, atol=SAME)
    except SubjectError:  # a decoder that knows no token to pad with reads one text at a time
        return False
