"""The subject: a classifier that can be asked what it says of its texts when some of their units are gone.

A trace knows exactly what erasing its weights does; another model is asked. Whatever removes units and looks at the
decision (flips along a ranking, curves, metrics of faithfulness) is written against this and nothing else.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import UnknownName
from heedful.text.ragged import lengths_of, segments_of

ATTENTION, DELETE, MASK = "attention", "delete", "mask"
"""How units go: their attention weights are erased; they leave the text; something unknown takes their place."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """What a subject's texts are made of: words, or sentences. Text t owns the units offsets[t] … offsets[t + 1]."""

    offsets: Int[Tensor, " bounds"]
    spans: Int[Tensor, "units 2"] | None = None
    """The characters of its text from which and up to which each reaches; None where that is not known."""

    @cached_property
    def lengths(self) -> Int[Tensor, " instances"]:
        return lengths_of(self.offsets)

    @cached_property
    def segments(self) -> Int[Tensor, " units"]:
        """For every unit the number of its text."""
        return segments_of(self.offsets)


@runtime_checkable
class Subject(Protocol):
    """A classifier and some texts; `ways` are those in which it can do without units."""

    ways: tuple[str, ...]

    @property
    def class_names(self) -> tuple[str, ...]: ...

    @property
    def units(self) -> Units: ...

    @property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        """What it says of the whole texts."""

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " units"], how: str
    ) -> Float[Tensor, "rows classes"]:
        """What it says of these texts when the marked ones of all units are gone."""

    @property
    def decisions(self) -> Int[Tensor, " instances"]:
        """The most probable class of every text, of equal ones the lowest."""
        return self.probabilities.argmax(1)

    def decide(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " units"], how: str) -> Int[Tensor, " rows"]:
        """The decisions on these texts when the marked units are gone; exact where a subject can be."""
        return self.without(rows, gone, how).argmax(1)


def check_way(how: str, subject: Subject) -> None:
    """Refuse what a subject cannot do."""
    if how not in subject.ways:
        raise UnknownName("way to take units away", how, subject.ways)
