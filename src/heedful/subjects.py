"""Any classifier of texts, and what it says of them when some of their units are gone.

A **subject** reads texts; its **reading** of some texts knows their units, what the subject says of them, and what it
says when units are gone. A trace is a reading that knows exactly what erasing attention weights does; any other model
is asked again. Flips, curves and measures of faithfulness are written against readings and nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import UnknownName
from heedful.text.ragged import positions_of
from heedful.traces import Ragged

ATTENTION, DELETE, MASK = WAYS = "attention", "delete", "mask"
"""How units go: nothing attends to them any more; they leave the text; something unknown takes their place."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Units(Ragged):
    """What texts are made of: words, pieces of words, or sentences."""

    texts: Sequence[str] | None = None
    """The texts themselves; None where they are not known."""
    spans: Int[Tensor, "units 2"] | None = None
    """The characters of its text from which and up to which each reaches; None where that is not known."""
    names: Sequence[str] | None = None
    """What to show for each; None: what its text has there, or else its position."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def shown(self) -> Sequence[str]:
        """What to show for each unit."""
        if self.names is not None:
            return self.names
        if self.texts is not None and self.spans is not None:
            pairs = zip(self.segments.tolist(), self.spans.tolist(), strict=True)
            return [self.texts[row][start:end] for row, (start, end) in pairs]
        return [str(place) for place in (torch.arange(len(self.segments)) - self.offsets[self.segments]).tolist()]

    def of_rows(self, rows: Int[Tensor, " rows"]) -> Int[Tensor, " places"]:
        """The numbers of the units of these texts, text after text; one may be there several times."""
        return positions_of(self.offsets, rows)


class Reading(ABC):
    """What a subject makes of some texts; `ways` are those in which it can do without units, the usual one first.

    A base and no protocol: whether something is a reading must not be answered by asking a model.
    """

    ways: tuple[str, ...]

    if TYPE_CHECKING:  # what is a property here when classes are made, no dataclass can have as a field

        @property
        def class_names(self) -> tuple[str, ...]: ...

        @property
        def units(self) -> Units: ...
    else:
        class_names: tuple[str, ...]
        units: Units

    @property
    @abstractmethod
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        """What it says of the whole texts."""

    @abstractmethod
    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
    ) -> Float[Tensor, "rows classes"]:
        """What it says of these texts when the marked ones of their units are gone.

        `gone` has a mark for each unit of the rows, row after row (`Units.of_rows`): one text may be asked about many
        times at once, each time without others of its units.
        """

    @property
    def decisions(self) -> Int[Tensor, " instances"]:
        """The most probable class of every text, of equal ones the lowest."""
        return self.probabilities.argmax(1)

    def decide(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str) -> Int[Tensor, " rows"]:
        """The decisions on these texts when the marked units are gone; exact where a subject can be."""
        return self.without(rows, gone, how).argmax(1)


@runtime_checkable
class Subject(Protocol):
    """A classifier that reads texts."""

    name: str

    if TYPE_CHECKING:

        @property
        def class_names(self) -> tuple[str, ...]: ...
    else:
        class_names: tuple[str, ...]

    def read(self, texts: Sequence[str]) -> Reading:
        """What it makes of these texts."""


def check_way(how: str, reading: Reading) -> None:
    """Refuse what a subject cannot do."""
    if how not in reading.ways:
        raise UnknownName("way to take units away", how, reading.ways)
