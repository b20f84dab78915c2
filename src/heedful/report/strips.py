"""Texts as heat strips: the original characters, each token shaded by a number."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
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
    cut: int = 0
    """How many tokens are not shown."""


def pushes_of(trace: Trace) -> Float[Tensor, " units"]:
    """z_iy − mean over k ≠ y of z_ik: how far each unit would push towards the decision y if it had all attention."""
    return importance(trace, "polarity")


def make_example(
    trace: Trace, number: int, text: str, spans: Int[Tensor, "units 2"], why: str, words: WordWeights | None = None
) -> Example:
    """The strips of one instance, each shaded relative to its own largest number.

    `words` of a hierarchical model are what it attends to within sentences, shaded by the largest of their sentence.
    """
    place, shown = trace.instance(number), spans[:MOST_UNITS]
    predicted = int(trace.predictions[number])

    def strip(name: str, values: Float[Tensor, " all"], note: str, *, signed: bool = True) -> Strip:
        notes = [note.format(value) for value in values[place].tolist()]
        return Strip(name=name, pieces=_pieces(text, shown, relative(values[place]), notes), signed=signed)

    attention = strip("attention", trace.attention_weights, "attention weight {:.3f}", signed=False)
    within = []
    if words is not None:
        notes = [f"weight within its sentence {weight:.3f}" for weight in words.weights.tolist()]
        pieces = _pieces(text, words.spans[:MOST_UNITS], words.relative, notes)
        within = [Strip(name="within sentences", pieces=pieces)]
    used = strip("used here", trace.contributions, "gave {:+.3f} to the decision")
    pushes = strip("would push", pushes_of(trace), "would push {:+.2f}")
    return Example(
        strips=[attention, *within, used, pushes],
        predicted=trace.class_names[predicted],
        probability=float(trace.probabilities[number, predicted]),
        label=None if trace.labels is None else trace.class_names[int(trace.labels[number])],
        why=why,
        cut=max(0, len(spans) - MOST_UNITS),
    )


def make_pair(
    trace: Trace, number: int, text: str, spans: Int[Tensor, "units 2"], other: Float[Tensor, " units"], why: str
) -> Example:
    """The attention of one instance, other weights for it, and what its units would push."""
    place, shown = trace.instance(number), spans[:MOST_UNITS]
    predicted, pushes = int(trace.predictions[number]), pushes_of(trace)[place]

    def weighed(name: str, weights: Float[Tensor, " units"]) -> Strip:
        notes = [f"attention weight {weight:.3f}" for weight in weights.tolist()]
        return Strip(name=name, pieces=_pieces(text, shown, relative(weights), notes))

    notes = [f"would push {push:+.2f}" for push in pushes.tolist()]
    return Example(
        strips=[
            weighed("attention", trace.attention_weights[place]),
            weighed("another", other),
            Strip(name="would push", pieces=_pieces(text, shown, relative(pushes), notes), signed=True),
        ],
        predicted=trace.class_names[predicted],
        probability=float(trace.probabilities[number, predicted]),
        label=None if trace.labels is None else trace.class_names[int(trace.labels[number])],
        why=why,
        cut=max(0, len(spans) - MOST_UNITS),
    )


@dataclass(frozen=True, kw_only=True)
class Shading:
    """A strip before it is drawn: a number for every unit of one text, and what is said of each."""

    name: str
    values: Float[Tensor, " units"]
    note: str
    signed: bool = False

    def strip(self, text: str, spans: Int[Tensor, "units 2"]) -> Strip:
        """Of the first units of a text, shaded relative to the largest number."""
        notes = [self.note.format(value) for value in self.values.tolist()]
        pieces = _pieces(text, spans[:MOST_UNITS], relative(self.values), notes)
        return Strip(name=self.name, pieces=pieces, signed=self.signed)


def make_shaded(
    text: str,
    spans: Int[Tensor, "units 2"],
    shadings: Sequence[Shading],
    *,
    predicted: str,
    probability: float,
    label: str | None,
    why: str,
) -> Example:
    """One text as strips of any numbers of its units."""
    return Example(
        strips=[shading.strip(text, spans) for shading in shadings],
        predicted=predicted,
        probability=probability,
        label=label,
        why=why,
        cut=max(0, len(spans) - MOST_UNITS),
    )


def relative(values: Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    """The values by the largest of their sizes."""
    return values / values.abs().max().clamp(min=1e-12)


def _pieces(
    text: str, spans: Int[Tensor, "units 2"], shades: Float[Tensor, " all"], notes: Sequence[str]
) -> list[Piece]:
    pieces = []
    place = int(spans[0, 0])
    for (start, end), shade, note in zip(spans.tolist(), shades.tolist(), notes, strict=False):
        if start > place:
            pieces.append(Piece(text=text[place:start]))
        pieces.append(Piece(text=text[start:end], shade=shade, note=note))
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
