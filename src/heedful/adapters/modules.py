"""A torch module of one's own as a subject; where its attention and its readout are known, its trace too.

The module takes token numbers [batch, pieces] and gives logits [batch, classes]. Given the names of the parts that put
out attention weights and the vectors they weigh, and of the linear readout, `ModuleSubject.trace` makes a trace of it
and proves by the module's own logits that nothing else happens in between.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.adapters.asking import AskedReading, SubjectError, checked_probabilities, checked_texts
from heedful.adapters.pretrained import Pieces, changed, equal_lengths, probable, resting
from heedful.analysis.flips import TraceReading
from heedful.errors import UnknownName
from heedful.subjects import ATTENTION, DELETE, MASK, Reading, Subject, Units
from heedful.text.ragged import lengths_of, offsets_of, positions_of
from heedful.traces import Trace

Encode = Callable[[str], Sequence[tuple[int, tuple[int, int]]]]
"""The tokens of a text: the number of each, and from where to where it stands."""

PIECES_AT_ONCE = 4_096


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Where the attention of a module is: dotted names of its parts, as `named_modules` has them.

    attention: the part that puts out attention weights, [batch, units] (axes of length one do not matter).
    values: the part that puts out the vectors that are weighed, [batch, units, features].
    readout: the linear layer that makes logits of their weighted sum.
    """

    attention: str
    values: str
    readout: str


@dataclass(frozen=True, kw_only=True, eq=False)
class TracedReading(Reading):
    """A reading whose trace is known: erased weights exactly, everything else by asking."""

    asked: AskedReading
    traced: TraceReading
    ways: tuple[str, ...]

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.asked.class_names

    @property
    def units(self) -> Units:
        return self.asked.units

    @property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        return self.traced.probabilities

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
    ) -> Float[Tensor, "rows classes"]:
        return (self.traced if how == ATTENTION else self.asked).without(rows, gone, how)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleSubject(Subject):
    """A torch module with a function that cuts texts into tokens.

    mask: the number that stands in the place of a masked token; None: tokens can only be deleted.
    nothing: what is read where no token is left.
    parts: where its attention is; None: that is not known.
    """

    name: str
    module: nn.Module
    encode: Encode
    class_names: tuple[str, ...]
    mask: int | None = None
    nothing: int = 0
    parts: Parts | None = None

    def read(self, texts: Sequence[str]) -> Reading:
        """The tokens of these texts; with parts the exact reading of their trace."""
        strings = checked_texts(texts)
        units, pieces = self._cut(strings)

        def answer(
            rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
        ) -> Float[Tensor, "rows classes"]:
            numbers, _, offsets = changed(pieces, units, rows, gone, how, (self.mask or 0, self.nothing))
            return self._ask(numbers, offsets)

        ways = (DELETE,) if self.mask is None else (DELETE, MASK)
        asked = AskedReading(units=units, class_names=self.class_names, ways=ways, answer=answer)
        if self.parts is None:
            return asked
        traced = TraceReading(trace=self._trace(units, pieces))
        return TracedReading(asked=asked, traced=traced, ways=(ATTENTION, *ways))

    def trace(self, texts: Sequence[str]) -> Trace:
        """What it attends to and what it uses, proved by its own logits; refused where the readout is not affine."""
        return self._trace(*self._cut(checked_texts(texts)))

    def _cut(self, texts: list[str]) -> tuple[Units, Pieces]:
        cut = [list(self.encode(text)) for text in texts]
        empty = next((row for row, one in enumerate(cut) if not one), None)
        if empty is not None:
            raise SubjectError(f"The tokenizer of {self.name} makes nothing of text {empty}; each needs a token.")
        offsets = offsets_of(torch.tensor([len(one) for one in cut]))
        flat = [token for one in cut for token in one]
        spans, numbers = torch.tensor([place for _, place in flat]), torch.tensor([number for number, _ in flat])
        units = Units(offsets=offsets, texts=texts, spans=spans)
        places = torch.arange(len(flat)) - offsets[units.segments]
        return units, Pieces(offsets=offsets, numbers=numbers, owners=places)

    def _ask(self, numbers: Int[Tensor, " pieces"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, "rows classes"]:
        found = torch.empty(len(offsets) - 1, len(self.class_names), dtype=torch.float64)
        for rows, batch in _batches(numbers, offsets):
            told = probable(self._logits(batch))
            found[rows] = checked_probabilities(told, len(rows), len(self.class_names), self.name)
        return found

    def _logits(self, batch: Int[Tensor, "rows pieces"]) -> Float[Tensor, "rows outputs"]:
        with resting(self.module), torch.no_grad():
            told = self.module(batch)
        if not isinstance(told, Tensor) or told.ndim != 2:
            shape = tuple(told.shape) if isinstance(told, Tensor) else type(told).__name__
            raise SubjectError(
                f"{self.name} must give logits [batch, classes] for numbers [batch, tokens]; got {shape}."
            )
        return told.double()

    def _trace(self, units: Units, pieces: Pieces) -> Trace:
        assert self.parts is not None
        readout = _part(self.module, self.parts.readout)
        count = len(pieces.numbers)
        weights, polarity = torch.empty(count).double(), torch.empty(count, readout.out_features).double()
        logits = torch.empty(len(units), readout.out_features).double()
        for rows, batch in _batches(pieces.numbers, pieces.offsets):
            with _listening(self.module, self.parts) as heard:
                logits[rows] = self._logits(batch)
            where = positions_of(pieces.offsets, rows)
            weights[where] = heard[self.parts.attention].reshape(len(where)).double()
            hidden = heard[self.parts.values].reshape(len(where), -1).double()
            polarity[where] = hidden @ readout.weight.detach().double().T
        bias = torch.zeros(readout.out_features) if readout.bias is None else readout.bias.detach()
        return Trace.from_arrays(
            offsets=units.offsets,
            attention_weights=weights,
            polarity_scores=polarity,
            bias=bias.double(),
            units=units.shown,
            class_names=self.class_names,
            logits=logits if logits.shape[1] > 1 else logits[:, 0],
        )


def _batches(
    numbers: Int[Tensor, " pieces"], offsets: Int[Tensor, " bounds"]
) -> Iterator[tuple[Int[Tensor, " rows"], Int[Tensor, "rows pieces"]]]:
    """Rows of equal length together, with their numbers side by side."""
    for rows in equal_lengths(lengths_of(offsets), PIECES_AT_ONCE):
        yield rows, numbers[positions_of(offsets, rows)].view(len(rows), -1)


def _part(module: nn.Module, name: str) -> Any:
    parts = dict(module.named_modules())
    if name not in parts:
        raise UnknownName("part of the module", name, [part for part in parts if part])
    return parts[name]


@contextmanager
def _listening(module: nn.Module, parts: Parts) -> Iterator[dict[str, Tensor]]:
    """What the parts put out during the block."""
    heard: dict[str, Tensor] = {}

    def hear(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def listen(_module: nn.Module, _inputs: Any, told: Any) -> None:
            heard[name] = (told[0] if isinstance(told, tuple) else told).detach()

        return listen

    handles = [_part(module, name).register_forward_hook(hear(name)) for name in (parts.attention, parts.values)]
    try:
        yield heard
    finally:
        for handle in handles:
            handle.remove()
    silent = [name for name in (parts.attention, parts.values) if name not in heard]
    if silent:
        raise SubjectError(f"The part '{silent[0]}' put nothing out while the module read a text; name one that does.")
