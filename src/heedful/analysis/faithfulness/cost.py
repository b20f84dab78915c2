"""What it costs to ask: how many changed texts a model reads at most, said and limited before it reads the first.

Of a text of n units most questions are about n sets of n units: twice the length is four times the work.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from heedful.analysis.faithfulness.metric import Metric
from heedful.errors import InputError
from heedful.notebook import counted

MOST_UNITS = 100_000_000
"""So many units of changed texts are read at most unless more are asked for: of a small transformer a night."""

Lengths = Int[Tensor, " instances"]
SetsOf = Callable[[Lengths], Lengths]
"""About how many sets of its units are asked about, of texts of these lengths."""


class TooMuch(InputError):
    """More questions than are asked without being told to."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Changed texts, and the units of the texts that they are made of."""

    texts: int = 0
    units: int = 0

    @classmethod
    def of(cls, lengths: Lengths, sets: Lengths) -> "Cost":
        return cls(texts=int(sets.sum()), units=int((sets * lengths).sum()))

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(texts=self.texts + other.texts, units=self.units + other.units)

    def times(self, count: int) -> "Cost":
        return Cost(texts=count * self.texts, units=count * self.units)

    def __str__(self) -> str:
        return f"up to {counted(self.texts, 'changed text')} of {counted(self.units, 'unit')} in all"

    def check(self, what: str, lengths: Lengths, most: int) -> None:
        """Refuse more than so many units, with what would fit."""
        if most < 1:
            raise InputError(f"most must be 1 or more, as a number of units; got {most}.")
        if self.units <= most:
            return
        fit = len(lengths) * most // self.units
        fewer = f"about {fit:,} such texts would fit" if fit > 1 else "only shorter ones would fit"
        raise TooMuch(
            f"To {what} the model would have to read {self}; {most:,} units are the most. "
            f"{counted(len(lengths), 'text')} of up to {counted(int(lengths.max()), 'unit')} cost that: {fewer}. Take "
            f"fewer or shorter texts, cheaper explainers or metrics, or allow it: most={self.units} (on the command "
            f"line --most {self.units})."
        )


def total(costs: Iterable[Cost]) -> Cost:
    """All together."""
    return sum(costs, Cost())


def cost_of_metrics(metrics: Sequence[Metric], explanations: int, lengths: Lengths) -> Cost:
    """What metrics ask about so many explanations; what several of them ask alike counts once."""
    distinct = {metric.asks if not metric.bounded else metric.name: metric for metric in metrics}
    parts = [(Cost.of(lengths, metric.sets(lengths)), metric.alike) for metric in distinct.values()]
    return total(cost if alike else cost.times(explanations) for cost, alike in parts)
