"""A reading of a model that must be asked: every change of a text once, and what it said is remembered and checked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import InputError
from heedful.subjects import Reading, Units, check_way
from heedful.text.ragged import lengths_of, offsets_of, positions_of
from heedful.text.tables import writable
from heedful.text.tokenize import Tokenizer, Vocabulary

Answer = Callable[[Int[Tensor, " rows"], Bool[Tensor, " places"], str], Float[Tensor, "rows classes"]]
"""What a model says of these rows without the marked units, taken away so: as `Reading.without`, asked of anything."""

Key = tuple[int, str, bytes]

SUM_TOLERANCE = 1e-3


class SubjectError(InputError):
    """A model that cannot be examined, or whose answers are none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AskedReading(Reading):
    """Texts that a model was given; it is asked about each change once."""

    units: Units
    class_names: tuple[str, ...]
    ways: tuple[str, ...]
    answer: Answer
    known: dict[Key, Float[Tensor, " classes"]] = field(default_factory=dict, repr=False)
    """What it has said so far."""

    @property
    def passes(self) -> int:
        """How many texts the model has read."""
        return len(self.known)

    @cached_property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        nothing = torch.zeros(int(self.units.offsets[-1]), dtype=torch.bool)
        return self.without(torch.arange(len(self.units)), nothing, self.ways[0])

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
    ) -> Float[Tensor, "rows classes"]:
        check_way(how, self)
        keys = self._keys(rows, gone, how)
        places = {key: place for place, key in reversed(list(enumerate(keys))) if key not in self.known}
        if places:
            asked = torch.tensor(sorted(places.values()))
            begins = offsets_of(self.units.lengths[rows])
            told = self.answer(rows[asked], gone[positions_of(begins, asked)], how)
            self.known.update(zip([keys[place] for place in asked.tolist()], told.unbind(), strict=True))
        return (
            torch.stack([self.known[key] for key in keys]) if keys else torch.empty(0, len(self.class_names)).double()
        )

    def _keys(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str) -> list[Key]:
        """Which text, how, and what is gone; where nothing is, all ways are one."""
        ends = self.units.lengths[rows].cumsum(0).tolist()
        marks = np.split(gone.numpy(force=True), ends[:-1]) if ends else []
        return [
            (row, how if own.any() else "", np.packbits(own).tobytes())
            for row, own in zip(rows.tolist(), marks, strict=True)
        ]


def checked_probabilities(told: object, rows: int, classes: int | None, who: str) -> Float[Tensor, "rows classes"]:
    """What a model said, as probabilities: one row per text, as many columns as classes, finite, summing to one.

    One number per text is the probability of the second of two classes.
    """
    try:
        raw = told.detach().cpu() if isinstance(told, Tensor) else np.asarray(told, dtype=np.float64)
        found = torch.as_tensor(raw).double()
    except (TypeError, ValueError, RuntimeError) as error:
        raise SubjectError(f"{who} must give numbers, one row of probabilities per text: {error}.") from error
    if found.ndim == 1 and len(found) == rows and classes in (None, 2):
        found = torch.stack([1 - found, found], 1)
    if found.ndim != 2 or len(found) != rows or found.shape[1] < 2 or (classes or found.shape[1]) != found.shape[1]:
        expected = f"{rows} × {classes or 'classes'}"
        raise SubjectError(
            f"{who} must give one row of probabilities per text: expected {expected}, got {_shape(found)}. Give a "
            "function of a list of texts."
        )
    _check_numbers(found, who)
    return found / found.sum(1, keepdim=True)


def _check_numbers(found: Float[Tensor, "rows classes"], who: str) -> None:
    if not found.isfinite().all():
        row = int((~found.isfinite()).any(1).nonzero()[0])
        raise SubjectError(
            f"{who} gave NaN or infinity for text {row} of those it was asked about: {found[row].tolist()}."
        )
    off = (found.sum(1) - 1).abs()
    if found.min() < -SUM_TOLERANCE or off.max() > SUM_TOLERANCE:
        row = int(off.argmax()) if off.max() > SUM_TOLERANCE else int(found.amin(1).argmin())
        raise SubjectError(
            f"{who} must give probabilities, which are not negative and sum to one; of a text it gave "
            f"{[round(number, 4) for number in found[row].tolist()]}. Apply a softmax if these are logits."
        )


def _shape(found: Tensor) -> str:
    return " × ".join(map(str, found.shape)) if found.ndim else "a single number"


def checked_texts(texts: Sequence[str]) -> list[str]:
    """Strings with one word or more each."""
    if isinstance(texts, str):
        return checked_texts([texts])
    entries = list(texts)
    if not entries:
        raise InputError("Expected at least one text, got an empty list.")
    wrong = next((place for place, text in enumerate(entries) if not isinstance(text, str) or not text.strip()), None)
    if wrong is not None:
        raise InputError(f"Every text must be a string with one word or more; number {wrong} (the first is 0) is not.")
    return [str(writable(text)) for text in entries]


def word_units(texts: Sequence[str]) -> Units:
    """The words and marks of texts, where they stand."""
    found = Tokenizer(mode="words", lowercase=False).encode(texts, Vocabulary.of(()))
    empty = (lengths_of(found.offsets) == 0).nonzero()
    if len(empty):
        raise InputError(f"A text needs at least one word; number {int(empty[0])} (the first is 0) has none.")
    return Units(offsets=found.offsets, texts=texts, spans=found.spans.long())


def text_without(text: str, spans: Sequence[Sequence[int]], gone: Sequence[bool], filler: str | None = None) -> str:
    """The text without the marked units, or with a filler in the place of each.

    What stands between units stays; where a unit leaves a gap on both of its sides, one of them goes with it.
    """
    parts, last, tail = [], 0, " "
    for (start, end), out in zip(spans, gone, strict=True):
        told = text[last:start] + ((filler or "") if out else text[start:end])
        parts.append(told)
        tail, last = told[-1:] or tail, end
        if out and filler is None and tail.isspace():
            last += len(text[end:]) - len(text[end:].lstrip())
    whole = "".join([*parts, text[last:]])
    return whole if filler is not None or not any(gone) else whole.strip()
