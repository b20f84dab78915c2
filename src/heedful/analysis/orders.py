"""Could one attention for the whole corpus put other words first? Pairs of words, and how many of them it reverses.

One attention score per token, for all texts; polarity stays, and no output moves by more than ε: the scores of
`heedful.analysis.same_outputs`. Of each pair the first word has the larger score. Looked for is one attention that
gives the smaller to as many of them as possible, all at once, by linear programs

    Σ c_i ξ_i as small as possible with  w_second − w_first + ξ_i ≥ margin,  ξ ≥ 0

in units of the first word's own weight, with c = 1, then c_i = 1 / (ξ_i + .1), so that what is left falls on few pairs
(Candès, Wakin & Boyd 2008). What is found is attained: its scores were put into the model. That no attention reverses
more is not shown by it. Pairs that it leaves are looked at alone: the least ratio of their weights where only some of
the texts must keep their outputs bounds that where all must, and above one the order is held by the outputs. Of three
classes or more what is looked for keeps to a condition that implies TVD ≤ ε, and what is held to one that it implies.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import OptimizeResult
from torch import Tensor

from heedful.analysis.bags import Bags, bags_of
from heedful.analysis.erasure_loops import Numbers, one_thread
from heedful.analysis.programs import METHODS, LeastRatio, least_cost
from heedful.analysis.same_outputs import Cone, cone_of, farthest, nearby, possible_rises, rows_of
from heedful.analysis.separation import OCTAVE, polar
from heedful.errors import InputError
from heedful.traces import Trace

Pair = tuple[int, int]
Marks = NDArray[np.bool_]

MARGIN = 1e-3
"""By how much of the first word's weight the second must exceed it."""

LEAST = 0.1
"""The second word keeps so much of its weight at least: words that all lose theirs have no order."""

SOFT = 0.1

