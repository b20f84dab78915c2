"""A metric: what it asks of a reading, the number it makes of the answers for each text, and its card."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.agreement import tops_of
from heedful.analysis.faithfulness.removal import Asked, Prefixes, Question
from heedful.explanations import Explanation
from heedful.subjects import Units
from heedful.text.ragged import segment_sum

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"
"""Which values are better."""

NOTHING = 1e-9
"""A difference of probabilities that is none."""

ORDER = "Only the order of the scores counts; in a signed explanation what speaks against the class comes last."
SIZE = "The scores count as they are; those of an unsigned explanation are taken as all in favour of the class."
MAGNITUDE = "Only the sizes of the scores count, not their signs."

CHANGED = "Texts with units gone may be unlike anything the model has seen, and its answer to them an accident."

NEEDS = {
    "rationales": "give rationales=, the units that people marked",
    "again": "give again=, a function that explains under noise (heedful.explainers.noise)",
    "others": "give two explanations or more",
    "seconds": "the explanation does not say what time it took",
    "passes": "the explanation does not say how many texts the model read for it",
}
"""What some metrics cannot do without, and what to say where it is missing."""


FEW, BEAM = 10, 5
"""Where the ends of NAOPC are searched: units up to which all sets of a text are asked about, a thousand, as many as a
beam asks about of a text of fifteen; and how many chains a beam keeps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """The smallest and the largest area of any order, of each text: what is attained, and what none can pass.

    `outer_low` and `outer_high` are certificates; not numbers where orders were searched and nothing was proven.
    """

    low: Float[Tensor, " instances"]
    high: Float[Tensor, " instances"]
    outer_low: Float[Tensor, " instances"]
    outer_high: Float[Tensor, " instances"]

    @property
    def gap(self) -> Float[Tensor, " instances"]:
        """How far what is attained may be from the true ends, both together, as a share of the range."""
        room = (self.low - self.outer_low) + (self.outer_high - self.high)
        return torch.where(room <= PROVEN, 0.0, room / (self.high - self.low))

    @property
    def proven(self) -> Bool[Tensor, " instances"]:
        """Where both ends are the true ones."""
        return self.gap == 0

    def widened(self, areas: Float[Tensor, " instances"]) -> "Bounds":
        """The same, knowing that these areas are attained too."""
        return replace(self, low=torch.minimum(self.low, areas), high=torch.maximum(self.high, areas))


PROVEN = 1e-10
"""Ends that are no farther than this from their certificates are proven: it is what rounding leaves."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One explanation before a reading, with what else there is to compare it with."""

    asked: Asked
    explanation: Explanation
    others: tuple[Explanation, ...] = ()
    rationales: Bool[Tensor, " units"] | None = None
    again: Callable[[int], Explanation] | None = None
    seed: int = 0
    bounds: Bounds | None = None

    @property
    def units(self) -> Units:
        return self.asked.units

    @property
    def rows(self) -> Int[Tensor, " instances"]:
        return torch.arange(len(self.units))

    @property
    def before(self) -> Float[Tensor, " instances"]:
        """What the whole texts have for the class that is explained."""
        return self.own(self.asked.whole, self.rows)

    def own(self, said: Float[Tensor, "sets classes"], rows: Int[Tensor, " sets"]) -> Float[Tensor, " sets"]:
        """The probability of the class that is explained."""
        return said.gather(1, self.explanation.targets[rows][:, None]).squeeze(1)

    def top(self, share: int | float, *, kept: bool = False) -> Prefixes:
        """The first units of every text: a number of them, or a share rounded up, one at least."""
        sizes = tops_of(self.units.lengths, share)
        return Prefixes(places=self.explanation.places, rows=self.rows, sizes=sizes, kept=kept)

    def curve(self, *, kept: bool = False) -> Prefixes:
        """All prefixes, one for each unit: the first 1, 2, … units gone, or the first 0, 1, … units kept."""
        along = torch.arange(len(self.units.segments)) - self.units.offsets[self.units.segments]
        sizes = along if kept else along + 1
        return Prefixes(places=self.explanation.places, rows=self.units.segments, sizes=sizes, kept=kept)

    def total(self, values: Float[Tensor, " units"]) -> Float[Tensor, " instances"]:
        """Σ over the units of each text."""
        return segment_sum(values, self.units.offsets)

    def missing(self, need: str) -> bool:
        """Whether there is not what a metric cannot do without."""
        if need in ("seconds", "passes"):
            return getattr(self.explanation, need) is None
        return not self.others if need == "others" else getattr(self, need) is None


Answers = Sequence[Float[Tensor, "_ classes"]]


def nothing(_: Case) -> tuple[Question, ...]:
    """The questions of a metric that never sees the model."""
    return ()


def no_sets(lengths: Int[Tensor, " instances"]) -> Int[Tensor, " instances"]:
    """It asks about none."""
    return torch.zeros_like(lengths)


def each_unit(lengths: Int[Tensor, " instances"]) -> Int[Tensor, " instances"]:
    """It asks about as many sets as a text has units."""
    return lengths


def so_many(count: int) -> Callable[[Int[Tensor, " instances"]], Int[Tensor, " instances"]]:
    """It asks about so many sets of every text."""
    return lambda lengths: torch.full_like(lengths, count)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number for every text, and what one must know of it.

    name, title: what it is called in calls and in tables.
    formula, source: what is computed, and who defined it.
    direction: whether higher or lower values are better, or neither.
    low, high: between which it lies; None where it is not bounded.
    inflates: what makes it look good without being good.
    elsewhere: where other libraries differ from the source, or this one does.
    signs: how signed and unsigned scores are taken.
    example: its values on the hand game (docs/metrics.md), for the weights and for the pretended attention.
    asks: the questions it has about a case; value: the number of each text, not a number where there is none.
    sets: about how many sets of units it asks about, of texts of so many units; alike: whether they are the same for
        every explanation.
    needs: what else must be given, of `NEEDS`.
    chance: whether numbers are drawn. bounded: whether it needs the bounds of all orders.
    """

    name: str
    title: str
    formula: str
    source: str
    direction: str
    low: int | float | None
    high: int | float | None
    inflates: str
    elsewhere: str
    signs: str
    example: tuple[str, str]
    value: Callable[[Case, Answers], Float[Tensor, " instances"]] = field(repr=False)
    asks: Callable[[Case], tuple[Question, ...]] = field(default=nothing, repr=False)
    sets: Callable[[Int[Tensor, " instances"]], Int[Tensor, " instances"]] = field(default=no_sets, repr=False)
    alike: bool = False
    needs: tuple[str, ...] = ()
    chance: bool = False
    bounded: bool = False

    @property
    def sees_model(self) -> bool:
        """Whether it asks what the model says; the others can be computed of an explanation alone."""
        return self.asks is not nothing

    def remark(self, case: Case) -> str:
        """Why there is no value, or nothing."""
        lacking = [NEEDS[need] for need in self.needs if case.missing(need)]
        return f"not measured: {', '.join(lacking)}" if lacking else ""
