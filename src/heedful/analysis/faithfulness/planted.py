"""Classifiers whose truth is known: log-odds that are a sum over units and pairs of units that are there.

They are read without any training. The true importance of a unit is its Shapley value for the probability of the
decision, computed from all sets of the units that matter.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.faithfulness.removal import Asked, Sets, every_set
from heedful.errors import InputError
from heedful.explanations import Explanation
from heedful.subjects import DELETE, Reading, Units, check_way
from heedful.text.ragged import offsets_of, positions_of, segment_sum

MOST_RELEVANT = 10
SHORTEST, LONGEST = 8, 16
TRUTH = "truth"


def no_pairs() -> Int[Tensor, "pairs 2"]:
    return torch.empty(0, 2, dtype=torch.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Planted(Reading):
    """A classifier of two classes whose log-odds are known.

        log p_1 / p_0 = b + Σ_i w_i x_i + Σ_ij v_ij x_i x_j        x_i = 1 while unit i is there, else 0

    on: the texts. weights: w of each unit. bias: b of each text. pairs: the numbers of two units of one text each, in
    the order of the texts. pair_weights: v of each pair.
    """

    on: Units
    weights: Float[Tensor, " units"]
    bias: Float[Tensor, " instances"]
    pairs: Int[Tensor, "pairs 2"] = field(default_factory=no_pairs)
    pair_weights: Float[Tensor, " pairs"] = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    ways: tuple[str, ...] = (DELETE,)
    class_names: tuple[str, ...] = ("no", "yes")

    @property
    def units(self) -> Units:
        return self.on

    @property
    def additive(self) -> bool:
        """Whether units do not interact."""
        return not len(self.pairs)

    @cached_property
    def probabilities(self) -> Float[Tensor, "instances classes"]:
        return self._said(torch.arange(len(self.on)), torch.ones_like(self.weights))

    @cached_property
    def relevant(self) -> Bool[Tensor, " units"]:
        """The units that the log-odds depend on."""
        found = self.weights != 0
        found[self.pairs[self.pair_weights != 0].flatten()] = True
        return found

    @cached_property
    def _pair_offsets(self) -> Int[Tensor, " bounds"]:
        owners = self.on.segments[self.pairs[:, 0]]
        return offsets_of(torch.bincount(owners, minlength=len(self.on)))

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = DELETE
    ) -> Float[Tensor, "rows classes"]:
        check_way(how, self)
        return self._said(rows, (~gone).double())

    def _said(self, rows: Int[Tensor, " rows"], there: Float[Tensor, " places"]) -> Float[Tensor, "rows classes"]:
        starts = offsets_of(self.on.lengths[rows])
        odds = self.bias[rows] + segment_sum(self.weights[self.on.of_rows(rows)] * there, starts)
        chosen = positions_of(self._pair_offsets, rows)
        owners = torch.repeat_interleave(torch.arange(len(rows)), torch.diff(self._pair_offsets)[rows])
        places = self.pairs[chosen] + (starts[owners] - self.on.offsets[rows[owners]])[:, None]
        odds = odds.index_add(0, owners, self.pair_weights[chosen] * there[places].prod(1))
        return torch.stack([torch.zeros_like(odds), odds], 1).softmax(1)


def shapley(
    reading: Reading, relevant: Bool[Tensor, " units"], *, how: str | None = None, method: str = TRUTH
) -> Explanation:
    """The Shapley values of the probability of the decision, exact; units that do not matter have zero.

        φ_i = Σ_{S ⊆ R∖i} |S|! (m − |S| − 1)! / m! (p(S ∪ i) − p(S))        R: the m relevant units of the text

    relevant: which units may have an effect; 10 at most in a text. All sets of them are asked, the others stay.
    """
    asked = Asked(reading, how)
    units, targets = asked.units, asked.whole.argmax(1)
    counts = segment_sum(relevant.double(), units.offsets).long()
    if int(counts.max()) > MOST_RELEVANT:
        raise InputError(
            f"Exact Shapley values need {MOST_RELEVANT} relevant units or fewer in a text; one has {int(counts.max())}."
        )
    noted = [asked.note(_sets_of(units, relevant, row)) for row in range(len(units))]
    scores = torch.zeros(len(units.segments), dtype=torch.float64)
    for row, one in enumerate(noted):
        own = slice(int(units.offsets[row]), int(units.offsets[row + 1]))
        scores[own][relevant[own]] = _values(asked.hear(one)[:, targets[row]], int(counts[row]))
    return Explanation.on(units, scores, targets, reading.class_names, method=method, signed=True)


def _sets_of(units: Units, relevant: Bool[Tensor, " units"], row: int) -> Sets:
    """All sets of the relevant units of a text that remain: set s keeps the i-th of them where bit i of s is set."""
    own = relevant[int(units.offsets[row]) : int(units.offsets[row + 1])]
    kept = every_set(int(own.sum()))
    gone = torch.zeros(len(kept), len(own), dtype=torch.bool)
    gone[:, own] = ~kept
    return Sets(rows=torch.full((len(kept),), row), gone=gone.flatten())


def _values(said: Float[Tensor, " sets"], count: int) -> Float[Tensor, " relevant"]:
    """Shapley values of a game whose value for each set of so many players is given, by number."""
    numbers, sizes = torch.arange(len(said)), every_set(count).sum(1)
    shares = [1 / (count * math.comb(count - 1, size)) for size in range(count)]
    weights = torch.tensor([*shares, 0.0], dtype=torch.float64)[sizes]
    found = torch.empty(count, dtype=torch.float64)
    for player in range(count):
        without = numbers[(numbers >> player) % 2 == 0]
        found[player] = (weights[without] * (said[without | (1 << player)] - said[without])).sum()
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """A reading and the true importance of its units."""

    reading: Reading
    truth: Explanation

    @classmethod
    def of(cls, reading: Planted) -> "World":
        return cls(reading=reading, truth=shapley(reading, reading.relevant))


Text = tuple[dict[int, float], dict[tuple[int, int], float], float]
"""Of one text: weights by unit, weights by pair of units, the bias."""


def hand_game() -> Planted:
    """a good dull film: weights 0, ln 9, −ln 3, 0; p = 3/4."""
    names = ["a", "good", "dull", "film"]
    weights = torch.tensor([0, math.log(9), -math.log(3), 0], dtype=torch.float64)
    units = Units(offsets=torch.tensor([0, 4]), texts=["a good dull film"], names=names)
    return Planted(on=units, weights=weights, bias=torch.zeros(1, dtype=torch.float64))


def _sides(rng: np.random.Generator, units: list[int]) -> dict[int, float]:
    """Small weights of some more units, for either class."""
    return {unit: float(rng.choice([-1, 1]) * rng.uniform(0.3, 1)) for unit in units}


def _additive(rng: np.random.Generator, units: list[int]) -> Text:
    """Four to six units with weights of their own."""
    chosen = units[: int(rng.integers(4, 7))]
    return {unit: float(2 * rng.normal()) for unit in chosen}, {}, 0.0


def _or(rng: np.random.Generator, units: list[int]) -> Text:
    """One of two units is enough for a class: c (x + y − x y) − c/2."""
    strength = float(rng.choice([-1, 1]) * rng.uniform(3, 5))
    one, other, *more = units[:4]
    return {one: strength, other: strength} | _sides(rng, more), {(one, other): -strength}, -strength / 2


def _and(rng: np.random.Generator, units: list[int]) -> Text:
    """Two units together speak for a class: c x y − c/2."""
    strength = float(rng.choice([-1, 1]) * rng.uniform(3, 5))
    one, other, *more = units[:4]
    return _sides(rng, more), {(one, other): strength}, -strength / 2


def _negation(rng: np.random.Generator, units: list[int]) -> Text:
    """A unit speaks for a class, and for the other one while its negation is there: c x − 2 c x y."""
    strength = float(rng.choice([-1, 1]) * rng.uniform(3, 5))
    word, negation, *more = units[:4]
    return {word: strength} | _sides(rng, more), {(word, negation): -2 * strength}, 0.0


MAKERS: Mapping[str, Callable[[np.random.Generator, list[int]], Text]] = {
    "additive": _additive,
    "or": _or,
    "and": _and,
    "negation": _negation,
}


def plant(name: str, *, texts: int = 200, seed: int = 0) -> World:
    """A world of texts of 8 to 16 units, of which a few matter, in places drawn by chance."""
    rng = np.random.default_rng([seed, list(MAKERS).index(name)])
    offsets = offsets_of(torch.from_numpy(rng.integers(SHORTEST, LONGEST + 1, texts)))
    weights = torch.zeros(int(offsets[-1]), dtype=torch.float64)
    bias, pairs = torch.zeros(texts, dtype=torch.float64), dict[tuple[int, int], float]()
    for row in range(texts):
        places = rng.permutation(np.arange(int(offsets[row]), int(offsets[row + 1]))).tolist()
        single, double, bias[row] = MAKERS[name](rng, places)
        weights[list(single)] = torch.tensor(list(single.values()), dtype=torch.float64)
        pairs |= double
    numbers = torch.tensor(list(pairs), dtype=torch.int64).reshape(-1, 2)
    of_pairs = torch.tensor(list(pairs.values()), dtype=torch.float64)
    units = Units(offsets=offsets)
    return World.of(Planted(on=units, weights=weights, bias=bias, pairs=numbers, pair_weights=of_pairs))