ROUNDS = 3
"""Programs in a row; on SST the second reverses a twentieth of the pairs more, the third hardly any."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReversedOrders:
    """One attention that reverses many pairs.

    pairs: one row per pair: first, second, attention_first, attention_second (the model's scores), other_first,
        other_second (those found), reversed, held (no attention that keeps the outputs reverses it).
    tokens: one row per token: number, token, count, attention, other.
    farthest: how far the output of any text moves, in total variation.
    """

    pairs: pd.DataFrame
    tokens: pd.DataFrame
    farthest: float


def matched_pairs(
    tokens: pd.DataFrame, counts: Int[Tensor, " vocab"], *, least: int, most: int, seed: int
) -> list[Pair]:
    """Numbers of words that belong to a class beyond chance, each with one that all classes use alike, as frequent.

    tokens: the table of `token_scores`, by token number. counts: how often each occurs in the texts that must keep
    their outputs, `least` so often to be looked at. The first words are drawn by the seed, `most` of them; each takes
    the word next to it in training frequency, within an octave, that no other has; pairs whose first word has not the
    larger attention score are left out.
    """
    known = tokens["attention"].notna().to_numpy() & (counts.numpy()[: len(tokens)] >= least)
    at, attention = np.log(tokens["count"].clip(lower=1).to_numpy(np.float64)), tokens["attention"].to_numpy(np.float64)
    firsts = np.flatnonzero(tokens.index.isin(polar(tokens).index) & known)
    left, pairs = np.flatnonzero(tokens["even"].to_numpy() & known), []
    for first in np.random.default_rng(seed).permutation(firsts).tolist():
        nearest = int(np.abs(at[left] - at[first]).argmin()) if len(left) else -1
        if nearest >= 0 and abs(at[left[nearest]] - at[first]) <= OCTAVE:
            pairs.append((first, int(left[nearest])))
            left = np.delete(left, nearest)
    return [pair for pair in pairs if attention[pair[0]] > attention[pair[1]]][:most]


@one_thread()
def reversed_orders(
    trace: Trace,
    tokens: Int[Tensor, " units"],
    pairs: list[Pair],
    *,
    epsilon: float = 0.05,
    minimum_count: int = 10,
    rounds: int = ROUNDS,
) -> ReversedOrders:
    """One attention for all texts that gives the second word of as many pairs as possible the larger score.

    trace: of a model without a contextual encoder; its texts keep their outputs within ε, by total variation.
    tokens: the number of each unit's token.
    pairs: numbers of tokens that occur `minimum_count` times or more; rarer ones keep their scores.

    >>> import heedful, torch
    >>> from heedful.analysis.orders import reversed_orders
    >>> scores = {"attention_scores": [1, 0, 0, 0], "polarity_scores": [2, -2, 2, 2]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2, 4], bias=[0], units=["good", "dull", "fine", "well"], **scores)
    >>> found = reversed_orders(trace, torch.arange(4), [(0, 1), (0, 2)], minimum_count=1)
    >>> found.pairs[["first", "second", "reversed", "held"]]
      first second  reversed   held
    0  good   dull     False   True
    1  good   fine      True  False
    """
    if not 0 < epsilon < 1:
        raise InputError(f"epsilon is how far a probability may move: above 0 and below 1, not {epsilon}.")
    bags = bags_of(trace, tokens)
    cone = cone_of(bags, bags.occurrences >= minimum_count, epsilon)
    joint = _Joint(cone=cone, pairs=_places(cone, pairs))
    scores, active = joint.search(rounds)
    differences = [scores[first] - scores[second] for first, second in joint.pairs]
    held = [bool(gap > 0) and joint.held(pair, active) for gap, pair in zip(differences, joint.pairs, strict=True)]
    return ReversedOrders(
        pairs=_pair_table(bags, joint.pairs, scores, held),
        tokens=_token_table(bags, scores),
        farthest=farthest(cone, scores),
    )


def _places(cone: Cone, pairs: list[Pair]) -> list[Pair]:
    places = {number: place for place, number in enumerate(cone.bags.numbers.tolist()) if cone.free[place]}
    rare = [number for pair in pairs for number in pair if number not in places]
    if rare:
        raise InputError(
            f"Token {rare[0]} is too rare here: its score stays. Take pairs of tokens that occur more often."
        )
    return [(places[first], places[second]) for first, second in pairs]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Joint:
    """The programs of all pairs; tokens are places."""

    cone: Cone
    pairs: list[Pair]

    @cached_property
    def moving(self) -> Numbers:
        return np.flatnonzero(self.cone.free.numpy(force=True))

    @cached_property
    def rows(self) -> sparse.csr_array:
        """Those that some weights break."""
        return self._breakable(self.cone)

    @cached_property
    def necessary(self) -> sparse.csr_array:
        """Those of them that no weights break with the outputs within ε."""
        cone = self.cone
        return self._breakable(cone_of(cone.bags, cone.free, cone.epsilon, rises=possible_rises))

    def _breakable(self, cone: Cone) -> sparse.csr_array:
        rows = rows_of(cone, self.moving)
        return rows[rows.min(axis=1).toarray().ravel() < 0]

    def column(self, place: int) -> int:
        return int(np.searchsorted(self.moving, place))

    def search(self, rounds: int) -> tuple[Float[Tensor, " tokens"], Marks]:
        """The scores that reverse most pairs, and which rows held others back."""
        best, active = self.cone.bags.attention, np.zeros(self.rows.shape[0], dtype=bool)
        costs, size = np.ones(len(self.pairs)), len(self.moving) + 1
        for _ in range(rounds if self.pairs else 0):
            found = self._solved(costs)
            attained = None if found.x is None else nearby(self.cone, self.moving, found.x[:size])
            if attained is None:
                break
            best = max(best, attained[1], key=self._reversed)
            active |= found.ineqlin.marginals[: len(active)] < 0
            costs = 1 / (np.maximum(found.x[size:], 0.0) + SOFT)
        return best, active

    def held(self, pair: Pair, active: Marks) -> bool:
        """Whether the texts that hold others back and those with one of the two words hold the order of this pair.

        Of three classes or more the latter alone are asked: what holds others back is more than outputs ask for.
        """
        goal, other = map(self.column, pair)
        exact = self.cone.bags.polarity.shape[1] == 2
        rows = self.rows if exact else self.necessary
        touching = np.diff(rows[:, [goal, other]].indptr) > 0
        some = rows[active | touching if exact else touching]
        ratio = LeastRatio(inequalities=some, equalities=some[:0], goal=goal, other=other)
        found = ratio.solve(METHODS[0], math.inf)
        unit = self.cone.unit(pair[0]) - self.cone.unit(pair[1])
        return found.status == 0 and ratio.proved(found) > math.exp(-unit)

    def _reversed(self, scores: Float[Tensor, " tokens"]) -> int:
        return sum(bool(scores[first] < scores[second]) for first, second in self.pairs)

    def _solved(self, costs: Numbers) -> OptimizeResult:
        """The scale is one, second words keep some of their weight, ξ come last."""
        size, pairs = len(self.moving) + 1, len(self.pairs)
        rows = sparse.block_diag([self.rows, sparse.csr_array((0, pairs))], format="csr")
        rows = sparse.vstack([rows, self._orders()], format="csr")
        least = np.zeros(size + pairs)
        least[size - 1] = 1.0
        seconds = [second for _, second in self.pairs]
        least[[self.column(second) for second in seconds]] = LEAST * self.cone.original[seconds]
        most = np.full(size + pairs, np.inf)
        most[size - 1] = 1.0
        above = np.concatenate([np.zeros(self.rows.shape[0]), np.full(pairs, MARGIN)])
        return least_cost(np.concatenate([np.zeros(size), costs]), rows, above, np.column_stack([least, most]))

    def _orders(self) -> sparse.csr_array:
        """(w_second − w_first) / own w_first + ξ."""
        size, attention = len(self.moving) + 1, self.cone.bags.attention.numpy(force=True)
        entries = [
            (number, column, value)
            for number, (first, second) in enumerate(self.pairs)
            for column, value in (
                (self.column(first), -math.exp(self.cone.unit(first) - attention[first])),
                (self.column(second), math.exp(self.cone.unit(second) - attention[first])),
                (size + number, 1.0),
            )
        ]
        rows, columns, values = zip(*entries, strict=True)
        return sparse.csr_array((values, (rows, columns)), shape=(len(self.pairs), size + len(self.pairs)))


def _pair_table(bags: Bags, pairs: list[Pair], scores: Float[Tensor, " tokens"], held: list[bool]) -> pd.DataFrame:
    firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    return pd.DataFrame(
        {
            "first": [bags.names[place] for place in firsts],
            "second": [bags.names[place] for place in seconds],
            "attention_first": bags.attention[firsts].numpy(force=True),
            "attention_second": bags.attention[seconds].numpy(force=True),
            "other_first": scores[firsts].numpy(force=True),
            "other_second": scores[seconds].numpy(force=True),
            "reversed": (scores[firsts] < scores[seconds]).numpy(force=True),
            "held": np.array(held, dtype=bool),
        }
    )


def _token_table(bags: Bags, scores: Float[Tensor, " tokens"]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": bags.numbers.numpy(force=True),
            "token": list(bags.names),
            "count": bags.occurrences.numpy(force=True),
            "attention": bags.attention.numpy(force=True),
            "other": scores.numpy(force=True),
        }
    )
