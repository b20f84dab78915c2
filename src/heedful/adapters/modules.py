"""A torch module of one's own as a subject; where its attention and its readout are known, its trace too.

The module takes token numbers [texts, tokens] and gives logits [texts, classes]. Given the parts that put out attention
weights and the vectors they weigh, and the linear readout, `ModuleSubject.trace` makes a trace of it and proves by the
module's own logits that nothing else happens in between.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.adapters.asking import AskedReading, SubjectError, in_a_sentence
from heedful.adapters.pieces import Pieces, PieceSubject, reads_several
from heedful.analysis.flips import TraceReading
from heedful.errors import UnknownName
from heedful.models.interface import check_words, strings
from heedful.subjects import ATTENTION, Reading, Units
from heedful.text.ragged import equal_lengths, offsets_of, positions_of
from heedful.traces import Trace

Encode = Callable[[str], Sequence[tuple[int, tuple[int, int]]]]
"""The tokens of a text: the number of each, and from where to where it stands."""

Part = str | Callable[[Tensor], Tensor]
"""The dotted name of a part, as `named_modules` has it, or a function of token numbers that gives what it puts out."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Where the attention of a module is.

    attention: what puts out attention weights, [texts, tokens] (axes of length one do not matter).
    values: what puts out the vectors that are weighed, [texts, tokens, features].
    readout: the name of the linear layer that makes logits of their weighted sum.
    """

    attention: Part
    values: Part
    readout: str


@dataclass(frozen=True, kw_only=True, eq=False)
class TracedReading(TraceReading):
    """A reading whose trace is known: erased weights exactly, everything else by asking."""

    asked: AskedReading

    @property
    def units(self) -> Units:
        return self.asked.units

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = ATTENTION
    ) -> Float[Tensor, "rows classes"]:
        return super().without(rows, gone) if how == ATTENTION else self.asked.without(rows, gone, how)

    def decide(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = ATTENTION
    ) -> Int[Tensor, " rows"]:
        return super().decide(rows, gone) if how == ATTENTION else self.asked.decide(rows, gone, how)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleSubject(PieceSubject):
    """A torch module with a function that cuts texts into tokens.

    parts: where its attention is; None: that is not known, and nothing can be cut off from it.
    """

    encode: Encode
    parts: Parts | None = None

    def read(self, texts: object) -> Reading:
        """The tokens of these texts; with parts the exact reading of their trace."""
        units, pieces = self.cut(texts)
        if not reads_several(self, pieces.of_row(0)):
            raise SubjectError(
                f"{self.name} says something else of a text alone than beside another. It must take token numbers "
                "[texts, tokens], in this order of axes, and read each text by itself."
            )
        asked = self.reading(units, pieces)
        if self.parts is None:
            return asked
        return TracedReading(trace=self._trace(units, pieces), asked=asked, ways=(ATTENTION, *self.ways))

    def trace(self, texts: object) -> Trace:
        """What it attends to and what it uses, proved by its own logits; refused where the readout is not affine."""
        return self._trace(*self.cut(texts))

    def cut(self, texts: object) -> tuple[Units, Pieces]:
        entries = strings(texts)
        with in_a_sentence(f"The tokenizer of {self.name}", "to give a list of (number, (start, end)) for a text"):
            cut = [[(int(number), (int(a), int(b))) for number, (a, b) in self.encode(text)] for text in entries]
        offsets = offsets_of(torch.tensor([len(one) for one in cut]))
        check_words(offsets, entries)
        for row, (text, own) in enumerate(zip(entries, cut, strict=True)):
            self._check_places(row, text, [place for _, place in own])
        numbers, spans = zip(*(token for one in cut for token in one), strict=True)
        units = Units(offsets=offsets, texts=entries, spans=torch.tensor(spans))
        places = torch.arange(len(numbers)) - offsets[units.segments]
        return units, Pieces(offsets=offsets, numbers=torch.tensor(numbers), owners=places)

    def _check_places(self, row: int, text: str, places: Sequence[tuple[int, int]]) -> None:
        """Tokens stand in their text, one after the other."""
        reached = 0
        for start, end in places:
            if not reached <= start <= end <= len(text):
                raise SubjectError(
                    f"The tokenizer of {self.name} must say where tokens stand in a text, one after the other; in text "
                    f"{row} (the first is 0), of {len(text)} characters, one stands at ({start}, {end}) and the one "
                    f"before it ends at {reached}."
                )
            reached = end

    def logits(self, numbers: Int[Tensor, "rows pieces"], _: Bool[Tensor, "rows pieces"]) -> object:
        return self.model(numbers.to(device_of(self.model)))

    def _trace(self, units: Units, pieces: Pieces) -> Trace:
        if self.parts is None:
            raise SubjectError(f"A trace of {self.name} needs its parts: heedful.subject(…, parts=Parts(…)).")
        readout = _linear(self.model, self.parts.readout)
        weights = torch.empty(len(pieces.numbers)).double()
        polarity = torch.empty(len(weights), readout.out_features).double()
        logits = torch.empty(len(units), readout.out_features).double()
        for rows in equal_lengths(pieces.lengths, self.at_once):
            where = positions_of(pieces.offsets, rows)
            logits[rows], weights[where], hidden = self._heard(pieces.numbers[where].view(len(rows), -1), readout)
            polarity[where] = hidden @ readout.weight.detach().cpu().double().T
        bias = torch.zeros(readout.out_features) if readout.bias is None else readout.bias.detach().cpu()
        return Trace.from_arrays(
            offsets=units.offsets,
            attention_weights=weights,
            polarity_scores=polarity,
            bias=bias.double(),
            units=units.shown,
            class_names=self.class_names,
            logits=logits,
        )

    def _heard(
        self, numbers: Int[Tensor, "rows length"], readout: nn.Linear
    ) -> tuple[Float[Tensor, "rows outputs"], Float[Tensor, " pieces"], Float[Tensor, "pieces features"]]:
        """Logits of some texts, the weights of their tokens, and the vectors that are weighed."""
        assert self.parts is not None
        given = (self.parts.attention, self.parts.values)
        with _listening(self.model, given) as heard:
            logits = self.checked_logits(numbers, torch.ones_like(numbers, dtype=torch.bool))
        weights, values = (_put_out(part, heard, numbers) for part in given)
        count, size = numbers.numel(), readout.in_features
        if weights.numel() != count or values.numel() != count * size or values.shape[-1] != size:
            raise SubjectError(
                f"The parts of {self.name} must put out weights {list(numbers.shape)} and vectors "
                f"{[*numbers.shape, size]}; got {list(weights.shape)} and {list(values.shape)}."
            )
        return logits, weights.reshape(count).double(), values.reshape(count, size).double()


def device_of(model: nn.Module) -> torch.device:
    """Where a model computes."""
    return next((part.device for part in model.parameters()), torch.device("cpu"))


def _part(model: nn.Module, name: str) -> nn.Module:
    parts: dict[str, nn.Module] = dict(model.named_modules())
    if name not in parts:
        raise UnknownName("part of the module", name, [part for part in parts if part])
    return parts[name]


def _linear(model: nn.Module, name: str) -> nn.Linear:
    found = _part(model, name)
    if not isinstance(found, nn.Linear):
        raise SubjectError(f"The readout '{name}' must be a linear layer (nn.Linear); it is {type(found).__name__}.")
    return found


def _put_out(part: Part, heard: dict[str, Any], numbers: Int[Tensor, "rows pieces"]) -> Tensor:
    """What a part put out, or what its function gives; of several things the first, as an LSTM's states."""
    if not isinstance(part, str):
        with torch.no_grad(), in_a_sentence(f"The function for a part ({part!r})", "on token numbers"):
            told: Any = part(numbers)
    elif part in heard:
        told = heard[part]
    else:
        raise SubjectError(f"The part '{part}' put nothing out while the module read a text; name one that does.")
    first = told[0] if isinstance(told, tuple) else told
    if not isinstance(first, Tensor):
        raise SubjectError(f"The part '{part}' must put out a tensor; got {type(first).__name__}.")
    return first.detach().cpu()


@contextmanager
def _listening(model: nn.Module, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    """What the named parts put out during the block."""
    heard: dict[str, Any] = {}

    def listen(name: str) -> Callable[[nn.Module, Any, Any], None]:
        return lambda _, __, told: heard.update({name: told})

    handles = [_part(model, name).register_forward_hook(listen(name)) for name in parts if isinstance(name, str)]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()
