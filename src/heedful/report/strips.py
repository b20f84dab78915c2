"""Texts as heat strips: the original characters, each token shaded by a number."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.rankings import importance
from heedful.traces import Trace
from heedful.tracing import WordWeights

MOST_UNITS = 150  # longer texts are cut after this many tokens; the page says so

CLEAR_PARTING = 0.1
"""Attention and use part where the most used unit gives so much more, as a share, than the most attended one."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of text: white space between tokens has no shade."""

    text: str
    shade: float | None = None
    """0 … 1 for attention, −1 … 1 for what speaks for and against the decision."""
    note: str = ""
    marked: bool = False
    """Whether it is of the smallest set that flips the decision."""


@dataclass(frozen=True, kw_only=True)
class Strip:
    """A text whose tokens are shaded by one number."""

    name: str
    pieces: Sequence[Piece]
    signed: bool = False
    """Whether the number speaks for and against something."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One instance as strips of the same text: attention, what was used here, and what words would push."""

    strips: Sequence[Strip]
    predicted: str
    probability: float
    label: str | None
    why: str
    note: str = ""
    """What there is to see, and of how many texts it is so."""
    cut: int = 0
    """How many tokens are not shown."""


@dataclass(frozen=True, kw_only=True)
class Shading:
    """A strip before it is drawn: a number for every unit, and what is said of each."""

    name: str
    values: Float[Tensor, " units"]
    note: str
    """With a place for the number."""
    signed: bool = False

    def strip(self, text: str, spans: Int[Tensor, "units 2"], marks: Bool[Tensor, " units"] | None = None) -> Strip:
        """Of the first units of a text, shaded relative to the largest number."""
        notes = [self.note.format(value) for value in self.values.tolist()]
        pieces = _pieces(text, spans[:MOST_UNITS], relative(self.values), notes, marks)
        return Strip(name=self.name, pieces=pieces, signed=self.signed)


ATTENTION, USED, PUSHES = "attention", "used here", "would push"


def shadings_of(trace: Trace) -> list[Shading]:
    """What the strips of a trace show: attention, what each unit gave to this decision, and what it would push."""
    return [
        Shading(name=ATTENTION, values=trace.attention_weights, note="attention weight {:.3f}"),
        Shading(name=USED, values=trace.contributions, note="gave {:+.3f} to the decision", signed=True),
        Shading(name=PUSHES, values=pushes_of(trace), note="would push {:+.2f}", signed=True),
    ]


def pushes_of(trace: Trace) -> Float[Tensor, " units"]:
    """z_iy − mean over k ≠ y of z_ik: how far each unit would push towards the decision y if it had all attention."""
    return importance(trace, "polarity")


def words_strip(text: str, words: WordWeights) -> Strip:
    """What a hierarchical model attends to within sentences, shaded by the largest of each sentence."""
    notes = [f"weight within its sentence {weight:.3f}" for weight in words.weights.tolist()]
    pieces = _pieces(text, words.spans[:MOST_UNITS], words.relative, notes)
    left = len(words.spans) - MOST_UNITS
    more = [Piece(text=f" … and {left:,} more")] if left > 0 else []
    return Strip(name="within sentences", pieces=[*pieces, *more])


def make_shaded(
    text: str,
    spans: Int[Tensor, "units 2"],
    shadings: Sequence[Shading],
    *,
    predicted: str,
    probability: float,
    label: str | None,
    why: str,
    note: str = "",
    marks: Bool[Tensor, " units"] | None = None,
) -> Example:
    """One text as strips of any numbers of its units."""
    return Example(
        strips=[shading.strip(text, spans, marks) for shading in shadings],
        predicted=predicted,
        probability=probability,
        label=label,
        why=why,
        note=note,
        cut=max(0, len(spans) - MOST_UNITS),
    )


def relative(values: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """The values by the largest of their sizes."""
    return values / values.abs().max().clamp(min=1e-12)


def _pieces(
    text: str,
    spans: Int[Tensor, "units 2"],
    shades: Float[Tensor, " all"],
    notes: Sequence[str],
    marks: Bool[Tensor, " all"] | None = None,
) -> list[Piece]:
    pieces = []
    place = int(spans[0, 0])
    marked = [False] * len(notes) if marks is None else marks.tolist()
    for (start, end), shade, note, mark in zip(spans.tolist(), shades.tolist(), notes, marked, strict=False):
        if start > place:
            pieces.append(Piece(text=text[place:start]))
        pieces.append(Piece(text=text[start:end], shade=shade, note=note, marked=mark))
        place = end
    return pieces


def telling_instances(trace: Trace, most: int = 8) -> list[tuple[int, str]]:
    """Instances worth reading: the surest of each class, the surest mistakes, and where attention and use part.

    The last: the unit with the largest weight is not the one that contributes most to the decision.
    """
    sure = trace.probabilities.amax(1)
    chosen: dict[int, str] = {}
    for number, name in enumerate(trace.class_names[: most - 3]):
        _take(chosen, sure.where(trace.predictions == number, -1.0), f"surest for {name}", 1)
    if trace.labels is not None:
        _take(chosen, sure.where(trace.predictions != trace.labels, -1.0), "surest mistake", 2)
    parting, left = _parting(trace), max(0, most - len(chosen))
    _take(chosen, parting.where(parting > CLEAR_PARTING, 0.0), "attention and use part here", left)
    return list(chosen.items())[:most]


def _take(chosen: dict[int, str], values: Float[Tensor, " instances"], why: str, count: int) -> None:
    for number in values.argsort(descending=True, stable=True).tolist()[: count + len(chosen)]:
        if count and float(values[number]) > 0 and number not in chosen:
            chosen[number] = why
            count -= 1


def _parting(trace: Trace) -> Float[Tensor, " instances"]:
    """How much more the best contributing unit gives than the most attended one, as a share; 0 where they agree."""
    gains = trace.contributions
    best = torch.segment_reduce(gains, "max", offsets=trace.offsets)
    top = torch.segment_reduce(trace.attention_weights, "max", offsets=trace.offsets)
    attended = trace.attention_weights == top[trace.segments]
    given = torch.segment_reduce(gains.where(attended, -torch.inf), "max", offsets=trace.offsets)
    return ((best - given) / best.abs().clamp(min=1e-12)).where(best > 0, 0.0)
