"""Many texts to search and look into: every unit of each with its numbers, and what is true of which texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.report.strips import ATTENTION, Example, Shading, make_shaded, words_strip
from heedful.tracing import WordWeights

MOST_TEXTS, MOST_BYTES = 2_000, 10_000_000
"""A page holds at most so many texts, and about so many bytes of them all."""

PER_UNIT, PER_LETTER_WITHIN = 16, 3
"""Bytes that a unit takes beside its letters; and a letter for the words within sentences."""

LONGEST = 20_000  # of one text at most so many units

DIGITS = 3  # of every number

USUAL: Mapping[str, tuple[int, int]] = {"sentences": (3, 6)}
"""By what has the weights how many of them a text has that is shown as an example; of words 8 to 25."""


def usual_lengths(unit: str) -> tuple[int, int]:
    """How many units a text has that is shown as an example, at least and at most."""
    return USUAL.get(unit, (8, 25))


@dataclass(frozen=True, kw_only=True)
class Trait:
    """Something that is true of some texts."""

    name: str
    words: str
    """When it is true."""
    where: Bool[Tensor, " instances"]


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Texts of a split as strips, in its order."""

    texts: Sequence[str]
    offsets: Int[Tensor, " bounds"]
    spans: Int[Tensor, "units 2"]
    shadings: Sequence[Shading]
    """One number for every unit of all texts, each a strip."""
    marks: Bool[Tensor, " units"]
    """The units of the smallest set that flips the decision."""
    predicted: Int[Tensor, " instances"]
    probability: Float[Tensor, " instances"]
    """Of what is predicted."""
    labels: Int[Tensor, " instances"] | None
    class_names: Sequence[str]
    traits: Sequence[Trait] = ()
    needed: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    """By ranking how many units are erased along it until the decision flips; None where it never does."""
    within: Mapping[int, WordWeights] | None = None
    """Of a hierarchical model what it attends to within sentences, by instance."""
    unit: str = "words"
    mark: str = "provably the smallest set that flips the decision"
    """What the marked units are; empty where it is not known."""

    def __len__(self) -> int:
        return len(self.texts)

    def place(self, row: int) -> slice:
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))

    def trait(self, name: str) -> Trait:
        return next(trait for trait in self.traits if trait.name == name)

    def with_traits(self, traits: Sequence[Trait]) -> "Instances":
        return replace(self, traits=traits)

    @property
    def lengths(self) -> Int[Tensor, " instances"]:
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def marked(self) -> Int[Tensor, " instances"]:
        """How many units of each text are marked."""
        return torch.segment_reduce(self.marks.double(), "sum", offsets=self.offsets).long()

    def marked_first(self, name: str) -> Bool[Tensor, " instances"]:
        """Whether by this number the marked units come before all others."""
        values = self._values(name)
        least = torch.segment_reduce(values.where(self.marks, torch.inf), "min", offsets=self.offsets)
        return least > torch.segment_reduce(values.where(~self.marks, -torch.inf), "max", offsets=self.offsets)

    def top_marked(self, name: str) -> Bool[Tensor, " instances"]:
        """Whether the unit with the largest number, or one of equal ones, is marked."""
        values = self._values(name)
        most = torch.segment_reduce(values, "max", offsets=self.offsets)
        return torch.segment_reduce(values.where(self.marks, -torch.inf), "max", offsets=self.offsets) == most

    def _values(self, name: str) -> Float[Tensor, " units"]:
        return next(one.values for one in self.shadings if one.name == name).double()

    def typical(self, where: Bool[Tensor, " instances"]) -> int | None:
        """Of the texts of usual length among these, rightly decided if known, the one of middle probability; where none
        has that length, of the shortest quarter."""
        right = torch.ones_like(where) if self.labels is None else self.predicted == self.labels
        rows = (where & right if (where & right).any() else where).nonzero().squeeze(1)
        if not len(rows):
            return None
        lengths, (shortest, longest) = self.lengths[rows], usual_lengths(self.unit)
        usual = (lengths >= shortest) & (lengths <= longest)
        few = usual if usual.any() else lengths <= lengths.sort().values[(len(rows) - 1) // 4]
        order = self.probability[rows[few]].argsort(stable=True)
        return int(rows[few][order[(len(order) - 1) // 2]])

    def example(self, row: int, why: str, note: str = "", names: Sequence[str] | None = None) -> Example:
        """One text as it stands on the page without being asked for, as those strips that are named."""
        place = self.place(row)
        shown = [replace(one, values=one.values[place]) for one in self.shadings if names is None or one.name in names]
        return self.shaded(row, shown, why, note)

    def shaded(
        self, row: int, shadings: Sequence[Shading], why: str, note: str = "", *, marked: bool = True
    ) -> Example:
        """One text as strips of these numbers of its units, and of the words within its sentences; the smallest set is
        marked, or not."""
        made = make_shaded(
            self.texts[row],
            self.spans[self.place(row)],
            shadings,
            predicted=self.class_names[int(self.predicted[row])],
            probability=float(self.probability[row]),
            label=None if self.labels is None else self.class_names[int(self.labels[row])],
            why=why,
            note=note,
            marks=self.marks[self.place(row)] if marked else None,
        )
        if self.within is None or row not in self.within or made.strips[0].name != ATTENTION:
            return made
        inner = words_strip(self.texts[row], self.within[row])
        return replace(made, strips=[made.strips[0], inner, *made.strips[1:]])

    @property
    def rows(self) -> list[int]:
        """The texts that a page holds: all, or as many as there is room for, evenly spaced."""
        sizes, most = self._sizes(), min(len(self), MOST_TEXTS)
        while most > 1 and sizes[_spread(len(self), most)].sum() > MOST_BYTES:
            most = most * 19 // 20
        return [int(row) for row in _spread(len(self), most)]

    def _sizes(self) -> np.typing.NDArray[np.int64]:
        """About how many bytes each text takes on a page."""
        units = self.lengths.clamp(max=LONGEST).numpy(force=True)
        letters = np.array([len(text) for text in self.texts], np.int64)
        return PER_UNIT * units + letters * (1 if self.unit == "words" else 1 + PER_LETTER_WITHIN)

    def data(self) -> dict[str, Any]:
        """All that a page needs to draw them; numbers as whole thousandths."""
        rows = self.rows
        return {
            "unit": self.unit,
            "mark": self.mark,
            "of": len(self),
            "digits": DIGITS,
            "classes": list(self.class_names),
            "rankings": list(self.needed),
            "strips": [{"name": one.name, "note": one.note, "signed": one.signed} for one in self.shadings],
            "traits": [{"name": one.name, "words": one.words, "of": int(one.where.sum())} for one in self.traits],
            "texts": [self._text(row) for row in rows],
        }

    def _text(self, row: int) -> dict[str, Any]:
        place = self.place(row)
        units = min(place.stop - place.start, LONGEST)
        shown = slice(place.start, place.start + units)
        spans = self.spans[shown]
        last = int(spans[-1, 1]) if units else 0
        text: dict[str, Any] = {
            "row": row,
            "text": self.texts[row][:last] if units < place.stop - place.start else self.texts[row],
            "gaps": _gaps(spans),
            "numbers": [_whole(one.values[shown]) for one in self.shadings],
            "marks": self.marks[shown].nonzero().squeeze(1).tolist(),
            "cut": place.stop - place.start - units,
            "predicted": int(self.predicted[row]),
            "sure": round(float(self.probability[row]), 4),
            "label": None if self.labels is None else int(self.labels[row]),
            "needed": [counts[row] for counts in self.needed.values()],
            "traits": [number for number, trait in enumerate(self.traits) if trait.where[row]],
        }
        if self.within is not None and row in self.within:
            words = self.within[row]
            text["within"] = {"gaps": _gaps(words.spans[:LONGEST]), "numbers": _whole(words.weights[:LONGEST]),
                              "shades": _whole(words.relative[:LONGEST])}  # fmt: skip
        return text


def _spread(count: int, most: int) -> np.typing.NDArray[np.int64]:
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _gaps(spans: Int[Tensor, "units 2"]) -> list[int]:
    """How many characters lie before each unit since the one before, and how many it has, in turns."""
    before = torch.cat([spans.new_zeros(1), spans[:-1, 1]])
    return torch.stack([spans[:, 0] - before, spans[:, 1] - spans[:, 0]], 1).flatten().tolist()


def _whole(values: Float[Tensor, " units"]) -> list[int]:
    return list(map(int, (values.double() * 10**DIGITS).round().tolist()))
